/* graph_run.c: rill graph run: one step of a model, with inputs from the command line. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "io/npy.h"
#include "model/model.h"
#include "ops/op_list.h"
#include "tensor/json.h"
#include "tensor/number.h"
#include "tensor/print.h"
#include "tensor/tensor_proto.h"
#include "tools/cluster_model.h"
#include "tools/command.h"
#include "tools/report.h"

static const char usage[] =
    "graph run MODEL [--input NAME=VALUE]... [--fetch NAME]...\n\n"
    "MODEL is the folder of a SavedModel, a PREFIX.meta with its checkpoint beside it, or a GraphDef. Variables are\n"
    "restored, the init op is run, then the signature (or the tensors named by --fetch).\n\n"
    "A NAME is a key of the signature or a tensor, node:0. A VALUE is a number, text, or nested lists: [[1, 2], [3, "
    "4]];\n"
    "@FILE.npy reads an array, @FILE any other file: as text like above, or for a string input its bytes as they are.\n"
    "Parts of sparse and composite inputs are NAME.values, NAME.indices, NAME.dense_shape; NAME.0, NAME.1, ...\n"
    "Exit code 1 when it fails.\n";

typedef struct Options {
    const char *tags, *signature, *checkpoint, *out, *target;
    FlagList inputs, fetches, init;
    int64_t threads, timeout_s;
    bool as_json, all, help;
} Options;

/* What goes in and comes out: tensors of the graph by the name the user knows. */
typedef struct Run {
    Model *model;
    const Signature *signature;   /* NULL: tensors by name only */
    TensorInfo *inputs, *outputs; /* of the signature, one for each dense part */
    int input_count, output_count;
    Str *feeds, *fetches, *keys; /* keys: what to call the fetches */
    Tensor **values, **results;
    int feed_count, fetch_count;
} Run;

/* ---- Signatures ---- */

static void flatten(Arena *arena, const TensorInfo *info, Str key, TensorInfo **items, int *count) {
    if (info->kind == TENSOR_DENSE) {
        *items = xrealloc(*items, (size_t)(*count + 1) * sizeof **items);
        (*items)[*count] = *info;
        (*items)[(*count)++].key = key;
        return;
    }
    for (int i = 0; i < info->part_count; i++)
        flatten(arena, &info->parts[i], arena_printf(arena, "%.*s.%.*s", STR_ARG(key), STR_ARG(info->parts[i].key)),
                items, count);
}

static Error *choose_signature(Run *r, const Options *o) {
    const MetaGraph *m = model_meta_graph(r->model);
    if (o->signature) {
        r->signature = meta_graph_signature(m, str_of(o->signature));
        if (r->signature) return NULL;
        StrBuf known = {0};
        for (int i = 0; i < m->signature_count; i++) strbuf_addf(&known, " %.*s", STR_ARG(m->signatures[i].key));
        Error *err =
            error_not_found("there is no signature '%s'; there are:%s", o->signature, known.len ? known.ptr : " none");
        strbuf_clear(&known);
        return err;
    }
    r->signature = meta_graph_signature(m, STR("serving_default"));
    int visible = 0;
    for (int i = 0; !r->signature && i < m->signature_count; i++)
        visible += !str_starts(m->signatures[i].key, STR("__"));
    for (int i = 0; visible == 1 && i < m->signature_count; i++)
        if (!str_starts(m->signatures[i].key, STR("__"))) r->signature = &m->signatures[i];
    return NULL;
}

static const TensorInfo *find(const TensorInfo *items, int count, Str key) {
    for (int i = 0; i < count; i++)
        if (str_eq(items[i].key, key)) return &items[i];
    return NULL;
}

/* ---- Inputs ---- */

/* A value as the tensor wants it; numbers of another type are converted. */
static Error *fit(Tensor *take, const TensorInfo *info, Tensor **out) {
    Error *err = NULL;
    Tensor *t = take;
    if (info->dtype && t->dtype != dtype_base(info->dtype)) err = number_convert(take, dtype_base(info->dtype), &t);
    if (!err && !partial_shape_matches(&info->shape, &t->shape)) {
        char *given = shape_str(&t->shape), *wanted = shape_str(&info->shape);
        err = error_invalid("its shape is %s, the graph wants %s", given, wanted);
        free(given);
        free(wanted);
    }
    if (t != take) tensor_unref(take);
    if (err && t != take)
        tensor_unref(t);
    else if (err)
        tensor_unref(take);
    else
        *out = t;
    return err;
}

static bool is_text_file(const char *path) {
    Str p = str_of(path);
    return str_ends(p, STR(".json")) || str_ends(p, STR(".txt"));
}

static Error *read_value_file(const char *path, const TensorInfo *info, Tensor **out) {
    char *bytes = NULL;
    size_t len = 0;
    Error *err = file_read_all(&file_system_local, path, &bytes, &len);
    if (err) return err;
    Str content = {bytes, len};
    if (npy_is(content)) {
        err = npy_parse(content, path, out);
    } else if (info->dtype == DT_STRING && !is_text_file(path)) {
        *out = tensor_scalar_str(content);
        if (info->shape.rank == 1) {
            Shape one = shape_vector(1);
            Tensor *vector = tensor_alias(*out, DT_STRING, &one);
            tensor_unref(*out);
            *out = vector;
        }
    } else {
        err = error_wrap(json_parse_tensor(str_trim(content), info->dtype ? info->dtype : DT_FLOAT, out), "%s", path);
    }
    free(bytes);
    return err;
}

