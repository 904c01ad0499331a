/* shape_inference_test.c: ShapeInfo: asked, set, and told of shapes that do not go together. */
#include "shapes/shape_inference.h"

#include <stdlib.h>

#include "graph/function.h"
#include "graph/graph_def.h"
#include "graph_builder.h"
#include "ops/op_list.h"
#include "unit_test.h"

static Graph *import(GraphBuilder *b) {
    Graph *g = graph_new();
    expect_ok(graph_import(g, gb_graph(b)));
    gb_clear(b);
    return g;
}

static void placeholder(GraphBuilder *b, const char *name, DataType type, PartialShape shape) {
    gb_placeholder(b, name, type);
    gb_shape(b, "shape", &shape);
}

static void expect_shape(const ShapeInfo *info, const Graph *g, const char *node, const char *shape) {
    PartialShape s;
    shapes_of(info, (Output){graph_find(g, str_of(node)), 0}, &s);
    char *text = shape_str(&s);
    assert_string_equal(text, shape);
    free(text);
}

static void a_product_of_matrices_has_the_rows_of_one_and_the_columns_of_the_other(void **state) {
    (void)state;
    GraphBuilder b = {0};
    placeholder(&b, "x", DT_FLOAT, shape_matrix(-1, 3));
    placeholder(&b, "w", DT_FLOAT, shape_matrix(3, 5));
    gb_op(&b, "y", "MatMul", "x,w", DT_FLOAT);
    Graph *g = import(&b);
    ShapeInfo *info = shape_info_new(g);
    expect_ok(shapes_infer_graph(info));
    expect_shape(info, g, "y", "[?,5]");
    shape_info_free(info);
    graph_free(g);
}

static void a_wrong_shape_names_both_nodes_and_shapes(void **state) {
    (void)state;
    GraphBuilder b = {0};
    placeholder(&b, "x", DT_FLOAT, shape_matrix(2, 3));
    placeholder(&b, "w", DT_FLOAT, shape_matrix(4, 5));
    gb_op(&b, "y", "MatMul", "x,w", DT_FLOAT);
    Graph *g = import(&b);
    ShapeInfo *info = shape_info_new(g);
    expect_error(shapes_infer_graph(info), CODE_INVALID_ARGUMENT,
                 "Dimensions must be equal, but are 3 and 4 for 'y' (op: 'MatMul') with input shapes: [2,3], [4,5] from 'x:0' and 'w:0'.");
    assert_false(shapes_inferred(info, graph_find(g, STR("y"))));
    shape_info_free(info);
    graph_free(g);
}

static void a_shape_that_was_set_is_used_by_later_nodes(void **state) {
    (void)state;
    GraphBuilder b = {0};
    gb_placeholder(&b, "x", DT_FLOAT);
    gb_op(&b, "y", "Neg", "x", DT_FLOAT);
    Graph *g = import(&b);
    ShapeInfo *info = shape_info_new(g);
    Output x = {graph_find(g, STR("x")), 0};
    expect_ok(shapes_infer_node(info, x.node));
    expect_shape(info, g, "x", "<unknown>");
    expect_ok(shapes_set(info, x, &(PartialShape){2, {-1, 3}}));
    expect_ok(shapes_set(info, x, &(PartialShape){2, {7, -1}}));
    expect_ok(shapes_infer_node(info, graph_find(g, STR("y"))));
    expect_shape(info, g, "y", "[7,3]");
    expect_error(shapes_set(info, x, &(PartialShape){2, {7, 4}}), CODE_INVALID_ARGUMENT, "'x:0'");
    expect_error(shapes_set(info, x, &SHAPE_SCALAR), CODE_INVALID_ARGUMENT, "rank");
    expect_error(shapes_set(info, (Output){x.node, 1}, &SHAPE_SCALAR), CODE_INVALID_ARGUMENT, "out of range");
    shape_info_free(info);
    graph_free(g);
}

