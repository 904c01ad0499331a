/* einsum.c: gradients of Einsum: again Einsum, with the equation turned round. */
#include <string.h>

#include "gradients/rule.h"

static bool has_label(Str labels, char c) {
    return str_find(labels, c) >= 0;
}

static Output einsum(Builder *b, Output x, Output y, Str equation) {
    b_with(b, "equation", attr_make_string(b->g->arena, equation));
    return has(y) ? b_op2(b, "Einsum", x, y) : b_op1(b, "Einsum", x);
}

static bool has_dots(Str labels) {
    return has_label(labels, '.');
}

/* Where a label stands among the dimensions: from the end when it is behind an ellipsis. */
static int axis_of(Str labels, char c) {
    ptrdiff_t at = str_find(labels, c), dots = str_find(labels, '.');
    return dots >= 0 && at > dots ? (int)at - (int)labels.len : (int)at;
}

/* dz, with labels `have`, as a gradient of an input with labels `want`: labels that only the input has were summed
 * over, so each value is repeated along them. */
static Output spread(Builder *b, Output dz, Str have, Str want, Output shape) {
    char summed[128];
    Output dims[128], ones = {0};
    int count = 0;
    for (size_t i = 0; i < want.len && count < 64; i++) {
        char c = want.ptr[i];
        bool again = c == '.' || has_label(have, c);
        for (int j = 0; !again && j < count; j++) again = summed[j] == c;
        if (again) continue;
        dims[count] = b_item(b, shape, axis_of(want, c));
        summed[count++] = c;
    }
    Str equation = arena_printf(b->g->arena, "%.*s%.*s->%.*s", count, summed, STR_ARG(have), STR_ARG(want));
    if (!count) return einsum(b, dz, NO_OUTPUT, equation);
    ones = b_fill(b, b_i32s(b, 1, &count), b_i32(b, 1));
    Output old = b_shape(b, dz), wide = b_concat2(b, b_pack(b, dims, count), old, 0);
    return einsum(b, b_broadcast(b, b_reshape(b, dz, b_concat2(b, ones, old, 0)), wide), NO_OUTPUT, equation);
}

/* The gradient by the input with labels `own`, from that of the result and the other input. */
static Output one_side(Builder *b, Output dz, Output other, Str own, Str others, Str result, Output shape) {
    StrBuf left = {0};
    for (size_t i = 0; i < own.len; i++)
        if (own.ptr[i] == '.' || has_label(result, own.ptr[i]) || has_label(others, own.ptr[i]))
            strbuf_addc(&left, own.ptr[i]);
    Str kept = arena_str(b->g->arena, strbuf_str(&left));
    strbuf_clear(&left);
    Output dx = einsum(b, dz, other,
                       arena_printf(b->g->arena, "%.*s,%.*s->%.*s", STR_ARG(result), STR_ARG(others), STR_ARG(kept)));
    return str_eq(kept, own) ? dx : spread(b, dx, kept, own, shape);
}

/* The dimensions that an ellipsis stands for, and the first of them. */
static Output dots_shape(Builder *b, Output shape, Str labels, int *start) {
    ptrdiff_t at = str_find(labels, '.');
    *start = (int)at;
    int behind = (int)labels.len - (int)at - 3;
    Output begin = b_i32s(b, 1, start), end = b_i32s(b, 1, (int[]){-behind}), one = b_i32s(b, 1, (int[]){1});
    if (!behind) b_with_int(b, "end_mask", 1);
    return b_op4(b, "StridedSlice", shape, begin, end, one);
}

static void einsum_grad(Builder *b, Rule *r) {
    Str equation = rule_string(b, r, "equation");
    const char *arrow = strstr(arena_str(b->g->arena, equation).ptr, "->");
    if (!arrow) b_fail(b, error_invalid("Einsum equation %.*s has no ->", STR_ARG(equation)));
    if (b->error) return;
    Str result = str_of(arrow + 2), inputs = str_slice(equation, 0, equation.len - result.len - 2),
        x = str_next(&inputs, ','), y = inputs;
    Output dz = rule_dy(r, 0);
    if (rule_node(r)->input_count == 1) {
        rule_set(r, 0, spread(b, dz, result, x, rule_in_shape(r, 0)));
        return;
    }
    bool dots = has_dots(result);
    if (dots && !has_dots(x)) x = arena_printf(b->g->arena, "%.*s...", STR_ARG(x));
    if (dots && !has_dots(y)) y = arena_printf(b->g->arena, "%.*s...", STR_ARG(y));
    Output sx = rule_in_shape(r, 0), sy = rule_in_shape(r, 1), dx = {0}, dy = {0};
    if (rule_wants(r, 0)) dx = one_side(b, dz, b_conj(b, rule_in(r, 1)), x, y, result, sx);
    if (rule_wants(r, 1)) dy = one_side(b, dz, b_conj(b, rule_in(r, 0)), y, x, result, sy);
    if (dots) {
        int from_x, from_y;
        Output bx = dots_shape(b, sx, x, &from_x), by = dots_shape(b, sy, y, &from_y);
        Node *axes = b_node(b, "BroadcastGradientArgs", (Output[]){bx, by}, 2);
        if (has(dx)) dx = b_reshape(b, b_sum(b, dx, b_add(b, output_of(axes, 0), b_i32(b, from_x)), false), sx);
        if (has(dy)) dy = b_reshape(b, b_sum(b, dy, b_add(b, output_of(axes, 1), b_i32(b, from_y)), false), sy);
    }
    rule_set(r, 0, dx);
    rule_set(r, 1, dy);
}

const GradientDef einsum_gradients[] = {
    {"Einsum", einsum_grad},
    {0},
};
