/* legacy_snapshot.c: SnapshotDataset: passes its input on and writes it to files, or reads those.

   Below the path a folder, named by a hash of the input or by the user, holds snapshot.metadata and a folder for each
   run, and that the files NNNNNNNN.snapshot; see io/snapshot.h. A run is finalized with its last element, not behind
   it: the next element is always read ahead. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/fingerprint.h"
#include "base/memory.h"
#include "base/rng.h"
#include "io/snapshot.h"
#include "ops/dataset/dataset.h"
#include "ops/dataset/dataset_origin.h"
#include "ops/dataset/snapshot_reader.h"
#include "ops/op_list.h"

const OpDef dataset_legacy_snapshot_ops[] = {
    {"SnapshotDataset", "input_dataset: variant, path: string -> handle: variant",
     "output_types: list(type) >= 1; output_shapes: list(shape) >= 1; compression: string = ''; reader_path_prefix: "
     "string = ''; writer_path_prefix: "
     "string = ''; shard_size_bytes: int = 10737418240; pending_snapshot_expiry_seconds: int = 86400; "
     "num_reader_threads: int = 1; "
     "reader_buffer_size: int = 1; num_writer_threads: int = 1; writer_buffer_size: int = 1; shuffle_on_read: bool = "
     "false; seed: int = 0; "
     "seed2: int = 0; mode: string = 'auto'; snapshot_name: string = ''",
     0},
    {0},
};

typedef enum SnapshotUse { USE_UNDECIDED, USE_READ, USE_WRITE, USE_PASS } SnapshotUse;

typedef struct LegacySnapshot {
    Dataset base;
    char *hash, *dir; /* the folder of the hash, or of the name that the user gave */
    char *read_prefix, *write_prefix, *compression;
    SnapshotUse use; /* undecided: as the files say */
    bool named, shuffles;
    int64_t shard_bytes, expiry_s;
    uint64_t seed, seed2;
} LegacySnapshot;

typedef struct LegacyIterator {
    DatasetIterator base; /* input: what is written or passed on */
    SnapshotUse use;
    char *run_id, *run_dir;
    /* Writing: */
    SnapshotWriter *writer; /* NULL between files */
    int64_t file_count;
    double bytes, ratio; /* of elements, in the file; to bytes of the file, 0: not known yet */
    Tensor **ahead;      /* the next element */
    bool begun, ended;
    /* Reading: */
    PathList files;
    size_t file;
    SnapshotReader *reader;
    int64_t given;
} LegacyIterator;

static const LegacySnapshot *snapshot_of(const LegacyIterator *l) {
    return (const LegacySnapshot *)l->base.dataset;
}

static int width(const LegacyIterator *l) {
    return l->base.dataset->component_count;
}

/* ---- Writing ---- */

static Error *write_metadata(const LegacyIterator *l, bool finalized) {
    const LegacySnapshot *d = snapshot_of(l);
    SnapshotMetadata m = {.graph_hash = d->hash,
                          .run_id = l->run_id,
                          .created_us = clock_wall_us(),
                          .version = SNAPSHOT_VERSION_CUSTOM,
                          .types = d->base.types,
                          .type_count = d->base.component_count,
                          .finalized = finalized};
    return snapshot_metadata_write(&file_system_local, d->dir, &m);
}

static Error *open_file(LegacyIterator *l) {
    char *path = snapshot_file(l->run_dir, l->file_count);
    Error *err = snapshot_writer_open(&file_system_local, path, str_of(snapshot_of(l)->compression),
                                      SNAPSHOT_VERSION_CUSTOM, &l->writer);
    if (!err) l->file_count++;
    l->bytes = 0;
    free(path);
    return err;
}

static Error *close_file(LegacyIterator *l) {
    Error *err = l->writer ? snapshot_writer_finish(l->writer) : NULL;
    snapshot_writer_close(l->writer);
    l->writer = NULL;
    return err;
}

