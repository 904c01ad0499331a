/* placed.c: devices by hand: weights and biases under /job:ps/task:1, two relu layers and the training under /job:worker/task:1; one hundred steps.

     rill up --ps 2 --workers 2 --client -- placed --target={target} */
#include <stdio.h>
#include <stdlib.h>

#include "digits_data.h"

/* A layer whose weights live on the ps and whose arithmetic is the worker's. */
static RillTensor relu_layer(RillGraph *g, const char *name, RillTensor x, int64_t in, int64_t out) {
    int64_t dims[] = {in, out};
    rill_name_push(g, name);
    rill_device_push(g, "/job:ps/task:1");
    RillVariable *weights = rill_variable(g, "weights", dims, 2, NULL);
    RillVariable *biases = rill_variable(g, "biases", &dims[1], 1, &(RillVariableOptions){.init = {.kind = RILL_INIT_CONSTANT, .a = 0.1}});
    rill_device_pop(g);
    RillTensor y = rill_activate(g, rill_add(g, rill_matmul(g, x, rill_variable_value(weights), false, false), rill_variable_value(biases)), RILL_RELU);
    rill_name_pop(g);
    return y;
}

static int program(RillTask *task, void *arg) {
    (void)arg;
    Digits *d = digits_load(rill_flag(task, "data", "data/digits.csv.gz"));
    if (!d) return 1;
    RillGraph *g = rill_graph_new();
    rill_graph_seed(g, 1);
    rill_device_push(g, "/job:worker/task:1");
    RillTensor images = rill_placeholder(g, "images", TF_FLOAT, (int64_t[]){-1, PIXELS}, 2), labels = rill_placeholder(g, "labels", TF_INT32, (int64_t[]){-1}, 1);
    RillTensor layer1 = relu_layer(g, "layer1", images, PIXELS, 32), layer2 = relu_layer(g, "layer2", layer1, 32, 16);
    RillTensor loss = rill_loss_sparse_softmax(g, rill_dense(g, "logits", layer2, &(RillDense){.units = 10}), labels);
    TF_Operation *train = rill_minimize(g, &(RillOptimizer){.method = RILL_ADAM, .learning_rate = 0.01}, loss), *init = rill_init_op(g);
    TF_Status *status = TF_NewStatus();
    RillSession *s = rill_session_open_target(g, rill_flag(task, "target", ""), &(RillSessionOptions){.soft_placement = false}, status);
    if (s) rill_session_run_op(s, init, status);
    unsigned seed = 1;
    double first = 0, last = 0;
    for (int step = 0; TF_GetCode(status) == TF_OK && step < 100; step++) {
        TF_Tensor *in[2], *value = NULL;
        digits_batch(d, &seed, 64, &in[0], &in[1]);
        RillFeed feeds[] = {{images, in[0]}, {labels, in[1]}};
        rill_session_run(s, &(RillStep){.feeds = feeds, .feed_count = 2, .fetches = &loss, .values = &value, .fetch_count = 1, .targets = &train, .target_count = 1}, status);
        last = rill_value_number(value);
        if (step == 0) first = last;
        if (value) TF_DeleteTensor(value);
        TF_DeleteTensor(in[0]);
        TF_DeleteTensor(in[1]);
    }
    int code = TF_GetCode(status) != TF_OK;
    if (code)
        fprintf(stderr, "%s\n", TF_Message(status));
    else
        printf("100 steps: loss %.3f, then %.3f\n", first, last);
    rill_session_close(s);
    TF_DeleteStatus(status);
    rill_graph_free(g);
    free(d);
    return code;
}

int main(int argc, char **argv) {
    return rill_main(argc, argv, program, NULL);
}
