/* attr_get.c: TF_OperationGetAttr...: attributes of operations, read into the caller's memory. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "capi/attr_value_internal.h"
#include "capi/graph_internal.h"
#include "capi/status_internal.h"
#include "capi/tensor_internal.h"
#include "tensor/tensor_proto.h"

static Error *find_value(const TF_Operation *op, const char *attr_name, Str *value) {
    if (node_attr(op->node, attr_name, value)) return NULL;
    return error_invalid("Operation '%s' has no attr named '%s'.", op->name, attr_name);
}

static Str declared_type(const TF_Operation *op, const char *attr_name) {
    const AttrInfo *declared = op->node->info ? op_attr(op->node->info, str_of(attr_name)) : NULL;
    return declared ? declared->type : STR("");
}

/* The value of an attribute that must be of this kind; an empty list is of every kind. */
static Error *find_kind(const TF_Operation *op, const char *attr_name, TF_AttrType type, bool is_list, Str *value) {
    Error *err = find_value(op, attr_name, value);
    if (err && !is_list && type != TF_ATTR_STRING) { /* of single values TensorFlow says it with this code */
        error_free(err);
        err = error_not_found("No attr named '%s' in NodeDef: {{node %s}}", attr_name, op->name);
    }
    if (err) return err;
    AttrKind kind = attr_kind(*value, declared_type(op, attr_name));
    if (is_list && !kind.is_list) return error_invalid("Value for '%s' is not a list", attr_name);
    if (kind.is_set && kind.is_list == is_list && (kind.is_empty_list || kind.type == type)) return NULL;
    const char *expected = attr_kind_name((AttrKind){.type = type, .is_list = is_list, .is_set = true});
    return error_invalid("AttrValue had value with type '%s' when '%s' expected\n\t for attr '%s' of operation '%s'", attr_kind_name(kind), expected, attr_name, op->name);
}

/* ---- What it is ---- */

static int64_t total_of_strings(Str value) {
    int count = attr_list_strings(value, NULL, 0);
    Str *items = xcalloc(count > 0 ? (size_t)count : 1, sizeof *items);
    int64_t total = 0;
    attr_list_strings(value, items, count);
    for (int i = 0; i < count; i++) total += (int64_t)items[i].len;
    free(items);
    return total;
}

static int64_t total_of_shapes(Str value) {
    int count = attr_list_shapes(value, NULL, 0);
    PartialShape *items = xcalloc(count > 0 ? (size_t)count : 1, sizeof *items);
    int64_t total = 0;
    if (attr_list_shapes(value, items, count) >= 0)
        for (int i = 0; i < count; i++) total += items[i].rank > 0 ? items[i].rank : 0;
    free(items);
    return total;
}

static int64_t total_size(Str value, AttrKind kind) {
    Str text;
    PartialShape shape;
    if (kind.is_list && kind.type == TF_ATTR_STRING) return total_of_strings(value);
    if (kind.is_list && kind.type == TF_ATTR_SHAPE) return total_of_shapes(value);
    if (!kind.is_list && kind.type == TF_ATTR_STRING && attr_string(value, &text)) return (int64_t)text.len;
    if (!kind.is_list && kind.type == TF_ATTR_SHAPE && attr_shape(value, &shape)) return shape.rank;
    return -1;
}

TF_AttrMetadata TF_OperationGetAttrMetadata(TF_Operation *op, const char *attr_name, TF_Status *status) {
    TF_AttrMetadata metadata = {0};
    Str value;
    Error *err = find_value(op, attr_name, &value);
    AttrKind kind = {0};
    if (!err) kind = attr_kind(value, declared_type(op, attr_name));
    if (!err && !kind.is_set) err = error_invalid("Attribute '%s' has no value set", attr_name);
    if (status_take(status, err)) metadata = (TF_AttrMetadata){kind.is_list, kind.is_list ? kind.size : -1, kind.type, total_size(value, kind)};
    return metadata;
}

int TF_OperationGetNumAttrs(TF_Operation *op) {
    return op->node->attr_count;
}

