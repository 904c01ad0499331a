/* bundle_entry.c: BundleEntryProto and BundleHeaderProto by hand; names of a checkpoint's files. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "io/bundle_internal.h"
#include "proto/wire.h"

void bundle_entry_clear(BundleEntry *e) {
    free(e->slices);
    e->slices = NULL;
    e->slice_count = 0;
}

bool bundle_entry_decode(Str proto, BundleEntry *out) {
    WireReader r = wire_reader(proto);
    *out = (BundleEntry){0};
    bool ok = true;
    size_t capacity = 0;
    while (ok && wire_next(&r)) {
        if (r.field == 1 && r.type == WIRE_VARINT) out->dtype = (DataType)(r.number < DT_COUNT ? r.number : 0);
        if (r.field == 2 && r.type == WIRE_BYTES) {
            Error *err = shape_decode(r.bytes, &out->shape);
            ok = !err && out->shape.rank >= 0;
            error_free(err);
        }
        if (r.field == 3 && r.type == WIRE_VARINT) out->shard = (int64_t)r.number;
        if (r.field == 4 && r.type == WIRE_VARINT) out->offset = (int64_t)r.number;
        if (r.field == 5 && r.type == WIRE_VARINT) out->size = (int64_t)r.number;
        if (r.field == 6 && r.type == WIRE_FIXED32) out->masked_crc = (uint32_t)r.number;
        if (r.field == 7 && r.type == WIRE_BYTES) {
            out->slices = vec_reserve(out->slices, &capacity, (size_t)out->slice_count + 1, sizeof *out->slices);
            ok = slice_decode(r.bytes, &out->slices[out->slice_count]);
            out->slice_count++;
        }
    }
    ok = ok && !r.failed && dtype_is_valid((int)out->dtype) && !dtype_is_ref(out->dtype) && out->shard >= 0 &&
         out->offset >= 0 && out->size >= 0;
    if (ok) {
        Error *err = shape_check(&out->shape);
        ok = !err;
        error_free(err);
    }
    if (!ok) bundle_entry_clear(out);
    return ok;
}

void bundle_entry_encode(const BundleEntry *e, StrBuf *out) {
    StrBuf part = {0};
    wire_put_uint(out, 1, e->dtype);
    shape_encode(&e->shape, &part);
    wire_put_bytes(out, 2, strbuf_str(&part));
    strbuf_clear(&part);
    if (e->shard) wire_put_uint(out, 3, (uint64_t)e->shard);
    if (e->offset) wire_put_uint(out, 4, (uint64_t)e->offset);
    if (e->size) wire_put_uint(out, 5, (uint64_t)e->size);
    if (e->masked_crc) wire_put_fixed32(out, 6, e->masked_crc);
    for (int i = 0; i < e->slice_count; i++) {
        slice_encode(&e->slices[i], &part);
        wire_put_bytes(out, 7, strbuf_str(&part));
        strbuf_clear(&part);
    }
}

void bundle_entry_add_slice(BundleEntry *e, const TensorSlice *slice) {
    e->slices = xrealloc(e->slices, (size_t)(e->slice_count + 1) * sizeof *e->slices);
    e->slices[e->slice_count++] = *slice;
}

bool bundle_header_decode(Str proto, int64_t *shard_count, bool *big_endian) {
    WireReader r = wire_reader(proto);
    *shard_count = 0;
    *big_endian = false;
    while (wire_next(&r)) {
        if (r.type != WIRE_VARINT) continue;
        if (r.field == 1) *shard_count = (int32_t)r.number;
        if (r.field == 2) *big_endian = r.number != 0;
    }
    return !r.failed && *shard_count >= 0;
}

void bundle_header_encode(int64_t shard_count, StrBuf *out) {
    wire_put_uint(out, 1, (uint64_t)shard_count);
    wire_put_bytes(out, 3, STR("\x08\x01")); /* version.producer = 1 */
}

char *bundle_data_path(const char *prefix, int64_t shard, int64_t shard_count) {
    return xasprintf("%s.data-%05lld-of-%05lld", prefix, (long long)shard, (long long)shard_count);
}

char *bundle_index_path(const char *prefix) {
    return xasprintf("%s.index", prefix);
}
