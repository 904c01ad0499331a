/* optimizer_values.c: prints the losses of a small training by every method, for optimizer_test.py to compare with TensorFlow's.

   A line for each: METHOD DENSE|SPARSE loss0 loss1 ... */
#include <stdio.h>
#include <stdlib.h>

#include "rill/train.h"

enum { ROWS = 6, COLUMNS = 3, STEPS = 8 };

static const struct {
    const char *name;
    RillOptimizer o;
} methods[] = {
    {"sgd", {.method = RILL_SGD, .learning_rate = 0.1}},
    {"momentum", {.method = RILL_MOMENTUM, .learning_rate = 0.1}},
    {"nesterov", {.method = RILL_MOMENTUM, .learning_rate = 0.1, .nesterov = true}},
    {"adagrad", {.method = RILL_ADAGRAD, .learning_rate = 0.1}},
    {"adadelta", {.method = RILL_ADADELTA, .learning_rate = 1}},
    {"adam", {.method = RILL_ADAM, .learning_rate = 0.1}},
    {"adamax", {.method = RILL_ADAMAX, .learning_rate = 0.1}},
    {"rmsprop", {.method = RILL_RMSPROP, .learning_rate = 0.1, .momentum = 0.5}},
    {"centered_rmsprop", {.method = RILL_CENTERED_RMSPROP, .learning_rate = 0.1}},
    {"ftrl", {.method = RILL_FTRL, .learning_rate = 0.1, .l1 = 0.01, .l2 = 0.02}},
    {"proximal_sgd", {.method = RILL_PROXIMAL_SGD, .learning_rate = 0.1, .l1 = 0.01, .l2 = 0.02}},
    {"proximal_adagrad", {.method = RILL_PROXIMAL_ADAGRAD, .learning_rate = 0.1, .l1 = 0.01, .l2 = 0.02}},
    {"adagrad_da", {.method = RILL_ADAGRAD_DA, .learning_rate = 0.1, .l1 = 0.01, .l2 = 0.02}},
    {"clipped_norm", {.method = RILL_SGD, .learning_rate = 0.1, .clip_norm = 0.5}},
    {"clipped_value", {.method = RILL_SGD, .learning_rate = 0.1, .clip_value = 0.05}},
};

static int train(const char *name, const RillOptimizer *o, bool sparse, int partitions) {
    RillGraph *g = rill_graph_new();
    float start[ROWS * COLUMNS], goal[4 * COLUMNS];
    for (int i = 0; i < ROWS * COLUMNS; i++) start[i] = 0.1f * (float)i - 0.7f;
    for (int i = 0; i < 4 * COLUMNS; i++) goal[i] = 0.5f - 0.03f * (float)i;
    RillTensor first = rill_const(g, "start", TF_FLOAT, (int64_t[]){ROWS, COLUMNS}, 2, start);
    RillVariable *v = rill_variable(g, "v", (int64_t[]){ROWS, COLUMNS}, 2, &(RillVariableOptions){.init = {.kind = RILL_INIT_TENSOR, .tensor = first}, .partitions = partitions});
    RillTensor ids = rill_const_i32s(g, (int32_t[]){1, 4, 1, 3}, 4), rows;
    if (sparse && partitions == 1)
        rows = rill_op(g, "ResourceGather", NULL, (RillTensor[]){rill_variable_part(v, 0, NULL, NULL), ids}, 2, (RillAttr[]){RILL_TYPE("dtype", TF_FLOAT)}, 1);
    else
        rows = rill_op(g, "GatherV2", NULL, (RillTensor[]){rill_add(g, rill_variable_value(v), rill_const_f32(g, 0)), ids, rill_const_i32(g, 0)}, 3, NULL, 0);
    RillTensor difference = rill_sub(g, rows, rill_const(g, "goal", TF_FLOAT, (int64_t[]){4, COLUMNS}, 2, goal));
    RillTensor loss = rill_reduce_mean(g, rill_mul(g, difference, difference), NULL, 0, false);
    TF_Operation *op = rill_minimize(g, o, loss), *init = rill_init_op(g);
    TF_Status *status = TF_NewStatus();
    RillSession *s = rill_session_open(g, NULL, NULL, status);
    if (s) rill_session_run_op(s, init, status);
    printf("%s %s%s", name, sparse ? "sparse" : "dense", partitions > 1 ? "_parts" : "");
    for (int i = 0; s && i < STEPS && TF_GetCode(status) == TF_OK; i++) {
        printf(" %.9g", rill_session_number(s, loss, status));
        if (TF_GetCode(status) == TF_OK) rill_session_run_op(s, op, status);
    }
    printf("\n");
    int code = TF_GetCode(status) != TF_OK;
    if (code) fprintf(stderr, "%s: %s\n", name, TF_Message(status));
    rill_session_close(s);
    TF_DeleteStatus(status);
    rill_graph_free(g);
    return code;
}

int main(void) {
    int code = 0;
    for (size_t i = 0; i < sizeof methods / sizeof methods[0]; i++)
        for (int how = 0; how < 3; how++) code |= train(methods[i].name, &methods[i].o, how == 1, how == 2 ? 2 : 1);
    return code;
}
