/* conv2d.c: convolution on oneDNN, a batch shared among threads; plain C beside it.
 *
 * Every thread gets an equal share of most images; the last ones are taken a few at a time by whoever is free, since threads start and run
 * unevenly. The filter is brought into oneDNN's layout once for all. The gradient of a filter is the sum of those of the pieces. */
#include "kernels/conv2d.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/block_cache.h"
#include "kernels/conv_primitive.h"
#include "kernels/cpu.h"

/* Products that pay for a piece of its own, and that pay for tails. A filter of so many elements stays in the cache while image after image is read; a larger one
 * is worth reading for so many pixels, and any is worth adding for so many. */
enum { PIECE_PRODUCTS = 4 << 20, TAIL_PRODUCTS = 1 << 27, CACHED_FILTER = 128 << 10, FILTER_PIXELS = 512, SUM_PIXELS = 512 };

/* `shares` pieces of equal size (to one image), then `tails` of `tail_images`. */
typedef struct Pieces {
    int64_t batch, shares, tails, tail_images;
} Pieces;

enum { SHARE_LESS, SHARE_MORE, TAIL, SIZES };

typedef struct ConvJob {
    Conv2dKind kind;
    const Conv2dShape *shape;
    size_t size; /* of an element */
    char *in, *out;
    Pieces pieces;
    ConvPrimitive *primitives[SIZES]; /* by the number of images; NULL when no piece has it */
    ConvLayout layout;
    char *inner;          /* the filter in the layout of the primitives */
    bool partial;         /* `inner` has one filter for each piece */
    _Atomic int64_t next; /* piece that nobody has taken */
    RangeCall done;
    _Atomic bool failed;
} ConvJob;

/* Of images or volumes. */
static int64_t pixels_of(int64_t d, int64_t h, int64_t w) {
    return (d ? d : 1) * h * w;
}

static int64_t filter_count(const Conv2dShape *s) {
    return pixels_of(s->k_d, s->k_h, s->k_w) * (s->in_c / s->groups) * s->out_c;
}

static int64_t least(int64_t a, int64_t b) {
    return a < b ? a : b;
}

static Pieces pieces_of(Conv2dKind kind, const Conv2dShape *s, int threads) {
    const bool sums = kind == CONV2D_BACK_FILTER;
    const int64_t pixels = pixels_of(s->out_d, s->out_h, s->out_w), filter = filter_count(s);
    const double products = (double)pixels * (double)filter; /* of an image */
    Pieces p = {.batch = s->batch, .shares = 1};
    if (threads == 1 || products * (double)s->batch < PIECE_PRODUCTS / 2) return p;
    p.shares = least(threads, s->batch);
    if (sums) p.shares = least(p.shares, s->batch * pixels / SUM_PIXELS);
    if (p.shares <= 1) return (Pieces){.batch = s->batch, .shares = 1};
    if (sums || products * (double)s->batch < TAIL_PRODUCTS) return p;
    p.tail_images = (int64_t)(PIECE_PRODUCTS / products) + 1;
    if (filter > CACHED_FILTER) p.tail_images += FILTER_PIXELS / pixels;
    p.tails = least(4 * p.shares, s->batch / 4 / p.tail_images);
    return p;
}

static int64_t piece_count(const Pieces *p) {
    return p->shares + p->tails;
}

/* Its first image and (returned) which of the sizes it has; *count images. */
static int piece_at(const Pieces *p, int64_t i, int64_t *first, int64_t *count) {
    int64_t shared = p->batch - p->tails * p->tail_images;
    if (i >= p->shares) {
        *first = shared + (i - p->shares) * p->tail_images;
        *count = p->tail_images;
        return TAIL;
    }
    *first = shared * i / p->shares;
    *count = shared * (i + 1) / p->shares - *first;
    return *count > shared / p->shares ? SHARE_MORE : SHARE_LESS;
}

static void take_pieces(ConvJob *job, OnednnRunner *r) {
    const Conv2dShape *s = job->shape;
    const int64_t in_image = pixels_of(s->in_d, s->in_h, s->in_w) * s->in_c, out_image = pixels_of(s->out_d, s->out_h, s->out_w) * s->out_c;
    for (;;) {
        int64_t i = atomic_fetch_add(&job->next, 1), first, count;
        if (i >= piece_count(&job->pieces)) return;
        const ConvPrimitive *p = job->primitives[piece_at(&job->pieces, i, &first, &count)];
        char *in = job->in + (size_t)(first * in_image) * job->size, *out = job->out + (size_t)(first * out_image) * job->size;
        if (conv_primitive_run(p, r, in, job->inner + (job->partial ? (size_t)i * job->layout.bytes : 0), out)) {
            range_call(job->done, first * out_image, (first + count) * out_image);
        } else {
            atomic_store(&job->failed, true);
        }
    }
}

