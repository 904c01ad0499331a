/* shape.c: what is known of the shapes of outputs, and of what resource handles point to. */
#include <stdlib.h>

#include "capi/graph_internal.h"
#include "capi/status_internal.h"
#include "capi/tensor_internal.h"
#include "proto/wire.h"

void TF_GraphSetTensorShape(TF_Graph *g, TF_Output output, const int64_t *dims, const int num_dims, TF_Status *status) {
    PartialShape shape;
    Output o;
    pthread_mutex_lock(&g->mutex);
    Error *err = capi_output(g, output, &o);
    if (!err) err = capi_shape(dims, num_dims, &shape);
    if (!err) err = shapes_set(g->shapes, o, &shape);
    pthread_mutex_unlock(&g->mutex);
    status_take(status, err);
}

static Error *known_shape(TF_Graph *g, TF_Output output, PartialShape *out) {
    Output o;
    pthread_mutex_lock(&g->mutex);
    Error *err = capi_output(g, output, &o);
    if (!err) shapes_of(g->shapes, o, out);
    pthread_mutex_unlock(&g->mutex);
    return err;
}

int TF_GraphGetTensorNumDims(TF_Graph *g, TF_Output output, TF_Status *status) {
    PartialShape shape = {.rank = -1};
    status_take(status, known_shape(g, output, &shape));
    return shape.rank;
}

void TF_GraphGetTensorShape(TF_Graph *g, TF_Output output, int64_t *dims, int num_dims, TF_Status *status) {
    PartialShape shape = {.rank = -1};
    Error *err = known_shape(g, output, &shape);
    if (!err && shape.rank >= 0 && num_dims != shape.rank) err = error_invalid("Expected rank is %d but actual rank is %d", num_dims, shape.rank);
    for (int i = 0; !err && i < shape.rank; i++) dims[i] = shape.dims[i];
    status_take(status, err);
}

void TF_SetRequireShapeInferenceFns(TF_Graph *g, bool require) {
    (void)g;
    (void)require; /* an op without a rule has outputs of unknown shape */
}

void TF_SetFullType(TF_Graph *g, TF_Operation *op, const TF_Buffer *full_type_proto) {
    (void)g;
    (void)op;
    (void)full_type_proto; /* a hint for graph passes of TensorFlow; nothing in Rill asks for it */
}

/* ---- HandleData: is_set=1 shape_and_type=2 (HandleShapeAndType: shape=1 dtype=2) ---- */

TF_Buffer *TF_GetHandleShapeAndType(TF_Graph *g, TF_Output output) {
    Output o;
    DataType dtype;
    PartialShape shape;
    StrBuf data = {0};
    pthread_mutex_lock(&g->mutex);
    Error *err = capi_output(g, output, &o);
    if (!err && shapes_handle(g->shapes, o, &dtype, &shape)) {
        StrBuf proto = {0}, pair = {0};
        shape_encode(&shape, &proto);
        wire_put_bytes(&pair, 1, strbuf_str(&proto));
        wire_put_uint(&pair, 2, (uint64_t)dtype);
        wire_put_uint(&data, 1, 1);
        wire_put_bytes(&data, 2, strbuf_str(&pair));
        strbuf_clear(&proto);
        strbuf_clear(&pair);
    }
    pthread_mutex_unlock(&g->mutex);
    error_free(err);
    TF_Buffer *b = TF_NewBufferFromString(data.ptr, data.len);
    strbuf_clear(&data);
    return b;
}

/* Of several pairs the first counts: no op of Rill has handles of more. */
static Error *read_handle_data(Str data, bool *is_set, DataType *dtype, PartialShape *shape) {
    Str pair = STR("");
    *dtype = DT_INVALID;
    *shape = (PartialShape){.rank = -1};
    WireReader r = wire_reader(data);
    while (wire_next(&r)) {
        if (r.field == 1 && r.type == WIRE_VARINT) *is_set = r.number != 0;
        if (r.field == 2 && r.type == WIRE_BYTES && !pair.len) pair = r.bytes;
    }
    WireReader p = wire_reader(pair);
    Error *err = NULL;
    while (!err && wire_next(&p)) {
        if (p.field == 1 && p.type == WIRE_BYTES) err = shape_decode(p.bytes, shape);
        if (p.field == 2 && p.type == WIRE_VARINT && dtype_is_valid((int)p.number)) *dtype = (DataType)p.number;
    }
    if (!err && (r.failed || p.failed)) err = error_invalid("Couldn't deserialize HandleData proto");
    return err;
}

void TF_SetHandleShapeAndType(TF_Graph *g, TF_Output output, const void *proto, size_t proto_len, TF_Status *status) {
    Output o;
    bool is_set = false;
    DataType dtype;
    PartialShape shape;
    Error *err = read_handle_data((Str){proto, proto_len}, &is_set, &dtype, &shape);
    pthread_mutex_lock(&g->mutex);
    if (!err) err = capi_output(g, output, &o);
    if (!err && is_set) shapes_set_handle(g->shapes, o, dtype, &shape);
    pthread_mutex_unlock(&g->mutex);
    status_take(status, err);
}
