/* conv2d.c: convolution on oneDNN, a batch shared among threads image by image; plain C beside it. */
#include "kernels/conv2d.h"

#include <oneapi/dnnl/dnnl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/refcount.h"
#include "kernels/gemm.h"

enum { CACHE_SIZE = 16 };

/* A primitive and the memory it wants to scribble in. */
typedef struct Primitive {
    dnnl_primitive_t handle; /* NULL: nothing to do */
    dnnl_memory_desc_t scratch;
} Primitive;

/* Immutable once made; several threads may execute it. */
typedef struct Prepared {
    RefCount refs;
    Conv2dKind kind;
    Conv2dShape shape;
    dnnl_memory_desc_t in, out, filter; /* as the caller has them */
    dnnl_memory_desc_t inner;           /* the filter as the primitive wants it */
    Primitive conv, reorder;            /* reorder: filter to inner, or inner to filter in CONV2D_BACK_FILTER */
} Prepared;

struct Conv2dCache {
    pthread_mutex_t mutex; /* guards what follows */
    Prepared *slots[CACHE_SIZE];
    int next; /* to be replaced */
};

static dnnl_engine_t engine;
static void make_engine(void) {
    if (dnnl_engine_create(&engine, dnnl_cpu, 0) != dnnl_success) engine = NULL;
}
static dnnl_engine_t cpu_engine(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, make_engine);
    return engine;
}

static void prepared_unref(Prepared *p) {
    if (!p || !refcount_dec(&p->refs)) return;
    if (p->conv.handle) dnnl_primitive_destroy(p->conv.handle);
    if (p->reorder.handle) dnnl_primitive_destroy(p->reorder.handle);
    free(p);
}

Conv2dCache *conv2d_cache_new(void) {
    Conv2dCache *cache = xcalloc(1, sizeof *cache);
    pthread_mutex_init(&cache->mutex, NULL);
    return cache;
}

void conv2d_cache_free(Conv2dCache *cache) {
    if (!cache) return;
    for (int i = 0; i < CACHE_SIZE; i++) prepared_unref(cache->slots[i]);
    pthread_mutex_destroy(&cache->mutex);
    free(cache);
}

/* ---- Preparing ---- */

/* Takes pd. */
static bool primitive_from(Primitive *p, dnnl_primitive_desc_t pd) {
    p->scratch = *dnnl_primitive_desc_query_md(pd, dnnl_query_scratchpad_md, 0);
    bool ok = dnnl_primitive_create(&p->handle, pd) == dnnl_success;
    dnnl_primitive_desc_destroy(pd);
    return ok;
}

static bool describe(Prepared *p) {
    const Conv2dShape *s = &p->shape;
    dnnl_format_tag_t tag = s->channels_first ? dnnl_nchw : dnnl_nhwc;
    dnnl_dims_t in = {s->batch, s->in_c, s->in_h, s->in_w}, out = {s->batch, s->out_c, s->out_h, s->out_w};
    dnnl_dims_t filter = {s->out_c, s->in_c, s->k_h, s->k_w};
    dnnl_dims_t grouped = {s->groups, s->out_c / s->groups, s->in_c / s->groups, s->k_h, s->k_w};
    bool one = s->groups == 1;
    return dnnl_memory_desc_init_by_tag(&p->in, 4, in, dnnl_f32, tag) == dnnl_success &&
           dnnl_memory_desc_init_by_tag(&p->out, 4, out, dnnl_f32, tag) == dnnl_success &&
           dnnl_memory_desc_init_by_tag(&p->filter, one ? 4 : 5, one ? filter : grouped, dnnl_f32,
                                        one ? dnnl_hwio : dnnl_hwigo) == dnnl_success &&
           dnnl_memory_desc_init_by_tag(&p->inner, one ? 4 : 5, one ? filter : grouped, dnnl_f32,
                                        dnnl_format_tag_any) == dnnl_success;
}

static dnnl_dim_t pad_after(int64_t out, int64_t stride, int64_t k, int64_t dilation, int64_t in, int64_t before) {
    int64_t need = (out - 1) * stride + (k - 1) * dilation + 1 - in - before;
    return need > 0 ? need : 0;
}

