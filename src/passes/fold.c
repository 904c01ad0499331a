/* fold.c: computes now what only depends on constants.

   The folded node keeps its name and waits for what its inputs waited for, so that it stays in its branch or loop. A kernel that fails is left to fail in the
   step, under its own name. */
#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "passes/pass_internal.h"

enum { MAX_CONSTANT = 10 << 20, SMALL_CONSTANT = 100 << 10 };

/* What is known of one node. */
typedef struct Known {
    bool is_constant; /* all outputs are, or can be, known now */
    bool folded;      /* by us: values are set */
    Tensor **values;  /* by output; of a Const made when first needed */
} Known;

typedef struct Folder {
    PassContext *c;
    Known *known; /* by node id */
    size_t max_bytes;
    size_t left_bytes; /* that constants may grow by */
} Folder;

static bool all_inputs_constant(const Folder *f, const Node *n) {
    for (int i = 0; i < n->input_count; i++)
        if (!f->known[n->inputs[i].node->id].is_constant) return false;
    return n->input_count > 0;
}

/* The value of a constant input, borrowed; NULL when it cannot be had. */
static Tensor *value_of(Folder *f, Output o) {
    Known *k = &f->known[o.node->id];
    if (!k->values) {
        Tensor *t = NULL;
        Error *err = node_constant(o.node, &t);
        error_free(err); /* the plan will say so */
        if (!t) {
            k->is_constant = false;
            return NULL;
        }
        k->values = xcalloc(1, sizeof(Tensor *));
        k->values[0] = t;
    }
    return k->values[o.index];
}

static size_t size_of(const Tensor *t) {
    size_t size = tensor_bytes(t);
    for (int64_t i = 0; t->dtype == DT_STRING && i < t->count; i++) size += tstring_str(&tensor_str(t)[i]).len;
    return size;
}

/* Constants may get smaller, or a little larger: an op that makes much of little (Fill, Tile) is cheaper to run than to keep. */
static size_t limit_for(const Folder *f, Tensor *const *in, int count) {
    size_t limit = 0;
    for (int i = 0; i < count; i++) limit += size_of(in[i]);
    if (limit < SMALL_CONSTANT) limit = SMALL_CONSTANT;
    return limit < f->max_bytes ? limit : f->max_bytes;
}

static void try_fold(Folder *f, Node *n) {
    Tensor **in = xcalloc((size_t)n->input_count, sizeof *in), **out = xcalloc((size_t)n->output_count, sizeof *out);
    Error *err = NULL;
    bool ok = true;
    for (int i = 0; ok && i < n->input_count; i++) ok = (in[i] = value_of(f, n->inputs[i])) != NULL;
    if (ok) {
        size_t limit = limit_for(f, in, n->input_count);
        err = f->c->runtime->evaluate(f->c->runtime->arg, n, in, limit, out);
        for (int i = 0; !err && ok && i < n->output_count; i++) ok = out[i] && out[i]->dtype == n->output_types[i] && size_of(out[i]) <= limit;
    }
    free(in);
    if (!err && ok) {
        Known *k = &f->known[n->id];
        *k = (Known){true, true, out};
        return;
    }
    error_free(err);
    for (int i = 0; i < n->output_count; i++) tensor_unref(out[i]);
    free(out);
}

/* A node is only worth a constant when somebody sees it who is not folded himself. */
static void find_seen(const Folder *f, int node_count, bool *seen) {
    const Graph *g = f->c->graph;
    for (int i = 0; i < node_count; i++) {
        const Node *n = g->nodes[i];
        if (pass_is_root(f->c, n)) seen[i] = true;
        for (int j = 0; !f->known[i].folded && j < n->input_count; j++) seen[n->inputs[j].node->id] = true;
        for (int j = 0; j < n->control_count; j++) seen[n->controls[j]->id] = true;
    }
}

/* In order, so that the inputs' controls are complete. */
static void inherit_controls(const Folder *f, Node *n) {
    for (int i = 0; i < n->input_count; i++) {
        const Node *src = n->inputs[i].node;
        for (int j = 0; j < src->control_count; j++) node_add_control(f->c->graph, n, src->controls[j]);
    }
}

static Error *materialise(Folder *f, Node *n, Rewire *r) {
    Known *k = &f->known[n->id];
    Graph *g = f->c->graph;
    size_t size = 0;
    for (int i = 0; i < n->output_count; i++) size += size_of(k->values[i]);
    if (size > f->left_bytes) return NULL; /* it is computed at run time, from inputs that may be folded or not */
    f->left_bytes -= size;
    inherit_controls(f, n);
    f->c->changed = true;
    if (n->output_count == 1) return node_become_constant(g, n, k->values[0]);
    Error *err = NULL;
    for (int i = 0; !err && i < n->output_count; i++) {
        Node *added;
        char part[32];
        snprintf(part, sizeof part, "folded_%d", i);
        err = node_add_constant(g, n, part, k->values[i], &added);
        if (err) break;
        rewire_output(r, g, n, i, (Output){added, 0});
        if (i == 0 && !pass_is_root(f->c, n)) rewire_control(r, n, added);
    }
    return err;
}

static Error *fold_all(Folder *f, Node *const *order, int node_count) {
    Graph *g = f->c->graph;
    int folded = 0;
    for (int i = 0; i < node_count; i++) {
        Node *n = order[i];
        if (node_is_constant(n)) {
            Str value;
            f->known[n->id].is_constant = node_attr(n, "value", &value) && value.len <= f->max_bytes;
        } else if (all_inputs_constant(f, n) && node_is_pure(n)) {
            try_fold(f, n);
            folded += f->known[n->id].folded;
        }
    }
    if (!folded) return NULL;
    bool *seen = xcalloc((size_t)node_count, sizeof *seen);
    Rewire r;
    rewire_init(&r, g);
    find_seen(f, node_count, seen);
    Error *err = NULL;
    for (int i = 0; !err && i < node_count; i++) {
        Node *n = order[i];
        if (!f->known[n->id].folded) continue;
        if (seen[n->id])
            err = materialise(f, n, &r);
        else
            inherit_controls(f, n);
    }
    rewire_apply(&r, g);
    rewire_clear(&r);
    free(seen);
    return err;
}

Error *pass_fold(PassContext *c) {
    int count = c->graph->node_count;
    size_t max = c->options->max_constant_bytes ? c->options->max_constant_bytes : MAX_CONSTANT;
    Node **order = graph_order(c->graph);
    if (!order) return NULL;
    Folder f = {c, xcalloc((size_t)count, sizeof(Known)), max, MAX_CONSTANT > max ? MAX_CONSTANT : max};
    int *outputs = xcalloc((size_t)count, sizeof *outputs); /* before nodes become constants */
    for (int i = 0; i < count; i++) outputs[i] = c->graph->nodes[i]->output_count;
    Error *err = fold_all(&f, order, count);
    for (int i = 0; i < count; i++) {
        for (int j = 0; f.known[i].values && j < outputs[i]; j++) tensor_unref(f.known[i].values[j]);
        free(f.known[i].values);
    }
    free(outputs);
    free(f.known);
    free(order);
    return err;
}
