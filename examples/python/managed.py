"""The cluster from TF_CONFIG, variables placed by replica_device_setter, and a MonitoredTrainingSession that recovers by itself.

    rill up --ps 1 --workers 2 --restart 3 -- rill run managed.py --logdir=run
"""
import json
import os

import tensorflow as tf

import digits_data

tf.app.flags.DEFINE_string("logdir", None, "checkpoints and events")
tf.app.flags.DEFINE_integer("steps", 300, "of the whole training")
FLAGS = tf.app.flags.FLAGS


class HeldOut(tf.train.SessionRunHook):
    """The accuracy on what was not trained with, when the training ends."""

    def __init__(self, accuracy, feeds):
        self.accuracy, self.feeds, self.value = accuracy, feeds, 0.0

    def end(self, session):
        self.value = session.run(self.accuracy, self.feeds)


def main(_):
    config = json.loads(os.environ["TF_CONFIG"])
    job, index = config["task"]["type"], config["task"]["index"]
    cluster = tf.train.ClusterSpec(config["cluster"])
    server = tf.train.Server(cluster, job_name=job, task_index=index)
    if job == "ps":
        server.join()
        return
    data = digits_data.Digits(index)
    with tf.device(tf.train.replica_device_setter(worker_device="/job:%s/task:%d" % (job, index), cluster=cluster)):
        images, labels = tf.placeholder(tf.float32, [None, 64]), tf.placeholder(tf.int32, [None])
        hidden = tf.nn.tanh(tf.matmul(images, tf.get_variable("hidden", [64, 32])) + tf.get_variable("hidden_bias", [32]))
        logits = tf.matmul(hidden, tf.get_variable("logits", [32, 10])) + tf.get_variable("logits_bias", [10])
        loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits))
        accuracy = tf.reduce_mean(tf.cast(tf.nn.in_top_k(logits, labels, 1), tf.float32))
        step = tf.train.get_or_create_global_step()
        train = tf.train.AdamOptimizer(0.005).minimize(loss, global_step=step)
    # Only its own task and the ps: other workers may come, go and end as they like.
    config = tf.ConfigProto(device_filters=["/job:ps", "/job:%s/task:%d" % (job, index)])
    held_out = HeldOut(accuracy, dict(zip((images, labels), data.held_out)))
    now = 0
    with tf.train.MonitoredTrainingSession(server.target, config=config, is_chief=job == "chief" or index == 0, checkpoint_dir=FLAGS.logdir,
                                           hooks=[tf.train.StopAtStepHook(last_step=FLAGS.steps), held_out],
                                           save_checkpoint_steps=50, save_summaries_steps=None, log_step_count_steps=None) as session:
        while not session.should_stop():
            x, y = data.batch(64)
            _, now, value = session.run([train, step, loss], {images: x, labels: y})
            if now % 100 == 0:
                print("step %d  loss %.4f" % (now, value))
    print("%s:%d stopped at step %d, held-out accuracy %.3f" % (job, index, now, held_out.value))


if __name__ == "__main__":
    tf.app.run()
