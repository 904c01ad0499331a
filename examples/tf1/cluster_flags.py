"""The flags that the programs of this folder share: where the tasks run, how long to train, and the device function that follows from them."""
import argparse
import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")

import tensorflow.compat.v1 as tf


def parser(description, steps, batch):
    """A parser with the shared flags; programs add their own."""
    p = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--ps_hosts", default="", help="host:port,... of the ps tasks, which keep the variables")
    p.add_argument("--worker_hosts", default="", help="host:port,... of the worker tasks; without any, TensorFlow runs all in this process")
    p.add_argument("--task_index", type=int, default=0, help="the worker this script drives")
    p.add_argument("--target", default="", help="the master of the session; by default the worker of --task_index")
    p.add_argument("--steps", type=int, default=steps)
    p.add_argument("--batch", type=int, default=batch)
    p.add_argument("--seed", type=int, default=1, help="of the variables and the data")
    return p


def target(args):
    """What tf.Session is opened on: '' is this process."""
    workers = args.worker_hosts.split(",") if args.worker_hosts else []
    return args.target or ("grpc://" + workers[args.task_index] if workers else "")


def device(args):
    """Variables in turn on the ps tasks, all else on the worker; nothing where everything is in this process."""
    if not args.worker_hosts:
        return tf.device(None)
    jobs = {"worker": args.worker_hosts.split(",")}
    if args.ps_hosts:
        jobs["ps"] = args.ps_hosts.split(",")
    return tf.device(tf.train.replica_device_setter(cluster=tf.train.ClusterSpec(jobs),
                                                    worker_device="/job:worker/task:%d" % args.task_index))


def main(train, arguments):
    """Runs a program's train(args), which yields ("loss", value) for every step and may end with another measure."""
    tf.disable_v2_behavior()
    tf.logging.set_verbosity(tf.logging.ERROR)
    for step, (measure, value) in enumerate(train(arguments), 1):
        if measure != "loss" or step % max(1, arguments.steps // 10) == 0:
            print(f"step {step:5d}  {measure} {value:.5f}", flush=True)
