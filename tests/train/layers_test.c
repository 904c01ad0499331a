/* layers_test.c: layers, losses, metrics and schedules give the numbers of their formulas; embeddings learn only the rows they use. */
#include "train_test.h"

static RillTensor vector(RillGraph *g, const float *v, int64_t n) {
    return rill_const(g, "v", TF_FLOAT, &n, 1, v);
}

static void losses_follow_their_formulas(void **state) {
    (void)state;
    RillGraph *g = rill_graph_new();
    float x[] = {0.5f, -1, 2}, y[] = {1, 0, 1};
    RillTensor a = vector(g, x, 3), b = vector(g, y, 3);
    double sigmoid = 0, squared = 0, absolute = 0, huber = 0, hinge = 0;
    for (int i = 0; i < 3; i++) {
        double d = fabs(x[i] - y[i]), sign = 2 * y[i] - 1;
        sigmoid += log1p(exp(-sign * x[i])) / 3;
        squared += d * d / 3;
        absolute += d / 3;
        huber += (d <= 0.75 ? d * d / 2 : 0.75 * 0.75 / 2 + 0.75 * (d - 0.75)) / 3;
        hinge += fmax(0, 1 - sign * x[i]) / 3;
    }
    float rows[] = {1, 2, 3, 0, 0, 1};
    RillTensor logits = rill_const(g, "logits", TF_FLOAT, (int64_t[]){2, 3}, 2, rows), labels = rill_const_i32s(g, (int32_t[]){2, 0}, 2);
    double softmax = (log(exp(-2) + exp(-1) + 1) + log(2 + exp(1))) / 2;
    float p[] = {0.9f, 0.2f};
    float q[] = {1, 0};
    const struct {
        RillTensor t;
        double wants;
    } cases[] = {
        {rill_loss_sigmoid(g, a, b), sigmoid},
        {rill_loss_mean_squared(g, a, b), squared},
        {rill_loss_absolute(g, a, b), absolute},
        {rill_loss_huber(g, a, b, 0.75), huber},
        {rill_loss_hinge(g, a, b), hinge},
        {rill_loss_sparse_softmax(g, logits, labels), softmax},
        {rill_loss_softmax(g, logits, rill_one_hot(g, labels, 3)), softmax},
        {rill_loss_log(g, vector(g, p, 2), vector(g, q, 2)), -(log(0.9) + log(0.8)) / 2},
        {rill_accuracy(g, logits, labels), 0.5},
        {rill_loss_sparse_softmax(g, rill_reshape(g, logits, (int64_t[]){1, 2, 3}, 3), rill_reshape(g, labels, (int64_t[]){1, 2}, 2)), softmax},
        {rill_accuracy(g, rill_reshape(g, logits, (int64_t[]){1, 2, 3}, 3), rill_reshape(g, labels, (int64_t[]){1, 2}, 2)), 0.5},
    };
    RillSession *s = open_local(g);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) assert_float_equal(number_of(s, cases[i].t), cases[i].wants, 1e-5);
    rill_session_close(s);
    rill_graph_free(g);
}

/* [3] and [3,1] would be broadcast to [3,3], and each compared with all. */
static void labels_of_another_shape_are_a_mistake(void **state) {
    (void)state;
    typedef RillTensor Loss(RillGraph *g, RillTensor x, RillTensor y);
    Loss *const losses[] = {rill_loss_sigmoid, rill_loss_mean_squared, rill_loss_absolute, rill_loss_hinge, rill_loss_log};
    for (size_t i = 0; i < sizeof losses / sizeof losses[0]; i++) {
        RillGraph *g = rill_graph_new();
        RillTensor x = rill_placeholder(g, "said", TF_FLOAT, (int64_t[]){-1, 1}, 2), y = rill_placeholder(g, "truth", TF_FLOAT, (int64_t[]){-1}, 1);
        assert_null(losses[i](g, x, y).oper);
        expect_mistake(g, TF_INVALID_ARGUMENT, "'said:0' has shape [?,1], the labels 'truth:0' have [?]; they must be of the same shape");
        rill_graph_free(g);
    }
    RillGraph *g = rill_graph_new();
    RillTensor x = rill_placeholder(g, "said", TF_FLOAT, (int64_t[]){-1, 10}, 2), y = rill_placeholder(g, "truth", TF_INT32, (int64_t[]){-1, 1}, 2);
    rill_accuracy(g, x, y);
    expect_mistake(g, TF_INVALID_ARGUMENT, "rill_accuracy: 'said:0' has shape [?,10], the labels 'truth:0' have [?,1]; they must have all its dimensions but the last");
    rill_graph_free(g);
}

