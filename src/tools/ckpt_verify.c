/* ckpt_verify.c: rill ckpt verify: is a checkpoint whole? */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "io/checkpoint_state.h"
#include "ops/op_list.h"
#include "tools/ckpt.h"
#include "tools/command.h"
#include "tools/report.h"

static const char usage[] =
    "ckpt verify PREFIX|FOLDER [--json]\n\n"
    "Reads every tensor and checks every checksum, size and shard. Of a folder: every checkpoint that its file "
    "`checkpoint` names, and\n"
    "says which is the newest that is whole. Also tells of files that a crash left. Exit code 1 when something is "
    "damaged.\n";

typedef struct Verdict {
    int64_t tensors, bytes, broken;
    PathList problems, leftovers;
} Verdict;

static void verdict_clear(Verdict *v) {
    path_list_clear(&v->problems);
    path_list_clear(&v->leftovers);
}

static void add_problem(Verdict *v, Error *take) {
    v->broken++;
    path_list_add(&v->problems, take->message);
    error_free(take);
}

static void verify_tensors(Bundle *b, Verdict *v) {
    for (int64_t i = 0; i < bundle_count(b); i++) {
        Str name = bundle_name(b, i);
        BundleEntry e = {0};
        Tensor *t = NULL;
        if (ckpt_is_part(name)) continue;
        Error *err = bundle_find(b, name, &e);
        if (!err) {
            v->bytes += ckpt_bytes(&e);
            err = bundle_read(b, name, &t);
        }
        v->tensors++;
        bundle_entry_clear(&e);
        tensor_unref(t);
        if (err) add_problem(v, err);
    }
}

/* Files of this prefix that the checkpoint does not use: temporary ones, and data of another number of shards. */
static void find_leftovers(const char *prefix, int64_t shard_count, Verdict *v) {
    char *dir = path_dir(prefix);
    const char *slash = strrchr(prefix, '/'), *base = slash ? slash + 1 : prefix;
    PathList names = {0};
    error_free(file_system_local.list(dir, &names));
    path_list_sort(&names);
    char *own = xasprintf("-of-%05lld", (long long)shard_count);
    for (size_t i = 0; i < names.count; i++) {
        Str name = str_of(names.items[i]);
        if (!str_starts(name, str_of(base))) continue;
        Str rest = str_slice(name, strlen(base), name.len);
        bool of_prefix = str_starts(rest, STR(".data-")) || str_starts(rest, STR(".index"));
        bool is_data = str_starts(rest, STR(".data-")) && str_ends(rest, str_of(own));
        if (of_prefix && !is_data && !str_is(rest, ".index")) path_list_add(&v->leftovers, names.items[i]);
    }
    free(own);
    free(dir);
    path_list_clear(&names);
}

static void verify(const char *prefix, Verdict *v) {
    Bundle *b = NULL;
    Error *err = bundle_open(&file_system_local, prefix, &b);
    if (err) {
        add_problem(v, err);
        return;
    }
    verify_tensors(b, v);
    find_leftovers(prefix, bundle_shard_count(b), v);
    bundle_close(b);
}

static void tell(const char *prefix, const Verdict *v, cJSON *list) {
    if (list) {
        cJSON *item = report_object(list, NULL);
        report_str(item, "prefix", str_of(prefix));
        cJSON_AddBoolToObject(item, "ok", v->broken == 0);
        report_int(item, "tensors", v->tensors);
        report_int(item, "bytes", v->bytes);
        cJSON *problems = report_array(item, "problems"), *leftovers = report_array(item, "leftovers");
        for (size_t i = 0; i < v->problems.count; i++) report_str(problems, NULL, str_of(v->problems.items[i]));
        for (size_t i = 0; i < v->leftovers.count; i++) report_str(leftovers, NULL, str_of(v->leftovers.items[i]));
        return;
    }
    char *size = report_size((uint64_t)v->bytes);
    printf("%s %s: %lld tensors, %s\n", v->broken ? "BROKEN" : "OK", prefix, (long long)v->tensors, size);
    free(size);
    for (size_t i = 0; i < v->problems.count; i++) printf("  %s\n", v->problems.items[i]);
    for (size_t i = 0; i < v->leftovers.count; i++) printf("  left by a crash: %s\n", v->leftovers.items[i]);
}

/* Whether all are whole. */
static bool verify_all(const PathList *prefixes, bool as_json) {
    cJSON *json = cJSON_CreateObject(), *list = report_array(json, "checkpoints");
    const char *newest = NULL;
    bool ok = true;
    for (size_t i = 0; i < prefixes->count; i++) {
        Verdict v = {0};
        verify(prefixes->items[i], &v);
        tell(prefixes->items[i], &v, as_json ? list : NULL);
        if (!v.broken) newest = prefixes->items[i];
        ok = ok && !v.broken;
        verdict_clear(&v);
    }
    if (newest) report_str(json, "newest_ok", str_of(newest));
    if (as_json) {
        report_print(json);
        return ok;
    }
    if (!ok && newest) printf("the newest that is whole: %s\n", newest);
    cJSON_Delete(json);
    return ok;
}

int ckpt_verify(int argc, char **argv) {
    bool as_json = false, help = false;
    const Flag flags[] = {
        {"json", FLAG_BOOL, &as_json, NULL, "for programs"},
        {"help", FLAG_BOOL, &help, NULL, "print this"},
        {0},
    };
    const char *path[1];
    int count, code;
    if (!command_parse(flags, usage, argc, argv, path, 1, 1, &count, &code)) return code;
    ops_register_all();
    CheckpointState state = {0};
    PathList prefixes = {0};
    char *one = NULL, *state_file = xasprintf("%s/checkpoint", path[0]);
    bool has_state = file_system_local.exists(state_file);
    free(state_file);
    Error *err = has_state ? checkpoint_state_read(&file_system_local, path[0], &state)
                           : checkpoint_find(&file_system_local, path[0], &one);
    if (err) return command_failed(argv[0], err);
    if (one) path_list_add(&prefixes, one);
    for (size_t i = 0; i < state.all.count; i++) path_list_add(&prefixes, state.all.items[i]);
    code = verify_all(&prefixes, as_json) ? 0 : EXIT_FAILURE;
    path_list_clear(&prefixes);
    checkpoint_state_clear(&state);
    free(one);
    return code;
}
