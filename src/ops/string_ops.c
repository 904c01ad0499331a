/* string_ops.c: StringJoin, StringSplit, Substr, StringLength, StringStrip, ReduceJoin, StringNGrams. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "ops/elements.h"
#include "ops/op_list.h"

const OpDef string_ops_ops[] = {
    {"StringJoin", "inputs: N * string -> output: string", "N: int >= 0; separator: string = ''", 0},
    {"StringSplit", "input: string, delimiter: string -> indices: int64, values: string, shape: int64",
     "skip_empty: bool = true", 0},
    {"StringSplitV2", "input: string, sep: string -> indices: int64, values: string, shape: int64",
     "maxsplit: int = -1", 0},
    {"Substr", "input: string, pos: T, len: T -> output: string",
     "T: {int32, int64}; unit: {'BYTE', 'UTF8_CHAR'} = 'BYTE'", 0},
    {"StringLength", "input: string -> output: int32", "unit: {'BYTE', 'UTF8_CHAR'} = 'BYTE'", 0},
    {"StringStrip", "input: string -> output: string", "", 0},
    {"ReduceJoin", "inputs: string, reduction_indices: int32 -> output: string",
     "keep_dims: bool = false; separator: string = ''", 0},
    {"StringNGrams", "data: string, data_splits: Tsplits -> ngrams: string, ngrams_splits: Tsplits",
     "separator: string; ngram_widths: list(int) >= 0; left_pad: string; right_pad: string; pad_width: int; "
     "preserve_short_sequences: bool; Tsplits: {int32, int64} = int64",
     0},
    {0},
};

static Str at(const Tensor *t, int64_t i) {
    return tstring_str(&tensor_str(t)[i]);
}

static void take_text(Tensor *t, int64_t i, StrBuf *b) {
    size_t len = b->len;
    tstring_take(&tensor_str(t)[i], strbuf_detach(b), len);
    *b = (StrBuf){0};
}

typedef struct Text {
    char *ptr;
    size_t len;
} Text;

static Error *init_separator(const Node *node, void *state) {
    Str s;
    Error *err = node_attr_string(node, "separator", &s);
    if (!err) *(Text *)state = (Text){str_dup(s), s.len};
    return err;
}

static void clear_text(void *state) {
    free(((Text *)state)->ptr);
}

/* ---- Join ---- */

static Error *run_join(KernelContext *k) {
    const Text *sep = k->state;
    Shape shape = SHAPE_SCALAR;
    for (int i = 0; i < k->input_count; i++) {
        if (k->in[i]->shape.rank == 0) continue;
        if (shape.rank && !shape_eq(&shape, &k->in[i]->shape)) {
            char *a = shape_str(&shape), *b = shape_str(&k->in[i]->shape);
            Error *err = error_invalid("Input shapes do not match: %s vs. %s", a, b);
            free(a);
            free(b);
            return err;
        }
        shape = k->in[i]->shape;
    }
    Tensor *out = kernel_output(k, 0, &shape);
    for (int64_t e = 0; out && e < out->count; e++) {
        StrBuf b = {0};
        for (int i = 0; i < k->input_count; i++) {
            if (i) strbuf_add(&b, (Str){sep->ptr, sep->len});
            strbuf_add(&b, at(k->in[i], k->in[i]->shape.rank ? e : 0));
        }
        take_text(out, e, &b);
    }
    return NULL;
}

typedef struct ReduceJoinState {
    Text separator; /* first: clear_text frees it */
    bool keep_dims;
} ReduceJoinState;

static Error *init_reduce_join(const Node *node, void *state) {
    ReduceJoinState *s = state;
    Error *err = node_attr_bool(node, "keep_dims", &s->keep_dims);
    return err ? err : init_separator(node, state);
}

