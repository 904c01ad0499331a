/* snapshot_dataset.c: SnapshotDatasetV2: writes its input to files on the first full pass, reads them on later ones.

   Below the path a folder named by a hash of the input holds what was written for that input; see io/snapshot.h. */
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/rng.h"
#include "io/snapshot.h"
#include "ops/dataset/dataset.h"
#include "ops/dataset/dataset_origin.h"
#include "ops/dataset/shard_writers.h"
#include "ops/dataset/snapshot_reader.h"
#include "ops/op_list.h"

const OpDef dataset_snapshot_ops[] = {
    {"SnapshotDatasetV2",
     "input_dataset: variant, path: string, reader_func_other_args: Treader_func_args, shard_func_other_args: "
     "Tshard_func_args -> handle: variant",
     "output_types: list(type) >= 1; output_shapes: list(shape) >= 1; compression: string = ''; reader_prefix: string "
     "= ''; writer_prefix: string = ''; hash_valid: bool = false; hash: int = 0; reader_func: func; shard_func: func; "
     "Treader_func_args: list(type) >= 0; Tshard_func_args: list(type) >= 0; metadata: string = ''",
     0},
    {0},
};

typedef struct SnapshotDataset {
    Dataset base;
    char *read_dir, *write_dir; /* those of the hash */
    char *compression;
    uint64_t hash;
    Closure *reader_func, *shard_func;
} SnapshotDataset;

typedef enum SnapshotMode { SNAPSHOT_UNDECIDED, SNAPSHOT_READS, SNAPSHOT_WRITES, SNAPSHOT_ENDED } SnapshotMode;

typedef struct SnapshotIterator {
    DatasetIterator base; /* input: what is written, or what is read */
    SnapshotMode mode;
    ShardWriters *writers;
    uint64_t run_id;
    int64_t given;
} SnapshotIterator;

static Error *write_metadata(SnapshotIterator *s, bool finalized) {
    const SnapshotDataset *d = (const SnapshotDataset *)s->base.dataset;
    char hash[24], run_id[24];
    snprintf(hash, sizeof hash, "%llu", (unsigned long long)d->hash);
    snprintf(run_id, sizeof run_id, "%llu", (unsigned long long)s->run_id);
    SnapshotMetadata m = {.graph_hash = hash,
                          .run_id = run_id,
                          .created_us = clock_wall_us(),
                          .version = SNAPSHOT_VERSION_RECORDS,
                          .types = d->base.types,
                          .type_count = d->base.component_count,
                          .finalized = finalized};
    return snapshot_metadata_write(&file_system_local, d->write_dir, &m);
}

static Error *open_run(SnapshotIterator *s) {
    const SnapshotDataset *d = (const SnapshotDataset *)s->base.dataset;
    char name[24];
    snprintf(name, sizeof name, "%llu", (unsigned long long)s->run_id);
    char *dir = snapshot_path(d->write_dir, name);
    Error *err = shard_writers_new(dir, d->compression, SNAPSHOT_VERSION_RECORDS, &s->writers);
    free(dir);
    return err ? err : write_metadata(s, false);
}

static Error *begin_reading(SnapshotIterator *s, IteratorContext *c, const SnapshotMetadata *m) {
    const SnapshotDataset *d = (const SnapshotDataset *)s->base.dataset;
    char *dir = snapshot_path(d->read_dir, m->run_id);
    Error *err = snapshot_read_run(dir, d->compression, m->version, d->base.types, d->base.component_count,
                                   d->reader_func, c, &s->base.input);
    free(dir);
    if (!err) s->mode = SNAPSHOT_READS;
    return err;
}

