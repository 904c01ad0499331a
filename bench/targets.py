"""How many times faster than each peer Rill means to be, by row."""
import fnmatch

TARGETS = [  # first that matches
    ("empty_*", {"tensorflow": 4}),
    ("barrier", {"tensorflow": 4}),
    ("pu??_4B", {"tensorflow": 4}),
    ("pu??_1KB", {"tensorflow": 4}),
    ("pu??_*", {"tensorflow": 2.5}),
    ("python_fetch_100MB", {"tensorflow": 3}),
    ("softmax_*", {"tensorflow": 4}),
    ("embedding_*", {"tensorflow": 3}),
    ("mlp_*", {"tensorflow": 1.8}),
    ("lstm_*", {"tensorflow": 1.5}),
    ("lenet_*", {"tensorflow": 1.35}),
    ("resnet20_*", {"tensorflow": 1.4}),
    ("local_softmax", {"tensorflow": 3}),
    ("local_embedding", {"tensorflow": 3}),
    ("scale*", {"tensorflow": 4}),
    ("gemm_*", {"onednn": 0.95}),
    ("conv_*", {"onednn": 0.95}),
]


def target(key, peer):
    for pattern, ratios in TARGETS:
        if fnmatch.fnmatchcase(key, pattern):
            return ratios.get(peer, 1)
    return 1
