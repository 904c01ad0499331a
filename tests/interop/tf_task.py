"""One real TensorFlow task: tf_task.py CLUSTER_JSON JOB INDEX. Prints READY grpc://HOST:PORT, serves until killed.

TF_TASK_LEADER in the environment names the task that leads collectives: TensorFlow's tasks want it when they start.
"""
import json
import os
import sys

import tensorflow as tf


def main():
    cluster, job, index = json.loads(sys.argv[1]), sys.argv[2], int(sys.argv[3])
    config = tf.compat.v1.ConfigProto()
    config.experimental.collective_group_leader = os.environ.get("TF_TASK_LEADER", "")
    server = tf.distribute.Server(tf.train.ClusterSpec(cluster), job_name=job, task_index=index, protocol="grpc", config=config)
    print("READY " + server.target.replace("localhost", "127.0.0.1"), flush=True)
    server.join()


if __name__ == "__main__":
    main()