/* What is not finalized is written anew, whoever may be writing. */
static Error *decide(SnapshotIterator *s, IteratorContext *c) {
    const SnapshotDataset *d = (const SnapshotDataset *)s->base.dataset;
    SnapshotMetadata m = {0};
    bool exists = false;
    Error *err = snapshot_metadata_read(&file_system_local, d->read_dir, &m, &exists);
    if (!err && exists && m.finalized) {
        err = begin_reading(s, c, &m);
    } else if (!err) {
        s->run_id = rng_entropy();
        err = open_run(s);
        if (!err) err = iterator_start_input(&s->base, c);
        if (!err) s->mode = SNAPSHOT_WRITES;
    }
    snapshot_metadata_clear(&m);
    return err;
}

static Error *start_snapshot(DatasetIterator *it, IteratorContext *c) {
    (void)c;
    return file_system_local.make_dir(((SnapshotDataset *)it->dataset)->write_dir);
}

static Error *finish_writing(SnapshotIterator *s) {
    Error *err = shard_writers_finish(s->writers);
    shard_writers_free(s->writers);
    s->writers = NULL;
    s->mode = SNAPSHOT_ENDED;
    return err ? err : write_metadata(s, true);
}

static Error *next_of_snapshot(DatasetIterator *it, IteratorContext *c, Tensor **out, bool *end) {
    SnapshotIterator *s = (SnapshotIterator *)it;
    int n = it->dataset->component_count;
    int64_t shard = 0;
    Error *err = s->mode == SNAPSHOT_UNDECIDED ? decide(s, c) : NULL;
    if (err) return err;
    *end = s->mode == SNAPSHOT_ENDED;
    if (!*end) err = iterator_next(it->input, c, out, end);
    if (err) return err;
    s->given += !*end;
    if (s->mode != SNAPSHOT_WRITES) return NULL;
    if (*end) return finish_writing(s);
    err = shard_of_element(((SnapshotDataset *)it->dataset)->shard_func, c, out, n, &shard);
    return err ? err : shard_writers_add(s->writers, shard, out, n);
}

static void stop_snapshot(DatasetIterator *it) {
    shard_writers_free(((SnapshotIterator *)it)->writers);
}

static Error *save_snapshot(DatasetIterator *it, IteratorState *s) {
    SnapshotIterator *i = (SnapshotIterator *)it;
    state_put_int(s, i->mode);
    state_put_text(s, str_of(((SnapshotDataset *)it->dataset)->write_dir));
    state_put_int(s, i->given);
    if (i->mode != SNAPSHOT_WRITES) return NULL;
    Error *err = shard_writers_finish(i->writers);
    state_put_int(s, (int64_t)i->run_id);
    shard_writers_save(i->writers, s);
    return err ? err : iterator_save_input(it, s);
}

static Error *restore_writing(SnapshotIterator *i, IteratorContext *c, IteratorState *s) {
    int64_t run_id = 0;
    Error *err = state_get_int(s, &run_id);
    i->run_id = (uint64_t)run_id;
    if (!err) err = open_run(i);
    if (!err) err = shard_writers_restore(i->writers, s);
    if (!err) i->mode = SNAPSHOT_WRITES;
    return err ? err : iterator_restore_input(&i->base, c, s);
}

static Error *restore_reading(SnapshotIterator *i, IteratorContext *c) {
    const SnapshotDataset *d = (const SnapshotDataset *)i->base.dataset;
    SnapshotMetadata m = {0};
    bool exists = false;
    Error *err = snapshot_metadata_read(&file_system_local, d->read_dir, &m, &exists);
    if (!err && !exists)
        err = error_new(CODE_DATA_LOSS, "Snapshot metadata file in %s does not exist any more.", d->read_dir);
    if (!err) err = begin_reading(i, c, &m);
    if (!err) err = iterator_skip(i->base.input, c, i->given);
    snapshot_metadata_clear(&m);
    return err;
}

