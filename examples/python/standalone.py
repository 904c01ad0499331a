"""A server in this process and a session on it; with --target, also two devices of a cluster that runs elsewhere.

    rill run standalone.py
    rill up --ps 2 --workers 2 --client -- rill run standalone.py --target={target}
"""
import tensorflow as tf

tf.app.flags.DEFINE_string("target", "", "a task of a running cluster: grpc://host:port")
FLAGS = tf.app.flags.FLAGS


def add_up(target, here, there):
    """1 + 2 + ... + 100, each half on its device."""
    with tf.Graph().as_default():
        with tf.device(here):
            low = tf.reduce_sum(tf.range(1.0, 51.0))
        with tf.device(there):
            high = tf.reduce_sum(tf.range(51.0, 101.0))
        with tf.Session(target) as session:
            return session.run(low + high)


def main(_):
    server = tf.train.Server({"local": ["localhost:0"]})
    print("%s: %g" % (server.target, add_up(server.target, None, "/cpu:0")))
    if FLAGS.target:
        print("%s: %g" % (FLAGS.target, add_up(FLAGS.target, "/job:ps/task:1", "/job:worker/task:1")))


if __name__ == "__main__":
    tf.app.run()
