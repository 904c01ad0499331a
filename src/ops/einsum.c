/* einsum.c: Einsum of one or two inputs, as a batched matrix product between permutations.

   Each label of the equation is of one kind: in the result and both inputs (batch), in the result and one of them
   (free), in both inputs alone (contracted), in one input alone (summed before). Inputs are brought to the order batch,
   free, contracted; the product has the order batch, free of a, free of b; that is brought to the order of the result.
 */
#include <ctype.h>
#include <string.h>

#include "ops/elements.h"
#include "ops/matmul.h"
#include "ops/op_list.h"

const OpDef einsum_ops[] = {
    {"Einsum", "inputs: N * T -> output: T", "equation: string; N: int >= 1; T: type", 0},
    {0},
};

enum {
    FIRST_ELLIPSIS = 128, /* labels of dimensions under "...": this plus their distance from the last one */
    LABEL_COUNT = FIRST_ELLIPSIS + SHAPE_MAX_RANK,
    MAX_LABELS = 2 * SHAPE_MAX_RANK,
};

typedef struct EinsumState {
    char inputs[2][64], output[64]; /* '.' stands for an ellipsis */
    int input_count;
} EinsumState;

static Error *parse_side(Str text, char *out) {
    size_t n = 0;
    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];
        if (c == ' ') continue;
        if (c == '.') {
            if (text.len - i < 3 || text.ptr[i + 1] != '.' || text.ptr[i + 2] != '.' || memchr(out, '.', n)) {
                return error_invalid("Invalid ellipsis in einsum subscripts '%.*s'", STR_ARG(text));
            }
            i += 2;
        } else if (!isalpha((unsigned char)c)) {
            return error_invalid("Invalid character '%c' in einsum subscripts '%.*s'",
                                 isprint((unsigned char)c) ? c : '?', STR_ARG(text));
        }
        if (n == 63) return error_invalid("Too many einsum subscripts in '%.*s'", STR_ARG(text));
        out[n++] = c;
    }
    out[n] = 0;
    return NULL;
}

static Error *einsum_init(const Node *node, void *state) {
    EinsumState *st = state;
    Str equation;
    Error *err = node_attr_string(node, "equation", &equation);
    if (err) return err;
    const char *arrow = memmem(equation.ptr, equation.len, "->", 2);
    if (!arrow) return error_invalid("Expecting exactly one '->' in einsum equation: %.*s", STR_ARG(equation));
    size_t left = (size_t)(arrow - equation.ptr);
    Str rest = str_slice(equation, 0, left);
    err = parse_side(str_slice(equation, left + 2, equation.len), st->output);
    for (bool more = true; more && !err;) {
        more = str_find(rest, ',') >= 0;
        if (st->input_count == 2) {
            return error_invalid("Expecting at most 2 inputs in einsum equation: %.*s", STR_ARG(equation));
        }
        err = parse_side(str_next(&rest, ','), st->inputs[st->input_count++]);
    }
    return err;
}

/* ---- Labels ---- */

/* An array seen by its labels: how far apart neighbours along each lie; 0 where it has no such dimension. */
typedef struct Labels {
    int list[MAX_LABELS]; /* of the dimensions, in order */
    int count;
    bool has[LABEL_COUNT];
    int64_t stride[LABEL_COUNT];
} Labels;

/* Labels of a side, its ellipsis standing for `under` dimensions. */
static Error *expand(const char *side, int under, Labels *l) {
    for (const char *c = side; *c; c++) {
        int n = *c == '.' ? under : 1;
        for (int i = 0; i < n; i++) {
            if (l->count == SHAPE_MAX_RANK) return error_invalid("Einsum of more than %d dimensions", SHAPE_MAX_RANK);
            l->list[l->count++] = *c == '.' ? FIRST_ELLIPSIS + under - 1 - i : *c;
        }
    }
    return NULL;
}

/* Sizes of the labels of x, which must agree with those known from the other input and from each other. */
static Error *size_labels(KernelContext *k, const Tensor *x, const Labels *l, int64_t *sizes) {
    for (int d = 0; d < x->shape.rank; d++) {
        int label = l->list[d];
        int64_t n = x->shape.dims[d], known = sizes[label];
        bool stretches = label >= FIRST_ELLIPSIS;
        if (known >= 0 && known != n && !(stretches && (n == 1 || known == 1)))
            return stretches ? error_invalid("Invalid broadcasting dimensions: %s vs. %s", shape_text(&k->in[0]->shape).text,
                                             shape_text(&x->shape).text)
                             : error_invalid("Expected dimension %lld at axis %d of the input shaped %s but got dimension %lld",
                                             (long long)known, d, shape_text(&x->shape).text, (long long)n);
        if (known < 0 || (stretches && known == 1)) sizes[label] = n;
    }
    return NULL;
}

