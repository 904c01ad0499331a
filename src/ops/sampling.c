/* sampling.c: what stateful and stateless random ops share once they have a generator. */
#include "ops/sampling.h"

#include <float.h>
#include <stdlib.h>

#include "base/float16.h"
#include "base/memory.h"
#include "kernels/gather.h"
#include "ops/elements.h"

Error *sampling_output(KernelContext *k, int shape_input, Tensor **out) {
    Shape shape;
    Error *err = kernel_shape_input(k, shape_input, &shape);
    if (!err) *out = kernel_output(k, 0, &shape);
    return err;
}

/* Inputs i, i + 1, i + 2: key, counter, alg. */
Error *sampling_key(KernelContext *k, int i, Philox *out) {
    const Tensor *key = k->in[i], *counter = k->in[i + 1], *alg = k->in[i + 2];
    if (alg->shape.rank != 0)
        return error_invalid("input %d (0-based) must have shape [], not %s", i + 2, shape_text(&alg->shape).text);
    int64_t which = index_at(alg, 0);
    if (key->shape.rank != 1 || key->count != 1)
        return error_invalid("key must have shape [1], not %s. (Note that batched keys are not supported yet.)", shape_text(&key->shape).text);
    /* TensorFlow asks for as many numbers as the algorithm's own number says; Philox needs two. */
    bool known = which == SAMPLING_PHILOX || which == SAMPLING_AUTO;
    if (counter->shape.rank != 1 || (known ? counter->count < 2 : counter->count < which))
        return error_invalid("counter must be a vector with length at least %lld; got shape: %s. (Note that batched counters are "
                             "not supported yet.)", (long long)which, shape_text(&counter->shape).text);
    if (!known) return error_invalid("Unsupported algorithm id: %lld", (long long)which);
    const uint64_t *c = counter->data;
    *out = philox_from_state(*(const uint64_t *)key->data, c[0], c[1]);
    return NULL;
}

static bool random_type(DataType type, RandomType *out) {
    switch (type) {
        case DT_HALF:
            *out = RANDOM_HALF;
            return true;
        case DT_BFLOAT16:
            *out = RANDOM_BFLOAT16;
            return true;
        case DT_FLOAT:
            *out = RANDOM_FLOAT;
            return true;
        case DT_DOUBLE:
            *out = RANDOM_DOUBLE;
            return true;
        case DT_INT32:
        case DT_UINT32:
            *out = RANDOM_INT32;
            return true;
        case DT_INT64:
        case DT_UINT64:
            *out = RANDOM_INT64;
            return true;
        default:
            return false;
    }
}

Error *sampling_fill(KernelContext *k, RandomKind kind, Philox p, Tensor *out) {
    RandomSpec spec = {.kind = kind};
    bool is_float =
        out->dtype == DT_HALF || out->dtype == DT_BFLOAT16 || out->dtype == DT_FLOAT || out->dtype == DT_DOUBLE;
    if (!random_type(out->dtype, &spec.type) || (kind != RANDOM_UNIFORM && !is_float))
        return kernel_lacks_type(k->node, out->dtype);
    random_fill(k->pool, &spec, p, out->data, out->count);
    return NULL;
}

Error *sampling_range(KernelContext *k, int low_input, int high_input, int64_t count, RandomSpec *spec) {
    const Tensor *low = k->in[low_input], *high = k->in[high_input];
    if (low->shape.rank != 0) return error_invalid("minval must be 0-D, got shape %s", shape_text(&low->shape).text);
    if (high->shape.rank != 0) return error_invalid("maxval must be 0-D, got shape %s", shape_text(&high->shape).text);
    *spec = (RandomSpec){.kind = RANDOM_RANGE};
    if (!random_type(low->dtype, &spec->type))
        return kernel_lacks_type(k->node, low->dtype);
    if (low->dtype == DT_UINT64) {
        spec->low = *(const uint64_t *)low->data;
        uint64_t end = *(const uint64_t *)high->data;
        if (spec->low >= end && count > 0)
            return error_invalid("Need minval < maxval, got %llu >= %llu", (unsigned long long)spec->low,
                                 (unsigned long long)end);
        spec->range = end - spec->low;
        return NULL;
    }
    int64_t begin = index_at(low, 0), end = index_at(high, 0);
    if (begin >= end && count > 0)
        return error_invalid("Need minval < maxval, got %lld >= %lld", (long long)begin, (long long)end);
    spec->low = (uint64_t)begin;
    spec->range = (uint64_t)end - (uint64_t)begin;
    return NULL;
}

