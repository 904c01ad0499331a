/* accumulator_resource.c: dense and sparse gradient accumulators; takers that wait. */
#include "ops/accumulator_resource.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/memory.h"
#include "ops/elements.h"
#include "ops/wait_room.h"

struct Accumulator {
    Resource base;
    WaitRoom room; /* its mutex guards all that changes below */
    char *name;
    AccumulatorSpec spec;
    const RowMath *math;
    int64_t step, count;
    Tensor *sum;      /* dense: the sum; sparse: [n, ...], row i belongs to indices[i]; NULL: none yet */
    int64_t *indices; /* sparse */
    int64_t *touched; /* sparse: gradients that had row i */
};

static void destroy(Resource *r) {
    Accumulator *a = (Accumulator *)r;
    wait_room_clear(&a->room);
    tensor_unref(a->sum);
    free(a->indices);
    free(a->touched);
    free(a->name);
    free(a);
}

static void abandon(Resource *r) {
    Accumulator *a = (Accumulator *)r;
    wait_room_lock(&a->room);
    wait_room_cancel_line_unlock(&a->room, 0);
}

const ResourceType accumulator_type = {.type_name = "N10tensorflow26ConditionalAccumulatorBaseE",
                                       .what = "accumulator",
                                       .destroy = destroy,
                                       .cancel = abandon};

Error *accumulator_new(Str name, const AccumulatorSpec *spec, Accumulator **out) {
    const RowMath *math = row_math(spec->dtype);
    if (!math || !math->add || !math->divide)
        return error_invalid("Accumulator '%.*s' cannot add gradients of type %s", STR_ARG(name),
                             dtype_name(spec->dtype));
    Accumulator *a = xcalloc(1, sizeof *a);
    resource_init(&a->base, &accumulator_type);
    wait_room_init(&a->room);
    a->name = str_dup(name);
    a->spec = *spec;
    a->math = math;
    *out = a;
    return NULL;
}

bool accumulator_is_sparse(const Accumulator *a) {
    return a->spec.sparse;
}

DataType accumulator_dtype(const Accumulator *a) {
    return a->spec.dtype;
}

Error *accumulator_check_spec(const Accumulator *a, const AccumulatorSpec *spec) {
    if (a->spec.sparse != spec->sparse)
        return error_invalid("Shared conditional accumulator '%s' is %s but a %s one was requested", a->name,
                             a->spec.sparse ? "sparse" : "dense", spec->sparse ? "sparse" : "dense");
    if (a->spec.dtype != spec->dtype)
        return error_invalid("Shared conditional accumulator '%s' has dtype %s but requested dtype was %s", a->name,
                             dtype_name(a->spec.dtype), dtype_name(spec->dtype));
    return NULL;
}

static Error *mismatch(const PartialShape *want, const Shape *got) {
    char *expected = shape_str(want), *actual = shape_str(got);
    Error *err = error_invalid("Shape mismatch: expected %s, got %s", expected, actual);
    free(expected);
    free(actual);
    return err;
}

/* ---- Adding ---- */

/* The first gradient, which later ones are added to: taken over when nobody else has it, kept as it is when nobody may write to it, else copied. */
static Error *begin_sum_locked(Accumulator *a, Tensor *first) {
    Tensor *sum = NULL;
    Error *err = NULL;
    if (tensor_is_unique(first) || tensor_is_lent(first))
        sum = tensor_ref(first);
    else
        err = tensor_copy(first, &sum);
    if (err) return err;
    tensor_unref(a->sum);
    a->sum = sum;
    return NULL;
}

/* The sum is about to be written to. */
static Error *own_sum_locked(Accumulator *a) {
    Tensor *own;
    if (!tensor_is_lent(a->sum)) return NULL;
    Error *err = tensor_copy(a->sum, &own);
    if (err) return err;
    tensor_unref(a->sum);
    a->sum = own;
    return NULL;
}

static Error *add_dense_locked(Accumulator *a, Tensor *gradient) {
    if (!a->count) return begin_sum_locked(a, gradient);
    if (!shape_eq(&a->sum->shape, &gradient->shape)) return mismatch(&a->sum->shape, &gradient->shape);
    Error *err = own_sum_locked(a);
    if (!err) a->math->add(a->sum->data, gradient->data, gradient->count);
    return err;
}

Error *accumulator_apply(Accumulator *a, int64_t local_step, Tensor *gradient) {
    if (a->spec.sparse) return error_invalid("Accumulator '%s' takes sparse gradients", a->name);
    if (gradient->dtype != a->spec.dtype)
        return error_invalid("Accumulator '%s' has dtype %s, gradient has %s", a->name, dtype_name(a->spec.dtype),
                             dtype_name(gradient->dtype));
    Error *err = NULL;
    wait_room_lock(&a->room);
    if (local_step >= a->step) { /* others are dropped without a look */
        if (!partial_shape_matches(&a->spec.shape, &gradient->shape)) err = mismatch(a->count ? &a->sum->shape : &a->spec.shape, &gradient->shape);
        if (!err) err = add_dense_locked(a, gradient);
        if (!err) a->count++;
    }
    wait_room_unlock(&a->room);
    return err;
}