/* The axes to join, in the order given. */
static Error *join_axes(KernelContext *k, int rank, int *axes, int *count) {
    const Tensor *t = k->in[1];
    bool used[SHAPE_MAX_RANK] = {false};
    *count = 0;
    for (int64_t i = 0; i < t->count; i++) {
        int64_t axis = tensor_i32(t)[i];
        if (axis < -rank || axis >= rank)
            return error_new(CODE_OUT_OF_RANGE, "Invalid reduction dimension %lld for input with %d dimension(s)", (long long)axis,
                                 rank);
        axis += axis < 0 ? rank : 0;
        if (used[axis]) return error_invalid("Duplicate reduction dimension %lld", (long long)axis);
        used[axis] = true;
        axes[(*count)++] = (int)axis;
    }
    return NULL;
}

static Error *run_reduce_join(KernelContext *k) {
    const ReduceJoinState *s = k->state;
    const Tensor *in = k->in[0];
    int rank = in->shape.rank, axes[SHAPE_MAX_RANK], axis_count;
    Error *err = join_axes(k, rank, axes, &axis_count);
    if (err) return err;
    int64_t stride[SHAPE_MAX_RANK], outer_dims[SHAPE_MAX_RANK], outer_stride[SHAPE_MAX_RANK], steps = 1;
    bool reduced[SHAPE_MAX_RANK] = {false};
    for (int d = rank - 1, n = 1; d >= 0; n = 0, d--) stride[d] = n ? 1 : shape_prod(&in->shape, d + 1, rank);
    for (int i = 0; i < axis_count; i++) {
        reduced[axes[i]] = true;
        steps = (int64_t)((uint64_t)steps * (uint64_t)in->shape.dims[axes[i]]); /* may wrap where another dimension is empty */
    }
    Shape shape = SHAPE_SCALAR;
    int outer = 0;
    for (int d = 0; d < rank; d++) {
        if (!reduced[d]) {
            outer_dims[outer] = in->shape.dims[d];
            outer_stride[outer++] = stride[d];
        }
        if (!reduced[d] || s->keep_dims) shape_insert_dim(&shape, shape.rank, reduced[d] ? 1 : in->shape.dims[d]);
    }
    Tensor *out = kernel_output(k, 0, &shape);
    for (int64_t e = 0; out && e < out->count; e++) {
        StrBuf b = {0};
        int64_t base = 0, rest = e;
        for (int d = outer - 1; d >= 0; d--) {
            base += rest % outer_dims[d] * outer_stride[d];
            rest /= outer_dims[d];
        }
        for (int64_t step = 0; step < steps; step++) {
            int64_t from = base;
            rest = step;
            for (int i = 0; i < axis_count; i++) { /* the first axis given varies fastest */
                from += rest % in->shape.dims[axes[i]] * stride[axes[i]];
                rest /= in->shape.dims[axes[i]];
            }
            if (step) strbuf_add(&b, (Str){s->separator.ptr, s->separator.len});
            strbuf_add(&b, at(in, from));
        }
        take_text(out, e, &b);
    }
    return NULL;
}

/* ---- Split ---- */

typedef struct Piece {
    Str text;
    int64_t row;
} Piece;

typedef struct Pieces {
    Piece *items;
    size_t count, capacity;
} Pieces;

static void add_piece(Pieces *p, Str s, int64_t row) {
    if (p->count == p->capacity) p->items = vec_reserve(p->items, &p->capacity, p->count + 1, sizeof *p->items);
    p->items[p->count++] = (Piece){s, row};
}

/* Sparse [rows, most pieces in a row]: indices, values, shape. */
static Error *set_pieces(KernelContext *k, Pieces *p, int64_t rows) {
    Shape matrix = shape_matrix((int64_t)p->count, 2), vector = shape_vector((int64_t)p->count), two = shape_vector(2);
    Tensor *indices = kernel_output(k, 0, &matrix), *values = kernel_output(k, 1, &vector),
           *shape = kernel_output(k, 2, &two);
    if (indices && values && shape) {
        int64_t column = 0, widest = 0;
        for (size_t i = 0; i < p->count; i++) {
            column = i && p->items[i].row == p->items[i - 1].row ? column + 1 : 0;
            widest = column + 1 > widest ? column + 1 : widest;
            tensor_i64(indices)[2 * i] = p->items[i].row;
            tensor_i64(indices)[2 * i + 1] = column;
            tstring_set(&tensor_str(values)[i], p->items[i].text);
        }
        tensor_i64(shape)[0] = rows;
        tensor_i64(shape)[1] = widest;
    }
    free(p->items);
    return NULL;
}

