/* queues.c: handwritten digits, between-graph: every worker reads TFRecord files by queues and trains a 64-32-16-10 network under a Supervisor; validation every 100 steps.

     records --folder=DIR; rill up --ps 1 --workers 2 -- queues --folder=DIR --logdir=RUN [--issync] [--aggregate=1]
   --issync: gradients are averaged over the workers; --aggregate fewer than workers: the rest are backups. Moving averages of the weights are validated.
   Flags: --steps=600 --batch=32 --rate=0.3 */
#include <stdio.h>
#include <stdlib.h>

#include "rill/train.h"

enum { PIXELS = 64, SHARDS = 4 };

/* Batches from files: read, parsed, decoded, scaled and mixed by threads. */
static void input(RillGraph *g, const char *const *files, int count, int batch, bool training, RillTensor out[2]) {
    RillTensor record = rill_read_record(g, rill_file_queue(g, files, count, 0, training), "");
    RillTensor raw[2];
    rill_parse_example(g, record, (RillFeature[]){{"image_raw", TF_STRING, {0}}, {"label", TF_STRING, {0}}}, 2, raw);
    RillTensor image = rill_reshape(g, rill_decode_raw(g, raw[0], TF_UINT8), (int64_t[]){PIXELS}, 1);
    RillTensor label = rill_reshape(g, rill_decode_raw(g, raw[1], TF_DOUBLE), (int64_t[]){10}, 1);
    RillTensor one[] = {rill_scale(g, rill_cast(g, image, TF_FLOAT), 1.0 / 16), label};
    rill_batch(g, one, 2, &(RillBatch){.size = batch, .threads = 4, .min_after = training ? 300 : 0}, out);
    out[1] = rill_argmax(g, out[1], 1); /* class numbers */
}

static RillTensor network(RillGraph *g, RillTensor x) {
    x = rill_dense(g, "hidden1", x, &(RillDense){.units = 32, .activation = RILL_TANH});
    x = rill_dense(g, "hidden2", x, &(RillDense){.units = 16, .activation = RILL_RELU});
    return rill_dense(g, "logits", x, &(RillDense){.units = 10});
}

static double validate(RillSession *s, RillTensor accuracy, TF_Status *status) {
    double sum = 0;
    for (int i = 0; i < 3; i++) sum += rill_session_number(s, accuracy, status);
    return sum / 3;
}

static int train(RillTask *task, void *arg) {
    (void)arg;
    const char *folder = rill_flag(task, "folder", ".");
    char paths[SHARDS + 1][4096];
    const char *files[SHARDS + 1];
    for (int i = 0; i <= SHARDS; i++) {
        snprintf(paths[i], sizeof paths[i], i < SHARDS ? "%s/train-%d.tfrecords" : "%s/test.tfrecords", folder, i);
        files[i] = paths[i];
    }
    int steps = (int)rill_flag_int(task, "steps", 600);
    RillGraph *g = rill_graph_new();
    rill_graph_seed(g, 1 + rill_task_index(task));
    RillDeviceSetter setter = rill_task_device_setter(task);
    rill_device_setter_push(g, &setter);
    RillTensor batch[2], test[2];
    input(g, files, SHARDS, (int)rill_flag_int(task, "batch", 32), true, batch);
    input(g, files + SHARDS, 1, 100, false, test);
    RillTensor loss = rill_loss_sparse_softmax(g, network(g, batch[0]), batch[1]);
    RillOptimizer descent = {.method = RILL_SGD, .learning_rate = rill_flag_float(task, "rate", 0.3)};
    RillAverages *averages = rill_averages_new(g, 0.95, true);
    TF_Operation *train_op = rill_flag_bool(task, "issync", false)
                                 ? rill_minimize_sync(g, task, &descent, loss, &(RillSync){.aggregate = (int)rill_flag_int(task, "aggregate", 0), .averages = averages})
                                 : rill_averages_update(averages, rill_minimize(g, &descent, loss));
    rill_averages_push(averages);
    RillTensor accuracy = rill_accuracy(g, network(g, test[0]), test[1]);
    rill_averages_pop(averages);
    TF_Status *status = TF_NewStatus();
    RillSupervisor *sv = rill_supervisor_new(g, &(RillSupervisorOptions){.task = task, .logdir = rill_flag(task, "logdir", NULL), .recovery_wait_seconds = 1}, status);
    RillSession *s = sv ? rill_supervisor_prepare_or_wait(sv, status) : NULL;
    RillTensor fetches[] = {rill_variable_value(rill_global_step(g)), loss};
    int64_t step = 0, next = 100;
    while (s && !rill_supervisor_should_stop(sv) && step < steps) {
        TF_Tensor *values[2];
        if (rill_session_run(s, &(RillStep){.fetches = fetches, .values = values, .fetch_count = 2, .targets = &train_op, .target_count = 1}, status) != TF_OK) break;
        step = (int64_t)rill_value_number(values[0]) + 1;
        if (step >= next) {
            rill_log(task, "step %lld  loss %.4f  validation accuracy %.3f", (long long)step, rill_value_number(values[1]), validate(s, accuracy, status));
            next += 100;
        }
        TF_DeleteTensor(values[0]);
        TF_DeleteTensor(values[1]);
    }
    double final = s && TF_GetCode(status) == TF_OK ? validate(s, accuracy, status) : 0;
    int code = TF_GetCode(status) != TF_OK;
    if (code)
        fprintf(stderr, "%s\n", TF_Message(status));
    else
        printf("%s:%d stopped at step %lld, validation accuracy %.3f\n", rill_task_job(task), rill_task_index(task), (long long)step, final);
    if (sv && rill_supervisor_stop(sv, status) != TF_OK && !code) fprintf(stderr, "%s\n", TF_Message(status));
    TF_DeleteStatus(status);
    rill_averages_free(averages);
    rill_graph_free(g);
    return code;
}

int main(int argc, char **argv) {
    return rill_main(argc, argv, train, NULL);
}
