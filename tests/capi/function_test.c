/* function_test.c: functions made of graphs and called; while loops; gradients; constants evaluated; what the library knows. */
#include "capi_test.h"

/* x -> x + two */
static TF_Function *plus_two(const char *name, TF_Status *s) {
    TF_Graph *g = TF_NewGraph();
    TF_Operation *feed = placeholder(g, "feed", TF_INT32, s);
    TF_Operation *two = constant(g, "two", int32_tensor(2), s);
    TF_Operation *sum = add_n(g, "sum", (TF_Output[]){out(feed), out(two)}, 2, s);
    TF_Output input = out(feed), output = out(sum);
    TF_Function *f = TF_GraphToFunction(g, name, 0, -1, NULL, 1, &input, 1, &output, NULL, NULL, "adds two", s);
    expect_ok(s);
    TF_DeleteGraph(g);
    return f;
}

static TF_Operation *call(TF_Graph *g, const char *function, const char *name, TF_Output x, TF_Status *s) {
    return unary(g, function, name, x, s);
}

static void a_function_is_called(void **state) {
    (void)state;
    TF_Status *s = TF_NewStatus();
    TF_Function *f = plus_two("PlusTwo", s);
    assert_string_equal(TF_FunctionName(f), "PlusTwo");
    TF_Graph *g = TF_NewGraph();
    assert_int_equal(TF_GraphNumFunctions(g), 0);
    TF_GraphCopyFunction(g, f, NULL, s);
    expect_ok(s);
    TF_GraphCopyFunction(g, f, NULL, s); /* the same again */
    expect_ok(s);
    assert_int_equal(TF_GraphNumFunctions(g), 1);
    TF_Operation *x = placeholder(g, "x", TF_INT32, s);
    TF_Operation *y = call(g, "PlusTwo", "y", out(x), s);
    assert_int_equal(TF_OperationNumOutputs(y), 1);
    assert_int_equal(TF_OperationOutputType(out(y)), TF_INT32);
    TF_Session *session = new_session(g, NULL, s);
    assert_int_equal(run_int32(session, out(x), int32_tensor(5), out(y), s), 7);
    /* One that comes later. */
    TF_Function *later = plus_two("Later", s);
    TF_GraphCopyFunction(g, later, f, s);
    expect_ok(s);
    TF_Operation *z = call(g, "Later", "z", out(y), s);
    assert_int_equal(run_int32(session, out(x), int32_tensor(5), out(z), s), 9);
    TF_Function *found[4];
    assert_int_equal(TF_GraphGetFunctions(g, found, 4, s), 2);
    expect_ok(s);
    for (int i = 0; i < 2; i++) {
        assert_true(!strcmp(TF_FunctionName(found[i]), "PlusTwo") || !strcmp(TF_FunctionName(found[i]), "Later"));
        TF_DeleteFunction(found[i]);
    }
    TF_GraphCopyFunction(g, NULL, NULL, s);
    expect_code(s, TF_INVALID_ARGUMENT, "cannot be null");
    end_session(session, s);
    TF_DeleteFunction(f);
    TF_DeleteFunction(later);
    TF_DeleteGraph(g);
    TF_DeleteStatus(s);
}

static void a_function_goes_through_a_message(void **state) {
    (void)state;
    TF_Status *s = TF_NewStatus();
    TF_Function *f = plus_two("PlusTwo", s);
    TF_FunctionSetAttrValueProto(f, "_note", "\x18\x09", 2, s); /* i: 9 */
    expect_ok(s);
    TF_FunctionSetAttrValueProto(f, "_bad", "\x0f", 1, s);
    expect_code(s, TF_INVALID_ARGUMENT, "AttrValue");
    TF_Buffer *def = TF_NewBuffer();
    TF_FunctionToFunctionDef(f, def, s);
    expect_ok(s);
    TF_Function *copy = TF_FunctionImportFunctionDef(def->data, def->length, s);
    expect_ok(s);
    assert_string_equal(TF_FunctionName(copy), "PlusTwo");
    TF_Buffer *note = TF_NewBuffer();
    TF_FunctionGetAttrValueProto(copy, "_note", note, s);
    expect_ok(s);
    assert_int_equal(note->length, 2);
    assert_memory_equal(note->data, "\x18\x09", 2);
    TF_DeleteBuffer(note);
    note = TF_NewBuffer();
    TF_FunctionGetAttrValueProto(copy, "none", note, s);
    expect_code(s, TF_INVALID_ARGUMENT, "none");
    TF_DeleteBuffer(note);
    assert_null(TF_FunctionImportFunctionDef("\x0f", 1, s));
    expect_code(s, TF_INVALID_ARGUMENT, "FunctionDef");
    /* It still works. */
    TF_Graph *g = TF_NewGraph();
    TF_GraphCopyFunction(g, copy, NULL, s);
    expect_ok(s);
    TF_Operation *x = placeholder(g, "x", TF_INT32, s), *y = call(g, "PlusTwo", "y", out(x), s);
    TF_Session *session = new_session(g, NULL, s);
    assert_int_equal(run_int32(session, out(x), int32_tensor(1), out(y), s), 3);
    end_session(session, s);
    TF_DeleteGraph(g);
    TF_DeleteBuffer(def);
    TF_DeleteFunction(f);
    TF_DeleteFunction(copy);
    TF_DeleteStatus(s);
}

