/* conv_primitive.c: a convolution of one shape made ready in oneDNN, with the filter in the layout it likes best; found again by shape. */
#include "kernels/conv_primitive.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/refcount.h"

enum { CACHE_SIZE = 16 };

struct ConvPrimitive {
    RefCount refs;
    Conv2dKind kind;
    Conv2dType type;
    Conv2dShape shape;
    dnnl_memory_desc_t in, out, filter; /* as the caller has them */
    dnnl_memory_desc_t inner;           /* the filter as the primitive wants it */
    OnednnPrimitive conv, reorder;      /* reorder: filter to inner, or inner to filter in CONV2D_BACK_FILTER */
};

struct Conv2dCache {
    pthread_mutex_t mutex; /* guards what follows */
    ConvPrimitive *slots[CACHE_SIZE];
    int next; /* to be replaced */
};

void conv_primitive_unref(ConvPrimitive *p) {
    if (!p || !refcount_dec(&p->refs)) return;
    onednn_primitive_clear(&p->conv);
    onednn_primitive_clear(&p->reorder);
    free(p);
}

Conv2dCache *conv2d_cache_new(void) {
    Conv2dCache *cache = xcalloc(1, sizeof *cache);
    pthread_mutex_init(&cache->mutex, NULL);
    return cache;
}

void conv2d_cache_free(Conv2dCache *cache) {
    if (!cache) return;
    for (int i = 0; i < CACHE_SIZE; i++) conv_primitive_unref(cache->slots[i]);
    pthread_mutex_destroy(&cache->mutex);
    free(cache);
}

/* ---- Preparing ---- */

/* Gradients of filters are summed, hence given, in float. */
static bool describe_volumes(ConvPrimitive *p) {
    const Conv2dShape *s = &p->shape;
    const dnnl_format_tag_t tag = s->channels_first ? dnnl_ncdhw : dnnl_ndhwc;
    const dnnl_data_type_t type = p->type == CONV2D_BF16 ? dnnl_bf16 : dnnl_f32, inner = p->kind == CONV2D_BACK_FILTER ? dnnl_f32 : type;
    const dnnl_dims_t in = {s->batch, s->in_c, s->in_d, s->in_h, s->in_w}, out = {s->batch, s->out_c, s->out_d, s->out_h, s->out_w};
    const dnnl_dims_t filter = {s->out_c, s->in_c, s->k_d, s->k_h, s->k_w};
    return dnnl_memory_desc_init_by_tag(&p->in, 5, in, type, tag) == dnnl_success && dnnl_memory_desc_init_by_tag(&p->out, 5, out, type, tag) == dnnl_success &&
           dnnl_memory_desc_init_by_tag(&p->filter, 5, filter, type, dnnl_dhwio) == dnnl_success &&
           dnnl_memory_desc_init_by_tag(&p->inner, 5, filter, inner, dnnl_format_tag_any) == dnnl_success;
}

static bool describe_images(ConvPrimitive *p) {
    const Conv2dShape *s = &p->shape;
    dnnl_format_tag_t tag = s->channels_first ? dnnl_nchw : dnnl_nhwc;
    dnnl_data_type_t type = p->type == CONV2D_BF16 ? dnnl_bf16 : dnnl_f32, inner = p->kind == CONV2D_BACK_FILTER ? dnnl_f32 : type;
    dnnl_dims_t in = {s->batch, s->in_c, s->in_h, s->in_w}, out = {s->batch, s->out_c, s->out_h, s->out_w};
    dnnl_dims_t filter = {s->out_c, s->in_c, s->k_h, s->k_w};
    dnnl_dims_t grouped = {s->groups, s->out_c / s->groups, s->in_c / s->groups, s->k_h, s->k_w};
    bool one = s->groups == 1;
    return dnnl_memory_desc_init_by_tag(&p->in, 4, in, type, tag) == dnnl_success &&
           dnnl_memory_desc_init_by_tag(&p->out, 4, out, type, tag) == dnnl_success &&
           dnnl_memory_desc_init_by_tag(&p->filter, one ? 4 : 5, one ? filter : grouped, type, one ? dnnl_hwio : dnnl_hwigo) == dnnl_success &&
           dnnl_memory_desc_init_by_tag(&p->inner, one ? 4 : 5, one ? filter : grouped, inner, dnnl_format_tag_any) == dnnl_success;
}

static dnnl_dim_t pad_after(int64_t out, int64_t stride, int64_t k, int64_t dilation, int64_t in, int64_t before) {
    int64_t need = (out - 1) * stride + (k - 1) * dilation + 1 - in - before;
    return need > 0 ? need : 0;
}

