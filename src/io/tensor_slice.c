/* tensor_slice.c: slices of tensors as text, as protobuf and as ordered keys. */
#include "io/tensor_slice.h"

#include <stdio.h>
#include <stdlib.h>

#include "proto/wire.h"

bool slice_is_whole(const TensorSlice *s) {
    for (int d = 0; d < s->rank; d++)
        if (s->length[d] >= 0) return false;
    return true;
}

void slice_text(const TensorSlice *s, StrBuf *out) {
    for (int d = 0; d < s->rank; d++) {
        if (d) strbuf_addc(out, ':');
        if (s->length[d] < 0)
            strbuf_addc(out, '-');
        else
            strbuf_addf(out, "%lld,%lld", (long long)s->start[d], (long long)s->length[d]);
    }
}

static Error *does_not_fit(const TensorSlice *s, const Shape *full, const char *what) {
    char *shape = shape_str(full);
    StrBuf slice = {0};
    slice_text(s, &slice);
    Error *err = error_new(CODE_INTERNAL, "%s: shape = %s, slice = %.*s", what, shape, STR_ARG(strbuf_str(&slice)));
    strbuf_clear(&slice);
    free(shape);
    return err;
}

Error *slice_shape(const TensorSlice *s, const Shape *full, Shape *out) {
    if (s->rank != full->rank) return does_not_fit(s, full, "Mismatching ranks");
    *out = *full;
    for (int d = 0; d < s->rank; d++) {
        if (s->length[d] < 0) continue;
        if (s->start[d] < 0 || s->start[d] > full->dims[d] || s->length[d] > full->dims[d] - s->start[d]) {
            char what[64];
            snprintf(what, sizeof what, "Extent in dimension %d out of bounds", d);
            return does_not_fit(s, full, what);
        }
        out->dims[d] = s->length[d];
    }
    return NULL;
}

static Error *parse_extent(Str text, Str slices, int64_t *start, int64_t *length) {
    *start = 0;
    *length = -1;
    if (str_is(text, "-")) return NULL;
    ptrdiff_t comma = str_find(text, ',');
    if (comma < 0 || !str_to_int64(str_slice(text, 0, (size_t)comma), start) ||
        !str_to_int64(str_slice(text, (size_t)comma + 1, text.len), length))
        return error_invalid("Expected a pair of numbers or '-' but got '%.*s': string = %.*s", STR_ARG(text),
                             STR_ARG(slices));
    if (*start < 0 || *length <= 0)
        return error_invalid(
            "Expected non-negative start and positive length but got start = %lld, length = %lld: string = %.*s",
            (long long)*start, (long long)*length, STR_ARG(slices));
    return NULL;
}

static Error *parse_slices(Str slices, TensorSlice *out) {
    Error *err = NULL;
    Str rest = slices;
    *out = (TensorSlice){0};
    while (!err && rest.len) {
        if (out->rank == SHAPE_MAX_RANK)
            return error_invalid("More than %d dimensions: string = %.*s", SHAPE_MAX_RANK, STR_ARG(slices));
        Str extent = str_next(&rest, ':');
        err = parse_extent(extent, slices, &out->start[out->rank], &out->length[out->rank]);
        out->rank++;
    }
    return err;
}

Error *slice_parse_spec(Str spec, Shape *full, TensorSlice *out) {
    *full = SHAPE_SCALAR;
    size_t end = spec.len;
    while (end && spec.ptr[end - 1] != ' ') end--;
    if (!end) return error_invalid("Need least two elements in shape_and_slice specification: %.*s", STR_ARG(spec));
    Error *err = parse_slices(str_slice(spec, end, spec.len), out);
    Str dims = str_slice(spec, 0, end - 1);
    while (!err && dims.len) {
        Str word = str_next(&dims, ' ');
        if (full->rank == SHAPE_MAX_RANK || !str_to_int64(word, &full->dims[full->rank]))
            err = error_invalid("Non numerical dimension in shape_and_slice: %.*s", STR_ARG(spec));
        else
            full->rank++;
    }
    Shape part;
    if (!err) err = shape_check(full);
    if (!err) err = slice_shape(out, full, &part);
    return err;
}

