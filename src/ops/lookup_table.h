/* lookup_table.h: LookupTable, from keys to values of any shape; fixed once initialised, or mutable. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "runtime/resource.h"
#include "tensor/tensor.h"

typedef enum LookupKind { LOOKUP_FIXED, LOOKUP_MUTABLE, LOOKUP_DENSE } LookupKind;

typedef struct LookupSpec {
    LookupKind kind;
    DataType key_type, value_type;
    Shape key_shape, value_shape;          /* of one key, one value */
    const Tensor *empty_key, *deleted_key; /* dense: keys that are not allowed; else NULL */
    int64_t bucket_count;                  /* dense: at first */
    double max_load;                       /* dense: how full buckets may be */
} LookupSpec;

typedef struct LookupTable LookupTable;
extern const ResourceType lookup_table_type;

LookupTable *lookup_table_new(Str name, const LookupSpec *spec); /* keeps references to the two keys */
Error *lookup_check_types(const LookupTable *t, DataType key, DataType value) MUST_CHECK;
DataType lookup_key_type(const LookupTable *t);
DataType lookup_value_type(const LookupTable *t);
LookupKind lookup_kind(const LookupTable *t);

/* fallback is one value, or one for each key, of which only a mutable table takes more than the first. */
Error *lookup_find(LookupTable *t, const Tensor *keys, const Tensor *fallback, Tensor **out) MUST_CHECK;
Error *lookup_insert(LookupTable *t, const Tensor *keys, const Tensor *values) MUST_CHECK;
Error *lookup_remove(LookupTable *t, const Tensor *keys) MUST_CHECK;
/* Replaces everything. A fixed table takes its content once; content of the same size again is no error. */
Error *lookup_import(LookupTable *t, const Tensor *keys, const Tensor *values) MUST_CHECK;
/* A fixed table must have its content. Of a dense table every bucket, also those without a key: they have the empty key, or the deleted one. */
Error *lookup_export(LookupTable *t, Tensor **keys, Tensor **values) MUST_CHECK;
int64_t lookup_size(LookupTable *t);
bool lookup_is_initialised(LookupTable *t); /* only a fixed table can be not yet */