static int holds(const TF_Buffer *b, const char *text) {
    return memmem(b->data, b->length, text, strlen(text)) != NULL;
}

static void names_inside_of_a_function(void **state) {
    (void)state;
    TF_Status *s = TF_NewStatus();
    TF_Graph *g = TF_NewGraph();
    TF_Operation *a = placeholder(g, "scope/A", TF_INT32, s), *b = placeholder(g, "b", TF_INT32, s);
    TF_Operation *sum = add_n(g, "sum", (TF_Output[]){out(a), out(b)}, 2, s);
    TF_Operation *neg = unary(g, "Neg", "neg", out(sum), s);
    TF_Output inputs[] = {out(a), out(b)}, outputs[] = {out(sum), out(neg)};
    const char *names[] = {"total", "negated"};
    TF_Function *f = TF_GraphToFunction(g, "F", 1, -1, NULL, 2, inputs, 2, outputs, names, NULL, NULL, s);
    expect_ok(s);
    assert_true(strncmp(TF_FunctionName(f), "F_", 2) == 0); /* with a hash */
    TF_Buffer *def = TF_NewBuffer();
    TF_FunctionToFunctionDef(f, def, s);
    assert_true(holds(def, "scope_a") && holds(def, "sum:sum:0") && holds(def, "neg:y:0") && holds(def, "total") && holds(def, "negated"));
    TF_DeleteBuffer(def);
    TF_DeleteFunction(f);
    f = TF_GraphToFunction(g, "F", 0, -1, NULL, 2, inputs, 1, outputs, NULL, NULL, NULL, s);
    expect_ok(s);
    def = TF_NewBuffer();
    TF_FunctionToFunctionDef(f, def, s);
    assert_true(holds(def, "sum_0:sum:0")); /* the result took the name */
    TF_DeleteBuffer(def);
    TF_DeleteFunction(f);
    /* Part of the graph: the sum is an argument. */
    const TF_Operation *body[] = {neg};
    f = TF_GraphToFunction(g, "F", 0, 1, body, 1, outputs, 1, &outputs[1], NULL, NULL, NULL, s);
    expect_ok(s);
    TF_DeleteFunction(f);
    f = TF_GraphToFunction(g, "F", 0, 1, body, 1, inputs, 1, &outputs[1], NULL, NULL, NULL, s);
    expect_code(s, TF_INVALID_ARGUMENT, "sum");
    assert_null(f);
    names[1] = "total";
    f = TF_GraphToFunction(g, "F", 0, -1, NULL, 2, inputs, 2, outputs, names, NULL, NULL, s);
    expect_code(s, TF_INVALID_ARGUMENT, "duplicate");
    TF_DeleteGraph(g);
    TF_DeleteStatus(s);
}

