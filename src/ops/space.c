/* space.c: moves blocks of pixels between space, batch and depth: SpaceToBatchND, DepthToSpace and kin. */
#include <string.h>

#include "ops/elements.h"
#include "ops/op_list.h"

const OpDef space_ops[] = {
    {"SpaceToBatch", "input: T, paddings: Tpaddings -> output: T",
     "T: type; Tpaddings: {int32, int64} = int32; block_size: int >= 2", 0},
    {"SpaceToBatchND", "input: T, block_shape: Tblock_shape, paddings: Tpaddings -> output: T",
     "T: type; Tblock_shape: {int32, int64} = int32; Tpaddings: {int32, int64} = int32", 0},
    {"BatchToSpace", "input: T, crops: Tidx -> output: T",
     "T: type; block_size: int >= 2; Tidx: {int32, int64} = int32", 0},
    {"BatchToSpaceND", "input: T, block_shape: Tblock_shape, crops: Tcrops -> output: T",
     "T: type; Tblock_shape: {int32, int64} = int32; Tcrops: {int32, int64} = int32", 0},
    {"SpaceToDepth", "input: T -> output: T",
     "T: type; block_size: int >= 2; data_format: {'NHWC', 'NCHW', 'NCHW_VECT_C'} = 'NHWC'", 0},
    {"DepthToSpace", "input: T -> output: T",
     "T: type; block_size: int >= 2; data_format: {'NHWC', 'NCHW', 'NCHW_VECT_C'} = 'NHWC'", 0},
    {0},
};

typedef struct SpaceState {
    int64_t block;
    bool channels_first;
} SpaceState;

static Error *space_init(const Node *node, void *state) {
    SpaceState *st = state;
    Str value, format = STR("NHWC");
    Error *err = node_attr_int(node, "block_size", &st->block);
    if (!err && node_attr(node, "data_format", &value)) err = node_attr_string(node, "data_format", &format);
    if (err) return err;
    if (st->block < 2 || st->block > INT32_MAX) {
        return error_invalid("Block size should be > 1, but was: %lld", (long long)st->block);
    }
    if (str_is(format, "NCHW_VECT_C")) return error_unimplemented("data format NCHW_VECT_C");
    st->channels_first = str_is(format, "NCHW");
    return NULL;
}

/* ---- Between space and batch ---- */

/* What to move: `space` is batch x size_0 x ... x rest, the other tensor has product(block) times the batch and
 * size_i plus what was put before and after, divided by block_i. */
typedef struct BlockMove {
    int dims;
    int64_t block[SHAPE_MAX_RANK], before[SHAPE_MAX_RANK], after[SHAPE_MAX_RANK];
    int64_t count; /* product of block */
} BlockMove;

static int64_t divide_up(int64_t a, int64_t b) { /* b > 0 */
    return a >= 0 ? (a + b - 1) / b : -(-a / b);
}

/* Copies the pixels whose place within their block is number `at`; false when none are inside the image. */
static bool move_one(const BlockMove *m, int64_t at, const Shape *space, const Shape *batched, StridedCopy *c,
                     int64_t *space_at, int64_t *batched_at) {
    int64_t in_space[SHAPE_MAX_RANK], in_batch[SHAPE_MAX_RANK], rest = 1;
    strides_of(space, in_space);
    strides_of(batched, in_batch);
    *c = (StridedCopy){0};
    copy_add_dim(c, space->dims[0], in_batch[0], in_space[0]);
    *space_at = 0;
    *batched_at = at * space->dims[0] * in_batch[0];
    int64_t offsets[SHAPE_MAX_RANK];
    for (int i = m->dims - 1; i >= 0; i--) {
        offsets[i] = at % m->block[i];
        at /= m->block[i];
    }
    for (int i = 0; i < m->dims; i++) {
        int64_t block = m->block[i], shift = m->before[i] - offsets[i]; /* space = batched * block - shift */
        int64_t from = divide_up(shift, block), to = divide_up(space->dims[i + 1] + shift, block);
        if (from < 0) from = 0;
        if (to > batched->dims[i + 1]) to = batched->dims[i + 1];
        if (from >= to) return false;
        copy_add_dim(c, to - from, in_batch[i + 1], block * in_space[i + 1]);
        *space_at += (from * block - shift) * in_space[i + 1];
        *batched_at += from * in_batch[i + 1];
    }
    for (int d = m->dims + 1; d < space->rank; d++) rest *= space->dims[d];
    copy_add_dim(c, rest, 1, 1);
    return true;
}

static void swap_strides(StridedCopy *c) {
    for (int i = 0; i < c->rank; i++) {
        int64_t to = c->to_strides[i];
        c->to_strides[i] = c->from_strides[i];
        c->from_strides[i] = to;
    }
}

