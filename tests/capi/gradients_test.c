/* gradients_test.c: gradients added to graphs that sessions have run already. CAPI_TARGET names a master (else sessions are in this process).

   CAPI_LIBRARY=tensorflow: that library has no gradient of If nor of gradients of calls, and leaves nodes behind when it fails. CAPI_MASTER=tf: a master of TensorFlow takes no operation twice. */
#include "capi_test.h"

static bool is_set(const char *name, const char *value) {
    return getenv(name) && strcmp(getenv(name), value) == 0;
}

/* ---- Functions of one float ---- */

static void add_function(TF_Graph *g, const char *name, const char *first, const char *second, TF_Status *s) {
    TF_Graph *body = TF_NewGraph();
    TF_Output in = out(placeholder(body, "in", TF_FLOAT, s)), result = out(unary(body, first, "first", in, s));
    if (second) result = out(unary(body, second, "second", result, s));
    TF_Function *f = TF_GraphToFunction(body, name, 0, -1, NULL, 1, &in, 1, &result, NULL, NULL, NULL, s);
    expect_ok(s);
    TF_GraphCopyFunction(g, f, NULL, s);
    expect_ok(s);
    TF_DeleteFunction(f);
    TF_DeleteGraph(body);
}

static void set_function(TF_OperationDescription *d, const char *attr, const char *name) {
    TF_SetAttrFuncName(d, attr, name, strlen(name));
}

static TF_Operation *call_like(TF_Graph *g, const char *op, TF_Output pred, TF_Output x, TF_Status *s) {
    TF_DataType type = TF_FLOAT;
    bool is_if = strcmp(op, "If") == 0;
    TF_OperationDescription *d = TF_NewOperation(g, op, "call");
    if (is_if) TF_AddInput(d, pred);
    TF_AddInputList(d, &x, 1);
    TF_SetAttrTypeList(d, "Tin", &type, 1);
    TF_SetAttrTypeList(d, "Tout", &type, 1);
    set_function(d, is_if ? "then_branch" : "f", "Sinus");
    if (is_if) set_function(d, "else_branch", "Tangens");
    TF_Operation *made = TF_FinishOperation(d, s);
    expect_ok(s);
    return made;
}

static float run_at(TF_Session *session, TF_Output x, float value, TF_Output y, TF_Status *s) {
    TF_Tensor *t = run_one(session, x, float_tensor(value), y, s);
    expect_ok(s);
    float result = float_of(t);
    TF_DeleteTensor(t);
    return result;
}

/* ---- The tests ---- */

/* The call grows once more. */
static void expect_second_derivative(TF_Graph *g, TF_Session *session, TF_Output x, TF_Output dx, TF_Status *s) {
    TF_Output second;
    TF_AddGradients(g, &dx, 1, &x, 1, NULL, s, &second);
    expect_ok(s);
    assert_float_equal(run_at(session, x, 0.5f, second, s), -0.4695644f, 1e-4);
}

/* exp(sin(x)), called or in a branch that is always taken; the derivative is cos(x) exp(sin(x)). */
static void expect_a_session_to_go_on(const char *op) {
    TF_Status *s = TF_NewStatus();
    TF_Graph *g = TF_NewGraph();
    add_function(g, "Sinus", "Sin", "Exp", s);
    add_function(g, "Tangens", "Tanh", NULL, s);
    TF_Output x = out(placeholder(g, "x", TF_FLOAT, s)), pred = out(constant(g, "pred", int32_tensor(1), s));
    TF_Output call = out(call_like(g, op, pred, x, s)), y = out(unary(g, "Neg", "y", call, s)), dx;
    TF_Session *session = new_session(g, getenv("CAPI_TARGET"), s);
    assert_float_equal(run_at(session, x, 0.5f, y, s), -1.6151463f, 1e-5);
    TF_AddGradients(g, &y, 1, &x, 1, NULL, s, &dx);
    if (is_set("CAPI_LIBRARY", "tensorflow") && strcmp(op, "If") == 0) {
        expect_code(s, TF_NOT_FOUND, "No gradient defined");
        assert_float_equal(run_at(session, x, 0.5f, y, s), -1.6151463f, 1e-5);
    } else {
        expect_ok(s);
        assert_string_equal(TF_OperationOpType(call.oper), op);
        TF_Tensor *t = run_one(session, x, float_tensor(0.5f), dx, s);
        TF_DeleteTensor(t);
        if (is_set("CAPI_MASTER", "tf") && !is_set("CAPI_LIBRARY", "tensorflow")) {
            expect_code(s, TF_INVALID_ARGUMENT, "create a new session");
        } else {
            expect_ok(s);
            for (int i = 0; i < 2; i++) {
                assert_float_equal(run_at(session, x, 0.5f, dx, s), -1.4174242f, 1e-5);
                assert_float_equal(run_at(session, x, 0.5f, y, s), -1.6151463f, 1e-5);
            }
            if (!is_set("CAPI_LIBRARY", "tensorflow")) expect_second_derivative(g, session, x, dx, s);
            assert_float_equal(run_at(session, x, 0.5f, dx, s), -1.4174242f, 1e-5);
        }
        TF_Session *later = new_session(g, getenv("CAPI_TARGET"), s);
        assert_float_equal(run_at(later, x, 0.5f, dx, s), -1.4174242f, 1e-5);
        end_session(later, s);
    }
    end_session(session, s);
    TF_DeleteGraph(g);
    TF_DeleteStatus(s);
}

