/* tensor_map.c: maps from tensors to tensors, and the form they have on the wire: no metadata; keys and values follow each other as tensors. */
#include "ops/tensor_map.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "ops/elements.h"
#include "ops/variant_math.h"
#include "proto/wire.h"

static const VariantType tensor_map_type;

TensorMap *tensor_map_new(void) {
    TensorMap *map = xcalloc(1, sizeof *map);
    refcount_init(&map->refs);
    return map;
}

static void free_entry(MapEntry *e) {
    tensor_unref(e->key);
    tensor_unref(e->value);
    free(e->name);
    free(e);
}

void tensor_map_unref(TensorMap *map) {
    if (!map || !refcount_dec(&map->refs)) return;
    for (int64_t i = 0; i < map->count; i++) free_entry(map->entries[i]);
    strmap_clear(&map->by_name);
    free(map->entries);
    free(map);
}

/* ---- Keys ---- */

/* Bits count, not numbers: 0 and -0 differ, a NaN equals itself. False for types that have no equality. */
static bool name_of_key(const Tensor *key, StrBuf *out) {
    if (key->dtype != DT_STRING && !dtype_is_plain(key->dtype)) return false;
    wire_put_varint(out, (uint64_t)key->dtype);
    wire_put_varint(out, (uint64_t)key->shape.rank);
    for (int d = 0; d < key->shape.rank; d++) wire_put_varint(out, (uint64_t)key->shape.dims[d]);
    if (key->dtype != DT_STRING) {
        strbuf_add(out, (Str){key->data, tensor_bytes(key)});
        return true;
    }
    for (int64_t i = 0; i < key->count; i++) {
        Str s = tstring_str(&tensor_str(key)[i]);
        wire_put_varint(out, s.len);
        strbuf_add(out, s);
    }
    return true;
}

MapEntry *tensor_map_find(const TensorMap *map, const Tensor *key) {
    StrBuf name = {0};
    MapEntry *found = name_of_key(key, &name) ? strmap_get(&map->by_name, strbuf_str(&name)) : NULL;
    strbuf_clear(&name);
    return found;
}

static void add_entry(TensorMap *map, Tensor *key, Tensor *value, Str name) {
    MapEntry *e = xcalloc(1, sizeof *e);
    e->key = tensor_ref(key);
    e->value = tensor_ref(value);
    e->at = map->count;
    if (name.len) {
        e->name = xmalloc(name.len);
        e->name_size = name.len;
        memcpy(e->name, name.ptr, name.len);
        strmap_put(&map->by_name, (Str){e->name, e->name_size}, e);
    }
    map->entries = vec_reserve(map->entries, &map->capacity, (size_t)map->count + 1, sizeof *map->entries);
    map->entries[map->count++] = e;
}

void tensor_map_put(TensorMap *map, Tensor *key, Tensor *value) {
    StrBuf name = {0};
    MapEntry *e = name_of_key(key, &name) ? strmap_get(&map->by_name, strbuf_str(&name)) : NULL;
    if (e) {
        tensor_ref(value);
        tensor_unref(e->value);
        e->value = value;
    } else {
        add_entry(map, key, value, strbuf_str(&name));
    }
    strbuf_clear(&name);
}

void tensor_map_erase(TensorMap *map, MapEntry *entry) {
    if (entry->name) strmap_remove(&map->by_name, (Str){entry->name, entry->name_size});
    MapEntry *last = map->entries[--map->count];
    map->entries[entry->at] = last;
    last->at = entry->at;
    free_entry(entry);
}

static TensorMap *copy_map(const TensorMap *from) {
    TensorMap *map = tensor_map_new();
    for (int64_t i = 0; i < from->count; i++) {
        const MapEntry *e = from->entries[i];
        add_entry(map, e->key, e->value, (Str){e->name, e->name_size});
    }
    return map;
}

/* ---- As a variant ---- */

static void ref_map(void *object) {
    refcount_inc(&((TensorMap *)object)->refs);
}

