"""Makes the TFRecord files that queue_input.py and data_input.py read: points with a label, as tf.train.Example."""
import os

import numpy as np
import tensorflow.compat.v1 as tf

FEATURES = 8


def example(number, point, label):
    features = {
        "number": tf.train.Feature(int64_list=tf.train.Int64List(value=[number])),
        "point": tf.train.Feature(float_list=tf.train.FloatList(value=point)),
        "label": tf.train.Feature(bytes_list=tf.train.BytesList(value=[b"yes" if label else b"no"])),
    }
    return tf.train.Example(features=tf.train.Features(feature=features)).SerializeToString()


def write(folder, files=4, records=50, seed=1):
    """Returns the paths; the numbers of the records run through all files."""
    random = np.random.RandomState(seed)
    normal = random.randn(FEATURES)
    paths = []
    for i in range(files):
        paths.append(os.path.join(folder, "points-%02d.tfrecord" % i))
        with tf.io.TFRecordWriter(paths[-1]) as out:
            for j in range(records):
                point = random.randn(FEATURES)
                out.write(example(i * records + j, point, point @ normal > 0))
    return paths


def parse(record):
    """One serialized record to (number, point, label as 0.0 or 1.0), in the graph."""
    parsed = tf.parse_single_example(record, {
        "number": tf.FixedLenFeature([], tf.int64),
        "point": tf.FixedLenFeature([FEATURES], tf.float32),
        "label": tf.FixedLenFeature([], tf.string),
    })
    return parsed["number"], parsed["point"], tf.to_float(tf.equal(parsed["label"], "yes"))


def loss_of(points, labels):
    """Logistic regression."""
    w = tf.get_variable("w", [FEATURES, 1], initializer=tf.glorot_uniform_initializer())
    b = tf.get_variable("b", [1], initializer=tf.zeros_initializer())
    logits = tf.squeeze(tf.nn.xw_plus_b(points, w, b), 1)
    return tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=labels, logits=logits))
