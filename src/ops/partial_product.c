/* partial_product.c: _ProductSlice, the columns of a product that somebody takes; _ProductAdd, a product added to a sum. passes/products.c makes them.

   Where shapes are not as they should be, the parts run by themselves: MatMul and Slice, MatMul and AddN, with their own words. */
#include "ops/elementwise.h"
#include "ops/matmul.h"
#include "ops/op_list.h"
#include "ops/pieces.h"

#include <string.h>

const OpDef partial_product_ops[] = {
    {"_ProductSlice", "a: T, b: T, begin: Index, size: Index -> output: T", "T: {float}; Index: {int32, int64}", 0},
    {"_ProductAdd", "sum: T, a: T, b: T -> output: T", "T: {float}; index: int >= 1", 0},
    {0},
};

/* Columns for each thread from which on oneDNN sums up as in the whole product. */
enum { LEAST_COLUMNS = 128 };

typedef struct PartialState {
    Pieces pieces;
    MatMulState product;
    int64_t index; /* of the product among the inputs of the sum */
} PartialState;

static Error *partial_init(const Node *node, void *state) {
    PartialState *st = state;
    Error *err = pieces_init(&st->pieces, node, NULL);
    return err ? err : matmul_init(node->parts[0], &st->product);
}
static Error *add_init(const Node *node, void *state) {
    Error *err = partial_init(node, state);
    return err ? err : node_attr_int(node, "index", &((PartialState *)state)->index);
}
static void partial_clear(void *state) {
    pieces_clear(&((PartialState *)state)->pieces);
}

static Error *run_parts(KernelContext *k) {
    const PartialState *st = k->state;
    Tensor *values[2] = {NULL, NULL};
    Error *err = pieces_run(k, &st->pieces, 0, values);
    for (int i = 0; i < 2; i++) tensor_unref(values[i]);
    return err;
}

static bool fits(const PartialState *st, const Tensor *a, const Tensor *b, Gemm *g) {
    return a->shape.rank == 2 && b->shape.rank == 2 && matmul_sizes(&st->product, &a->shape, &b->shape, g);
}

/* All rows, and enough columns to be worth it. */
static bool find_columns(const KernelContext *k, const Gemm *whole, int64_t *from, int64_t *count) {
    const Tensor *begin = k->in[2], *size = k->in[3];
    if (begin->shape.rank != 1 || size->shape.rank != 1 || begin->count != 2 || size->count != 2) return false;
    int64_t rows = index_at(size, 0);
    *from = index_at(begin, 1);
    *count = index_at(size, 1);
    if (index_at(begin, 0) != 0 || (rows != -1 && rows != whole->m) || *from < 0 || *from > whole->n) return false;
    if (*count == -1) *count = whole->n - *from;
    int64_t threads = k->pool ? threadpool_size(k->pool) : 1;
    return *count <= whole->n - *from && *count >= LEAST_COLUMNS * threads;
}

static Error *slice_run(KernelContext *k) {
    const Tensor *a = k->in[0], *b = k->in[1];
    Gemm g;
    int64_t from = 0, count = 0;
    if (!fits(k->state, a, b, &g) || !find_columns(k, &g, &from, &count)) return run_parts(k);
    g.b_stride = g.b_transposed ? g.k : g.n;
    g.n = count;
    Shape shape = shape_matrix(g.m, g.n);
    Tensor *z = kernel_output(k, 0, &shape);
    if (!z) return NULL;
    g.a = a->data;
    g.b = (const float *)b->data + (g.b_transposed ? from * g.k : from);
    g.c = z->data;
    gemm_f32(&g, k->pool);
    return NULL;
}

static Error *add_run(KernelContext *k) {
    const PartialState *st = k->state;
    const Tensor *sum = k->in[0], *a = k->in[1], *b = k->in[2];
    Gemm g;
    if (!fits(st, a, b, &g)) return run_parts(k);
    Shape shape = shape_matrix(g.m, g.n);
    if (!shape_eq(&sum->shape, &shape)) {
        k->node = st->pieces.pieces[1].node;
        return different_shapes(k->node, &sum->shape, (int)st->index, &shape);
    }
    if (!gemm_f32_adds(&g)) return run_parts(k);
    Tensor *z = kernel_output_from(k, 0, 0, &shape);
    if (!z) return NULL;
    if (z->data != sum->data) memcpy(z->data, sum->data, (size_t)sum->count * sizeof(float));
    g.adds = true;
    g.a = a->data;
    g.b = b->data;
    g.c = z->data;
    gemm_f32(&g, k->pool);
    return NULL;
}

#define STATE(f) .state_size = sizeof(PartialState), .init = f, .clear = partial_clear, .flags = KERNEL_EXPENSIVE

const KernelDef partial_product_cpu[] = {
    {"_ProductSlice", .run = slice_run, STATE(partial_init)},
    {"_ProductAdd", .run = add_run, STATE(add_init)},
    {0},
};