static void unref_map(void *object) {
    tensor_map_unref(object);
}

static Error *encode_map(const void *object, StrBuf *metadata, StrBuf *tensors) {
    (void)metadata;
    const TensorMap *map = object;
    for (int64_t i = 0; i < 2 * map->count; i++) {
        StrBuf proto = {0};
        tensor_proto_encode(i % 2 ? map->entries[i / 2]->value : map->entries[i / 2]->key, &proto);
        wire_put_bytes(tensors, 3, strbuf_str(&proto));
        strbuf_clear(&proto);
    }
    return NULL;
}

static Error *decode_map(Str metadata, Tensor **tensors, int tensor_count, Variant *out) {
    (void)metadata;
    if (tensor_count % 2) return error_invalid("Malformed TensorMap: %d tensors are not keys with values", tensor_count);
    TensorMap *map = tensor_map_new();
    for (int i = 0; i < tensor_count; i += 2) tensor_map_put(map, tensors[i], tensors[i + 1]);
    *out = (Variant){&tensor_map_type, map};
    return NULL;
}

/* Nothing stands for zeros: sums take what either map has. */
static Error *zeros_like_map(const void *object, Variant *out) {
    (void)object;
    *out = (Variant){&tensor_map_type, tensor_map_new()};
    return NULL;
}

static Error *add_maps(const void *a, const void *b, Variant *out) {
    TensorMap *sum = copy_map(a);
    const TensorMap *other = b;
    Error *err = NULL;
    for (int64_t i = 0; !err && i < other->count; i++) {
        const MapEntry *e = other->entries[i];
        MapEntry *mine = e->name ? strmap_get(&sum->by_name, (Str){e->name, e->name_size}) : NULL;
        if (!mine) {
            add_entry(sum, e->key, e->value, (Str){e->name, e->name_size});
            continue;
        }
        Tensor *both = NULL;
        err = tensor_sum(e->value, mine->value, &both);
        if (err) break;
        tensor_unref(mine->value);
        mine->value = both;
    }
    if (err)
        tensor_map_unref(sum);
    else
        *out = (Variant){&tensor_map_type, sum};
    return err;
}

static const VariantType tensor_map_type = {
    .type_name = "tensorflow::TensorMap", .ref = ref_map, .unref = unref_map, .encode = encode_map, .zeros_like = zeros_like_map, .add = add_maps};
const VariantDecoder tensor_map_decoder = {"tensorflow::TensorMap", decode_map};

/* ---- In kernels ---- */

Error *kernel_map(KernelContext *k, int i, TensorMap **out) {
    const Tensor *t = k->in[i];
    if (t->shape.rank != 0) return error_invalid("Input map must be a scalar. Saw: %s", shape_text(&t->shape).text);
    const Variant *v = &tensor_variants(t)[0];
    if (v->type != &tensor_map_type) {
        const char *name = v->type ? v->type->type_name : "<null>", *last = strrchr(name, ':');
        return error_invalid("Input handle is not a map. Saw: 'Variant<type: %s value: %s>'", name, last ? last + 1 : name);
    }
    *out = v->object;
    return NULL;
}

void kernel_set_map(KernelContext *k, int o, TensorMap *take) {
    Tensor *t = kernel_output(k, o, &SHAPE_SCALAR);
    if (t)
        tensor_variants(t)[0] = (Variant){&tensor_map_type, take};
    else
        tensor_map_unref(take);
}

Error *kernel_map_output(KernelContext *k, int i, int o, TensorMap **out) {
    TensorMap *map = NULL;
    Error *err = kernel_map(k, i, &map);
    if (err) return err;
    if (tensor_is_unique(k->in[i]) && refcount_is_one(&map->refs)) {
        kernel_set_output(k, o, tensor_ref(k->in[i]));
        *out = map;
        return NULL;
    }
    *out = copy_map(map);
    kernel_set_map(k, o, *out);
    if (k->error) *out = NULL;
    return NULL;
}
