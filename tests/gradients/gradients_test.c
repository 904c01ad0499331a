/* gradients_test.c: what gradients_add answers; with arguments, adds gradients to a GraphDef file for the tests in
   Python.

   gradients_test add IN OUT FLAGS PREFIX YS XS DXS STOPS: lists of tensors are "a:0,b:1", "-" for none; FLAGS is
   "dense" or "sparse". Prints a line for each x: "none", "NODE:INDEX", or "VALUES INDICES SHAPE". gradients_test kinds:
   prints "OP rule" or "OP none" for every op with a row. */
#include <stdlib.h>

#include "base/memory.h"
#include "direct_run.h"
#include "graph/function.h"
#include "graph/graph_def.h"
#include "gradients/gradients.h"
#include "gradients/rule.h"

/* ---- The program ---- */

static char *read_file(const char *path, size_t *size) {
    FILE *f = fopen(path, "rb");
    if (!f) return NULL;
    fseek(f, 0, SEEK_END);
    *size = (size_t)ftell(f);
    rewind(f);
    char *bytes = xmalloc(*size + 1);
    if (fread(bytes, 1, *size, f) != *size) *size = 0;
    fclose(f);
    return bytes;
}

static int read_tensors(const Graph *g, const char *list, Output *out) {
    Str rest = str_of(list);
    int count = 0;
    if (str_is(rest, "-")) return 0;
    while (rest.len) {
        Str item = str_next(&rest, ','), name = str_next(&item, ':');
        int64_t index = 0;
        str_to_int64(item, &index);
        out[count++] = (Output){graph_find(g, name), (int)index};
    }
    return count;
}

static void print_tensor(Output x, const char *end) {
    printf("%.*s:%d%s", STR_ARG(x.node->name), x.index, end);
}

static int add_to_file(char **arg) {
    enum { MAX = 64 };
    Output ys[MAX], xs[MAX], dxs[MAX], stops[MAX];
    Gradient dys[MAX];
    size_t size = 0;
    char *bytes = read_file(arg[0], &size);
    Graph *g = graph_new();
    g->functions = function_library_new();
    Error *err = bytes ? graph_import(g, (Str){bytes, size}) : error_not_found("no file %s", arg[0]);
    GradientOptions options = {.sparse = !strcmp(arg[2], "sparse"), .prefix = arg[3], .dxs = dxs, .stops = stops};
    int ny = read_tensors(g, arg[4], ys), nx = read_tensors(g, arg[5], xs);
    if (!read_tensors(g, arg[6], dxs)) options.dxs = NULL;
    options.stop_count = read_tensors(g, arg[7], stops);
    if (!err) err = gradients_add_with(g, ys, ny, xs, nx, &options, dys);
    for (int i = 0; !err && i < nx; i++) {
        if (!dys[i].values.node) {
            puts("none");
            continue;
        }
        print_tensor(dys[i].values, dys[i].indices.node ? " " : "\n");
        if (!dys[i].indices.node) continue;
        print_tensor(dys[i].indices, " ");
        print_tensor(dys[i].dense_shape, "\n");
    }
    StrBuf out = {0};
    if (!err) {
        graph_export(g, &(GraphExport){0}, &out);
        FILE *f = fopen(arg[1], "wb");
        fwrite(out.ptr, 1, out.len, f);
        fclose(f);
    }
    if (err) printf("error %d %s\n", err->code, err->message);
    int status = err ? 1 : 0;
    error_free(err);
    strbuf_clear(&out);
    function_library_free(g->functions);
    graph_free(g);
    free(bytes);
    return status;
}

static int print_kinds(void) {
    for (int i = 0; i < op_count(); i++) {
        GradientKind kind = gradient_kind(op_at(i)->name);
        if (kind != GRADIENT_UNKNOWN)
            printf("%.*s %s\n", STR_ARG(op_at(i)->name), kind == GRADIENT_RULE ? "rule" : "none");
    }
    return 0;
}

/* ---- Tests ---- */

static Graph *imported(GraphBuilder *b) {
    Graph *g = graph_new();
    g->functions = function_library_new();
    expect_ok(graph_import(g, gb_graph(b)));
    gb_clear(b);
    return g;
}

static void drop(Graph *g) {
    function_library_free(g->functions);
    graph_free(g);
}

static Output tensor(const Graph *g, const char *name) {
    return (Output){graph_find(g, str_of(name)), 0};
}

static float run_gradient(Graph *g, Output x) {
    StrBuf bytes = {0};
    graph_export(g, &(GraphExport){0}, &bytes);
    DirectSession *s = NULL;
    expect_ok(direct_session_new(strbuf_str(&bytes), 1, &s));
    char name[200];
    snprintf(name, sizeof name, "%.*s:%d", STR_ARG(x.node->name), x.index);
    float v = run_f32(s, name);
    direct_session_free(s);
    strbuf_clear(&bytes);
    return v;
}

static Graph *square_graph(void) {
    GraphBuilder b = {0};
    gb_f32(&b, "x", 3);
    gb_f32(&b, "z", 4);
    gb_op(&b, "y", "Square", "x", DT_FLOAT);
    return imported(&b);
}

