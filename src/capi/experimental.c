/* experimental.c: small functions of c_api_experimental.h: configurations, and questions about ops. */
#include "base/str.h"
#include "capi/client_internal.h"
#include "capi/graph_internal.h"
#include "capi/status_internal.h"
#include "proto/wire.h"
#include "tensorflow/c/c_api_experimental.h"

static void put_nested(StrBuf *out, uint32_t field, StrBuf *nested) {
    wire_put_bytes(out, field, strbuf_str(nested));
    strbuf_clear(nested);
}

/* ConfigProto: graph_options=10 {optimizer_options=3 {global_jit_level=5}}. */
static void put_jit(StrBuf *config, bool enable) {
    StrBuf optimizer = {0}, graph = {0};
    wire_put_uint(&optimizer, 5, enable ? 1 : 0);
    put_nested(&graph, 3, &optimizer);
    put_nested(config, 10, &graph);
}

void TF_EnableXLACompilation(TF_SessionOptions *options, unsigned char enable) {
    StrBuf more = {0};
    put_jit(&more, enable);
    session_options_add_config(options, strbuf_str(&more)); /* messages one after the other are one */
    strbuf_clear(&more);
}

static TF_Buffer *buffer_of(StrBuf *bytes) {
    TF_Buffer *b = TF_NewBufferFromString(bytes->ptr, bytes->len);
    strbuf_clear(bytes);
    return b;
}

/* ConfigProto: device_count=1 (map) gpu_options=6 {allow_growth=4}. */
TF_Buffer *TF_CreateConfig(unsigned char enable_xla_compilation, unsigned char gpu_memory_allow_growth, unsigned int num_cpu_devices) {
    StrBuf config = {0}, cpus = {0}, gpus = {0};
    put_jit(&config, enable_xla_compilation);
    wire_put_bytes(&cpus, 1, STR("CPU"));
    wire_put_uint(&cpus, 2, num_cpu_devices);
    put_nested(&config, 1, &cpus);
    wire_put_uint(&gpus, 4, gpu_memory_allow_growth != 0);
    put_nested(&config, 6, &gpus);
    return buffer_of(&config);
}

TF_Buffer *TF_CreateRunOptions(unsigned char enable_full_trace) {
    StrBuf options = {0};
    wire_put_uint(&options, 1, enable_full_trace ? 3 : 0); /* trace_level: FULL_TRACE */
    return buffer_of(&options);
}

int TF_OpIsStateful(const char *op_type, TF_Status *status) {
    capi_init();
    const OpInfo *op = op_find(str_of(op_type));
    status_take(status, op ? NULL : error_not_found("Op type not registered '%s'. The most similar op of Rill is '%.*s'", op_type, STR_ARG(op_nearest(str_of(op_type)))));
    return op && op->flags & OP_STATEFUL;
}

void TF_InitMain(const char *usage, int *argc, char ***argv) {
    (void)usage;
    (void)argc;
    (void)argv;
    capi_init();
}

void TF_ImportGraphDefOptionsSetValidateColocationConstraints(TF_ImportGraphDefOptions *opts, unsigned char enable) {
    (void)opts;
    (void)enable;
}

void TF_MakeInternalErrorStatus(TF_Status *status, const char *errMsg) {
    TF_SetStatus(status, TF_INTERNAL, errMsg);
}
