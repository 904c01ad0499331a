"""Graphs of functions: calls, If, Case and While; lists of tensors and optional values."""
import numpy as np
import tensorflow.compat.v1 as tf
from tensorflow.python.framework import function
from tensorflow.python.ops import composite_tensor_ops, gen_optional_ops, list_ops, map_ops

from gradient_case import case, floats, values


@case()
def call():
    x, y = floats(3), floats(3, seed=1)

    @tf.function
    def f(a, b):
        return tf.sin(a) * b, tf.exp(b)
    first, second = f(x, y)
    return [first, second * first], [x, y]


@case()
def call_nested():
    x = floats(3)

    @tf.function
    def g(a):
        return tf.tanh(a) * a

    @tf.function
    def f(a, b):
        return g(g(a)) + b * g(b)
    return f(x, x * 2), [x]


@case()
def call_of_defun():
    x, y = floats(3), floats(3, seed=1)

    @function.Defun(tf.float64, tf.float64)
    def f(a, b):
        return tf.sin(a) * b
    return f(x, f(x, y)), [x, y]


@case()
def call_with_variable():
    v = tf.get_variable("v", initializer=values(3), use_resource=True)
    x = floats(3, seed=1)

    @tf.function
    def f(a):
        return tf.square(a * v) + tf.gather(v, [0, 0, 2])
    return f(x), [v, x]


@case()
def call_with_random_numbers():
    x = floats(4)

    @tf.function
    def f(a):
        return a * tf.random.stateless_uniform([4], [1, 2], dtype=tf.float64)
    return f(x), [x]


@case()
def cond_v2():
    x, y = floats(2, 3), floats(2, 3, seed=1)
    p = tf.placeholder_with_default(True, [])
    return [tf.cond(p, lambda: x * y, lambda: tf.sin(x)), tf.cond(tf.logical_not(p), lambda: x * y, lambda: tf.sin(x))], [x, y]


@case()
def cond_v2_one_side():
    x, y = floats(2, 3), floats(2, 3, seed=1)
    v = tf.get_variable("v", initializer=values(2, 3), use_resource=True)
    p = tf.placeholder_with_default(False, [])
    return tf.cond(p, lambda: x * x * y * v, lambda: tf.zeros_like(x)) + x, [x, y, v]


@case()
def cond_v2_nested():
    x = floats(3)
    p, q = tf.placeholder_with_default(True, []), tf.placeholder_with_default(False, [])
    return tf.cond(p, lambda: tf.cond(q, lambda: tf.exp(x), lambda: x * x), lambda: -x), [x]


@case()
def case_v2():
    x = floats(3)
    i = tf.placeholder_with_default(1, [])
    return [tf.switch_case(i, [lambda: x * 2, lambda: tf.exp(x), lambda: tf.sin(x) * x]), tf.switch_case(i + 1, [lambda: x * 2, lambda: tf.exp(x), lambda: tf.sin(x) * x])], [x]


@case()
def case_v2_of_variable():
    v = tf.get_variable("v", initializer=values(3), use_resource=True)
    x = floats(3, seed=1)
    return tf.switch_case(tf.placeholder_with_default(1, []), [lambda: x * 2, lambda: x * v, lambda: v * v]), [x, v]


@case()
def while_power():
    x = floats(2, 2, low=.5)
    return tf.while_loop(lambda i, a: i < 4, lambda i, a: [i + 1, a * x], [0, x])[1], [x]


@case()
def while_of_no_iterations():
    x = floats(2, 2, low=.5)
    n = tf.placeholder_with_default(0, [])
    return tf.while_loop(lambda i, a: i < n, lambda i, a: [i + 1, a * x], [0, x])[1], [x]


@case()
def while_of_several_variables():
    x, w = floats(3), floats(3, 3, seed=1)

    def body(i, a, b, c):
        return [i + 1, tf.tanh(tf.tensordot(w, a, 1)) + b, b * tf.cast(i, tf.float64) + a[0], c + 1]
    out = tf.while_loop(lambda i, *_: i < 5, body, [0, x, x * 2, 0.0])
    return [out[1], out[2]], [x, w]


@case()
def while_of_variable():
    v = tf.get_variable("v", initializer=values(3), use_resource=True)
    x = floats(3, seed=2)
    return tf.while_loop(lambda i, a: i < 3, lambda i, a: [i + 1, tf.sin(a * v)], [0, x])[1], [v, x]


@case()
def while_with_cond():
    x = floats(3)

    def body(i, a):
        return [i + 1, tf.cond(tf.equal(i % 2, 1), lambda: a * x, lambda: tf.sin(a))]
    return tf.while_loop(lambda i, a: i < 5, body, [0, x])[1], [x]


@case()
def while_nested():
    x, y = floats(3), floats(3, seed=1)

    def outer(i, a):
        inner = tf.while_loop(lambda j, b: j < i + 1, lambda j, b: [j + 1, tf.sin(b) * y + a], [0, a * x])[1]
        return [i + 1, inner + a]
    return tf.while_loop(lambda i, a: i < 3, outer, [0, x])[1], [x, y]