static void lane(void *arg, int64_t begin, int64_t end) {
    ConvJob *job = arg;
    OnednnRunner r;
    (void)begin, (void)end; /* a lane takes what is left, not what it is given */
    if (onednn_runner_init(&r)) {
        take_pieces(job, &r);
    } else {
        atomic_store(&job->failed, true);
    }
    onednn_runner_clear(&r);
}

static void add_range(void *arg, int64_t begin, int64_t end) {
    const ConvJob *job = arg;
    float *restrict sum = (float *)job->inner;
    for (int64_t p = 1; p < piece_count(&job->pieces); p++) {
        const float *restrict part = (const float *)(job->inner + (size_t)p * job->layout.bytes);
        for (int64_t i = begin; i < end; i++) sum[i] += part[i];
    }
}

/* Finds the primitives of all pieces; false when oneDNN lacks one, or they want the filter in different layouts. */
static bool find_primitives(ConvJob *job, Conv2dCache *cache, Conv2dType type) {
    ConvPrimitive **all = job->primitives;
    for (int64_t i = 0; i < piece_count(&job->pieces); i++) {
        Conv2dShape part = *job->shape;
        int64_t first;
        int size = piece_at(&job->pieces, i, &first, &part.batch);
        if (all[size]) continue;
        all[size] = conv_primitive_find(cache, job->kind, type, &part);
        if (!all[size] || (all[SHARE_LESS] && !conv_primitive_shares_layout(all[size], all[SHARE_LESS]))) return false;
    }
    job->layout = conv_primitive_layout(all[SHARE_LESS]);
    return true;
}

static void drop_primitives(ConvJob *job) {
    for (int i = 0; i < SIZES; i++) {
        conv_primitive_unref(job->primitives[i]);
        job->primitives[i] = NULL;
    }
}

/* The pieces, with the filter brought into their layout before or out of it after. */
static bool run_pieces(ConvJob *job, void *filter, ThreadPool *pool) {
    const bool back = job->kind == CONV2D_BACK_FILTER;
    const ConvPrimitive *any = job->primitives[SHARE_LESS];
    const int64_t count = piece_count(&job->pieces);
    job->partial = back && count > 1;
    const size_t room_size = job->layout.bytes * (size_t)(job->partial ? count : 1);
    char *room = NULL;
    OnednnRunner r;
    bool ok = onednn_runner_init(&r);
    job->inner = filter;
    if (ok && (!job->layout.same || job->partial)) {
        job->inner = room = block_alloc(room_size);
        ok = room != NULL;
    }
    if (ok && !back && room) ok = conv_primitive_reorder(any, &r, filter, room);
    if (ok && count == 1) {
        take_pieces(job, &r);
    } else if (ok) {
        threadpool_parallel_for(pool, job->pieces.shares, 1, lane, job);
    }
    ok = ok && !atomic_load(&job->failed);
    if (ok && job->partial) threadpool_parallel_for(pool, (int64_t)(job->layout.bytes / sizeof(float)), 65536, add_range, job);
    if (ok && back && room) {
        if (job->layout.same) {
            memcpy(filter, room, job->layout.bytes);
        } else {
            ok = conv_primitive_reorder(any, &r, room, filter);
        }
    }
    block_free(room, room_size);
    onednn_runner_clear(&r);
    return ok;
}

bool conv2d_onednn(Conv2dCache *cache, Conv2dKind kind, Conv2dType type, const Conv2dShape *s, void *in, void *filter, void *out,
                   ThreadPool *pool, RangeCall done) {
    if (type == CONV2D_BF16 && !cpu_multiplies_bfloat16()) return false;
    ConvJob job = {.kind = kind, .shape = s, .size = type == CONV2D_BF16 ? 2 : 4, .in = in, .out = out, .done = done};
    job.pieces = pieces_of(kind, s, pool ? threadpool_size(pool) : 1);
    bool ok = find_primitives(&job, cache, type);
    if (!ok && piece_count(&job.pieces) > 1) {
        drop_primitives(&job);
        job.pieces = (Pieces){.batch = s->batch, .shares = 1};
        ok = find_primitives(&job, cache, type);
    }
    ok = ok && run_pieces(&job, filter, pool);
    drop_primitives(&job);
    return ok;
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