static Error *check_split(KernelContext *k, const char *separator) {
    if (k->in[0]->shape.rank != 1)
        return error_invalid("input must be a vector, got shape: %s", shape_text(&k->in[0]->shape).text);
    if (k->in[1]->shape.rank != 0)
        return error_invalid("%s must be a scalar, got shape: %s", separator, shape_text(&k->in[1]->shape).text);
    return NULL;
}

static Error *init_split(const Node *node, void *state) {
    return node_attr_bool(node, "skip_empty", state);
}

/* The first character from `from` on that separates; the end of s when there is none. */
static size_t next_separator(Str s, size_t from, Str delimiter) {
    if (delimiter.len == 1) {
        const char *hit = memchr(s.ptr + from, delimiter.ptr[0], s.len - from);
        return hit ? (size_t)(hit - s.ptr) : s.len;
    }
    while (from < s.len && !memchr(delimiter.ptr, s.ptr[from], delimiter.len)) from++;
    return from;
}

/* Any character of the delimiter separates; without one every character is a piece. */
static Error *run_split(KernelContext *k) {
    bool skip_empty = *(bool *)k->state;
    Error *err = check_split(k, "delimiter");
    if (err) return err;
    Str delimiter = at(k->in[1], 0);
    Pieces p = {0};
    for (int64_t row = 0; row < k->in[0]->count; row++) {
        Str s = at(k->in[0], row);
        size_t from = 0;
        if (!delimiter.len) {
            for (size_t i = 0; i < s.len; i++) add_piece(&p, str_slice(s, i, i + 1), row);
            continue;
        }
        while (s.len && from <= s.len) { /* an empty string has no pieces */
            const size_t to = next_separator(s, from, delimiter);
            if (to > from || !skip_empty) add_piece(&p, str_slice(s, from, to), row);
            from = to + 1;
        }
    }
    return set_pieces(k, &p, k->in[0]->count);
}

static Error *init_split_v2(const Node *node, void *state) {
    return node_attr_int(node, "maxsplit", state);
}

/* The whole separator, or runs of white space when it is empty; after max > 0 splits the rest is one piece, even if
 * empty. */
static void split_v2(Pieces *p, Str s, Str sep, int64_t max, int64_t row) {
    size_t from = 0;
    int64_t splits = 0;
    if (!sep.len) {
        for (;;) {
            while (from < s.len && isspace((unsigned char)s.ptr[from])) from++;
            if (max > 0 && splits++ == max) {
                add_piece(p, str_slice(s, from, s.len), row);
                return;
            }
            if (from == s.len) return;
            size_t to = from;
            while (to < s.len && !isspace((unsigned char)s.ptr[to])) to++;
            add_piece(p, str_slice(s, from, to), row);
            from = to;
        }
    }
    while (max <= 0 || splits < max) {
        const char *hit = memmem(s.ptr + from, s.len - from, sep.ptr, sep.len);
        if (!hit) break;
        add_piece(p, str_slice(s, from, (size_t)(hit - s.ptr)), row);
        from = (size_t)(hit - s.ptr) + sep.len;
        splits++;
    }
    add_piece(p, str_slice(s, from, s.len), row);
}

static Error *run_split_v2(KernelContext *k) {
    int64_t max = *(int64_t *)k->state;
    Error *err = check_split(k, "sep");
    if (err) return err;
    Pieces p = {0};
    for (int64_t row = 0; row < k->in[0]->count; row++) split_v2(&p, at(k->in[0], row), at(k->in[1], 0), max, row);
    return set_pieces(k, &p, k->in[0]->count);
}

/* ---- Parts of strings ---- */

