/* simplify.c: arithmetic that changes no bit.

   What is left out would change one: x + 0 turns -0 to 0, half and bfloat16 lose the payload of a NaN on their way through float, a constant that is not
   a scalar may give its shape to the result. (A signalling NaN would come out quiet of x * 1, and comes out as it is.) No error is lost: an op that could fail
   stays, but for a Reshape that is flattened again: graphs of TensorFlow's vectorizer have some that fit nothing and rely on that. What the client fetches
   is not such: there TensorFlow keeps both. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "passes/pass_internal.h"

/* What is special about a constant, when it is a scalar of a type that may be simplified. */
typedef enum Neutral { NEUTRAL_UNKNOWN, NEUTRAL_NONE, NEUTRAL_ONE, NEUTRAL_ZERO, NEUTRAL_MINUS_ZERO } Neutral;

typedef struct Simplifier {
    PassContext *c;
    Rewire rewire;
    unsigned char *neutral; /* Neutral, by node id */
    int *fanout;
    bool *is_fetched; /* by node id */
    int node_count;
} Simplifier;

static bool is_integer(DataType t) {
    return t == DT_INT8 || t == DT_INT16 || t == DT_INT32 || t == DT_INT64 || t == DT_UINT8 || t == DT_UINT16 || t == DT_UINT32 || t == DT_UINT64;
}

static Neutral neutral_float(double v, bool is_negative) {
    return v == 1 ? NEUTRAL_ONE : v == 0 ? (is_negative ? NEUTRAL_MINUS_ZERO : NEUTRAL_ZERO) : NEUTRAL_NONE;
}

static Neutral neutral_of(const Tensor *t) {
    if (t->shape.rank != 0) return NEUTRAL_NONE;
    if (t->dtype == DT_FLOAT) return neutral_float(tensor_f32(t)[0], __builtin_signbit(tensor_f32(t)[0]));
    if (t->dtype == DT_DOUBLE) return neutral_float(tensor_f64(t)[0], __builtin_signbit(tensor_f64(t)[0]));
    if (!is_integer(t->dtype)) return NEUTRAL_NONE;
    uint64_t v = 0;
    memcpy(&v, t->data, dtype_size(t->dtype)); /* little-endian */
    return v == 1 ? NEUTRAL_ONE : v == 0 ? NEUTRAL_ZERO : NEUTRAL_NONE;
}

static Tensor *small_constant(const Node *n) {
    Str value;
    Tensor *t = NULL;
    if (!node_is_constant(n) || !node_attr(n, "value", &value) || value.len > 1024) return NULL;
    error_free(node_constant(n, &t));
    return t;
}

static Neutral neutral(Simplifier *s, const Node *n) {
    if (n->id >= s->node_count || !node_is(n, "Const")) return NEUTRAL_NONE;
    if (s->neutral[n->id] == NEUTRAL_UNKNOWN) {
        Tensor *t = small_constant(n);
        s->neutral[n->id] = (unsigned char)(t ? neutral_of(t) : NEUTRAL_NONE);
        tensor_unref(t);
    }
    return (Neutral)s->neutral[n->id];
}

/* Lets the consumers of n take `value`. */
static void replace(Simplifier *s, Node *n, Output value) {
    rewire_output(&s->rewire, s->c->graph, n, 0, value);
    if (!s->c->runtime->may_skip_outputs(value.node)) rewire_control(&s->rewire, n, value.node);
}

/* ---- Rules: each looks at a pure node without controls, whose edges are led where they go now ---- */

/* x * 1, x / 1, x - 0, x + -0 */
static void drop_neutral(Simplifier *s, Node *n) {
    bool is_float = n->output_types[0] == DT_FLOAT || n->output_types[0] == DT_DOUBLE;
    bool sum = node_is(n, "Add") || node_is(n, "AddV2"), product = node_is(n, "Mul");
    Neutral wanted = sum && is_float ? NEUTRAL_MINUS_ZERO : sum || node_is(n, "Sub") ? NEUTRAL_ZERO : NEUTRAL_ONE;
    if (neutral(s, n->inputs[1].node) == wanted)
        replace(s, n, n->inputs[0]);
    else if ((sum || product) && neutral(s, n->inputs[0].node) == wanted)
        replace(s, n, n->inputs[1]);
}