/* oneDNN has a way for everything; of bfloat16 only a fast one is better than computing in float. */
static bool is_slow(const ConvPrimitive *p, dnnl_primitive_desc_t pd) {
    const char *name = NULL;
    if (p->type != CONV2D_BF16) return false;
    return dnnl_primitive_desc_query(pd, dnnl_query_impl_info_str, 0, (void *)&name) != dnnl_success || strncmp(name, "ref", 3) == 0;
}

static bool prepare_conv(ConvPrimitive *p, dnnl_primitive_attr_t attr) {
    const Conv2dShape *s = &p->shape;
    const dnnl_dims_t all_strides = {s->stride_d, s->stride_h, s->stride_w}, all_dilates = {s->dilation_d - 1, s->dilation_h - 1, s->dilation_w - 1};
    const dnnl_dims_t all_before = {s->pad_front, s->pad_top, s->pad_left};
    const dnnl_dims_t all_after = {pad_after(s->out_d, s->stride_d, s->k_d, s->dilation_d, s->in_d, s->pad_front),
                                   pad_after(s->out_h, s->stride_h, s->k_h, s->dilation_h, s->in_h, s->pad_top),
                                   pad_after(s->out_w, s->stride_w, s->k_w, s->dilation_w, s->in_w, s->pad_left)};
    const int flat = s->in_d ? 0 : 1; /* images have no depth */
    const dnnl_dim_t *strides = all_strides + flat, *dilates = all_dilates + flat, *before = all_before + flat, *after = all_after + flat;
    const dnnl_alg_kind_t how = dnnl_convolution_direct;
    dnnl_convolution_desc_t desc;
    dnnl_primitive_desc_t pd = NULL, forward = NULL;
    dnnl_memory_desc_t weights = p->inner;

    weights.data_type = p->in.data_type;
    if (dnnl_dilated_convolution_forward_desc_init(&desc, dnnl_forward_training, how, &p->in, &weights, NULL, &p->out, strides, dilates,
                                                   before, after) != dnnl_success ||
        dnnl_primitive_desc_create(&forward, &desc, attr, onednn_engine(), NULL) != dnnl_success) {
        return false;
    }
    if (p->kind == CONV2D_FORWARD && !is_slow(p, forward)) {
        p->inner = *dnnl_primitive_desc_query_md(forward, dnnl_query_weights_md, 0);
        return onednn_primitive_init(&p->conv, forward);
    }
    if (p->kind == CONV2D_FORWARD) {
        dnnl_primitive_desc_destroy(forward);
        return false;
    }
    bool by_input = p->kind == CONV2D_BACK_INPUT;
    dnnl_status_t status = by_input ? dnnl_dilated_convolution_backward_data_desc_init(&desc, how, &p->in, &p->inner, &p->out, strides,
                                                                                       dilates, before, after)
                                    : dnnl_dilated_convolution_backward_weights_desc_init(&desc, how, &p->in, &p->inner, NULL, &p->out,
                                                                                          strides, dilates, before, after);
    if (status == dnnl_success) status = dnnl_primitive_desc_create(&pd, &desc, attr, onednn_engine(), forward);
    dnnl_primitive_desc_destroy(forward);
    if (status != dnnl_success) return false;
    if (is_slow(p, pd)) {
        dnnl_primitive_desc_destroy(pd);
        return false;
    }
    p->inner = *dnnl_primitive_desc_query_md(pd, by_input ? dnnl_query_weights_md : dnnl_query_diff_weights_md, 0);
    return onednn_primitive_init(&p->conv, pd);
}

/* How far into memory index i of a dimension leads. */
static dnnl_dim_t offset_of(const dnnl_memory_desc_t *m, int dim, dnnl_dim_t i) {
    const dnnl_blocking_desc_t *blocks = &m->format_desc.blocking;
    dnnl_dim_t offset = 0, inner = 1;
    for (int b = blocks->inner_nblks - 1; b >= 0; b--) {
        if (blocks->inner_idxs[b] == dim) {
            offset += i % blocks->inner_blks[b] * inner;
            i /= blocks->inner_blks[b];
        }
        inner *= blocks->inner_blks[b];
    }
    return offset + i * blocks->strides[dim];
}

