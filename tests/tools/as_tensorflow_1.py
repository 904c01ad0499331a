"""Runs a TensorFlow 1-style script with TensorFlow's own servers: what `rill run` is compared with."""
import os
import runpy
import sys

import tensorflow as tf

tf.compat.v1.disable_v2_behavior()
sys.modules["tensorflow"] = tf.compat.v1
sys.argv = sys.argv[1:]
sys.path[0] = os.path.dirname(os.path.abspath(sys.argv[0]))
try:
    runpy.run_path(sys.argv[0], run_name="__main__")
except SystemExit as end:
    sys.stdout.flush()
    os._exit(end.code or 0)  # its server would keep the process