/* Strings count with the 24 bytes that each takes in TensorFlow's memory. */
static double element_bytes(Tensor *const *element, int count) {
    double sum = 0;
    for (int i = 0; i < count; i++) {
        if (element[i]->dtype != DT_STRING) {
            sum += (double)tensor_bytes(element[i]);
            continue;
        }
        for (int64_t j = 0; j < element[i]->count; j++) sum += 24 + (double)tstring_str(&tensor_str(element[i])[j]).len;
    }
    return sum;
}

/* Whether an element that brings the file to l->bytes belongs into a new one. How well the elements are compressed is
 * looked up once. */
static Error *is_full(LegacyIterator *l, bool *full) {
    double limit = (double)snapshot_of(l)->shard_bytes;
    *full = l->ratio > 0 && l->bytes > l->ratio * limit;
    if (l->ratio > 0 || l->bytes <= limit) return NULL;
    char *path = snapshot_file(l->run_dir, l->file_count - 1);
    uint64_t size = 0;
    Error *err = snapshot_writer_flush(l->writer);
    if (!err) err = file_system_local.size(path, &size);
    if (!err)
        l->ratio = size ? l->bytes / (double)size
                        : INFINITY; /* a first element that is too large makes all files one, as in TensorFlow */
    *full = !err && (double)size >= limit;
    free(path);
    return err;
}

static Error *write_ahead(LegacyIterator *l) {
    bool full = false;
    l->bytes += element_bytes(l->ahead, width(l));
    Error *err = l->writer ? is_full(l, &full) : open_file(l);
    if (!err && full) err = close_file(l);
    if (!err && full) err = open_file(l);
    return err ? err : snapshot_writer_add(l->writer, l->ahead, width(l));
}

/* Another run may have begun meanwhile: then this one does not count. */
static Error *finalize(LegacyIterator *l) {
    SnapshotMetadata m = {0};
    bool exists = false;
    Error *err = close_file(l);
    if (!err) err = snapshot_metadata_read(&file_system_local, snapshot_of(l)->dir, &m, &exists);
    if (!err && exists && str_is(str_of(m.run_id), l->run_id)) err = write_metadata(l, true);
    snapshot_metadata_clear(&m);
    return err;
}

static Error *read_ahead(LegacyIterator *l, IteratorContext *c) {
    if (l->ended) return NULL;
    Error *err = iterator_next(l->base.input, c, l->ahead, &l->ended);
    if (err) return err;
    return l->ended ? finalize(l) : write_ahead(l);
}

static Error *next_written(LegacyIterator *l, IteratorContext *c, Tensor **out, bool *end) {
    Error *err = NULL;
    if (!l->begun) {
        err = file_system_local.make_dir(l->run_dir);
        if (!err) err = write_metadata(l, false);
        if (!err) err = open_file(l);
        if (!err) err = read_ahead(l, c);
        if (err) return err;
        l->begun = true;
    }
    *end = l->ended;
    tuple_move(out, l->ahead, width(l));
    return read_ahead(l, c);
}

/* ---- Reading ---- */

static void shuffle_files(LegacyIterator *l) {
    const LegacySnapshot *d = snapshot_of(l);
    PhiloxStream random =
        philox_stream(d->seed || d->seed2 ? philox_from_seeds(d->seed, d->seed2) : philox_from_seeds(rng_entropy(), 0));
    for (size_t i = l->files.count; i > 1; i--) {
        size_t other = philox_stream_below(&random, (uint32_t)i);
        char *path = l->files.items[i - 1];
        l->files.items[i - 1] = l->files.items[other];
        l->files.items[other] = path;
    }
}

static Error *find_files(LegacyIterator *l) {
    char *pattern = snapshot_path(l->run_dir, "*");
    Error *err = file_glob(&file_system_local, pattern, &l->files);
    free(pattern);
    if (!err && !l->files.count) err = error_new(CODE_NOT_FOUND, "Could not find any files in dir: %s", l->run_dir);
    if (!err && snapshot_of(l)->shuffles) shuffle_files(l);
    return err;
}