static bool prepare_conv(Prepared *p, dnnl_primitive_attr_t attr) {
    const Conv2dShape *s = &p->shape;
    dnnl_dims_t strides = {s->stride_h, s->stride_w}, dilates = {s->dilation_h - 1, s->dilation_w - 1};
    dnnl_dims_t before = {s->pad_top, s->pad_left};
    dnnl_dims_t after = {pad_after(s->out_h, s->stride_h, s->k_h, s->dilation_h, s->in_h, s->pad_top),
                         pad_after(s->out_w, s->stride_w, s->k_w, s->dilation_w, s->in_w, s->pad_left)};
    const dnnl_alg_kind_t how = dnnl_convolution_direct;
    dnnl_convolution_desc_t desc;
    dnnl_primitive_desc_t pd = NULL, forward = NULL;

    if (dnnl_dilated_convolution_forward_desc_init(&desc, dnnl_forward_training, how, &p->in, &p->inner, NULL, &p->out,
                                                   strides, dilates, before, after) != dnnl_success ||
        dnnl_primitive_desc_create(&forward, &desc, attr, cpu_engine(), NULL) != dnnl_success) {
        return false;
    }
    if (p->kind == CONV2D_FORWARD) {
        p->inner = *dnnl_primitive_desc_query_md(forward, dnnl_query_weights_md, 0);
        return primitive_from(&p->conv, forward);
    }
    dnnl_status_t status = p->kind == CONV2D_BACK_INPUT
                               ? dnnl_dilated_convolution_backward_data_desc_init(
                                     &desc, how, &p->in, &p->inner, &p->out, strides, dilates, before, after)
                               : dnnl_dilated_convolution_backward_weights_desc_init(
                                     &desc, how, &p->in, &p->inner, NULL, &p->out, strides, dilates, before, after);
    if (status == dnnl_success) status = dnnl_primitive_desc_create(&pd, &desc, attr, cpu_engine(), forward);
    dnnl_primitive_desc_destroy(forward);
    if (status != dnnl_success) return false;
    p->inner = *dnnl_primitive_desc_query_md(
        pd, p->kind == CONV2D_BACK_INPUT ? dnnl_query_weights_md : dnnl_query_diff_weights_md, 0);
    return primitive_from(&p->conv, pd);
}

static bool prepare_reorder(Prepared *p, dnnl_primitive_attr_t attr) {
    if (dnnl_memory_desc_equal(&p->filter, &p->inner)) return true;
    bool back = p->kind == CONV2D_BACK_FILTER;
    dnnl_primitive_desc_t pd;
    if (dnnl_reorder_primitive_desc_create(&pd, back ? &p->inner : &p->filter, cpu_engine(),
                                           back ? &p->filter : &p->inner, cpu_engine(), attr) != dnnl_success) {
        return false;
    }
    return primitive_from(&p->reorder, pd);
}

/* Scratch memory is the caller's: oneDNN's own belongs to the thread that made the primitive. */
static Prepared *prepare(Conv2dKind kind, const Conv2dShape *s) {
    Prepared *p = xcalloc(1, sizeof *p);
    refcount_init(&p->refs);
    p->kind = kind;
    p->shape = *s;
    dnnl_primitive_attr_t attr;
    if (!cpu_engine() || dnnl_primitive_attr_create(&attr) != dnnl_success) {
        prepared_unref(p);
        return NULL;
    }
    gemm_thread_setup();
    bool ok = dnnl_primitive_attr_set_scratchpad_mode(attr, dnnl_scratchpad_mode_user) == dnnl_success && describe(p) &&
              prepare_conv(p, attr) && prepare_reorder(p, attr);
    dnnl_primitive_attr_destroy(attr);
    if (ok) return p;
    prepared_unref(p);
    return NULL;
}

/* A reference to the primitive of this shape. */
static Prepared *find(Conv2dCache *cache, Conv2dKind kind, const Conv2dShape *s) {
    Prepared *found = NULL;
    pthread_mutex_lock(&cache->mutex);
    for (int i = 0; i < CACHE_SIZE && !found; i++) {
        Prepared *p = cache->slots[i];
        if (p && p->kind == kind && memcmp(&p->shape, s, sizeof *s) == 0) found = p;
    }
    if (!found) {
        found = prepare(kind, s);
        if (found) {
            prepared_unref(cache->slots[cache->next]);
            cache->slots[cache->next] = found;
            cache->next = (cache->next + 1) % CACHE_SIZE;
        }
    }
    if (found) refcount_inc(&found->refs);
    pthread_mutex_unlock(&cache->mutex);
    return found;
}

/* ---- Running ---- */

typedef struct Argument {
    int role;
    const dnnl_memory_desc_t *desc;
    void *data;
} Argument;

static bool execute(const Primitive *p, dnnl_stream_t stream, const Argument *args, int count) {
    dnnl_exec_arg_t all[4];
    int made = 0;
    size_t scratch_size = dnnl_memory_desc_get_size(&p->scratch);
    void *scratch = scratch_size ? try_alloc(scratch_size) : NULL;
    bool ok = !scratch_size || scratch;
    for (int i = 0; ok && i < count; i++) {
        all[made].arg = args[i].role;
        ok = dnnl_memory_create(&all[made].memory, args[i].desc, cpu_engine(), args[i].data) == dnnl_success;
        made += ok;
    }
    if (ok && scratch) {
        all[made].arg = DNNL_ARG_SCRATCHPAD;
        ok = dnnl_memory_create(&all[made].memory, &p->scratch, cpu_engine(), scratch) == dnnl_success;
        made += ok;
    }
    if (ok)
        ok = dnnl_primitive_execute(p->handle, stream, made, all) == dnnl_success &&
             dnnl_stream_wait(stream) == dnnl_success;
    for (int i = 0; i < made; i++) dnnl_memory_destroy(all[i].memory);
    free(scratch);
    return ok;
}

