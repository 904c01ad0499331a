/* cmd_ckpt.c: rill ckpt: looks into checkpoints; its subcommands ls and cat. */
#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "io/bundle.h"
#include "io/checkpoint_state.h"
#include "io/npy.h"
#include "ops/op_list.h"
#include "tensor/print.h"
#include "tools/ckpt.h"
#include "tools/command.h"
#include "tools/report.h"

const Subcommand ckpt_rows[] = {
    {"ls", ckpt_ls, "lists the tensors of a checkpoint"},
    {"cat", ckpt_cat, "prints a tensor, or writes it to a .npy file"},
    {"diff", ckpt_diff, "compares two checkpoints: names, types, shapes, values"},
    {"verify", ckpt_verify, "reads everything and checks every checksum"},
    {0},
};

int cmd_ckpt(int argc, char **argv) {
    return subcommand_run(
        ckpt_rows, "ckpt",
        "looks into checkpoints. PREFIX may be a folder: its latest checkpoint, or a SavedModel's variables", argc,
        argv);
}

Error *ckpt_open(const char *path, Bundle **out) {
    char *prefix = NULL;
    Error *err = checkpoint_find(&file_system_local, path, &prefix);
    if (!err) err = bundle_open(&file_system_local, prefix, out);
    free(prefix);
    return err;
}

int64_t ckpt_bytes(const BundleEntry *e) {
    return e->slice_count ? shape_count(&e->shape) * (int64_t)dtype_size(e->dtype) : e->size;
}

bool ckpt_is_part(Str name) {
    return name.len && !name.ptr[0];
}

/* ---- ls ---- */

static Error *list(const char *path, bool as_json) {
    Bundle *b = NULL;
    Error *err = ckpt_open(path, &b);
    if (err) return err;
    cJSON *json = cJSON_CreateObject(), *tensors = report_array(json, "tensors");
    int64_t count = 0, bytes = 0;
    for (int64_t i = 0; !err && i < bundle_count(b); i++) {
        Str name = bundle_name(b, i);
        BundleEntry e;
        if (ckpt_is_part(name)) continue;
        err = bundle_find(b, name, &e);
        if (err) break;
        count++;
        bytes += ckpt_bytes(&e);
        if (as_json) {
            cJSON *item = report_object(tensors, NULL);
            report_str(item, "name", name);
            report_str(item, "dtype", str_of(dtype_name(e.dtype)));
            report_shape(item, "shape", &e.shape);
            report_int(item, "bytes", ckpt_bytes(&e));
            report_int(item, "parts", e.slice_count);
            if (!e.slice_count) report_int(item, "shard", e.shard);
        } else {
            char *type = report_type(e.dtype, &e.shape), *size = report_size((uint64_t)ckpt_bytes(&e));
            printf("%-56.*s %-22s %10s", STR_ARG(name), type, size);
            if (e.slice_count) printf("  in %d parts", e.slice_count);
            putchar('\n');
            free(type);
            free(size);
        }
        bundle_entry_clear(&e);
    }
    report_int(json, "bytes", bytes);
    report_int(json, "shards", bundle_shard_count(b));
    if (!err && as_json) {
        report_print(json);
    } else {
        char *size = report_size((uint64_t)bytes);
        if (!err) printf("%lld tensors, %s, %lld shards\n", (long long)count, size, (long long)bundle_shard_count(b));
        free(size);
        cJSON_Delete(json);
    }
    bundle_close(b);
    return err;
}

int ckpt_ls(int argc, char **argv) {
    static const char usage[] = "ckpt ls PREFIX [--json]\n\nLists the tensors: name, type and shape, bytes.\n";
    bool as_json = false, help = false;
    const Flag flags[] = {
        {"json", FLAG_BOOL, &as_json, NULL, "for programs"},
        {"help", FLAG_BOOL, &help, NULL, "print this"},
        {0},
    };
    const char *path[1];
    int count, code;
    if (!command_parse(flags, usage, argc, argv, path, 1, 1, &count, &code)) return code;
    Error *err = list(path[0], as_json);
    return err ? command_failed(argv[0], err) : 0;
}

/* ---- cat ---- */

static Error *print_tensor(const char *path, const char *name, const char *out, bool all, bool as_json) {
    Bundle *b = NULL;
    Tensor *t = NULL;
    Error *err = ckpt_open(path, &b);
    if (!err) err = bundle_read(b, str_of(name), &t);
    if (!err && out) {
        err = npy_write(&file_system_local, out, t);
    } else if (!err && as_json) {
        cJSON *json = cJSON_CreateObject();
        report_str(json, "name", str_of(name));
        report_str(json, "dtype", str_of(dtype_name(t->dtype)));
        report_shape(json, "shape", &t->shape);
        report_values(json, "value", t);
        report_print(json);
    } else if (!err) {
        StrBuf text = {0};
        char *type = report_type(t->dtype, &t->shape);
        print_nested(&text, t, report_ends(t, all));
        printf("%s  %s\n%s\n", name, type, strbuf_str(&text).ptr);
        strbuf_clear(&text);
        free(type);
    }
    tensor_unref(t);
    bundle_close(b);
    return err;
}

int ckpt_cat(int argc, char **argv) {
    static const char usage[] = "ckpt cat PREFIX TENSOR [--out FILE.npy] [--json]\n\nPrints one tensor.\n";
    const char *out = NULL;
    bool all = false, as_json = false, help = false;
    const Flag flags[] = {
        {"out", FLAG_STRING, &out, "FILE.npy", "write it there instead"},
        {"all", FLAG_BOOL, &all, NULL, "print large values whole"},
        {"json", FLAG_BOOL, &as_json, NULL, "for programs"},
        {"help", FLAG_BOOL, &help, NULL, "print this"},
        {0},
    };
    const char *words[2];
    int count, code;
    if (!command_parse(flags, usage, argc, argv, words, 2, 2, &count, &code)) return code;
    ops_register_all(); /* variants are read by the ops that have them */
    Error *err = print_tensor(words[0], words[1], out, all, as_json);
    return err ? command_failed(argv[0], err) : 0;
}
