/* tensor_slice.c: slices of tensors as text, as protobuf and as ordered keys. */
#include "io/tensor_slice.h"

#include "proto/wire.h"

bool slice_is_whole(const TensorSlice *s) {
    for (int d = 0; d < s->rank; d++)
        if (s->length[d] >= 0) return false;
    return true;
}

Error *slice_shape(const TensorSlice *s, const Shape *full, Shape *out) {
    if (s->rank != full->rank) return error_invalid("Slice has %d dimensions, the tensor has %d", s->rank, full->rank);
    *out = *full;
    for (int d = 0; d < s->rank; d++) {
        if (s->length[d] < 0) continue;
        if (s->start[d] < 0 || s->start[d] > full->dims[d] || s->length[d] > full->dims[d] - s->start[d])
            return error_invalid(
                "Extent in dimension %d out of bounds: shape = [.. %lld ..], start = %lld, length = %lld", d,
                (long long)full->dims[d], (long long)s->start[d], (long long)s->length[d]);
        out->dims[d] = s->length[d];
    }
    return NULL;
}

static bool parse_extent(Str text, int64_t *start, int64_t *length) {
    if (str_is(text, "-")) {
        *start = 0;
        *length = -1;
        return true;
    }
    ptrdiff_t comma = str_find(text, ',');
    if (comma < 0) return false;
    return str_to_int64(str_slice(text, 0, (size_t)comma), start) &&
           str_to_int64(str_slice(text, (size_t)comma + 1, text.len), length) && *start >= 0 && *length > 0;
}

Error *slice_parse_spec(Str spec, Shape *full, TensorSlice *out) {
    *full = SHAPE_SCALAR;
    *out = (TensorSlice){0};
    Str rest = spec, slices = STR("");
    bool ok = spec.len > 0;
    while (ok && rest.len) {
        Str word = str_next(&rest, ' ');
        if (!rest.len) {
            slices = word;
            break;
        }
        ok = full->rank < SHAPE_MAX_RANK && str_to_int64(word, &full->dims[full->rank]) && full->dims[full->rank] >= 0;
        full->rank++;
    }
    while (ok && slices.len) {
        Str extent = str_next(&slices, ':');
        ok = out->rank < full->rank && parse_extent(extent, &out->start[out->rank], &out->length[out->rank]);
        out->rank++;
    }
    if (!ok || out->rank != full->rank || !full->rank)
        return error_invalid("Expected the shape and slice of a tensor, as \"5 2 3,2:-\", got \"%.*s\"", STR_ARG(spec));
    Shape part;
    Error *err = shape_check(full);
    if (!err) err = slice_shape(out, full, &part);
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
