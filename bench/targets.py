"""What Rill means to reach, by row: how many times faster than each peer it is, how much less CPU time it takes, and figures of its own.

A row's aims are a dictionary: a peer's name with the least ratio (None: the peer is there to compare, nothing is meant to be reached), "cpu" with the least ratio of CPU
times to TensorFlow's, "most" with the most that Rill's own figure may be, in the row's unit. What is not said of a peer is 1."""
import fnmatch

AIMS = [  # first that matches
    ("empty_*", {"tensorflow": 4, "cpu": 4}),
    ("barrier", {"tensorflow": 4, "cpu": 4}),
    ("pu??_4B", {"tensorflow": 4}),
    ("pu??_1KB", {"tensorflow": 4}),
    ("pu??_*", {"tensorflow": 2.5}),
    ("tcp_pu??_*", {"tcp": 0.8}),
    ("python_fetch_100MB", {"tensorflow": 3}),
    ("sync_cost_*", {"most": 10}),  # % over each worker on its own
    ("softmax_*", {"tensorflow": 4}),
    ("embedding_*", {"tensorflow": 3}),
    ("mlp_*", {"tensorflow": 1.8}),
    ("lstm_*", {"tensorflow": 1.5}),
    ("lenet_*", {"tensorflow": 1.35}),
    ("resnet20_*", {"tensorflow": 1.4}),
    ("local_softmax", {"tensorflow": 3}),
    ("local_embedding", {"tensorflow": 3}),
    ("scale_memory", {"most": 1000}),  # KB a connection
    ("scale_growth", {"most": 1.1}),
    ("scale*", {"tensorflow": 4}),
    ("gemm_*", {"onednn": 0.95}),
    ("conv_*", {"onednn": 0.95, "onednn_blocked": None}),
    ("executor_null_*", {"tensorflow": None, "most": 50}),  # ns a node
    ("size_growth", {"most": 1.25}),
    ("chain100000*_extend", {}),
    ("chain100000*", {"most": 1e6}),  # µs
    ("start", {"most": 0.3e6}),
    ("sync_start_all", {}),
    ("sync_start*", {"tensorflow": None, "most": 1e6}),  # TensorFlow's second worker may look at the right moment by chance
    ("peer_*", {"openmpi": None, "gloo": None}),
    ("all_reduce_*", {"tensorflow": None, "openmpi": None, "gloo": None}),
]


def aims(key):
    return next((a for pattern, a in AIMS if fnmatch.fnmatchcase(key, pattern)), {})


def target(key, peer):
    """The least ratio to a peer; None: none."""
    return aims(key).get(peer, 1)


def missed(key, row):
    """What a row does not reach: (peer or "cpu" or "most", figure, target)."""
    own = aims(key)
    found = [(peer, ratio["median"], target(key, peer)) for peer, ratio in row["ratios"].items()]
    found.append(("cpu", cpu_ratio(row), own.get("cpu")))
    short = [f for f in found if f[1] is not None and f[2] is not None and f[1] < f[2]]
    figure = row["costs"]["rill"]["median"]
    return short + ([("most", figure, own["most"])] if "most" in own and figure > own["most"] else [])


def cpu_ratio(row):
    """How many times Rill's CPU time TensorFlow takes; None when it was not measured."""
    cpu = row.get("cpu", {})
    return cpu["tensorflow"]["median"] / cpu["rill"]["median"] if "tensorflow" in cpu and cpu["rill"]["median"] > 0 else None
