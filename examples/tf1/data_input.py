#!/usr/bin/env python3
"""Input by tf.data: files interleaved, records parsed, shuffled, batched and prefetched. The place in the data is saved in the checkpoint with the
variables, so that a program which starts again goes on with the record it would have had.

    data_input.py --ps_hosts localhost:2222 --worker_hosts localhost:2223 --folder /tmp --steps 30
    data_input.py --ps_hosts localhost:2222 --worker_hosts localhost:2223 --folder /tmp --steps 30     # goes on

The worker reads the files: it must see the same --folder.
"""
import os

import tensorflow.compat.v1 as tf

import cluster_flags
import record_files


def dataset_of(paths, args):
    files = tf.data.Dataset.from_tensor_slices(paths)
    records = files.interleave(tf.data.TFRecordDataset, cycle_length=2, block_length=3)
    return records.map(record_files.parse, num_parallel_calls=2).shuffle(40, seed=args.seed).repeat().batch(args.batch).prefetch(2)


def train(args, seen=None):
    """Yields losses; the numbers of the records go to the list `seen`."""
    checkpoint = os.path.join(args.folder, "model.ckpt")
    with tf.Graph().as_default():
        tf.set_random_seed(args.seed)
        with cluster_flags.device(args):
            with tf.device("/job:worker/task:%d" % args.task_index if args.worker_hosts else None):
                iterator = tf.data.make_initializable_iterator(dataset_of(record_files.write(args.folder, seed=args.seed), args))
            tf.add_to_collection(tf.GraphKeys.SAVEABLE_OBJECTS, tf.data.experimental.make_saveable_from_iterator(iterator))
            numbers, points, labels = iterator.get_next()
            loss = record_files.loss_of(points, labels)
            update = tf.train.MomentumOptimizer(0.1, 0.9).minimize(loss, tf.train.get_or_create_global_step())
            saver = tf.train.Saver(sharded=True)
            init = [tf.global_variables_initializer(), iterator.initializer]
        with tf.Session(cluster_flags.target(args)) as session:
            session.run(init)
            if tf.train.checkpoint_exists(checkpoint):
                saver.restore(session, checkpoint)
            for _ in range(args.steps):
                value, ids, _ = session.run([loss, numbers, update])
                if seen is not None:
                    seen.extend(ids)
                yield "loss", value
            saver.save(session, checkpoint, write_meta_graph=False)


def parser():
    p = cluster_flags.parser(__doc__, steps=30, batch=20)
    p.add_argument("--folder", default=".", help="where the records are written and read, and the checkpoint kept")
    return p


if __name__ == "__main__":
    cluster_flags.main(train, parser().parse_args())