static void a_function_with_a_side_effect(void **state) {
    (void)state;
    TF_Status *s = TF_NewStatus();
    TF_Graph *g = TF_NewGraph();
    TF_Operation *handle = placeholder(g, "handle", TF_RESOURCE, s), *x = placeholder(g, "x", TF_INT32, s);
    TF_Operation *assign = binary(g, "AssignVariableOp", "assign", out(handle), out(x), s);
    TF_Operation *neg = unary(g, "Neg", "neg", out(x), s);
    TF_Output inputs[] = {out(handle), out(x)}, output = out(neg);
    const TF_Operation *controls[] = {assign};
    const char *control_names[] = {"assigned"};
    TF_Function *f = TF_GraphToFunctionWithControlOutputs(g, "SetAndNegate", 0, -1, NULL, 2, inputs, 1, &output, NULL, 1, controls, control_names, NULL, NULL, s);
    expect_ok(s);
    TF_DeleteGraph(g);
    g = TF_NewGraph();
    TF_GraphCopyFunction(g, f, NULL, s);
    TF_DeleteFunction(f);
    TF_OperationDescription *d = TF_NewOperation(g, "VarHandleOp", "v");
    TF_SetAttrType(d, "dtype", TF_INT32);
    TF_SetAttrShape(d, "shape", NULL, 0);
    TF_Operation *v = TF_FinishOperation(d, s);
    expect_ok(s);
    TF_Operation *y = binary(g, "SetAndNegate", "y", out(v), out(constant(g, "six", int32_tensor(6), s)), s);
    d = TF_NewOperation(g, "ReadVariableOp", "read");
    TF_AddInput(d, out(v));
    TF_SetAttrType(d, "dtype", TF_INT32);
    TF_Operation *read = TF_FinishOperation(d, s);
    TF_Session *session = new_session(g, NULL, s);
    assert_int_equal(run_int32(session, out(y), NULL, out(y), s), -6);
    assert_int_equal(run_int32(session, out(read), NULL, out(read), s), 6);
    end_session(session, s);
    TF_DeleteGraph(g);
    TF_DeleteStatus(s);
}

/* ---- Gradients of their own ---- */

static TF_Function *float_function(const char *name, int inputs, TF_Output (*body)(TF_Graph *, const TF_Output *, TF_Status *), TF_Status *s) {
    static const char *const names[] = {"a", "b"};
    TF_Graph *g = TF_NewGraph();
    TF_Output in[2], result;
    for (int i = 0; i < inputs; i++) in[i] = out(placeholder(g, names[i], TF_FLOAT, s));
    result = body(g, in, s);
    TF_Function *f = TF_GraphToFunction(g, name, 0, -1, NULL, inputs, in, 1, &result, NULL, NULL, NULL, s);
    expect_ok(s);
    TF_DeleteGraph(g);
    return f;
}

static TF_Output square_of(TF_Graph *g, const TF_Output *in, TF_Status *s) {
    return out(unary(g, "Square", "square", in[0], s));
}

/* Not what the body gives: 100 dy. */
static TF_Output hundredfold(TF_Graph *g, const TF_Output *in, TF_Status *s) {
    return out(binary(g, "Mul", "times", in[1], out(constant(g, "hundred", float_tensor(100), s)), s));
}

static TF_Operation *partitioned_call(TF_Graph *g, const char *function, const char *name, TF_Output x, TF_Status *s) {
    TF_DataType type = TF_FLOAT;
    TF_OperationDescription *d = TF_NewOperation(g, "PartitionedCall", name);
    TF_AddInputList(d, &x, 1);
    TF_SetAttrTypeList(d, "Tin", &type, 1);
    TF_SetAttrTypeList(d, "Tout", &type, 1);
    TF_SetAttrFuncName(d, "f", function, strlen(function));
    TF_Operation *op = TF_FinishOperation(d, s);
    expect_ok(s);
    return op;
}

static void a_gradient_that_is_given_is_used(void **state) {
    (void)state;
    TF_Status *s = TF_NewStatus();
    TF_Function *square = float_function("Squared", 1, square_of, s), *gradient = float_function("SquaredGrad", 2, hundredfold, s);
    TF_Graph *g = TF_NewGraph();
    TF_GraphCopyFunction(g, square, gradient, s);
    expect_ok(s);
    TF_GraphCopyFunction(g, square, gradient, s); /* the same again */
    expect_ok(s);
    assert_int_equal(TF_GraphNumFunctions(g), 2);
    TF_GraphCopyFunction(g, square, square, s);
    expect_code(s, TF_INVALID_ARGUMENT, "already has gradient function 'SquaredGrad'");
    TF_Operation *x = placeholder(g, "x", TF_FLOAT, s);
    TF_Output y = out(unary(g, "Neg", "neg", out(partitioned_call(g, "Squared", "y", out(x), s)), s)), from = out(x), dx;
    TF_AddGradients(g, &y, 1, &from, 1, NULL, s, &dx);
    expect_ok(s);
    TF_Buffer *def = TF_NewBuffer();
    TF_GraphToGraphDef(g, def, s);
    expect_ok(s);
    TF_Graph *copy = TF_NewGraph(); /* the library goes with the graph */
    TF_ImportGraphDefOptions *options = TF_NewImportGraphDefOptions();
    TF_GraphImportGraphDef(copy, def, options, s);
    expect_ok(s);
    TF_Graph *graphs[] = {g, copy};
    for (int i = 0; i < 2; i++) {
        TF_Output fed = out(TF_GraphOperationByName(graphs[i], "x")), got = {TF_GraphOperationByName(graphs[i], TF_OperationName(dx.oper)), dx.index};
        TF_Tensor *value = float_tensor(3), *result = NULL;
        TF_Session *session = new_session(graphs[i], NULL, s);
        TF_SessionRun(session, NULL, &fed, &value, 1, &got, &result, 1, NULL, 0, NULL, s);
        expect_ok(s);
        assert_float_equal(float_of(result), -100, 1e-4); /* the body's own would be -6 */
        TF_DeleteTensor(value);
        TF_DeleteTensor(result);
        end_session(session, s);
    }
    TF_DeleteImportGraphDefOptions(options);
    TF_DeleteBuffer(def);
    TF_DeleteGraph(copy);
    TF_DeleteGraph(g);
    TF_DeleteFunction(square);
    TF_DeleteFunction(gradient);
    TF_DeleteStatus(s);
}

