"""In-graph: one client builds one graph over all tasks and feeds the data. A tower on every worker, the variables on the ps tasks, one update with the average of the gradients.

    rill up --ps 1 --workers 2 --client -- rill run in_graph.py --target={target} --ps=1 --workers=2
"""
import tensorflow as tf

import digits_data

tf.app.flags.DEFINE_string("target", "", "a task of the cluster: grpc://host:port")
tf.app.flags.DEFINE_integer("ps", 1, "how many ps tasks hold the variables")
tf.app.flags.DEFINE_integer("workers", 2, "how many workers have a tower")
tf.app.flags.DEFINE_integer("steps", 300, "")
tf.app.flags.DEFINE_integer("batch", 64, "of all towers together")
FLAGS = tf.app.flags.FLAGS


def network(images):
    """The same variables in every tower."""
    with tf.variable_scope("network", reuse=tf.AUTO_REUSE):
        hidden = tf.nn.tanh(tf.matmul(images, tf.get_variable("hidden", [64, 32])) + tf.get_variable("hidden_bias", [32], initializer=tf.zeros_initializer()))
        return tf.matmul(hidden, tf.get_variable("logits", [32, 10])) + tf.get_variable("logits_bias", [10], initializer=tf.zeros_initializer())


def average(towers):
    """[(gradient, variable), ...] of every tower -> their means."""
    return [(tf.reduce_mean(tf.stack([gradient for gradient, _ in same]), 0), same[0][1]) for same in zip(*towers)]


def main(_):
    tf.set_random_seed(1)
    data = digits_data.Digits()
    images, labels = tf.placeholder(tf.float32, [None, 64]), tf.placeholder(tf.int32, [None])
    optimizer = tf.train.AdamOptimizer(0.005)
    towers, losses = [], []
    parts = zip(tf.split(images, FLAGS.workers), tf.split(labels, FLAGS.workers))
    for index, (x, y) in enumerate(parts):
        with tf.device(tf.train.replica_device_setter(ps_tasks=FLAGS.ps, worker_device="/job:worker/task:%d" % index)):
            losses.append(tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=network(x))))
            towers.append(optimizer.compute_gradients(losses[-1]))
    with tf.device(tf.train.replica_device_setter(ps_tasks=FLAGS.ps, worker_device="/job:worker/task:0")):
        step = tf.train.get_or_create_global_step()
        train = optimizer.apply_gradients(average(towers), global_step=step)
        loss = tf.reduce_mean(tf.stack(losses))
        accuracy = tf.reduce_mean(tf.cast(tf.nn.in_top_k(network(images), labels, 1), tf.float32))
        init = tf.global_variables_initializer()
    with tf.Session(FLAGS.target) as session:
        session.run(init)
        for now in range(1, FLAGS.steps + 1):
            x, y = data.batch(FLAGS.batch)
            value = session.run([train, loss], {images: x, labels: y})[1]
            if now % 20 == 0:
                print("step %d  loss %.4f" % (now, value))
        x, y = data.held_out
        now, good = session.run([step, accuracy], {images: x, labels: y})
    print("stopped at step %d, held-out accuracy %.3f" % (now, good))


if __name__ == "__main__":
    tf.app.run()
