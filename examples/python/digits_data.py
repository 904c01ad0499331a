"""The handwritten digits of data/digits.csv.gz: 1,797 images of 8x8 pixels; also as TFRecord files."""
import gzip
import os
import pathlib

import numpy as np

PATH = pathlib.Path(__file__).resolve().parents[2] / "data" / "digits.csv.gz"


class Digits:
    """Shuffled once: 1,497 to train, 300 held out."""

    def __init__(self, seed=0):
        with gzip.open(PATH, "rt") as f:
            table = np.loadtxt(f, delimiter=",", dtype=np.float32)
        table = table[np.random.RandomState(0).permutation(len(table))]
        self.images, self.labels = table[:, :64] / 16, table[:, 64].astype(np.int32)
        self.random = np.random.RandomState(seed)

    def batch(self, size):
        rows = self.random.randint(0, 1497, size)
        return self.images[rows], self.labels[rows]

    @property
    def held_out(self):
        return self.images[1497:], self.labels[1497:]


def record_files(folder):
    """Names of train-*.tfrecords and of test.tfrecords in the folder: image_raw (64 bytes) and label (10 doubles)."""
    return [os.path.join(folder, "train-%d.tfrecords" % i) for i in range(4)], os.path.join(folder, "test.tfrecords")