static void ints(GraphBuilder *b, const char *name, int count, const int32_t *values) {
    Tensor *t = NULL;
    expect_ok(tensor_new(DT_INT32, &(Shape){1, {count}}, &t));
    memcpy(tensor_i32(t), values, sizeof *values * (size_t)count);
    gb_const(b, name, t, "");
}

static void a_shape_may_be_made_of_other_shapes(void **state) {
    (void)state;
    GraphBuilder b = {0};
    placeholder(&b, "x", DT_FLOAT, (PartialShape){3, {-1, 3, 4}});
    gb_op(&b, "shape", "Shape", "x", DT_FLOAT);
    ints(&b, "0", 1, (int32_t[]){0});
    ints(&b, "1", 1, (int32_t[]){1});
    gb_op(&b, "batch", "StridedSlice", "shape,0,1,1", DT_INT32);
    gb_type(&b, "Index", DT_INT32);
    gb_int(&b, "shrink_axis_mask", 1);
    gb_i32(&b, "three", 3);
    gb_i32(&b, "four", 4);
    gb_op(&b, "twelve", "Mul", "three,four", DT_INT32);
    gb_op(&b, "flat", "Pack", "batch,twelve", DT_INT32);
    gb_int(&b, "N", 2);
    gb_op(&b, "y", "Reshape", "x,flat", DT_FLOAT);
    gb_type(&b, "Tshape", DT_INT32);
    Graph *g = import(&b);
    ShapeInfo *info = shape_info_new(g);
    expect_ok(shapes_infer_graph(info));
    expect_shape(info, g, "y", "[?,12]");
    PartialShape s;
    shapes_constant_as_shape(info, (Output){graph_find(g, STR("flat")), 0}, &s);
    assert_int_equal(s.rank, 2);
    assert_int_equal(s.dims[0], -1);
    assert_int_equal(s.dims[1], 12);
    const Tensor *t = shapes_constant(info, (Output){graph_find(g, STR("twelve")), 0});
    assert_non_null(t);
    assert_int_equal(tensor_i32(t)[0], 12);
    assert_null(shapes_constant(info, (Output){graph_find(g, STR("batch")), 0}));
    shape_info_free(info);
    graph_free(g);
}

static void an_error_tells_the_values_that_were_computed(void **state) {
    (void)state;
    GraphBuilder b = {0};
    placeholder(&b, "x", DT_FLOAT, shape_matrix(2, 3));
    ints(&b, "size", 2, (int32_t[]){5, -1});
    gb_op(&b, "y", "Reshape", "x,size", DT_FLOAT);
    gb_type(&b, "Tshape", DT_INT32);
    Graph *g = import(&b);
    ShapeInfo *info = shape_info_new(g);
    expect_error(shapes_infer_graph(info), CODE_INVALID_ARGUMENT,
                 "evenly divisible by 5 but is 6 for 'y' (op: 'Reshape') with input shapes: [2,3], [2] from 'x:0' and 'size:0' and with computed input "
                 "tensors: input[1] = <5 -1>.");
    shape_info_free(info);
    graph_free(g);
}

static void what_a_long_chain_comes_to_is_known(void **state) {
    (void)state;
    enum { LENGTH = 100000 };
    GraphBuilder b = {0};
    gb_i32(&b, "n0", 0);
    gb_i32(&b, "one", 1);
    char name[40], inputs[80];
    for (int i = 1; i <= LENGTH; i++) {
        snprintf(name, sizeof name, "n%d", i);
        snprintf(inputs, sizeof inputs, "n%d,one", i - 1);
        gb_op(&b, name, "AddV2", inputs, DT_INT32);
    }
    gb_f32(&b, "zero", 0);
    gb_op(&b, "dims", "Pack", name, DT_INT32);
    gb_int(&b, "N", 1);
    gb_op(&b, "y", "Fill", "dims,zero", DT_FLOAT);
    gb_type(&b, "index_type", DT_INT32);
    Graph *g = import(&b);
    ShapeInfo *info = shape_info_new(g);
    expect_ok(shapes_infer_graph(info));
    expect_shape(info, g, "y", "[100000]");
    shape_info_free(info);
    graph_free(g);
}

