/* tensor_map.h: TensorMap, from tensors to tensors, that travels as a variant. */
#pragma once
#include "base/hashmap.h"
#include "runtime/kernel.h"
#include "tensor/tensor_proto.h"

typedef struct MapEntry {
    Tensor *key, *value;
    char *name; /* what tells equal keys: type, shape and elements; NULL for keys that equal none, handles and variants */
    size_t name_size;
    int64_t at; /* in the map's entries */
} MapEntry;

/* Immutable once shared; an op that holds the only reference may change it. */
typedef struct TensorMap {
    RefCount refs;
    MapEntry **entries; /* in no order that counts */
    int64_t count;
    size_t capacity;
    StrMap by_name;
} TensorMap;

extern const VariantDecoder tensor_map_decoder;

TensorMap *tensor_map_new(void);
void tensor_map_unref(TensorMap *map);
MapEntry *tensor_map_find(const TensorMap *map, const Tensor *key); /* NULL when it is not there */
void tensor_map_put(TensorMap *map, Tensor *key, Tensor *value);    /* instead of what was there; keeps references */
void tensor_map_erase(TensorMap *map, MapEntry *entry);

/* The map in input i; InvalidArgument when there is none. Borrowed. */
Error *kernel_map(KernelContext *k, int i, TensorMap **out) MUST_CHECK;
/* A map like that of input i that may be changed: itself when nobody else holds it, else a copy. It becomes output o. */
Error *kernel_map_output(KernelContext *k, int i, int o, TensorMap **out) MUST_CHECK;
void kernel_set_map(KernelContext *k, int o, TensorMap *take); /* makes it output o */
