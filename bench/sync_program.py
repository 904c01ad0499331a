"""A TensorFlow 1 program that trains in step: sync_program.py CLUSTER_JSON JOB INDEX. A worker prints FIRST STEP and the time after its first step, then waits to be ended."""
import json
import sys
import time

import tensorflow as tf

if hasattr(tf, "compat"):
    tf = tf.compat.v1
    tf.disable_eager_execution()


def main():
    cluster, job, index = json.loads(sys.argv[1]), sys.argv[2], int(sys.argv[3])
    server = tf.train.Server(cluster, job_name=job, task_index=index)
    if job == "ps":
        server.join()
    workers = len(cluster["worker"])
    with tf.device(tf.train.replica_device_setter(cluster=cluster, worker_device="/job:worker/task:%d" % index)):
        step = tf.train.get_or_create_global_step()
        w = tf.get_variable("w", [10], initializer=tf.zeros_initializer())
        optimizer = tf.train.SyncReplicasOptimizer(tf.train.GradientDescentOptimizer(0.1), workers, workers)
        train = optimizer.minimize(tf.reduce_sum(tf.square(w - 1.0)), global_step=step)
    is_chief = index == 0
    with tf.train.MonitoredTrainingSession(server.target, is_chief=is_chief, hooks=[optimizer.make_session_run_hook(is_chief)]) as session:
        session.run(train)
        print("FIRST STEP", time.time(), flush=True)
        while not session.should_stop():
            session.run(train)


main()