static void the_gradient_of_a_square_is_twice_its_root(void **state) {
    (void)state;
    Graph *g = square_graph();
    Output y = tensor(g, "y"), xs[] = {tensor(g, "x"), tensor(g, "z")}, dys[2];
    expect_ok(gradients_add(g, &y, 1, xs, 2, NULL, "grads", dys));
    assert_non_null(dys[0].node);
    assert_true(str_starts(dys[0].node->name, STR("grads/")));
    assert_null(dys[1].node); /* y does not depend on z */
    assert_float_equal(run_gradient(g, dys[0]), 6, 0);
    drop(g);
}

static void a_second_call_gets_its_own_names(void **state) {
    (void)state;
    Graph *g = square_graph();
    Output y = tensor(g, "y"), x = tensor(g, "x"), dys[2];
    expect_ok(gradients_add(g, &y, 1, &x, 1, NULL, NULL, &dys[0]));
    expect_ok(gradients_add(g, &y, 1, &x, 1, NULL, NULL, &dys[1]));
    assert_true(str_starts(dys[0].node->name, STR("gradients/")));
    assert_true(str_starts(dys[1].node->name, STR("gradients_1/")));
    drop(g);
}

static void gradients_can_be_differentiated_again(void **state) {
    (void)state;
    Graph *g = square_graph();
    Output y = tensor(g, "y"), x = tensor(g, "x"), first, second;
    expect_ok(gradients_add(g, &y, 1, &x, 1, NULL, NULL, &first));
    expect_ok(gradients_add(g, &first, 1, &x, 1, NULL, NULL, &second));
    assert_float_equal(run_gradient(g, second), 2, 0);
    drop(g);
}

static void stops_are_constants(void **state) {
    (void)state;
    GraphBuilder b = {0};
    gb_f32(&b, "x", 3);
    gb_op(&b, "a", "Square", "x", DT_FLOAT);
    gb_op(&b, "y", "Mul", "a,x", DT_FLOAT);
    Graph *g = imported(&b);
    Output y = tensor(g, "y"), x = tensor(g, "x"), a = tensor(g, "a");
    Gradient dy;
    expect_ok(gradients_add_with(g, &y, 1, &x, 1, &(GradientOptions){.stops = &a, .stop_count = 1}, &dy));
    assert_float_equal(run_gradient(g, dy.values), 9, 0);
    drop(g);
}

static void an_op_without_gradient_is_an_error_that_names_it(void **state) {
    (void)state;
    GraphBuilder b = {0};
    gb_f32(&b, "x", 3);
    gb_op(&b, "strange", "Snapshot", "x", DT_FLOAT);
    gb_op(&b, "y", "Square", "strange", DT_FLOAT);
    Graph *g = imported(&b);
    Output y = tensor(g, "y"), x = tensor(g, "x"), dy;
    expect_error(gradients_add(g, &y, 1, &x, 1, NULL, NULL, &dy), CODE_NOT_FOUND, "'strange' (op type: Snapshot)");
    drop(g);
}

static void ops_that_are_not_differentiable_end_the_walk(void **state) {
    (void)state;
    GraphBuilder b = {0};
    gb_f32(&b, "x", 3);
    gb_op(&b, "stopped", "StopGradient", "x", DT_FLOAT);
    gb_op(&b, "y", "Square", "stopped", DT_FLOAT);
    Graph *g = imported(&b);
    Output y = tensor(g, "y"), x = tensor(g, "x"), dy;
    expect_ok(gradients_add(g, &y, 1, &x, 1, NULL, NULL, &dy));
    assert_null(dy.node);
    drop(g);
}

static void integers_need_given_gradients(void **state) {
    (void)state;
    GraphBuilder b = {0};
    gb_i32(&b, "x", 3);
    gb_op(&b, "y", "Square", "x", DT_INT32);
    Graph *g = imported(&b);
    Output y = tensor(g, "y"), x = tensor(g, "x"), dy;
    expect_error(gradients_add(g, &y, 1, &x, 1, NULL, NULL, &dy), CODE_INVALID_ARGUMENT, "int32 tensor y:0");
    expect_error(gradients_add(g, &y, 0, &x, 1, NULL, NULL, &dy), CODE_INVALID_ARGUMENT, "no ys");
    Output nowhere = {y.node, 7};
    expect_error(gradients_add(g, &nowhere, 1, &x, 1, NULL, NULL, &dy), CODE_INVALID_ARGUMENT, "no output 7");
    drop(g);
}

int main(int argc, char **argv) {
    ops_register_all();
    if (argc == 10 && !strcmp(argv[1], "add")) return add_to_file(argv + 2);
    if (argc == 2 && !strcmp(argv[1], "kinds")) return print_kinds();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_gradient_of_a_square_is_twice_its_root),
        cmocka_unit_test(a_second_call_gets_its_own_names),
        cmocka_unit_test(gradients_can_be_differentiated_again),
        cmocka_unit_test(stops_are_constants),
        cmocka_unit_test(an_op_without_gradient_is_an_error_that_names_it),
        cmocka_unit_test(ops_that_are_not_differentiable_end_the_walk),
        cmocka_unit_test(integers_need_given_gradients),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
