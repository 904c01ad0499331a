"""One real TensorFlow task: tf_task.py CLUSTER_JSON JOB INDEX. Prints READY grpc://HOST:PORT, serves until killed."""
import json
import sys

import tensorflow as tf


def main():
    cluster, job, index = json.loads(sys.argv[1]), sys.argv[2], int(sys.argv[3])
    server = tf.distribute.Server(tf.train.ClusterSpec(cluster), job_name=job, task_index=index, protocol="grpc")
    print("READY " + server.target.replace("localhost", "127.0.0.1"), flush=True)
    server.join()


if __name__ == "__main__":
    main()
