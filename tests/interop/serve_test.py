"""rill serve: the cluster from flags, a file or TF_CONFIG, and what it says to mistakes."""
import json
import subprocess

import pytest
import tensorflow.compat.v1 as tf

from cluster_process import RILL, Task, free_port


def check_serves(command, environment=None):
    """A task started so answers a client; its variables live on the ps it is."""
    task = Task([RILL, "serve"] + command, environment=environment).start()
    try:
        with tf.Graph().as_default(), tf.device("/job:ps/task:0"), tf.Session(task.target) as session:
            assert session.run(tf.constant(2) * 3) == 6
            assert [d.name for d in session.list_devices()] == ["/job:ps/replica:0/task:0/device:CPU:0"]
    finally:
        assert task.stop() == 0


def test_cluster_from_hosts_flags():
    check_serves(["--ps_hosts=127.0.0.1:%d" % free_port(), "--job_name=ps", "--task_index=0"])


def test_cluster_from_a_file(tmp_path):
    path = tmp_path / "cluster.json"
    path.write_text(json.dumps({"ps": {"0": "127.0.0.1:%d" % free_port()}}))
    check_serves(["--cluster", str(path), "--job", "ps", "--task", "0"])


def test_cluster_and_task_from_tf_config():
    config = {"cluster": {"ps": ["127.0.0.1:%d" % free_port()]}, "task": {"type": "ps", "index": 0}}
    check_serves([], {"TF_CONFIG": json.dumps(config)})


def test_several_cpu_devices():
    spec = json.dumps({"local": ["127.0.0.1:%d" % free_port()]})
    task = Task([RILL, "serve", "--cluster", spec, "--job", "local", "--task", "0", "--cpu-devices", "2"]).start()
    try:
        with tf.Graph().as_default(), tf.Session(task.target) as session:
            with tf.device("/cpu:1"):
                a = tf.constant(4) + 1
            with tf.device("/cpu:0"):
                b = a * 2
            assert session.run(b) == 10
            assert len(session.list_devices()) == 2
    finally:
        assert task.stop() == 0


@pytest.mark.parametrize("flags, said", [
    ([], "no cluster given"),
    (["--cluster", "{\"ps\": [\"nonsense\"]}", "--job", "ps", "--task", "0"], "nonsense"),
    (["--cluster", "{\"ps\": [\"127.0.0.1:1\"]}", "--job", "worker", "--task", "0"], "worker:0 is not in the cluster"),
    (["--cluster", "/no/such/file", "--job", "ps", "--task", "0"], "/no/such/file"),
    (["--no-such-flag"], "--no-such-flag"),
    (["--keepalive", "-1"], "--keepalive -1 is not between 1 and 86400"),
])
def test_a_mistake_is_named(flags, said):
    done = subprocess.run([RILL, "serve"] + flags, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=60, env={})
    assert done.returncode in (1, 2) and said in done.stderr and not done.stdout, done
