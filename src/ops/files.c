/* files.c: ReadFile, WriteFile, MatchingFiles, FileSystemSetConfiguration. */
#include <stdlib.h>

#include "base/file.h"
#include "ops/elements.h"
#include "ops/op_list.h"

const OpDef files_ops[] = {
    {"ReadFile", "filename: string -> contents: string", "", 0},
    {"WriteFile", "filename: string, contents: string ->", "", OP_STATEFUL},
    {"MatchingFiles", "pattern: string -> filenames: string", "", 0},
    {"FileSystemSetConfiguration", "scheme: string, key: string, value: string ->", "", OP_STATEFUL},
    {0},
};

static Error *scalar_path(KernelContext *k, int i, char **out) {
    if (k->in[i]->count != 1 || k->in[i]->shape.rank != 0) {
        char *text = shape_str(&k->in[i]->shape);
        Error *err = error_invalid("Input filename tensor must be scalar, but had shape: %s", text);
        free(text);
        return err;
    }
    *out = str_dup(tstring_str(tensor_str(k->in[i])));
    return NULL;
}

static Error *run_read(KernelContext *k) {
    char *path = NULL, *data;
    size_t len;
    Error *err = scalar_path(k, 0, &path);
    if (err) return err;
    err = file_read_all(&file_system_local, path, &data, &len);
    free(path);
    if (err) return err;
    Tensor *out = kernel_output(k, 0, &SHAPE_SCALAR);
    if (out)
        tstring_take(tensor_str(out), data, len);
    else
        free(data);
    return NULL;
}

static Error *run_write(KernelContext *k) {
    char *path = NULL;
    if (k->in[1]->shape.rank != 0) return error_invalid("Contents tensor must be scalar, but had shape: %s", shape_text(&k->in[1]->shape).text);
    Error *err = scalar_path(k, 0, &path);
    if (err) return err;
    char *dir = path_dir(path);
    err = file_system_local.make_dir(dir);
    if (!err) err = file_write_all(&file_system_local, path, tstring_str(tensor_str(k->in[1])));
    free(dir);
    free(path);
    return err;
}

static Error *run_match(KernelContext *k) {
    PathList found = {0};
    const Tensor *patterns = k->in[0];
    if (patterns->shape.rank > 1)
        return error_invalid("Input patterns tensor must be scalar or vector, but had shape: %s", shape_text(&patterns->shape).text);
    Error *err = NULL;
    for (int64_t i = 0; !err && i < patterns->count; i++) {
        PathList some = {0};
        char *pattern = str_dup(tstring_str(&tensor_str(patterns)[i]));
        err = file_glob(&file_system_local, pattern, &some);
        for (size_t j = 0; j < some.count; j++) path_list_add(&found, some.items[j]);
        path_list_clear(&some);
        free(pattern);
    }
    path_list_sort(&found);
    Shape shape = shape_vector((int64_t)found.count);
    Tensor *out = err ? NULL : kernel_output(k, 0, &shape);
    for (size_t i = 0; out && i < found.count; i++) tstring_set(&tensor_str(out)[i], str_of(found.items[i]));
    path_list_clear(&found);
    return err;
}

/* Neither TensorFlow's local files nor Rill's have anything to set. */
static Error *run_configure(KernelContext *k) {
    static const char *const names[] = {"scheme", "key", "value"};
    for (int i = 0; i < 3; i++)
        if (k->in[i]->shape.rank != 0) return error_invalid("%s must be scalar, got shape %s", names[i], shape_text(&k->in[0]->shape).text); /* sic */
    return error_unimplemented("SetOption");
}

const KernelDef files_cpu[] = {
    {"ReadFile", .run = run_read, .flags = KERNEL_EXPENSIVE},
    {"WriteFile", .run = run_write, .flags = KERNEL_EXPENSIVE},
    {"MatchingFiles", .run = run_match, .flags = KERNEL_EXPENSIVE},
    {"FileSystemSetConfiguration", .run = run_configure},
    {0},
};
