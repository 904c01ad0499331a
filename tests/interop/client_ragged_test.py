"""Ragged tensors in the graphs of clients: conversions, slices, reductions, loops and gradients."""
import numpy as np
import tensorflow as tf2
import tensorflow.compat.v1 as tf

from client_programs import program, table


def ragged():
    return tf.ragged.constant([[3, 1, 4], [], [1, 5], [9]])


def deep():
    return tf.ragged.constant([[[1.0, 2.0], [3.0]], [], [[4.0], [], [5.0, 6.0, 7.0]]])


def parts(r):
    """What a ragged tensor is made of."""
    return [r.flat_values, list(r.nested_row_splits)]


ROWS = {
    "constant": lambda: [parts(ragged()), parts(deep())],
    "to_tensor": lambda: [ragged().to_tensor(), ragged().to_tensor(-1), ragged().to_tensor(shape=[None, 2]), ragged().to_tensor(shape=[6, 5]), deep().to_tensor(), deep().to_tensor(0.5, shape=[2, 3, 1])],
    "to_tensor_wide": lambda: tf.RaggedTensor.from_row_splits(np.arange(12.0).reshape(6, 2), [0, 2, 2, 6]).to_tensor([7.0, 8.0]),
    "to_tensor_rowids": lambda: tf.RaggedTensor.from_value_rowids([1, 2, 3, 4], [0, 0, 2, 3], nrows=6).to_tensor(),
    "to_tensor_strings": lambda: tf.ragged.constant([["a", "bc"], ["d"]]).to_tensor("?"),
    "to_sparse": lambda: [ragged().to_sparse(), deep().to_sparse(), tf.RaggedTensor.from_row_splits(np.arange(12).reshape(6, 2), [0, 2, 2, 6]).to_sparse()],
    "from": lambda: [parts(tf.RaggedTensor.from_tensor([[1, 2, 0], [3, 0, 0]], padding=0)), parts(tf.RaggedTensor.from_sparse(tf.SparseTensor([[0, 0], [2, 0]], [1, 2], [4, 3]))), parts(tf.RaggedTensor.from_row_lengths([1, 2, 3], [2, 0, 1])), parts(tf.RaggedTensor.from_tensor([[1, 2, 3]], lengths=[2]))],
    "bad_splits": lambda: tf.RaggedTensor.from_row_splits([1, 2, 3], [0, 2, 1, 3]).to_tensor(),
    "gather": lambda: [parts(tf.gather(ragged(), [2, 0, 2])), parts(tf.gather(deep(), [[2], [0]])), tf.gather(ragged(), 0), parts(tf.gather(deep(), 2))],
    "gather_error": lambda: parts(tf.gather(ragged(), [7])),
    "gather_nd": lambda: [tf.gather_nd(ragged(), [[0, 1], [3, 0]]), parts(tf.gather_nd(deep(), [[0], [2]]))],
    "range": lambda: [parts(tf.ragged.range([3, 0, 5])), parts(tf.ragged.range([0, 5], [10, -5], [3, -2])), parts(tf.ragged.range([0.0, 1.0], 2.0, 0.3)), parts(tf.ragged.range(tf.constant([1, 2], tf.int64)))],
    "range_error": lambda: parts(tf.ragged.range([3], [5], [0])),
    "slices": lambda: [parts(ragged()[1:]), parts(ragged()[:, :2]), parts(ragged()[:, -1:]), ragged()[0], parts(deep()[2]), parts(deep()[:, 1:]), deep()[0, 1], parts(ragged()[::2])],
    "reductions": lambda: [f(ragged(), axis=a) for f in (tf.reduce_sum, tf.reduce_max, tf.reduce_min, tf.reduce_prod) for a in (0, 1)] + [tf.reduce_mean(deep(), axis=2).flat_values, tf.reduce_sum(deep()), tf.reduce_any(ragged() > 4, 1)],
    "maths": lambda: [parts(ragged() * 2 + ragged()), parts(ragged() + [[10], [20], [30], [40]]), parts(tf.abs(-deep())), parts(ragged() > 2)],
    "concat": lambda: [parts(tf.concat([ragged(), ragged()], 0)), parts(tf.concat([ragged(), ragged()], 1)), parts(tf.stack([ragged(), ragged()], 0)), parts(tf.stack([ragged(), ragged()], 1))],
    "shapes": lambda: [ragged().row_lengths(), ragged().bounding_shape(), deep().row_lengths(2).flat_values, ragged().nrows(), ragged().value_rowids(), tf.size(ragged()), ragged().row_starts()],
    "mask": lambda: [parts(tf.ragged.boolean_mask([[1, 2, 3], [4, 5, 6]], [[True, False, True], [False, False, False]])), parts(tf.ragged.boolean_mask(ragged(), ragged() > 2))],
    "map": lambda: [tf.map_fn(tf.reduce_sum, ragged(), dtype=tf.int32), tf.map_fn(lambda x: x[:1], ragged(), fn_output_signature=tf.RaggedTensorSpec([None], tf.int32)).flat_values],
    "map_deep": lambda: tf.map_fn(lambda x: tf.reduce_sum(x.flat_values), deep(), dtype=tf.float32),
    "map_flat": lambda: parts(tf.ragged.map_flat_values(tf.sqrt, deep())),
    "tile": lambda: [parts(tf.tile(ragged(), [2, 1])), parts(tf.tile(ragged(), [1, 2])), parts(tf.expand_dims(ragged(), 1)), parts(tf.expand_dims(ragged(), 0))],
    "where": lambda: [tf.where(ragged() > 2), parts(tf.where(ragged() > 2, ragged(), -ragged()))],
    "reverse": lambda: [parts(tf.reverse(ragged(), [1])), parts(tf.reverse(ragged(), [0]))],
    "splits": lambda: [tf.ragged.row_splits_to_segment_ids([0, 3, 3, 5]), tf.ragged.segment_ids_to_row_splits([0, 0, 2], 4)],
    "batch": lambda: [parts(tf.RaggedTensor.from_uniform_row_length([1, 2, 3, 4], 2)), tf.RaggedTensor.from_uniform_row_length([1, 2, 3, 4], 2).to_tensor()],
    "gradients": lambda: (lambda v: tf.gradients(tf.RaggedTensor.from_row_splits(v, [0, 2, 2, 3]).to_tensor() * 3.0, v))(tf.constant([1.0, 2.0, 3.0])),
    "gradients_map": lambda: (lambda v: tf.gradients(tf.map_fn(lambda r: tf.reduce_sum(r * r), tf.RaggedTensor.from_row_splits(v, [0, 2, 2, 3]), dtype=tf.float32), v))(tf.constant([1.0, 2.0, 3.0])),
    "strings": lambda: [parts(tf2.strings.split(["a b", "c"])), tf.strings.reduce_join(tf.ragged.constant([["a", "b"], []]), axis=1)],
    "embedding": lambda: parts(tf.nn.embedding_lookup(np.arange(20.0).reshape(10, 2), ragged())),
}
test_ragged = table(ROWS, modes=("v1", "v2"))


