/* import_test.c: GraphDefs imported: names, mapped inputs, control edges, what comes back. */
#include "capi_test.h"

typedef struct Fixture {
    TF_Status *s;
    TF_Graph *g;
    TF_Buffer *def; /* feed -> neg, scalar -> sum = feed + scalar, after ^feed */
    TF_ImportGraphDefOptions *o;
} Fixture;

static Fixture start(void) {
    Fixture f = {TF_NewStatus(), TF_NewGraph(), TF_NewBuffer(), TF_NewImportGraphDefOptions()};
    TF_Graph *from = TF_NewGraph();
    TF_Operation *feed = placeholder(from, "feed", TF_INT32, f.s);
    TF_Operation *scalar = constant(from, "scalar", int32_tensor(3), f.s);
    unary(from, "Neg", "neg", out(feed), f.s);
    add_n(from, "sum", (TF_Output[]){out(feed), out(scalar)}, 2, f.s);
    TF_OperationDescription *d = TF_NewOperation(from, "NoOp", "after");
    TF_AddControlInput(d, feed);
    TF_FinishOperation(d, f.s);
    expect_ok(f.s);
    TF_GraphToGraphDef(from, f.def, f.s);
    expect_ok(f.s);
    TF_DeleteGraph(from);
    return f;
}

static void end(Fixture *f) {
    TF_DeleteImportGraphDefOptions(f->o);
    TF_DeleteBuffer(f->def);
    TF_DeleteGraph(f->g);
    TF_DeleteStatus(f->s);
}

static int count_operations(TF_Graph *g) {
    size_t pos = 0;
    int n = 0;
    while (TF_GraphNextOperation(g, &pos)) n++;
    return n;
}

static void names_get_a_prefix(void **state) {
    (void)state;
    Fixture f = start();
    TF_ImportGraphDefOptionsSetPrefix(f.o, "imported");
    TF_GraphImportGraphDef(f.g, f.def, f.o, f.s);
    expect_ok(f.s);
    TF_Operation *feed = TF_GraphOperationByName(f.g, "imported/feed"), *neg = TF_GraphOperationByName(f.g, "imported/neg");
    assert_non_null(feed);
    assert_non_null(neg);
    assert_null(TF_GraphOperationByName(f.g, "feed"));
    assert_ptr_equal(TF_OperationInput((TF_Input){neg, 0}).oper, feed);
    assert_int_equal(TF_OperationOutputNumConsumers(out(feed)), 2);
    assert_int_equal(TF_OperationNumControlOutputs(feed), 1);
    TF_Session *session = new_session(f.g, NULL, f.s);
    assert_int_equal(run_int32(session, out(feed), int32_tensor(2), out(TF_GraphOperationByName(f.g, "imported/sum")), f.s), 5);
    end_session(session, f.s);
    end(&f);
}

static void names_are_made_unique(void **state) {
    (void)state;
    Fixture f = start();
    TF_GraphImportGraphDef(f.g, f.def, f.o, f.s);
    expect_ok(f.s);
    TF_GraphImportGraphDef(f.g, f.def, f.o, f.s);
    expect_code(f.s, TF_INVALID_ARGUMENT, "already exists");
    TF_ImportGraphDefOptionsSetUniquifyNames(f.o, 1);
    TF_GraphImportGraphDef(f.g, f.def, f.o, f.s);
    expect_ok(f.s);
    TF_Operation *neg = TF_GraphOperationByName(f.g, "neg_1");
    assert_non_null(neg);
    assert_string_equal(TF_OperationName(TF_OperationInput((TF_Input){neg, 0}).oper), "feed_1");
    TF_DeleteImportGraphDefOptions(f.o);
    f.o = TF_NewImportGraphDefOptions();
    TF_ImportGraphDefOptionsSetPrefix(f.o, "p");
    TF_ImportGraphDefOptionsSetUniquifyPrefix(f.o, 1);
    TF_GraphImportGraphDef(f.g, f.def, f.o, f.s);
    expect_ok(f.s);
    TF_GraphImportGraphDef(f.g, f.def, f.o, f.s);
    expect_ok(f.s);
    assert_non_null(TF_GraphOperationByName(f.g, "p/neg"));
    assert_non_null(TF_GraphOperationByName(f.g, "p_1/neg"));
    end(&f);
}

