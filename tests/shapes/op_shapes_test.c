/* op_shapes_test.c: every op's shapes as TensorFlow inferred them, replayed from tests/shapes/cases; the format is told in README.md there.

   op_shapes_test FILE replays another recording and prints every difference. */
#include <ctype.h>
#include <stdlib.h>

#include "base/file.h"
#include "base/hashmap.h"
#include "base/memory.h"
#include "graph/graph_def.h"
#include "graph_builder.h"
#include "ops/op_list.h"
#include "shapes/shape_inference.h"
#include "unit_test.h"

#define CASES "tests/shapes/cases/ops.txt"

typedef struct Counts {
    int cases, wrong;
} Counts;

/* "[2,?]" or "*" */
static PartialShape parse_shape(Str text) {
    PartialShape s = {.rank = 0};
    if (str_is(text, "*")) return (PartialShape){.rank = -1};
    Str inner = str_slice(text, 1, text.len - 1);
    while (inner.len) {
        Str dim = str_next(&inner, ',');
        int64_t size = -1;
        str_to_int64(dim, &size);
        s.dims[s.rank++] = size;
    }
    return s;
}

static Tensor *parse_values(DataType dtype, const Shape *shape, Str values) {
    Tensor *t = NULL;
    expect_ok(tensor_new(dtype, shape, &t));
    for (int64_t i = 0; i < t->count; i++) {
        char *text = str_dup(str_next(&values, ','));
        double v = strtod(text, NULL);
        free(text);
        if (dtype == DT_INT32) tensor_i32(t)[i] = (int32_t)v;
        if (dtype == DT_INT64) tensor_i64(t)[i] = (int64_t)v;
        if (dtype == DT_FLOAT) tensor_f32(t)[i] = (float)v;
        if (dtype == DT_DOUBLE) tensor_f64(t)[i] = v;
    }
    return t;
}

static void add_input(GraphBuilder *b, const char *name, Str text) {
    char kind = text.ptr[0];
    Str values = str_slice(text, 1, text.len);
    int64_t type = 0;
    str_to_int64(str_next(&values, ':'), &type);
    DataType dtype = (DataType)type;
    PartialShape shape = parse_shape(str_next(&values, '='));
    if (kind == 'c') {
        gb_const(b, name, parse_values(dtype, &shape, values), "");
        return;
    }
    if (kind == 'l') {
        char sizes[80], number[80], inputs[200];
        snprintf(sizes, sizeof sizes, "%ss", name);
        snprintf(number, sizeof number, "%sn", name);
        snprintf(inputs, sizeof inputs, "%s,%s", sizes, number);
        Tensor *t = tensor_scalar_i32(-1);
        if (shape.rank >= 0) {
            tensor_unref(t);
            expect_ok(tensor_new(DT_INT32, &(Shape){1, {shape.rank}}, &t));
            for (int i = 0; i < shape.rank; i++) tensor_i32(t)[i] = (int32_t)shape.dims[i];
        }
        gb_const(b, sizes, t, "");
        gb_placeholder(b, number, DT_INT32);
        gb_shape(b, "shape", &SHAPE_SCALAR);
        gb_node(b, name, "TensorListReserve", inputs);
        gb_type(b, "element_dtype", dtype);
        gb_type(b, "shape_type", DT_INT32);
        return;
    }
    gb_node(b, name, kind == 'v' ? "VarHandleOp" : kind == 'r' ? "VariableV2" : "Placeholder", "");
    gb_type(b, "dtype", dtype);
    gb_shape(b, "shape", &shape);
}

static void add_attrs(GraphBuilder *b, Str attrs) {
    while (attrs.len) {
        Str item = str_next(&attrs, ' ');
        Str name = str_next(&item, '=');
        StrBuf bytes = {0};
        for (size_t i = 0; i + 1 < item.len; i += 2) {
            char digits[3] = {item.ptr[i], item.ptr[i + 1], 0};
            strbuf_addc(&bytes, (char)strtol(digits, NULL, 16));
        }
        char *text = str_dup(name);
        gb_attr(b, text, strbuf_str(&bytes));
        free(text);
        strbuf_clear(&bytes);
    }
}

