#!/usr/bin/env python3
"""A small transformer that learns to write sorted sequences: attention with einsum, layer normalisation, gelu, Adam with a warm-up; then it
writes one with top-k decoding, a letter at a time in a while loop.

    transformer.py --ps_hosts localhost:2222 --worker_hosts localhost:2223 --steps 300
"""
import numpy as np
import tensorflow.compat.v1 as tf

import cluster_flags


def batches(args):
    """Endless [batch, 2 n]: n letters, then the same letters sorted."""
    random = np.random.RandomState(args.seed)
    while True:
        letters = random.randint(1, args.letters, size=(args.batch, args.length // 2))
        yield np.concatenate([letters, np.sort(letters, 1)], 1).astype(np.int32)


def weights(name, *shape):
    return tf.get_variable(name, shape, initializer=tf.glorot_normal_initializer())


def layer_norm(x, name):
    with tf.variable_scope(name):
        size = [x.shape[-1].value]
        mean, variance = tf.nn.moments(x, [-1], keep_dims=True)
        gamma = tf.get_variable("gamma", size, initializer=tf.ones_initializer())
        return (x - mean) * tf.rsqrt(variance + 1e-6) * gamma + tf.get_variable("beta", size, initializer=tf.zeros_initializer())


def gelu(x):
    return 0.5 * x * (1.0 + tf.erf(x / np.float32(np.sqrt(2.0))))


def attention(x, heads):
    """Every place looks at itself and at those before it."""
    size = x.shape[-1].value
    q, k, v = (tf.einsum("btd,dhe->bhte", x, weights(n, size, heads, size // heads)) for n in ("query", "key", "value"))
    scores = tf.matmul(q, k, transpose_b=True) / np.float32(np.sqrt(size // heads))
    t = tf.shape(x)[1]
    visible = tf.linalg.band_part(tf.ones([t, t]), -1, 0)
    scores = tf.nn.softmax(scores - 1e9 * (1.0 - visible))
    return tf.einsum("bhte,hed->btd", tf.matmul(scores, v), weights("out", heads, size // heads, size))


def logits_of(text, args):
    """[batch, length] letters to [batch, length, letters] scores of the next letter."""
    with tf.variable_scope("model", reuse=tf.AUTO_REUSE):
        table = tf.get_variable("letters", [args.letters, args.size], initializer=tf.random_normal_initializer(stddev=0.1))
        places = tf.get_variable("places", [args.length, args.size], initializer=tf.random_normal_initializer(stddev=0.1))
        x = tf.gather(table, text) + places[:tf.shape(text)[1]]
        for i in range(args.layers):
            with tf.variable_scope("layer%d" % i):
                x += attention(layer_norm(x, "norm1"), args.heads)
                h = gelu(tf.tensordot(layer_norm(x, "norm2"), weights("up", args.size, 4 * args.size), 1))
                x += tf.tensordot(h, weights("down", 4 * args.size, args.size), 1)
        return tf.einsum("btd,vd->btv", layer_norm(x, "last"), table)


def decode(start, args, k=3):
    """Adds letters until the length is reached, each drawn from the k likeliest by their scores and a fixed noise."""
    def body(text):
        values, ids = tf.nn.top_k(logits_of(text, args)[:, -1], k)
        noise = tf.random.stateless_uniform(tf.shape(values), [args.seed, 7])
        best = tf.argmax(values + 0.1 * noise, 1, output_type=tf.int32)
        return tf.concat([text, tf.batch_gather(ids, best[:, None])], 1)

    return tf.while_loop(lambda text: tf.shape(text)[1] < args.length, body, [start],
                         shape_invariants=[tf.TensorShape([args.batch, None])], back_prop=False)


def train(args):
    with tf.Graph().as_default():
        tf.set_random_seed(args.seed)
        with cluster_flags.device(args):
            text = tf.placeholder(tf.int32, [args.batch, args.length])
            half = args.length // 2
            logits = logits_of(text[:, :-1], args)[:, half - 1:]
            smooth = 0.9 * tf.one_hot(text[:, half:], args.letters) + 0.1 / args.letters
            loss = tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits_v2(labels=smooth, logits=logits))
            step = tf.train.get_or_create_global_step()
            at = tf.to_float(step + 1)
            rate = args.rate * tf.minimum(at / args.warm_up, tf.sqrt(args.warm_up / at))
            update = tf.train.AdamOptimizer(rate, beta2=0.98).minimize(loss, step)
            written = decode(text[:, :half], args)
            init = tf.global_variables_initializer()
        with tf.Session(cluster_flags.target(args)) as session:
            session.run(init)
            data = batches(args)
            for _ in range(args.steps):
                yield "loss", session.run([loss, update], {text: next(data)})[0]
            lines = next(data)
            yield "letters written as they should be", np.mean(session.run(written, {text: lines}) == lines)


def parser():
    p = cluster_flags.parser(__doc__, steps=300, batch=32)
    p.add_argument("--letters", type=int, default=20, help="size of the alphabet")
    p.add_argument("--length", type=int, default=16, help="of a sequence and its sorted copy together")
    p.add_argument("--size", type=int, default=64)
    p.add_argument("--heads", type=int, default=4)
    p.add_argument("--layers", type=int, default=2)
    p.add_argument("--rate", type=float, default=0.003, help="largest learning rate")
    p.add_argument("--warm_up", type=float, default=50, help="steps until the learning rate is at its largest")
    return p


if __name__ == "__main__":
    cluster_flags.main(train, parser().parse_args())
