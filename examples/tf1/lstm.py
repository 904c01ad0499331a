#!/usr/bin/env python3
"""A language model: characters in, an LSTM over them, the next character out. The text is drawn from a random automaton.

The recurrence runs in a while loop over TensorArrays (tf.nn.dynamic_rnn), or with --unrolled as one copy of the cell for every character; the
state is carried from batch to batch, and gradients are clipped by their global norm.

    lstm.py --ps_hosts localhost:2222 --worker_hosts localhost:2223 --steps 200
"""
import numpy as np
import tensorflow.compat.v1 as tf

import cluster_flags


class LstmCell:
    """What tf.nn.dynamic_rnn asks of a cell."""

    def __init__(self, size):
        self.state_size = (size, size)
        self.output_size = size

    def zero_state(self, batch, dtype):
        return tuple(tf.zeros([batch, n], dtype) for n in self.state_size)

    def __call__(self, inputs, state, scope=None):
        c, h = state
        with tf.variable_scope(scope or "lstm"):
            x = tf.concat([inputs, h], 1)
            w = tf.get_variable("w", [x.shape[1].value, 4 * self.output_size], initializer=tf.glorot_uniform_initializer())
            b = tf.get_variable("b", [4 * self.output_size], initializer=tf.zeros_initializer())
            i, j, f, o = tf.split(tf.nn.bias_add(tf.matmul(x, w), b), 4, axis=1)
            c = c * tf.sigmoid(f + 1.0) + tf.sigmoid(i) * tf.tanh(j)
            h = tf.tanh(c) * tf.sigmoid(o)
        return h, (c, h)


def batches(args):
    """Endless [batch, length + 1] pieces of text, each row going on where it ended."""
    random = np.random.RandomState(args.seed)
    following = random.randint(args.letters, size=(args.letters, 3))
    last = random.randint(args.letters, size=args.batch)
    while True:
        rows = [last]
        for _ in range(args.length):
            rows.append(following[rows[-1], random.choice(3, size=args.batch, p=[0.7, 0.2, 0.1])])
        last = rows[-1]
        yield np.stack(rows, 1).astype(np.int32)


def outputs_of(embedded, cell, state, lengths, args):
    if args.unrolled:
        return tf.nn.static_rnn(cell, tf.unstack(embedded, args.length, 1), state, scope="rnn")
    outputs, state = tf.nn.dynamic_rnn(cell, embedded, lengths, state, scope="rnn", swap_memory=True)
    return tf.unstack(outputs, args.length, 1), state


def train(args):
    with tf.Graph().as_default():
        tf.set_random_seed(args.seed)
        with cluster_flags.device(args):
            text = tf.placeholder(tf.int32, [args.batch, args.length + 1])
            lengths = tf.fill([args.batch], args.length)
            cell = LstmCell(args.size)
            start = tuple(tf.placeholder(tf.float32, [args.batch, n]) for n in cell.state_size)
            table = tf.get_variable("embedding", [args.letters, args.size], initializer=tf.random_uniform_initializer(-0.1, 0.1))
            embedded = tf.nn.dropout(tf.nn.embedding_lookup(table, text[:, :-1]), rate=0.1)
            outputs, end = outputs_of(embedded, cell, start, lengths, args)
            w = tf.get_variable("w", [args.size, args.letters], initializer=tf.glorot_uniform_initializer())
            b = tf.get_variable("b", [args.letters], initializer=tf.zeros_initializer())
            logits = tf.nn.xw_plus_b(tf.reshape(tf.stack(outputs, 1), [-1, args.size]), w, b)
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=tf.reshape(text[:, 1:], [-1]), logits=logits)
            loss = tf.reduce_mean(losses)
            step = tf.train.get_or_create_global_step()
            rate = tf.train.exponential_decay(1.0, step, 100, 0.9, staircase=True)
            variables = tf.trainable_variables()
            gradients, norm = tf.clip_by_global_norm(tf.gradients(loss, variables), args.clip)
            update = tf.train.GradientDescentOptimizer(rate).apply_gradients(zip(gradients, variables), step)
            init = tf.global_variables_initializer()
        with tf.Session(cluster_flags.target(args)) as session:
            session.run(init)
            state = [np.zeros([args.batch, n], np.float32) for n in cell.state_size]
            data = batches(args)
            for _ in range(args.steps):
                value, state, _, length = session.run([loss, end, update, norm], {text: next(data), **dict(zip(start, state))})
                assert np.isfinite(length)
                yield "loss", value


def parser():
    p = cluster_flags.parser(__doc__, steps=200, batch=20)
    p.add_argument("--letters", type=int, default=30, help="size of the alphabet")
    p.add_argument("--length", type=int, default=25, help="characters of a batch")
    p.add_argument("--size", type=int, default=64, help="of the state")
    p.add_argument("--clip", type=float, default=1.0, help="largest global norm of the gradients")
    p.add_argument("--unrolled", action="store_true", help="a copy of the cell for every character instead of a loop")
    return p


if __name__ == "__main__":
    cluster_flags.main(train, parser().parse_args())
