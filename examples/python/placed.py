"""Devices by hand: weights and biases under /job:ps/task:1, two relu layers and the training under /job:worker/task:1; one hundred steps.

    rill up --ps 2 --workers 2 --client -- rill run placed.py --target={target}
"""
import tensorflow as tf

import digits_data

tf.app.flags.DEFINE_string("target", "", "a task of the cluster: grpc://host:port")
FLAGS = tf.app.flags.FLAGS


def relu_layer(name, x, size):
    with tf.variable_scope(name):
        with tf.device("/job:ps/task:1"):
            weights = tf.get_variable("weights", [x.shape[1], size])
            biases = tf.get_variable("biases", [size], initializer=tf.constant_initializer(0.1))
        return tf.nn.relu(tf.matmul(x, weights) + biases)


def main(_):
    tf.set_random_seed(1)
    data = digits_data.Digits()
    with tf.device("/job:worker/task:1"):
        images, labels = tf.placeholder(tf.float32, [None, 64]), tf.placeholder(tf.int32, [None])
        layer2 = relu_layer("layer2", relu_layer("layer1", images, 32), 16)
        with tf.variable_scope("logits"):
            logits = tf.matmul(layer2, tf.get_variable("weights", [16, 10])) + tf.get_variable("biases", [10])
        loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits))
        train = tf.train.AdamOptimizer(0.01).minimize(loss)
        init = tf.global_variables_initializer()
    losses = []
    with tf.Session(FLAGS.target) as session:
        session.run(init)
        for _ in range(100):
            x, y = data.batch(64)
            losses.append(session.run([train, loss], {images: x, labels: y})[1])
    print("100 steps: loss %.3f, then %.3f" % (losses[0], losses[-1]))


if __name__ == "__main__":
    tf.app.run()