static Error *read_value(const char *text, const TensorInfo *info, Tensor **out) {
    Tensor *t = NULL;
    Error *err = *text == '@' ? read_value_file(text + 1, info, &t)
                              : json_parse_tensor(str_of(text), info->dtype ? dtype_base(info->dtype) : DT_FLOAT, &t);
    return err ? err : fit(t, info, out);
}

static void add_feed(Run *r, Str tensor, Tensor *take) {
    r->feeds = xrealloc(r->feeds, (size_t)(r->feed_count + 1) * sizeof *r->feeds);
    r->values = xrealloc(r->values, (size_t)(r->feed_count + 1) * sizeof *r->values);
    r->feeds[r->feed_count] = tensor;
    r->values[r->feed_count++] = take;
}

static Error *add_input(Run *r, const char *text) {
    Str rest = str_of(text);
    if (str_find(rest, '=') < 0) return error_invalid("--input %s: say NAME=VALUE", text);
    Str name = str_next(&rest, '=');
    const TensorInfo *info = find(r->inputs, r->input_count, name);
    TensorInfo by_name = {0};
    Error *err = NULL;
    if (!info) {
        err = model_tensor_info(r->model, name, &by_name);
        if (err && r->signature && err->code == CODE_NOT_FOUND)
            err = error_append(err, ", nor such an input of signature '%.*s'", STR_ARG(r->signature->key));
        info = &by_name;
    }
    Tensor *value = NULL;
    if (!err) err = error_wrap(read_value(rest.ptr, info, &value), "input '%.*s'", STR_ARG(name));
    if (!err) add_feed(r, info->name, value);
    return err;
}

static bool is_fed(const Run *r, Str tensor) {
    for (int i = 0; i < r->feed_count; i++)
        if (str_eq(r->feeds[i], tensor)) return true;
    return false;
}

/* What the signature wants and was not given: its default, or a mistake. */
static Error *add_missing(Run *r) {
    for (int i = 0; i < r->input_count; i++) {
        const TensorInfo *info = &r->inputs[i];
        if (is_fed(r, info->name)) continue;
        if (!info->default_value.ptr) {
            char *type = report_type(info->dtype, &info->shape);
            Error *err = error_invalid("input '%.*s', %s, is missing: give --input %.*s=VALUE", STR_ARG(info->key),
                                       type, STR_ARG(info->key));
            free(type);
            return err;
        }
        Tensor *value = NULL;
        Error *err = tensor_proto_decode(info->default_value, &value);
        if (err) return error_wrap(err, "the default of input '%.*s'", STR_ARG(info->key));
        add_feed(r, info->name, value);
    }
    return NULL;
}

/* ---- Outputs ---- */

static void add_fetch(Run *r, Str key, Str tensor) {
    size_t n = (size_t)r->fetch_count + 1;
    r->fetches = xrealloc(r->fetches, n * sizeof *r->fetches);
    r->keys = xrealloc(r->keys, n * sizeof *r->keys);
    r->keys[r->fetch_count] = key;
    r->fetches[r->fetch_count++] = tensor;
}

static Error *add_fetches(Run *r, const Options *o) {
    for (int i = 0; i < o->fetches.count; i++) {
        Str name = str_of(o->fetches.items[i]);
        const TensorInfo *info = find(r->outputs, r->output_count, name);
        add_fetch(r, name, info ? info->name : name);
    }
    for (int i = 0; !o->fetches.count && i < r->output_count; i++) add_fetch(r, r->outputs[i].key, r->outputs[i].name);
    if (!r->fetch_count)
        return error_invalid("what should it compute? Give --fetch NODE:0 or --signature KEY; see rill graph show %s",
                             model_file(r->model)->path);
    return NULL;
}

static void show_results(const Run *r, const Options *o) {
    cJSON *json = o->as_json ? cJSON_CreateObject() : NULL;
    cJSON *outputs = json ? report_object(json, "outputs") : NULL;
    for (int i = 0; i < r->fetch_count; i++) {
        const Tensor *t = r->results[i];
        char *key = str_dup(r->keys[i]), *type = report_type(t->dtype, &t->shape);
        if (json) {
            cJSON *item = report_object(outputs, key);
            report_str(item, "tensor", r->fetches[i]);
            report_str(item, "dtype", str_of(dtype_name(t->dtype)));
            report_shape(item, "shape", &t->shape);
            report_values(item, "value", t);
        } else {
            StrBuf text = {0};
            print_nested(&text, t, report_ends(t, o->all));
            printf("%s%s  %s\n%s\n", i ? "\n" : "", key, type, strbuf_str(&text).ptr);
            strbuf_clear(&text);
        }
        free(key);
        free(type);
    }
    if (json) report_print(json);
}