static Error *label_input(KernelContext *k, int i, Labels *l, int64_t *sizes, int *most_under) {
    const EinsumState *st = k->state;
    const Tensor *x = k->in[i];
    const char *side = st->inputs[i];
    int named = (int)strlen(side) - (strchr(side, '.') != NULL), under = x->shape.rank - named;
    if (under < 0 || (under > 0 && !strchr(side, '.'))) {
        return error_invalid("Expected input %d to have rank %s%d but got: %d", i, strchr(side, '.') ? "at least " : "", named,
                             x->shape.rank);
    }
    Error *err = expand(side, under, l);
    if (!err) err = size_labels(k, x, l, sizes);
    if (err) return err;
    if (under > *most_under) *most_under = under;
    int64_t stride = 1;
    for (int d = x->shape.rank - 1; d >= 0; d--) {
        int label = l->list[d];
        int64_t n = x->shape.dims[d];
        if (label < FIRST_ELLIPSIS || n != 1) l->stride[label] += stride;
        l->has[label] = true;
        stride = (int64_t)((uint64_t)stride * (uint64_t)n); /* may wrap on the way to 0 */
    }
    return NULL;
}

/* Row-major strides of an array whose dimensions have these labels; a label that comes twice walks a diagonal. */
static void label_packed(Labels *l, const int64_t *sizes) {
    int64_t stride = 1;
    for (int d = l->count - 1; d >= 0; d--) {
        l->has[l->list[d]] = true;
        l->stride[l->list[d]] += stride;
        stride = (int64_t)((uint64_t)stride * (uint64_t)sizes[l->list[d]]);
    }
}

static void append(Labels *to, const int *list, int count) {
    for (int i = 0; i < count; i++) to->list[to->count++] = list[i];
}

/* ---- Moving ---- */

/* Copies, or adds, each element that the labels of `walk` lead to. */
static void move_elements(const Labels *walk, const int64_t *sizes, const Labels *to, void *z, const Labels *from,
                          const void *x, size_t size, RowFn *add) {
    int64_t index[MAX_LABELS] = {0}, z_at = 0, x_at = 0;
    for (;;) {
        char *target = (char *)z + (size_t)z_at * size;
        const char *source = (const char *)x + (size_t)x_at * size;
        if (add) {
            add(target, source, 1);
        } else {
            memcpy(target, source, size);
        }
        int d = walk->count - 1;
        for (; d >= 0; d--) {
            int label = walk->list[d];
            z_at += to->stride[label];
            x_at += from->stride[label];
            if (++index[d] < sizes[label]) break;
            z_at -= to->stride[label] * sizes[label];
            x_at -= from->stride[label] * sizes[label];
            index[d] = 0;
        }
        if (d < 0) return;
    }
}

static bool same_layout(const Labels *a, const Labels *b, const int64_t *sizes, const Tensor *x, int64_t count) {
    if (x->count != count) return false;
    for (int i = 0; i < b->count; i++) {
        if (sizes[b->list[i]] != 1 && a->stride[b->list[i]] != b->stride[b->list[i]]) return false;
    }
    return true;
}

static int64_t count_of(const Labels *l, const int64_t *sizes) {
    int64_t n = 1;
    for (int i = 0; i < l->count; i++) {
        if (__builtin_mul_overflow(n, sizes[l->list[i]], &n)) return INT64_MAX;
    }
    return n;
}

/* x in the order of `order`, other labels summed up. A reference of the caller's; NULL with k->error. */
static Tensor *arranged(KernelContext *k, Tensor *x, const Labels *has, Labels *order, const int64_t *sizes) {
    label_packed(order, sizes);
    int64_t count = count_of(order, sizes);
    Labels walk = *order;
    for (int i = 0; i < has->count; i++) {
        bool known = order->has[has->list[i]];
        for (int j = 0; j < i; j++) known |= has->list[j] == has->list[i];
        if (!known) append(&walk, &has->list[i], 1);
    }
    bool sums = walk.count > order->count;
    if (!sums && same_layout(has, order, sizes, x, count)) return tensor_ref(x);
    Shape flat = shape_vector(count);
    Tensor *z = kernel_scratch(k, x->dtype, &flat);
    if (!z || count == 0) return z;
    if (sums) memset(z->data, 0, tensor_bytes(z));
    if (count_of(&walk, sizes) > 0) {
        move_elements(&walk, sizes, order, z->data, has, x->data, dtype_size(x->dtype),
                      sums ? row_math(x->dtype)->add : NULL);
    }
    return z;
}

/* ---- The op ---- */

/* Puts `product`, whose elements are in the order of `order`, in the place of the result. */
static Error *put_result(KernelContext *k, const Labels *order, const Tensor *product, Labels *out,
                         const int64_t *sizes) {
    Shape shape = {.rank = out->count};
    for (int d = 0; d < out->count; d++) shape.dims[d] = sizes[out->list[d]];
    Tensor *z = kernel_output(k, 0, &shape);
    if (!z || z->count == 0) return NULL;
    label_packed(out, sizes);
    memset(z->data, 0, tensor_bytes(z));
    if (product->count > 0) {
        move_elements(order, sizes, out, z->data, order, product->data, dtype_size(z->dtype), NULL);
    }
    return NULL;
}

