#!/bin/sh
# Trains the digits network in C on a local cluster (a chief, 2 ps, 2 workers), then looks at what it wrote. B: the build folder.
set -e
run=$B/demo
rm -rf "$run"
"$B/rill" version
"$B/rill" demo --logdir "$run"
echo
echo "checkpoints (rill ckpt ls), as TensorFlow reads them:"
"$B/rill" ckpt ls "$run" | head -8
echo
echo "events (rill events), as TensorBoard reads them:"
"$B/rill" events "$run" | head -8