/* Whole numbers of `from` are all in `to`. */
static bool is_lossless(DataType from, DataType to) {
    static const struct {
        DataType type;
        int bits, sign;
    } rows[] = {{DT_INT8, 7, 1},   {DT_INT16, 15, 1}, {DT_INT32, 31, 1}, {DT_INT64, 63, 1}, {DT_UINT8, 8, 0},
                {DT_UINT16, 16, 0}, {DT_UINT32, 32, 0}, {DT_UINT64, 64, 0}, {DT_FLOAT, 24, 1}, {DT_DOUBLE, 53, 1}};
    int f = -1, t = -1;
    for (int i = 0; i < (int)(sizeof rows / sizeof rows[0]); i++) {
        if (rows[i].type == from) f = i;
        if (rows[i].type == to) t = i;
    }
    return f >= 0 && t >= 0 && is_integer(from) && rows[f].bits <= rows[t].bits && rows[f].sign <= rows[t].sign;
}

static void drop_cast(Simplifier *s, Node *n) {
    Output in = n->inputs[0];
    if (n->input_types[0] == n->output_types[0]) {
        replace(s, n, in);
    } else if (node_is(in.node, "Cast") && in.node->input_types[0] == n->output_types[0] && node_is_pure(in.node) &&
               is_lossless(in.node->input_types[0], in.node->output_types[0])) {
        replace(s, n, in.node->inputs[0]);
    }
}

/* An op that undoes itself. */
static void drop_twice(Simplifier *s, Node *n) {
    Output in = n->inputs[0];
    DataType t = n->output_types[0];
    bool exact = t == DT_FLOAT || t == DT_DOUBLE || is_integer(t);
    if (exact && str_eq(in.node->op, n->op) && node_is_pure(in.node)) replace(s, n, in.node->inputs[0]);
}

static void drop_single(Simplifier *s, Node *n) {
    if (n->input_count == 1) replace(s, n, n->inputs[0]);
}

static bool is_flat(const Tensor *t) {
    return t && t->shape.rank == 1 && t->count == 1 && tensor_index(t, 0) == -1;
}

/* Reshape to its own shape; or of another shape or to a flat view, which can be had of the tensor itself. */
static void drop_reshape(Simplifier *s, Node *n) {
    Output x = n->inputs[0], shape = n->inputs[1];
    if (node_is(shape.node, "Shape") && shape.node->control_count == 0 && shape.node->inputs[0].node == x.node && shape.node->inputs[0].index == x.index) {
        replace(s, n, x);
        return;
    }
    if (!node_is(x.node, "Reshape") || x.node->control_count || !node_is_pure(x.node)) return;
    Tensor *inner = small_constant(x.node->inputs[1].node), *outer = small_constant(shape.node);
    bool flat = is_flat(inner) && outer && outer->shape.rank == 1;
    for (int64_t i = 0; flat && i < outer->count; i++) flat = tensor_index(outer, i) != 0; /* zeros are matched with those of the input */
    bool is_fetched = n->id < s->node_count && s->is_fetched[n->id];
    if (flat || (is_flat(outer) && !is_fetched)) {
        n->inputs[0] = x.node->inputs[0];
        s->c->changed = true;
    }
    tensor_unref(inner);
    tensor_unref(outer);
}

static bool is_permutation(const Tensor *t) {
    unsigned seen = 0;
    if (!t || t->shape.rank != 1 || t->count > 16) return false;
    for (int64_t i = 0; i < t->count; i++) {
        int64_t v = tensor_index(t, i);
        if (v < 0 || v >= t->count || seen >> v & 1) return false;
        seen |= 1u << v;
    }
    return true;
}