/* What Rill infers: "[2] *", or "!" and the message. */
static char *infer(Str op, Str attrs, Str inputs, char **message) {
    GraphBuilder b = {0};
    StrBuf names = {0}, result = {0}, versions = {0};
    Str producer = op;
    int64_t version = 0;
    op = str_next(&producer, '@');
    str_to_int64(producer, &version);
    wire_put_uint(&versions, 1, (uint64_t)version);
    wire_put_bytes(&b.def, 4, strbuf_str(&versions));
    strbuf_clear(&versions);
    char *op_name = str_dup(op);
    for (int i = 0; inputs.len; i++) {
        char name[40];
        snprintf(name, sizeof name, "i%d", i);
        add_input(&b, name, str_next(&inputs, ' '));
        strbuf_addf(&names, "%s%s", names.len ? "," : "", name);
    }
    gb_node(&b, "node", op_name, names.ptr);
    add_attrs(&b, attrs);
    Graph *g = graph_new();
    ShapeInfo *info = shape_info_new(g);
    Error *err = graph_import(g, gb_graph(&b));
    if (!err) err = shapes_infer_graph(info);
    if (err) {
        strbuf_addc(&result, '!');
        *message = xstrdup(err->message);
        error_free(err);
    } else {
        const Node *n = graph_find(g, STR("node"));
        for (int i = 0; i < n->output_count; i++) {
            PartialShape s;
            shapes_of(info, (Output){(Node *)n, i}, &s);
            char *text = shape_str(&s);
            strbuf_addf(&result, "%s%s", i ? " " : "", s.rank < 0 ? "*" : text);
            free(text);
        }
    }
    shape_info_free(info);
    graph_free(g);
    gb_clear(&b);
    strbuf_clear(&names);
    free(op_name);
    return strbuf_detach(&result);
}

static void replay_case(Str op, Str attrs, Str line, Counts *counts) {
    ptrdiff_t bar = str_find(line, '|');
    assert_true(bar >= 0);
    Str inputs = str_trim(str_slice(line, 0, (size_t)bar)), wanted = str_trim(str_slice(line, (size_t)bar + 1, line.len));
    char *message = NULL, *got = infer(op, attrs, inputs, &message);
    counts->cases++;
    if (!str_is(wanted, got)) {
        counts->wrong++;
        print_message("%.*s: %.*s: TensorFlow says %.*s, Rill %s %.90s\n", STR_ARG(op), STR_ARG(inputs), STR_ARG(wanted), got, message ? message : "");
    }
    free(message);
    free(got);
}

/* Lines that start with an op give it and its attributes; those that start with a space are cases of it. */
static Counts replay(const char *path) {
    Counts counts = {0};
    char *bytes = NULL;
    size_t size = 0;
    expect_ok(file_read_all(&file_system_local, path, &bytes, &size));
    Str rest = {bytes, size}, op = STR(""), attrs = STR("");
    while (rest.len) {
        Str line = str_next(&rest, '\n');
        if (line.len && line.ptr[0] == ' ') {
            replay_case(op, attrs, line, &counts);
        } else if (line.len) {
            attrs = line;
            op = str_next(&attrs, ' ');
        }
    }
    free(bytes);
    return counts;
}

static void every_op_infers_what_tensorflow_infers(void **state) {
    (void)state;
    Counts counts = replay(CASES);
    print_message("%d cases\n", counts.cases);
    assert_true(counts.cases > 3000);
    assert_int_equal(counts.wrong, 0);
}

static void every_registered_op_has_a_rule(void **state) {
    (void)state;
    Graph *g = graph_new();
    ShapeInfo *info = shape_info_new(g);
    int missing = 0;
    for (int i = 0; i < op_count(); i++) {
        if (shapes_has_rule(info, op_at(i)->name)) continue;
        print_message("no rule for the shapes of %.*s\n", STR_ARG(op_at(i)->name));
        missing++;
    }
    shape_info_free(info);
    graph_free(g);
    assert_int_equal(missing, 0);
}

/* The op that a line begins a list of cases of. */
static Str op_of_line(Str line) {
    return line.len && line.ptr[0] != ' ' ? str_next(&line, '@') : STR("");
}

static void every_registered_op_has_cases(void **state) {
    (void)state;
    /* Made by Rill's own passes: TensorFlow knows nothing of them. */
    static const char *const own[] = {"_FunctionCall", "_FusedElementwise", "_FusedProduct", "_ProductAdd", "_ProductSlice"};
    char *data = NULL;
    size_t len = 0;
    expect_ok(file_read_all(&file_system_local, CASES, &data, &len));
    StrMap recorded = {0};
    for (Str rest = {data, len}; rest.len;) {
        Str op = op_of_line(str_next(&rest, '\n'));
        if (op.len) strmap_put(&recorded, op, data);
    }
    for (size_t i = 0; i < sizeof own / sizeof *own; i++) strmap_put(&recorded, str_of(own[i]), data);
    int missing = 0;
    for (int i = 0; i < op_count(); i++) {
        if (strmap_get(&recorded, op_at(i)->name)) continue;
        print_message("no cases of %.*s: scripts/record_shapes.py %.*s\n", STR_ARG(op_at(i)->name), STR_ARG(op_at(i)->name));
        missing++;
    }
    strmap_clear(&recorded);
    free(data);
    assert_int_equal(missing, 0);
}

int main(int argc, char **argv) {
    ops_register_all();
    if (argc > 1) {
        Counts counts = replay(argv[1]);
        printf("%d cases, %d wrong\n", counts.cases, counts.wrong);
        return counts.wrong != 0;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_registered_op_has_a_rule),
        cmocka_unit_test(every_registered_op_has_cases),
        cmocka_unit_test(every_op_infers_what_tensorflow_infers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
