/* select.c: Select, SelectV2, Where, ClipByValue. */
#include <stdlib.h>

#include "base/float16.h"
#include "ops/elementwise.h"
#include "ops/op_list.h"

const OpDef select_ops[] = {
    {"Select", "condition: bool, t: T, e: T -> output: T", "T: type", 0},
    {"SelectV2", "condition: bool, t: T, e: T -> output: T", "T: type", 0},
    {"Where", "input: T -> index: int64",
     "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, qint16, "
     "quint16, uint16, complex128, half, uint32, uint64, bool} = bool",
     0},
    {"ClipByValue", "t: T, clip_value_min: T, clip_value_max: T -> output: T",
     "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, qint16, "
     "quint16, uint16, complex128, half, uint32, uint64}",
     0},
    {0},
};

/* ---- Select, SelectV2 ---- */

#define S uint8_t
#define NAME(f) f##_8
#include "ops/select.inc"
#undef S
#undef NAME
#define S uint16_t
#define NAME(f) f##_16
#include "ops/select.inc"
#undef S
#undef NAME
#define S uint32_t
#define NAME(f) f##_32
#include "ops/select.inc"
#undef S
#undef NAME
#define S uint64_t
#define NAME(f) f##_64
#include "ops/select.inc"
#undef S
#undef NAME
#define S unsigned __int128
#define NAME(f) f##_128
#include "ops/select.inc"
#undef S
#undef NAME

static TernaryLoop *choose_of_size(size_t size) {
    switch (size) {
        case 1:
            return choose_8;
        case 2:
            return choose_16;
        case 4:
            return choose_32;
        case 8:
            return choose_64;
        case 16:
            return choose_128;
        default:
            return NULL;
    }
}

typedef struct SelectJob {
    DataType dtype;
    size_t size;
    TernaryLoop *choose; /* NULL: elements that are not plain are copied one by one */
    char *z;
    const bool *c;
    const char *t, *e;
    const BroadcastPlan *plan;
} SelectJob;

static void select_row(void *arg, int64_t out_at, const int64_t *in_at, const int64_t *step, int64_t n) {
    SelectJob *job = arg;
    char *z = job->z + (size_t)out_at * job->size;
    const bool *c = job->c + in_at[0];
    const char *t = job->t + (size_t)in_at[1] * job->size, *e = job->e + (size_t)in_at[2] * job->size;
    if (job->choose) {
        job->choose(NULL, z, (const void *const[]){c, t, e}, step, n);
        return;
    }
    for (int64_t i = 0; i < n; i++) {
        const char *from =
            c[step[0] * i] ? t + (size_t)(step[1] * i) * job->size : e + (size_t)(step[2] * i) * job->size;
        elements_copy(job->dtype, z + (size_t)i * job->size, from, 1);
    }
}

static void select_range(void *arg, int64_t begin, int64_t end) {
    SelectJob *job = arg;
    broadcast_walk(job->plan, begin, end, select_row, job);
}

static Error *select_with_plan(KernelContext *k, const BroadcastPlan *plan) {
    Tensor *t = k->in[1];
    Shape shape = shape_of(plan->out_rank, plan->out_dims);
    bool plain = dtype_is_plain(t->dtype);
    int reuse = tensor_is_unique(t) && shape_eq(&t->shape, &shape) ? 1 : shape_eq(&k->in[2]->shape, &shape) ? 2 : 0;
    Tensor *z = plain && reuse ? kernel_output_from(k, 0, reuse, &shape) : kernel_output(k, 0, &shape);
    if (!z) return NULL;
    size_t size = dtype_size(t->dtype);
    SelectJob job = {t->dtype,       size, plain ? choose_of_size(size) : NULL, z->data, tensor_bool(k->in[0]), t->data,
                     k->in[2]->data, plan};
    threadpool_parallel_for(k->pool, z->count, 16384, select_range, &job);
    return NULL;
}

/* True when the kernel was only asked. */
static bool tell_choice(KernelContext *k, ElementShapes shapes) {
    DataType t = kernel_output_type(k, 0);
    if (k->loop && dtype_is_plain(t)) *k->loop = (ElementLoop){.ternary = choose_of_size(dtype_size(t)), .shapes = shapes};
    return k->loop != NULL;
}