Error *sampling_shuffle(KernelContext *k, Philox p) {
    const Tensor *in = k->in[0];
    int64_t n = in->shape.dims[0];
    Shape shape = shape_vector(n);
    Tensor *out = kernel_output(k, 0, &in->shape), *order = out ? kernel_scratch(k, DT_INT64, &shape) : NULL;
    if (!order) return NULL;
    for (int64_t i = 0; i < n; i++) tensor_i64(order)[i] = i;
    random_shuffle(p, tensor_i64(order), n);
    RowGather g = {.kind = element_kind(in->dtype),
                   .blocks = 1,
                   .blocks_per_list = 1,
                   .from_rows = n,
                   .count = n,
                   .width = shape_prod(&in->shape, 1, in->shape.rank),
                   .rows = tensor_i64(order)};
    gather_rows(k->pool, &g, out->data, in->data);
    tensor_unref(order);
    return NULL;
}

double sampling_number(const Tensor *t, int64_t i) {
    switch (t->dtype) {
        case DT_FLOAT:
            return tensor_f32(t)[i];
        case DT_DOUBLE:
            return tensor_f64(t)[i];
        case DT_HALF:
            return half_to_float(((const uint16_t *)t->data)[i]);
        case DT_BFLOAT16:
            return bfloat16_to_float(((const uint16_t *)t->data)[i]);
        case DT_UINT64:
            return (double)((const uint64_t *)t->data)[i];
        default:
            return (double)index_at(t, i);
    }
}

Error *sampling_class_count(KernelContext *k, int64_t *samples) {
    const Shape *logits = &k->in[0]->shape, *count = &k->in[1]->shape;
    if (logits->rank != 2) return error_invalid("logits should be a matrix, got shape %s", shape_text(logits).text);
    if (count->rank != 0) return error_invalid("num_samples should be a scalar, got shape %s", shape_text(count).text);
    *samples = tensor_i32(k->in[1])[0];
    if (*samples < 0) return error_invalid("num_samples should be non-negative, got %lld", (long long)*samples);
    if (logits->dims[1] == 0) return error_invalid("num_classes should be positive, got 0");
    return NULL;
}

typedef struct ClassJob {
    const Tensor *logits, *out;
    Philox p;
    int64_t rows, classes, samples, parts;
    double *row;    /* of each part: `classes` numbers */
    int64_t *drawn; /* `samples` */
} ClassJob;

/* All rows take their numbers from one stream, one row after the other. */
static PhiloxStream stream_at(Philox p, uint64_t number) {
    philox_skip(&p, number / 4);
    PhiloxStream s = philox_stream(p);
    for (uint64_t i = 0; i < number % 4; i++) philox_stream_next(&s);
    return s;
}

static void draw_parts(void *arg, int64_t begin, int64_t end) {
    const ClassJob *job = arg;
    for (int64_t part = begin; part < end; part++) {
        const int64_t first = part * job->rows / job->parts, last = (part + 1) * job->rows / job->parts;
        double *row = job->row + part * job->classes;
        int64_t *drawn = job->drawn + part * job->samples;
        PhiloxStream s = stream_at(job->p, 2 * (uint64_t)job->samples * (uint64_t)first);
        for (int64_t r = first; r < last; r++) {
            for (int64_t c = 0; c < job->classes; c++) row[c] = sampling_number(job->logits, r * job->classes + c);
            random_classes(&s, row, job->classes, job->samples, drawn);
            for (int64_t i = 0; i < job->samples; i++) index_put(job->out, r * job->samples + i, drawn[i]);
        }
    }
}

Error *sampling_classes(KernelContext *k, int64_t samples, Philox p) {
    const int64_t rows = k->in[0]->shape.dims[0], classes = k->in[0]->shape.dims[1];
    Shape shape = shape_matrix(rows, samples);
    Tensor *out = kernel_output(k, 0, &shape);
    if (!out || out->count == 0) return NULL;
    ClassJob job = {.logits = k->in[0], .out = out, .p = p, .rows = rows, .classes = classes, .samples = samples};
    job.parts = (classes + samples) * rows < 4096 ? 1 : rows < 8 ? rows : 8;
    Shape row_shape = shape_matrix(job.parts, classes), drawn_shape = shape_matrix(job.parts, samples);
    Tensor *row = kernel_scratch(k, DT_DOUBLE, &row_shape), *drawn = row ? kernel_scratch(k, DT_INT64, &drawn_shape) : NULL;
    if (drawn) {
        job.row = tensor_f64(row);
        job.drawn = tensor_i64(drawn);
        threadpool_parallel_for(k->pool, job.parts, 1, draw_parts, &job);
    }
    tensor_unref(row);
    tensor_unref(drawn);
    return NULL;
}

