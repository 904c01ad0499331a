"""Server, with the arguments of tf.train.Server."""
import json

from ._library import checked, library

_servers = []  # a server outlives its Python object, as TensorFlow's does


def _as_dict(cluster):
    """A dictionary of jobs from what tf.train.Server takes: a dictionary, a ClusterSpec, a ClusterDef."""
    if hasattr(cluster, "as_dict"):
        cluster = cluster.as_dict()
    elif hasattr(cluster, "job") and not isinstance(cluster, dict):
        cluster = {job.name: dict(job.tasks) for job in cluster.job}
    if not isinstance(cluster, dict):
        raise TypeError("cluster must be a dictionary of jobs, a ClusterSpec or a ClusterDef, not %r" % (cluster,))
    jobs = {}
    for job, tasks in cluster.items():
        jobs[job] = {str(i): address for i, address in tasks.items()} if isinstance(tasks, dict) else [tasks] if isinstance(tasks, str) else list(tasks)
    return jobs


def _read(server_or_cluster, job_name, task_index):
    """Cluster, job and task, from a ServerDef or from the arguments."""
    if hasattr(server_or_cluster, "cluster") and hasattr(server_or_cluster, "task_index"):
        job_name = server_or_cluster.job_name if job_name is None else job_name
        task_index = server_or_cluster.task_index if task_index is None else task_index
        server_or_cluster = server_or_cluster.cluster
    jobs = _as_dict(server_or_cluster)
    if job_name is None:
        if len(jobs) != 1:
            raise ValueError("Must specify an explicit `job_name`: the cluster has %s" % sorted(jobs))
        job_name, = jobs
    if task_index is None:
        if len(jobs.get(job_name, [])) != 1:
            raise ValueError("Must specify an explicit `task_index`: job %s has %d tasks" % (job_name, len(jobs.get(job_name, []))))
        task_index = int(next(iter(jobs[job_name]))) if isinstance(jobs[job_name], dict) else 0
    return jobs, job_name, task_index


class Server:
    """One task of a cluster in this process; it serves from the moment it is made, until stop() or the end of the process."""

    def __init__(self, server_or_cluster_def, job_name=None, task_index=None, protocol=None, config=None, start=True):
        if protocol not in (None, "", "grpc"):
            raise ValueError("protocol %r is not supported; there is \"grpc\"" % (protocol,))
        self._cluster, self._job, self._task = _read(server_or_cluster_def, job_name, task_index)
        self._config = config
        self._handle = None
        if start:
            self.start()

    def start(self):
        if self._handle is None:
            self._handle = checked("rill_server_start", json.dumps(self._cluster).encode(), self._job.encode(), self._task)
            _servers.append(self)

    @property
    def target(self):
        """What a session takes: "grpc://host:port"."""
        self.start()
        return library().rill_server_target(self._handle).decode()

    @property
    def server_def(self):
        """As TensorFlow's ServerDef; needs TensorFlow."""
        from tensorflow.core.protobuf import tensorflow_server_pb2
        from tensorflow.python.training import server_lib
        spec = server_lib.ClusterSpec({job: {int(i): a for i, a in t.items()} if isinstance(t, dict) else t for job, t in self._cluster.items()})
        return tensorflow_server_pb2.ServerDef(cluster=spec.as_cluster_def(), job_name=self._job, task_index=self._task, protocol="grpc")

    def join(self):
        """Waits until the task is told to end (`rill stop`), or for a ps, until its job is done. Ctrl-C ends the wait."""
        self.start()
        while not library().rill_server_wait(self._handle, 200):
            pass

    def done(self):
        """This task has done its part of the job; ps tasks end when all have."""
        if self._handle is not None:
            library().rill_server_done(self._handle)

    def stop(self):
        if self._handle is not None:
            handle, self._handle = self._handle, None
            library().rill_server_stop(handle)

    @staticmethod
    def create_local_server(config=None, start=True):
        """A server of its own, on any free port of this machine."""
        return Server({"local": ["localhost:0"]}, protocol="grpc", config=config, start=start)


def servers():
    """Those of this process that were started."""
    return list(_servers)
