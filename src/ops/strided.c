/* strided.c: works out what a StridedSlice takes. */
#include "ops/strided.h"

#include "ops/elements.h"

Error *slice_masks_init(const Node *node, void *masks) {
    SliceMasks *m = masks;
    Error *err = node_attr_int(node, "begin_mask", &m->begin);
    if (!err) err = node_attr_int(node, "end_mask", &m->end);
    if (!err) err = node_attr_int(node, "ellipsis_mask", &m->ellipsis);
    if (!err) err = node_attr_int(node, "new_axis_mask", &m->new_axis);
    if (!err) err = node_attr_int(node, "shrink_axis_mask", &m->shrink_axis);
    return err;
}

/* One entry of begin, end and strides. */
typedef struct Entry {
    int64_t begin, end, stride;
    bool begin_open, end_open, shrink;
} Entry;

static int64_t clamp(int64_t x, int64_t low, int64_t high) {
    return x < low ? low : x > high ? high : x;
}

/* Sets start, stride and picked of dimension d. */
static Error *set_dim(SliceSpec *spec, int d, const Entry *e) {
    int64_t size = spec->source.dims[d];
    if (e->stride == 0) return error_invalid("strides[%d] must be non-zero", d);
    if (e->shrink) {
        if (e->stride < 0) return error_invalid("only stride 1 allowed on non-range indexing.");
        int64_t at = e->begin < 0 ? e->begin + size : e->begin;
        if (at < 0 || at >= size)
            return error_invalid("slice index %lld of dimension %d out of bounds.", (long long)at, d);
        spec->start[d] = at;
        spec->picked.dims[d] = 1;
        return NULL;
    }
    int64_t low = e->stride > 0 ? 0 : -1, high = e->stride > 0 ? size : size - 1;
    int64_t begin = e->begin < 0 ? e->begin + size : e->begin, end = e->end < 0 ? e->end + size : e->end;
    begin = e->begin_open ? (e->stride > 0 ? low : high) : clamp(begin, low, high);
    end = e->end_open ? (e->stride > 0 ? high : low) : clamp(end, low, high);
    int64_t length = end - begin, count = 0;
    if (length != 0 && (length < 0) == (e->stride < 0)) count = length / e->stride + (length % e->stride != 0);
    spec->start[d] = count > 0 ? begin : 0;
    spec->stride[d] = count > 1 ? e->stride : 0;
    spec->picked.dims[d] = count;
    return NULL;
}

static Error *add_final(SliceSpec *spec, int64_t size) {
    if (spec->final.rank >= SHAPE_MAX_RANK) return error_invalid("Too many dimensions after slicing");
    spec->final.dims[spec->final.rank++] = size;
    return NULL;
}

/* Dimensions [*d, upto) are taken whole. */
static Error *take_whole(SliceSpec *spec, int *d, int upto) {
    for (; *d < upto; (*d)++) {
        Entry all = {.stride = 1, .begin_open = true, .end_open = true};
        Error *err = set_dim(spec, *d, &all);
        if (!err) err = add_final(spec, spec->picked.dims[*d]);
        if (err) return err;
    }
    return NULL;
}

static Error *take_entry(SliceSpec *spec, int *d, const Entry *e) {
    if (*d >= spec->source.rank)
        return spec->source.rank == 0 ? error_invalid("Attempting to slice scalar input.")
                                      : error_invalid("Index out of range using input dim %d; input has only %d dims", *d, spec->source.rank);
    Error *err = set_dim(spec, *d, e);
    if (!err && !e->shrink) err = add_final(spec, spec->picked.dims[*d]);
    (*d)++;
    return err;
}

static bool bit(int64_t mask, int i) {
    return (uint64_t)mask >> i & 1;
}

Error *slice_spec_init(SliceSpec *spec, const Shape *source, const Tensor *begin, const Tensor *end,
                       const Tensor *strides, const SliceMasks *masks) {
    int n = (int)strides->count;
    if (begin->shape.rank != 1 || end->shape.rank != 1 || strides->shape.rank != 1 || begin->count != n ||
        end->count != n || n >= 32)
        return error_invalid(
            "Expected begin, end, and strides to be 1D equal size tensors, but got shapes %s, %s, and %s instead.",
            shape_text(&begin->shape).text, shape_text(&end->shape).text, shape_text(&strides->shape).text);
    if ((uint64_t)masks->ellipsis & ((uint64_t)masks->ellipsis - 1)) return error_invalid("Multiple ellipses in slice spec not allowed");
    *spec = (SliceSpec){.source = *source, .picked = {.rank = source->rank}};
    int d = 0;
    bool ellipsis_seen = false;
    for (int i = 0; i < n; i++) {
        Error *err = NULL;
        if (bit(masks->ellipsis, i)) {
            int after = 0; /* entries behind the ellipsis that take a dimension */
            for (int j = i + 1; j < n; j++) after += !bit(masks->new_axis, j);
            ellipsis_seen = true;
            err = take_whole(spec, &d, source->rank - after);
        } else if (bit(masks->new_axis, i)) {
            err = add_final(spec, 1);
        } else {
            Entry e = {index_at(begin, i),   index_at(end, i),   index_at(strides, i),
                       bit(masks->begin, i), bit(masks->end, i), bit(masks->shrink_axis, i)};
            err = take_entry(spec, &d, &e);
        }
        if (err) return err;
    }
    if (!ellipsis_seen) return take_whole(spec, &d, source->rank);
    return NULL;
}