static void of_a_loop_variable_nothing_is_known_and_the_loop_is_inferred(void **state) {
    (void)state;
    GraphBuilder b = {0};
    gb_i32(&b, "limit", 5);
    gb_count_loop(&b, "loop", "limit", 1, NULL);
    Graph *g = import(&b);
    ShapeInfo *info = shape_info_new(g);
    expect_ok(shapes_infer_graph(info));
    expect_shape(info, g, "loop/limit", "[]");
    expect_shape(info, g, "loop/merge", "<unknown>");
    expect_shape(info, g, "loop/exit", "<unknown>");
    expect_shape(info, g, "loop/cond", "[]");
    for (int i = 0; i < g->node_count; i++) assert_true(shapes_inferred(info, g->nodes[i]));
    shape_info_free(info);
    graph_free(g);
}

static void a_variable_keeps_the_shape_of_its_handle(void **state) {
    (void)state;
    GraphBuilder b = {0};
    gb_node(&b, "v", "VarHandleOp", "");
    gb_type(&b, "dtype", DT_FLOAT);
    gb_shape(&b, "shape", &(PartialShape){2, {4, -1}});
    gb_op(&b, "same", "Identity", "v", DT_RESOURCE);
    gb_node(&b, "value", "ReadVariableOp", "same");
    gb_type(&b, "dtype", DT_FLOAT);
    placeholder(&b, "x", DT_FLOAT, shape_matrix(5, 2));
    gb_node(&b, "set", "AssignVariableOp", "same,x");
    gb_type(&b, "dtype", DT_FLOAT);
    Graph *g = import(&b);
    ShapeInfo *info = shape_info_new(g);
    expect_error(shapes_infer_graph(info), CODE_INVALID_ARGUMENT, "for 'set' (op: 'AssignVariableOp')");
    expect_shape(info, g, "value", "[4,?]");
    DataType dtype;
    PartialShape s;
    assert_true(shapes_handle(info, (Output){graph_find(g, STR("same")), 0}, &dtype, &s));
    assert_int_equal(dtype, DT_FLOAT);
    assert_int_equal(s.dims[0], 4);
    assert_false(shapes_handle(info, (Output){graph_find(g, STR("value")), 0}, &dtype, &s));
    shape_info_free(info);
    graph_free(g);
}

static void a_function_is_looked_into(void **state) {
    (void)state;
    GraphBuilder b = {0}, body = {.node_field = 3};
    gb_op(&body, "product", "MatMul", "x,y", DT_FLOAT);
    gb_function(&b, "times", "x: float, y: float", "z: float", "z=product:product:0", &body);
    placeholder(&b, "x", DT_FLOAT, shape_matrix(-1, 3));
    placeholder(&b, "w", DT_FLOAT, shape_matrix(3, 5));
    const DataType two[] = {DT_FLOAT, DT_FLOAT};
    gb_node(&b, "call", "PartitionedCall", "x,w");
    gb_types(&b, "Tin", two, 2);
    gb_types(&b, "Tout", two, 1);
    gb_func(&b, "f", "times");
    gb_node(&b, "by_name", "times", "x,w");
    gb_node(&b, "wrong", "times", "w,w");
    Graph *g = graph_new();
    g->functions = function_library_new();
    expect_ok(graph_import(g, gb_graph(&b)));
    gb_clear(&b);
    ShapeInfo *info = shape_info_new(g);
    expect_ok(shapes_infer_graph(info));
    expect_shape(info, g, "call", "[?,5]");
    expect_shape(info, g, "by_name", "[?,5]");
    expect_shape(info, g, "wrong", "<unknown>");
    shape_info_free(info);
    function_library_free(g->functions);
    graph_free(g);
}