Error *slice_of_tensor(Str spec, const Shape *tensor, Shape *full, TensorSlice *out) {
    Shape part;
    Error *err = slice_parse_spec(spec, full, out);
    if (!err) err = slice_shape(out, full, &part);
    if (err || shape_eq(&part, tensor)) return err;
    char *text = shape_str(tensor);
    err = error_invalid("Slice in shape_and_slice specification does not match the shape of the tensor to  save: %.*s, tensor: %s", STR_ARG(spec), text);
    free(text);
    return err;
}

static bool extent_decode(Str proto, int64_t *start, int64_t *length) {
    WireReader r = wire_reader(proto);
    *start = 0;
    *length = -1;
    while (wire_next(&r)) {
        if (r.type != WIRE_VARINT) continue;
        if (r.field == 1) *start = (int64_t)r.number;
        if (r.field == 2) *length = (int64_t)r.number;
    }
    return !r.failed;
}

bool slice_decode(Str proto, TensorSlice *out) {
    WireReader r = wire_reader(proto);
    *out = (TensorSlice){0};
    while (wire_next(&r)) {
        if (r.field != 1 || r.type != WIRE_BYTES) continue;
        if (out->rank == SHAPE_MAX_RANK || !extent_decode(r.bytes, &out->start[out->rank], &out->length[out->rank]))
            return false;
        out->rank++;
    }
    return !r.failed;
}

void slice_encode(const TensorSlice *s, StrBuf *out) {
    for (int d = 0; d < s->rank; d++) {
        StrBuf extent = {0};
        if (s->length[d] >= 0) {
            if (s->start[d]) wire_put_uint(&extent, 1, (uint64_t)s->start[d]);
            wire_put_uint(&extent, 2, (uint64_t)s->length[d]);
        }
        wire_put_bytes(out, 1, strbuf_str(&extent));
        strbuf_clear(&extent);
    }
}

/* ---- Keys whose byte order is the order of what they encode ---- */

/* A length byte, then the number big-endian without leading zeros. */
static void put_ordered_number(StrBuf *out, uint64_t v) {
    char bytes[9];
    int n = 0;
    for (uint64_t rest = v; rest; rest >>= 8) n++;
    bytes[0] = (char)n;
    for (int i = n; i > 0; i--, v >>= 8) bytes[i] = (char)v;
    strbuf_add(out, (Str){bytes, (size_t)n + 1});
}

/* 00 and ff are escaped, and 00 01 ends the text. */
static void put_ordered_text(StrBuf *out, Str text) {
    for (size_t i = 0; i < text.len; i++) {
        strbuf_addc(out, text.ptr[i]);
        if (text.ptr[i] == 0) strbuf_addc(out, (char)0xff);
        if (text.ptr[i] == (char)0xff) strbuf_addc(out, 0);
    }
    strbuf_add(out, (Str){"\0\1", 2});
}

/* Two's complement, big-endian; the number of leading ones (of zeros, when negative) is the number of bytes. */
static void put_ordered_signed(StrBuf *out, int64_t v) {
    static const uint8_t headers[11][2] = {{0, 0},    {0x80, 0}, {0xc0, 0}, {0xe0, 0},    {0xf0, 0},   {0xf8, 0},
                                           {0xfc, 0}, {0xfe, 0}, {0xff, 0}, {0xff, 0x80}, {0xff, 0xc0}};
    uint64_t magnitude = (uint64_t)(v < 0 ? ~v : v);
    int bits = magnitude ? 64 - __builtin_clzll(magnitude) : 0;
    int n = bits / 7 + 1;
    uint8_t bytes[10];
    for (int i = 0; i < n; i++) {
        int shift = 8 * (n - 1 - i);
        bytes[i] = shift >= 64 ? (v < 0 ? 0xff : 0) : (uint8_t)((uint64_t)v >> shift);
    }
    bytes[0] ^= headers[n][0];
    if (n > 1) bytes[1] ^= headers[n][1];
    strbuf_add(out, (Str){(const char *)bytes, (size_t)n});
}

void slice_key(Str name, const TensorSlice *s, StrBuf *out) {
    put_ordered_number(out, 0);
    put_ordered_text(out, name);
    put_ordered_number(out, (uint64_t)s->rank);
    for (int d = 0; d < s->rank; d++) {
        put_ordered_signed(out, s->length[d] < 0 ? 0 : s->start[d]);
        put_ordered_signed(out, s->length[d]);
    }
}
