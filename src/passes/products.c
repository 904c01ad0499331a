/* products.c: a product of which only some columns are taken computes no others; products that are only summed are added to the sum as they are made.

   Both come of gradients: of a concatenation whose other parts are not trained, and of weights that are used at every step of a sequence. The product's own node
   changes and takes one edge more (where the slice lies, or the sum so far); the Slice becomes an Identity of it, as does the AddN of the last one. What comes by
   the new edge must be made no later than the product's own inputs, by the longest way from the beginning: so no product waits, and no cycle comes of it. And it must
   come whenever they come: in a branch that is not taken, nobody who waits for the product may miss it. */
#include <stdlib.h>

#include "base/memory.h"
#include "passes/pass_internal.h"

enum { LEAST_SUM = 3 }; /* a sum of two is a loop over elements, and joins its product in fuse.c */

typedef struct Products {
    PassContext *c;
    int *level;      /* by node id: the longest way from the beginning of the graph */
    int *takers;     /* by node id: edges that carry its values */
    bool *is_source; /* by node id: may give dead values */
    uint64_t *needs; /* by node id: which sources must give a value for it to run */
    int bits;        /* sources counted */
} Products;

/* ---- Which nodes run when others run ---- */

/* Sources beyond those that have a bit share the last one, which proves nothing. */
static const uint64_t SHARED_BIT = (uint64_t)1 << 63;

static uint64_t next_bit(Products *p) {
    return p->bits < 63 ? (uint64_t)1 << p->bits++ : SHARED_BIT;
}

/* A source (an output of a Switch, a Merge, what comes from another task, what a loop gives) has a bit for each of its first two outputs. */
static void find_needs(Products *p, Node *const *order, int count) {
    uint64_t *own = xcalloc(2 * (size_t)count, sizeof *own);
    for (int i = 0; i < count; i++) {
        const Node *n = order[i];
        uint64_t *needs = &p->needs[n->id];
        p->is_source[n->id] = node_is_control_flow(n) || p->c->runtime->may_skip_outputs(n);
        if (p->is_source[n->id]) {
            own[2 * n->id] = next_bit(p);
            own[2 * n->id + 1] = n->output_count > 1 ? next_bit(p) : 0;
            *needs = SHARED_BIT; /* of who waits for it without taking a value */
            continue;
        }
        for (int j = 0; j < n->input_count; j++) {
            const Node *from = n->inputs[j].node;
            *needs |= !p->is_source[from->id] ? p->needs[from->id] : n->inputs[j].index < 2 ? own[2 * from->id + n->inputs[j].index] : SHARED_BIT;
        }
        for (int j = 0; j < n->control_count; j++) *needs |= p->needs[n->controls[j]->id];
    }
    free(own);
}

static bool runs_whenever(const Products *p, const Node *first, const Node *then) {
    uint64_t needs = p->needs[first->id];
    return !(needs & SHARED_BIT) && !(needs & ~p->needs[then->id]);
}

static bool is_early(const Products *p, const Node *first, const Node *than) {
    return p->level[first->id] <= p->level[than->id] && runs_whenever(p, first, than);
}

/* ---- The product behind a value ---- */

/* NULL when it is none, or when anybody else takes it on its way. */
static Node *product_behind(const Products *p, Output value, int placed) {
    Node *n = value.node;
    while (node_is(n, "Identity") && p->takers[n->id] == 1 && n->placed == placed) n = n->inputs[0].node;
    bool ours = node_is(n, "MatMul") && n->output_types[0] == DT_FLOAT && p->takers[n->id] == 1 && n->placed == placed && node_is_pure(n);
    return ours && p->c->runtime->fusion_role(p->c->runtime->arg, n) == FUSION_HEAD ? n : NULL;
}

/* A part of a node to come, whose inputs are its first part or, by number, inputs of the node. */
static Node *part_of(Graph *g, const Node *like, int id, const Output *inputs, int input_count) {
    Node *part = arena_alloc(g->arena, sizeof *part);
    *part = *like;
    part->id = id;
    part->inputs = arena_calloc(g->arena, (size_t)input_count, sizeof *part->inputs);
    for (int i = 0; i < input_count; i++) part->inputs[i] = inputs[i];
    part->input_count = input_count;
    part->controls = NULL;
    part->control_count = 0;
    return part;
}

static Error *become(Graph *g, Node *n, Str op, const Attr *attrs, int attr_count, const Output *inputs, int input_count) {
    Attr *own = arena_calloc(g->arena, (size_t)attr_count, sizeof *own);
    for (int i = 0; i < attr_count; i++) own[i] = attrs[i];
    Output *edges = arena_calloc(g->arena, (size_t)input_count, sizeof *edges);
    for (int i = 0; i < input_count; i++) edges[i] = inputs[i];
    n->op = op;
    n->attrs = own;
    n->attr_count = attr_count;
    n->inputs = edges;
    n->input_count = input_count;
    return node_resolve(g, n);
}