static void a_function_that_calls_itself_ends(void **state) {
    (void)state;
    GraphBuilder b = {0}, body = {.node_field = 3};
    const DataType one[] = {DT_FLOAT};
    gb_node(&body, "again", "PartitionedCall", "x");
    gb_types(&body, "Tin", one, 1);
    gb_types(&body, "Tout", one, 1);
    gb_func(&body, "f", "forever");
    gb_function(&b, "forever", "x: float", "y: float", "y=again:output:0", &body);
    placeholder(&b, "x", DT_FLOAT, shape_vector(2));
    gb_node(&b, "call", "forever", "x");
    Graph *g = graph_new();
    g->functions = function_library_new();
    expect_ok(graph_import(g, gb_graph(&b)));
    gb_clear(&b);
    ShapeInfo *info = shape_info_new(g);
    expect_ok(shapes_infer_graph(info));
    expect_shape(info, g, "call", "<unknown>");
    shape_info_free(info);
    function_library_free(g->functions);
    graph_free(g);
}

static void what_the_client_knew_is_merged(void **state) {
    (void)state;
    GraphBuilder b = {0};
    placeholder(&b, "x", DT_FLOAT, shape_matrix(-1, 3));
    gb_shapes(&b, "_output_shapes", &(PartialShape){2, {7, -1}}, 1);
    placeholder(&b, "bad", DT_FLOAT, shape_matrix(-1, 3));
    gb_shapes(&b, "_output_shapes", &(PartialShape){1, {7}}, 1);
    Graph *g = import(&b);
    ShapeInfo *info = shape_info_new(g);
    expect_ok(shapes_infer_node(info, graph_find(g, STR("x"))));
    expect_shape(info, g, "x", "[7,3]");
    expect_error(shapes_infer_node(info, graph_find(g, STR("bad"))), CODE_INVALID_ARGUMENT, "'bad' has an _output_shapes attribute inconsistent");
    shape_info_free(info);
    graph_free(g);
}

static void of_an_unknown_op_nothing_is_known(void **state) {
    (void)state;
    GraphBuilder b = {0};
    gb_f32(&b, "x", 1);
    gb_node(&b, "what", "NoSuchOp", "x");
    gb_op(&b, "y", "Neg", "what", DT_FLOAT);
    Graph *g = import(&b);
    ShapeInfo *info = shape_info_new(g);
    expect_ok(shapes_infer_graph(info));
    expect_shape(info, g, "what", "<unknown>");
    expect_shape(info, g, "y", "<unknown>");
    shape_info_free(info);
    graph_free(g);
}

static void a_shape_that_becomes_known_is_a_value_that_becomes_known(void **state) {
    (void)state;
    GraphBuilder b = {0};
    gb_placeholder(&b, "x", DT_FLOAT);
    gb_op(&b, "shape", "Shape", "x", DT_FLOAT);
    Graph *g = import(&b);
    ShapeInfo *info = shape_info_new(g);
    Node *x = graph_find(g, STR("x"));
    Output shape = {graph_find(g, STR("shape")), 0};
    expect_ok(shapes_infer_graph(info));
    assert_null(shapes_constant(info, shape));
    expect_ok(shapes_set(info, (Output){x, 0}, &(PartialShape){1, {3}}));
    assert_non_null(shapes_constant(info, shape));
    shape_info_free(info);
    graph_free(g);
}

int main(void) {
    ops_register_all();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_product_of_matrices_has_the_rows_of_one_and_the_columns_of_the_other),
        cmocka_unit_test(a_wrong_shape_names_both_nodes_and_shapes),
        cmocka_unit_test(a_shape_that_was_set_is_used_by_later_nodes),
        cmocka_unit_test(a_shape_may_be_made_of_other_shapes),
        cmocka_unit_test(an_error_tells_the_values_that_were_computed),
        cmocka_unit_test(what_a_long_chain_comes_to_is_known),
        cmocka_unit_test(of_a_loop_variable_nothing_is_known_and_the_loop_is_inferred),
        cmocka_unit_test(a_variable_keeps_the_shape_of_its_handle),
        cmocka_unit_test(a_function_is_looked_into),
        cmocka_unit_test(a_function_that_calls_itself_ends),
        cmocka_unit_test(what_the_client_knew_is_merged),
        cmocka_unit_test(of_an_unknown_op_nothing_is_known),
        cmocka_unit_test(a_shape_that_becomes_known_is_a_value_that_becomes_known),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
