/* digits_data.c: reads the digits, and makes batches of them. */
#include "digits_data.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

Digits *digits_load(const char *path) {
    gzFile f = gzopen(path, "rb");
    Digits *d = calloc(1, sizeof *d);
    char line[1024];
    int rows = 0;
    while (f && rows < DIGITS_ALL && gzgets(f, line, sizeof line)) {
        char *at = line;
        for (int i = 0; i < PIXELS; i++, at++) d->images[rows][i] = strtof(at, &at) / 16;
        d->labels[rows++] = (int32_t)strtol(at, NULL, 10);
    }
    if (f) gzclose(f);
    if (rows < DIGITS_ALL) {
        fprintf(stderr, "%s: %d of %d digits could be read\n", path, rows, DIGITS_ALL);
        free(d);
        return NULL;
    }
    unsigned seed = 7; /* the same order everywhere */
    for (int i = DIGITS_ALL - 1; i > 0; i--) {
        int j = rand_r(&seed) % (i + 1);
        float image[PIXELS];
        int32_t label = d->labels[i];
        memcpy(image, d->images[i], sizeof image);
        memcpy(d->images[i], d->images[j], sizeof image);
        memcpy(d->images[j], image, sizeof image);
        d->labels[i] = d->labels[j];
        d->labels[j] = label;
    }
    return d;
}

void digits_rows(const Digits *d, int first, int count, TF_Tensor **images, TF_Tensor **labels) {
    *images = rill_value(TF_FLOAT, (int64_t[]){count, PIXELS}, 2, d->images[first]);
    *labels = rill_value(TF_INT32, (int64_t[]){count}, 1, &d->labels[first]);
}

void digits_batch(const Digits *d, unsigned *seed, int count, TF_Tensor **images, TF_Tensor **labels) {
    digits_rows(d, 0, count, images, labels);
    for (int i = 0; i < count; i++) {
        int row = rand_r(seed) % DIGITS_TRAIN;
        memcpy((float *)TF_TensorData(*images) + i * PIXELS, d->images[row], sizeof d->images[row]);
        ((int32_t *)TF_TensorData(*labels))[i] = d->labels[row];
    }
}

double digits_accuracy(const Digits *d, int first, int count, RillSession *session, RillTensor images, RillTensor labels, RillTensor accuracy) {
    TF_Tensor *in[2], *out = NULL;
    TF_Status *status = TF_NewStatus();
    digits_rows(d, first, count, &in[0], &in[1]);
    RillFeed feeds[] = {{images, in[0]}, {labels, in[1]}};
    TF_Code code = rill_session_run(session, &(RillStep){.feeds = feeds, .feed_count = 2, .fetches = &accuracy, .values = &out, .fetch_count = 1}, status);
    double result = code == TF_OK ? rill_value_number(out) : 0;
    if (code != TF_OK) fprintf(stderr, "%s\n", TF_Message(status));
    if (out) TF_DeleteTensor(out);
    TF_DeleteTensor(in[0]);
    TF_DeleteTensor(in[1]);
    TF_DeleteStatus(status);
    return result;
}
