/* gradients.c: gradients of a whole graph: checks what is asked, starts the walk, and gives what it found. */
#include "gradients/gradients.h"

#include <stdlib.h>

#include "base/memory.h"
#include "gradients/backprop.h"
#include "gradients/branch.h"
#include "gradients/loop.h"

static bool prefix_is_used(const Graph *g, Str prefix) {
    for (int i = 0; i < g->node_count; i++) {
        Str name = g->nodes[i]->name;
        if (str_starts(name, prefix) && (name.len == prefix.len || name.ptr[prefix.len] == '/')) return true;
    }
    return false;
}

static Str unique_prefix(Graph *g, const char *wish) {
    Str base = arena_str(g->arena, str_of(wish && *wish ? wish : "gradients")), prefix = base;
    for (int i = 1; prefix_is_used(g, prefix); i++) prefix = arena_printf(g->arena, "%.*s_%d", STR_ARG(base), i);
    return prefix;
}

static Error *check_output(const Graph *g, Output x, const char *what, int i) {
    if (!x.node || x.node->id >= g->node_count || g->nodes[x.node->id] != x.node)
        return error_invalid("%s[%d] is not a tensor of the graph", what, i);
    if (!x.node->info)
        return error_not_found("Op type not registered '%.*s' ({{node %.*s}})", STR_ARG(x.node->op),
                               STR_ARG(x.node->name));
    if (x.index < 0 || x.index >= x.node->output_count)
        return error_invalid("%s[%d]: node '%.*s' has no output %d", what, i, STR_ARG(x.node->name), x.index);
    return NULL;
}

static Error *check(const Graph *g, const Output *ys, int ny, const Output *xs, int nx, const GradientOptions *o) {
    Error *err = ny < 1 ? error_invalid("Gradients of nothing: there are no ys") : NULL;
    for (int i = 0; !err && i < ny; i++) err = check_output(g, ys[i], "ys", i);
    for (int i = 0; !err && i < nx; i++) err = check_output(g, xs[i], "xs", i);
    for (int i = 0; !err && i < o->stop_count; i++) err = check_output(g, o->stops[i], "stops", i);
    for (int i = 0; !err && i < ny; i++) {
        bool given = o->dxs && o->dxs[i].node;
        DataType type = output_dtype(ys[i]);
        if (given) err = check_output(g, o->dxs[i], "dxs", i);
        if (!err && given && type != DT_RESOURCE && output_dtype(o->dxs[i]) != type)
            err = error_invalid("Gradient type %s generated for tensor %.*s:%d with type %s",
                                dtype_name(output_dtype(o->dxs[i])), STR_ARG(ys[i].node->name), ys[i].index,
                                dtype_name(type));
        if (!err && !given && !dtype_is_float(type))
            err = error_invalid(
                "Gradients of the %s tensor %.*s:%d must be given: only floating point tensors start with ones",
                dtype_name(type), STR_ARG(ys[i].node->name), ys[i].index);
    }
    return err;
}

static Output densest(Builder *b, Gradient x) {
    return has(x.values) ? gradient_dense(b, x) : NO_OUTPUT;
}

static void list_enters(Backprop *p) {
    p->enters = arena_calloc(p->scratch, (size_t)p->frames.frame_count, sizeof *p->enters);
    for (int i = 0; i < p->frames.frame_count; i++)
        p->enters[i].nodes = arena_calloc(p->scratch, (size_t)p->frames.frames[i].enter_count, sizeof(Node *));
    for (int i = 0; i < p->node_count; i++) {
        if (p->frames.enter_frame[i] < 0) continue;
        FrameEnters *enters = &p->enters[p->frames.enter_frame[i]];
        enters->nodes[enters->count++] = p->g->nodes[i];
    }
}

static void clear_loops(Backprop *p) {
    size_t at = 0;
    uint64_t key;
    void *value;
    while (intmap_next(&p->loops, &at, &key, &value)) intmap_clear(&((ForwardLoop *)value)->lists);
    intmap_clear(&p->loops);
    branch_map_clear(p->branches);
}

static Error *check_outside(const Backprop *p, const Output *list, int count, const char *what) {
    for (int i = 0; i < count; i++)
        if (backprop_frame(p, list[i].node) != 0)
            return error_invalid("%s[%d], %.*s:%d, is inside of the loop %.*s", what, i, STR_ARG(list[i].node->name),
                                 list[i].index, STR_ARG(p->frames.frames[backprop_frame(p, list[i].node)].name));
    return NULL;
}

Error *backprop_run(Graph *g, const Output *ys, int ny, const Output *xs, int nx, const GradientOptions *o,
                    IntMap *forward_nodes, Gradient *dys) {
    Error *err = check(g, ys, ny, xs, nx, o);
    if (err) return err;
    Backprop p = {.g = g, .node_count = g->node_count, .colocate = o->colocate, .forward_nodes = forward_nodes};
    err = frame_map_build(g, &p.frames);
    if (err) return err;
    err = check_outside(&p, ys, ny, "ys");
    if (!err) err = check_outside(&p, xs, nx, "xs");
    if (err) {
        frame_map_clear(&p.frames);
        return err;
    }
    p.scratch = arena_new();
    list_enters(&p);
    p.prefix = unique_prefix(g, o->prefix);
    p.b = (Builder){.g = g, .scope = p.prefix, .device = STR("")};
    gradient_rules(&p.rules);
    for (int i = 0; i < o->stop_count; i++) intmap_put(&p.stops, output_key(o->stops[i]), &p);
    Scope root = {.p = &p};
    Gradient *given = xcalloc((size_t)ny, sizeof *given);
    for (int i = 0; i < ny; i++) {
        bool is_given = o->dxs && o->dxs[i].node;
        if (o->colocate) p.b.device = ys[i].node->device;
        given[i].values = is_given ? o->dxs[i] : b_ones_like(&p.b, ys[i]);
    }
    scope_backprop(&root, ys, given, ny, xs, nx, dys);
    for (int i = 0; !o->sparse && i < nx; i++) dys[i] = (Gradient){.values = densest(&p.b, dys[i])};
    err = p.b.error;
    builder_clear(&p.b);
    free(given);
    clear_loops(&p);
    intmap_clear(&p.stops);
    intmap_clear(&p.frame_of);
    strmap_clear(&p.rules);
    frame_map_clear(&p.frames);
    arena_free(p.scratch);
    return err;
}

Error *gradients_add_with(Graph *g, const Output *ys, int ny, const Output *xs, int nx, const GradientOptions *o,
                          Gradient *dys) {
    return backprop_run(g, ys, ny, xs, nx, o, NULL, dys);
}

Error *gradients_add(Graph *g, const Output *ys, int ny, const Output *xs, int nx, const Output *dxs,
                     const char *prefix, Output *dys) {
    Gradient *found = xcalloc((size_t)nx + 1, sizeof *found);
    GradientOptions options = {.dxs = dxs, .prefix = prefix};
    Error *err = gradients_add_with(g, ys, ny, xs, nx, &options, found);
    for (int i = 0; !err && i < nx; i++) dys[i] = found[i].values;
    free(found);
    return err;
}