static Error *write_results(const Run *r, const char *dir) {
    Error *err = file_system_local.make_dir(dir);
    for (int i = 0; !err && i < r->fetch_count; i++) {
        char *name = str_dup(r->keys[i]);
        for (char *c = name; *c; c++)
            if (strchr("/:\\", *c)) *c = '_';
        char *path = xasprintf("%s/%s.npy", dir, name);
        err = npy_write(&file_system_local, path, r->results[i]);
        if (!err) printf("%s\n", path);
        free(path);
        free(name);
    }
    return err;
}

/* ---- The step ---- */

static void run_clear(Run *r) {
    for (int i = 0; i < r->feed_count; i++) tensor_unref(r->values[i]);
    for (int i = 0; r->results && i < r->fetch_count; i++) tensor_unref(r->results[i]);
    free(r->inputs);
    free(r->outputs);
    free(r->feeds);
    free(r->values);
    free(r->fetches);
    free(r->keys);
    free(r->results);
    model_close(r->model);
}

static Error *prepare(Run *r, Arena *arena, const Options *o) {
    Error *err = choose_signature(r, o);
    const Signature *s = r->signature;
    for (int i = 0; s && i < s->input_count; i++)
        flatten(arena, &s->inputs[i], s->inputs[i].key, &r->inputs, &r->input_count);
    for (int i = 0; s && i < s->output_count; i++)
        flatten(arena, &s->outputs[i], s->outputs[i].key, &r->outputs, &r->output_count);
    for (int i = 0; !err && i < o->inputs.count; i++) err = add_input(r, o->inputs.items[i]);
    if (!err) err = add_fetches(r, o);
    if (!err && !o->fetches.count) err = add_missing(r);
    return err;
}

static Error *open_model(const char *path, const Options *o, Arena *arena, Model **out) {
    Str tags[64], rest = str_of(o->tags), *init = arena_calloc(arena, (size_t)o->init.count + 1, sizeof *init);
    ModelOptions options = {.tags = tags, .checkpoint = o->checkpoint, .init = init, .threads = (int)o->threads};
    while (rest.len && options.tag_count < 64) tags[options.tag_count++] = str_trim(str_next(&rest, ','));
    for (int i = 0; i < o->init.count; i++) init[options.init_count++] = str_of(o->init.items[i]);
    if (o->target) {
        options.sessions = &cluster_sessions;
        options.sessions_arg = o->target;
    }
    return model_open(&file_system_local, path, &options, out);
}

static Error *run(const char *path, const Options *o) {
    Arena *arena = arena_new();
    Run r = {0};
    Error *err = open_model(path, o, arena, &r.model);
    if (!err) err = prepare(&r, arena, o);
    if (!err) {
        RunSignature signature = {
            .feeds = r.feeds, .fetches = r.fetches, .feed_count = r.feed_count, .fetch_count = r.fetch_count};
        Tensor **results = xcalloc((size_t)r.fetch_count, sizeof *results);
        err = model_run(r.model, &signature, r.values, results, o->timeout_s * 1000);
        if (err)
            free(results);
        else
            r.results = results;
    }
    if (!err && o->out)
        err = write_results(&r, o->out);
    else if (!err)
        show_results(&r, o);
    run_clear(&r);
    arena_free(arena);
    return err;
}

int graph_run(int argc, char **argv) {
    Options o = {0};
    const Flag flags[] = {
        {"input", FLAG_LIST, &o.inputs, "NAME=VALUE|@FILE", "an input; may be given often"},
        {"fetch", FLAG_LIST, &o.fetches, "NAME", "what to compute; may be given often (all outputs of the signature)"},
        {"signature", FLAG_STRING, &o.signature, "KEY", "signature to run (serving_default, or the only one)"},
        {"tags", FLAG_STRING, &o.tags, "TAG,...", "tags of the graph in a SavedModel (the only one, or serve)"},
        {"checkpoint", FLAG_STRING, &o.checkpoint, "PREFIX", "restore this checkpoint instead of the model's own"},
        {"init", FLAG_LIST, &o.init, "NODE", "run this node once before; may be given often"},
        {"out", FLAG_STRING, &o.out, "DIR", "write each output to DIR/NAME.npy instead of printing it"},
        {"target", FLAG_STRING, &o.target, "grpc://HOST:PORT", "run it on a cluster, which reads the model's files itself"},
        {"threads", FLAG_INT, &o.threads, "N", "threads that compute (one for each core)"},
        {"timeout", FLAG_INT, &o.timeout_s, "SECONDS", "give up after (never)"},
        {"all", FLAG_BOOL, &o.all, NULL, "print large values whole"},
        {"json", FLAG_BOOL, &o.as_json, NULL, "for programs"},
        {"help", FLAG_BOOL, &o.help, NULL, "print this"},
        {0},
    };
    const char *path[1];
    int count, code;
    if (command_parse(flags, usage, argc, argv, path, 1, 1, &count, &code)) {
        ops_register_all();
        Error *err = run(path[0], &o);
        code = err ? command_failed(argv[0], err) : 0;
    }
    flag_list_clear(&o.inputs);
    flag_list_clear(&o.fetches);
    flag_list_clear(&o.init);
    return code;
}
