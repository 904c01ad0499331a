/* session_steps.h: steps that a session must run wherever it is, in this process (no target) or at a master. */
#pragma once
#include "capi_test.h"

static inline void expect_a_step_in_parts(const char *target) {
    TF_Status *s = TF_NewStatus();
    TF_Graph *g = TF_NewGraph();
    TF_Operation *a = placeholder(g, "a", TF_INT32, s), *b = placeholder(g, "b", TF_INT32, s);
    TF_Operation *two = constant(g, "two", int32_tensor(2), s);
    TF_Operation *plus2 = add_n(g, "plus2", (TF_Output[]){out(a), out(two)}, 2, s);
    TF_Operation *plusb = add_n(g, "plusb", (TF_Output[]){out(plus2), out(b)}, 2, s);
    TF_Session *session = new_session(g, target, s);
    TF_Output feeds[] = {out(a), out(b)}, fetches[] = {out(plus2), out(plusb)};
    const char *handle = NULL;
    TF_SessionPRunSetup(session, feeds, 2, fetches, 2, NULL, 0, &handle, s);
    expect_ok(s);
    assert_non_null(handle);
    TF_Tensor *value = int32_tensor(1), *result = NULL;
    TF_SessionPRun(session, handle, &feeds[0], &value, 1, &fetches[0], &result, 1, NULL, 0, s);
    expect_ok(s);
    assert_int_equal(int32_of(result), 3);
    TF_DeleteTensor(result);
    TF_DeleteTensor(value);
    value = int32_tensor(4);
    TF_SessionPRun(session, handle, &feeds[1], &value, 1, &fetches[1], &result, 1, NULL, 0, s);
    expect_ok(s);
    assert_int_equal(int32_of(result), 7);
    TF_DeleteTensor(result);
    TF_DeleteTensor(value);
    TF_DeletePRunHandle(handle);
    end_session(session, s);
    TF_DeleteGraph(g);
    TF_DeleteStatus(s);
}

/* It ends by its own time limit. */
static inline void expect_a_waiting_step_to_end(const char *target) {
    TF_Status *s = TF_NewStatus();
    TF_Graph *g = TF_NewGraph();
    TF_OperationDescription *d = TF_NewOperation(g, "FIFOQueueV2", "queue");
    TF_SetAttrTypeList(d, "component_types", (TF_DataType[]){TF_INT32}, 1);
    TF_Operation *queue = TF_FinishOperation(d, s);
    expect_ok(s);
    d = TF_NewOperation(g, "QueueDequeueV2", "dequeue");
    TF_AddInput(d, out(queue));
    TF_SetAttrTypeList(d, "component_types", (TF_DataType[]){TF_INT32}, 1);
    TF_Operation *dequeue = TF_FinishOperation(d, s);
    expect_ok(s);
    TF_Session *session = new_session(g, target, s);
    TF_Buffer *options = TF_NewBufferFromString("\x10\x64", 2); /* timeout_in_ms: 100 */
    TF_Output fetch = out(dequeue);
    TF_Tensor *result = NULL;
    TF_SessionRun(session, options, NULL, NULL, 0, &fetch, &result, 1, NULL, 0, NULL, s);
    expect_code(s, TF_DEADLINE_EXCEEDED, NULL);
    assert_null(result);
    TF_DeleteBuffer(options);
    end_session(session, s);
    TF_DeleteGraph(g);
    TF_DeleteStatus(s);
}
