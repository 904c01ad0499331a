/* save_load.c: SaveDataset, SaveDatasetV2, LoadDataset: a dataset in files, and back. */
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/rng.h"
#include "io/snapshot.h"
#include "ops/dataset/dataset.h"
#include "ops/dataset/shard_writers.h"
#include "ops/dataset/snapshot_reader.h"
#include "ops/op_list.h"

const OpDef dataset_save_ops[] = {
    {"SaveDataset", "input_dataset: variant, path: string, shard_func_other_args: Tshard_func_args ->",
     "compression: string = ''; shard_func: func; use_shard_func: bool = true; Tshard_func_args: list(type) >= 0",
     OP_STATEFUL},
    {"SaveDatasetV2",
     "input_dataset: variant, path: string, shard_func_other_args: Tshard_func_args -> handle: variant",
     "compression: string = ''; shard_func: func; use_shard_func: bool = true; Tshard_func_args: list(type) >= 0; "
     "output_types: list(type) >= 1; output_shapes: list(shape) >= 1",
     OP_STATEFUL},
    {"LoadDataset", "path: string, reader_func_other_args: Treader_func_args -> handle: variant",
     "output_types: list(type) >= 1; output_shapes: list(shape) >= 1; compression: string = ''; reader_func: func; "
     "Treader_func_args: list(type) >= 0",
     OP_STATEFUL},
    {0},
};

/* ---- Saving ---- */

typedef struct SaveDataset {
    Dataset base; /* its closure names the shard of an element; NULL: all in one */
    char *path, *compression;
} SaveDataset;

typedef struct SaveIterator {
    DatasetIterator base;
    bool begun;
    ShardWriters *writers; /* NULL before it has begun and once all is written */
    uint64_t run_id;
    int64_t count;
} SaveIterator;

static Error *write_metadata(SaveIterator *s, bool finalized) {
    const SaveDataset *d = (const SaveDataset *)s->base.dataset;
    char run_id[24];
    snprintf(run_id, sizeof run_id, "%llu", (unsigned long long)s->run_id);
    SnapshotMetadata m = {.run_id = run_id,
                          .created_us = clock_wall_us(),
                          .version = SNAPSHOT_VERSION_RECORDS,
                          .element_count = finalized ? s->count : 0,
                          .types = d->base.types,
                          .type_count = d->base.component_count,
                          .finalized = finalized};
    return snapshot_metadata_write(&file_system_local, d->path, &m);
}

static Error *open_run(SaveIterator *s) {
    const SaveDataset *d = (const SaveDataset *)s->base.dataset;
    char name[24];
    snprintf(name, sizeof name, "%llu", (unsigned long long)s->run_id);
    char *dir = snapshot_path(d->path, name);
    Error *err = shard_writers_new(dir, d->compression, SNAPSHOT_VERSION_RECORDS, &s->writers);
    if (!err) err = write_metadata(s, false);
    s->begun = !err;
    free(dir);
    return err;
}

/* Gives on what it writes; at the end of the input what is written counts. */
static Error *next_saved(DatasetIterator *it, IteratorContext *c, Tensor **out, bool *end) {
    SaveIterator *s = (SaveIterator *)it;
    int n = it->dataset->component_count;
    int64_t shard = 0;
    Error *err = NULL;
    if (!s->begun) {
        s->run_id = rng_entropy();
        err = open_run(s);
    }
    *end = !err && !s->writers;
    if (!err && !*end) err = iterator_next(it->input, c, out, end);
    if (err || !s->writers) return err;
    if (*end) {
        err = shard_writers_finish(s->writers);
        shard_writers_free(s->writers);
        s->writers = NULL;
        return err ? err : write_metadata(s, true);
    }
    s->count++;
    err = shard_of_element(it->dataset->closure, c, out, n, &shard);
    return err ? err : shard_writers_add(s->writers, shard, out, n);
}

static void stop_save(DatasetIterator *it) {
    shard_writers_free(((SaveIterator *)it)->writers);
}

static Error *save_save(DatasetIterator *it, IteratorState *s) {
    SaveIterator *i = (SaveIterator *)it;
    state_put_int(s, i->begun);
    state_put_int(s, i->writers != NULL);
    if (!i->writers) return i->begun ? NULL : iterator_save_input(it, s);
    Error *err = shard_writers_finish(i->writers);
    state_put_int(s, (int64_t)i->run_id);
    state_put_int(s, i->count);
    shard_writers_save(i->writers, s);
    return err ? err : iterator_save_input(it, s);
}

static Error *restore_save(DatasetIterator *it, IteratorContext *c, IteratorState *s) {
    SaveIterator *i = (SaveIterator *)it;
    int64_t begun = 0, writing = 0, run_id = 0;
    Error *err = state_get_range(s, 0, 1, &begun);
    if (!err) err = state_get_range(s, 0, begun, &writing);
    i->begun = begun;
    if (!err && !begun) return iterator_restore_input(it, c, s);
    if (err || !writing) return err;
    if (!err) err = state_get_int(s, &run_id);
    if (!err) err = state_get_range(s, 0, INT64_MAX, &i->count);
    i->run_id = (uint64_t)run_id;
    if (!err) err = open_run(i);
    if (!err) err = shard_writers_restore(i->writers, s);
    return err ? err : iterator_restore_input(it, c, s);
}

static int64_t count_input(const Dataset *d) {
    return dataset_cardinality(d->inputs[0]);
}

static void destroy_save(Dataset *d) {
    free(((SaveDataset *)d)->path);
    free(((SaveDataset *)d)->compression);
}

static const DatasetKind save_kind = {.name = "SaveV2",
                                      .size = sizeof(SaveDataset),
                                      .iterator_size = sizeof(SaveIterator),
                                      .destroy = destroy_save,
                                      .cardinality = count_input,
                                      .start = iterator_start_input,
                                      .next = next_saved,
                                      .save = save_save,
                                      .restore = restore_save,
                                      .stop = stop_save};