static bool run_prepared(const Prepared *p, float *in, float *filter, float *out) {
    static const int roles[][3] = {
        [CONV2D_FORWARD] = {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST},
        [CONV2D_BACK_INPUT] = {DNNL_ARG_DIFF_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DIFF_DST},
        [CONV2D_BACK_FILTER] = {DNNL_ARG_SRC, DNNL_ARG_DIFF_WEIGHTS, DNNL_ARG_DIFF_DST},
    };
    bool back = p->kind == CONV2D_BACK_FILTER, ok = true;
    float *inner = filter;
    dnnl_stream_t stream;
    gemm_thread_setup();
    if (dnnl_stream_create(&stream, cpu_engine(), dnnl_stream_default_flags) != dnnl_success) return false;
    if (p->reorder.handle) {
        inner = try_alloc(dnnl_memory_desc_get_size(&p->inner));
        ok = inner != NULL;
    }
    const Argument to_inner[] = {{DNNL_ARG_FROM, &p->filter, filter}, {DNNL_ARG_TO, &p->inner, inner}};
    const Argument from_inner[] = {{DNNL_ARG_FROM, &p->inner, inner}, {DNNL_ARG_TO, &p->filter, filter}};
    const Argument conv[] = {
        {roles[p->kind][0], &p->in, in}, {roles[p->kind][1], &p->inner, inner}, {roles[p->kind][2], &p->out, out}};
    if (ok && p->reorder.handle && !back) ok = execute(&p->reorder, stream, to_inner, 2);
    if (ok) ok = execute(&p->conv, stream, conv, 3);
    if (ok && p->reorder.handle && back) ok = execute(&p->reorder, stream, from_inner, 2);
    if (inner != filter) free(inner);
    dnnl_stream_destroy(stream);
    return ok;
}

typedef struct ConvJob {
    Conv2dCache *cache;
    Conv2dKind kind;
    const Conv2dShape *shape;
    float *in, *filter, *out;
    float *partial; /* CONV2D_BACK_FILTER in several pieces: a filter for each piece */
    int64_t pieces;
    RangeCall done;
    _Atomic bool failed;
} ConvJob;

static int64_t filter_count(const Conv2dShape *s) {
    return s->k_h * s->k_w * (s->in_c / s->groups) * s->out_c;
}

static void conv_pieces(void *arg, int64_t begin, int64_t end) {
    ConvJob *job = arg;
    const Conv2dShape *s = job->shape;
    for (int64_t i = begin; i < end; i++) {
        int64_t from = s->batch * i / job->pieces, to = s->batch * (i + 1) / job->pieces;
        Conv2dShape part = *s;
        part.batch = to - from;
        Prepared *p = find(job->cache, job->kind, &part);
        float *filter = job->partial ? job->partial + i * filter_count(s) : job->filter;
        const int64_t in_image = s->in_h * s->in_w * s->in_c, out_image = s->out_h * s->out_w * s->out_c;
        if (p && run_prepared(p, job->in + from * in_image, filter, job->out + from * out_image))
            range_call(job->done, from * out_image, to * out_image);
        else
            atomic_store(&job->failed, true);
        prepared_unref(p);
    }
}

bool conv2d_f32(Conv2dCache *cache, Conv2dKind kind, const Conv2dShape *s, float *in, float *filter, float *out,
                ThreadPool *pool, RangeCall done) {
    ConvJob job = {.cache = cache, .kind = kind, .shape = s, .in = in, .filter = filter, .out = out, .pieces = 1, .done = done};
    double products = (double)s->batch * (double)s->out_h * (double)s->out_w * (double)filter_count(s);
    int threads = pool ? threadpool_size(pool) : 1;
    if (threads > 1 && products > 2e6) job.pieces = s->batch < threads ? s->batch : threads;
    if (kind == CONV2D_BACK_FILTER && job.pieces > 1) {
        job.partial = try_alloc((size_t)(filter_count(s) * job.pieces) * sizeof(float));
        if (!job.partial) job.pieces = 1;
    }
    threadpool_parallel_for(pool, job.pieces, 1, conv_pieces, &job);
    if (job.partial) {
        memcpy(filter, job.partial, (size_t)filter_count(s) * sizeof(float));
        for (int64_t p = 1; p < job.pieces; p++) {
            const float *part = job.partial + p * filter_count(s);
            for (int64_t i = 0; i < filter_count(s); i++) filter[i] += part[i];
        }
        free(job.partial);
    }
    return !atomic_load(&job.failed);
}

/* ---- Plain C ---- */

#define S float
#define NAME(f) f##_f32
#define PLUS_PRODUCT(acc, x, y) ((acc) + (x) * (y))
#include "kernels/conv2d_plain.inc"
#undef S
#undef NAME
#define S double
#define NAME(f) f##_f64
#include "kernels/conv2d_plain.inc"
#undef S
#undef NAME
#undef PLUS_PRODUCT
#define S int32_t
#define NAME(f) f##_i32
#define PLUS_PRODUCT(acc, x, y) (int32_t)((uint32_t)(acc) + (uint32_t)(x) * (uint32_t)(y))
#include "kernels/conv2d_plain.inc"
