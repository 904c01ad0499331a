"""Runs a TensorFlow 1-style script as it is: `import tensorflow as tf` gives the version 1 interface, and tf.train.Server is Rill's.

    python -m rill.run script.py ARGUMENTS
"""
import functools
import importlib.util
import inspect
import os
import runpy
import sys
import types

CHIEF_WAIT_S = 0.2  # between two looks


def _has_old_keras():
    return importlib.util.find_spec("tf_keras") is not None


class _NoLayers:
    """In the place of tf.layers, which TensorFlow 2.16 and later have only together with the Keras of before."""

    def __getattr__(self, name):
        raise AttributeError("tf.layers.%s needs the package tf_keras beside this TensorFlow: pip install tf_keras; rill run finds it by itself" % name)


def _version_1(real):
    """A module `tensorflow` with the interface of version 1; everything beneath it is the installed one."""
    v1 = real.compat.v1
    module = types.ModuleType("tensorflow", v1.__doc__)
    for name, value in vars(v1).items():
        if not name.startswith("__"):
            setattr(module, name, value)
    for name in ("__path__", "__file__", "__spec__", "__loader__", "__version__"):
        setattr(module, name, getattr(real, name))
    module.compat, module.python, module.core = real.compat, sys.modules["tensorflow.python"], sys.modules["tensorflow.core"]

    if not _has_old_keras() and tuple(map(int, real.__version__.split(".")[:2])) >= (2, 16):
        module.layers = _NoLayers()

    def missing(name):
        if name == "contrib":
            raise AttributeError("tf.contrib was removed from TensorFlow in version 2; the script needs a replacement for what it uses of it")
        try:
            return getattr(v1, name)
        except AttributeError:
            return getattr(real, name)

    module.__getattr__ = missing
    return module


def _wait_shortly(holder):
    """Workers look often whether the chief is ready: with TensorFlow's 30 s the second worker begins half a minute late. What a script asks for stays."""
    original = holder.__init__
    signature = inspect.signature(original)

    @functools.wraps(original)
    def init(*args, **kwargs):
        if "recovery_wait_secs" not in signature.bind_partial(*args, **kwargs).arguments:
            kwargs["recovery_wait_secs"] = CHIEF_WAIT_S
        original(*args, **kwargs)

    holder.__init__ = init


def _give_way():
    """Old scripts define flags such as log_dir, which absl's logging has taken since: theirs count."""
    from absl import flags
    for name in flags.FLAGS:
        flags.FLAGS[name].allow_override = True


def install():
    """Makes `import tensorflow` mean version 1 with Rill's servers, in this process. Returns the module."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    if _has_old_keras():
        os.environ.setdefault("TF_USE_LEGACY_KERAS", "1")
    try:
        import tensorflow as real
    except ImportError as error:
        sys.exit("rill run: the script needs TensorFlow as its graph builder, which %s cannot import: %s" % (sys.executable, error))
    import tensorflow.core  # noqa: F401
    from tensorflow.python.training import server_lib

    from .server import Server
    real.compat.v1.disable_v2_behavior()
    for holder in (server_lib, real.compat.v1.train, real.compat.v1.distribute):
        if hasattr(holder, "Server"):
            holder.Server = Server
    _wait_shortly(real.compat.v1.train.SessionManager)
    _wait_shortly(real.compat.v1.train.Supervisor)
    _give_way()
    module = _version_1(real)
    sys.modules["tensorflow"] = module
    return module


def main(arguments):
    if not arguments or arguments[0] in ("-h", "--help"):
        print(__doc__.strip())
        return 0 if arguments else 2
    script = arguments[0]
    if not os.path.exists(script):
        print("rill run: %s does not exist" % script, file=sys.stderr)
        return 2
    from . import server
    install()
    sys.argv = arguments
    sys.path[0] = os.path.dirname(os.path.abspath(script))
    code = 0
    try:
        runpy.run_path(script, run_name="__main__")
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
        if isinstance(end.code, str):
            print(end.code, file=sys.stderr)
    for one in server.servers():
        if code == 0:
            one.done()
        one.stop()
    return code


if __name__ == "__main__":
    code = main(sys.argv[1:])
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)  # TensorFlow leaves threads behind that would wait for their servers