/* The labels of `of` that are, or are not, in x and in y; each once. */
static void choose(const Labels *of, const Labels *x, bool in_x, const Labels *y, bool in_y, Labels *out) {
    for (int i = 0; i < of->count; i++) {
        int label = of->list[i];
        bool again = false;
        for (int j = 0; j < out->count; j++) again |= out->list[j] == label;
        if (!again && x->has[label] == in_x && y->has[label] == in_y) append(out, &label, 1);
    }
}

static Error *pair_run(KernelContext *k, Labels *in, Labels *out, const int64_t *sizes) {
    Labels batch = {.count = 0}, free_a = batch, free_b = batch, inner = batch, a = batch, b = batch, order = batch;
    Labels wanted = *out;
    Error *err = NULL;
    for (int i = 0; i < out->count; i++) wanted.has[out->list[i]] = true;
    choose(&wanted, &in[0], true, &in[1], true, &batch);
    choose(&wanted, &in[0], true, &in[1], false, &free_a);
    choose(&wanted, &in[0], false, &in[1], true, &free_b);
    choose(&in[0], &in[1], true, &wanted, false, &inner);
    append(&a, batch.list, batch.count);
    append(&a, free_a.list, free_a.count);
    append(&a, inner.list, inner.count);
    append(&b, batch.list, batch.count);
    append(&b, free_b.list, free_b.count);
    append(&b, inner.list, inner.count);
    append(&order, batch.list, batch.count);
    append(&order, free_a.list, free_a.count);
    append(&order, free_b.list, free_b.count);

    int64_t batches = count_of(&batch, sizes), total = count_of(&order, sizes);
    Gemm g = {.m = count_of(&free_a, sizes),
              .n = count_of(&free_b, sizes),
              .k = count_of(&inner, sizes),
              .b_transposed = true};
    Shape flat = shape_vector(total);
    Tensor *x = arranged(k, k->in[0], &in[0], &a, sizes), *y = x ? arranged(k, k->in[1], &in[1], &b, sizes) : NULL;
    Tensor *product = y ? kernel_scratch(k, x->dtype, &flat) : NULL;
    if (!product) goto out;
    size_t size = dtype_size(x->dtype);
    for (int64_t i = 0; i < batches; i++) {
        g.a = (const char *)x->data + (size_t)(i * g.m * g.k) * size;
        g.b = (const char *)y->data + (size_t)(i * g.n * g.k) * size;
        g.c = (char *)product->data + (size_t)(i * g.m * g.n) * size;
        gemm_of(x->dtype)(&g, k->pool);
    }
    label_packed(&order, sizes);
    err = put_result(k, &order, product, out, sizes);
out:
    tensor_unref(x);
    tensor_unref(y);
    tensor_unref(product);
    return err;
}

static Error *single_run(KernelContext *k, const Labels *in, Labels *out, const int64_t *sizes) {
    Labels order = {.count = 0};
    choose(out, in, true, in, true, &order);
    Tensor *x = arranged(k, k->in[0], in, &order, sizes);
    if (!x) return NULL;
    Error *err = put_result(k, &order, x, out, sizes);
    tensor_unref(x);
    return err;
}

static Error *einsum_run(KernelContext *k) {
    const EinsumState *st = k->state;
    Labels in[2] = {{.count = 0}, {.count = 0}}, out = {.count = 0};
    int64_t sizes[LABEL_COUNT];
    int under = 0;
    if (k->input_count != st->input_count) {
        return error_invalid("Expected %d inputs but got: %d", st->input_count, k->input_count);
    }
    for (int i = 0; i < LABEL_COUNT; i++) sizes[i] = -1;
    for (int i = 0; i < k->input_count; i++) {
        Error *err = label_input(k, i, &in[i], sizes, &under);
        if (err) return err;
    }
    if (under > 0 && !strchr(st->output, '.'))
        return error_invalid("Output contains %d broadcasting dimension(s) but no ellipsis (...) was found in the output subscripts.", under);
    Error *err = expand(st->output, under, &out);
    if (err) return err;
    for (int i = 0; i < out.count; i++) {
        if (sizes[out.list[i]] < 0) return error_invalid("Label '%c' of the result is in no input", out.list[i]);
    }
    return k->input_count == 2 ? pair_run(k, in, &out, sizes) : single_run(k, &in[0], &out, sizes);
}

#define TYPES(run)                                                                                                 \
    [DT_FLOAT] = run, [DT_DOUBLE] = run, [DT_HALF] = run, [DT_BFLOAT16] = run, [DT_INT32] = run, [DT_INT64] = run, \
    [DT_COMPLEX64] = run, [DT_COMPLEX128] = run

const KernelDef einsum_cpu[] = {
    {"Einsum", .by_type = {TYPES(einsum_run)}, .state_size = sizeof(EinsumState), .init = einsum_init,
     .flags = KERNEL_EXPENSIVE},
    {0},
};
