#!/usr/bin/env python3
"""Wide & deep on made-up clicks: hashed and crossed words with one weight each, trained by Ftrl, beside embeddings under a small network,
trained by Adagrad. All tables are cut into two and live on the ps tasks; only the rows a batch needs travel.

    wide_deep.py --ps_hosts localhost:2222,localhost:2223 --worker_hosts localhost:2224 --steps 200
"""
import numpy as np
import tensorflow.compat.v1 as tf

import cluster_flags

COUNTRIES = [b"at", b"br", b"ca", b"de", b"fr", b"jp", b"nl", b"us"]


def batches(args):
    """Endless (queries, countries, ages, clicked): a query is some words with blanks between them."""
    random = np.random.RandomState(args.seed)
    words = np.array([b"word%d" % i for i in range(200)])
    liking = random.randn(200)
    while True:
        picked = [random.randint(200, size=random.randint(1, 6)) for _ in range(args.batch)]
        country = random.randint(len(COUNTRIES) + 1, size=args.batch)  # one of them is not in the table
        age = random.uniform(15, 80, args.batch)
        score = [liking[p].mean() for p in picked] + 0.2 * country - 0.03 * (age - 40)
        yield ([b" ".join(words[p]) for p in picked], [(COUNTRIES + [b"??"])[c] for c in country], age.astype(np.float32),
               (score + 0.3 * random.randn(args.batch) > 0.5).astype(np.float32))


def table_of(name, rows, width, initializer):
    """A table of which each ps task keeps a half."""
    return tf.get_variable(name, [rows, width], initializer=initializer, partitioner=tf.fixed_size_partitioner(2))


def wide_part(words, country_words, args):
    """A weight for each hashed word and one for each pair of word and country."""
    ids = tf.SparseTensor(words.indices, tf.string_to_hash_bucket_fast(words.values, args.buckets), words.dense_shape)
    pairs = tf.string_join([words.values, tf.gather(country_words, words.indices[:, 0])], "_x_")
    crossed = tf.SparseTensor(words.indices, tf.string_to_hash_bucket_strong(pairs, args.buckets, [17, 42]), words.dense_shape)
    with tf.variable_scope("wide"):
        parts = [tf.nn.embedding_lookup_sparse(table_of(name, args.buckets, 1, tf.zeros_initializer()), of, None, combiner="sum")
                 for name, of in (("words", ids), ("crossed", crossed))]
        return tf.add_n(parts) + tf.get_variable("bias", [1], initializer=tf.zeros_initializer())


def deep_part(words, country, age, args):
    """Embeddings of words (mean, each weighted by its place) and country, the age in buckets, two layers."""
    ids = tf.SparseTensor(words.indices, tf.string_to_hash_bucket_fast(words.values, args.buckets), words.dense_shape)
    weights = tf.SparseTensor(words.indices, 1.0 / (1.0 + tf.to_float(words.indices[:, 1])), words.dense_shape)
    normal = tf.truncated_normal_initializer(stddev=0.1)
    with tf.variable_scope("deep"):
        x = tf.concat([
            tf.nn.embedding_lookup_sparse(table_of("words", args.buckets, args.width, normal), ids, weights, combiner="mean"),
            tf.nn.embedding_lookup(table_of("countries", len(COUNTRIES) + 1, args.width, normal), country),
            tf.one_hot(tf.searchsorted([20.0, 30.0, 45.0, 60.0], age, side="right"), 5)], 1)
        for i, size in enumerate((32, 16, 1)):
            w = tf.get_variable("w%d" % i, [x.shape[1].value, size], initializer=tf.glorot_uniform_initializer())
            x = tf.matmul(x, w) + tf.get_variable("b%d" % i, [size], initializer=tf.zeros_initializer())
            x = tf.nn.relu(x) if size > 1 else x
        return x


def train(args):
    with tf.Graph().as_default():
        tf.set_random_seed(args.seed)
        with cluster_flags.device(args):
            queries, country_words = (tf.placeholder(tf.string, [None]) for _ in range(2))
            age, clicked = (tf.placeholder(tf.float32, [None]) for _ in range(2))
            words = tf.string_split(queries)
            with tf.device("/job:worker/task:%d" % args.task_index if args.worker_hosts else None):
                initial = tf.lookup.KeyValueTensorInitializer(COUNTRIES, np.arange(len(COUNTRIES), dtype=np.int64))
                country = tf.lookup.StaticHashTable(initial, len(COUNTRIES)).lookup(country_words)
            logits = tf.squeeze(wide_part(words, country_words, args) + deep_part(words, country, age, args), 1)
            loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=clicked, logits=logits))
            step = tf.train.get_or_create_global_step()
            update = tf.group(
                tf.train.FtrlOptimizer(0.2, l1_regularization_strength=0.001, l2_regularization_strength=0.001).minimize(
                    loss, var_list=tf.trainable_variables("wide")),
                tf.train.AdagradOptimizer(0.05).minimize(loss, step, tf.trainable_variables("deep")))
            auc, auc_update = tf.metrics.auc(clicked, tf.sigmoid(logits))
            init = [tf.global_variables_initializer(), tf.local_variables_initializer(), tf.tables_initializer()]
        with tf.Session(cluster_flags.target(args)) as session:
            session.run(init)
            for _, batch in zip(range(args.steps), batches(args)):
                value, _, _ = session.run([loss, update, auc_update], dict(zip((queries, country_words, age, clicked), batch)))
                yield "loss", value
            yield "area under the curve, all steps", session.run(auc)


def parser():
    p = cluster_flags.parser(__doc__, steps=200, batch=64)
    p.add_argument("--buckets", type=int, default=1000, help="rows of a hashed table")
    p.add_argument("--width", type=int, default=8, help="of an embedding")
    return p


if __name__ == "__main__":
    cluster_flags.main(train, parser().parse_args())