static Error *select_v2(KernelContext *k) {
    if (tell_choice(k, ELEMENTS_BROADCAST)) return NULL;
    BroadcastInput inputs[3];
    for (int i = 0; i < 3; i++) inputs[i] = (BroadcastInput){k->in[i]->shape.rank, k->in[i]->shape.dims};
    BroadcastPlan plan;
    if (!broadcast_plan_init(&plan, inputs, 3)) {
        return error_invalid("condition %s, then %s, and else %s must be broadcastable",
                             shape_text(&k->in[0]->shape).text, shape_text(&k->in[1]->shape).text,
                             shape_text(&k->in[2]->shape).text);
    }
    return select_with_plan(k, &plan);
}

static Error *select_mismatch(const KernelContext *k, int input) {
    return error_invalid("Inputs to operation %.*s of type Select must have the same size and shape.  Input 0: %s != input %d: %s",
                         STR_ARG(k->node->name), shape_text(&k->in[0]->shape).text, input, shape_text(&k->in[input]->shape).text);
}

static Error *rows_mismatch(const KernelContext *k) {
    const Shape *c = &k->in[0]->shape, *t = &k->in[1]->shape;
    if (c->rank == 1 && t->rank == 0) return error_invalid("'then' must be at least a vector, but saw shape: []");
    if (c->rank == 1 && t->dims[0] != c->dims[0])
        return error_invalid("Number of batches of 'then' must match size of 'cond', but saw: %lld vs. %lld", (long long)t->dims[0],
                             (long long)c->dims[0]);
    return error_invalid("'then' and 'else' must have the same size.  but received: %s vs. %s", shape_text(t).text,
                         shape_text(&k->in[2]->shape).text);
}

/* The condition has the shape of the values, or is one for each row of them, or one for all. */
static Error *select_v1(KernelContext *k) {
    if (tell_choice(k, ELEMENTS_SAME_SHAPE)) return NULL;
    const Shape *c = &k->in[0]->shape, *t = &k->in[1]->shape, *e = &k->in[2]->shape;
    if (c->rank == 0) {
        if (!shape_eq(t, e)) return rows_mismatch(k);
        kernel_set_output(k, 0, tensor_ref(k->in[*tensor_bool(k->in[0]) ? 1 : 2]));
        return NULL;
    }
    bool rows = c->rank == 1 && t->rank != 1;
    if (rows && (t->rank == 0 || t->dims[0] != c->dims[0] || !shape_eq(t, e))) return rows_mismatch(k);
    if (!rows && !shape_eq(c, t)) return select_mismatch(k, 1);
    if (!rows && !shape_eq(c, e)) return select_mismatch(k, 2);

    int64_t column[SHAPE_MAX_RANK];
    for (int i = 0; i < t->rank; i++) column[i] = rows && i > 0 ? 1 : t->dims[i];
    BroadcastInput inputs[3] = {{t->rank, column}, {t->rank, t->dims}, {e->rank, e->dims}};
    BroadcastPlan plan;
    if (!broadcast_plan_init(&plan, inputs, 3)) return rows_mismatch(k);
    return select_with_plan(k, &plan);
}

/* ---- Where ---- */

typedef int64_t CountFn(const void *x, int64_t n);
typedef void ListFn(const void *x, int64_t n, int64_t *at);

typedef struct WhereJob {
    const Shape *shape;
    const int64_t *at; /* places in memory, in order */
    int64_t *z;
} WhereJob;

/* Their indices; places of one row follow each other, so that only where a row begins are all dimensions counted. */
static void where_range(void *arg, int64_t begin, int64_t end) {
    const WhereJob *job = arg;
    const int rank = job->shape->rank;
    const int64_t width = job->shape->dims[rank - 1];
    int64_t row[SHAPE_MAX_RANK], first = -1; /* place where the row begins */
    for (int64_t r = begin; r < end; r++) {
        int64_t *z = job->z + r * rank;
        if (first < 0 || job->at[r] - first >= width) {
            int64_t rest = job->at[r] / width;
            first = rest * width;
            for (int d = rank - 2; d >= 0; d--) {
                row[d] = rest % job->shape->dims[d];
                rest /= job->shape->dims[d];
            }
        }
        for (int d = 0; d < rank - 1; d++) z[d] = row[d];
        z[rank - 1] = job->at[r] - first;
    }
}

