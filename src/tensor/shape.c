/* shape.c: arithmetic on shapes, and their serialised form. */
#include "tensor/shape.h"

#include <stdlib.h>

#include "base/str.h"
#include "proto/wire.h"

Shape shape_vector(int64_t n) {
    return (Shape){1, {n}};
}

Shape shape_matrix(int64_t rows, int64_t cols) {
    return (Shape){2, {rows, cols}};
}

Shape shape_of(int rank, const int64_t *dims) {
    Shape s = {.rank = rank};
    for (int i = 0; i < rank; i++) s.dims[i] = dims[i];
    return s;
}

int64_t shape_prod(const Shape *s, int from, int to) {
    uint64_t n = 1; /* may wrap on the way to 0 in an empty shape */
    for (int i = from; i < to; i++) n *= (uint64_t)s->dims[i];
    return (int64_t)n;
}

int64_t shape_count(const Shape *s) {
    return shape_prod(s, 0, s->rank);
}

bool shape_eq(const Shape *a, const Shape *b) {
    if (a->rank != b->rank) return false;
    for (int i = 0; i < a->rank; i++)
        if (a->dims[i] != b->dims[i]) return false;
    return true;
}

Error *shape_check(const Shape *s) {
    bool empty = false;
    for (int i = 0; i < s->rank; i++) {
        if (s->dims[i] < 0) {
            return error_invalid("Dimension %lld must be >= 0", (long long)s->dims[i]);
        }
        empty |= s->dims[i] == 0;
    }
    int64_t n = 1;
    for (int i = 0; i < s->rank; i++) {
        if (empty || !__builtin_mul_overflow(n, s->dims[i], &n)) continue;
        char *text = shape_str(s);
        Error *err = error_invalid("Shape %s would have more than 2**63 - 1 elements", text);
        free(text);
        return err;
    }
    return NULL;
}

Error *shape_check_grown(const Shape *s) {
    int64_t n = 1;
    for (int i = 0; i < s->rank; i++) {
        int64_t before = n;
        if (s->dims[i] >= 0 && __builtin_mul_overflow(n, s->dims[i], &n))
            return error_invalid("Encountered overflow when multiplying %lld with %lld, result: -1", (long long)before,
                                 (long long)s->dims[i]);
    }
    return shape_check(s);
}

void shape_remove_dim(Shape *s, int axis) {
    for (int i = axis; i + 1 < s->rank; i++) s->dims[i] = s->dims[i + 1];
    s->rank--;
}

void shape_insert_dim(Shape *s, int axis, int64_t size) {
    for (int i = s->rank; i > axis; i--) s->dims[i] = s->dims[i - 1];
    s->dims[axis] = size;
    s->rank++;
}

char *shape_str(const Shape *s) {
    StrBuf b = {0};
    if (s->rank < 0) {
        strbuf_add(&b, STR("<unknown>"));
        return strbuf_detach(&b);
    }
    strbuf_addc(&b, '[');
    for (int i = 0; i < s->rank; i++) {
        if (i) strbuf_addc(&b, ',');
        if (s->dims[i] == -1)
            strbuf_addc(&b, '?');
        else
            strbuf_addf(&b, "%lld", (long long)s->dims[i]);
    }
    strbuf_addc(&b, ']');
    return strbuf_detach(&b);
}

bool partial_shape_matches(const PartialShape *p, const Shape *s) {
    if (p->rank < 0) return true;
    if (p->rank != s->rank) return false;
    for (int i = 0; i < p->rank; i++)
        if (p->dims[i] >= 0 && p->dims[i] != s->dims[i]) return false;
    return true;
}

Error *shape_decode(Str proto, PartialShape *out) {
    PartialShape s = {0};
    WireReader r = wire_reader(proto);
    bool unknown = false;
    while (wire_next(&r)) {
        if (r.field == 3 && r.type == WIRE_VARINT) unknown = r.number != 0;
        if (r.field != 2 || r.type != WIRE_BYTES) continue;
        if (s.rank == SHAPE_MAX_RANK) return error_invalid("Shapes of more than %d dimensions are not supported", SHAPE_MAX_RANK);
        int64_t size = 0;
        WireReader d = wire_reader(r.bytes);
        while (wire_next(&d))
            if (d.field == 1 && d.type == WIRE_VARINT) size = (int64_t)d.number;
        if (d.failed) r.failed = true;
        if (size < -1) return error_invalid("Shape has a dimension of %lld", (long long)size);
        s.dims[s.rank++] = size;
    }
    if (r.failed) return error_invalid("Malformed TensorShapeProto");
    if (unknown) s.rank = -1;
    *out = s;
    return NULL;
}

void shape_encode(const PartialShape *s, StrBuf *out) {
    if (s->rank < 0) wire_put_uint(out, 3, 1);
    for (int i = 0; i < s->rank; i++) {
        StrBuf dim = {0};
        if (s->dims[i] != 0) wire_put_uint(&dim, 1, (uint64_t)s->dims[i]);
        wire_put_bytes(out, 2, strbuf_str(&dim));
        strbuf_clear(&dim);
    }
}
