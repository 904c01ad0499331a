/* records.c: writes the handwritten digits as TFRecord files: image_raw (64 bytes) and label (10 doubles, one of them 1), as queues.c reads them.

     records --folder=DIR [--shards=4] [--data=data/digits.csv.gz]          train-*.tfrecords and test.tfrecords */
#include <stdio.h>
#include <stdlib.h>

#include "digits_data.h"

static int write_file(const char *path, const Digits *d, int first, int step, int end, TF_Status *status) {
    RillRecordWriter *w = rill_record_writer_open(path, "", status);
    for (int i = first; w && i < end && TF_GetCode(status) == TF_OK; i += step) {
        unsigned char pixels[PIXELS];
        double label[10] = {0};
        for (int j = 0; j < PIXELS; j++) pixels[j] = (unsigned char)(d->images[i][j] * 16);
        label[d->labels[i]] = 1;
        rill_record_write_example(w, (RillExampleBytes[]){{"image_raw", pixels, sizeof pixels}, {"label", label, sizeof label}}, 2, status);
    }
    if (w && TF_GetCode(status) == TF_OK) rill_record_writer_close(w, status);
    if (TF_GetCode(status) != TF_OK) fprintf(stderr, "%s: %s\n", path, TF_Message(status));
    return TF_GetCode(status) != TF_OK;
}

static int program(RillTask *task, void *arg) {
    (void)arg;
    Digits *d = digits_load(rill_flag(task, "data", "data/digits.csv.gz"));
    const char *folder = rill_flag(task, "folder", ".");
    int shards = (int)rill_flag_int(task, "shards", 4), code = d ? 0 : 1;
    TF_Status *status = TF_NewStatus();
    char path[4096];
    for (int i = 0; !code && i < shards; i++) {
        snprintf(path, sizeof path, "%s/train-%d.tfrecords", folder, i);
        code = write_file(path, d, i, shards, DIGITS_TRAIN + DIGITS_VALID, status);
    }
    snprintf(path, sizeof path, "%s/test.tfrecords", folder);
    if (!code) code = write_file(path, d, DIGITS_TRAIN + DIGITS_VALID, 1, DIGITS_ALL, status);
    if (!code) printf("%d digits to train, %d to test, in %s\n", DIGITS_TRAIN + DIGITS_VALID, DIGITS_TEST, folder);
    TF_DeleteStatus(status);
    free(d);
    return code;
}

int main(int argc, char **argv) {
    return rill_main(argc, argv, program, NULL);
}
