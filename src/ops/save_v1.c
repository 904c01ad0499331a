/* save_v1.c: Save, SaveSlices, Restore, RestoreSlice: checkpoints of the first format, one table per file. */
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "io/slice_file.h"
#include "ops/op_list.h"

const OpDef save_v1_ops[] = {
    {"Save", "filename: string, tensor_names: string, data: T ->", "T: list(type) >= 1", OP_STATEFUL},
    {"SaveSlices", "filename: string, tensor_names: string, shapes_and_slices: string, data: T ->",
     "T: list(type) >= 1", OP_STATEFUL},
    {"Restore", "file_pattern: string, tensor_name: string -> tensor: dt", "dt: type; preferred_shard: int = -1",
     OP_STATEFUL},
    {"RestoreSlice", "file_pattern: string, tensor_name: string, shape_and_slice: string -> tensor: dt",
     "dt: type; preferred_shard: int = -1", OP_STATEFUL},
    {0},
};

static Str string_at(const Tensor *t, int64_t i) {
    return tstring_str(&tensor_str(t)[i]);
}

/* The only element of an input; a path must not have a 0 byte in it. */
static Error *single_string(KernelContext *k, int i, const char *what, Str *out) {
    if (k->in[i]->count != 1)
        return error_invalid("Input %d (%s) must be a string scalar; got a tensor of %lld elements", i, what,
                             (long long)k->in[i]->count);
    *out = string_at(k->in[i], 0);
    if (memchr(out->ptr, 0, out->len)) return error_invalid("Input %d (%s) has a 0 byte in it", i, what);
    return NULL;
}

/* ---- Saving ---- */

static TensorSlice whole_slice(int rank) {
    TensorSlice s = {.rank = rank};
    for (int d = 0; d < rank; d++) s.length[d] = -1;
    return s;
}

static Error *save_one(SliceFileWriter *w, Str name, Str spec, const Tensor *value) {
    Shape full = value->shape;
    TensorSlice slice = whole_slice(full.rank);
    Error *err = spec.len ? slice_of_tensor(spec, &value->shape, &full, &slice) : NULL;
    return err ? err : slice_file_writer_add(w, name, &full, &slice, value);
}

/* `fixed` inputs come before the tensors: the file, the names and, when there are three, the slices. */
static Error *save(KernelContext *k, int fixed) {
    const Tensor *names = k->in[1];
    Str path;
    Error *err = single_string(k, 0, "filename", &path);
    if (err) return err;
    if (fixed == 3 && k->in[2]->count != names->count)
        return error_invalid("Expected %lld elements for the tensor shapes and slices but got %lld",
                             (long long)names->count, (long long)k->in[2]->count);
    if (k->input_count - fixed != names->count)
        return error_invalid(
            "Expected totally %lld inputs as input #1 (which is a string tensor of saved names) contains %lld names, "
            "but received %d inputs",
            (long long)names->count + fixed, (long long)names->count, k->input_count);
    SliceFileWriter *w = slice_file_writer_new();
    for (int i = fixed; !err && i < k->input_count; i++)
        err = save_one(w, string_at(names, i - fixed), fixed == 3 ? string_at(k->in[2], i - fixed) : STR(""), k->in[i]);
    if (!err) {
        char *copy = str_dup(path);
        err = slice_file_writer_finish(w, &file_system_local, copy);
        free(copy);
    }
    slice_file_writer_free(w);
    return err;
}

static Error *run_save(KernelContext *k) {
    return save(k, 2);
}

static Error *run_save_slices(KernelContext *k) {
    return save(k, 3);
}

/* ---- Restoring ---- */

/* What `spec` asks for of a tensor. */
static Error *parse_wanted(const SliceTensor *t, Str spec, TensorSlice *slice) {
    Shape full;
    Error *err = slice_parse_spec(spec, &full, slice);
    if (err || shape_eq(&full, &t->shape)) return err;
    char *asked = shape_str(&full), *stored = shape_str(&t->shape);
    err = error_invalid(
        "Shape in shape_and_slice spec does not match the shape in the save file: %s, save file shape: %s", asked,
        stored);
    free(asked);
    free(stored);
    return err;
}

static Error *restore_from(KernelContext *k, const SliceFile *f, Str pattern, Str name, Str spec) {
    const SliceTensor *t = slice_file_find(f, name);
    DataType want = kernel_output_type(k, 0);
    TensorSlice slice;
    Tensor *value = NULL;
    if (!t)
        return error_not_found("Tensor name \"%.*s\" not found in checkpoint files %.*s", STR_ARG(name),
                               STR_ARG(pattern));
    if (t->dtype != want)
        return error_invalid(
            "Expected to restore a tensor of type %s, got a tensor of type %s instead: tensor_name = "
            "%.*s",
            dtype_name(want), dtype_name(t->dtype), STR_ARG(name));
    Error *err = spec.len ? parse_wanted(t, spec, &slice) : NULL;
    if (!err) err = slice_file_read(f, t, spec.len ? &slice : NULL, &value);
    if (!err) kernel_set_output(k, 0, value);
    return err;
}

static Error *run_restore(KernelContext *k) {
    Str pattern, name, spec = STR("");
    Error *err = single_string(k, 0, "file_pattern", &pattern);
    if (!err) err = single_string(k, 1, "tensor_name", &name);
    if (!err && k->input_count == 3 && k->in[2]->count != 1)
        err =
            error_invalid("Expected 1 element for the tensor shape and slice but got %lld", (long long)k->in[2]->count);
    if (err) return err;
    if (k->input_count == 3) spec = string_at(k->in[2], 0);
    SliceFile *f = NULL;
    char *copy = str_dup(pattern);
    err = slice_file_open(&file_system_local, copy, &f);
    free(copy);
    if (!err) err = restore_from(k, f, pattern, name, spec);
    slice_file_close(f);
    return err;
}

const KernelDef save_v1_cpu[] = {
    {"Save", .run = run_save, .flags = KERNEL_EXPENSIVE},
    {"SaveSlices", .run = run_save_slices, .flags = KERNEL_EXPENSIVE},
    {"Restore", .run = run_restore, .flags = KERNEL_EXPENSIVE},
    {"RestoreSlice", .run = run_restore, .flags = KERNEL_EXPENSIVE},
    {0},
};
