/* einsum_shapes.c: the rule of Einsum: "ij,jk->ik", with "..." for dimensions that are broadcast. */
#include <ctype.h>

#include "shapes/rule_list.h"

typedef struct Labels {
    int64_t dims[128];    /* by letter */
    bool seen[128];
    PartialShape ellipsis; /* of all operands, broadcast */
    bool has_ellipsis;
} Labels;

/* Reads one operand's subscripts against its shape. */
static void read_operand(ShapeContext *c, Labels *l, Str text, PartialShape s) {
    int letters = 0, dots = -1, at = 0;
    for (size_t i = 0; i < text.len; i++) {
        if (text.ptr[i] == '.' && dots < 0) dots = letters;
        letters += isalpha((unsigned char)text.ptr[i]) != 0;
    }
    if (s.rank < 0) {
        for (size_t i = 0; i < text.len; i++)
            if (isalpha((unsigned char)text.ptr[i])) l->seen[(int)text.ptr[i]] = true;
        if (dots >= 0) l->ellipsis = SHAPE_UNKNOWN;
        l->has_ellipsis |= dots >= 0;
        return;
    }
    s = dots < 0 ? ctx_rank(c, s, letters) : ctx_rank_at_least(c, s, letters);
    if (c->err) return;
    int spread = s.rank - letters;
    if (dots >= 0) {
        PartialShape part = ctx_sub(c, s, dots, dots + spread);
        l->ellipsis = ctx_broadcast(c, l->ellipsis, part);
        l->has_ellipsis = true;
    }
    for (size_t i = 0, n = 0; i < text.len; i++) {
        int letter = (unsigned char)text.ptr[i];
        if (!isalpha(letter)) continue;
        if (dots >= 0 && (int)n == dots) at += spread;
        l->dims[letter] = ctx_merge_dim(c, l->dims[letter], s.dims[at++]);
        l->seen[letter] = true;
        n++;
    }
}

static void einsum(ShapeContext *c) {
    Str equation = ctx_attr_str(c, "equation"), inputs = equation, output = STR("");
    Labels l = {.ellipsis = SHAPE_SCALAR};
    for (int i = 0; i < 128; i++) l.dims[i] = DIM_UNKNOWN;
    bool found = false;
    for (size_t i = 0; i + 1 < equation.len && !found; i++) {
        if (equation.ptr[i] != '-' || equation.ptr[i + 1] != '>') continue;
        inputs = str_slice(equation, 0, i);
        output = str_slice(equation, i + 2, equation.len);
        found = true;
    }
    if (!found) ctx_fail(c, "Expecting exactly one '->' in einsum equation: %.*s", STR_ARG(equation));
    int operands = 0;
    for (Str rest = inputs; !c->err; operands++) {
        ptrdiff_t comma = str_find(rest, ',');
        Str text = str_trim(comma < 0 ? rest : str_slice(rest, 0, (size_t)comma));
        if (operands < c->in_count) read_operand(c, &l, text, c->in[operands]);
        if (comma < 0) break;
        rest = str_slice(rest, (size_t)comma + 1, rest.len);
    }
    if (!c->err && operands + 1 != c->in_count) ctx_fail(c, "Expected %d inputs but got: %d", operands + 1, c->in_count);
    PartialShape out = SHAPE_SCALAR;
    bool dots_done = false;
    for (size_t i = 0; i < output.len && !c->err; i++) {
        int letter = (unsigned char)output.ptr[i];
        if (letter == '.' && !dots_done) {
            out = ctx_concat(c, out, l.has_ellipsis ? l.ellipsis : SHAPE_SCALAR);
            dots_done = true;
        }
        if (!isalpha(letter)) continue;
        if (letter < 128 && !l.seen[letter]) ctx_fail(c, "Einsum output subscript '%c' does not appear in the inputs", letter);
        out = ctx_concat(c, out, shape_vector(l.dims[letter]));
    }
    ctx_out(c, 0, out);
}

const ShapeRow einsum_rules[] = {
    {"Einsum", einsum, 0},
    {0},
};
