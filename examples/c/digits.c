/* digits.c: a convolutional network learns handwritten digits, on one machine or many, in step: every update is the average of all workers' gradients.

     digits --cluster=local --ps=2 --workers=2                    all in this process
     rill up --ps 2 --workers 2 -- digits                         one process for each task
     digits --ps_hosts=... --worker_hosts=... --job_name=worker --task_index=0       one task of many machines

   Flags: --steps=600 --batch=64 --rate=0.002 --logdir=DIR (checkpoints and events, read by TensorFlow and TensorBoard) --data=data/digits.csv.gz
   --expect=97 (fail below that accuracy) */
#include <stdio.h>
#include <stdlib.h>

#include "digits_data.h"

static RillTensor network(RillGraph *g, RillTensor images, bool training) {
    RillTensor x = rill_reshape(g, images, (int64_t[]){-1, 8, 8, 1}, 4);
    x = rill_conv2d(g, "conv1", x, &(RillConv){.filters = 16, .size = 5, .activation = RILL_RELU});
    x = rill_max_pool(g, x, 2, 2, false);
    x = rill_conv2d(g, "conv2", x, &(RillConv){.filters = 32, .size = 3, .activation = RILL_RELU});
    x = rill_dense(g, "dense", rill_flatten(g, x), &(RillDense){.units = 64, .activation = RILL_RELU});
    if (training) x = rill_dropout(g, x, 0.4);
    return rill_dense(g, "logits", x, &(RillDense){.units = 10});
}

static int train(RillTask *task, void *arg) {
    (void)arg;
    Digits *d = digits_load(rill_flag(task, "data", "data/digits.csv.gz"));
    if (!d) return 1;
    int steps = (int)rill_flag_int(task, "steps", 600), batch = (int)rill_flag_int(task, "batch", 64);
    RillGraph *g = rill_graph_new();
    rill_graph_seed(g, 1 + rill_task_index(task));
    RillDeviceSetter setter = rill_task_device_setter(task);
    rill_device_setter_push(g, &setter);
    RillTensor images = rill_placeholder(g, "images", TF_FLOAT, (int64_t[]){-1, PIXELS}, 2), labels = rill_placeholder(g, "labels", TF_INT32, (int64_t[]){-1}, 1);
    RillTensor loss = rill_loss_sparse_softmax(g, network(g, images, true), labels);
    RillTensor accuracy = rill_accuracy(g, network(g, images, false), labels);
    RillOptimizer adam = {.method = RILL_ADAM, .rate = rill_decay_exponential(g, rill_flag_float(task, "rate", 0.002), 200, 0.7, false)};
    TF_Operation *train_op = rill_minimize_sync(g, task, &adam, loss, NULL);
    rill_summary_scalar(g, "accuracy", accuracy);

    RillHook *hooks[] = {rill_task_is_chief(task) ? rill_hook_progress(steps, (const char *[]){"loss", "accuracy"}, (RillTensor[]){loss, accuracy}, 2) : rill_hook_nan_guard(loss)};
    TF_Status *status = TF_NewStatus();
    RillTraining *t = rill_training_open(g, &(RillTrainingOptions){.task = task, .directory = rill_flag(task, "logdir", NULL), .loss = loss, .last_step = steps,
                                                                    .hooks = hooks, .hook_count = 1}, status);
    if (!t) fprintf(stderr, "%s\n", TF_Message(status));
    unsigned seed = 1 + (unsigned)rill_task_index(task);
    while (t && !rill_training_should_stop(t)) {
        TF_Tensor *in[2];
        digits_batch(d, &seed, batch, &in[0], &in[1]);
        RillFeed feeds[] = {{images, in[0]}, {labels, in[1]}};
        rill_training_run(t, &(RillStep){.feeds = feeds, .feed_count = 2, .targets = &train_op, .target_count = 1});
        TF_DeleteTensor(in[0]);
        TF_DeleteTensor(in[1]);
    }
    double percent = t && rill_task_is_chief(task) ? 100 * digits_accuracy(d, DIGITS_TRAIN + DIGITS_VALID, DIGITS_TEST, rill_training_session(t), images, labels, accuracy) : 100;
    int code = t ? rill_training_close(t) : 1;
    if (code == 0 && rill_task_is_chief(task)) printf("held-out accuracy %.1f %%\n", percent);
    if (percent < rill_flag_float(task, "expect", 0)) code = 1;
    TF_DeleteStatus(status);
    rill_graph_free(g);
    free(d);
    return code;
}

int main(int argc, char **argv) {
    return rill_main(argc, argv, train, NULL);
}