/* ---- Loops ---- */

/* while (a < limit) { a = a + b; b = b } */
static TF_WhileParams begin_loop(TF_Graph *g, TF_Output *inputs, int32_t limit, TF_Status *s) {
    TF_WhileParams p = TF_NewWhile(g, inputs, 2, s);
    expect_ok(s);
    assert_int_equal(p.ninputs, 2);
    TF_Operation *ten = constant(p.cond_graph, "limit", int32_tensor(limit), s);
    p.cond_output = out(binary(p.cond_graph, "Less", "less", p.cond_inputs[0], out(ten), s));
    p.body_outputs[0] = out(binary(p.body_graph, "AddV2", "add", p.body_inputs[0], p.body_inputs[1], s));
    p.body_outputs[1] = p.body_inputs[1];
    p.name = "loop";
    return p;
}

static void a_loop_runs(void **state) {
    (void)state;
    TF_Status *s = TF_NewStatus();
    TF_Graph *g = TF_NewGraph();
    TF_Operation *a = placeholder(g, "a", TF_INT32, s), *b = placeholder(g, "b", TF_INT32, s);
    TF_Output inputs[] = {out(a), out(b)}, outputs[2];
    TF_WhileParams p = begin_loop(g, inputs, 20, s);
    TF_FinishWhile(&p, s, outputs);
    expect_ok(s);
    assert_string_equal(TF_OperationOpType(outputs[0].oper), "Exit");
    TF_Session *session = new_session(g, NULL, s);
    TF_Tensor *values[] = {int32_tensor(1), int32_tensor(6)}, *results[2];
    TF_SessionRun(session, NULL, inputs, values, 2, outputs, results, 2, NULL, 0, NULL, s);
    expect_ok(s);
    assert_int_equal(int32_of(results[0]), 25);
    assert_int_equal(int32_of(results[1]), 6);
    for (int i = 0; i < 2; i++) {
        TF_DeleteTensor(values[i]);
        TF_DeleteTensor(results[i]);
    }
    end_session(session, s);
    TF_DeleteGraph(g);
    TF_DeleteStatus(s);
}

static void a_body_may_hold_constants(void **state) {
    (void)state;
    TF_Status *s = TF_NewStatus();
    TF_Graph *g = TF_NewGraph();
    TF_Operation *a = constant(g, "a", int32_tensor(1), s);
    TF_Output input = out(a), output;
    TF_WhileParams p = TF_NewWhile(g, &input, 1, s);
    expect_ok(s);
    p.cond_output = out(binary(p.cond_graph, "Less", "less", p.cond_inputs[0], out(constant(p.cond_graph, "c", int32_tensor(100), s)), s));
    p.body_outputs[0] = out(binary(p.body_graph, "Mul", "mul", p.body_inputs[0], out(constant(p.body_graph, "three", int32_tensor(3), s)), s));
    p.name = "triple";
    TF_FinishWhile(&p, s, &output);
    expect_ok(s);
    TF_Session *session = new_session(g, NULL, s);
    assert_int_equal(run_int32(session, output, NULL, output, s), 243);
    end_session(session, s);
    TF_DeleteGraph(g);
    TF_DeleteStatus(s);
}

