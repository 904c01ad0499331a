/* graph_ops.c: rill graph ops: how often each op occurs in a graph and its functions, and whether Rill can run it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "graph/function.h"
#include "graph/graph_def.h"
#include "io/saved_model.h"
#include "ops/op_list.h"
#include "proto/wire.h"
#include "tools/command.h"
#include "tools/report.h"

static const char usage[] =
    "graph ops MODEL [--missing] [--json]\n\n"
    "Counts the ops of every graph of the model, the bodies of functions included. An op is missing when this build "
    "has no\n"
    "kernel for it, or none for the types of some node. Exit code 1 when one is missing.\n";

typedef struct OpCount {
    Str op;
    int64_t count, lacking;
    char *why; /* of the first node that cannot run */
} OpCount;

typedef struct Counting {
    Arena *arena;
    StrMap by_op; /* to OpCount */
} Counting;

static void count_op(Counting *c, Str op, Error *why) {
    OpCount *o = strmap_get(&c->by_op, op);
    if (!o) {
        o = arena_calloc(c->arena, 1, sizeof *o);
        o->op = arena_str(c->arena, op);
        strmap_put(&c->by_op, o->op, o);
    }
    o->count++;
    o->lacking += why != NULL;
    if (why && !o->why) o->why = (char *)arena_str(c->arena, str_of(why->message)).ptr;
    error_free(why);
}

/* What only a running graph has, or what is resolved before it runs. */
static bool is_structural(Str op) {
    return str_is(op, "_Arg") || str_is(op, "_Retval") || str_is(op, "_DeviceArg") || str_is(op, "_DeviceRetval");
}

static void count_graph(Counting *c, const Graph *g) {
    for (int i = 0; i < g->node_count; i++) {
        const Node *n = g->nodes[i];
        if (is_structural(n->op)) continue;
        Error *err = NULL;
        if (!function_find(g->functions, n->op)) {
            const KernelDef *def = NULL;
            KernelFn *run = NULL;
            err = kernel_find(n, &def, &run);
        }
        count_op(c, n->op, err);
    }
}

/* A body whose attributes are left open cannot be made into a graph: its nodes are counted by name. */
static void count_names(Counting *c, const FunctionLibrary *lib, Str function_def) {
    WireReader r = wire_reader(function_def);
    while (wire_next(&r)) {
        NodeDefView n;
        if (r.field != 3 || r.type != WIRE_BYTES) continue;
        Error *err = node_def_view(c->arena, r.bytes, &n);
        if (!err)
            count_op(c, n.op,
                     function_find(lib, n.op) || kernel_exists(n.op)
                         ? NULL
                         : error_not_found("there is no kernel for op %.*s", STR_ARG(n.op)));
        error_free(err);
    }
}

static void count_functions(Counting *c, const FunctionLibrary *lib, Str graph_def) {
    WireReader r = wire_reader(graph_def);
    while (wire_next(&r)) {
        if (r.field != 2 || r.type != WIRE_BYTES) continue;
        WireReader functions = wire_reader(r.bytes);
        while (wire_next(&functions)) {
            if (functions.field != 1 || functions.type != WIRE_BYTES) continue;
            WireReader f = wire_reader(functions.bytes);
            Str signature = STR(""), name = STR("");
            while (wire_next(&f))
                if (f.field == 1 && f.type == WIRE_BYTES) signature = f.bytes;
            f = wire_reader(signature);
            while (wire_next(&f))
                if (f.field == 1 && f.type == WIRE_BYTES) name = f.bytes;
            const Function *known = function_find(lib, name);
            FunctionBody *body = NULL;
            Error *err = known ? function_instantiate(lib, known, NULL, 0, &body) : error_internal("unknown");
            if (err)
                count_names(c, lib, functions.bytes);
            else
                count_graph(c, body->graph);
            error_free(err);
            if (body) function_body_free(body);
        }
    }
}

static int by_count(const void *a, const void *b) {
    const OpCount *x = *(OpCount *const *)a, *y = *(OpCount *const *)b;
    if ((x->lacking > 0) != (y->lacking > 0)) return x->lacking > 0 ? -1 : 1;
    if (x->count != y->count) return x->count > y->count ? -1 : 1;
    return str_compare(x->op, y->op);
}

/* Returns how many ops are missing. */
static int print_counts(const Counting *c, bool only_missing, bool as_json) {
    size_t at = 0, n = 0;
    void *value;
    OpCount **rows = xcalloc(c->by_op.count + 1, sizeof *rows);
    while (strmap_next(&c->by_op, &at, NULL, &value)) rows[n++] = value;
    qsort(rows, n, sizeof *rows, by_count);
    cJSON *json = cJSON_CreateObject(), *ops = report_array(json, "ops");
    int64_t nodes = 0;
    int missing = 0;
    for (size_t i = 0; i < n; i++) {
        const OpCount *o = rows[i];
        nodes += o->count;
        missing += o->lacking > 0;
        if (only_missing && !o->lacking) continue;
        if (!as_json) {
            printf("%8lld  %-36.*s %s%s\n", (long long)o->count, STR_ARG(o->op), o->lacking ? "MISSING: " : "",
                   o->lacking ? o->why : "");
            continue;
        }
        cJSON *item = report_object(ops, NULL);
        report_str(item, "op", o->op);
        report_int(item, "count", o->count);
        cJSON_AddBoolToObject(item, "supported", o->lacking == 0);
        if (o->lacking) report_str(item, "why", str_of(o->why));
    }
    report_int(json, "nodes", nodes);
    report_int(json, "missing", missing);
    if (as_json)
        report_print(json);
    else
        printf("%lld nodes of %zu ops, %d missing\n", (long long)nodes, n, missing);
    if (!as_json) cJSON_Delete(json);
    free(rows);
    return missing;
}

static Error *count_file(const char *path, Counting *c) {
    SavedModel *file = NULL;
    Error *err = saved_model_open(&file_system_local, path, &file);
    for (int i = 0; !err && i < file->count; i++) {
        FunctionLibrary *functions = function_library_new();
        Graph *g = graph_new();
        g->functions = functions;
        err = error_wrap(graph_import(g, file->meta_graphs[i]->graph_def), "%s", path);
        if (!err) count_graph(c, g);
        if (!err) count_functions(c, functions, file->meta_graphs[i]->graph_def);
        graph_free(g);
        function_library_free(functions);
    }
    saved_model_close(file);
    return err;
}

int graph_ops(int argc, char **argv) {
    bool only_missing = false, as_json = false, help = false;
    const Flag flags[] = {
        {"missing", FLAG_BOOL, &only_missing, NULL, "list only what is missing"},
        {"json", FLAG_BOOL, &as_json, NULL, "for programs"},
        {"help", FLAG_BOOL, &help, NULL, "print this"},
        {0},
    };
    const char *path[1];
    int count, code;
    if (!command_parse(flags, usage, argc, argv, path, 1, 1, &count, &code)) return code;
    ops_register_all();
    Counting c = {.arena = arena_new()};
    Error *err = count_file(path[0], &c);
    if (err)
        code = command_failed(argv[0], err);
    else
        code = print_counts(&c, only_missing, as_json) ? EXIT_FAILURE : 0;
    strmap_clear(&c.by_op);
    arena_free(c.arena);
    return code;
}
