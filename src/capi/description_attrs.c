/* description_attrs.c: TF_SetAttr...: attributes of an operation that is being described. */
#include <stdlib.h>

#include "base/memory.h"
#include "capi/attr_value_internal.h"
#include "capi/description_internal.h"
#include "capi/status_internal.h"
#include "capi/tensor_internal.h"
#include "proto/wire.h"
#include "tensor/tensor_proto.h"

static Str field_bytes(Arena *a, uint32_t field, Str bytes) {
    StrBuf b = {0};
    wire_put_bytes(&b, field, bytes);
    Str made = arena_str(a, strbuf_str(&b));
    strbuf_clear(&b);
    return made;
}

void TF_SetAttrString(TF_OperationDescription *d, const char *attr_name, const void *value, size_t length) {
    description_set_attr(d, attr_name, attr_make_string(d->arena, (Str){value, length}));
}

void TF_SetAttrInt(TF_OperationDescription *d, const char *attr_name, int64_t value) {
    description_set_attr(d, attr_name, attr_make_int(d->arena, value));
}

void TF_SetAttrFloat(TF_OperationDescription *d, const char *attr_name, float value) {
    description_set_attr(d, attr_name, attr_make_float(d->arena, value));
}

void TF_SetAttrBool(TF_OperationDescription *d, const char *attr_name, unsigned char value) {
    description_set_attr(d, attr_name, attr_make_bool(d->arena, value != 0));
}

void TF_SetAttrType(TF_OperationDescription *d, const char *attr_name, TF_DataType value) {
    description_set_attr(d, attr_name, attr_make_type(d->arena, (DataType)value));
}

void TF_SetAttrPlaceholder(TF_OperationDescription *d, const char *attr_name, const char *placeholder) {
    description_set_attr(d, attr_name, field_bytes(d->arena, 9, str_of(placeholder)));
}

void TF_SetAttrFuncName(TF_OperationDescription *d, const char *attr_name, const char *value, size_t length) {
    description_set_attr(d, attr_name, field_bytes(d->arena, 10, field_bytes(d->arena, 1, (Str){value, length})));
}

/* ---- Lists ---- */

typedef struct Strings {
    const void *const *values;
    const size_t *lengths;
} Strings;

static void put_string(StrBuf *list, const void *items, int i) {
    const Strings *s = items;
    wire_put_bytes(list, 2, (Str){s->values[i], s->lengths[i]});
}

static void put_int(StrBuf *list, const void *items, int i) {
    wire_put_uint(list, 3, (uint64_t)((const int64_t *)items)[i]);
}

static void put_float(StrBuf *list, const void *items, int i) {
    wire_put_float(list, 4, ((const float *)items)[i]);
}

static void put_bool(StrBuf *list, const void *items, int i) {
    wire_put_uint(list, 5, ((const unsigned char *)items)[i] != 0);
}

static void put_type(StrBuf *list, const void *items, int i) {
    wire_put_uint(list, 6, ((const TF_DataType *)items)[i]);
}

static void put_shape(StrBuf *list, const void *items, int i) {
    StrBuf shape = {0};
    shape_encode((const PartialShape *)items + i, &shape);
    wire_put_bytes(list, 7, strbuf_str(&shape));
    strbuf_clear(&shape);
}

static void put_tensor(StrBuf *list, const void *items, int i) {
    StrBuf proto = {0};
    tensor_proto_encode_readable(((Tensor *const *)items)[i], &proto);
    wire_put_bytes(list, 8, strbuf_str(&proto));
    strbuf_clear(&proto);
}

void TF_SetAttrStringList(TF_OperationDescription *d, const char *attr_name, const void *const *values, const size_t *lengths, int num_values) {
    description_set_attr(d, attr_name, attr_make_list(d->arena, put_string, &(Strings){values, lengths}, num_values));
}

void TF_SetAttrIntList(TF_OperationDescription *d, const char *attr_name, const int64_t *values, int num_values) {
    description_set_attr(d, attr_name, attr_make_list(d->arena, put_int, values, num_values));
}

void TF_SetAttrFloatList(TF_OperationDescription *d, const char *attr_name, const float *values, int num_values) {
    description_set_attr(d, attr_name, attr_make_list(d->arena, put_float, values, num_values));
}

void TF_SetAttrBoolList(TF_OperationDescription *d, const char *attr_name, const unsigned char *values, int num_values) {
    description_set_attr(d, attr_name, attr_make_list(d->arena, put_bool, values, num_values));
}

