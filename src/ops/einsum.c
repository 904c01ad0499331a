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
            return stretches ? error_invalid("Invalid broadcasting dimensions: %s vs. %s",
                                             shape_text(&k->in[0]->shape).text, shape_text(&x->shape).text)
                             : error_invalid(
                                   "Expected dimension %lld at axis %d of the input shaped %s but got dimension %lld",
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
        return error_invalid("Expected input %d to have rank %s%d but got: %d", i, strchr(side, '.') ? "at least " : "",
                             named, x->shape.rank);
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

/* Copies each element that the labels of `walk` lead to; no two go to one place. */
static void copy_arranged(KernelContext *k, DataType type, const Labels *walk, const int64_t *sizes, const Labels *to,
                          void *z, const Labels *from, const void *x) {
    StridedCopy c = {0};
    for (int d = 0; d < walk->count; d++)
        copy_add_dim(&c, sizes[walk->list[d]], to->stride[walk->list[d]], from->stride[walk->list[d]]);
    copy_strided(k->pool, element_kind(type), &c, z, x);
}

/* Adds each element that the labels of `walk` lead to. */
static void add_elements(const Labels *walk, const int64_t *sizes, const Labels *to, void *z, const Labels *from,
                         const void *x, size_t size, RowFn *add) {
    int64_t index[MAX_LABELS] = {0}, z_at = 0, x_at = 0;
    for (;;) {
        add((char *)z + (size_t)z_at * size, (const char *)x + (size_t)x_at * size, 1);
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
    if (!sums) {
        copy_arranged(k, x->dtype, order, sizes, order, z->data, has, x->data);
        return z;
    }
    memset(z->data, 0, tensor_bytes(z));
    if (count_of(&walk, sizes) > 0)
        add_elements(&walk, sizes, order, z->data, has, x->data, dtype_size(x->dtype), row_math(x->dtype)->add);
    return z;
}

/* x as matrices, one for each index of `batch`; *transposed: the columns come before the rows, as they lie. A reference
 * of the caller's; NULL with k->error. */
static Tensor *as_matrices(KernelContext *k, Tensor *x, const Labels *has, const Labels *batch, const Labels *rows,
                           const Labels *columns, const int64_t *sizes, bool *transposed) {
    Labels order = *batch, turned = *batch;
    append(&order, rows->list, rows->count);
    append(&order, columns->list, columns->count);
    append(&turned, columns->list, columns->count);
    append(&turned, rows->list, rows->count);
    label_packed(&turned, sizes);
    Labels straight = order;
    label_packed(&straight, sizes);
    *transposed = !same_layout(has, &straight, sizes, x, count_of(&straight, sizes)) &&
                  same_layout(has, &turned, sizes, x, count_of(&turned, sizes));
    return *transposed ? tensor_ref(x) : arranged(k, x, has, &order, sizes);
}

/* ---- The op ---- */

static Tensor *result(KernelContext *k, const Labels *out, const int64_t *sizes) {
    Shape shape = {.rank = out->count};
    for (int d = 0; d < out->count; d++) shape.dims[d] = sizes[out->list[d]];
    return kernel_output(k, 0, &shape);
}

/* Puts `product`, whose elements are in the order of `order`, in the place of the result. */
static void put_result(KernelContext *k, const Labels *order, const Tensor *product, Labels *out,
                       const int64_t *sizes) {
    Tensor *z = result(k, out, sizes);
    if (!z || z->count == 0) return;
    label_packed(out, sizes);
    if (z->count > product->count) memset(z->data, 0, tensor_bytes(z)); /* a label that comes twice fills a diagonal */
    if (product->count > 0) copy_arranged(k, z->dtype, order, sizes, out, z->data, order, product->data);
}

static bool same_labels(const Labels *a, const Labels *b) {
    return a->count == b->count && memcmp(a->list, b->list, (size_t)a->count * sizeof *a->list) == 0;
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

typedef struct PairJob {
    Gemm g;
    GemmFn *gemm;
    size_t size;
    const char *a, *b;
    char *c;
    ThreadPool *pool; /* inside one product, when there are few */
} PairJob;

static void pair_range(void *arg, int64_t begin, int64_t end) {
    const PairJob *job = arg;
    for (int64_t i = begin; i < end; i++) {
        Gemm g = job->g;
        g.a = job->a + (size_t)(i * g.m * g.k) * job->size;
        g.b = job->b + (size_t)(i * g.n * g.k) * job->size;
        g.c = job->c + (size_t)(i * g.m * g.n) * job->size;
        job->gemm(&g, job->pool);
    }
}

static Error *pair_run(KernelContext *k, Labels *in, Labels *out, const int64_t *sizes) {
    Labels batch = {.count = 0}, free_a = batch, free_b = batch, inner = batch, order;
    Labels wanted = *out;
    for (int i = 0; i < out->count; i++) wanted.has[out->list[i]] = true;
    choose(&wanted, &in[0], true, &in[1], true, &batch);
    choose(&wanted, &in[0], true, &in[1], false, &free_a);
    choose(&wanted, &in[0], false, &in[1], true, &free_b);
    choose(&in[0], &in[1], true, &wanted, false, &inner);
    order = batch;
    append(&order, free_a.list, free_a.count);
    append(&order, free_b.list, free_b.count);

    int64_t batches = count_of(&batch, sizes);
    PairJob job = {.g = {.m = count_of(&free_a, sizes), .n = count_of(&free_b, sizes), .k = count_of(&inner, sizes)}};
    Tensor *x = as_matrices(k, k->in[0], &in[0], &batch, &free_a, &inner, sizes, &job.g.a_transposed);
    Tensor *y = x ? as_matrices(k, k->in[1], &in[1], &batch, &inner, &free_b, sizes, &job.g.b_transposed) : NULL;
    bool in_place = same_labels(&order, out); /* then the products are the result */
    Shape flat = shape_vector(count_of(&order, sizes));
    Tensor *product = !y ? NULL : in_place ? result(k, out, sizes) : kernel_scratch(k, x->dtype, &flat);
    if (!product) goto out;
    job.gemm = gemm_of(x->dtype);
    job.size = dtype_size(x->dtype);
    job.a = x->data;
    job.b = y->data;
    job.c = product->data;
    int64_t work = job.g.m * job.g.n * (job.g.k > 0 ? job.g.k : 1);
    bool inside = batches < 4 && work > (1 << 20);
    job.pool = inside ? k->pool : NULL;
    if (product->count > 0)
        threadpool_parallel_for(inside ? NULL : k->pool, batches, (1 << 18) / work + 1, pair_range, &job);
    if (in_place) {
        product = NULL; /* the context's */
    } else {
        label_packed(&order, sizes);
        put_result(k, &order, product, out, sizes);
    }
out:
    tensor_unref(x);
    tensor_unref(y);
    tensor_unref(product);
    return NULL;
}

static Error *single_run(KernelContext *k, const Labels *in, Labels *out, const int64_t *sizes) {
    Labels order = {.count = 0};
    choose(out, in, true, in, true, &order);
    Tensor *x = arranged(k, k->in[0], in, &order, sizes);
    if (!x) return NULL;
    put_result(k, &order, x, out, sizes);
    tensor_unref(x);
    return NULL;
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
        return error_invalid(
            "Output contains %d broadcasting dimension(s) but no ellipsis (...) was found in the output subscripts.",
            under);
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
