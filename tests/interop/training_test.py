"""Models trained on Rill clusters: losses equal to TensorFlow's for the same graph and the same initial values."""
import numpy as np
import pytest

import training

SHAPES = pytest.mark.parametrize("ps,workers", [(1, 1), (2, 2)], ids=["1ps1w", "2ps2w"])
MODELS = pytest.mark.parametrize("model", ["softmax", "mlp", "cnn"])
ALL_MODELS = pytest.mark.parametrize("model", ["softmax", "mlp", "cnn", "embedding"])
KINDS = pytest.mark.parametrize("kind", ["ref", "resource"])
SYNC = pytest.mark.parametrize("sync", [False, True], ids=["async", "sync"])
OPTIMIZERS = ["adam", "adagrad", "momentum", "nesterov", "rmsprop", "centered_rmsprop"]


def check(got, want):
    assert len(got) == len(want) >= 20
    assert want[-1] < want[0], "the reference does not learn"
    np.testing.assert_allclose(got, want, rtol=1e-4)


@SHAPES
@MODELS
@KINDS
@SYNC
def test_in_graph(start_cluster, reference, model, kind, ps, workers, sync):
    cluster = start_cluster({"ps": ps, "worker": workers})
    got = training.in_graph_losses(cluster.target(), model, kind, ps, workers, sync)
    check(got, training.in_graph_losses(reference, model, kind, ps, workers, sync, place=False))


@SHAPES
@ALL_MODELS
@KINDS
def test_between_graph_async(start_cluster, reference, model, kind, ps, workers):
    cluster = start_cluster({"ps": ps, "worker": workers})
    targets = [cluster.target("worker", w) for w in range(workers)]
    got = training.between_graph_async_losses(targets, model, kind, ps)
    check(got, training.between_graph_async_losses([reference] * workers, model, kind, ps, place=False))


@SHAPES
@ALL_MODELS
@KINDS
def test_between_graph_sync_replicas(start_cluster, reference, model, kind, ps, workers):
    cluster = start_cluster({"ps": ps, "worker": workers})
    targets = [cluster.target("worker", w) for w in range(workers)]
    got = training.between_graph_sync_losses(targets, model, kind, ps)
    check(got, training.between_graph_sync_losses([reference] * workers, model, kind, ps, place=False))


@KINDS
@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_optimizer(start_cluster, reference, optimizer, kind):
    cluster = start_cluster({"ps": 2, "worker": 2})
    targets = [cluster.target("worker", w) for w in range(2)]
    got = training.between_graph_async_losses(targets, "mlp", kind, 2, optimizer=optimizer)
    check(got, training.between_graph_async_losses([reference] * 2, "mlp", kind, 2, place=False, optimizer=optimizer))