static Error *next_read(LegacyIterator *l, Tensor **out, bool *end) {
    const LegacySnapshot *d = snapshot_of(l);
    for (bool more = false; !more;) {
        Error *err = NULL;
        if (!l->reader) {
            *end = l->file >= l->files.count;
            if (*end) return NULL;
            char *path = snapshot_prefixed(str_of(d->read_prefix), str_of(l->files.items[l->file++]));
            err = snapshot_reader_open(&file_system_local, path, str_of(d->compression), SNAPSHOT_VERSION_CUSTOM,
                                       d->base.types, width(l), &l->reader);
            free(path);
        }
        if (!err) err = snapshot_reader_next(l->reader, out, &more);
        if (err) return err;
        if (!more) {
            snapshot_reader_close(l->reader);
            l->reader = NULL;
        }
    }
    l->given++;
    return NULL;
}

static Error *check_types(const LegacyIterator *l, const SnapshotMetadata *m) {
    const Dataset *d = l->base.dataset;
    if (m->type_count != d->component_count)
        return error_internal("Expected number of dtypes: %d but number in snapshot: %d", d->component_count,
                              m->type_count);
    for (int i = 0; i < m->type_count; i++)
        if (m->types[i] != d->types[i])
            return error_internal("Type: %d doesn't match. Snapshot: %s; dataset: %s", i, dtype_name(m->types[i]),
                                  dtype_name(d->types[i]));
    return NULL;
}

/* ---- Which of these it is ---- */

static SnapshotUse use_of(const LegacySnapshot *d, const SnapshotMetadata *m, bool exists) {
    if (d->use != USE_UNDECIDED) return d->use;
    if (!exists) return USE_WRITE;
    if (m->finalized) return USE_READ;
    return m->created_us >= clock_wall_us() - d->expiry_s * 1000000
               ? USE_PASS
               : USE_WRITE; /* somebody writes; or has begun it long ago */
}

/* The folder of the run; a NULL run_id: a new one. */
static void set_run(LegacyIterator *l, const char *run_id) {
    const LegacySnapshot *d = snapshot_of(l);
    l->run_id = d->named ? xstrdup("custom")
                : run_id ? xstrdup(run_id)
                         : xasprintf("%04llx", (unsigned long long)rng_entropy());
    char *dir = snapshot_path(d->dir, l->run_id);
    l->run_dir = l->use == USE_WRITE ? snapshot_prefixed(str_of(d->write_prefix), str_of(dir)) : xstrdup(dir);
    free(dir);
}

static Error *decide(LegacyIterator *l, IteratorContext *c) {
    const LegacySnapshot *d = snapshot_of(l);
    SnapshotMetadata m = {0};
    bool exists = false;
    Error *err = snapshot_metadata_read(&file_system_local, d->dir, &m, &exists);
    SnapshotUse use = err ? USE_UNDECIDED : use_of(d, &m, exists);
    l->use = use;
    if (!err && use == USE_READ && !exists) err = error_new(CODE_NOT_FOUND, "Metadata file does not exist.");
    if (!err && use == USE_READ && !d->named && !*m.run_id)
        err = error_new(CODE_NOT_FOUND, "Could not find a valid snapshot to read.");
    if (!err && use == USE_READ) err = check_types(l, &m);
    if (!err && use != USE_PASS) set_run(l, use == USE_READ ? m.run_id : NULL);
    if (!err) err = use == USE_READ ? find_files(l) : iterator_start_input(&l->base, c);
    if (err) l->use = USE_UNDECIDED;
    snapshot_metadata_clear(&m);
    return err;
}

static void forget(LegacyIterator *l) {
    snapshot_writer_close(l->writer);
    snapshot_reader_close(l->reader);
    path_list_clear(&l->files);
    free(l->run_id);
    free(l->run_dir);
    l->writer = NULL;
    l->reader = NULL;
    l->run_id = l->run_dir = NULL;
}

static Error *start_legacy(DatasetIterator *it, IteratorContext *c) {
    (void)c;
    ((LegacyIterator *)it)->ahead = tuple_new(it->dataset->component_count);
    return NULL;
}

