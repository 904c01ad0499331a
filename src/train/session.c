/* session.c: RillSession: a TF_Session with its graph, at a task of the cluster or in this process. */
#include "rill/session.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/float16.h"
#include "base/memory.h"
#include "capi/bridge.h"
#include "proto/wire.h"
#include "train/graph_internal.h"
#include "train/task_internal.h"

struct RillSession {
    RillGraph *graph;
    TF_Session *tf;
};

/* ConfigProto: device_filters=4 allow_soft_placement=7 operation_timeout_in_ms=11 isolate_session_state=15. */
static void put_config(const RillSessionOptions *o, StrBuf *out) {
    for (int i = 0; o && i < o->device_filter_count; i++) wire_put_bytes(out, 4, str_of(o->device_filters[i]));
    if (o && o->soft_placement) wire_put_uint(out, 7, 1);
    if (o && o->timeout_ms > 0) wire_put_uint(out, 11, (uint64_t)o->timeout_ms);
}

static RillSession *open_session(RillGraph *g, Str target, Transport *transport, const RillSessionOptions *options, TF_Status *status) {
    if (rill_graph_failed(g)) {
        TF_SetStatus(status, rill_graph_code(g), rill_graph_message(g));
        return NULL;
    }
    StrBuf config = {0};
    put_config(options, &config);
    TF_Session *tf = NULL;
    Error *err = bridge_session(g->tf, target, strbuf_str(&config), transport, &tf);
    strbuf_clear(&config);
    TF_SetStatus(status, err ? (TF_Code)err->code : TF_OK, err ? err->message : "");
    error_free(err);
    if (!tf) return NULL;
    RillSession *s = xcalloc(1, sizeof *s);
    *s = (RillSession){g, tf};
    return s;
}

RillSession *rill_session_open(RillGraph *g, const RillTask *task, const RillSessionOptions *options, TF_Status *status) {
    return open_session(g, str_of(task ? task->target : ""), task ? task->transport : NULL, options, status);
}

RillSession *rill_session_open_target(RillGraph *g, const char *target, const RillSessionOptions *options, TF_Status *status) {
    return open_session(g, str_of(target ? target : ""), NULL, options, status);
}

void rill_session_close(RillSession *s) {
    if (!s) return;
    TF_Status *status = TF_NewStatus();
    TF_CloseSession(s->tf, status);
    TF_DeleteSession(s->tf, status);
    TF_DeleteStatus(status);
    free(s);
}

TF_Session *rill_session_tf(RillSession *s) {
    return s->tf;
}

RillGraph *rill_session_graph(RillSession *s) {
    return s->graph;
}

/* RunOptions: trace_level=1, FULL_TRACE. */
static const unsigned char full_trace[] = {0x08, 0x03};

TF_Code rill_session_run(RillSession *s, const RillStep *step, TF_Status *status) {
    TF_Output *inputs = xcalloc((size_t)step->feed_count + 1, sizeof *inputs);
    TF_Tensor **values = xcalloc((size_t)step->feed_count + 1, sizeof *values);
    for (int i = 0; i < step->feed_count; i++) {
        inputs[i] = step->feeds[i].tensor;
        values[i] = step->feeds[i].value;
    }
    for (int i = 0; i < step->fetch_count; i++) step->values[i] = NULL;
    TF_Buffer *options = step->metadata ? TF_NewBufferFromString(full_trace, sizeof full_trace) : NULL;
    if (rill_graph_failed(s->graph))
        TF_SetStatus(status, rill_graph_code(s->graph), rill_graph_message(s->graph));
    else
        TF_SessionRun(s->tf, options, inputs, values, step->feed_count, step->fetches, step->values, step->fetch_count, (const TF_Operation *const *)step->targets,
                      step->target_count, step->metadata, status);
    if (options) TF_DeleteBuffer(options);
    free(inputs);
    free(values);
    return TF_GetCode(status);
}

TF_Code rill_session_run_op(RillSession *s, TF_Operation *op, TF_Status *status) {
    if (!op && rill_graph_failed(s->graph)) {
        TF_SetStatus(status, rill_graph_code(s->graph), rill_graph_message(s->graph));
        return TF_GetCode(status);
    }
    return rill_session_run(s, &(RillStep){.targets = &op, .target_count = op ? 1 : 0}, status);
}

double rill_session_number(RillSession *s, RillTensor t, TF_Status *status) {
    TF_Tensor *value = NULL;
    if (!tensor_ok(t) && !rill_graph_failed(s->graph)) {
        TF_SetStatus(status, TF_INVALID_ARGUMENT, "rill_session_number was given no tensor");
        return NAN;
    }
    if (rill_session_run(s, &(RillStep){.fetches = &t, .values = &value, .fetch_count = 1}, status) != TF_OK) return NAN;
    double n = rill_value_number(value);
    TF_DeleteTensor(value);
    return n;
}

/* ---- Values ---- */

TF_Tensor *rill_value(TF_DataType type, const int64_t *dims, int rank, const void *data) {
    return tensor_of(type, dims, rank, data);
}

TF_Tensor *rill_value_string(const char *text) {
    return tensor_of_strings(&text, 1, 0);
}

double rill_value_number(const TF_Tensor *t) {
    if (!t || !TF_TensorData(t) || TF_TensorByteSize(t) == 0) return NAN;
    const void *p = TF_TensorData(t);
    switch (TF_TensorType(t)) {
    case TF_FLOAT: return *(const float *)p;
    case TF_DOUBLE: return *(const double *)p;
    case TF_HALF: return half_to_float(*(const uint16_t *)p);
    case TF_BFLOAT16: return bfloat16_to_float(*(const uint16_t *)p);
    case TF_INT64: return (double)*(const int64_t *)p;
    case TF_INT32: return *(const int32_t *)p;
    case TF_INT16: return *(const int16_t *)p;
    case TF_INT8: return *(const int8_t *)p;
    case TF_UINT64: return (double)*(const uint64_t *)p;
    case TF_UINT32: return *(const uint32_t *)p;
    case TF_UINT16: return *(const uint16_t *)p;
    case TF_UINT8: return *(const uint8_t *)p;
    case TF_BOOL: return *(const uint8_t *)p;
    default: return NAN;
    }
}

char *rill_value_text(const TF_Tensor *t, int64_t i) {
    if (!t || TF_TensorType(t) != TF_STRING || i < 0 || i >= TF_TensorElementCount(t)) return xstrdup("");
    const TF_TString *s = (const TF_TString *)TF_TensorData(t) + i;
    return str_dup((Str){TF_StringGetDataPointer(s), TF_StringGetSize(s)});
}