static Error *restore_snapshot(DatasetIterator *it, IteratorContext *c, IteratorState *s) {
    SnapshotIterator *i = (SnapshotIterator *)it;
    const char *dir = ((SnapshotDataset *)it->dataset)->write_dir;
    int64_t mode = 0;
    Str saved = STR("");
    Error *err = state_get_range(s, SNAPSHOT_UNDECIDED, SNAPSHOT_ENDED, &mode);
    if (!err) err = state_get_text(s, &saved);
    if (!err && !str_is(saved, dir))
        err = error_new(CODE_DATA_LOSS,
                        "Dataset has changed while restoring from the checkpoint. Old hash directory: %.*s; new hash "
                        "directory: %s",
                        STR_ARG(saved), dir);
    if (!err) err = state_get_range(s, 0, INT64_MAX, &i->given);
    if (err) return err;
    if (mode == SNAPSHOT_READS) return restore_reading(i, c);
    if (mode == SNAPSHOT_WRITES) return restore_writing(i, c, s);
    i->mode = (SnapshotMode)mode;
    return NULL;
}

static int64_t count_input(const Dataset *d) {
    return dataset_cardinality(d->inputs[0]);
}

static void destroy_snapshot(Dataset *d) {
    SnapshotDataset *s = (SnapshotDataset *)d;
    closure_unref(s->reader_func);
    closure_unref(s->shard_func);
    free(s->read_dir);
    free(s->write_dir);
    free(s->compression);
}

static const DatasetKind snapshot_kind = {.name = "SnapshotV2",
                                          .size = sizeof(SnapshotDataset),
                                          .iterator_size = sizeof(SnapshotIterator),
                                          .destroy = destroy_snapshot,
                                          .cardinality = count_input,
                                          .start = start_snapshot,
                                          .next = next_of_snapshot,
                                          .save = save_snapshot,
                                          .restore = restore_snapshot,
                                          .stop = stop_snapshot};

/* PREFIX/PATH/HASH */
static char *hash_dir(Str prefix, Str path, uint64_t hash) {
    char name[24], *whole = snapshot_prefixed(prefix, path);
    snprintf(name, sizeof name, "%llu", (unsigned long long)hash);
    char *dir = snapshot_path(whole, name);
    free(whole);
    return dir;
}

static Error *run_snapshot(KernelContext *k) {
    Dataset *in = NULL;
    Str path = STR(""), compression = STR(""), read_prefix = STR(""), write_prefix = STR("");
    bool hash_valid = false;
    int64_t hash = 0;
    int next = 2;
    Closure *reader = NULL, *shard = NULL;
    Error *err = kernel_dataset(k, 0, &in);
    if (!err) err = kernel_string(k, 1, "path", &path);
    if (!err) err = node_attr_string(k->node, "compression", &compression);
    if (!err) err = node_attr_string(k->node, "reader_prefix", &read_prefix);
    if (!err) err = node_attr_string(k->node, "writer_prefix", &write_prefix);
    if (!err) err = node_attr_bool(k->node, "hash_valid", &hash_valid);
    if (!err) err = node_attr_int(k->node, "hash", &hash);
    if (!err) err = kernel_closure(k, "reader_func", "Treader_func_args", 2, &reader, &next);
    if (!err) err = kernel_closure(k, "shard_func", "Tshard_func_args", next, &shard, NULL);
    if (err) {
        closure_unref(reader);
        return err;
    }
    SnapshotDataset *d = (SnapshotDataset *)dataset_like(&snapshot_kind, in);
    d->hash = hash_valid ? (uint64_t)hash : dataset_fingerprint(in);
    d->read_dir = hash_dir(read_prefix, path, d->hash);
    d->write_dir = hash_dir(write_prefix, path, d->hash);
    d->compression = str_dup(str_is(compression, "AUTO") ? STR("SNAPPY") : compression);
    d->reader_func = reader;
    d->shard_func = shard;
    kernel_set_dataset(k, 0, &d->base);
    return NULL;
}

const KernelDef dataset_snapshot_cpu[] = {
    {"SnapshotDatasetV2", .run = run_snapshot},
    {0},
};
