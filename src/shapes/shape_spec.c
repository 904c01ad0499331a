/* shape_spec.c: rules written as a line of text, read while a node is inferred. */
#include "shapes/shape_spec.h"

#include <ctype.h>
#include <stdlib.h>

#include "base/memory.h"

typedef struct Spec {
    ShapeContext *c;
    int64_t dims[26];        /* of small letters */
    PartialShape shapes[26]; /* of capitals */
} Spec;

/* Takes one item, up to the next space that is not in brackets. */
static Str next_item(Str *rest) {
    *rest = str_trim(*rest);
    size_t end = 0;
    int depth = 0;
    while (end < rest->len && (depth || rest->ptr[end] != ' ')) {
        depth += rest->ptr[end] == '[';
        depth -= rest->ptr[end] == ']';
        end++;
    }
    Str item = str_slice(*rest, 0, end);
    *rest = str_slice(*rest, end, rest->len);
    return item;
}

static bool is_rest(Str dim) {
    return str_ends(dim, STR("..."));
}

/* What a dimension of the text must be, as far as is known. */
static int64_t dim_value(Spec *spec, Str dim) {
    int64_t value = DIM_UNKNOWN;
    char first = dim.len ? dim.ptr[0] : '?';
    if (first == '{') {
        char *name = str_dup(str_slice(dim, 1, dim.len - 1));
        value = ctx_attr_int(spec->c, name);
        free(name);
    } else if (islower((unsigned char)first)) {
        value = spec->dims[first - 'a'];
    } else if (isdigit((unsigned char)first)) {
        str_to_int64(dim, &value);
    }
    return value;
}

static void match_dim(Spec *spec, Str dim, int64_t actual) {
    char first = dim.len ? dim.ptr[0] : '?';
    if (islower((unsigned char)first))
        spec->dims[first - 'a'] = ctx_merge_dim(spec->c, spec->dims[first - 'a'], actual);
    else if (first != '?')
        ctx_dim_is(spec->c, actual, dim_value(spec, dim));
}

static void match_shape(Spec *spec, Str name, PartialShape actual) {
    char first = name.len ? name.ptr[0] : '.';
    if (isupper((unsigned char)first)) spec->shapes[first - 'A'] = ctx_merge(spec->c, spec->shapes[first - 'A'], actual);
}

/* The dimensions of "[a,b,S...]": their number without S..., and where that stands (-1: nowhere). */
static int split_dims(Str item, Str *dims, int *rest_at) {
    Str inner = str_slice(item, 1, item.len - 1);
    int count = 0;
    *rest_at = -1;
    while (inner.len && count < SHAPE_MAX_RANK) {
        dims[count] = str_trim(str_next(&inner, ','));
        if (is_rest(dims[count])) *rest_at = count;
        count++;
    }
    return count;
}

static void match_input(Spec *spec, Str item, PartialShape s) {
    Str dims[SHAPE_MAX_RANK];
    int rest_at;
    if (str_is(item, "*")) return;
    if (item.ptr[0] != '[') {
        match_shape(spec, item, s);
        return;
    }
    int count = split_dims(item, dims, &rest_at);
    if (rest_at < 0) {
        s = ctx_rank(spec->c, s, count);
        for (int i = 0; i < count; i++) match_dim(spec, dims[i], shape_dim(s, i));
        return;
    }
    s = ctx_rank_at_least(spec->c, s, count - 1);
    if (s.rank < 0) return;
    int after = count - 1 - rest_at;
    for (int i = 0; i < rest_at; i++) match_dim(spec, dims[i], s.dims[i]);
    for (int i = 0; i < after; i++) match_dim(spec, dims[rest_at + 1 + i], s.dims[s.rank - after + i]);
    match_shape(spec, dims[rest_at], ctx_sub(spec->c, s, rest_at, s.rank - after));
}

static PartialShape output_shape(Spec *spec, Str item) {
    Str dims[SHAPE_MAX_RANK];
    int rest_at;
    char first = item.ptr[0];
    if (first == '*') return SHAPE_UNKNOWN;
    if (first != '[') return spec->shapes[first - 'A'];
    int count = split_dims(item, dims, &rest_at);
    PartialShape s = SHAPE_SCALAR;
    for (int i = 0; i < count; i++) {
        PartialShape part = shape_vector(i == rest_at ? 0 : dim_value(spec, dims[i]));
        if (i == rest_at) part = isupper((unsigned char)dims[i].ptr[0]) ? spec->shapes[dims[i].ptr[0] - 'A'] : SHAPE_UNKNOWN;
        s = ctx_concat(spec->c, s, part);
    }
    return s;
}

/* Outputs [at, at + size) from an attribute that is a shape or a list of them. */
static void outputs_from_attr(ShapeContext *c, Str attr, int at, int size) {
    char *name = str_dup(attr);
    Str value;
    if (!node_attr(c->node, name, &value) || !attr_is_list(value)) {
        PartialShape s = ctx_attr_shape(c, name);
        for (int i = 0; i < size; i++) ctx_out(c, at + i, s);
    } else {
        PartialShape *shapes = xcalloc((size_t)size + 1, sizeof *shapes);
        int found = ctx_attr_shapes(c, name, shapes, size);
        if (found != size) ctx_fail(c, "`%s` must be the same length as the outputs (%d vs. %d)", name, found, size);
        for (int i = 0; i < size && found == size; i++) ctx_out(c, at + i, shapes[i]);
        free(shapes);
    }
    free(name);
}

void shape_spec_apply(ShapeContext *c, const char *text) {
    Spec spec = {.c = c};
    for (int i = 0; i < 26; i++) {
        spec.dims[i] = DIM_UNKNOWN;
        spec.shapes[i] = SHAPE_UNKNOWN;
    }
    const OpInfo *op = c->node->info;
    Str rest = str_of(text), item;
    int at = 0, arg = 0, size;
    for (item = next_item(&rest); item.len && !str_is(item, "->"); item = next_item(&rest)) {
        size = arg < op->input_count ? ctx_arg_size(c, &op->inputs[arg++]) : 0;
        for (int i = 0; i < size && at < c->in_count; i++) match_input(&spec, item, c->in[at++]);
    }
    at = arg = 0;
    for (item = next_item(&rest); item.len; item = next_item(&rest)) {
        size = arg < op->output_count ? ctx_arg_size(c, &op->outputs[arg++]) : 0;
        if (item.ptr[0] == '@') {
            outputs_from_attr(c, str_slice(item, 1, item.len), at, size);
            at += size;
            continue;
        }
        PartialShape s = output_shape(&spec, item);
        for (int i = 0; i < size; i++) ctx_out(c, at++, s);
    }
}