/* A transposition of a transposition: the first one does both, and tells if the rank does not fit. */
static Error *join_transposes(Simplifier *s, Node *n) {
    Node *first = n->inputs[0].node;
    if (!node_is(first, "Transpose") || first->id >= s->node_count || s->fanout[first->id] != 1 || !node_is_pure(first) || pass_is_root(s->c, first)) return NULL;
    Tensor *p = small_constant(first->inputs[1].node), *q = small_constant(n->inputs[1].node), *both = NULL;
    Error *err = NULL;
    if (is_permutation(p) && is_permutation(q) && p->count == q->count) err = tensor_new(DT_INT32, &q->shape, &both);
    if (both) {
        for (int64_t i = 0; i < q->count; i++) tensor_i32(both)[i] = (int32_t)tensor_index(p, tensor_index(q, i));
        Node *perm = NULL;
        err = node_add_constant(s->c->graph, first->inputs[1].node, "joined", both, &perm);
        if (!err) {
            node_add_attr(s->c->graph, first, STR("Tperm"), attr_make_type(s->c->graph->arena, DT_INT32));
            first->input_types[1] = DT_INT32;
            first->inputs[1] = (Output){perm, 0};
            replace(s, n, (Output){first, 0});
        }
    }
    tensor_unref(p);
    tensor_unref(q);
    tensor_unref(both);
    return err;
}

typedef struct Rule {
    const char *op;
    void (*apply)(Simplifier *s, Node *n);
    bool integers_only;
} Rule;

static const Rule rules[] = {
    {"Mul", drop_neutral, false},      {"Add", drop_neutral, false},      {"AddV2", drop_neutral, false},   {"Sub", drop_neutral, false},
    {"RealDiv", drop_neutral, false},  {"Div", drop_neutral, false},      {"TruncateDiv", drop_neutral, true}, {"FloorDiv", drop_neutral, true},
    {"Cast", drop_cast, false},        {"Neg", drop_twice, false},        {"Invert", drop_twice, false},    {"AddN", drop_single, false},
    {"Reshape", drop_reshape, false},
};

static Error *simplify(Simplifier *s, Node *n) {
    if (n->control_count || !n->input_count || n->inputs[0].node->placed != n->placed) return NULL;
    if (node_is(n, "Transpose")) return node_is_pure(n) && !pass_is_root(s->c, n) ? join_transposes(s, n) : NULL;
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++) {
        if (!node_is(n, rules[i].op)) continue;
        if (node_is_pure(n) && (!rules[i].integers_only || is_integer(n->output_types[0]))) rules[i].apply(s, n);
        break;
    }
    return NULL;
}

static bool *fetched_nodes(const Graph *g) {
    bool *is_fetched = xcalloc((size_t)g->node_count, sizeof *is_fetched);
    for (int i = 0; i < g->node_count; i++)
        if (node_is(g->nodes[i], "_Send")) is_fetched[g->nodes[i]->inputs[0].node->id] = true;
    return is_fetched;
}

Error *pass_simplify(PassContext *c) {
    Graph *g = c->graph;
    Node **order = graph_order(g);
    if (!order) return NULL;
    Simplifier s = {.c = c, .node_count = g->node_count, .fanout = graph_fanout(g), .is_fetched = fetched_nodes(g)};
    s.neutral = xcalloc((size_t)g->node_count, sizeof *s.neutral);
    rewire_init(&s.rewire, g);
    Error *err = NULL;
    for (int i = 0; !err && i < s.node_count; i++) {
        c->changed |= rewire_node(&s.rewire, order[i]);
        err = simplify(&s, order[i]);
    }
    c->changed |= rewire_apply(&s.rewire, g);
    rewire_clear(&s.rewire);
    free(s.neutral);
    free(s.fanout);
    free(s.is_fetched);
    free(order);
    return err;
}
