"""Rill for Python: servers of a TensorFlow cluster in this process, and `rill run` for old scripts.

    server = rill.Server({"ps": ["localhost:2222"], "worker": ["localhost:2223"]}, job_name="worker", task_index=0)
    with tf.compat.v1.Session(server.target) as session: ...

Needs no TensorFlow by itself, and no compiler: the library is loaded with ctypes.
"""
from ._library import RillError, library_path, version
from .server import Server

__all__ = ["RillError", "Server", "library_path", "version"]