static void a_session_goes_on_when_a_call_is_differentiated(void **state) {
    (void)state;
    expect_a_session_to_go_on("PartitionedCall");
}

static void a_session_goes_on_when_a_branch_is_differentiated(void **state) {
    (void)state;
    expect_a_session_to_go_on("If");
}

/* while (a < 20) { a = a + b; b = b } */
static void a_session_goes_on_when_a_loop_is_differentiated(void **state) {
    (void)state;
    TF_Status *s = TF_NewStatus();
    TF_Graph *g = TF_NewGraph();
    TF_Output a = out(constant(g, "a", float_tensor(1), s)), b = out(placeholder(g, "b", TF_FLOAT, s)), inputs[] = {a, b}, ends[2], dxs[2];
    TF_WhileParams p = TF_NewWhile(g, inputs, 2, s);
    expect_ok(s);
    p.cond_output = out(binary(p.cond_graph, "Less", "less", p.cond_inputs[0], out(constant(p.cond_graph, "limit", float_tensor(20), s)), s));
    p.body_outputs[0] = out(add_n(p.body_graph, "next", p.body_inputs, 2, s)); /* whose gradient needs no value of the loop: more is beyond TensorFlow's library */
    p.body_outputs[1] = p.body_inputs[1];
    p.name = "loop";
    TF_FinishWhile(&p, s, ends);
    expect_ok(s);
    TF_Session *session = new_session(g, getenv("CAPI_TARGET"), s);
    assert_float_equal(run_at(session, b, 6, ends[0], s), 25, 0);
    TF_AddGradients(g, ends, 2, inputs, 2, NULL, s, dxs);
    expect_ok(s);
    for (int i = 0; i < 2; i++) {
        assert_float_equal(run_at(session, b, 6, dxs[1], s), 5, 0);
        assert_float_equal(run_at(session, b, 6, ends[0], s), 25, 0);
    }
    end_session(session, s);
    TF_DeleteGraph(g);
    TF_DeleteStatus(s);
}

/* y is used by `after` alone, the last of four operations. */
static void expect_as_before(TF_Graph *g, TF_Output y, const TF_Operation *after) {
    assert_int_equal(TF_OperationOutputNumConsumers(y), 1);
    TF_Input consumer;
    TF_OperationOutputConsumers(y, &consumer, 1);
    assert_ptr_equal(consumer.oper, after);
    size_t pos = 0;
    int count = 0;
    while (TF_GraphNextOperation(g, &pos)) count++;
    assert_int_equal(count, 4);
}

/* Behind the call is an op that lets no gradient pass: nothing of what was done on the way to it stays. */
static void a_gradient_that_fails_leaves_the_graph_as_it_was(void **state) {
    (void)state;
    TF_Status *s = TF_NewStatus();
    TF_Graph *g = TF_NewGraph();
    add_function(g, "Sinus", "Sin", "Exp", s);
    TF_Output x = out(placeholder(g, "x", TF_FLOAT, s)), wall = out(unary(g, "PreventGradient", "wall", x, s)), dx;
    TF_Output y = out(call_like(g, "PartitionedCall", x, wall, s));
    TF_Operation *after = unary(g, "Neg", "after", y, s);
    TF_Session *session = new_session(g, getenv("CAPI_TARGET"), s);
    assert_float_equal(run_at(session, x, 0.5f, y, s), 1.6151463f, 1e-5);
    TF_AddGradients(g, &y, 1, &x, 1, NULL, s, &dx);
    assert_true(TF_GetCode(s) != TF_OK);
    assert_int_equal(TF_OperationNumOutputs(y.oper), 1);
    assert_float_equal(run_at(session, x, 0.5f, out(after), s), -1.6151463f, 1e-5);
    if (!is_set("CAPI_LIBRARY", "tensorflow")) expect_as_before(g, y, after);
    assert_float_equal(run_at(session, x, 0.5f, out(unary(g, "Neg", "more", y, s)), s), -1.6151463f, 1e-5);
    end_session(session, s);
    TF_DeleteGraph(g);
    TF_DeleteStatus(s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_session_goes_on_when_a_call_is_differentiated),
        cmocka_unit_test(a_session_goes_on_when_a_branch_is_differentiated),
        cmocka_unit_test(a_session_goes_on_when_a_loop_is_differentiated),
        cmocka_unit_test(a_gradient_that_fails_leaves_the_graph_as_it_was),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