static void inputs_are_mapped_and_outputs_returned(void **state) {
    (void)state;
    Fixture f = start();
    TF_Operation *mine = constant(f.g, "mine", int32_tensor(10), f.s);
    TF_ImportGraphDefOptionsSetPrefix(f.o, "p");
    TF_ImportGraphDefOptionsAddInputMapping(f.o, "feed", 0, out(mine));
    TF_ImportGraphDefOptionsAddInputMapping(f.o, "not_there", 0, out(mine));
    TF_ImportGraphDefOptionsAddInputMapping(f.o, "scalar", 5, out(mine));
    TF_ImportGraphDefOptionsRemapControlDependency(f.o, "feed", mine);
    TF_ImportGraphDefOptionsAddReturnOutput(f.o, "sum", 0);
    TF_ImportGraphDefOptionsAddReturnOutput(f.o, "feed", 0);
    TF_ImportGraphDefOptionsAddReturnOperation(f.o, "neg");
    assert_int_equal(TF_ImportGraphDefOptionsNumReturnOutputs(f.o), 2);
    assert_int_equal(TF_ImportGraphDefOptionsNumReturnOperations(f.o), 1);
    TF_ImportGraphDefResults *r = TF_GraphImportGraphDefWithResults(f.g, f.def, f.o, f.s);
    expect_ok(f.s);
    int count = 0;
    TF_Output *outputs;
    TF_ImportGraphDefResultsReturnOutputs(r, &count, &outputs);
    assert_int_equal(count, 2);
    assert_string_equal(TF_OperationName(outputs[0].oper), "p/sum");
    assert_ptr_equal(outputs[1].oper, mine); /* what it was mapped to */
    TF_Operation **opers;
    TF_ImportGraphDefResultsReturnOperations(r, &count, &opers);
    assert_int_equal(count, 1);
    assert_string_equal(TF_OperationName(opers[0]), "p/neg");
    assert_ptr_equal(TF_OperationInput((TF_Input){opers[0], 0}).oper, mine);
    const char **names;
    int *indexes;
    TF_ImportGraphDefResultsMissingUnusedInputMappings(r, &count, &names, &indexes);
    assert_int_equal(count, 2);
    assert_true(indexes[0] + indexes[1] == 5); /* not_there:0 and scalar:5; TensorFlow 2.21 has freed one of the names by now */
    TF_Operation *control = NULL;
    assert_int_equal(TF_OperationGetControlInputs(TF_GraphOperationByName(f.g, "p/after"), &control, 1), 1);
    assert_ptr_equal(control, mine);
    TF_Session *session = new_session(f.g, NULL, f.s);
    assert_int_equal(run_int32(session, out(mine), NULL, outputs[0], f.s), 13);
    end_session(session, f.s);
    TF_DeleteImportGraphDefResults(r);
    end(&f);
}

static void control_dependencies_and_a_device(void **state) {
    (void)state;
    Fixture f = start();
    TF_Operation *first = placeholder(f.g, "first", TF_INT32, f.s);
    TF_ImportGraphDefOptionsAddControlDependency(f.o, first);
    TF_ImportGraphDefOptionsSetDefaultDevice(f.o, "/device:CPU:0");
    TF_GraphImportGraphDef(f.g, f.def, f.o, f.s);
    expect_ok(f.s);
    TF_Operation *control = NULL;
    TF_Operation *feed = TF_GraphOperationByName(f.g, "feed");
    assert_int_equal(TF_OperationGetControlInputs(feed, &control, 1), 1);
    assert_ptr_equal(control, first);
    assert_int_equal(TF_OperationNumControlInputs(TF_GraphOperationByName(f.g, "neg")), 0); /* it has an imported input */
    assert_string_equal(TF_OperationDevice(feed), "/device:CPU:0");
    end(&f);
}

static void colocation_follows_the_new_name(void **state) {
    (void)state;
    Fixture f = start();
    TF_Graph *from = TF_NewGraph();
    TF_Operation *a = placeholder(from, "a", TF_INT32, f.s);
    TF_OperationDescription *d = TF_NewOperation(from, "Neg", "b");
    TF_AddInput(d, out(a));
    TF_ColocateWith(d, a);
    TF_FinishOperation(d, f.s);
    expect_ok(f.s);
    TF_DeleteBuffer(f.def);
    f.def = TF_NewBuffer();
    TF_GraphToGraphDef(from, f.def, f.s);
    TF_DeleteGraph(from);
    TF_ImportGraphDefOptionsSetPrefix(f.o, "p");
    TF_GraphImportGraphDef(f.g, f.def, f.o, f.s);
    expect_ok(f.s);
    void *value;
    size_t length;
    char storage[32];
    TF_OperationGetAttrStringList(TF_GraphOperationByName(f.g, "p/b"), "_class", &value, &length, 1, storage, sizeof storage, f.s);
    expect_ok(f.s);
    assert_int_equal(length, 8);
    assert_memory_equal(value, "loc:@p/a", 8);
    end(&f);
}

static void what_cannot_be_imported(void **state) {
    (void)state;
    Fixture f = start();
    TF_Buffer *broken = TF_NewBufferFromString("\x0f\xff", 2);
    TF_GraphImportGraphDef(f.g, broken, f.o, f.s);
    expect_code(f.s, TF_INVALID_ARGUMENT, "GraphDef");
    TF_DeleteBuffer(broken);
    TF_ImportGraphDefOptionsAddReturnOutput(f.o, "nothing", 0);
    TF_GraphImportGraphDef(f.g, f.def, f.o, f.s);
    expect_code(f.s, TF_INVALID_ARGUMENT, "nothing");
    TF_Output output;
    TF_GraphImportGraphDefWithReturnOutputs(f.g, f.def, f.o, &output, 0, f.s);
    expect_code(f.s, TF_INVALID_ARGUMENT, "num_return_outputs");
    TF_DeleteImportGraphDefOptions(f.o);
    f.o = TF_NewImportGraphDefOptions();
    TF_ImportGraphDefOptionsAddReturnOutput(f.o, "sum", 7);
    TF_GraphImportGraphDef(f.g, f.def, f.o, f.s);
    expect_code(f.s, TF_INVALID_ARGUMENT, NULL);
    assert_int_equal(count_operations(f.g), 0);
    TF_DeleteImportGraphDefOptions(f.o);
    f.o = TF_NewImportGraphDefOptions();
    TF_ImportGraphDefOptionsAddReturnOutput(f.o, "sum", 0);
    TF_GraphImportGraphDefWithReturnOutputs(f.g, f.def, f.o, &output, 1, f.s);
    expect_ok(f.s);
    assert_string_equal(TF_OperationName(output.oper), "sum");
    end(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_get_a_prefix),
        cmocka_unit_test(names_are_made_unique),
        cmocka_unit_test(inputs_are_mapped_and_outputs_returned),
        cmocka_unit_test(control_dependencies_and_a_device),
        cmocka_unit_test(colocation_follows_the_new_name),
        cmocka_unit_test(what_cannot_be_imported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
