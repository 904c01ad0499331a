/* record_input.c: RecordInput: batches of records of many files, in random order, without end. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/rng.h"
#include "io/record.h"
#include "ops/op_list.h"

const OpDef record_input_ops[] = {
    {"RecordInput", "-> records: string",
     "file_pattern: string; file_random_seed: int = 301; file_shuffle_shift_ratio: float = 0.0; file_buffer_size: int "
     "= 10000; file_parallelism: int = 16; batch_size: int = 32; compression_type: string = ''",
     OP_STATEFUL},
    {0},
};

typedef struct RecordState {
    char *pattern;
    Compression compression;
    int64_t batch, buffer_size;
    float shift; /* of the order of files from epoch to epoch, as a part of their number */

    pthread_mutex_t mutex; /* guards what follows */
    PhiloxStream random;
    PathList files; /* shuffled; found when first used */
    size_t next;    /* file */
    size_t left;    /* files of this epoch */
    int64_t epoch;
    RecordReader *reader; /* of the file before it */
    bool found_any;       /* a record, in this epoch */
    TString *buffer;      /* waiting records */
    size_t count, capacity;
} RecordState;

static Error *record_init(const Node *node, void *state) {
    RecordState *st = state;
    Str pattern, compression;
    int64_t seed = 0;
    Error *err = node_attr_string(node, "file_pattern", &pattern);
    if (!err) err = node_attr_string(node, "compression_type", &compression);
    if (!err) err = compression_from_name(compression, &st->compression);
    if (!err) err = node_attr_int(node, "file_random_seed", &seed);
    if (!err) err = node_attr_float(node, "file_shuffle_shift_ratio", &st->shift);
    if (!err) err = node_attr_int(node, "file_buffer_size", &st->buffer_size);
    if (!err) err = node_attr_int(node, "batch_size", &st->batch);
    if (err) return err;
    if (st->batch < 1 || st->buffer_size < 1) return error_invalid("batch_size and file_buffer_size must be positive");
    if (!(st->shift >= 0 && st->shift <= 1)) return error_invalid("file_shuffle_shift_ratio must be in [0, 1]");
    st->pattern = str_dup(pattern);
    st->random = philox_stream(philox_from_seeds((uint64_t)seed, 0));
    pthread_mutex_init(&st->mutex, NULL);
    return NULL;
}

static void record_clear(void *state) {
    RecordState *st = state;
    record_reader_close(st->reader);
    for (size_t i = 0; i < st->count; i++) tstring_clear(&st->buffer[i]);
    free(st->buffer);
    free(st->pattern);
    path_list_clear(&st->files);
    pthread_mutex_destroy(&st->mutex);
}

static size_t draw_below(RecordState *st, size_t n) {
    return (size_t)((uint64_t)philox_stream_next(&st->random) * n >> 32);
}

/* Another order for the next epoch: shuffled, then turned by the shift. */
static void shuffle_files(RecordState *st) {
    char **items = st->files.items;
    const size_t n = st->files.count;
    for (size_t i = n; i > 1; i--) {
        size_t j = draw_below(st, i);
        char *t = items[i - 1];
        items[i - 1] = items[j];
        items[j] = t;
    }
    st->next = (size_t)((double)st->shift * (double)st->epoch * (double)n) % n;
    st->epoch++;
}

/* Opens the next file; after the last one begins again. */
static Error *next_file(RecordState *st) {
    if (st->left == 0) {
        if (st->epoch > 0 && !st->found_any) return error_invalid("No record in the files that match %s", st->pattern);
        shuffle_files(st);
        st->found_any = false;
        st->left = st->files.count;
    }
    const char *path = st->files.items[st->next];
    st->next = (st->next + 1) % st->files.count;
    st->left--;
    return record_reader_open(&file_system_local, path, st->compression, &st->reader);
}

/* No further than the end of the epoch: its last records are drawn before the next one begins, so that none comes twice in one. */
static Error *fill_buffer(RecordState *st, size_t want) {
    while (st->count < want) {
        Str record;
        bool more = false;
        Error *err = st->reader ? record_reader_next(st->reader, &record, &more) : NULL;
        if (err) return err;
        if (!more) {
            record_reader_close(st->reader);
            st->reader = NULL;
            if (st->left == 0 && st->count > 0) return NULL;
            err = next_file(st);
            if (err) return err;
            continue;
        }
        st->found_any = true;
        st->buffer = vec_reserve(st->buffer, &st->capacity, st->count + 1, sizeof *st->buffer);
        st->buffer[st->count] = (TString){0};
        tstring_set(&st->buffer[st->count++], record);
    }
    return NULL;
}

static Error *draw_batch(RecordState *st, Tensor *z) {
    Error *err = NULL;
    if (st->files.count == 0) {
        err = file_glob(&file_system_local, st->pattern, &st->files);
        if (!err && st->files.count == 0) err = error_not_found("Found no files at %s", st->pattern);
    }
    for (int64_t i = 0; !err && i < z->count; i++) {
        err = fill_buffer(st, (size_t)st->buffer_size);
        if (err) break;
        size_t at = draw_below(st, st->count);
        tstring_move(&tensor_str(z)[i], &st->buffer[at]);
        st->buffer[at] = st->buffer[--st->count];
    }
    return err;
}

static Error *record_input(KernelContext *k) {
    RecordState *st = k->state;
    Shape shape = shape_vector(st->batch);
    Tensor *z = kernel_output(k, 0, &shape);
    if (!z) return NULL;
    pthread_mutex_lock(&st->mutex);
    Error *err = draw_batch(st, z);
    pthread_mutex_unlock(&st->mutex);
    return err;
}

const KernelDef record_input_cpu[] = {
    {"RecordInput", .run = record_input, .state_size = sizeof(RecordState), .init = record_init, .clear = record_clear,
     .flags = KERNEL_EXPENSIVE | KERNEL_PER_SESSION},
    {0},
};