/* What is taken away from a loop before it is finished. */
enum { NAME, COND_OUTPUT, BODY_OUTPUT };

static void finish_without(int part, const char *text) {
    TF_Status *s = TF_NewStatus();
    TF_Graph *g = TF_NewGraph();
    TF_Operation *a = placeholder(g, "a", TF_INT32, s), *b = placeholder(g, "b", TF_INT32, s);
    TF_Output inputs[] = {out(a), out(b)}, outputs[2];
    TF_WhileParams p = begin_loop(g, inputs, 3, s);
    if (part == NAME) p.name = NULL;
    if (part == COND_OUTPUT) p.cond_output.oper = NULL;
    if (part == BODY_OUTPUT) p.body_outputs[1].oper = NULL;
    TF_FinishWhile(&p, s, outputs);
    expect_code(s, TF_INVALID_ARGUMENT, text);
    TF_DeleteGraph(g);
    TF_DeleteStatus(s);
}

static void loops_that_are_not_whole(void **state) {
    (void)state;
    finish_without(NAME, "name");
    finish_without(COND_OUTPUT, "cond_output");
    finish_without(BODY_OUTPUT, "body_outputs");
    TF_Status *s = TF_NewStatus();
    TF_Graph *g = TF_NewGraph();
    TF_Operation *a = placeholder(g, "a", TF_INT32, s), *b = placeholder(g, "b", TF_INT32, s);
    TF_Output inputs[] = {out(a), out(b)};
    TF_WhileParams p = begin_loop(g, inputs, 3, s);
    TF_AbortWhile(&p);
    TF_NewWhile(g, inputs, 0, s);
    expect_code(s, TF_INVALID_ARGUMENT, "at least one input");
    TF_DeleteGraph(g);
    TF_DeleteStatus(s);
}

/* ---- Gradients ---- */

static void derivatives_are_added(void **state) {
    (void)state;
    TF_Status *s = TF_NewStatus();
    TF_Graph *g = TF_NewGraph();
    TF_Operation *x = placeholder(g, "x", TF_FLOAT, s), *other = placeholder(g, "other", TF_FLOAT, s);
    TF_Operation *square = unary(g, "Square", "square", out(x), s);
    TF_Operation *y = unary(g, "Exp", "y", out(square), s);
    TF_Output ys = out(y), xs[] = {out(x), out(square), out(other)}, dys[3];
    TF_AddGradients(g, &ys, 1, xs, 2, NULL, s, dys);
    expect_ok(s);
    TF_Session *session = new_session(g, NULL, s);
    TF_Tensor *t = run_one(session, out(x), float_tensor(0.5f), dys[0], s);
    expect_ok(s);
    assert_true(float_of(t) > 1.2839f && float_of(t) < 1.2842f); /* 2x e^(x^2) */
    TF_DeleteTensor(t);
    t = run_one(session, out(x), float_tensor(0.5f), dys[1], s);
    expect_ok(s);
    assert_true(float_of(t) > 1.2839f && float_of(t) < 1.2842f); /* e^(x^2) */
    TF_DeleteTensor(t);
    /* With what arrives at y, and a prefix. */
    TF_Operation *ten = constant(g, "ten", float_tensor(10), s);
    TF_Output dx = out(ten);
    TF_AddGradientsWithPrefix(g, "again", &ys, 1, xs, 1, &dx, s, dys);
    expect_ok(s);
    assert_true(strncmp(TF_OperationName(dys[0].oper), "again/", 6) == 0);
    t = run_one(session, out(x), float_tensor(0.5f), dys[0], s);
    expect_ok(s);
    assert_true(float_of(t) > 12.839f && float_of(t) < 12.842f);
    TF_DeleteTensor(t);
    TF_AddGradientsWithPrefix(g, "again", &ys, 1, xs, 1, NULL, s, dys);
    expect_code(s, TF_INVALID_ARGUMENT, "again");
    end_session(session, s);
    TF_DeleteGraph(g);
    TF_DeleteStatus(s);
}

/* ---- Constants ---- */