int TF_OperationGetAttrNameLength(TF_Operation *op, int i) {
    return i >= 0 && i < op->node->attr_count ? (int)op->node->attrs[i].name.len : -1;
}

void TF_OperationGetAttrName(TF_Operation *op, int i, char *output, TF_Status *status) {
    if (i < 0 || i >= op->node->attr_count) {
        status_take(status, error_new(CODE_OUT_OF_RANGE, "Operation only has %d attributes, can't get the %dth", op->node->attr_count, i));
        return;
    }
    memcpy(output, op->node->attrs[i].name.ptr, op->node->attrs[i].name.len);
    status_take(status, NULL);
}

/* ---- Single values ---- */

void TF_OperationGetAttrString(TF_Operation *op, const char *attr_name, void *value, size_t max_length, TF_Status *status) {
    Str bytes, text;
    Error *err = find_kind(op, attr_name, TF_ATTR_STRING, false, &bytes);
    if (!err && attr_string(bytes, &text) && max_length) memcpy(value, text.ptr, text.len < max_length ? text.len : max_length);
    status_take(status, err);
}

void TF_OperationGetAttrInt(TF_Operation *op, const char *attr_name, int64_t *value, TF_Status *status) {
    Str bytes;
    Error *err = find_kind(op, attr_name, TF_ATTR_INT, false, &bytes);
    if (!err) attr_int(bytes, value);
    status_take(status, err);
}

void TF_OperationGetAttrFloat(TF_Operation *op, const char *attr_name, float *value, TF_Status *status) {
    Str bytes;
    Error *err = find_kind(op, attr_name, TF_ATTR_FLOAT, false, &bytes);
    if (!err) attr_float(bytes, value);
    status_take(status, err);
}

void TF_OperationGetAttrBool(TF_Operation *op, const char *attr_name, unsigned char *value, TF_Status *status) {
    Str bytes;
    bool truth = false;
    Error *err = find_kind(op, attr_name, TF_ATTR_BOOL, false, &bytes);
    if (!err && attr_bool(bytes, &truth)) *value = truth;
    status_take(status, err);
}

void TF_OperationGetAttrType(TF_Operation *op, const char *attr_name, TF_DataType *value, TF_Status *status) {
    Str bytes;
    DataType type = DT_INVALID;
    Error *err = find_kind(op, attr_name, TF_ATTR_TYPE, false, &bytes);
    if (!err && attr_type(bytes, &type)) *value = (TF_DataType)type;
    status_take(status, err);
}

void TF_OperationGetAttrShape(TF_Operation *op, const char *attr_name, int64_t *value, int num_dims, TF_Status *status) {
    Str bytes;
    PartialShape shape;
    Error *err = find_kind(op, attr_name, TF_ATTR_SHAPE, false, &bytes);
    if (!err && !attr_shape(bytes, &shape)) err = error_invalid("Value for '%s' is not a valid shape", attr_name);
    for (int i = 0; !err && i < shape.rank && i < num_dims; i++) value[i] = shape.dims[i];
    status_take(status, err);
}

static Error *fill_buffer(TF_Buffer *b, Str bytes) {
    StrBuf copy = {0};
    strbuf_add(&copy, bytes);
    return buffer_fill(b, &copy);
}

/* The shape as it is written, normalised. */
static Error *fill_shape(TF_Buffer *b, const PartialShape *shape) {
    StrBuf proto = {0};
    shape_encode(shape, &proto);
    return buffer_fill(b, &proto);
}

void TF_OperationGetAttrTensorShapeProto(TF_Operation *op, const char *attr_name, TF_Buffer *value, TF_Status *status) {
    Str bytes;
    PartialShape shape;
    Error *err = find_kind(op, attr_name, TF_ATTR_SHAPE, false, &bytes);
    if (!err && !attr_shape(bytes, &shape)) err = error_invalid("Value for '%s' is not a valid shape", attr_name);
    if (!err) err = fill_shape(value, &shape);
    status_take(status, err);
}

