"""Handwritten digits, between-graph: every worker reads TFRecord files by queues and trains under a Supervisor; validation every 100 steps.

    rill up --ps 1 --workers 2 --run-ps -- rill run queues.py --ps_hosts={ps_hosts} --worker_hosts={worker_hosts} --job_name={job} --task_index={task} --folder=DIR --logdir=RUN

With --issync gradients are averaged over the workers (SyncReplicasOptimizer); with --aggregate below their number the rest are backups. Moving averages of the weights
are validated. The files are those of the C program `records`.
"""
import time

import tensorflow as tf

import digits_data

FLAGS = tf.app.flags.FLAGS
tf.app.flags.DEFINE_string("ps_hosts", "", "host:port,...")
tf.app.flags.DEFINE_string("worker_hosts", "", "host:port,...")
tf.app.flags.DEFINE_string("job_name", "", "ps or worker")
tf.app.flags.DEFINE_integer("task_index", 0, "of the job")
tf.app.flags.DEFINE_bool("issync", False, "in step")
tf.app.flags.DEFINE_integer("aggregate", 0, "gradients for one update; 0: of all workers")
tf.app.flags.DEFINE_string("folder", ".", "with the TFRecord files")
tf.app.flags.DEFINE_string("logdir", None, "checkpoints")
tf.app.flags.DEFINE_integer("steps", 600, "of the whole training")


def read(files, batch, shuffle):
    _, record = tf.TFRecordReader().read(tf.train.string_input_producer(files, shuffle=shuffle))
    features = tf.parse_single_example(record, {"image_raw": tf.FixedLenFeature([], tf.string), "label": tf.FixedLenFeature([], tf.string)})
    image = tf.cast(tf.reshape(tf.decode_raw(features["image_raw"], tf.uint8), [64]), tf.float32) / 16
    label = tf.reshape(tf.decode_raw(features["label"], tf.float64), [10])
    if shuffle:
        return tf.train.shuffle_batch([image, label], batch, capacity=1000, min_after_dequeue=300, num_threads=4)
    return tf.train.batch([image, label], batch)


def network(x, getter=None):
    with tf.variable_scope("network", reuse=tf.AUTO_REUSE, custom_getter=getter):
        for name, size, activation in (("hidden1", 32, tf.nn.tanh), ("hidden2", 16, tf.nn.relu), ("logits", 10, tf.identity)):
            weights = tf.get_variable(name, [x.shape[1], size])
            x = activation(tf.matmul(x, weights) + tf.get_variable(name + "_bias", [size], initializer=tf.zeros_initializer()))
    return x


def main(_):
    cluster = tf.train.ClusterSpec({"ps": FLAGS.ps_hosts.split(","), "worker": FLAGS.worker_hosts.split(",")})
    server = tf.train.Server(cluster, job_name=FLAGS.job_name, task_index=FLAGS.task_index)
    if FLAGS.job_name == "ps":
        server.join()
        return
    is_chief = FLAGS.task_index == 0
    workers = len(FLAGS.worker_hosts.split(","))
    train_files, test_file = digits_data.record_files(FLAGS.folder)
    with tf.device(tf.train.replica_device_setter(worker_device="/job:worker/task:%d" % FLAGS.task_index, cluster=cluster)):
        images, labels = read(train_files, 32, True)
        test_images, test_labels = read([test_file], 100, False)
        loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=tf.argmax(labels, 1), logits=network(images)))
        step = tf.train.get_or_create_global_step()
        optimizer = tf.train.GradientDescentOptimizer(0.3)
        local_init, ready = tf.local_variables_initializer(), None
        if FLAGS.issync:
            optimizer = tf.train.SyncReplicasOptimizer(optimizer, FLAGS.aggregate or workers, workers)
        train = optimizer.minimize(loss, global_step=step)
        if FLAGS.issync:
            local_init = tf.group(local_init, optimizer.chief_init_op if is_chief else optimizer.local_step_init_op)
            ready = optimizer.ready_for_local_init_op
            chief_runner, tokens = optimizer.get_chief_queue_runner(), optimizer.get_init_tokens_op()
        averages = tf.train.ExponentialMovingAverage(0.95, step)
        with tf.control_dependencies([train]):
            train = averages.apply(tf.trainable_variables())
        logits = network(test_images, lambda getter, *name, **more: averages.average(getter(*name, **more)))
        accuracy = tf.reduce_mean(tf.cast(tf.equal(tf.argmax(logits, 1), tf.argmax(test_labels, 1)), tf.float32))
        init = tf.global_variables_initializer()
    supervisor = tf.train.Supervisor(is_chief=is_chief, logdir=FLAGS.logdir, init_op=init, local_init_op=local_init, ready_for_local_init_op=ready,
                                     recovery_wait_secs=1, global_step=step, summary_op=None, save_model_secs=60)
    began, now = time.time(), 0
    config = tf.ConfigProto(device_filters=["/job:ps", "/job:worker/task:%d" % FLAGS.task_index])  # other workers may come and go
    with supervisor.prepare_or_wait_for_session(server.target, config=config) as session:
        if FLAGS.issync and is_chief:
            session.run(tokens)
            supervisor.start_queue_runners(session, [chief_runner])
        following = 100
        while not supervisor.should_stop() and now < FLAGS.steps:
            _, now, value = session.run([train, step, loss])
            if now >= following:
                print("worker:%d step %d  loss %.4f  validation accuracy %.3f" % (FLAGS.task_index, now, value, session.run(accuracy)))
                following += 100
        good = sum(session.run(accuracy) for _ in range(3)) / 3
        if is_chief and FLAGS.logdir:
            supervisor.saver.save(session, supervisor.save_path, global_step=step)
    print("worker:%d stopped at step %d, validation accuracy %.3f, %.1f s" % (FLAGS.task_index, now, good, time.time() - began))


if __name__ == "__main__":
    tf.app.run()