static Error *init_unit(const Node *node, void *state) {
    Str unit;
    Error *err = node_attr_string(node, "unit", &unit);
    if (!err) *(bool *)state = str_is(unit, "UTF8_CHAR");
    return err;
}

static int64_t utf8_length(Str s) {
    int64_t n = 0;
    for (size_t i = 0; i < s.len; i++) n += (s.ptr[i] & 0xc0) != 0x80;
    return n;
}

/* The byte where character n starts. */
static size_t utf8_offset(Str s, int64_t n) {
    size_t i = 0;
    for (; i < s.len; i++)
        if ((s.ptr[i] & 0xc0) != 0x80 && n-- == 0) break;
    return i;
}

static Error *run_length(KernelContext *k) {
    bool characters = *(bool *)k->state;
    Tensor *out = kernel_output(k, 0, &k->in[0]->shape);
    for (int64_t i = 0; out && i < out->count; i++) {
        Str s = at(k->in[0], i);
        tensor_i32(out)[i] = (int32_t)(characters ? utf8_length(s) : (int64_t)s.len);
    }
    return NULL;
}

static Error *substr(Str s, int64_t pos, int64_t len, bool characters, Str *out) {
    int64_t size = characters ? utf8_length(s) : (int64_t)s.len;
    if ((pos > size || pos < -size || (pos < 0 && len < 0)) && characters) return error_invalid("pos %lld out of range for string", (long long)pos);
    if (pos > size || pos < -size)
        return error_invalid("pos %lld out of range for string b'%.*s'", (long long)pos, STR_ARG(s));
    int64_t from = pos < 0 ? pos + size : pos;
    int64_t to = len < 0 || len > size - from ? size : from + len;
    if (len < 0 && characters) to = from; /* a negative length is no character, but all bytes */
    *out = characters ? str_slice(s, utf8_offset(s, from), utf8_offset(s, to)) : str_slice(s, (size_t)from, (size_t)to);
    return NULL;
}

/* The shape of input and pos/len broadcast against each other; false when they do not fit. */
static bool broadcast(const Shape *a, const Shape *b, Shape *out) {
    int rank = a->rank > b->rank ? a->rank : b->rank;
    *out = (Shape){.rank = rank};
    for (int d = 1; d <= rank; d++) {
        int64_t x = d <= a->rank ? a->dims[a->rank - d] : 1, y = d <= b->rank ? b->dims[b->rank - d] : 1;
        if (x != y && x != 1 && y != 1) return false;
        out->dims[rank - d] = x == 1 ? y : x;
    }
    return true;
}

static int64_t broadcast_index(const Shape *small, const Shape *out, int64_t i) {
    int64_t index = 0, scale = 1;
    for (int d = 1; d <= out->rank; d++) {
        int64_t coordinate = i % out->dims[out->rank - d];
        i /= out->dims[out->rank - d];
        if (d > small->rank) continue;
        int64_t dim = small->dims[small->rank - d];
        if (dim != 1) index += coordinate * scale;
        scale *= dim;
    }
    return index;
}

static Error *run_substr(KernelContext *k) {
    bool characters = *(bool *)k->state;
    const Tensor *in = k->in[0], *pos = k->in[1], *len = k->in[2];
    Shape shape;
    if (!shape_eq(&pos->shape, &len->shape))
        return error_invalid("pos and len should have the same shape, got: %s vs. %s", shape_text(&pos->shape).text,
                             shape_text(&len->shape).text);
    if (!broadcast(&in->shape, &pos->shape, &shape))
        return error_invalid("Incompatible shapes: %s vs. %s", shape_text(&in->shape).text, shape_text(&pos->shape).text);
    Tensor *out = kernel_output(k, 0, &shape);
    const bool is_whole = shape_eq(&in->shape, &shape), is_one = pos->count == 1;
    for (int64_t i = 0; out && i < out->count; i++) {
        int64_t p = is_one ? 0 : broadcast_index(&pos->shape, &shape, i), s = is_whole ? i : broadcast_index(&in->shape, &shape, i);
        Str part;
        Error *err = substr(at(in, s), tensor_index(pos, p), tensor_index(len, p), characters, &part);
        if (err && shape.rank == 2 && pos->shape.rank > 0 && !shape_eq(&in->shape, &pos->shape)) {
            long long row = i / shape.dims[1], column = i % shape.dims[1];
            return characters ? error_append(err, " at index %lld", row) : error_append(err, " at index (%lld, %lld)", row, column);
        }
        if (err) return error_append(err, " at index %lld", (long long)i);
        tstring_set(&tensor_str(out)[i], part);
    }
    return NULL;
}

