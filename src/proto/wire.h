/* wire.h: reading and writing protobuf fields by hand, for messages that protobuf-c would copy too often. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"

enum { WIRE_VARINT = 0, WIRE_FIXED64 = 1, WIRE_BYTES = 2, WIRE_FIXED32 = 5 };

/* Walks the fields of one message. After a malformed byte `failed` is set and no more fields come. */
typedef struct WireReader {
    const uint8_t *at, *end;
    bool failed;
    uint32_t field; /* of the field last read */
    int type;       /* WIRE_... */
    uint64_t number; /* its value when it is a varint or fixed */
    Str bytes;       /* its value when it is WIRE_BYTES */
} WireReader;

static inline WireReader wire_reader(Str message) {
    const uint8_t *at = (const uint8_t *)message.ptr;
    return (WireReader){.at = at, .end = at ? at + message.len : NULL}; /* no bytes may be nowhere */
}
bool wire_next(WireReader *r);                 /* false at the end or after a malformed field */
bool wire_varint(WireReader *r, uint64_t *out); /* one bare varint, as in packed fields */

void wire_put_varint(StrBuf *b, uint64_t value);
void wire_put_tag(StrBuf *b, uint32_t field, int type);
void wire_put_uint(StrBuf *b, uint32_t field, uint64_t value); /* varint field, also when zero */
void wire_put_fixed32(StrBuf *b, uint32_t field, uint32_t value);
void wire_put_fixed64(StrBuf *b, uint32_t field, uint64_t value);
void wire_put_double(StrBuf *b, uint32_t field, double value);
void wire_put_float(StrBuf *b, uint32_t field, float value);
void wire_put_bytes(StrBuf *b, uint32_t field, Str value);