static Error *make_save(KernelContext *k, Dataset **out) {
    Dataset *in = NULL;
    Str path = STR(""), compression = STR("");
    bool sharded = true;
    Closure *f = NULL;
    Error *err = kernel_dataset(k, 0, &in);
    if (!err) err = kernel_string(k, 1, "path", &path);
    if (!err) err = node_attr_string(k->node, "compression", &compression);
    if (!err) err = node_attr_bool(k->node, "use_shard_func", &sharded);
    if (!err && sharded) err = kernel_closure(k, "shard_func", "Tshard_func_args", 2, &f, NULL);
    if (err) return err;
    SaveDataset *d = (SaveDataset *)dataset_like(&save_kind, in);
    d->base.closure = f;
    d->path = str_dup(path);
    d->compression = str_dup(compression);
    *out = &d->base;
    return NULL;
}

static Error *run_save_v2(KernelContext *k) {
    Dataset *d = NULL;
    Error *err = make_save(k, &d);
    if (!err) kernel_set_dataset(k, 0, d);
    return err;
}

static void save_all(KernelContext *k, void *arg) {
    Dataset *d = arg;
    DatasetIterator *it = NULL;
    IteratorContext c = {.cancel = kernel_cancel(k), .scope = closure_scope_new(k)};
    Tensor **element = tuple_new(d->component_count);
    Error *err = dataset_iterate(d, &c, &it);
    for (bool end = false; !err && !end;) {
        err = iterator_next(it, &c, element, &end);
        tuple_clear(element, d->component_count);
    }
    tuple_free(element, d->component_count);
    iterator_free(it);
    closure_scope_free(c.scope);
    dataset_unref(d);
    kernel_done(k, err);
}

static Error *run_save(KernelContext *k) {
    Dataset *d = NULL;
    Error *err = make_save(k, &d);
    if (!err) kernel_block(k, save_all, d);
    return err;
}

/* ---- Loading ---- */

typedef struct LoadDataset {
    Dataset base; /* its closure makes one dataset of those of the shards */
    char *run_dir, *compression;
    int64_t version, count;
} LoadDataset;

typedef struct LoadIterator {
    DatasetIterator base; /* input: over what the function returned */
    int64_t given;
} LoadIterator;

static Error *start_load(DatasetIterator *it, IteratorContext *c) {
    const LoadDataset *d = (const LoadDataset *)it->dataset;
    return snapshot_read_run(d->run_dir, d->compression, d->version, d->base.types, d->base.component_count,
                             d->base.closure, c, &it->input);
}

static Error *next_loaded(DatasetIterator *it, IteratorContext *c, Tensor **out, bool *end) {
    Error *err = iterator_next(it->input, c, out, end);
    if (!err && !*end) ((LoadIterator *)it)->given++;
    return err;
}

static Error *save_load(DatasetIterator *it, IteratorState *s) {
    state_put_int(s, ((LoadIterator *)it)->given);
    return NULL;
}

static Error *restore_load(DatasetIterator *it, IteratorContext *c, IteratorState *s) {
    LoadIterator *l = (LoadIterator *)it;
    Error *err = state_get_range(s, 0, INT64_MAX, &l->given);
    return err ? err : iterator_skip(it->input, c, l->given);
}

static int64_t count_loaded(const Dataset *d) {
    return ((const LoadDataset *)d)->count;
}

static void destroy_load(Dataset *d) {
    free(((LoadDataset *)d)->run_dir);
    free(((LoadDataset *)d)->compression);
}

static const DatasetKind load_kind = {.name = "Load",
                                      .size = sizeof(LoadDataset),
                                      .iterator_size = sizeof(LoadIterator),
                                      .destroy = destroy_load,
                                      .cardinality = count_loaded,
                                      .start = start_load,
                                      .next = next_loaded,
                                      .save = save_load,
                                      .restore = restore_load};

static void load(KernelContext *k, void *arg) {
    Str path_text = STR(""), compression = STR("");
    SnapshotMetadata m = {0};
    bool exists = false;
    Dataset *d = NULL;
    Closure *f = arg;
    Error *err = kernel_string(k, 0, "path", &path_text);
    char *path = str_dup(path_text);
    if (!err) err = node_attr_string(k->node, "compression", &compression);
    if (!err) err = snapshot_metadata_read(&file_system_local, path, &m, &exists);
    if (!err && !exists) err = error_new(CODE_NOT_FOUND, "Could not find metadata file [%s]", path);
    if (!err) err = dataset_from_attr(k, &load_kind, "output_types", NULL, 0, &d);
    if (!err) {
        LoadDataset *l = (LoadDataset *)d;
        l->run_dir = snapshot_path(path, m.run_id);
        l->compression = str_dup(compression);
        l->version = m.version;
        l->count = m.element_count;
        d->closure = closure_ref(f);
        kernel_set_dataset(k, 0, d);
    }
    snapshot_metadata_clear(&m);
    closure_unref(f);
    free(path);
    if (!err) {
        err = k->error;
        k->error = NULL;
    }
    kernel_done(k, err);
}

static Error *run_load(KernelContext *k) {
    Closure *f = NULL;
    Error *err = kernel_closure(k, "reader_func", "Treader_func_args", 1, &f, NULL);
    if (!err) kernel_block(k, load, f);
    return err;
}

const KernelDef dataset_save_cpu[] = {
    {"SaveDataset", .run = run_save, .flags = KERNEL_DEFERS},
    {"SaveDatasetV2", .run = run_save_v2},
    {"LoadDataset", .run = run_load, .flags = KERNEL_DEFERS},
    {0},
};
