/* wire.c: protobuf's tags, varints and lengths. */
#include "proto/wire.h"

#include <string.h>

bool wire_varint(WireReader *r, uint64_t *out) {
    uint64_t value = 0;
    for (int shift = 0; shift < 64 && r->at < r->end; shift += 7) {
        uint8_t byte = *r->at++;
        value |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80)) {
            *out = value;
            return true;
        }
    }
    r->failed = true;
    return false;
}

static bool read_fixed(WireReader *r, size_t size) {
    if ((size_t)(r->end - r->at) < size) return false;
    r->number = 0;
    memcpy(&r->number, r->at, size);
    r->at += size;
    return true;
}

static bool read_bytes(WireReader *r) {
    uint64_t len;
    if (!wire_varint(r, &len) || len > (uint64_t)(r->end - r->at)) return false;
    r->bytes = (Str){(const char *)r->at, (size_t)len};
    r->at += len;
    return true;
}

bool wire_next(WireReader *r) {
    if (r->failed || r->at >= r->end) return false;
    uint64_t tag;
    bool ok = wire_varint(r, &tag) && tag >> 3 != 0 && tag >> 3 < (1u << 29);
    if (ok) {
        r->field = (uint32_t)(tag >> 3);
        r->type = (int)(tag & 7);
        ok = r->type == WIRE_VARINT    ? wire_varint(r, &r->number)
             : r->type == WIRE_FIXED64 ? read_fixed(r, 8)
             : r->type == WIRE_FIXED32 ? read_fixed(r, 4)
             : r->type == WIRE_BYTES   ? read_bytes(r)
                                       : false;
    }
    if (!ok) r->failed = true;
    return ok;
}

void wire_put_varint(StrBuf *b, uint64_t value) {
    char bytes[10];
    size_t n = 0;
    for (; value >= 0x80; value >>= 7) bytes[n++] = (char)(value | 0x80);
    bytes[n++] = (char)value;
    strbuf_add(b, (Str){bytes, n});
}

void wire_put_tag(StrBuf *b, uint32_t field, int type) {
    wire_put_varint(b, (uint64_t)field << 3 | (uint64_t)type);
}

void wire_put_uint(StrBuf *b, uint32_t field, uint64_t value) {
    wire_put_tag(b, field, WIRE_VARINT);
    wire_put_varint(b, value);
}

void wire_put_fixed32(StrBuf *b, uint32_t field, uint32_t value) {
    wire_put_tag(b, field, WIRE_FIXED32);
    strbuf_add(b, (Str){(const char *)&value, 4});
}

void wire_put_fixed64(StrBuf *b, uint32_t field, uint64_t value) {
    wire_put_tag(b, field, WIRE_FIXED64);
    strbuf_add(b, (Str){(const char *)&value, 8});
}

void wire_put_double(StrBuf *b, uint32_t field, double value) {
    uint64_t bits;
    memcpy(&bits, &value, 8);
    wire_put_fixed64(b, field, bits);
}

void wire_put_float(StrBuf *b, uint32_t field, float value) {
    uint32_t bits;
    memcpy(&bits, &value, 4);
    wire_put_fixed32(b, field, bits);
}

void wire_put_bytes(StrBuf *b, uint32_t field, Str value) {
    wire_put_tag(b, field, WIRE_BYTES);
    wire_put_varint(b, value.len);
    strbuf_add(b, value);
}