void TF_SetAttrTypeList(TF_OperationDescription *d, const char *attr_name, const TF_DataType *values, int num_values) {
    description_set_attr(d, attr_name, attr_make_list(d->arena, put_type, values, num_values));
}

/* ---- Shapes ---- */

/* A shape the runtime cannot hold stays unset: the operation then fails for want of the attribute, which names it. */
void TF_SetAttrShape(TF_OperationDescription *d, const char *attr_name, const int64_t *dims, int num_dims) {
    PartialShape shape;
    Error *err = capi_shape(dims, num_dims, &shape);
    if (!err) description_set_attr(d, attr_name, attr_make_shape(d->arena, &shape));
    error_free(err);
}

void TF_SetAttrShapeList(TF_OperationDescription *d, const char *attr_name, const int64_t *const *dims, const int *num_dims, int num_shapes) {
    PartialShape *shapes = xcalloc((size_t)num_shapes, sizeof *shapes);
    Error *err = NULL;
    for (int i = 0; !err && i < num_shapes; i++) err = capi_shape(dims[i], num_dims[i], &shapes[i]);
    if (!err) description_set_attr(d, attr_name, attr_make_list(d->arena, put_shape, shapes, num_shapes));
    error_free(err);
    free(shapes);
}

void TF_SetAttrTensorShapeProto(TF_OperationDescription *d, const char *attr_name, const void *proto, size_t proto_len, TF_Status *status) {
    PartialShape shape;
    Error *err = shape_decode((Str){proto, proto_len}, &shape);
    if (!err) description_set_attr(d, attr_name, attr_make_shape(d->arena, &shape));
    status_take(status, error_wrap(err, "Unparseable TensorShapeProto for attribute %s", attr_name));
}

void TF_SetAttrTensorShapeProtoList(TF_OperationDescription *d, const char *attr_name, const void *const *protos, const size_t *proto_lens, int num_shapes, TF_Status *status) {
    PartialShape *shapes = xcalloc((size_t)num_shapes, sizeof *shapes);
    Error *err = NULL;
    for (int i = 0; !err && i < num_shapes; i++)
        err = error_wrap(shape_decode((Str){protos[i], proto_lens[i]}, &shapes[i]), "Unparseable TensorShapeProto at index %d of attribute %s", i, attr_name);
    if (!err) description_set_attr(d, attr_name, attr_make_list(d->arena, put_shape, shapes, num_shapes));
    status_take(status, err);
    free(shapes);
}

/* ---- Tensors ---- */

void TF_SetAttrTensor(TF_OperationDescription *d, const char *attr_name, TF_Tensor *value, TF_Status *status) {
    Tensor *tensor = NULL;
    Error *err = capi_tensor_get(value, &tensor);
    if (!err) {
        StrBuf proto = {0};
        tensor_proto_encode_readable(tensor, &proto);
        description_set_attr(d, attr_name, field_bytes(d->arena, 8, strbuf_str(&proto)));
        strbuf_clear(&proto);
    }
    tensor_unref(tensor);
    status_take(status, error_wrap(err, "attribute %s", attr_name));
}

void TF_SetAttrTensorList(TF_OperationDescription *d, const char *attr_name, TF_Tensor *const *values, int num_values, TF_Status *status) {
    Tensor **tensors = xcalloc((size_t)num_values, sizeof(Tensor *));
    Error *err = NULL;
    for (int i = 0; !err && i < num_values; i++) err = capi_tensor_get(values[i], &tensors[i]);
    if (!err) description_set_attr(d, attr_name, attr_make_list(d->arena, put_tensor, tensors, num_values));
    for (int i = 0; i < num_values; i++) tensor_unref(tensors[i]);
    free(tensors);
    status_take(status, error_wrap(err, "attribute %s", attr_name));
}

void TF_SetAttrValueProto(TF_OperationDescription *d, const char *attr_name, const void *proto, size_t proto_len, TF_Status *status) {
    Str value = {proto, proto_len};
    WireReader r = wire_reader(value);
    while (wire_next(&r)) continue;
    if (r.failed) {
        status_take(status, error_invalid("Unparseable AttrValue proto"));
        return;
    }
    description_set_attr(d, attr_name, arena_str(d->arena, value));
    status_take(status, NULL);
}