static Error *run_strip(KernelContext *k) {
    Tensor *out = kernel_output(k, 0, &k->in[0]->shape);
    for (int64_t i = 0; out && i < out->count; i++) {
        Str s = at(k->in[0], i);
        while (s.len && isspace((unsigned char)s.ptr[0])) s = str_slice(s, 1, s.len);
        while (s.len && isspace((unsigned char)s.ptr[s.len - 1])) s = str_slice(s, 0, s.len - 1);
        tstring_set(&tensor_str(out)[i], s);
    }
    return NULL;
}

/* ---- N-grams ---- */

enum { MAX_NGRAM_PARTS = 1 << 30 }; /* strings put together in one call */

typedef struct NGramState {
    Text separator, left, right;
    int64_t *widths, pad_width;
    int width_count;
    bool keep_short;
} NGramState;

static Error *init_ngrams(const Node *node, void *state) {
    NGramState *s = state;
    Str left, right;
    Error *err = init_separator(node, &s->separator);
    if (!err) err = node_attr_string(node, "left_pad", &left);
    if (!err) s->left = (Text){str_dup(left), left.len};
    if (!err) err = node_attr_string(node, "right_pad", &right);
    if (!err) s->right = (Text){str_dup(right), right.len};
    if (!err) err = node_attr_ints(node, "ngram_widths", &s->widths, &s->width_count);
    if (!err) err = node_attr_int(node, "pad_width", &s->pad_width);
    if (!err) err = node_attr_bool(node, "preserve_short_sequences", &s->keep_short);
    for (int i = 0; !err && i < s->width_count; i++)
        if (s->widths[i] < 1 || s->widths[i] > INT32_MAX) err = error_invalid("ngram_widths must contain positive values");
    return err;
}

static void clear_ngrams(void *state) {
    NGramState *s = state;
    free(s->separator.ptr);
    free(s->left.ptr);
    free(s->right.ptr);
    free(s->widths);
}

static int64_t pad_of(const NGramState *s, int64_t width) {
    return s->pad_width < 0 || s->pad_width > width - 1 ? width - 1 : s->pad_width;
}

static int64_t ngram_count(const NGramState *s, int64_t n, int64_t width) {
    int64_t count = n + 2 * pad_of(s, width) - width + 1;
    return count > 0 ? count : 0;
}

/* Element i of a row that begins at `from`, has n elements, and pads around it. */
static Str padded(const NGramState *s, const Tensor *data, int64_t from, int64_t n, int64_t i, int64_t pad) {
    if (i < pad) return (Str){s->left.ptr, s->left.len};
    if (i >= pad + n) return (Str){s->right.ptr, s->right.len};
    return at(data, from + i - pad);
}

static void put_ngram(const NGramState *s, const Tensor *data, int64_t from, int64_t n, int64_t start, int64_t width,
                      int64_t pad, Tensor *out, int64_t to) {
    StrBuf b = {0};
    for (int64_t i = 0; i < width; i++) {
        if (i) strbuf_add(&b, (Str){s->separator.ptr, s->separator.len});
        strbuf_add(&b, padded(s, data, from, n, start + i, pad));
    }
    take_text(out, to, &b);
}

