/* slice_box.c: boxes of tensors, and what two of them have in common. */
#include "io/slice_box.h"

#include <string.h>

SliceBox slice_box(const TensorSlice *s, const Shape *full) {
    SliceBox b = {.rank = full->rank};
    for (int d = 0; d < full->rank; d++) {
        bool whole = s->length[d] < 0;
        b.start[d] = whole ? 0 : s->start[d];
        b.end[d] = whole ? full->dims[d] : s->start[d] + s->length[d];
    }
    return b;
}

SliceBox slice_box_whole(const Shape *full) {
    SliceBox b = {.rank = full->rank};
    memcpy(b.end, full->dims, sizeof(int64_t) * (size_t)full->rank);
    return b;
}

bool slice_box_meets(const SliceBox *a, const SliceBox *b) {
    for (int d = 0; d < a->rank; d++)
        if (a->start[d] >= b->end[d] || b->start[d] >= a->end[d]) return false;
    return true;
}

Error *slices_check_disjoint(const TensorSlice *slices, size_t count, const Shape *full) {
    for (size_t i = 1; i < count; i++) {
        SliceBox box = slice_box(&slices[i], full);
        for (size_t j = 0; j < i; j++) {
            SliceBox other = slice_box(&slices[j], full);
            if (!slice_box_meets(&box, &other)) continue;
            StrBuf old = {0}, new = {0};
            slice_text(&slices[j], &old);
            slice_text(&slices[i], &new);
            Error *err = error_internal("Overlapping slices: existing slice = %.*s, new slice = %.*s", STR_ARG(strbuf_str(&old)), STR_ARG(strbuf_str(&new)));
            strbuf_clear(&old);
            strbuf_clear(&new);
            return err;
        }
    }
    return NULL;
}

static int64_t position(const SliceBox *box, const int64_t *at) {
    int64_t p = 0;
    for (int d = 0; d < box->rank; d++) p = p * (box->end[d] - box->start[d]) + at[d] - box->start[d];
    return p;
}

int64_t slice_box_copy(const SliceBox *to_box, Tensor *to, const SliceBox *from_box, const Tensor *from) {
    SliceBox common = {.rank = to_box->rank};
    int rank = common.rank;
    int64_t rows = 1;
    for (int d = 0; d < rank; d++) {
        common.start[d] = to_box->start[d] > from_box->start[d] ? to_box->start[d] : from_box->start[d];
        common.end[d] = to_box->end[d] < from_box->end[d] ? to_box->end[d] : from_box->end[d];
        if (common.end[d] <= common.start[d]) return 0;
        if (d < rank - 1) rows *= common.end[d] - common.start[d];
    }
    int64_t run = rank ? common.end[rank - 1] - common.start[rank - 1] : 1;
    size_t size = dtype_size(to->dtype);
    int64_t at[SHAPE_MAX_RANK];
    memcpy(at, common.start, sizeof at);
    for (int64_t row = 0; row < rows; row++) {
        elements_copy(to->dtype, (char *)to->data + (size_t)position(to_box, at) * size,
                      (const char *)from->data + (size_t)position(from_box, at) * size, run);
        for (int d = rank - 2; d >= 0 && ++at[d] == common.end[d]; d--) at[d] = common.start[d];
    }
    return rows * run;
}
