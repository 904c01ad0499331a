/* tensor_map_ops.c: ops on maps from tensors to tensors. */
#include "ops/elements.h"
#include "ops/op_list.h"
#include "ops/tensor_map.h"
#include "tensor/print.h"

const OpDef tensor_map_ops_ops[] = {
    {"EmptyTensorMap", "-> handle: variant", "", 0},
    {"TensorMapInsert", "input_handle: variant, key: key_dtype, value: value_dtype -> output_handle: variant", "key_dtype: type; value_dtype: type", 0},
    {"TensorMapLookup", "input_handle: variant, key: key_dtype -> value: value_dtype", "key_dtype: type; value_dtype: type", 0},
    {"TensorMapErase", "input_handle: variant, key: key_dtype -> output_handle: variant", "key_dtype: type; value_dtype: type", 0},
    {"TensorMapHasKey", "input_handle: variant, key: key_dtype -> has_key: bool", "key_dtype: type", 0},
    {"TensorMapSize", "input_handle: variant -> size: int32", "", 0},
    {"TensorMapStackKeys", "input_handle: variant -> keys: key_dtype", "key_dtype: type", 0},
    {0},
};

enum { KEY_ENTRIES_SHOWN = 100 };

static Error *run_empty(KernelContext *k) {
    kernel_set_map(k, 0, tensor_map_new());
    return NULL;
}

static Error *run_size(KernelContext *k) {
    TensorMap *map = NULL;
    Error *err = kernel_map(k, 0, &map);
    if (!err) kernel_set_output(k, 0, tensor_scalar_i32((int32_t)map->count));
    return err;
}

static Error *run_insert(KernelContext *k) {
    TensorMap *map = NULL;
    Error *err = kernel_map_output(k, 0, 0, &map);
    if (!err && map) tensor_map_put(map, k->in[1], k->in[2]);
    return err;
}

/* As TensorFlow shows them: of complex numbers nothing but their count. */
static void show_key(const Tensor *key, StrBuf *out) {
    if (key->dtype != DT_COMPLEX64 && key->dtype != DT_COMPLEX128) {
        print_values(out, key, KEY_ENTRIES_SHOWN);
        return;
    }
    for (int64_t i = 0; i < key->count && i < KEY_ENTRIES_SHOWN; i++) strbuf_add(out, i ? STR(" ?") : STR("?"));
    if (key->count > KEY_ENTRIES_SHOWN) strbuf_add(out, STR("..."));
}

static Error *missing_key(const char *doing, const Tensor *key) {
    StrBuf text = {0};
    show_key(key, &text);
    Str s = strbuf_str(&text);
    Error *err = error_invalid("Trying to %s. Could not find key \"%.*s\".", doing, (int)s.len, s.ptr);
    strbuf_clear(&text);
    return err;
}

static Error *run_lookup(KernelContext *k) {
    TensorMap *map = NULL;
    Error *err = kernel_map(k, 0, &map);
    if (err) return err;
    const MapEntry *e = tensor_map_find(map, k->in[1]);
    if (!e) return missing_key("lookup non-existent key", k->in[1]);
    DataType wanted = kernel_output_type(k, 0);
    if (e->value->dtype != wanted)
        return error_internal("Output 0 of type %s does not match declared output type %s for node {{node %.*s}}", dtype_name(e->value->dtype), dtype_name(wanted),
                              STR_ARG(k->node->name));
    kernel_set_output(k, 0, tensor_ref(e->value));
    return NULL;
}

static Error *run_erase(KernelContext *k) {
    TensorMap *map = NULL;
    Error *err = kernel_map(k, 0, &map);
    if (err) return err;
    if (!tensor_map_find(map, k->in[1])) return missing_key("erase non-existent item", k->in[1]);
    err = kernel_map_output(k, 0, 0, &map);
    if (!err && map) tensor_map_erase(map, tensor_map_find(map, k->in[1]));
    return err;
}

static Error *run_has_key(KernelContext *k) {
    TensorMap *map = NULL;
    Error *err = kernel_map(k, 0, &map);
    if (!err) kernel_set_output(k, 0, tensor_scalar_bool(tensor_map_find(map, k->in[1]) != NULL));
    return err;
}

static Error *run_stack_keys(KernelContext *k) {
    TensorMap *map = NULL;
    Error *err = kernel_map(k, 0, &map);
    if (err) return err;
    if (map->count == 0) return error_invalid("TensorMapStackKeys cannot be called on empty map.");
    Shape first = map->entries[0]->key->shape, all = first;
    for (int64_t i = 0; i < map->count; i++) {
        const Tensor *key = map->entries[i]->key;
        if (key->dtype != kernel_output_type(k, 0)) return error_invalid("Key does not match requested dtype.");
        if (!shape_eq(&key->shape, &first)) return error_invalid("Keys must all have the same shape.");
    }
    if (first.rank == SHAPE_MAX_RANK) return error_invalid("Stacked keys would have %d dimensions", first.rank + 1);
    shape_insert_dim(&all, 0, map->count);
    Tensor *out = kernel_output(k, 0, &all);
    if (!out) return NULL;
    int64_t n = shape_count(&first);
    for (int64_t i = 0; i < map->count; i++) elements_copy(out->dtype, (char *)out->data + (size_t)(i * n) * dtype_size(out->dtype), map->entries[i]->key->data, n);
    return NULL;
}

const KernelDef tensor_map_ops_cpu[] = {
    {"EmptyTensorMap", .run = run_empty},
    {"TensorMapInsert", .run = run_insert},
    {"TensorMapLookup", .run = run_lookup},
    {"TensorMapErase", .run = run_erase},
    {"TensorMapHasKey", .run = run_has_key},
    {"TensorMapSize", .run = run_size},
    {"TensorMapStackKeys", .run = run_stack_keys},
    {0},
};