static Error *run_ngrams(KernelContext *k) {
    const NGramState *s = k->state;
    const Tensor *data = k->in[0], *splits = k->in[1];
    if (data->shape.rank != 1 || splits->shape.rank != 1) return error_invalid("data and data_splits must be vectors");
    int64_t rows = splits->count ? splits->count - 1 : 0, total = 0;
    double work = 0;
    if (splits->count && tensor_index(splits, 0) != 0)
        return error_invalid("First split value must be 0, got %lld", (long long)tensor_index(splits, 0));
    for (int64_t r = 1; r < splits->count; r++) {
        int64_t v = tensor_index(splits, r), before = tensor_index(splits, r - 1);
        if (v < before || v > data->count)
            return error_invalid("Invalid split value %lld, must be in [%lld, %lld]", (long long)v, (long long)before,
                                 (long long)data->count);
    }
    if (splits->count && tensor_index(splits, rows) != data->count)
        return error_invalid("Last split value must be data size. Expected %lld, got %lld", (long long)data->count,
                             (long long)tensor_index(splits, rows));
    if (splits->count == 0 || data->count == 0) {
        Tensor *none = kernel_output(k, 0, &data->shape); /* of empty strings, where there are no rows */
        Tensor *starts = none ? kernel_output(k, 1, &splits->shape) : NULL;
        if (starts) memset(starts->data, 0, tensor_bytes(starts));
        return NULL;
    }
    Tensor *out_splits = kernel_output(k, 1, &splits->shape);
    if (!out_splits) return NULL;
    for (int64_t r = 0; r <= rows && splits->count; r++) {
        if (r) {
            int64_t n = tensor_index(splits, r) - tensor_index(splits, r - 1), count = 0;
            for (int w = 0; w < s->width_count; w++) {
                if (n + 2 * pad_of(s, s->widths[w]) > INT32_MAX)
                    return error_invalid("Pad width could lead to integer overflow, got pad_width = %lld", (long long)s->pad_width);
                count += ngram_count(s, n, s->widths[w]);
                work += (double)ngram_count(s, n, s->widths[w]) * (double)s->widths[w];
            }
            if (work > MAX_NGRAM_PARTS) return error_new(CODE_RESOURCE_EXHAUSTED, "The n-grams have more than %d parts", MAX_NGRAM_PARTS);
            total += !count && s->keep_short && n ? 1 : count;
        }
        if (splits->dtype == DT_INT64)
            tensor_i64(out_splits)[r] = total;
        else
            tensor_i32(out_splits)[r] = (int32_t)total;
    }
    Shape shape = shape_vector(total);
    Tensor *out = kernel_output(k, 0, &shape);
    int64_t to = 0;
    for (int64_t r = 0; out && r < rows; r++) {
        int64_t from = tensor_index(splits, r), n = tensor_index(splits, r + 1) - from, first = to;
        for (int w = 0; w < s->width_count; w++)
            for (int64_t i = 0; i < ngram_count(s, n, s->widths[w]); i++)
                put_ngram(s, data, from, n, i, s->widths[w], pad_of(s, s->widths[w]), out, to++);
        if (to == first && s->keep_short && n) put_ngram(s, data, from, n, 0, n, 0, out, to++);
    }
    return NULL;
}

const KernelDef string_ops_cpu[] = {
    {"StringJoin", .run = run_join, .state_size = sizeof(Text), .init = init_separator, .clear = clear_text},
    {"ReduceJoin", .run = run_reduce_join, .state_size = sizeof(ReduceJoinState), .init = init_reduce_join,
     .clear = clear_text},
    {"StringSplit", .run = run_split, .state_size = sizeof(bool), .init = init_split},
    {"StringSplitV2", .run = run_split_v2, .state_size = sizeof(int64_t), .init = init_split_v2},
    {"Substr", .run = run_substr, .state_size = sizeof(bool), .init = init_unit},
    {"StringLength", .run = run_length, .state_size = sizeof(bool), .init = init_unit},
    {"StringStrip", .run = run_strip},
    {"StringNGrams", .run = run_ngrams, .state_size = sizeof(NGramState), .init = init_ngrams, .clear = clear_ngrams},
    {0},
};