static Error *tensor_of(Str proto, TF_Tensor **out) {
    Tensor *tensor = NULL;
    Error *err = tensor_proto_decode(proto, &tensor);
    if (!err) err = capi_tensor_new(tensor, out);
    tensor_unref(tensor);
    return err;
}

void TF_OperationGetAttrTensor(TF_Operation *op, const char *attr_name, TF_Tensor **value, TF_Status *status) {
    Str bytes, proto;
    *value = NULL;
    Error *err = find_kind(op, attr_name, TF_ATTR_TENSOR, false, &bytes);
    if (!err && attr_tensor(bytes, &proto)) err = error_wrap(tensor_of(proto, value), "attr '%s' of operation '%s'", attr_name, op->name);
    status_take(status, err);
}

void TF_OperationGetAttrValueProto(TF_Operation *op, const char *attr_name, TF_Buffer *output_attr_value, TF_Status *status) {
    Str bytes;
    Error *err = find_value(op, attr_name, &bytes);
    if (!err) err = fill_buffer(output_attr_value, bytes);
    status_take(status, err);
}

/* ---- Lists ---- */

void TF_OperationGetAttrStringList(TF_Operation *op, const char *attr_name, void **values, size_t *lengths, int max_values, void *storage, size_t storage_size,
                                   TF_Status *status) {
    Str bytes;
    Error *err = find_kind(op, attr_name, TF_ATTR_STRING, true, &bytes);
    int count = err ? 0 : attr_list_strings(bytes, NULL, 0);
    if (count > max_values) count = max_values;
    Str *items = xcalloc(count > 0 ? (size_t)count : 1, sizeof *items);
    if (!err) attr_list_strings(bytes, items, count);
    char *at = storage;
    for (int i = 0; !err && i < count; i++) {
        if (items[i].len > storage_size - (size_t)(at - (char *)storage)) {
            err = error_invalid("Not enough storage to hold the requested list of strings");
            break;
        }
        values[i] = at;
        lengths[i] = items[i].len;
        memcpy(at, items[i].ptr, items[i].len);
        at += items[i].len;
    }
    free(items);
    status_take(status, err);
}

void TF_OperationGetAttrIntList(TF_Operation *op, const char *attr_name, int64_t *values, int max_values, TF_Status *status) {
    Str bytes;
    Error *err = find_kind(op, attr_name, TF_ATTR_INT, true, &bytes);
    if (!err) attr_list_ints(bytes, values, max_values);
    status_take(status, err);
}

void TF_OperationGetAttrFloatList(TF_Operation *op, const char *attr_name, float *values, int max_values, TF_Status *status) {
    Str bytes;
    Error *err = find_kind(op, attr_name, TF_ATTR_FLOAT, true, &bytes);
    if (!err) attr_list_floats(bytes, values, max_values);
    status_take(status, err);
}

void TF_OperationGetAttrBoolList(TF_Operation *op, const char *attr_name, unsigned char *values, int max_values, TF_Status *status) {
    _Static_assert(sizeof(bool) == sizeof(unsigned char), "read in place");
    Str bytes;
    Error *err = find_kind(op, attr_name, TF_ATTR_BOOL, true, &bytes);
    if (!err) attr_list_bools(bytes, (bool *)values, max_values);
    status_take(status, err);
}

void TF_OperationGetAttrTypeList(TF_Operation *op, const char *attr_name, TF_DataType *values, int max_values, TF_Status *status) {
    _Static_assert(sizeof(DataType) == sizeof(TF_DataType), "read in place");
    Str bytes;
    Error *err = find_kind(op, attr_name, TF_ATTR_TYPE, true, &bytes);
    if (!err && attr_list_types(bytes, (DataType *)values, max_values) < 0) err = error_invalid("Value for '%s' holds an unknown type", attr_name);
    status_take(status, err);
}

