#!/usr/bin/env python3
"""Input by queues, as it was done before tf.data: file names in a queue, a reader, a queue of parsed records, and threads of this program that
keep both filled until the epochs are over.

    queue_input.py --ps_hosts localhost:2222 --worker_hosts localhost:2223 --folder /tmp --epochs 3

The worker reads the files: it must see the same --folder.
"""
import tensorflow.compat.v1 as tf

import cluster_flags
import record_files


def batch_of(paths, args):
    names = tf.train.string_input_producer(paths, num_epochs=args.epochs, shuffle=False)
    _, record = tf.TFRecordReader().read(names)
    tensors = record_files.parse(record)
    if args.in_order:
        return tf.train.batch(tensors, args.batch, capacity=4 * args.batch, allow_smaller_final_batch=True)
    return tf.train.shuffle_batch(tensors, args.batch, capacity=8 * args.batch, min_after_dequeue=4 * args.batch, num_threads=2,
                                  seed=args.seed, allow_smaller_final_batch=True)


def train(args, seen=None):
    """Yields losses until the records are used up; the numbers of the records go to the list `seen`."""
    with tf.Graph().as_default():
        tf.set_random_seed(args.seed)
        with cluster_flags.device(args):
            numbers, points, labels = batch_of(record_files.write(args.folder, seed=args.seed), args)
            loss = record_files.loss_of(points, labels)
            update = tf.train.GradientDescentOptimizer(0.5).minimize(loss, tf.train.get_or_create_global_step())
            init = [tf.global_variables_initializer(), tf.local_variables_initializer()]
        with tf.Session(cluster_flags.target(args)) as session:
            session.run(init)
            coordinator = tf.train.Coordinator()
            threads = tf.train.start_queue_runners(session, coordinator)
            try:
                while not coordinator.should_stop():
                    value, ids, _ = session.run([loss, numbers, update])
                    if seen is not None:
                        seen.extend(ids)
                    yield "loss", value
            except tf.errors.OutOfRangeError:
                pass  # all epochs are over
            finally:
                coordinator.request_stop()
                coordinator.join(threads)


def parser():
    p = cluster_flags.parser(__doc__, steps=40, batch=20)
    p.add_argument("--folder", default=".", help="where the records are written and read")
    p.add_argument("--epochs", type=int, default=3)
    p.add_argument("--in_order", action="store_true", help="do not shuffle the records")
    return p


if __name__ == "__main__":
    cluster_flags.main(train, parser().parse_args())
