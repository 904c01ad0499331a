/* graph_test.c: operations made, looked at and changed; graphs written out. */
#include "capi_test.h"

static void an_operation_says_what_it_is(void **state) {
    (void)state;
    TF_Status *s = TF_NewStatus();
    TF_Graph *g = TF_NewGraph();
    TF_Operation *feed = placeholder(g, "feed", TF_INT32, s);
    TF_Operation *three = constant(g, "scalar", int32_tensor(3), s);
    TF_Operation *sum = add_n(g, "add", (TF_Output[]){out(feed), out(three)}, 2, s);
    assert_string_equal(TF_OperationName(sum), "add");
    assert_string_equal(TF_OperationOpType(sum), "AddN");
    assert_string_equal(TF_OperationDevice(sum), "");
    assert_int_equal(TF_OperationNumOutputs(sum), 1);
    assert_int_equal(TF_OperationOutputType(out(sum)), TF_INT32);
    assert_int_equal(TF_OperationOutputListLength(sum, "sum", s), 1);
    expect_ok(s);
    assert_int_equal(TF_OperationInputListLength(sum, "inputs", s), 2);
    expect_ok(s);
    TF_OperationInputListLength(sum, "bogus", s);
    expect_code(s, TF_INVALID_ARGUMENT, NULL);
    assert_int_equal(TF_OperationNumInputs(sum), 2);
    assert_int_equal(TF_OperationInputType((TF_Input){sum, 1}), TF_INT32);
    TF_Output from = TF_OperationInput((TF_Input){sum, 1});
    assert_ptr_equal(from.oper, three);
    assert_int_equal(from.index, 0);
    TF_Output all[2];
    TF_OperationAllInputs(sum, all, 2);
    assert_ptr_equal(all[0].oper, feed);
    assert_ptr_equal(all[1].oper, three);
    assert_int_equal(TF_OperationOutputNumConsumers(out(sum)), 0);
    assert_int_equal(TF_OperationNumControlInputs(sum), 0);
    assert_int_equal(TF_OperationNumControlOutputs(sum), 0);
    TF_DeleteGraph(g);
    TF_DeleteStatus(s);
}

static void outputs_know_their_consumers(void **state) {
    (void)state;
    TF_Status *s = TF_NewStatus();
    TF_Graph *g = TF_NewGraph();
    TF_Operation *feed = placeholder(g, "feed", TF_INT32, s);
    TF_Operation *sum = add_n(g, "add", (TF_Output[]){out(feed), out(feed)}, 2, s);
    TF_Operation *neg = unary(g, "Neg", "neg", out(feed), s);
    TF_Input consumers[4];
    assert_int_equal(TF_OperationOutputNumConsumers(out(feed)), 3);
    assert_int_equal(TF_OperationOutputConsumers(out(feed), consumers, 4), 3);
    int of_sum = 0, of_neg = 0;
    for (int i = 0; i < 3; i++) {
        of_sum += consumers[i].oper == sum;
        of_neg += consumers[i].oper == neg && consumers[i].index == 0;
    }
    assert_int_equal(of_sum, 2);
    assert_int_equal(of_neg, 1);
    assert_int_equal(TF_OperationOutputConsumers(out(neg), consumers, 4), 0);
    TF_DeleteGraph(g);
    TF_DeleteStatus(s);
}

static void control_edges_go_both_ways(void **state) {
    (void)state;
    TF_Status *s = TF_NewStatus();
    TF_Graph *g = TF_NewGraph();
    TF_Operation *a = placeholder(g, "a", TF_INT32, s), *b = placeholder(g, "b", TF_INT32, s);
    TF_OperationDescription *d = TF_NewOperation(g, "NoOp", "after");
    TF_AddControlInput(d, a);
    TF_AddControlInput(d, b);
    TF_Operation *after = TF_FinishOperation(d, s);
    expect_ok(s);
    TF_Operation *found[3];
    assert_int_equal(TF_OperationNumControlInputs(after), 2);
    assert_int_equal(TF_OperationGetControlInputs(after, found, 2), 2);
    assert_true((found[0] == a && found[1] == b) || (found[0] == b && found[1] == a));
    assert_int_equal(TF_OperationNumControlOutputs(a), 1);
    assert_int_equal(TF_OperationGetControlOutputs(a, found, 3), 1);
    assert_ptr_equal(found[0], after);
    TF_RemoveAllControlInputs(g, after);
    assert_int_equal(TF_OperationNumControlInputs(after), 0);
    assert_int_equal(TF_OperationNumControlOutputs(a), 0);
    TF_AddOperationControlInput(g, after, b);
    assert_int_equal(TF_OperationNumControlInputs(after), 1);
    assert_int_equal(TF_OperationNumControlOutputs(b), 1);
    TF_SetRequestedDevice(g, after, "/device:CPU:0");
    assert_string_equal(TF_OperationDevice(after), "/device:CPU:0");
    TF_DeleteGraph(g);
    TF_DeleteStatus(s);
}

