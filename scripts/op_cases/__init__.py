"""The cases of every op, by family; importing the package fills table.ROWS and table.PROGRAMS."""
import importlib

from . import table

NAMES = ["elementwise", "reduce", "array", "gather", "nn", "rnn", "old", "linalg", "optimizers", "strings", "sparse", "csr", "image", "random", "quantize", "onednn", "variables", "lists", "queues", "lookup", "control", "files", "datasets", "ragged", "proto", "audio", "learning", "large"]


def load():
    for name in NAMES:
        table.FAMILIES.append(name)
        importlib.import_module("." + name, __package__)
