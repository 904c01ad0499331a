/* save_restore.c: SaveV2, RestoreV2, MergeV2Checkpoints, ShardedFilename, ShardedFilespec. */
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"
#include "io/bundle.h"
#include "ops/elements.h"
#include "ops/op_list.h"

const OpDef save_restore_ops[] = {
    {"SaveV2", "prefix: string, tensor_names: string, shape_and_slices: string, tensors: dtypes ->",
     "dtypes: list(type) >= 1", OP_STATEFUL},
    {"RestoreV2", "prefix: string, tensor_names: string, shape_and_slices: string -> tensors: dtypes",
     "dtypes: list(type) >= 1", OP_STATEFUL},
    {"MergeV2Checkpoints", "checkpoint_prefixes: string, destination_prefix: string ->",
     "delete_old_dirs: bool = true; allow_missing_files: bool = false", OP_STATEFUL},
    {"ShardedFilename", "basename: string, shard: int32, num_shards: int32 -> filename: string", "", 0},
    {"ShardedFilespec", "basename: string, num_shards: int32 -> filename: string", "", 0},
    {0},
};

/* A copy of a string scalar that C functions can use. */
static Error *path_input(KernelContext *k, int i, const char *what, char **out) {
    if (k->in[i]->count != 1)
        return error_invalid("Input %s should have a single element, got %lld instead.", what,
                             (long long)k->in[i]->count);
    Str s = tstring_str(tensor_str(k->in[i]));
    if (memchr(s.ptr, 0, s.len)) return error_invalid("Input %s has a 0 byte in it", what);
    *out = str_dup(s);
    return NULL;
}

/* prefix, and names and slices of the same number; data_count tensors. */
static Error *check_inputs(KernelContext *k, int64_t data_count) {
    const Tensor *names = k->in[1], *slices = k->in[2];
    if (names->shape.rank != 1 || slices->shape.rank != 1)
        return error_invalid("Input tensor_names and shape_and_slices should be 1-D tensors");
    if (names->count != data_count) return error_invalid("Got %lld tensor names, but %lld expected dtypes.", (long long)names->count, (long long)data_count);
    if (names->count != slices->count)
        return error_invalid("tensor_names and shape_and_slices have different number of elements: %lld vs. %lld", (long long)names->count, (long long)slices->count);
    return NULL;
}

/* ---- Saving ---- */

static Error *save_one(BundleWriter *w, Str name, Str spec, const Tensor *value) {
    if (!spec.len) return bundle_writer_add(w, name, value);
    Shape full;
    TensorSlice slice;
    Error *err = slice_of_tensor(spec, &value->shape, &full, &slice);
    return err ? err : bundle_writer_add_slice(w, name, &full, &slice, value);
}

static Error *run_save(KernelContext *k) {
    char *prefix = NULL;
    BundleWriter *w = NULL;
    Error *err = check_inputs(k, k->input_count - 3);
    if (!err) err = path_input(k, 0, "prefix", &prefix);
    if (!err) err = bundle_writer_open(&file_system_local, prefix, &w);
    for (int i = 3; !err && i < k->input_count; i++)
        err =
            save_one(w, tstring_str(&tensor_str(k->in[1])[i - 3]), tstring_str(&tensor_str(k->in[2])[i - 3]), k->in[i]);
    if (!err) err = bundle_writer_finish(w);
    bundle_writer_close(w);
    free(prefix);
    return err;
}

/* ---- Restoring ---- */

static Error *check_entry(Bundle *b, Str name, DataType want, const Shape *full) {
    BundleEntry e;
    Error *err = bundle_find(b, name, &e);
    if (err) return err;
    if (e.dtype != want) {
        err = error_invalid("tensor_name = %.*s; expected dtype %s does not equal original dtype %s", STR_ARG(name),
                            dtype_name(want), dtype_name(e.dtype));
    } else if (full && !shape_eq(full, &e.shape)) {
        char *asked = shape_str(full), *stored = shape_str(&e.shape);
        err = error_invalid(
            "tensor_name = %.*s; shape in shape_and_slice spec %s does not match the shape stored in "
            "checkpoint: %s",
            STR_ARG(name), asked, stored);
        free(asked);
        free(stored);
    }
    bundle_entry_clear(&e);
    return err;
}

static Error *restore_one(Bundle *b, Str name, Str spec, DataType want, Tensor **out) {
    if (!spec.len) {
        Error *err = check_entry(b, name, want, NULL);
        return err ? err : bundle_read(b, name, out);
    }
    Shape full;
    TensorSlice slice;
    Error *err = slice_parse_spec(spec, &full, &slice);
    if (err) return err;
    err = check_entry(b, name, want, &full);
    return err ? err : bundle_read_slice(b, name, &slice, out);
}