static void constants_are_evaluated(void **state) {
    (void)state;
    TF_Status *s = TF_NewStatus();
    TF_Graph *g = TF_NewGraph();
    TF_Operation *c = constant(g, "c", float_tensor(1.5f), s);
    TF_Operation *sum = add_n(g, "sum", (TF_Output[]){out(c), out(c)}, 2, s);
    TF_Operation *feed = placeholder(g, "feed", TF_FLOAT, s);
    TF_Operation *mixed = add_n(g, "mixed", (TF_Output[]){out(c), out(feed)}, 2, s);
    TF_Tensor *t = NULL;
    assert_int_equal(TF_TryEvaluateConstant(g, out(sum), &t, s), 1);
    expect_ok(s);
    assert_true(float_of(t) == 3);
    TF_DeleteTensor(t);
    t = NULL;
    assert_int_equal(TF_TryEvaluateConstant(g, out(mixed), &t, s), 0);
    expect_ok(s);
    assert_null(t);
    /* The shape of something that is not constant. */
    TF_GraphSetTensorShape(g, out(feed), (int64_t[]){4, 2}, 2, s);
    TF_Operation *shape = unary(g, "Shape", "shape", out(feed), s);
    assert_int_equal(TF_TryEvaluateConstant(g, out(shape), &t, s), 1);
    assert_int_equal(((int32_t *)TF_TensorData(t))[0], 4);
    TF_DeleteTensor(t);
    TF_DeleteGraph(g);
    TF_DeleteStatus(s);
}

/* ---- What the library knows ---- */

static void ops_and_kernels_are_listed(void **state) {
    (void)state;
    TF_Status *s = TF_NewStatus();
    TF_Buffer *b = TF_GetAllOpList();
    assert_true(b->length > 10000);
    assert_true(holds(b, "MatMul") && holds(b, "transpose_a") && holds(b, "AssignVariableOp"));
    TF_DeleteBuffer(b);
    b = TF_GetAllRegisteredKernels(s);
    expect_ok(s);
    assert_true(holds(b, "MatMul") && holds(b, "CPU"));
    TF_DeleteBuffer(b);
    b = TF_GetRegisteredKernelsForOp("Relu", s);
    expect_ok(s);
    assert_true(b->length > 0 && !holds(b, "MatMul"));
    TF_DeleteBuffer(b);
    b = TF_GetRegisteredKernelsForOp("NoSuchOp", s);
    expect_ok(s);
    assert_int_equal(b->length, 0);
    TF_DeleteBuffer(b);
    assert_null(TF_LoadLibrary("no_such_library.so", s));
    assert_true(TF_GetCode(s) != TF_OK);
    TF_RegisterFilesystemPlugin("no_such_library.so", s);
    assert_true(TF_GetCode(s) != TF_OK);
    TF_DeleteLibraryHandle(NULL);
    TF_DeleteStatus(s);
}

static void descriptions_of_ops(void **state) {
    (void)state;
    TF_Status *s = TF_NewStatus();
    TF_Buffer *ops = TF_GetAllOpList();
    TF_ApiDefMap *map = TF_NewApiDefMap(ops, s);
    expect_ok(s);
    TF_ApiDefMapPut(map, "op: < nonsense", 14, s);
    expect_code(s, TF_INVALID_ARGUMENT, NULL);
    const char *text = "op: <\n  graph_op_name: \"Relu\"\n  summary: \"a new summary\"\n  in_arg { name: \"features\" rename_to: \"x\" }\n  description: <<END\nTwo\nlines.\nEND\n>";
    TF_ApiDefMapPut(map, text, strlen(text), s);
    expect_ok(s);
    TF_Buffer *def = TF_ApiDefMapGet(map, "Relu", 4, s);
    expect_ok(s);
    assert_true(holds(def, "Relu") && holds(def, "a new summary") && holds(def, "Two\nlines.") && holds(def, "activations"));
    TF_DeleteBuffer(def);
    TF_ApiDefMapPut(map, text, strlen(text), s);
    expect_code(s, TF_FAILED_PRECONDITION, "TF_ApiDefMapGet");
    TF_DeleteApiDefMap(map);
    TF_DeleteBuffer(ops);
    TF_DeleteStatus(s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_function_is_called),
        cmocka_unit_test(a_function_goes_through_a_message),
        cmocka_unit_test(names_inside_of_a_function),
        cmocka_unit_test(a_function_with_a_side_effect),
        cmocka_unit_test(a_gradient_that_is_given_is_used),
        cmocka_unit_test(a_loop_runs),
        cmocka_unit_test(a_body_may_hold_constants),
        cmocka_unit_test(loops_that_are_not_whole),
        cmocka_unit_test(derivatives_are_added),
        cmocka_unit_test(constants_are_evaluated),
        cmocka_unit_test(ops_and_kernels_are_listed),
        cmocka_unit_test(descriptions_of_ops),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