static void move_blocks(KernelContext *k, const BlockMove *m, Tensor *space, Tensor *batched, bool to_batch) {
    ElementKind kind = element_kind(space->dtype);
    for (int64_t at = 0; at < m->count; at++) {
        StridedCopy c;
        int64_t space_at, batched_at;
        if (!move_one(m, at, &space->shape, &batched->shape, &c, &space_at, &batched_at)) continue;
        char *in_space = (char *)space->data + (size_t)space_at * kind.size;
        char *in_batch = (char *)batched->data + (size_t)batched_at * kind.size;
        if (!to_batch) swap_strides(&c);
        copy_strided(k->pool, kind, &c, to_batch ? in_batch : in_space, to_batch ? in_space : in_batch);
    }
}

/* The block comes from the attribute (then it is square) or from input 1; paddings or crops from input `pads`. */
static Error *read_blocks(KernelContext *k, const char *what, BlockMove *m) {
    const SpaceState *st = k->state;
    bool square = k->input_count == 2;
    const Tensor *x = k->in[0], *shape = square ? NULL : k->in[1], *pads = k->in[k->input_count - 1];
    if (square && x->shape.rank != 4) return error_invalid("Input rank should be: 4instead of: %d", x->shape.rank);
    if (shape && shape->shape.rank != 1) {
        return error_invalid("block_shape rank should be 1 instead of %d", shape->shape.rank);
    }
    int64_t dims = square ? 2 : shape->count;
    if (x->shape.rank < 1 + dims) {
        return error_invalid("input rank should be >= %lld instead of %d", (long long)(1 + dims), x->shape.rank);
    }
    if (pads->shape.rank != 2 || pads->shape.dims[0] != dims || pads->shape.dims[1] != 2) {
        return error_invalid("%s should have shape [%lld, 2] instead of %s", what, (long long)dims,
                             shape_text(&pads->shape).text);
    }
    m->dims = (int)dims;
    m->count = 1;
    for (int i = 0; i < m->dims; i++) {
        m->block[i] = square ? st->block : tensor_index(shape, i);
        m->before[i] = tensor_index(pads, 2 * i);
        m->after[i] = tensor_index(pads, 2 * i + 1);
        if (m->block[i] < 1 && what[0] != 'p') return error_invalid("Product of block sizes must be positive, got 0");
        if (m->block[i] < 1) {
            return error_invalid("All values in block_shape must be positive, got value, %lld at index %d.",
                                 (long long)m->block[i], i);
        }
        if (m->before[i] < 0 || m->after[i] < 0)
            return error_invalid("%s must be non-negative", what[0] == 'p' ? "Paddings" : "Crops");
        if (m->before[i] > INT32_MAX || m->after[i] > INT32_MAX ||
            __builtin_mul_overflow(m->count, m->block[i], &m->count)) {
            return error_invalid("block_shape or %s is too large", what);
        }
    }
    return NULL;
}

static Error *space_to_batch(KernelContext *k) {
    BlockMove m;
    Tensor *x = k->in[0];
    Error *err = read_blocks(k, "paddings", &m);
    if (err) return err;
    Shape shape = x->shape;
    if (__builtin_mul_overflow(shape.dims[0], m.count, &shape.dims[0])) {
        return error_invalid("The batch of the result is too large");
    }
    for (int i = 0; i < m.dims; i++) {
        int64_t padded = 0;
        if (__builtin_add_overflow(x->shape.dims[i + 1], m.before[i] + m.after[i], &padded)) {
            return error_invalid("The padded image is too large");
        }
        if (padded % m.block[i] != 0) {
            return error_invalid("padded_shape[%d]=%lld is not divisible by block_shape[%d]=%lld", i, (long long)padded,
                                 i, (long long)m.block[i]);
        }
        shape.dims[i + 1] = padded / m.block[i];
    }
    Tensor *z = kernel_output(k, 0, &shape);
    if (!z || z->count == 0) return NULL;
    copy_fill(k->pool, element_kind(z->dtype), z->data, element_zero(z->dtype), z->count);
    if (x->count > 0) move_blocks(k, &m, x, z, true);
    return NULL;
}