typedef struct ParameterJob {
    Philox p;
    const Tensor *parameters;
    int64_t samples;
    bool gamma;
    double most;
    Tensor *out;
} ParameterJob;

void sampling_put(Tensor *t, int64_t i, double x) {
    switch (t->dtype) {
        case DT_FLOAT:
            tensor_f32(t)[i] = (float)x;
            break;
        case DT_DOUBLE:
            tensor_f64(t)[i] = x;
            break;
        case DT_HALF:
            ((uint16_t *)t->data)[i] = float_to_half((float)x);
            break;
        case DT_BFLOAT16:
            ((uint16_t *)t->data)[i] = float_to_bfloat16((float)x);
            break;
        default:
            index_put(t, i, x == x ? (int64_t)x : 0);
    }
}

/* Numbers are counted parameter by parameter, and each has 256 steps of the generator for itself. */
static void parameter_range(void *arg, int64_t begin, int64_t end) {
    const ParameterJob *job = arg;
    for (int64_t i = begin; i < end; i++) {
        int64_t parameter = i / job->samples, sample = i % job->samples;
        Philox own = job->p;
        philox_skip(&own, (uint64_t)i * 256);
        double value = sampling_number(job->parameters, parameter);
        double x = job->gamma ? random_gamma(own, value) : random_poisson(own, value, job->most);
        sampling_put(job->out, sample * job->parameters->count + parameter, x);
    }
}

static double largest(DataType type) {
    switch (type) {
        case DT_HALF:
            return 65504;
        case DT_FLOAT:
            return FLT_MAX;
        case DT_INT32:
            return INT32_MAX;
        case DT_INT64:
            return 0x1p62;
        default:
            return DBL_MAX;
    }
}

void sampling_parameters(ThreadPool *pool, Philox p, const Tensor *parameters, int64_t samples, bool gamma,
                         Tensor *out) {
    ParameterJob job = {p, parameters, samples, gamma, largest(out->dtype), out};
    threadpool_parallel_for(pool, out->count, 256, parameter_range, &job);
}

Error *sampling_seed(KernelContext *k, int i, Philox *out) {
    const Tensor *t = k->in[i];
    if (t->shape.rank != 1 || t->count != 2)
        return error_invalid("seed must have shape [2], not %s", shape_text(&t->shape).text);
    if (t->dtype != DT_INT32 && t->dtype != DT_INT64) return error_invalid("Invalid seed type: %s", dtype_name(t->dtype));
    uint64_t seed[2];
    for (int j = 0; j < 2; j++) seed[j] = (uint64_t)index_at(t, j);
    *out = philox_from_stateless(seed[0], seed[1]);
    return NULL;
}

int64_t sampling_place(const Shape *small, const Shape *full, int64_t at) {
    int64_t place = 0, step = 1;
    for (int d = 1; d <= full->rank; d++) {
        int64_t size = full->dims[full->rank - d], i = at % size;
        at /= size;
        if (d > small->rank) continue;
        int64_t own = small->dims[small->rank - d];
        if (own > 1) place += i * step;
        step *= own;
    }
    return place;
}

Error *sampling_batch(const Tensor *const *parameters, int count, const char *names, Shape *out) {
    *out = (Shape){0};
    for (int i = 0; i < count; i++)
        if (parameters[i]->shape.rank > out->rank) out->rank = parameters[i]->shape.rank;
    for (int d = 0; d < out->rank; d++) out->dims[d] = 1;
    for (int i = 0; i < count; i++) {
        const Shape *s = &parameters[i]->shape;
        for (int d = 1; d <= s->rank; d++) {
            int64_t own = s->dims[s->rank - d], *all = &out->dims[out->rank - d];
            if (own != *all && own != 1 && *all != 1)
                return error_invalid("%s must have compatible batch dimensions: %s does not fit the others", names, shape_text(s).text);
            if (*all == 1) *all = own;
        }
    }
    return NULL;
}

Error *sampling_ends_with(const Shape *shape, const Shape *batch) {
    bool ends = batch->rank <= shape->rank;
    for (int d = 1; d <= batch->rank && ends; d++) ends = batch->dims[batch->rank - d] == shape->dims[shape->rank - d];
    return ends ? NULL : error_invalid("Shape passed in must end with broadcasted shape.");
}
