/* managed.c: the cluster from TF_CONFIG, variables on the ps tasks, a training that recovers by itself; the step through a strategy: scope, run, reduce.

     rill up --ps 1 --workers 2 --restart 3 -- managed --logdir=run        kill -9 a worker: it comes back and goes on
   Flags: --steps=300 --in_graph (one client builds replicas on all workers; run it with --client) --logdir=DIR --data=... */
#include <stdio.h>
#include <stdlib.h>

#include "digits_data.h"

typedef struct Inputs {
    RillTensor images, labels;
} Inputs;

/* One replica: its share of the batch, its loss. */
static void replica(RillGraph *g, int index, int count, void *arg, RillReplica *out) {
    Inputs *in = arg;
    RillTensor x = in->images, y = in->labels;
    if (count > 1) {
        RillTensor axis = rill_const_i32(g, 0);
        RillAttr shares[] = {RILL_INT("num_split", count)};
        x = (RillTensor){rill_operation(g, "Split", NULL, (RillTensor[]){axis, x}, 2, shares, 1), index};
        y = (RillTensor){rill_operation(g, "Split", NULL, (RillTensor[]){axis, y}, 2, shares, 1), index};
    }
    x = rill_dense(g, "hidden", x, &(RillDense){.units = 32, .activation = RILL_TANH});
    RillTensor logits = rill_dense(g, "logits", x, &(RillDense){.units = 10});
    *out = (RillReplica){{rill_loss_sparse_softmax(g, logits, y), rill_accuracy(g, logits, y)}, 2};
}

static int train(RillTask *task, void *arg) {
    (void)arg;
    Digits *d = digits_load(rill_flag(task, "data", "data/digits.csv.gz"));
    if (!d) return 1;
    RillGraph *g = rill_graph_new();
    rill_graph_seed(g, 1 + rill_task_index(task));
    RillStrategy *strategy = rill_strategy_ps(g, task, rill_flag_bool(task, "in_graph", false) ? RILL_IN_GRAPH : RILL_BETWEEN_GRAPH);
    rill_strategy_enter(strategy);
    Inputs in = {rill_placeholder(g, "images", TF_FLOAT, (int64_t[]){-1, PIXELS}, 2), rill_placeholder(g, "labels", TF_INT32, (int64_t[]){-1}, 1)};
    RillReplica *replicas = calloc((size_t)rill_strategy_replicas(strategy), sizeof *replicas);
    rill_strategy_run(strategy, replica, &in, replicas);
    RillTensor loss = rill_strategy_reduce(strategy, RILL_REDUCE_MEAN, replicas, 0), accuracy = rill_strategy_reduce(strategy, RILL_REDUCE_MEAN, replicas, 1);
    TF_Operation *train_op = rill_minimize(g, &(RillOptimizer){.method = RILL_ADAM, .learning_rate = 0.005}, loss);
    rill_strategy_leave(strategy);

    TF_Status *status = TF_NewStatus();
    RillTraining *t = rill_training_open(g, &(RillTrainingOptions){.task = task, .directory = rill_flag(task, "logdir", NULL), .save_steps = 50, .loss = loss, .log_steps = 100,
                                                                    .last_step = rill_flag_int(task, "steps", 300)}, status);
    if (!t) fprintf(stderr, "%s\n", TF_Message(status));
    unsigned seed = 1 + (unsigned)rill_task_index(task);
    while (t && !rill_training_should_stop(t)) {
        TF_Tensor *batch[2];
        digits_batch(d, &seed, 64, &batch[0], &batch[1]);
        RillFeed feeds[] = {{in.images, batch[0]}, {in.labels, batch[1]}};
        rill_training_run(t, &(RillStep){.feeds = feeds, .feed_count = 2, .targets = &train_op, .target_count = 1});
        TF_DeleteTensor(batch[0]);
        TF_DeleteTensor(batch[1]);
    }
    if (t) {
        double good = digits_accuracy(d, DIGITS_TRAIN + DIGITS_VALID, DIGITS_TEST, rill_training_session(t), in.images, in.labels, accuracy);
        printf("%s:%d stopped at step %lld, held-out accuracy %.3f\n", rill_task_job(task), rill_task_index(task), (long long)rill_training_step(t), good);
    }
    int code = t ? rill_training_close(t) : 1;
    free(replicas);
    rill_strategy_free(strategy);
    TF_DeleteStatus(status);
    rill_graph_free(g);
    free(d);
    return code;
}

int main(int argc, char **argv) {
    return rill_main(argc, argv, train, NULL);
}