static Error *batch_to_space(KernelContext *k) {
    BlockMove m;
    Tensor *x = k->in[0];
    Error *err = read_blocks(k, "crops", &m);
    if (err) return err;
    Shape shape = x->shape;
    if (shape.dims[0] % m.count != 0) {
        return error_invalid("Input batch dimension (%lld) is not divisible by product of block sizes (%lld)",
                             (long long)shape.dims[0], (long long)m.count);
    }
    shape.dims[0] /= m.count;
    for (int i = 0; i < m.dims; i++) {
        int64_t whole = 0;
        if (__builtin_mul_overflow(shape.dims[i + 1], m.block[i], &whole)) {
            return error_invalid("The image of the result is too large");
        }
        shape.dims[i + 1] = whole - m.before[i] - m.after[i];
        if (shape.dims[i + 1] < 0) {
            return error_invalid("cropped_shape[%d]=%lld must be non-negative", i, (long long)shape.dims[i + 1]);
        }
    }
    Tensor *z = kernel_output(k, 0, &shape);
    if (z && z->count > 0) move_blocks(k, &m, z, x, false);
    return NULL;
}

/* ---- Between space and depth ---- */

/* wide: the tensor with more pixels; deep: the one with more channels. dims of the copy: b, h, w, y, x, c, where y and
 * x are places in a block. */
static void move_depth(KernelContext *k, const Tensor *wide, const Tensor *deep, bool to_deep) {
    const SpaceState *st = k->state;
    const int h = st->channels_first ? 2 : 1, c = st->channels_first ? 1 : 3;
    int64_t in_wide[SHAPE_MAX_RANK], in_deep[SHAPE_MAX_RANK];
    strides_of(&wide->shape, in_wide);
    strides_of(&deep->shape, in_deep);
    int64_t channels = wide->shape.dims[c], block = st->block;
    StridedCopy copy = {0};
    copy_add_dim(&copy, wide->shape.dims[0], in_deep[0], in_wide[0]);
    copy_add_dim(&copy, deep->shape.dims[h], in_deep[h], block * in_wide[h]);
    copy_add_dim(&copy, deep->shape.dims[h + 1], in_deep[h + 1], block * in_wide[h + 1]);
    copy_add_dim(&copy, block, block * channels * in_deep[c], in_wide[h]);
    copy_add_dim(&copy, block, channels * in_deep[c], in_wide[h + 1]);
    copy_add_dim(&copy, channels, in_deep[c], in_wide[c]);
    if (!to_deep) swap_strides(&copy);
    copy_strided(k->pool, element_kind(wide->dtype), &copy, to_deep ? deep->data : wide->data,
                 to_deep ? wide->data : deep->data);
}

static Error *space_to_depth(KernelContext *k) {
    const SpaceState *st = k->state;
    const Tensor *x = k->in[0];
    const int h = st->channels_first ? 2 : 1, c = st->channels_first ? 1 : 3;
    if (x->shape.rank != 4) return error_invalid("Input rank should be 4 instead of %d", x->shape.rank);
    Shape shape = x->shape;
    for (int d = h; d < h + 2; d++) {
        if (shape.dims[d] % st->block != 0) {
            return error_invalid("Image width %lld and height %lld should be divisible by block_size: %lld",
                                 (long long)x->shape.dims[h + 1], (long long)x->shape.dims[h], (long long)st->block);
        }
        shape.dims[d] /= st->block;
    }
    if (__builtin_mul_overflow(shape.dims[c], st->block * st->block, &shape.dims[c])) {
        return error_invalid("The depth of the result is too large");
    }
    Tensor *z = kernel_output(k, 0, &shape);
    if (z && z->count > 0) move_depth(k, x, z, true);
    return NULL;
}

static Error *depth_to_space(KernelContext *k) {
    const SpaceState *st = k->state;
    const Tensor *x = k->in[0];
    const int h = st->channels_first ? 2 : 1, c = st->channels_first ? 1 : 3;
    if (x->shape.rank != 4) return error_invalid("Input rank should be: 4 instead of: %d", x->shape.rank);
    Shape shape = x->shape;
    if (shape.dims[c] % (st->block * st->block) != 0) {
        return error_invalid("Input depth dimension %lld should be divisible by: %lld", (long long)shape.dims[c],
                             (long long)(st->block * st->block));
    }
    shape.dims[c] /= st->block * st->block;
    for (int d = h; d < h + 2; d++) {
        if (__builtin_mul_overflow(shape.dims[d], st->block, &shape.dims[d])) {
            return error_invalid("The image of the result is too large");
        }
    }
    Tensor *z = kernel_output(k, 0, &shape);
    if (z && z->count > 0) move_depth(k, z, x, false);
    return NULL;
}

#define STATE .state_size = sizeof(SpaceState), .init = space_init

const KernelDef space_cpu[] = {
    {"SpaceToBatch", .run = space_to_batch, STATE},
    {"SpaceToBatchND", .run = space_to_batch},
    {"BatchToSpace", .run = batch_to_space, STATE},
    {"BatchToSpaceND", .run = batch_to_space},
    {"SpaceToDepth", .run = space_to_depth, STATE},
    {"DepthToSpace", .run = depth_to_space, STATE},
    {0},
};
