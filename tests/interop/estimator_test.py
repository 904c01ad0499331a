"""tf.estimator, which TensorFlow had until 2.15: trained, evaluated, asked and exported through a Rill task as in the client's own process. With a newer TensorFlow these tests are skipped."""
import json

import numpy as np
import pytest
import tensorflow as tf2
import tensorflow.compat.v1 as tf

estimators = getattr(tf, "estimator", None)
pytestmark = pytest.mark.skipif(not hasattr(estimators, "LinearClassifier"), reason="this TensorFlow has no tf.estimator")

columns = tf2.feature_column
NUMBERS = columns.numeric_column("x", shape=(4,))
HASHED = columns.categorical_column_with_hash_bucket("s", 16)
LISTED = columns.categorical_column_with_vocabulary_list("s", list("abcdefgh"))
KINDS = {
    "linear": lambda **more: estimators.LinearClassifier([NUMBERS, HASHED], **more),
    "linear_regressor": lambda **more: estimators.LinearRegressor([NUMBERS, LISTED], **more),
    "dnn": lambda **more: estimators.DNNClassifier([16, 8], [NUMBERS, columns.embedding_column(HASHED, 4)], dropout=0.1, **more),
    "dnn_batch_norm": lambda **more: estimators.DNNRegressor([16, 8], [NUMBERS, columns.indicator_column(LISTED)], batch_norm=True, **more),
    "wide_and_deep": lambda **more: estimators.DNNLinearCombinedClassifier(
        linear_feature_columns=[HASHED], dnn_feature_columns=[NUMBERS, columns.embedding_column(HASHED, 4)], dnn_hidden_units=[16], **more),
    "baseline": lambda **more: estimators.BaselineClassifier(**more),
}


def examples():
    rng = np.random.RandomState(0)
    x = rng.randn(256, 4).astype(np.float32)
    s = np.array(list("abcdefgh"))[rng.randint(0, 8, 256)]
    y = (x.sum(1) + (s == "a") > 0).astype(np.float32)
    return tf2.data.Dataset.from_tensor_slices(({"x": x, "s": s}, y)).repeat(4).batch(32)


def train(kind, master, folder, monkeypatch):
    """(what evaluation says, predictions of the first batch)"""
    monkeypatch.setenv("TF_CONFIG", json.dumps({"session_master": master, "eval_session_master": master} if master else {}))
    config = estimators.RunConfig(model_dir=str(folder), tf_random_seed=7, save_summary_steps=5, save_checkpoints_steps=10)
    assert config.master == master
    estimator = KINDS[kind](config=config)
    estimator.train(examples, steps=20)
    estimator.train(examples, steps=5)  # goes on from the checkpoint
    scores = estimator.evaluate(examples, steps=4)
    answers = next(iter(estimator.predict(examples, yield_single_examples=False)))
    receiver = estimators.export.build_parsing_serving_input_receiver_fn(columns.make_parse_example_spec([NUMBERS, HASHED]))
    assert estimator.export_saved_model(str(folder / "export"), receiver)
    return scores, answers


@pytest.mark.parametrize("kind", KINDS)
def test_an_estimator_trains_as_on_tensorflow(kind, rill, tmp_path, monkeypatch):
    tf.Session.reset(rill)
    expected_scores, expected = train(kind, "", tmp_path / "tensorflow", monkeypatch)
    scores, answers = train(kind, rill, tmp_path / "rill", monkeypatch)
    assert scores.keys() == expected_scores.keys() and scores["global_step"] == 25
    for name, value in expected_scores.items():
        assert scores[name] == pytest.approx(value, rel=1e-4, abs=1e-5), name
    for name, value in expected.items():
        if value.dtype.kind == "f":
            np.testing.assert_allclose(answers[name], value, rtol=1e-4, atol=1e-5, err_msg=name)
