/* shape_inference_test.c: ShapeInfo: asked, set, and told of shapes that do not go together. */
#include "shapes/shape_inference.h"

#include <stdlib.h>

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

int main(void) {
    ops_register_all();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_product_of_matrices_has_the_rows_of_one_and_the_columns_of_the_other),
        cmocka_unit_test(a_wrong_shape_names_both_nodes_and_shapes),
        cmocka_unit_test(a_shape_that_was_set_is_used_by_later_nodes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