static Error *begin_sparse_locked(Accumulator *a, const Tensor *gradient, Tensor *values) {
    Error *err = begin_sum_locked(a, values);
    if (err) return err;
    size_t n = (size_t)gradient->count;
    a->indices = xrealloc(a->indices, (n + 1) * sizeof *a->indices);
    a->touched = xrealloc(a->touched, (n + 1) * sizeof *a->touched);
    if (n) memcpy(a->indices, gradient->data, n * sizeof *a->indices);
    for (size_t i = 0; i < n; i++) a->touched[i] = 1;
    return NULL;
}

/* Merges the rows of the gradient with those so far, as TensorFlow does: walking both lists and adding where the
 * indices are equal. Lists that are not sorted, or have an index twice, keep such rows apart. */
static Error *add_sparse_locked(Accumulator *a, const Tensor *gradient, Tensor *values) {
    if (!a->count) return begin_sparse_locked(a, gradient, values);
    int64_t n = gradient->count, old = a->sum->shape.dims[0];
    size_t row_count = (size_t)shape_prod(&values->shape, 1, values->shape.rank);
    size_t row_size = row_count * dtype_size(a->spec.dtype);
    const int64_t *index = tensor_i64(gradient);
    Shape shape = values->shape;
    shape.dims[0] = n + old;
    Tensor *merged;
    Error *err = tensor_new(a->spec.dtype, &shape, &merged);
    if (err) return err;
    int64_t *indices = xmalloc((size_t)(n + old + 1) * sizeof *indices);
    int64_t *touched = xmalloc((size_t)(n + old + 1) * sizeof *touched);
    const char *from = values->data, *was = a->sum->data;
    int64_t out = 0;
    for (int64_t i = 0, j = 0; i < n || j < old; out++) {
        bool take_old = j < old && (i == n || a->indices[j] <= index[i]);
        bool take_new = i < n && (j == old || index[i] <= a->indices[j]);
        char *row = (char *)merged->data + (size_t)out * row_size;
        indices[out] = take_old ? a->indices[j] : index[i];
        touched[out] = (take_old ? a->touched[j] : 0) + take_new;
        if (take_old) memcpy(row, was + (size_t)j * row_size, row_size);
        if (take_old && take_new)
            a->math->add(row, from + (size_t)i * row_size, (int64_t)row_count);
        else if (take_new)
            memcpy(row, from + (size_t)i * row_size, row_size);
        i += take_new;
        j += take_old;
    }
    tensor_unref(a->sum);
    free(a->indices);
    free(a->touched);
    a->sum = tensor_rows(merged, 0, out);
    tensor_unref(merged);
    a->indices = indices;
    a->touched = touched;
    return NULL;
}

/* What a gradient says of its own shape must fit the accumulator's, which may have fewer dimensions. */
static Error *check_said_shape(const PartialShape *whole, const Tensor *said) {
    if (whole->rank > said->count)
        return error_invalid("Shape mismatch: expected shape rank at least %d, got %lld", whole->rank, (long long)said->count);
    for (int d = 0; d < whole->rank; d++)
        if (whole->dims[d] >= 0 && whole->dims[d] != tensor_i64(said)[d])
            return error_invalid("Shape mismatch: expected shape dim %d to be %lld, got %lld", d, (long long)whole->dims[d], (long long)tensor_i64(said)[d]);
    return NULL;
}

static Error *check_indices(const PartialShape *whole, const Tensor *indices) {
    if (whole->rank < 1 || whole->dims[0] < 0) return NULL;
    for (int64_t i = 0; i < indices->count; i++)
        if (tensor_i64(indices)[i] >= whole->dims[0])
            return error_invalid("Shape mismatch: index of slice %lld exceeded limits of shape; index is %lld exceeded %lld", (long long)i,
                                 (long long)tensor_i64(indices)[i], (long long)whole->dims[0]);
    return NULL;
}

/* Rows as long as those that are there, or, in the first gradient, as those of the accumulator's shape as far as it goes. */
static Error *check_rows(const Accumulator *a, const Shape *values) {
    const PartialShape *want = a->count ? &a->sum->shape : &a->spec.shape;
    if (a->count ? want->rank != values->rank : want->rank > values->rank)
        return error_invalid("Shape mismatch: expected values rank %s%d, got %d", a->count ? "" : "at least ", want->rank, values->rank);
    for (int d = 1; d < want->rank; d++)
        if (want->dims[d] >= 0 && want->dims[d] != values->dims[d])
            return error_invalid("Shape mismatch: expected values dim %d to be %lld, got %lld", d, (long long)want->dims[d], (long long)values->dims[d]);
    return NULL;
}