static void layers_have_their_shapes_and_share_by_name(void **state) {
    (void)state;
    RillGraph *g = rill_graph_new();
    RillTensor x = rill_placeholder(g, "x", TF_FLOAT, (int64_t[]){-1, 12, 12, 3}, 4);
    for (int again = 0; again < 2; again++) {
        RillTensor y = rill_conv2d(g, "conv", x, &(RillConv){.filters = 8, .size = 3, .stride = 2, .activation = RILL_RELU, .l2 = 0.1});
        y = rill_batch_norm(g, "norm", y, &(RillBatchNorm){.training = !again});
        y = rill_max_pool(g, y, 2, 2, true);
        RillShape s = rill_shape(g, y);
        assert_int_equal(s.dims[1], 3);
        assert_int_equal(s.dims[3], 8);
        y = rill_layer_norm(g, "layer_norm", rill_dense(g, "dense", y, &(RillDense){.units = 5})); /* over the last of four dimensions */
        s = rill_shape(g, rill_flatten(g, y));
        assert_int_equal(s.rank, 2);
        assert_int_equal(s.dims[1], 3 * 3 * 5);
        assert_int_equal(rill_shape(g, rill_global_avg_pool(g, y)).rank, 2);
    }
    expect_graph(g);
    assert_int_equal(rill_variable_count(g), 2 + 4 + 2 + 2);
    rill_dense(g, "bad", rill_placeholder(g, "unknown", TF_FLOAT, NULL, -1), &(RillDense){.units = 5});
    expect_mistake(g, TF_INVALID_ARGUMENT, "Layer bad: its input unknown");
    rill_graph_free(g);
}

static void batch_norm_moves_its_averages(void **state) {
    (void)state;
    RillGraph *g = rill_graph_new();
    float data[] = {1, 3, 5, 7};
    RillTensor x = rill_const(g, "x", TF_FLOAT, (int64_t[]){4, 1}, 2, data);
    RillTensor y = rill_batch_norm(g, "n", x, &(RillBatchNorm){.training = true, .momentum = 0.5}), plain = rill_batch_norm(g, "n", x, &(RillBatchNorm){.training = false});
    TF_Operation *train = rill_minimize(g, &(RillOptimizer){.method = RILL_SGD, .learning_rate = 0}, rill_reduce_sum(g, y, NULL, 0, false));
    RillTensor mean = rill_reduce_mean(g, y, NULL, 0, false), first = rill_reduce_sum(g, plain, NULL, 0, false);
    TF_Operation *init = rill_init_op(g);
    RillSession *s = open_local(g);
    run_op(s, init);
    assert_float_equal(number_of(s, mean), 0, 1e-6);
    assert_float_equal(number_of(s, first), 16 / sqrt(1.001), 1e-4); /* by mean 0 and variance 1 */
    run_op(s, train);
    assert_float_equal(number_of(s, first), (16 - 4 * 2) / sqrt(0.5 + 2.5 + 0.001), 1e-4); /* half way to mean 4 and variance 5 */
    rill_session_close(s);
    rill_graph_free(g);
}

static void embeddings_in_parts_give_and_learn_their_rows(void **state) {
    (void)state;
    for (int partitions = 1; partitions <= 3; partitions += 2) {
        RillGraph *g = rill_graph_new();
        rill_graph_seed(g, 5);
        RillTensor ids = rill_const(g, "ids", TF_INT64, (int64_t[]){2, 2}, 2, (int64_t[]){0, 9, 4, 9});
        RillTensor rows = rill_embedding(g, "e", ids, &(RillEmbedding){.rows = 10, .width = 4, .partitions = partitions});
        RillVariable *v = rill_variable_at(g, 0);
        RillTensor table = rill_variable_read(g, v);
        RillTensor plain = rill_op(g, "GatherV2", NULL, (RillTensor[]){table, ids, rill_const_i32(g, 0)}, 3, NULL, 0);
        RillTensor differs = rill_reduce_sum(g, rill_unary(g, "Abs", rill_sub(g, rows, plain)), NULL, 0, false);
        TF_Operation *train = rill_minimize(g, &(RillOptimizer){.method = RILL_SGD, .learning_rate = 1}, rill_reduce_sum(g, rows, NULL, 0, false));
        RillTensor sum = rill_reduce_sum(g, table, NULL, 0, false);
        TF_Operation *init = rill_init_op(g);
        RillSession *s = open_local(g);
        run_op(s, init);
        assert_int_equal(rill_variable_parts(v), partitions);
        assert_float_equal(number_of(s, differs), 0, 1e-6);
        double before = number_of(s, sum);
        run_op(s, train);
        assert_float_equal(before - number_of(s, sum), 16, 1e-4); /* four ids of width four, one of them twice */
        rill_session_close(s);
        rill_graph_free(g);
    }
}