static TF_Operation *finish(TF_OperationDescription *d, TF_Status *s) {
    return TF_FinishOperation(d, s);
}

static void mistakes_are_told(void **state) {
    (void)state;
    TF_Status *s = TF_NewStatus();
    TF_Graph *g = TF_NewGraph();
    TF_Operation *i = placeholder(g, "i", TF_INT32, s), *f = placeholder(g, "f", TF_FLOAT, s);
    assert_null(finish(TF_NewOperation(g, "NoSuchOp", "x"), s));
    expect_code(s, TF_INVALID_ARGUMENT, "NoSuchOp");
    assert_null(finish(TF_NewOperation(g, "Placeholder", "x"), s)); /* no dtype */
    expect_code(s, TF_INVALID_ARGUMENT, "dtype");
    TF_OperationDescription *d = TF_NewOperation(g, "NoOp", "i"); /* the name is taken */
    assert_null(finish(d, s));
    expect_code(s, TF_INVALID_ARGUMENT, "Duplicate node name in graph: 'i'");
    d = TF_NewOperation(g, "Add", "one_input");
    TF_AddInput(d, out(i));
    assert_null(finish(d, s));
    expect_code(s, TF_INVALID_ARGUMENT, "1 inputs specified of 2 inputs in Op");
    d = TF_NewOperation(g, "Neg", "three_inputs");
    TF_AddInput(d, out(i));
    TF_AddInput(d, out(i));
    assert_null(finish(d, s));
    expect_code(s, TF_INVALID_ARGUMENT, "More Input() calls than the 1 input_args");
    d = TF_NewOperation(g, "Add", "mixed");
    TF_AddInput(d, out(i));
    TF_AddInput(d, out(f));
    assert_null(finish(d, s));
    expect_code(s, TF_INVALID_ARGUMENT, "mixed");
    d = TF_NewOperation(g, "AddN", "not_a_list");
    TF_AddInput(d, out(i));
    assert_null(finish(d, s));
    expect_code(s, TF_INVALID_ARGUMENT, "Single tensor passed to 'inputs', expected list");
    d = TF_NewOperation(g, "Neg", "a_list");
    TF_AddInputList(d, (TF_Output[]){out(i)}, 1);
    assert_null(finish(d, s));
    expect_code(s, TF_INVALID_ARGUMENT, "List provided to input 'x' when single Tensor expected");
    d = TF_NewOperation(g, "LogicalNot", "fixed_type");
    TF_AddInput(d, out(i));
    assert_null(finish(d, s));
    expect_code(s, TF_INVALID_ARGUMENT, "expected bool");
    d = TF_NewOperation(g, "Neg", "wrong_type");
    TF_AddInput(d, out(i));
    TF_SetAttrType(d, "T", TF_FLOAT);
    assert_null(finish(d, s));
    expect_code(s, TF_INVALID_ARGUMENT, "T");
    d = TF_NewOperation(g, "LogicalNot", "no_such_output");
    TF_AddInput(d, (TF_Output){i, 3});
    assert_null(finish(d, s));
    assert_true(TF_GetCode(s) != TF_OK);
    d = TF_NewOperation(g, "MatMul", "attr_of_another_kind");
    TF_AddInput(d, out(f));
    TF_AddInput(d, out(f));
    TF_SetAttrInt(d, "transpose_a", 1);
    assert_null(finish(d, s));
    expect_code(s, TF_INVALID_ARGUMENT, "AttrValue had value with type 'int' when 'bool' expected");
    /* Nothing of these is left behind. */
    size_t pos = 0;
    int count = 0;
    while (TF_GraphNextOperation(g, &pos)) count++;
    assert_int_equal(count, 2);
    assert_int_equal(TF_OperationOutputNumConsumers(out(i)), 0);
    TF_DeleteGraph(g);
    TF_DeleteStatus(s);
}

static void operations_are_found_by_name_and_in_turn(void **state) {
    (void)state;
    TF_Status *s = TF_NewStatus();
    TF_Graph *g = TF_NewGraph();
    TF_Operation *a = placeholder(g, "a", TF_INT32, s), *b = unary(g, "Neg", "scope/b", out(a), s);
    assert_ptr_equal(TF_GraphOperationByName(g, "scope/b"), b);
    assert_null(TF_GraphOperationByName(g, "c"));
    size_t pos = 0;
    TF_Operation *first = TF_GraphNextOperation(g, &pos), *second = TF_GraphNextOperation(g, &pos);
    assert_true((first == a && second == b) || (first == b && second == a));
    assert_null(TF_GraphNextOperation(g, &pos));
    TF_DeleteGraph(g);
    TF_DeleteStatus(s);
}