static Error *where_run(KernelContext *k, CountFn *count, ListFn *list) {
    const Tensor *x = k->in[0];
    int rank = x->shape.rank;
    if (rank == 0) return error_invalid("WhereOp : Unhandled input dimensions: 0");
    int64_t rows = count(x->data, x->count);
    Shape shape = shape_matrix(rows, rank), flat = shape_vector(rows + 1);
    Tensor *z = kernel_output(k, 0, &shape);
    if (!z) return NULL;
    Tensor *at = kernel_scratch(k, DT_INT64, &flat);
    if (!at) return NULL;
    list(x->data, x->count, tensor_i64(at));
    WhereJob job = {&x->shape, tensor_i64(at), tensor_i64(z)};
    threadpool_parallel_for(k->pool, rows, 8192, where_range, &job);
    tensor_unref(at);
    return NULL;
}

#define BODY "ops/where.inc"
#include "kernels/each_float.inc"
#include "kernels/each_signed.inc"
#include "kernels/each_unsigned.inc"
#include "kernels/each_complex.inc"
#define S bool
#define LOAD(s) (s)
#define NAME(f) f##_bool
#include "ops/where.inc"
#undef S
#undef LOAD
#undef NAME
#undef BODY

/* ---- ClipByValue ---- */

typedef struct ClipJob {
    TernaryLoop *loop;
    char *z;
    const char *in[3];
    int64_t step[3]; /* 0 for a scalar */
    size_t size;
} ClipJob;

static void clip_range(void *arg, int64_t begin, int64_t end) {
    const ClipJob *job = arg;
    const void *in[3];
    for (int i = 0; i < 3; i++) in[i] = job->in[i] + (size_t)(job->step[i] * begin) * job->size;
    job->loop(NULL, job->z + (size_t)begin * job->size, in, job->step, end - begin);
}

static Error *clip_run(KernelContext *k, TernaryLoop *loop) {
    if (k->loop) {
        *k->loop = (ElementLoop){.ternary = loop, .shapes = ELEMENTS_LIMITS};
        return NULL;
    }
    Tensor *t = k->in[0], *low = k->in[1], *high = k->in[2];
    bool low_same = shape_eq(&t->shape, &low->shape), high_same = shape_eq(&t->shape, &high->shape);
    if ((!low_same && low->shape.rank != 0) || (!high_same && high->shape.rank != 0)) {
        return error_invalid(
            "clip_value_min and clip_value_max must be either of the same shape as input, or a scalar. input shape: %s"
            "clip_value_min shape: %sclip_value_max shape: %s",
            shape_text(&t->shape).text, shape_text(&low->shape).text, shape_text(&high->shape).text);
    }
    Tensor *z = kernel_output_from(k, 0, 0, &t->shape);
    if (!z) return NULL;
    ClipJob job = {loop, z->data, {t->data, low->data, high->data}, {1, low->shape.rank != 0, high->shape.rank != 0}, dtype_size(t->dtype)};
    threadpool_parallel_for(k->pool, t->count, 16384, clip_range, &job);
    return NULL;
}

#define BODY "ops/clip.inc"
#include "kernels/each_float.inc"
#include "kernels/each_signed.inc"
#include "kernels/each_unsigned.inc"
#undef BODY
#define BODY "ops/clip_complex.inc"
#include "kernels/each_complex.inc"

const KernelDef select_cpu[] = {
    {"Select", .run = select_v1, .flags = KERNEL_ELEMENTWISE},
    {"SelectV2", .run = select_v2, .flags = KERNEL_ELEMENTWISE},
    {"Where", .by_type = {NUMBER_TYPES(where), [DT_BOOL] = where_bool}},
    {"ClipByValue", .by_type = {NUMBER_TYPES(clip)}, .flags = KERNEL_ELEMENTWISE},
    {0},
};
