/* elementwise.c: allocates the output of an element-wise op and shares its elements among threads. */
#include "ops/elementwise.h"

enum { GRAIN = 32768 };

Error *incompatible_shapes(const Shape *x, const Shape *y) {
    return error_invalid("Incompatible shapes: %s vs. %s", shape_text(x).text, shape_text(y).text);
}

typedef struct UnaryJob {
    UnaryLoop *loop;
    const void *param;
    char *z;
    const char *x;
    size_t z_size, x_size;
} UnaryJob;

static void unary_range(void *arg, int64_t begin, int64_t end) {
    UnaryJob *job = arg;
    job->loop(job->param, job->z + (size_t)begin * job->z_size, job->x + (size_t)begin * job->x_size, end - begin);
}

Error *unary_run(KernelContext *k, UnaryLoop *loop) {
    if (k->loop) {
        k->loop->unary = loop;
        return NULL;
    }
    Tensor *x = k->in[0];
    Tensor *z = kernel_output_from(k, 0, 0, &x->shape);
    if (!z) return NULL;
    UnaryJob job = {loop, k->state, z->data, x->data, dtype_size(z->dtype), dtype_size(x->dtype)};
    threadpool_parallel_for(k->pool, x->count, GRAIN, unary_range, &job);
    return NULL;
}

typedef struct BinaryJob {
    BinaryLoop *loop;
    const void *param;
    char *z;
    const char *x, *y;
    size_t z_size, in_size;
    const BroadcastPlan *plan;
} BinaryJob;

static void binary_row(void *arg, int64_t out_at, const int64_t *in_at, const int64_t *step, int64_t n) {
    BinaryJob *job = arg;
    job->loop(job->param, job->z + (size_t)out_at * job->z_size, job->x + (size_t)in_at[0] * job->in_size,
              job->y + (size_t)in_at[1] * job->in_size, step[0], step[1], n);
}

static void binary_range(void *arg, int64_t begin, int64_t end) {
    BinaryJob *job = arg;
    broadcast_walk(job->plan, begin, end, binary_row, job);
}

static void binary_range_same(void *arg, int64_t begin, int64_t end) {
    int64_t at[2] = {begin, begin}, step[2] = {1, 1};
    binary_row(arg, begin, at, step, end - begin);
}

/* Memory of an input that has the whole result's shape may be used again. */
static Tensor *output_from_either(KernelContext *k, const Shape *shape) {
    int from = shape_eq(&k->in[0]->shape, shape) ? 0 : 1;
    if (from == 0 && shape_eq(&k->in[1]->shape, shape) && !tensor_is_unique(k->in[0])) from = 1;
    return shape_eq(&k->in[from]->shape, shape) ? kernel_output_from(k, 0, from, shape) : kernel_output(k, 0, shape);
}

/* True when the kernel was only asked. */
static bool tell_binary(KernelContext *k, BinaryLoop *loop, ElementShapes shapes) {
    if (k->loop) *k->loop = (ElementLoop){.binary = loop, .shapes = shapes};
    return k->loop != NULL;
}

/* Both have the same number of elements; the result has the shape of the first. */
static Error *run_together(KernelContext *k, BinaryLoop *loop) {
    Tensor *x = k->in[0], *y = k->in[1];
    Tensor *z = kernel_output_from(k, 0, tensor_is_unique(x) ? 0 : 1, &x->shape);
    if (!z) return NULL;
    if (z->count == 1) {
        loop(k->state, z->data, x->data, y->data, 1, 1, 1);
        return NULL;
    }
    BinaryJob job = {loop, k->state, z->data, x->data, y->data, dtype_size(z->dtype), dtype_size(x->dtype), NULL};
    threadpool_parallel_for(k->pool, z->count, GRAIN, binary_range_same, &job);
    return NULL;
}

Error *binary_run(KernelContext *k, BinaryLoop *loop) {
    if (tell_binary(k, loop, ELEMENTS_BROADCAST)) return NULL;
    Tensor *x = k->in[0], *y = k->in[1];
    if (shape_eq(&x->shape, &y->shape)) return run_together(k, loop);
    BroadcastPlan plan;
    BroadcastInput inputs[2] = {{x->shape.rank, x->shape.dims}, {y->shape.rank, y->shape.dims}};
    if (!broadcast_plan_init(&plan, inputs, 2)) return incompatible_shapes(&x->shape, &y->shape);
    Shape shape = shape_of(plan.out_rank, plan.out_dims);
    Tensor *z = output_from_either(k, &shape);
    if (!z) return NULL;
    BinaryJob job = {loop, k->state, z->data, x->data, y->data, dtype_size(z->dtype), dtype_size(x->dtype), &plan};
    threadpool_parallel_for(k->pool, z->count, GRAIN, binary_range, &job);
    return NULL;
}

Error *different_shapes(const Node *node, const Shape *first, int input, const Shape *other) {
    return error_invalid("Inputs to operation %.*s of type %.*s must have the same size and shape.  Input 0: %s != input %d: %s",
                         STR_ARG(node->name), STR_ARG(node->op), shape_text(first).text, input, shape_text(other).text);
}

Error *binary_same_shape_run(KernelContext *k, BinaryLoop *loop) {
    if (tell_binary(k, loop, ELEMENTS_SAME_SHAPE)) return NULL;
    Tensor *x = k->in[0], *y = k->in[1];
    if (!shape_eq(&x->shape, &y->shape)) return different_shapes(k->node, &x->shape, 1, &y->shape);
    return run_together(k, loop);
}

Error *binary_same_count_run(KernelContext *k, BinaryLoop *loop) {
    if (tell_binary(k, loop, ELEMENTS_SAME_COUNT)) return NULL;
    if (k->in[0]->count != k->in[1]->count) {
        return error_invalid("The two arguments to a cwise op must have same number of elements, got %lld and %lld",
                             (long long)k->in[0]->count, (long long)k->in[1]->count);
    }
    return run_together(k, loop);
}