static void an_lstm_learns_to_remember(void **state) {
    (void)state;
    RillGraph *g = rill_graph_new();
    rill_graph_seed(g, 1);
    float data[8][5][1], goal[8][1];
    for (int i = 0; i < 8; i++)
        for (int t = 0; t < 5; t++) {
            data[i][t][0] = t == 0 ? (float)(i % 2) : 0.3f * (float)((i + t) % 3);
            goal[i][0] = (float)(i % 2);
        }
    RillTensor x = rill_const(g, "x", TF_FLOAT, (int64_t[]){8, 5, 1}, 3, data), y = rill_const(g, "y", TF_FLOAT, (int64_t[]){8, 1}, 2, goal);
    RillTensor all = rill_lstm(g, "lstm", x, 6, false), last = rill_lstm(g, "lstm", x, 6, true);
    assert_int_equal(rill_shape(g, all).rank, 3);
    RillTensor loss = rill_loss_sigmoid(g, rill_dense(g, "out", last, &(RillDense){.units = 1}), y);
    TF_Operation *train = rill_minimize(g, &(RillOptimizer){.method = RILL_ADAM, .learning_rate = 0.05, .clip_norm = 5}, loss), *init = rill_init_op(g);
    RillSession *s = open_local(g);
    run_op(s, init);
    double before = number_of(s, loss);
    for (int i = 0; i < 80; i++) run_op(s, train);
    assert_true(number_of(s, loss) < before / 10);
    rill_session_close(s);
    rill_graph_free(g);
}

static void metrics_count_over_runs(void **state) {
    (void)state;
    RillGraph *g = rill_graph_new();
    float said[] = {1, 1, 0, 0}, is[] = {1, 0, 1, 0};
    RillTensor x = rill_placeholder(g, "x", TF_FLOAT, NULL, 0);
    RillMetric mean = rill_metric_mean(g, "mean", x), precision = rill_metric_precision(g, "precision", vector(g, said, 4), vector(g, is, 4)),
               recall = rill_metric_recall(g, "recall", vector(g, said, 3), vector(g, is, 3));
    TF_Operation *init = rill_local_init_op(g);
    RillSession *s = open_local(g);
    TF_Status *status = TF_NewStatus();
    run_op(s, init);
    assert_float_equal(number_of(s, mean.value), 0, 0);
    for (int i = 1; i <= 4; i++) {
        float v = (float)i;
        TF_Tensor *value = rill_value(TF_FLOAT, NULL, 0, &v);
        RillFeed feed = {x, value};
        rill_session_run(s, &(RillStep){.feeds = &feed, .feed_count = 1, .targets = &mean.update, .target_count = 1}, status);
        expect_status(status);
        TF_DeleteTensor(value);
    }
    assert_float_equal(number_of(s, mean.value), 2.5, 1e-6);
    run_op(s, mean.reset);
    assert_float_equal(number_of(s, mean.value), 0, 0);
    run_op(s, precision.update);
    run_op(s, recall.update);
    assert_float_equal(number_of(s, precision.value), 0.5, 1e-6);
    assert_float_equal(number_of(s, recall.value), 0.5, 1e-6);
    TF_DeleteStatus(status);
    rill_session_close(s);
    rill_graph_free(g);
}

static void schedules_follow_the_global_step(void **state) {
    (void)state;
    RillGraph *g = rill_graph_new();
    RillTensor rates[] = {rill_decay_exponential(g, 0.8, 10, 0.5, false), rill_decay_exponential(g, 0.8, 10, 0.5, true), rill_decay_natural_exp(g, 0.8, 10, 0.5, false),
                          rill_decay_inverse_time(g, 0.8, 10, 0.5, false), rill_decay_polynomial(g, 0.8, 20, 0.2, 2), rill_decay_cosine(g, 0.8, 20, 0.1),
                          rill_piecewise(g, (int64_t[]){10, 20}, 2, (double[]){3, 2, 1}), rill_warm_up(g, rill_const_f32(g, 2), 30)};
    TF_Operation *next = rill_assign_add(g, rill_global_step(g), rill_const_i64(g, 5)), *init = rill_init_op(g);
    RillSession *s = open_local(g);
    run_op(s, init);
    for (int step = 0; step <= 30; step += 5) {
        double f = fmin(1, step / 20.0);
        double wants[] = {0.8 * pow(0.5, step / 10.0), 0.8 * pow(0.5, step / 10), 0.8 * exp(-0.5 * step / 10), 0.8 / (1 + 0.5 * step / 10), 0.6 * (1 - f) * (1 - f) + 0.2,
                          0.8 * (0.9 * 0.5 * (1 + cos(M_PI * f)) + 0.1), step <= 10 ? 3 : step <= 20 ? 2 : 1, 2 * fmin(1, step / 30.0)};
        for (size_t i = 0; i < sizeof rates / sizeof rates[0]; i++) assert_float_equal(number_of(s, rates[i]), wants[i], 1e-5);
        run_op(s, next);
    }
    rill_session_close(s);
    rill_graph_free(g);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(losses_follow_their_formulas),
        cmocka_unit_test(labels_of_another_shape_are_a_mistake),
        cmocka_unit_test(layers_have_their_shapes_and_share_by_name),
        cmocka_unit_test(batch_norm_moves_its_averages),
        cmocka_unit_test(embeddings_in_parts_give_and_learn_their_rows),
        cmocka_unit_test(an_lstm_learns_to_remember),
        cmocka_unit_test(metrics_count_over_runs),
        cmocka_unit_test(schedules_follow_the_global_step),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