static Error *check_sparse(const Accumulator *a, const Tensor *indices, const Tensor *values, const Tensor *shape) {
    if (!a->spec.sparse) return error_invalid("Accumulator '%s' takes dense gradients", a->name);
    if (values->dtype != a->spec.dtype)
        return error_invalid("Accumulator '%s' has dtype %s, gradient has %s", a->name, dtype_name(a->spec.dtype),
                             dtype_name(values->dtype));
    if (indices->shape.rank != 1) return error_invalid("Input indices should be vector but received shape: %s", shape_text(&indices->shape).text);
    if (values->shape.rank < 1) return error_invalid("Values cannot be 0-dimensional.");
    if (values->shape.dims[0] != indices->count)
        return error_invalid("Expected %lld non-empty input values, got %lld", (long long)indices->count, (long long)values->shape.dims[0]);
    Error *err = shape ? check_said_shape(&a->spec.shape, shape) : NULL;
    if (!err) err = check_indices(&a->spec.shape, indices);
    return err ? err : check_rows(a, &values->shape);
}

Error *accumulator_apply_sparse(Accumulator *a, int64_t local_step, const Tensor *indices, Tensor *values, const Tensor *shape) {
    Error *err = NULL;
    wait_room_lock(&a->room);
    bool fresh = local_step >= a->step;
    if (fresh) err = check_sparse(a, indices, values, shape);
    if (fresh && !err) {
        err = add_sparse_locked(a, indices, values);
        if (!err) a->count++;
    }
    wait_room_unlock(&a->room);
    return err;
}

/* ---- Taking ---- */

typedef struct Take {
    Waiter waiter; /* first: a Waiter is cast to it */
    Accumulator *accumulator;
    int64_t required;
    AccumulatorDone *done;
    void *arg;
    Tensor *results[3];
} Take;

static Error *sparse_results_locked(Accumulator *a, Tensor **results) {
    int64_t n = a->sum->shape.dims[0];
    int rank = a->sum->shape.rank;
    Shape vector = shape_vector(n), dims = shape_vector(rank);
    Error *err = tensor_new(DT_INT64, &vector, &results[0]);
    if (!err) err = tensor_new(DT_INT64, &dims, &results[2]);
    if (err) return err;
    if (n) memcpy(results[0]->data, a->indices, (size_t)n * sizeof(int64_t));
    for (int d = 0; d < rank; d++) tensor_i64(results[2])[d] = a->sum->shape.dims[d];
    tensor_i64(results[2])[0] = a->spec.shape.rank > 0 ? a->spec.shape.dims[0] : -1;
    size_t row = (size_t)shape_prod(&a->sum->shape, 1, rank);
    for (int64_t i = 0; a->spec.mean && i < n; i++)
        if (a->touched[i] > 1)
            a->math->divide((char *)a->sum->data + (size_t)i * row * dtype_size(a->spec.dtype), (double)a->touched[i],
                            (int64_t)row);
    results[1] = a->sum;
    a->sum = NULL;
    return NULL;
}

static AttemptResult try_take(Waiter *w) {
    Take *t = (Take *)w;
    Accumulator *a = t->accumulator;
    if (a->count < t->required) return ATTEMPT_NOTHING;
    if (a->spec.sparse) {
        w->error = sparse_results_locked(a, t->results);
    } else {
        if (a->spec.mean && a->count > 1) a->math->divide(a->sum->data, (double)a->count, a->sum->count);
        t->results[0] = a->sum;
        a->sum = NULL;
    }
    if (!w->error) {
        a->count = 0;
        a->step++;
    }
    return ATTEMPT_DONE;
}

static void finish_take(Waiter *w) {
    Take *t = (Take *)w;
    t->done(t->arg, w->error, t->results);
    for (int i = 0; i < 3; i++) tensor_unref(t->results[i]);
    resource_unref(&t->accumulator->base);
    free(t);
}

void accumulator_take(Accumulator *a, int64_t required, Cancel *cancel, AccumulatorDone *done, void *arg) {
    Take *t = xcalloc(1, sizeof *t);
    t->accumulator = a;
    t->required = required;
    t->done = done;
    t->arg = arg;
    t->waiter = (Waiter){.attempt = try_take, .finish = finish_take, .cancel_text = "TakeGrad operation was cancelled"};
    resource_ref(&a->base);
    wait_room_enter(&a->room, 0, &t->waiter, cancel);
}

void accumulator_set_step(Accumulator *a, int64_t step) {
    wait_room_lock(&a->room);
    if (step < a->step)
        log_warn("accumulator '%s': step set back from %lld to %lld", a->name, (long long)a->step, (long long)step);
    a->step = step;
    wait_room_unlock(&a->room);
}

int64_t accumulator_count(Accumulator *a) {
    wait_room_lock(&a->room);
    int64_t count = a->count;
    wait_room_unlock(&a->room);
    return count;
}
