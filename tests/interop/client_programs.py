"""Runs one client program on Rill and on TensorFlow and compares all it fetched: values, dtypes, shapes, and the types of its exceptions.

    @program()                         # a test; mode "v1" has TensorFlow 1's control flow and variables, "v2" TensorFlow 2's
    def test_sum(p):
        x = tf.placeholder(tf.float32)
        p.run(x + 1, {x: [1, 2]})      # a failure is an outcome too; the program goes on

    test_math = table({"abs": lambda: tf.abs([-1, 2])}, ...)     # a test for each row: what the function returns is fetched
"""
import functools

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

import training


class Failure:
    """An exception as an outcome."""

    def __init__(self, error):
        self.type = type(error)
        text = error.message if isinstance(error, tf.errors.OpError) else str(error)
        self.text = text.split("\nNode: ")[-1].split("\nOriginal stack trace")[0].strip()[:600]

    def __repr__(self):
        return "%s(%s)" % (self.type.__name__, self.text)


class Client:
    """A program's run on one target; `outcomes` is what it saw, in order."""

    def __init__(self, target, folder, **config):
        self.target = target
        self.folder = str(folder)
        self.config = {"operation_timeout_in_ms": 20000, **config}
        self.outcomes = []
        self._session = None

    @property
    def session(self):
        if self._session is None:
            self._session = training.session(self.target, tf.get_default_graph(), **self.config)
        return self._session

    def run(self, fetches, feeds=None, **more):
        """session.run, recorded; None where it failed."""
        return self.attempt(lambda: self.session.run(fetches, feeds, **more))

    def init(self):
        """Initializes variables and tables; not recorded."""
        self.session.run([tf.global_variables_initializer(), tf.local_variables_initializer(), tf.tables_initializer()])

    def attempt(self, function):
        """Records what the function returns or raises."""
        try:
            value = function()
        except Exception as error:  # noqa: BLE001 (whatever it is, it must be the same)
            self.record(Failure(error))
            return None
        self.record(value)
        return value

    def record(self, value):
        self.outcomes.append(value)

    def close(self):
        if self._session is not None:
            try:
                self._session.close()
            except tf.errors.AbortedError:
                pass  # the program reset the server


def short(value):
    text = repr(value)
    return text if len(text) < 1000 else text[:1000] + "..."


def same(got, expected, where, rtol):
    """Asserts that two outcomes are alike, down to dtypes and shapes."""
    differ = "%s: %s, TensorFlow: %s" % (where, short(got), short(expected))
    if isinstance(expected, Failure) or isinstance(got, Failure):
        assert isinstance(expected, Failure) and isinstance(got, Failure), differ
        assert got.type is expected.type, differ
        return
    assert type(got) is type(expected), differ
    if isinstance(expected, dict):
        assert got.keys() == expected.keys(), where
        for key in expected:
            same(got[key], expected[key], "%s[%r]" % (where, key), rtol)
    elif isinstance(expected, (list, tuple)):
        assert len(got) == len(expected), differ
        for i, (a, b) in enumerate(zip(got, expected)):
            same(a, b, "%s[%d]" % (where, i), rtol)
    elif isinstance(expected, (np.ndarray, np.generic)):
        assert got.dtype == expected.dtype and got.shape == expected.shape, differ
        if expected.dtype.kind in "fc" or "float" in expected.dtype.name:
            tolerance = {2: 2e-2, 1: 0.2}.get(expected.dtype.itemsize, rtol)
            wide = np.complex128 if expected.dtype.kind == "c" else np.float64
            np.testing.assert_allclose(got.astype(wide), expected.astype(wide), tolerance, tolerance * 0.1, err_msg=where)
        else:
            np.testing.assert_array_equal(got, expected, err_msg=where)
    elif isinstance(expected, float):
        np.testing.assert_allclose(got, expected, rtol, err_msg=where)
    else:
        assert got == expected, differ


def modes_of(mode):
    """Switches the client library between TensorFlow 1's and 2's control flow and variables."""
    (tf.enable_control_flow_v2 if mode == "v2" else tf.disable_control_flow_v2)()
    (tf.enable_resource_variables if mode == "v2" else tf.disable_resource_variables)()


def outcomes_of(build, target, folder, mode, config):
    folder.mkdir()
    modes_of(mode)
    try:
        with tf.Graph().as_default():
            tf.set_random_seed(1234)
            client = Client(target, folder, **config)
            try:
                build(client)
            finally:
                client.close()
        return client.outcomes
    finally:
        modes_of("v1")


def compare(build, rill, reference, tmp_path, mode="v1", rtol=1e-4, config=None):
    tf.Session.reset(rill)
    expected = outcomes_of(build, reference, tmp_path / "tensorflow", mode, config or {})
    got = outcomes_of(build, rill, tmp_path / "rill", mode, config or {})
    assert len(got) == len(expected) and expected, "%d outcomes, TensorFlow: %d" % (len(got), len(expected))
    differences = []
    for i, (a, b) in enumerate(zip(got, expected)):
        try:
            same(a, b, "outcome %d" % i, rtol)
        except AssertionError as difference:
            differences.append(str(difference))
    if differences:
        pytest.fail("\n".join(differences), pytrace=False)


def program(*modes, rtol=1e-4, server=False, **config):
    """Makes a test of a function of a Client. TensorFlow's part runs in this process, or on a server of its own."""
    def decorate(build):
        @pytest.mark.parametrize("mode", modes or ("v1",))
        def test(rill, request, tmp_path, mode):
            reference = request.getfixturevalue("reference") if server else ""
            compare(build, rill, reference, tmp_path, mode, rtol, config)

        test.__name__, test.__doc__ = build.__name__, build.__doc__
        return test

    return decorate


def table(rows, modes=("v1",), rtol=1e-4):
    """A test for each row of a dictionary of names and functions that return something to fetch."""
    def fetch(function, p):
        try:
            fetches = function()
        except Exception as error:  # noqa: BLE001 (the client library itself refused: nothing is asked of a server)
            pytest.fail("the row cannot be built: %r" % error)
        p.run(fetches)

    @pytest.mark.parametrize("mode", modes)
    @pytest.mark.parametrize("row", rows)
    def test(rill, tmp_path, row, mode):
        compare(functools.partial(fetch, rows[row]), rill, "", tmp_path, mode, rtol)

    return test
