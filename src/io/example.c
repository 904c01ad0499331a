/* example.c: walks the wire format of tf.Example.
 *
 * Example { Features features = 1; }   Features { map<string, Feature> feature = 1; }
 * Feature { BytesList = 1 | FloatList = 2 | Int64List = 3 }, each { repeated value = 1; }, numbers packed or not */
#include "io/example.h"

#include <string.h>

#include "proto/wire.h"

bool feature_decode(Str feature, ExampleFeature *out) {
    static const DataType types[] = {DT_INVALID, DT_STRING, DT_FLOAT, DT_INT64};
    WireReader r = wire_reader(feature);
    *out = (ExampleFeature){0};
    while (wire_next(&r))
        if (r.field >= 1 && r.field <= 3 && r.type == WIRE_BYTES) *out = (ExampleFeature){types[r.field], r.bytes};
    return !r.failed;
}

/* An entry of the map of features. */
static bool named_feature(Str entry, Str *name, ExampleFeature *f) {
    WireReader r = wire_reader(entry);
    Str feature = STR("");
    *name = STR("");
    while (wire_next(&r)) {
        if (r.field == 1 && r.type == WIRE_BYTES) *name = r.bytes;
        if (r.field == 2 && r.type == WIRE_BYTES) feature = r.bytes;
    }
    return !r.failed && feature_decode(feature, f);
}

static bool map_entry(Str entry, const StrMap *index, ExampleFeature *found) {
    Str name;
    ExampleFeature f;
    if (!named_feature(entry, &name, &f)) return false;
    uintptr_t slot = (uintptr_t)strmap_get(index, name);
    if (slot) found[slot - 1] = f;
    return true;
}

bool features_find(Str features, const StrMap *index, ExampleFeature *found) {
    WireReader r = wire_reader(features);
    while (wire_next(&r))
        if (r.field == 1 && r.type == WIRE_BYTES && !map_entry(r.bytes, index, found)) return false;
    return !r.failed;
}

bool example_find(Str example, const StrMap *index, ExampleFeature *found) {
    WireReader r = wire_reader(example);
    while (wire_next(&r))
        if (r.field == 1 && r.type == WIRE_BYTES && !features_find(r.bytes, index, found)) return false;
    return !r.failed;
}

bool example_each(Str example, FeatureFn *fn, void *arg) {
    WireReader r = wire_reader(example);
    while (wire_next(&r)) {
        if (r.field != 1 || r.type != WIRE_BYTES) continue;
        WireReader features = wire_reader(r.bytes);
        while (wire_next(&features)) {
            Str name;
            ExampleFeature f;
            if (features.field != 1 || features.type != WIRE_BYTES) continue;
            if (!named_feature(features.bytes, &name, &f) || !fn(arg, name, &f)) return false;
        }
        if (features.failed) return false;
    }
    return !r.failed;
}

static int64_t count_varints(Str packed) {
    int64_t n = 0;
    for (size_t i = 0; i < packed.len; i++) n += !(packed.ptr[i] & 0x80);
    bool whole = !packed.len || !(packed.ptr[packed.len - 1] & 0x80);
    return whole ? n : -1;
}

int64_t feature_count(const ExampleFeature *f) {
    WireReader r = wire_reader(f->list);
    int64_t n = 0;
    while (wire_next(&r)) {
        if (r.field != 1) continue;
        int64_t more = 1;
        if (f->type == DT_FLOAT && r.type == WIRE_BYTES) more = r.bytes.len % 4 ? -1 : (int64_t)(r.bytes.len / 4);
        if (f->type == DT_INT64 && r.type == WIRE_BYTES) more = count_varints(r.bytes);
        if (f->type == DT_STRING && r.type != WIRE_BYTES) more = -1;
        if (f->type == DT_FLOAT && r.type != WIRE_BYTES && r.type != WIRE_FIXED32) more = -1;
        if (f->type == DT_INT64 && r.type != WIRE_BYTES && r.type != WIRE_VARINT) more = -1;
        if (more < 0) return -1;
        n += more;
    }
    return r.failed ? -1 : n;
}

static int64_t *copy_varints(Str packed, int64_t *to) {
    WireReader r = wire_reader(packed);
    uint64_t v;
    while (r.at < r.end) {
        const uint8_t *before = r.at;
        if (!wire_varint(&r, &v)) { /* too long a varint: still one value, as it was counted */
            v = 0;
            for (r.at = before; r.at < r.end && (*r.at & 0x80); r.at++) {
            }
            r.at += r.at < r.end;
            r.failed = false;
        }
        *to++ = (int64_t)v;
    }
    return to;
}

void feature_copy(const ExampleFeature *f, void *to) {
    WireReader r = wire_reader(f->list);
    TString *strings = to;
    float *floats = to;
    int64_t *ints = to;
    while (wire_next(&r)) {
        if (r.field != 1) continue;
        if (f->type == DT_STRING) {
            tstring_set(strings++, r.bytes);
        } else if (f->type == DT_FLOAT && r.type == WIRE_BYTES) {
            memcpy(floats, r.bytes.ptr, r.bytes.len);
            floats += r.bytes.len / 4;
        } else if (f->type == DT_FLOAT) {
            uint32_t bits = (uint32_t)r.number;
            memcpy(floats++, &bits, 4);
        } else if (r.type == WIRE_BYTES) {
            ints = copy_varints(r.bytes, ints);
        } else {
            *ints++ = (int64_t)r.number;
        }
    }
}