/* The shapes of a list, malloced. */
static Error *shape_items(const TF_Operation *op, const char *attr_name, int max, PartialShape **out, int *count) {
    Str bytes;
    Error *err = find_kind(op, attr_name, TF_ATTR_SHAPE, true, &bytes);
    if (err) return err;
    int have = attr_list_shapes(bytes, NULL, 0);
    if (have > max) have = max;
    *out = xcalloc(have > 0 ? (size_t)have : 1, sizeof **out);
    *count = have;
    return attr_list_shapes(bytes, *out, have) < 0 ? error_invalid("Value for '%s' is not a list of valid shapes", attr_name) : NULL;
}

void TF_OperationGetAttrShapeList(TF_Operation *op, const char *attr_name, int64_t **dims, int *num_dims, int num_shapes, int64_t *storage, int storage_size,
                                  TF_Status *status) {
    PartialShape *shapes = NULL;
    int count = 0, used = 0;
    Error *err = shape_items(op, attr_name, num_shapes, &shapes, &count);
    for (int i = 0; !err && i < count; i++) {
        num_dims[i] = shapes[i].rank;
        dims[i] = shapes[i].rank < 0 ? NULL : storage + used;
        if (shapes[i].rank > storage_size - used) {
            err = error_invalid("Not enough storage to hold the requested list of shapes");
            break;
        }
        for (int j = 0; j < shapes[i].rank; j++) storage[used++] = shapes[i].dims[j];
    }
    free(shapes);
    status_take(status, err);
}

void TF_OperationGetAttrTensorShapeProtoList(TF_Operation *op, const char *attr_name, TF_Buffer **values, int max_values, TF_Status *status) {
    PartialShape *shapes = NULL;
    int count = 0;
    Error *err = shape_items(op, attr_name, max_values, &shapes, &count);
    for (int i = 0; !err && i < count; i++) {
        values[i] = TF_NewBuffer();
        err = fill_shape(values[i], &shapes[i]);
    }
    free(shapes);
    status_take(status, err);
}

void TF_OperationGetAttrTensorList(TF_Operation *op, const char *attr_name, TF_Tensor **values, int max_values, TF_Status *status) {
    Str bytes;
    Error *err = find_kind(op, attr_name, TF_ATTR_TENSOR, true, &bytes);
    int count = err ? 0 : attr_list_tensors(bytes, NULL, 0);
    if (count > max_values) count = max_values;
    Str *protos = xcalloc(count > 0 ? (size_t)count : 1, sizeof *protos);
    if (!err) attr_list_tensors(bytes, protos, count);
    for (int i = 0; i < count; i++) values[i] = NULL;
    for (int i = 0; !err && i < count; i++) err = error_wrap(tensor_of(protos[i], &values[i]), "attr '%s' of operation '%s'", attr_name, op->name);
    for (int i = 0; err && i < count; i++) {
        TF_DeleteTensor(values[i]);
        values[i] = NULL;
    }
    free(protos);
    status_take(status, err);
}

/* ---- Changing them ---- */

void TF_SetAttr(TF_Graph *g, TF_Operation *op, const char *attr_name, TF_Buffer *attr_value_proto, TF_Status *status) {
    Str value = buffer_str(attr_value_proto);
    AttrKind kind = attr_kind(value, STR(""));
    if (value.len && !kind.is_set) {
        status_take(status, error_invalid("Unparseable AttrValue proto"));
        return;
    }
    pthread_mutex_lock(&g->mutex);
    node_add_attr(g->graph, op->node, str_of(attr_name), value);
    graph_note_mutation_locked(g, op, "setting attribute");
    pthread_mutex_unlock(&g->mutex);
    status_take(status, NULL);
}

void TF_ClearAttr(TF_Graph *g, TF_Operation *op, const char *attr_name, TF_Status *status) {
    pthread_mutex_lock(&g->mutex);
    Node *n = op->node;
    int kept = 0;
    for (int i = 0; i < n->attr_count; i++)
        if (!str_is(n->attrs[i].name, attr_name)) n->attrs[kept++] = n->attrs[i];
    n->attr_count = kept;
    graph_note_mutation_locked(g, op, "clearing attribute");
    pthread_mutex_unlock(&g->mutex);
    status_take(status, NULL);
}
