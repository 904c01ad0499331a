"""The same programs on several machines, which are network namespaces: each has its own interfaces, addresses and ports, and a cable that can be pulled."""
import glob
import json
import os
import re
import shutil
import subprocess
import sys

import pytest
import tensorflow.compat.v1 as tf

from cluster_process import RILL, ROOT
from program import Program

MODE = os.environ.get("MODE", "release")
PORT = 2222


def ip(*words):
    subprocess.run(["ip", *words], check=True, capture_output=True, text=True)


class Machine:
    """A namespace with one interface, joined to a switch by a cable."""

    def __init__(self, network, number):
        self.network, self.number = network, number
        self.namespace = "%s-%d" % (network.name, number)
        self.cable = "%sv%d" % (network.name, number)
        self.address = "10.77.0.%d:%d" % (number, PORT)

    def build(self):
        ip("netns", "add", self.namespace)
        ip("link", "add", self.cable, "type", "veth", "peer", "name", "eth0", "netns", self.namespace)
        ip("link", "set", self.cable, "netns", self.network.switch)
        ip("-n", self.network.switch, "link", "set", self.cable, "master", "switch", "up")
        ip("-n", self.namespace, "addr", "add", self.address.split(":")[0] + "/24", "dev", "eth0")
        ip("-n", self.namespace, "link", "set", "lo", "up")
        ip("-n", self.namespace, "link", "set", "eth0", "up")

    def plug(self, is_in):
        ip("-n", self.network.switch, "link", "set", self.cable, "up" if is_in else "down")

    def start(self, *command, environment=None):
        program = Program(["ip", "netns", "exec", self.namespace, *command], environment)
        self.network.programs.append(program)
        return program


class Network:
    """Machines and their switch, which has a namespace of its own: the machine that runs the test sees nothing of it."""

    def __init__(self, count):
        self.name = "rill%d" % (os.getpid() % 1000000)
        self.switch = self.name + "-s"
        self.programs = []
        self.machines = [Machine(self, i + 1) for i in range(count)]

    def build(self):
        ip("netns", "add", self.switch)
        ip("-n", self.switch, "link", "add", "switch", "type", "bridge", "forward_delay", "0")
        ip("-n", self.switch, "link", "set", "switch", "up")
        for machine in self.machines:
            machine.build()

    def stop_programs(self):
        for program in self.programs:
            program.kill()
        self.programs.clear()

    def remove(self):
        self.stop_programs()
        for namespace in [m.namespace for m in self.machines] + [self.switch]:
            subprocess.run(["ip", "netns", "delete", namespace], capture_output=True)


@pytest.fixture(scope="module")
def network():
    if not shutil.which("ip"):
        pytest.skip("no ip command: the package iproute2 is missing")
    made = Network(3)
    try:
        try:
            made.build()
        except subprocess.CalledProcessError as e:
            pytest.skip("network namespaces cannot be made here (root is needed): %s" % e.stderr.strip())
        yield made
    finally:
        made.remove()


@pytest.fixture
def machines(network):
    yield network.machines
    network.stop_programs()
    for machine in network.machines:
        machine.plug(True)


def addresses(ps, *workers):
    return ["--ps_hosts=" + ps, "--worker_hosts=" + ",".join(workers)]


def start_apart(machines, *command):
    """ps, worker 0 and worker 1, each on its machine."""
    cluster = addresses(*[m.address for m in machines])
    tasks = [("ps", 0), ("worker", 0), ("worker", 1)]
    return [m.start(*command, *cluster, "--job_name=%s" % job, "--task_index=%d" % i) for m, (job, i) in zip(machines, tasks)]


def start_hybrid(machines, *command):
    """ps and worker 0 in one process on a machine, worker 1 on another."""
    first, second, _ = machines
    cluster = addresses(first.address, first.address.replace(":%d" % PORT, ":%d" % (PORT + 1)), second.address)
    return [first.start(*command, *cluster, "--here=ps:0,worker:0"), second.start(*command, *cluster, "--job_name=worker", "--task_index=1")]


HOW = {"apart": start_apart, "hybrid": start_hybrid}


def saved_step(folder):
    return tf.train.load_checkpoint(tf.train.latest_checkpoint(str(folder))).get_tensor("global_step")


@pytest.mark.parametrize("how", HOW)
def test_digits_in_step(built, machines, tmp_path, how):
    programs = HOW[how](machines, built("digits"), "--steps=120", "--logdir=%s" % tmp_path, "--expect=85")
    outs = [p.finish() for p in programs]
    assert re.search(r"held-out accuracy (8[5-9]|9\d|100)", "".join(outs)), outs
    assert saved_step(tmp_path) == 120
    assert glob.glob(str(tmp_path / "events*"))


@pytest.mark.parametrize("how", HOW)
def test_managed(built, machines, tmp_path, how):
    outs = [p.finish() for p in HOW[how](machines, built("managed"), "--steps=300", "--logdir=%s" % tmp_path)]
    ends = re.findall(r"(worker:\d) stopped at step (\d+), held-out accuracy ([\d.]+)", "".join(outs))
    assert sorted(name for name, _, _ in ends) == ["worker:0", "worker:1"], outs
    assert all(int(step) >= 299 for _, step, _ in ends) and any(float(a) > 0.8 for _, _, a in ends), ends
    assert saved_step(tmp_path) >= 300


def connections(machine, port):
    """Peers of established connections to a port of the machine."""
    rows = subprocess.run(["ip", "netns", "exec", machine.namespace, "cat", "/proc/net/tcp", "/proc/net/tcp6"], check=True, capture_output=True, text=True).stdout
    found = [row.split() for row in rows.splitlines() if " 01 " in row]
    return [row[2] for row in found if row[1].endswith(":%04X" % port)]


