"""Writes the models that saved_model_test.c loads, by real TensorFlow: make_models.py FOLDER. tests/capi/models holds what it wrote."""
import os
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")
os.environ["CUDA_VISIBLE_DEVICES"] = ""

import tensorflow as tf

v1 = tf.compat.v1


def write_v1(folder):
    """y = 0.5 x + 2, tags "serve"; the variables have other values before they are restored."""
    with tf.Graph().as_default(), v1.Session() as session:
        a = v1.get_variable("a", initializer=0.0, use_resource=False)
        b = v1.get_variable("b", initializer=0.0, use_resource=True)
        x = v1.placeholder(tf.float32, [None], name="x")
        y = tf.add(a * x, b, name="y")
        session.run([a.initializer, b.initializer])
        session.run([v1.assign(a, 0.5), v1.assign(b, 2.0)])
        builder = v1.saved_model.Builder(folder)
        signature = v1.saved_model.predict_signature_def({"x": x}, {"y": y})
        builder.add_meta_graph_and_variables(session, ["serve"], {"serving_default": signature})
        builder.save()


class Scale(tf.Module):
    def __init__(self):
        self.factor = tf.Variable(3.0)

    @tf.function(input_signature=[tf.TensorSpec([None], tf.float32, name="x")])
    def __call__(self, x):
        return {"y": self.factor * x}


def write_v2(folder):
    """y = 3 x, as tf.saved_model.save writes it."""
    module = Scale()
    tf.saved_model.save(module, folder, signatures=module.__call__.get_concrete_function())


if __name__ == "__main__":
    write_v1(os.path.join(sys.argv[1], "v1"))
    write_v2(os.path.join(sys.argv[1], "v2"))
