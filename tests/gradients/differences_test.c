/* differences_test.c: gradients against central differences, in double: every op of one or two values of one type that
 * can be computed from numbers. */
#include <math.h>
#include <stdlib.h>

#include "base/memory.h"
#include "direct_run.h"
#include "graph/function.h"
#include "graph/graph_def.h"
#include "gradients/gradients.h"

enum { SIDE = 3, COUNT = SIDE * SIDE };

/* Gradients that are not derivatives by design, and ops that do not stand alone. */
static const struct {
    const char *op, *why;
} by_design[] = {
    {"Cholesky", "of symmetric changes only"}, {"Exit", "part of a loop"},
    {"NextIteration", "part of a loop"},       {"PreventGradient", "an error"},
    {"NextAfter", "flat in the second value"}, {"QuantizeAndDequantize", "a step function, passed straight"},
    {"SparseMatMul", "computes in float"},
};

static bool is_by_design(Str op) {
    for (size_t i = 0; i < sizeof by_design / sizeof *by_design; i++)
        if (str_is(op, by_design[i].op)) return true;
    return false;
}

/* All inputs and the only output have the type T, which may be double, and every other attribute has a default. */
static bool is_simple(const OpInfo *op) {
    bool simple = op->output_count == 1 && op->input_count >= 1 && op->input_count <= 2 && !(op->flags & OP_STATEFUL) &&
                  !is_by_design(op->name);
    for (int i = 0; simple && i < op->input_count; i++)
        simple = str_is(op->inputs[i].type_attr, "T") && !op->inputs[i].number_attr.len && !op->inputs[i].is_ref;
    simple = simple && str_is(op->outputs[0].type_attr, "T") && !op->outputs[0].number_attr.len;
    for (int i = 0; simple && i < op->attr_count; i++) {
        const AttrInfo *attr = &op->attrs[i];
        bool is_type = str_is(attr->name, "T");
        simple =
            is_type ? !attr->allowed_types || attr->allowed_types >> DT_DOUBLE & 1 : attr->default_value.ptr != NULL;
    }
    return simple;
}

static Tensor *numbers(const Shape *shape, const double *from) {
    Tensor *t = NULL;
    expect_ok(tensor_new(DT_DOUBLE, shape, &t));
    for (int64_t i = 0; i < t->count; i++) tensor_f64(t)[i] = from[i];
    return t;
}

/* The op as "y", with placeholders x0 and x1; "loss" is its square, to be summed. */
static Graph *op_graph(const OpInfo *op) {
    GraphBuilder b = {0};
    char *name = str_dup(op->name);
    gb_placeholder(&b, "x0", DT_DOUBLE);
    if (op->input_count > 1) gb_placeholder(&b, "x1", DT_DOUBLE);
    gb_op(&b, "y", name, op->input_count > 1 ? "x0,x1" : "x0", DT_DOUBLE);
    gb_op(&b, "loss", "Square", "y", DT_DOUBLE);
    Graph *g = graph_new();
    g->functions = function_library_new();
    expect_ok(graph_import(g, gb_graph(&b)));
    gb_clear(&b);
    free(name);
    return g;
}

/* Fetches one tensor at the point `at`; NULL when the op does not take such values. */
static Tensor *evaluate(DirectSession *s, const char *fetch, int inputs, const Shape *shape, double at[2][COUNT]) {
    Str feeds[] = {STR("x0"), STR("x1")}, fetches[] = {str_of(fetch)};
    Tensor *values[] = {numbers(shape, at[0]), numbers(shape, at[1])}, *out = NULL;
    RunSignature sig = {.feeds = feeds, .fetches = fetches, .feed_count = inputs, .fetch_count = 1};
    Error *err = direct_session_run(s, &sig, values, &out, 60000);
    error_free(err);
    tensor_unref(values[0]);
    tensor_unref(values[1]);
    return err ? NULL : out;
}