static Error *run_restore(KernelContext *k) {
    char *prefix = NULL;
    Bundle *b = NULL;
    Error *err = check_inputs(k, k->output_count);
    if (!err) err = path_input(k, 0, "prefix", &prefix);
    if (!err) err = bundle_open(&file_system_local, prefix, &b);
    for (int i = 0; !err && i < k->output_count; i++) {
        Tensor *t = NULL;
        err = restore_one(b, tstring_str(&tensor_str(k->in[1])[i]), tstring_str(&tensor_str(k->in[2])[i]),
                          kernel_output_type(k, i), &t);
        if (!err) kernel_set_output(k, i, t);
    }
    bundle_close(b);
    free(prefix);
    return err;
}

/* ---- Merging ---- */

typedef struct MergeState {
    bool delete_old_dirs, allow_missing;
} MergeState;

static Error *init_merge(const Node *node, void *state) {
    MergeState *s = state;
    Error *err = node_attr_bool(node, "delete_old_dirs", &s->delete_old_dirs);
    if (!err) err = node_attr_bool(node, "allow_missing_files", &s->allow_missing);
    return err;
}

/* Only directories that became empty go; others are somebody else's. */
static void remove_old_dirs(char *const *prefixes, int count, const char *destination) {
    char *keep = path_dir(destination);
    for (int i = 0; i < count; i++) {
        char *dir = path_dir(prefixes[i]);
        if (strcmp(dir, keep)) error_free(file_system_local.remove_dir(dir));
        free(dir);
    }
    free(keep);
}

static Error *run_merge(KernelContext *k) {
    const MergeState *s = k->state;
    const Tensor *t = k->in[0];
    if (t->shape.rank != 1) return error_invalid("Input checkpoint_prefixes should be a 1-D tensor");
    char *destination = NULL;
    Error *err = path_input(k, 1, "destination_prefix", &destination);
    if (err) return err;
    int count = (int)t->count;
    char **prefixes = xcalloc((size_t)count + 1, sizeof *prefixes);
    for (int i = 0; i < count; i++) prefixes[i] = str_dup(tstring_str(&tensor_str(t)[i]));
    err = bundle_merge(&file_system_local, (const char *const *)prefixes, count, destination, s->allow_missing);
    if (!err && s->delete_old_dirs) remove_old_dirs(prefixes, count, destination);
    for (int i = 0; i < count; i++) free(prefixes[i]);
    free(prefixes);
    free(destination);
    return err;
}

/* ---- Names ---- */

static Error *set_text(KernelContext *k, char *text) {
    kernel_set_output(k, 0, tensor_scalar_str(str_of(text)));
    free(text);
    return NULL;
}

static Error *need_scalars(KernelContext *k) {
    for (int i = 0; i < k->input_count; i++)
        if (k->in[i]->shape.rank != 0)
            return error_invalid("%.*s must be a scalar, got shape %s", STR_ARG(k->node->info->inputs[i].name), shape_text(&k->in[i]->shape).text);
    return NULL;
}

static Error *run_filename(KernelContext *k) {
    char *base = NULL;
    int64_t shard, count;
    Error *err = need_scalars(k);
    if (!err) err = kernel_scalar_int(k, 1, &shard);
    if (!err) err = kernel_scalar_int(k, 2, &count);
    if (!err) err = path_input(k, 0, "basename", &base);
    if (err) return err;
    char *text = xasprintf("%s-%05lld-of-%05lld", base, (long long)shard, (long long)count);
    free(base);
    return set_text(k, text);
}

static Error *run_filespec(KernelContext *k) {
    char *base = NULL;
    int64_t count;
    Error *err = need_scalars(k);
    if (!err) err = kernel_scalar_int(k, 1, &count);
    if (!err) err = path_input(k, 0, "basename", &base);
    if (err) return err;
    char *text = xasprintf("%s-\?\?\?\?\?-of-%05lld", base, (long long)count);
    free(base);
    return set_text(k, text);
}

const KernelDef save_restore_cpu[] = {
    {"SaveV2", .run = run_save, .flags = KERNEL_EXPENSIVE},
    {"RestoreV2", .run = run_restore, .flags = KERNEL_EXPENSIVE},
    {"MergeV2Checkpoints", .run = run_merge, .state_size = sizeof(MergeState), .init = init_merge,
     .flags = KERNEL_EXPENSIVE},
    {"ShardedFilename", .run = run_filename},
    {"ShardedFilespec", .run = run_filespec},
    {0},
};