/* Finds bytes in bytes. */
static int holds(const TF_Buffer *b, const char *text) {
    return memmem(b->data, b->length, text, strlen(text)) != NULL;
}

static void graphs_and_nodes_are_written_out(void **state) {
    (void)state;
    TF_Status *s = TF_NewStatus();
    TF_Graph *g = TF_NewGraph();
    TF_Operation *a = placeholder(g, "the_feed", TF_INT32, s);
    TF_Operation *b = unary(g, "Neg", "the_neg", out(a), s);
    TF_Buffer *def = TF_NewBuffer();
    TF_GraphToGraphDef(g, def, s);
    expect_ok(s);
    assert_true(holds(def, "the_feed") && holds(def, "the_neg") && holds(def, "Placeholder"));
    TF_GraphToGraphDef(g, def, s); /* not empty any more */
    expect_code(s, TF_INVALID_ARGUMENT, "non-empty TF_Buffer");
    TF_DeleteBuffer(def);
    def = TF_NewBuffer();
    TF_OperationToNodeDef(b, def, s);
    expect_ok(s);
    assert_true(holds(def, "the_neg") && holds(def, "Neg") && holds(def, "the_feed"));
    TF_DeleteBuffer(def);
    def = TF_NewBuffer();
    TF_GraphGetOpDef(g, "MatMul", def, s);
    expect_ok(s);
    assert_true(holds(def, "transpose_a") && holds(def, "product"));
    TF_DeleteBuffer(def);
    def = TF_NewBuffer();
    TF_GraphGetOpDef(g, "NoSuchOp", def, s);
    expect_code(s, TF_NOT_FOUND, "NoSuchOp");
    TF_DeleteBuffer(def);
    def = TF_NewBuffer();
    TF_GraphVersions(g, def, s);
    expect_ok(s);
    assert_int_equal(((const unsigned char *)def->data)[0], 0x08); /* producer */
    assert_true(def->length >= 3);
    TF_DeleteBuffer(def);
    TF_DeleteGraph(g);
    TF_DeleteStatus(s);
}

static void shapes_are_known_as_far_as_they_are(void **state) {
    (void)state;
    TF_Status *s = TF_NewStatus();
    TF_Graph *g = TF_NewGraph();
    TF_Operation *feed = placeholder(g, "feed", TF_INT32, s);
    assert_int_equal(TF_GraphGetTensorNumDims(g, out(feed), s), -1);
    expect_ok(s);
    int64_t dims[4] = {0};
    TF_GraphSetTensorShape(g, out(feed), NULL, -1, s);
    expect_ok(s);
    TF_GraphSetTensorShape(g, out(feed), (int64_t[]){2, -1}, 2, s);
    expect_ok(s);
    assert_int_equal(TF_GraphGetTensorNumDims(g, out(feed), s), 2);
    TF_GraphGetTensorShape(g, out(feed), dims, 2, s);
    expect_ok(s);
    assert_int_equal(dims[0], 2);
    assert_int_equal(dims[1], -1);
    TF_GraphSetTensorShape(g, out(feed), (int64_t[]){2, 3}, 2, s);
    expect_ok(s);
    TF_GraphSetTensorShape(g, out(feed), (int64_t[]){3, 3}, 2, s); /* contradicts */
    expect_code(s, TF_INVALID_ARGUMENT, NULL);
    TF_GraphGetTensorShape(g, out(feed), dims, 5, s);
    expect_code(s, TF_INVALID_ARGUMENT, NULL);
    TF_GraphGetTensorShape(g, out(feed), dims, 2, s);
    assert_int_equal(dims[1], 3);
    /* What follows from it, and what contradicts it. */
    TF_Operation *neg = unary(g, "Neg", "neg", out(feed), s);
    TF_GraphGetTensorShape(g, out(neg), dims, 2, s);
    expect_ok(s);
    assert_int_equal(dims[0], 2);
    assert_int_equal(dims[1], 3);
    TF_Operation *matrix = constant(g, "matrix", tensor_of(TF_INT32, (int64_t[]){4, 5}, 2, (int32_t[20]){0}, 80), s);
    TF_OperationDescription *d = TF_NewOperation(g, "MatMul", "bad");
    TF_AddInput(d, out(neg));
    TF_AddInput(d, out(matrix));
    assert_null(TF_FinishOperation(d, s));
    expect_code(s, TF_INVALID_ARGUMENT, "must be equal");
    assert_null(TF_GraphOperationByName(g, "bad"));
    TF_DeleteGraph(g);
    TF_DeleteStatus(s);
}