static double loss_at(DirectSession *s, int inputs, const Shape *shape, double at[2][COUNT]) {
    Tensor *t = evaluate(s, "loss:0", inputs, shape, at);
    if (!t) return NAN;
    double sum = 0;
    for (int64_t i = 0; i < t->count; i++) sum += tensor_f64(t)[i];
    tensor_unref(t);
    return sum;
}

/* Compares the gradient by input x with differences; false when it cannot be computed there. Sets *wrong and says so
 * when they differ. */
static bool compare(DirectSession *s, Str op, const char *gradient, int x, int inputs, const Shape *shape,
                    double at[2][COUNT], bool *wrong) {
    const double step = 1e-5;
    Tensor *dx = evaluate(s, gradient, inputs, shape, at);
    if (!dx) return false;
    bool checked = true;
    for (int64_t i = 0; i < dx->count && checked; i++) {
        double here = at[x][i];
        at[x][i] = here + step;
        double above = loss_at(s, inputs, shape, at);
        at[x][i] = here - step;
        double below = loss_at(s, inputs, shape, at);
        at[x][i] = here;
        double difference = (above - below) / (2 * step), found = tensor_f64(dx)[i];
        checked = isfinite(difference) && isfinite(found);
        if (!checked || fabs(difference - found) <= 1e-5 * (1 + fabs(difference))) continue;
        print_message("%.*s, by input %d, element %d: gradient %g, differences %g\n", STR_ARG(op), x, (int)i, found,
                      difference);
        *wrong = true;
        break;
    }
    tensor_unref(dx);
    return checked;
}

/* As a vector, else as a square matrix with a heavy diagonal. */
static bool check_op(const OpInfo *op, int rank, bool *wrong) {
    Graph *g = op_graph(op);
    Output loss = {graph_find(g, STR("loss")), 0},
           xs[2] = {{graph_find(g, STR("x0")), 0}, {graph_find(g, STR("x1")), 0}}, dys[2] = {{0}};
    expect_ok(gradients_add(g, &loss, 1, xs, op->input_count, NULL, NULL, dys));
    StrBuf bytes = {0};
    graph_export(g, &(GraphExport){0}, &bytes);
    DirectSession *s = NULL;
    expect_ok(direct_session_new(strbuf_str(&bytes), 1, &s));
    double at[2][COUNT];
    for (int i = 0; i < COUNT; i++) {
        bool heavy = rank == 2 && i % (SIDE + 1) == 0;
        at[0][i] = 0.21 + 0.07 * i + (heavy ? 2 : 0);
        at[1][i] = 0.93 - 0.05 * i + (heavy ? 2 : 0);
    }
    Shape shape = rank == 2 ? shape_matrix(SIDE, SIDE) : shape_vector(SIDE);
    bool checked = isfinite(loss_at(s, op->input_count, &shape, at));
    for (int i = 0; checked && i < op->input_count; i++) {
        if (!dys[i].node) continue;
        char name[300];
        snprintf(name, sizeof name, "%.*s:%d", STR_ARG(dys[i].node->name), dys[i].index);
        checked = compare(s, op->name, name, i, op->input_count, &shape, at, wrong);
    }
    direct_session_free(s);
    strbuf_clear(&bytes);
    function_library_free(g->functions);
    graph_free(g);
    return checked;
}

static void gradients_are_the_limits_of_differences(void **state) {
    (void)state;
    int checked = 0;
    bool wrong = false;
    ops_register_all();
    for (int i = 0; i < op_count(); i++) {
        const OpInfo *op = op_at(i);
        if (gradient_kind(op->name) != GRADIENT_RULE || !is_simple(op)) continue;
        checked += check_op(op, 1, &wrong) || check_op(op, 2, &wrong);
    }
    print_message("%d ops compared with differences\n", checked);
    assert_false(wrong);
    assert_true(checked >= 70);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(gradients_are_the_limits_of_differences)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