static Error *next_legacy(DatasetIterator *it, IteratorContext *c, Tensor **out, bool *end) {
    LegacyIterator *l = (LegacyIterator *)it;
    Error *err = l->use == USE_UNDECIDED ? decide(l, c) : NULL;
    if (err) forget(l);
    if (err) return err;
    if (l->use == USE_READ) return next_read(l, out, end);
    return l->use == USE_WRITE ? next_written(l, c, out, end) : iterator_next(it->input, c, out, end);
}

static void stop_legacy(DatasetIterator *it) {
    LegacyIterator *l = (LegacyIterator *)it;
    forget(l);
    tuple_free(l->ahead, it->dataset->component_count);
}

/* ---- Checkpoints ---- */

static Error *save_legacy(DatasetIterator *it, IteratorState *s) {
    LegacyIterator *l = (LegacyIterator *)it;
    state_put_int(s, l->use);
    state_put_int(s, l->given);
    if (l->use == USE_UNDECIDED || l->use == USE_READ) return NULL;
    Error *err = NULL;
    if (l->use == USE_WRITE) {
        bool ahead = l->begun && !l->ended;
        err = close_file(l); /* what follows goes into a new one */
        state_put_text(s, str_of(l->run_id));
        state_put_int(s, l->file_count);
        state_put_int(s, l->begun);
        state_put_int(s, l->ended);
        if (!err && ahead) err = state_put_element(s, l->ahead, width(l));
    }
    return err ? err : iterator_save_input(it, s);
}

static Error *restore_written(LegacyIterator *l, IteratorState *s) {
    Str run_id = STR("");
    int64_t begun = 0, ended = 0;
    Error *err = state_get_text(s, &run_id);
    if (!err) err = state_get_range(s, 0, INT64_MAX - 1, &l->file_count);
    if (!err) err = state_get_range(s, 0, 1, &begun);
    if (!err) err = state_get_range(s, 0, 1, &ended);
    if (!err && begun && !ended) err = state_get_element(s, l->base.dataset->types, width(l), l->ahead);
    if (err) return err;
    l->use = USE_WRITE;
    l->begun = begun;
    l->ended = ended;
    char *text = str_dup(run_id);
    set_run(l, text);
    free(text);
    return file_system_local.make_dir(l->run_dir);
}

static Error *restore_legacy(DatasetIterator *it, IteratorContext *c, IteratorState *s) {
    LegacyIterator *l = (LegacyIterator *)it;
    int64_t use = 0, given = 0;
    Error *err = state_get_range(s, USE_UNDECIDED, USE_PASS, &use);
    if (!err) err = state_get_range(s, 0, INT64_MAX, &given);
    if (err || use == USE_UNDECIDED) return err;
    if (use == USE_READ) return iterator_skip(it, c, given);
    if (use == USE_WRITE) err = restore_written(l, s);
    l->use = (SnapshotUse)use;
    return err ? err : iterator_restore_input(it, c, s);
}

/* ---- Kernel ---- */

static int64_t count_input(const Dataset *d) {
    return dataset_cardinality(d->inputs[0]);
}

static void destroy_legacy(Dataset *d) {
    LegacySnapshot *s = (LegacySnapshot *)d;
    free(s->hash);
    free(s->dir);
    free(s->read_prefix);
    free(s->write_prefix);
    free(s->compression);
}

static const DatasetKind legacy_kind = {.name = "Snapshot",
                                        .size = sizeof(LegacySnapshot),
                                        .iterator_size = sizeof(LegacyIterator),
                                        .destroy = destroy_legacy,
                                        .cardinality = count_input,
                                        .start = start_legacy,
                                        .next = next_legacy,
                                        .save = save_legacy,
                                        .restore = restore_legacy,
                                        .stop = stop_legacy};

static Error *text_attr(KernelContext *k, const char *name, char **out) {
    Str value = STR("");
    Error *err = node_attr_string(k->node, name, &value);
    if (!err) *out = str_dup(value);
    return err;
}