static Error *become_identity(Graph *g, Node *n, Output value) {
    Attr type = {STR("T"), attr_make_type(g->arena, n->output_types[0])};
    return become(g, n, STR("Identity"), &type, 1, &value, 1);
}

static void set_parts(Graph *g, Node *n, Node *product, Node *rest) {
    n->parts = arena_calloc(g->arena, 2, sizeof(Node *));
    n->parts[0] = product;
    n->parts[1] = rest;
    n->part_count = 2;
}

/* ---- Columns of a product ---- */

static Error *narrow(Products *p, Node *slice) {
    Graph *g = p->c->graph;
    Node *product = slice->control_count || !node_is_pure(slice) ? NULL : product_behind(p, slice->inputs[0], slice->placed);
    if (!product || !is_early(p, slice->inputs[1].node, product) || !is_early(p, slice->inputs[2].node, product)) return NULL;
    Output value = slice->inputs[0], edges[4] = {product->inputs[0], product->inputs[1], slice->inputs[1], slice->inputs[2]};
    Node *first = part_of(g, product, 0, (Output[]){{NULL, 0}, {NULL, 1}}, 2);
    Node *rest = part_of(g, slice, 1, (Output[]){{first, 0}, {NULL, 2}, {NULL, 3}}, 3);
    Attr attrs[] = {{STR("T"), attr_make_type(g->arena, DT_FLOAT)}, {STR("Index"), attr_make_type(g->arena, slice->input_types[1])}};
    Error *err = become(g, product, STR("_ProductSlice"), attrs, 2, edges, 4);
    set_parts(g, product, first, rest);
    return err ? err : become_identity(g, slice, value);
}

/* ---- Sums of products ---- */

static bool is_sum_of_products(const Products *p, const Node *sum) {
    if (sum->output_types[0] != DT_FLOAT || !node_is_pure(sum)) return false;
    for (int i = 1; i < sum->input_count; i++) {
        const Node *product = product_behind(p, sum->inputs[i], sum->placed);
        if (!product || !is_early(p, sum->inputs[i - 1].node, product)) return false;
    }
    return true;
}

static Error *accumulate(Products *p, Node *sum) {
    if (!is_sum_of_products(p, sum)) return NULL;
    Graph *g = p->c->graph;
    int count = sum->input_count;
    Output last = sum->inputs[count - 1];
    Node *rest = part_of(g, sum, 1, sum->inputs, 2);
    for (int i = 1; i < count; i++) {
        Node *product = product_behind(p, sum->inputs[i], sum->placed);
        Output edges[3] = {sum->inputs[i - 1], product->inputs[0], product->inputs[1]};
        Node *first = part_of(g, product, 0, (Output[]){{NULL, 1}, {NULL, 2}}, 2);
        Attr attrs[] = {{STR("T"), attr_make_type(g->arena, DT_FLOAT)}, {STR("index"), attr_make_int(g->arena, i)}};
        Error *err = become(g, product, STR("_ProductAdd"), attrs, 2, edges, 3);
        if (err) return err;
        set_parts(g, product, first, part_of(g, rest, 1, (Output[]){{NULL, 0}, {first, 0}}, 2));
    }
    return become_identity(g, sum, last);
}

static bool is_candidate(const Node *n) {
    return node_is(n, "Slice") || (node_is(n, "AddN") && n->input_count >= LEAST_SUM);
}

Error *pass_products(PassContext *c) {
    Graph *g = c->graph;
    int count = g->node_count;
    bool any = false;
    for (int i = 0; i < count && !any; i++) any = is_candidate(g->nodes[i]);
    Node **order = any ? graph_order(g) : NULL;
    if (!order) return NULL;
    Products p = {.c = c, .level = graph_levels(g, order)};
    p.takers = xcalloc((size_t)count, sizeof *p.takers);
    p.is_source = xcalloc((size_t)count, sizeof *p.is_source);
    p.needs = xcalloc((size_t)count, sizeof *p.needs);
    for (int i = 0; i < count; i++)
        for (int j = 0; j < g->nodes[i]->input_count; j++) p.takers[g->nodes[i]->inputs[j].node->id]++;
    find_needs(&p, order, count);
    Error *err = NULL;
    for (int i = 0; !err && i < count; i++) {
        if (is_candidate(order[i])) err = node_is(order[i], "Slice") ? narrow(&p, order[i]) : accumulate(&p, order[i]);
    }
    free(p.needs);
    free(p.is_source);
    free(p.takers);
    free(p.level);
    free(order);
    return err;
}
