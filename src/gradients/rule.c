/* rule.c: what rules ask of the walk, and what many of them share. */
#include "gradients/rule.h"

#include "gradients/backprop.h"
#include "tensor/tensor_proto.h"

const Node *rule_node(const Rule *r) {
    return r->node;
}

static int input_at(const Rule *r, int i) {
    return i < 0 ? r->node->input_count + i : i;
}

Output rule_in(Rule *r, int i) {
    return scope_value(r->scope, r->node->inputs[input_at(r, i)]);
}

Output rule_out(Rule *r, int i) {
    return scope_value(r->scope, (Output){(Node *)r->node, i});
}

Output rule_value(Rule *r, Output forward) {
    return scope_value(r->scope, forward);
}

bool rule_has_dy(const Rule *r, int i) {
    return i < r->node->output_count && intmap_get(&r->scope->sums, output_key((Output){(Node *)r->node, i}));
}

Gradient rule_sparse_dy(Rule *r, int i) {
    Gradient dy = {0};
    scope_gradient(r->scope, (Output){(Node *)r->node, i}, &dy);
    return dy;
}

Output rule_dy(Rule *r, int i) {
    Builder *b = &r->scope->p->b;
    Output out = {(Node *)r->node, i};
    if (b->error) return NO_OUTPUT;
    if (!rule_has_dy(r, i)) return b_zeros_like(b, scope_value(r->scope, out));
    return gradient_dense(b, rule_sparse_dy(r, i));
}

bool rule_wants(const Rule *r, int i) {
    return scope_depends(r->scope, r->node->inputs[input_at(r, i)]);
}

void rule_set(Rule *r, int i, Output dx) {
    scope_add(r->scope, r->node->inputs[input_at(r, i)], (Gradient){.values = dx});
}

void rule_set_sparse(Rule *r, int i, Output values, Output indices, Output dense_shape) {
    scope_add(r->scope, r->node->inputs[input_at(r, i)], (Gradient){values, indices, dense_shape});
}

Str rule_source(const Rule *r) {
    return r->scope->p->prefix;
}

bool rule_bool(Builder *b, Rule *r, const char *name) {
    bool v = false;
    if (!b->error) b_fail(b, node_attr_bool(r->node, name, &v));
    return v;
}

int64_t rule_int(Builder *b, Rule *r, const char *name) {
    int64_t v = 0;
    if (!b->error) b_fail(b, node_attr_int(r->node, name, &v));
    return v;
}

double rule_float(Builder *b, Rule *r, const char *name) {
    float v = 0;
    if (!b->error) b_fail(b, node_attr_float(r->node, name, &v));
    return v;
}

DataType rule_type(Builder *b, Rule *r, const char *name) {
    DataType v = DT_FLOAT;
    if (!b->error) b_fail(b, node_attr_type(r->node, name, &v));
    return v;
}

Str rule_string(Builder *b, Rule *r, const char *name) {
    Str v = STR("");
    if (!b->error) b_fail(b, node_attr_string(r->node, name, &v));
    return v;
}

bool rule_const_int(Rule *r, int i, int64_t *out) {
    const Node *n = r->node->inputs[input_at(r, i)].node;
    while ((node_is(n, "Identity") || node_is(n, "Enter")) && n->input_count) n = n->inputs[0].node;
    Str value, proto;
    Tensor *t = NULL;
    if (!node_is(n, "Const") || !node_attr(n, "value", &value) || !attr_tensor(value, &proto)) return false;
    Error *err = tensor_proto_decode(proto, &t);
    bool ok = !err && t->count == 1 && (t->dtype == DT_INT32 || t->dtype == DT_INT64);
    if (ok) *out = tensor_index(t, 0);
    error_free(err);
    tensor_unref(t);
    return ok;
}

void rule_set_reduced_to(Builder *b, Rule *r, int i, Output g, Output full_shape) {
    Output shape = rule_in_shape(r, i);
    Node *axes = b_node(b, "BroadcastGradientArgs", (Output[]){shape, full_shape}, 2);
    rule_set(r, i, b_reshape(b, b_sum(b, g, output_of(axes, 0), false), shape));
}

static void set_reduced(Builder *b, Rule *r, int i, Output g, Output shape, Output axes) {
    if (has(g)) rule_set(r, i, b_reshape(b, b_sum(b, g, axes, false), shape));
}

void rule_set_reduced(Builder *b, Rule *r, int i, Output gx, int j, Output gy) {
    if (!has(gx) && !has(gy)) return;
    if (same_output(r->node->inputs[i], r->node->inputs[j])) { /* nothing can have been broadcast */
        if (has(gx)) rule_set(r, i, gx);
        if (has(gy)) rule_set(r, j, gy);
        return;
    }
    Output shapes[] = {rule_in_shape(r, i), rule_in_shape(r, j)};
    Node *axes = b_node(b, "BroadcastGradientArgs", shapes, 2);
    set_reduced(b, r, i, gx, shapes[0], output_of(axes, 0));
    set_reduced(b, r, j, gy, shapes[1], output_of(axes, 1));
}

#define ROW(name) name##_gradients,
static const GradientDef *const tables[] = {GRADIENT_FILES(ROW)};
#undef ROW

const GradientDef *gradient_find(Str op) {
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
        for (const GradientDef *row = tables[i]; row->op; row++)
            if (str_is(op, row->op)) return row;
    return NULL;
}

void gradient_rules(StrMap *out) {
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
        for (const GradientDef *row = tables[i]; row->op; row++) strmap_put(out, str_of(row->op), (void *)row);
}

GradientKind gradient_kind(Str op) {
    const GradientDef *row = gradient_find(op);
    return !row ? GRADIENT_UNKNOWN : row->add ? GRADIENT_RULE : GRADIENT_NONE;
}