def test_tasks_of_one_process_need_no_sockets_between_them(built, machines):
    """In the middle of the training the ps is connected to the other machine alone."""
    both, other = start_hybrid(machines, built("managed"), "--steps=1000000")
    both.wait_for(r"step \d+  loss")
    other.wait_for(r"step \d+  loss")
    second = "".join("%02X" % int(part) for part in reversed(machines[1].address.split(":")[0].split(".")))
    peers = connections(machines[0], PORT)
    assert peers and all(second in peer for peer in peers), peers
    assert not connections(machines[0], PORT + 1)


MADE_ANEW = "the session is made anew: "


def test_a_ps_cut_off_for_a_while(built, machines, tmp_path):
    """Both workers lose the ps, say so, and go on when the cable is back; its variables are still there."""
    ps, chief, worker = start_apart(machines, built("managed"), "--steps=8000", "--logdir=%s" % tmp_path, "--keepalive=1")
    for p in (chief, worker):
        p.wait_for(r"step \d+  loss")
    machines[0].plug(False)
    for p in (chief, worker):
        p.wait_for(MADE_ANEW)
    machines[0].plug(True)
    for p in (chief, worker, ps):
        p.finish()
    assert re.search(r"worker:0 stopped at step (7999|80\d\d)", chief.text()), chief.text()
    assert saved_step(tmp_path) >= 8000


@pytest.mark.parametrize("cut", [2, 1, 0], ids=["worker", "chief", "ps"])
def test_a_task_in_step_cut_off_for_a_while(built, machines, tmp_path, cut):
    """The others wait for the gradients of the worker that is away, or for the chief or ps."""
    ps, chief, worker = start_apart(machines, built("digits"), "--steps=3000", "--batch=16", "--logdir=%s" % tmp_path, "--keepalive=1", "--expect=85")
    chief.wait_for(r"step \d+/3000")  # of both: a step needs the gradients of all
    machines[cut].plug(False)
    for p in [[chief, worker], [chief], [worker]][cut]:
        p.wait_for(MADE_ANEW)
    machines[cut].plug(True)
    for p in (chief, worker, ps):
        p.finish()
    assert saved_step(tmp_path) >= 3000


def test_a_short_cut_is_not_noticed(built, machines):
    """Shorter than the time after which silence means something: no connection breaks."""
    ps, chief, worker = start_apart(machines, built("managed"), "--steps=3000", "--keepalive=100")
    worker.wait_for(r"step \d+  loss")
    machines[2].plug(False)
    chief.wait_for(r"step \d+  loss")
    machines[2].plug(True)
    for p in (chief, worker, ps):
        assert not re.search(MADE_ANEW, p.finish())


def test_a_cable_cut_for_good_names_the_task_that_is_gone(built, machines):
    ps, chief, worker = start_apart(machines, built("managed"), "--steps=1000000", "--keepalive=1")
    chief.wait_for(r"step \d+")
    worker.wait_for(r"step \d+")
    machines[0].plug(False)
    for p in (chief, worker):
        p.wait_for(MADE_ANEW)
        p.wait_for("/job:ps/replica:0/task:0 at " + re.escape(machines[0].address))


CLIENT = """
import sys, time
import tensorflow.compat.v1 as tf
with tf.Graph().as_default():
    with tf.device("/job:ps/task:0"):
        value = tf.FIFOQueue(1, tf.float32).dequeue()
    with tf.Session(sys.argv[1]) as session:
        session.list_devices()
        print("WAITS", flush=True)
        begin = time.monotonic()
        try:
            session.run(value)
        except tf.errors.UnavailableError as e:
            print("UNAVAILABLE after %d s: %s" % (time.monotonic() - begin, e.message), flush=True)
"""


def test_a_served_task_gives_up_a_silent_one_after_its_keepalive(machines):
    """A step waits on the ps when its cable is cut: the client is told soon, not after the 40 s of the default."""
    cluster = {"ps": [machines[0].address], "worker": [machines[1].address]}
    for machine, job in zip(machines, cluster):
        machine.start(RILL, "serve", "--cluster", json.dumps(cluster), "--job", job, "--task", 0, "--keepalive", 1).wait_for("READY")
    client = machines[1].start(sys.executable, "-c", CLIENT, "grpc://" + machines[1].address)
    client.wait_for("WAITS")
    machines[0].plug(False)
    told = client.wait_for("UNAVAILABLE")
    assert int(re.search(r"after (\d+) s", told).group(1)) < 35 and "/job:ps/replica:0/task:0" in client.finish(), client.text()


@pytest.mark.skipif(MODE == "asan", reason="Python cannot load a library built with the sanitizers")
def test_python_program(machines, tmp_path):
    """A TensorFlow 1 program, unmodified, is the worker on one machine; the ps on another is `rill serve`."""
    subprocess.run(["make", "-s", "-j2", "build/%s/librill.so" % MODE], cwd=ROOT, check=True)
    cluster = {"ps": [machines[0].address], "worker": [machines[1].address]}
    ps = machines[0].start(RILL, "serve", "--cluster", json.dumps(cluster), "--job", "ps", "--task", 0)
    config = json.dumps({"cluster": cluster, "task": {"type": "worker", "index": 0}})
    worker = machines[1].start(RILL, "run", "examples/python/managed.py", "--logdir=%s" % tmp_path, environment={"TF_CONFIG": config, "RILL_PYTHON": sys.executable})
    assert re.search(r"worker:0 stopped at step (299|300), held-out accuracy", worker.finish()), worker.text()
    assert "READY grpc://" + machines[0].address in ps.finish()
    assert saved_step(tmp_path) == 300