/* Whether two layouts put every element in the same place, whatever they are called: blocks of 64 of 64 channels are no blocks. */
static bool is_same_layout(const dnnl_memory_desc_t *a, const dnnl_memory_desc_t *b) {
    if (dnnl_memory_desc_equal(a, b)) return true;
    if (a->ndims != b->ndims || a->data_type != b->data_type || a->format_kind != dnnl_blocked || b->format_kind != dnnl_blocked) return false;
    if (a->extra.flags || b->extra.flags || a->offset0 != b->offset0 || dnnl_memory_desc_get_size(a) != dnnl_memory_desc_get_size(b)) return false;
    for (int d = 0; d < a->ndims; d++) {
        if (a->dims[d] != b->dims[d]) return false;
        for (dnnl_dim_t i = 0; i < a->dims[d]; i++)
            if (offset_of(a, d, i) != offset_of(b, d, i)) return false;
    }
    return true;
}

static bool prepare_reorder(ConvPrimitive *p, dnnl_primitive_attr_t attr) {
    if (is_same_layout(&p->filter, &p->inner)) return true;
    bool back = p->kind == CONV2D_BACK_FILTER;
    dnnl_primitive_desc_t pd;
    if (dnnl_reorder_primitive_desc_create(&pd, back ? &p->inner : &p->filter, onednn_engine(), back ? &p->filter : &p->inner,
                                           onednn_engine(), attr) != dnnl_success) {
        return false;
    }
    return onednn_primitive_init(&p->reorder, pd);
}

static ConvPrimitive *prepare(Conv2dKind kind, Conv2dType type, const Conv2dShape *s) {
    dnnl_primitive_attr_t attr;
    if (!onednn_attributes(&attr)) return NULL;
    ConvPrimitive *p = xcalloc(1, sizeof *p);
    refcount_init(&p->refs);
    p->kind = kind;
    p->type = type;
    p->shape = *s;
    bool ok = (s->in_d ? describe_volumes(p) : describe_images(p)) && prepare_conv(p, attr) && prepare_reorder(p, attr);
    dnnl_primitive_attr_destroy(attr);
    if (ok) return p;
    conv_primitive_unref(p);
    return NULL;
}

ConvPrimitive *conv_primitive_find(Conv2dCache *cache, Conv2dKind kind, Conv2dType type, const Conv2dShape *s) {
    ConvPrimitive *found = NULL;
    pthread_mutex_lock(&cache->mutex);
    for (int i = 0; i < CACHE_SIZE && !found; i++) {
        ConvPrimitive *p = cache->slots[i];
        if (p && p->kind == kind && p->type == type && memcmp(&p->shape, s, sizeof *s) == 0) found = p;
    }
    if (!found) {
        found = prepare(kind, type, s);
        if (found) {
            conv_primitive_unref(cache->slots[cache->next]);
            cache->slots[cache->next] = found;
            cache->next = (cache->next + 1) % CACHE_SIZE;
        }
    }
    if (found) refcount_inc(&found->refs);
    pthread_mutex_unlock(&cache->mutex);
    return found;
}

/* ---- Running ---- */

ConvLayout conv_primitive_layout(const ConvPrimitive *p) {
    return (ConvLayout){dnnl_memory_desc_get_size(&p->inner), !p->reorder.handle};
}

bool conv_primitive_shares_layout(const ConvPrimitive *a, const ConvPrimitive *b) {
    return dnnl_memory_desc_equal(&a->inner, &b->inner);
}

bool conv_primitive_reorder(const ConvPrimitive *p, OnednnRunner *r, const void *from, void *to) {
    bool back = p->kind == CONV2D_BACK_FILTER;
    const OnednnArgument args[] = {{DNNL_ARG_FROM, back ? &p->inner : &p->filter, (void *)from},
                                   {DNNL_ARG_TO, back ? &p->filter : &p->inner, to}};
    return onednn_execute(r, &p->reorder, args, 2);
}

bool conv_primitive_run(const ConvPrimitive *p, OnednnRunner *r, void *in, void *inner_filter, void *out) {
    static const int roles[][3] = {
        [CONV2D_FORWARD] = {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST},
        [CONV2D_BACK_INPUT] = {DNNL_ARG_DIFF_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DIFF_DST},
        [CONV2D_BACK_FILTER] = {DNNL_ARG_SRC, DNNL_ARG_DIFF_WEIGHTS, DNNL_ARG_DIFF_DST},
    };
    const OnednnArgument args[] = {
        {roles[p->kind][0], &p->in, in}, {roles[p->kind][1], &p->inner, inner_filter}, {roles[p->kind][2], &p->out, out}};
    return onednn_execute(r, &p->conv, args, 3);
}