static void handles_know_what_they_point_to(void **state) {
    (void)state;
    TF_Status *s = TF_NewStatus();
    TF_Graph *g = TF_NewGraph();
    TF_OperationDescription *d = TF_NewOperation(g, "VarHandleOp", "v");
    TF_SetAttrType(d, "dtype", TF_FLOAT);
    TF_SetAttrShape(d, "shape", (int64_t[]){5}, 1);
    TF_Operation *v = TF_FinishOperation(d, s);
    expect_ok(s);
    TF_Buffer *data = TF_GetHandleShapeAndType(g, out(v));
    assert_true(data->length > 2);
    TF_Operation *feed = placeholder(g, "feed", TF_RESOURCE, s);
    TF_SetHandleShapeAndType(g, out(feed), data->data, data->length, s);
    expect_ok(s);
    TF_DeleteBuffer(data);
    d = TF_NewOperation(g, "ReadVariableOp", "read");
    TF_AddInput(d, out(feed));
    TF_SetAttrType(d, "dtype", TF_FLOAT);
    TF_Operation *read = TF_FinishOperation(d, s);
    expect_ok(s);
    assert_int_equal(TF_GraphGetTensorNumDims(g, out(read), s), 1);
    int64_t dim = 0;
    TF_GraphGetTensorShape(g, out(read), &dim, 1, s);
    assert_int_equal(dim, 5);
    TF_SetRequireShapeInferenceFns(g, true);
    TF_DeleteGraph(g);
    TF_DeleteStatus(s);
}

static void an_edge_can_be_moved(void **state) {
    (void)state;
    TF_Status *s = TF_NewStatus();
    TF_Graph *g = TF_NewGraph();
    TF_Operation *two = constant(g, "two", int32_tensor(2), s), *three = constant(g, "three", int32_tensor(3), s);
    TF_Operation *neg = unary(g, "Neg", "neg", out(two), s);
    TF_UpdateEdge(g, out(three), (TF_Input){neg, 0}, s);
    expect_ok(s);
    assert_ptr_equal(TF_OperationInput((TF_Input){neg, 0}).oper, three);
    assert_int_equal(TF_OperationOutputNumConsumers(out(two)), 0);
    assert_int_equal(TF_OperationOutputNumConsumers(out(three)), 1);
    TF_UpdateEdge(g, out(three), (TF_Input){neg, 4}, s);
    expect_code(s, TF_OUT_OF_RANGE, NULL);
    TF_Session *session = new_session(g, NULL, s);
    assert_int_equal(run_int32(session, out(neg), NULL, out(neg), s), -3);
    end_session(session, s);
    TF_DeleteGraph(g);
    TF_DeleteStatus(s);
}

static void colocation_is_an_attribute(void **state) {
    (void)state;
    TF_Status *s = TF_NewStatus();
    TF_Graph *g = TF_NewGraph();
    TF_Operation *a = placeholder(g, "a", TF_INT32, s), *b = placeholder(g, "b", TF_INT32, s);
    TF_OperationDescription *d = TF_NewOperation(g, "Neg", "neg");
    TF_AddInput(d, out(a));
    TF_ColocateWith(d, b);
    TF_ColocateWith(d, a);
    TF_Operation *neg = TF_FinishOperation(d, s);
    expect_ok(s);
    TF_AttrMetadata m = TF_OperationGetAttrMetadata(neg, "_class", s);
    expect_ok(s);
    assert_int_equal(m.is_list, 1);
    assert_int_equal(m.list_size, 2);
    void *values[2];
    size_t lengths[2];
    char storage[32];
    TF_OperationGetAttrStringList(neg, "_class", values, lengths, 2, storage, sizeof storage, s);
    expect_ok(s);
    assert_int_equal(lengths[0], 6);
    assert_memory_equal(values[0], "loc:@a", 6);
    assert_memory_equal(values[1], "loc:@b", 6);
    TF_DeleteGraph(g);
    TF_DeleteStatus(s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_operation_says_what_it_is),
        cmocka_unit_test(outputs_know_their_consumers),
        cmocka_unit_test(control_edges_go_both_ways),
        cmocka_unit_test(mistakes_are_told),
        cmocka_unit_test(operations_are_found_by_name_and_in_turn),
        cmocka_unit_test(graphs_and_nodes_are_written_out),
        cmocka_unit_test(shapes_are_known_as_far_as_they_are),
        cmocka_unit_test(handles_know_what_they_point_to),
        cmocka_unit_test(an_edge_can_be_moved),
        cmocka_unit_test(colocation_is_an_attribute),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