@program("v1", "v2")
def test_ragged_placeholders_and_loops(p):
    x = tf.ragged.placeholder(tf.float32, 1, [])
    value = tf.ragged.constant_value([[1.0, 2.0], [], [3.0]], dtype=np.float32)
    p.run([tf.reduce_sum(x, 1), x.to_tensor()], {x: value})
    total = tf.while_loop(lambda i, s: i < x.nrows(), lambda i, s: (i + 1, s + tf.reduce_sum(x[i])), [tf.constant(0, tf.int64), 0.0])
    p.run(total, {x: value})
    y = tf.cond(x.nrows() > 2, lambda: x * 2.0, lambda: x)
    p.run(y.to_tensor(), {x: value})


@program()
def test_variants_of_ragged_tensors(p):
    r = tf.ragged.constant([[[1, 2], [3]], [], [[4]]])
    raw = tf.raw_ops
    batched = raw.RaggedTensorToVariant(rt_nested_splits=r.nested_row_splits, rt_dense_values=r.flat_values, batched_input=True)
    whole = raw.RaggedTensorToVariant(rt_nested_splits=r.nested_row_splits, rt_dense_values=r.flat_values, batched_input=False)
    p.run(tf.shape(batched))
    p.run(raw.RaggedTensorFromVariant(encoded_ragged=batched, input_ragged_rank=1, output_ragged_rank=2, Tvalues=tf.int32))
    p.run(raw.RaggedTensorFromVariant(encoded_ragged=batched[0], input_ragged_rank=1, output_ragged_rank=1, Tvalues=tf.int32))
    p.run(raw.RaggedTensorFromVariant(encoded_ragged=whole, input_ragged_rank=2, output_ragged_rank=2, Tvalues=tf.int32))
    p.run(raw.RaggedTensorFromVariant(encoded_ragged=whole, input_ragged_rank=2, output_ragged_rank=2, Tvalues=tf.float32))
    p.run(raw.RaggedTensorFromVariant(encoded_ragged=whole, input_ragged_rank=1, output_ragged_rank=1, Tvalues=tf.int32))
    p.run(raw.RaggedTensorFromVariant(encoded_ragged=tf.stack([whole, whole]), input_ragged_rank=-1, output_ragged_rank=3, Tvalues=tf.int32))