/* -1 is the default; what is less than 1 is refused. */
static Error *count_attr(KernelContext *k, const char *name, int64_t by_default, const char *what, int64_t *out) {
    Error *err = node_attr_int(k->node, name, out);
    if (!err && *out == -1) *out = by_default;
    if (!err && *out < 1) err = error_invalid("%s must be at least 1%s.", name, what);
    return err;
}

static Error *read_use(KernelContext *k, SnapshotUse *out) {
    static const char *const names[] = {"auto", "read", "write", "passthrough"};
    Str mode = STR("");
    Error *err = node_attr_string(k->node, "mode", &mode);
    for (int i = 0; !err && i < 4; i++) {
        *out = (SnapshotUse)i;
        if (str_is(mode, names[i])) return NULL;
    }
    return err ? err
               : error_invalid("mode must be either '%s', '%s', '%s', or '%s'.", names[0], names[1], names[2],
                               names[3]);
}

static Error *read_numbers(KernelContext *k, LegacySnapshot *d) {
    int64_t seed = 0, seed2 = 0, ignored = 0;
    Error *err = node_attr_int(k->node, "shard_size_bytes", &d->shard_bytes);
    if (!err && d->shard_bytes == -1) d->shard_bytes = INT64_C(10) << 30;
    if (!err) err = count_attr(k, "pending_snapshot_expiry_seconds", 86400, " second", &d->expiry_s);
    static const char *const counts[] = {"num_reader_threads", "reader_buffer_size", "num_writer_threads",
                                         "writer_buffer_size"};
    for (int i = 0; !err && i < 4; i++)
        err = count_attr(k, counts[i], 1, "", &ignored); /* one thread reads, one writes */
    if (!err) err = node_attr_bool(k->node, "shuffle_on_read", &d->shuffles);
    if (!err) err = node_attr_int(k->node, "seed", &seed);
    if (!err) err = node_attr_int(k->node, "seed2", &seed2);
    d->seed = (uint64_t)seed;
    d->seed2 = (uint64_t)seed2;
    return err;
}

/* What changes the files counts, besides the input. */
static char *hash_of(const LegacySnapshot *d, const Dataset *in, Str path) {
    uint64_t hash = dataset_fingerprint(in);
    StrBuf rest = {0};
    strbuf_addf(&rest, "%llx %.*s %s %s %s %lld", (unsigned long long)hash, STR_ARG(path), d->compression,
                d->read_prefix, d->write_prefix, (long long)d->shard_bytes);
    hash = fingerprint64(strbuf_str(&rest));
    strbuf_clear(&rest);
    return xasprintf("%016llx", (unsigned long long)hash);
}

static Error *run_legacy(KernelContext *k) {
    Dataset *in = NULL;
    Str path = STR(""), name = STR("");
    Error *err = kernel_dataset(k, 0, &in);
    if (!err) err = kernel_string(k, 1, "path", &path);
    if (!err) err = node_attr_string(k->node, "snapshot_name", &name);
    if (err) return err;
    LegacySnapshot *d = (LegacySnapshot *)dataset_like(&legacy_kind, in);
    err = text_attr(k, "compression", &d->compression);
    if (!err) err = text_attr(k, "reader_path_prefix", &d->read_prefix);
    if (!err) err = text_attr(k, "writer_path_prefix", &d->write_prefix);
    if (!err && *d->compression && strcmp(d->compression, "GZIP") && strcmp(d->compression, "SNAPPY"))
        err = error_invalid("compression must be either '', 'GZIP' or 'SNAPPY'.");
    if (!err) err = read_use(k, &d->use);
    if (!err) err = read_numbers(k, d);
    if (err) {
        dataset_unref(&d->base);
        return err;
    }
    d->named = name.len > 0;
    d->hash = d->named ? xasprintf("custom-%.*s", STR_ARG(name)) : hash_of(d, in, path);
    char *whole = str_dup(path);
    d->dir = snapshot_path(whole, d->hash);
    free(whole);
    kernel_set_dataset(k, 0, &d->base);
    return NULL;
}

const KernelDef dataset_legacy_snapshot_cpu[] = {
    {"SnapshotDataset", .run = run_legacy},
    {0},
};