@case()
def while_of_lists():
    x, w = floats(4, 3), floats(3, 3, seed=1)
    inputs = tf.TensorArray(tf.float64, 4).unstack(x)

    def body(i, state, outputs):
        state = tf.tanh(tf.tensordot(w, state, 1) + inputs.read(i))
        return [i + 1, state, outputs.write(i, state * state)]
    _, state, outputs = tf.while_loop(lambda i, *_: i < 4, body, [0, tf.zeros([3], tf.float64), tf.TensorArray(tf.float64, 4)])
    return [state, outputs.stack()], [x, w]


@case()
def map_and_scan_v2():
    x = floats(4, 3)
    return [tf.map_fn(lambda a: tf.sin(a) * a, x), tf.scan(lambda a, b: a * b + b, x), tf.foldl(lambda a, b: a * b, x)], [x]


@case()
def while_twice():
    x = floats(3, low=.5)
    y = tf.while_loop(lambda i, a: i < 3, lambda i, a: [i + 1, a * x], [0, x])[1]
    return tf.gradients(y, x)[0], [x]


@case()
def lists():
    x = floats(4, 3)
    a = list_ops.tensor_list_from_tensor(x, element_shape=[3])
    b = list_ops.tensor_list_set_item(a, 1, tf.sin(x[0]))
    c, popped = list_ops.tensor_list_pop_back(b, element_dtype=tf.float64)
    c = list_ops.tensor_list_push_back(c, popped * x[2])
    stacked = list_ops.tensor_list_stack(c, element_dtype=tf.float64, num_elements=4)
    item = list_ops.tensor_list_get_item(c, 2, element_dtype=tf.float64, element_shape=[3])
    gathered = list_ops.tensor_list_gather(c, [0, 3], element_dtype=tf.float64, element_shape=[3])
    return [tf.reshape(stacked, [4, 3]), tf.reshape(item, [3]), tf.reshape(gathered, [2, 3])], [x]


@case()
def lists_scattered():
    x, y = floats(2, 3), floats(1, 3, seed=1)
    a = list_ops.tensor_list_scatter(x, [0, 2], element_shape=[3])
    old = tf.raw_ops.TensorListScatter(tensor=x, indices=[1, 0], element_shape=[3])
    b = list_ops.tensor_list_scatter(y, [1], input_handle=list_ops.tensor_list_resize(a, 4))
    c = list_ops.tensor_list_resize(b, 3)
    return [tf.reshape(list_ops.tensor_list_stack(c, element_dtype=tf.float64, num_elements=3), [3, 3]),
            tf.reshape(list_ops.tensor_list_stack(old, element_dtype=tf.float64, num_elements=2), [2, 3])], [x, y]


@case()
def lists_split():
    x = floats(5, 3)
    a = list_ops.tensor_list_split(x, element_shape=[None, 3], lengths=[2, 3])
    first = list_ops.tensor_list_get_item(a, 0, element_dtype=tf.float64, element_shape=[2, 3])
    joined = list_ops.tensor_list_concat(a, element_dtype=tf.float64, element_shape=[None, 3])
    old = tf.raw_ops.TensorListConcat(input_handle=a, element_dtype=tf.float64, element_shape=[None, 3])[0]
    return [tf.reshape(first, [2, 3]), tf.reshape(joined, [5, 3]), tf.reshape(old, [5, 3])], [x]


@case()
def maps():
    x, y = floats(2, 3), floats(4, seed=1)
    first = map_ops.tensor_map_insert(map_ops.empty_tensor_map(), "x", x * 2)
    both = map_ops.tensor_map_insert(first, "y", y)
    again = map_ops.tensor_map_insert(both, "x", x * x)
    less = map_ops.tensor_map_erase(again, "y", tf.float64)
    return [tf.reshape(map_ops.tensor_map_lookup(m, k, tf.float64), s)
            for m, k, s in ((both, "x", [2, 3]), (both, "y", [4]), (again, "x", [2, 3]), (again, "y", [4]), (less, "x", [2, 3]))], [x, y]


@case()
def composite_tensors():
    x = floats(5)
    ragged = tf.RaggedTensor.from_row_splits(x * x, np.int64([0, 2, 5]))
    encoded = composite_tensor_ops.composite_tensor_to_variants(ragged)
    return [tf.reshape(composite_tensor_ops.composite_tensor_from_variant(encoded, ragged._type_spec).values, [5])], [x]


@case()
def optionals():
    x, y = floats(3), floats(2, seed=1)
    optional = gen_optional_ops.optional_from_value([x * 2, y])
    a, b = gen_optional_ops.optional_get_value(optional, [tf.float64, tf.float64], [[3], [2]])
    return [tf.sin(a), b * b], [x, y]
