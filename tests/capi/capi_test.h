/* capi_test.h: what the tests of the C API share. They use the public headers alone: the same programs run on TensorFlow's library and on librill. */
#pragma once
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "tensorflow/c/c_api.h"

static inline void expect_ok_at(const TF_Status *s, const char *file, int line) {
    if (TF_GetCode(s) == TF_OK) return;
    print_message("%s:%d: code %d: %s\n", file, line, (int)TF_GetCode(s), TF_Message(s));
    _fail(file, line);
}

/* The status has this code and its text holds `text` (NULL: any). */
static inline void expect_code_at(const TF_Status *s, TF_Code code, const char *text, const char *file, int line) {
    if (TF_GetCode(s) == code && (!text || strstr(TF_Message(s), text))) return;
    print_message("%s:%d: expected code %d with \"%s\", got %d: %s\n", file, line, (int)code, text ? text : "", (int)TF_GetCode(s), TF_Message(s));
    _fail(file, line);
}

#define expect_ok(s) expect_ok_at(s, __FILE__, __LINE__)
#define expect_code(s, code, text) expect_code_at(s, code, text, __FILE__, __LINE__)

/* ---- Tensors ---- */

static inline TF_Tensor *tensor_of(TF_DataType type, const int64_t *dims, int num_dims, const void *data, size_t len) {
    TF_Tensor *t = TF_AllocateTensor(type, dims, num_dims, len);
    assert_non_null(t);
    if (len) memcpy(TF_TensorData(t), data, len);
    return t;
}

static inline TF_Tensor *float_tensor(float v) {
    return tensor_of(TF_FLOAT, NULL, 0, &v, sizeof v);
}

static inline TF_Tensor *int32_tensor(int32_t v) {
    return tensor_of(TF_INT32, NULL, 0, &v, sizeof v);
}

static inline TF_Tensor *int32_vector(const int32_t *v, int64_t n) {
    return tensor_of(TF_INT32, &n, 1, v, sizeof *v * (size_t)n);
}

static inline TF_Tensor *float_matrix(const float *v, int64_t rows, int64_t cols) {
    return tensor_of(TF_FLOAT, (int64_t[]){rows, cols}, 2, v, sizeof *v * (size_t)(rows * cols));
}

static inline void release_string(void *data, size_t len, void *arg) {
    (void)len;
    (void)arg;
    TF_StringDealloc(data);
    free(data);
}

static inline TF_Tensor *string_tensor(const char *text) {
    TF_TString *s = malloc(sizeof *s);
    TF_StringInit(s);
    TF_StringCopy(s, text, strlen(text));
    return TF_NewTensor(TF_STRING, NULL, 0, s, sizeof *s, release_string, NULL);
}

static inline float float_of(const TF_Tensor *t) {
    assert_non_null(t);
    assert_int_equal(TF_TensorType(t), TF_FLOAT);
    return *(float *)TF_TensorData(t);
}

static inline int32_t int32_of(const TF_Tensor *t) {
    assert_non_null(t);
    assert_int_equal(TF_TensorType(t), TF_INT32);
    return *(int32_t *)TF_TensorData(t);
}

/* ---- Operations ---- */

static inline TF_Output out(TF_Operation *op) {
    return (TF_Output){op, 0};
}

static inline TF_Operation *placeholder(TF_Graph *g, const char *name, TF_DataType type, TF_Status *s) {
    TF_OperationDescription *d = TF_NewOperation(g, "Placeholder", name);
    TF_SetAttrType(d, "dtype", type);
    TF_Operation *op = TF_FinishOperation(d, s);
    expect_ok(s);
    return op;
}

static inline TF_Operation *constant(TF_Graph *g, const char *name, TF_Tensor *take, TF_Status *s) {
    TF_OperationDescription *d = TF_NewOperation(g, "Const", name);
    TF_SetAttrTensor(d, "value", take, s);
    expect_ok(s);
    TF_SetAttrType(d, "dtype", TF_TensorType(take));
    TF_DeleteTensor(take);
    TF_Operation *op = TF_FinishOperation(d, s);
    expect_ok(s);
    return op;
}

static inline TF_Operation *unary(TF_Graph *g, const char *op, const char *name, TF_Output x, TF_Status *s) {
    TF_OperationDescription *d = TF_NewOperation(g, op, name);
    TF_AddInput(d, x);
    TF_Operation *made = TF_FinishOperation(d, s);
    expect_ok(s);
    return made;
}

static inline TF_Operation *binary(TF_Graph *g, const char *op, const char *name, TF_Output a, TF_Output b, TF_Status *s) {
    TF_OperationDescription *d = TF_NewOperation(g, op, name);
    TF_AddInput(d, a);
    TF_AddInput(d, b);
    TF_Operation *made = TF_FinishOperation(d, s);
    expect_ok(s);
    return made;
}

static inline TF_Operation *add_n(TF_Graph *g, const char *name, const TF_Output *inputs, int n, TF_Status *s) {
    TF_OperationDescription *d = TF_NewOperation(g, "AddN", name);
    TF_AddInputList(d, inputs, n);
    TF_Operation *made = TF_FinishOperation(d, s);
    expect_ok(s);
    return made;
}

/* ---- Sessions ---- */

static inline TF_Session *new_session(TF_Graph *g, const char *target, TF_Status *s) {
    TF_SessionOptions *o = TF_NewSessionOptions();
    if (target) TF_SetTarget(o, target);
    TF_Session *session = TF_NewSession(g, o, s);
    expect_ok(s);
    TF_DeleteSessionOptions(o);
    return session;
}

/* One fetch, at most one feed, which is deleted; the result is the caller's. */
static inline TF_Tensor *run_one(TF_Session *session, TF_Output feed, TF_Tensor *take, TF_Output fetch, TF_Status *s) {
    TF_Tensor *result = NULL;
    TF_SessionRun(session, NULL, &feed, &take, take ? 1 : 0, &fetch, &result, 1, NULL, 0, NULL, s);
    TF_DeleteTensor(take);
    return result;
}

static inline int32_t run_int32(TF_Session *session, TF_Output feed, TF_Tensor *take, TF_Output fetch, TF_Status *s) {
    TF_Tensor *t = run_one(session, feed, take, fetch, s);
    expect_ok(s);
    int32_t v = int32_of(t);
    TF_DeleteTensor(t);
    return v;
}

static inline void end_session(TF_Session *session, TF_Status *s) {
    TF_CloseSession(session, s);
    expect_ok(s);
    TF_DeleteSession(session, s);
    expect_ok(s);
}
