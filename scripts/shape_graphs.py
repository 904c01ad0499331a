#!/usr/bin/env python3
"""Makes graphs in which shapes are computed: small integers, shapes and parts of them, joined at random, feeding ops that make shapes of them.

usage: shape_graphs.py DIR [--count N] [--seed N]
Writes DIR/constants_NN.pb; record_shapes.py --graphs records what TensorFlow infers of them."""
import argparse
import os
import random

os.environ.update(TF_CPP_MIN_LOG_LEVEL="3", CUDA_VISIBLE_DEVICES="")

import tensorflow.compat.v1 as tf

SIZES = (1, 2, 3, 4, 6)


class Maker:
    """Grows one graph: lists of scalars, vectors and data tensors to choose from."""

    def __init__(self, rng):
        self.rng = rng
        self.data = [tf.placeholder(tf.float32, [rng.choice((None, 1, 2, 3, 4)) for _ in range(rng.randrange(1, 4))]) for _ in range(3)]
        self.vectors = [tf.constant([rng.choice(SIZES) for _ in range(rng.randrange(1, 4))]) for _ in range(2)] + [tf.raw_ops.Shape(input=x) for x in self.data]
        self.scalars = [tf.constant(rng.choice(SIZES)) for _ in range(3)] + [tf.raw_ops.Rank(input=self.data[0]), tf.raw_ops.Size(input=self.data[1])]

    def scalar(self):
        rng, s, v = self.rng, self.rng.choice(self.scalars), self.rng.choice(self.vectors)
        t = rng.choice(self.scalars)
        at = rng.choice((0, 0, 1, -1))
        return rng.choice((
            lambda: tf.raw_ops.StridedSlice(input=v, begin=[at], end=[at + 1], strides=[1], shrink_axis_mask=1),
            lambda: rng.choice((tf.raw_ops.AddV2, tf.raw_ops.Mul, tf.raw_ops.Sub, tf.raw_ops.Maximum, tf.raw_ops.Minimum, tf.raw_ops.FloorDiv))(x=s, y=t),
            lambda: rng.choice((tf.raw_ops.Prod, tf.raw_ops.Sum, tf.raw_ops.Max, tf.raw_ops.Min))(input=v, axis=[0], keep_dims=False),
            lambda: tf.raw_ops.SelectV2(condition=tf.raw_ops.Less(x=s, y=t), t=s, e=t),
            lambda: tf.raw_ops.Cast(x=tf.raw_ops.Cast(x=s, DstT=tf.int64), DstT=tf.int32),
            lambda: tf.raw_ops.GatherV2(params=v, indices=0, axis=0),
        ))()

    def vector(self):
        rng, v, w = self.rng, self.rng.choice(self.vectors), self.rng.choice(self.vectors)
        some = [rng.choice(self.scalars) for _ in range(rng.randrange(1, 4))]
        return rng.choice((
            lambda: tf.raw_ops.Pack(values=some, axis=0),
            lambda: tf.raw_ops.ConcatV2(values=[v, w], axis=0),
            lambda: tf.raw_ops.StridedSlice(input=v, begin=[rng.choice((0, 1))], end=[rng.choice((1, 2, 9))], strides=[1],
                                            begin_mask=rng.choice((0, 1)), end_mask=rng.choice((0, 1))),
            lambda: tf.raw_ops.StridedSlice(input=v, begin=[-1], end=[0], strides=[-1], end_mask=1),
            lambda: tf.raw_ops.Slice(input=v, begin=[0], size=[rng.choice((1, -1))]),
            lambda: rng.choice((tf.raw_ops.AddV2, tf.raw_ops.Mul, tf.raw_ops.FloorMod))(x=v, y=rng.choice(self.scalars)),
            lambda: tf.raw_ops.Fill(dims=[2], value=rng.choice(self.scalars)),
            lambda: tf.raw_ops.ExpandDims(input=rng.choice(self.scalars), axis=0),
            lambda: tf.raw_ops.Range(start=0, limit=rng.choice(self.scalars), delta=1),
            lambda: tf.raw_ops.Shape(input=rng.choice(self.data)),
            lambda: tf.raw_ops.BroadcastArgs(s0=v, s1=w),
        ))()

    def tensor(self):
        rng, x, v = self.rng, self.rng.choice(self.data), self.rng.choice(self.vectors)
        return rng.choice((
            lambda: tf.raw_ops.Fill(dims=v, value=1.0),
            lambda: tf.raw_ops.Reshape(tensor=x, shape=v),
            lambda: tf.raw_ops.BroadcastTo(input=x, shape=v),
            lambda: tf.raw_ops.Tile(input=x, multiples=v),
            lambda: tf.raw_ops.RandomUniform(shape=v, dtype=tf.float32),
            lambda: tf.raw_ops.Sum(input=x, axis=v, keep_dims=False),
            lambda: tf.raw_ops.Slice(input=x, begin=tf.raw_ops.ZerosLike(x=v), size=v),
            lambda: tf.raw_ops.ConcatV2(values=[x, rng.choice(self.data)], axis=rng.choice(self.scalars)),
            lambda: tf.raw_ops.ExpandDims(input=x, axis=rng.choice(self.scalars)),
            lambda: tf.raw_ops.Transpose(x=x, perm=v),
        ))()

    def grow(self, steps):
        for _ in range(steps):
            kind, into = self.rng.choice(((self.scalar, self.scalars), (self.vector, self.vectors), (self.vector, self.vectors), (self.tensor, self.data)))
            try:
                made = kind()
            except (ValueError, TypeError):  # TensorFlow refuses the shapes
                continue
            into.append(made)


def make(seed):
    with tf.Graph().as_default() as g:
        Maker(random.Random(seed)).grow(60)
        return g.as_graph_def()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("dir")
    parser.add_argument("--count", type=int, default=30)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    tf.disable_eager_execution()
    os.makedirs(args.dir, exist_ok=True)
    for i in range(args.count):
        with open(os.path.join(args.dir, "constants_%02d.pb" % i), "wb") as f:
            f.write(make("%d %d" % (args.seed, i)).SerializeToString())


if __name__ == "__main__":
    main()
