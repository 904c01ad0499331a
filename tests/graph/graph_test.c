/* graph_test.c: attributes, op rows, GraphDef in and out, loops found, what is pruned. */
#include "graph/graph.h"

#include <stdlib.h>

#include "base/clock.h"
#include "graph/frames.h"
#include "graph/function.h"
#include "graph/graph_def.h"
#include "graph/op_def.h"
#include "graph/prune.h"
#include "graph_builder.h"
#include "ops/op_list.h"
#include "unit_test.h"

static int register_ops(void **state) {
    (void)state;
    ops_register_all();
    return 0;
}

/* Imports what was built; the builder is empty afterwards. */
static Error *import(GraphBuilder *b, Graph **out) {
    Graph *g = graph_new();
    g->functions = function_library_new();
    Error *err = graph_import(g, gb_graph(b));
    gb_clear(b);
    *out = g;
    return err;
}

static void drop(Graph *g) {
    FunctionLibrary *lib = g->functions;
    graph_free(g);
    function_library_free(lib);
}

static Graph *import_ok(GraphBuilder *b) {
    Graph *g;
    expect_ok(import(b, &g));
    return g;
}

static void expect_import_error(GraphBuilder *b, ErrorCode code, const char *text) {
    Graph *g;
    expect_error(import(b, &g), code, text);
    drop(g);
}

/* ---- Attributes ---- */

static void attributes_are_read_as_what_they_are(void **state) {
    (void)state;
    Arena *a = arena_new();
    Str s;
    int64_t i;
    float f;
    bool b;
    DataType t;
    PartialShape shape = shape_matrix(-1, 4), back;
    assert_true(attr_string(attr_make_string(a, STR("text")), &s) && str_is(s, "text"));
    assert_true(attr_int(attr_make_int(a, -7), &i) && i == -7);
    assert_true(attr_float(attr_make_float(a, 0.5f), &f) && f == 0.5f);
    assert_true(attr_bool(attr_make_bool(a, false), &b) && !b);
    assert_true(attr_type(attr_make_type(a, DT_HALF), &t) && t == DT_HALF);
    assert_true(attr_shape(attr_make_shape(a, &shape), &back) && shape_eq(&shape, &back));
    assert_false(attr_int(attr_make_string(a, STR("3")), &i));
    assert_false(attr_string(STR(""), &s));
    assert_false(attr_type(STR("\x30\x63"), &t)); /* 99 is no type */
    const DataType types[] = {DT_FLOAT, DT_STRING};
    Str list = attr_make_types(a, types, 2);
    DataType read[4];
    assert_true(attr_is_list(list));
    assert_int_equal(attr_list_types(list, read, 4), 2);
    assert_true(read[0] == DT_FLOAT && read[1] == DT_STRING);
    assert_int_equal(attr_list_types(list, read, 1), 2);
    assert_int_equal(attr_list_ints(list, NULL, 0), 0);
    assert_int_equal(attr_list_ints(attr_make_int(a, 1), NULL, 0), -1);
    /* Packed and not packed; the last value of a oneof wins. */
    int64_t ints[3];
    assert_int_equal(attr_list_ints(STR("\x0a\x06\x1a\x02\x05\x06\x18\x07"), ints, 3), 3);
    assert_true(ints[0] == 5 && ints[1] == 6 && ints[2] == 7);
    assert_true(attr_int(STR("\x12\x01x\x18\x05"), &i) && i == 5);
    assert_false(attr_string(STR("\x12\x01x\x18\x05"), &s));
    const Str bad[] = {STR("\x0a\x05\x1a"), STR("\x0a\x03\x1a\x01\x80"), STR("\x0a\x04\x22\x02\x01\x02"), STR("\x18")};
    for (size_t k = 0; k < sizeof bad / sizeof bad[0]; k++) {
        assert_true(attr_list_ints(bad[k], ints, 3) <= 0 || k == 2);
        assert_true(attr_list_floats(bad[k], &f, 1) <= 0);
        assert_false(attr_int(bad[k], &i));
    }
    arena_free(a);
}

/* ---- Op rows ---- */

static void every_registered_row_is_whole(void **state) {
    (void)state;
    assert_true(op_count() > 300);
    for (int i = 0; i < op_count(); i++) {
        const OpInfo *op = op_at(i);
        assert_ptr_equal(op_find(op->name), op);
        for (int j = 0; j < op->attr_count; j++) {
            const AttrInfo *attr = &op->attrs[j];
            assert_true(attr->name.len && attr->type.len);
            static const char *const kinds[] = {"type", "int", "float", "bool", "string", "shape", "tensor", "func", "list(type)", "list(int)", "list(float)",
                                                "list(bool)", "list(string)", "list(shape)", "list(func)", "list(tensor)"};
            bool known = false;
            for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++) known |= str_is(attr->type, kinds[k]);
            if (!known) print_message("%.*s: attribute %.*s is a %.*s\n", STR_ARG(op->name), STR_ARG(attr->name), STR_ARG(attr->type));
            assert_true(known);
            assert_true(!(attr->allowed_types & 1)); /* no unknown type name among the allowed */
        }
        for (int j = 0; j < op->input_count + op->output_count; j++) {
            const ArgInfo *arg = j < op->input_count ? &op->inputs[j] : &op->outputs[j - op->input_count];
            assert_true(arg->name.len);
            assert_true(arg->type != DT_INVALID || arg->type_attr.len || arg->type_list_attr.len);
            if (arg->type_attr.len) assert_non_null(op_attr(op, arg->type_attr));
            if (arg->number_attr.len) assert_true(str_is(op_attr(op, arg->number_attr)->type, "int"));
        }
    }
    for (int i = 0; i < kernel_count(); i++) {
        bool internal = kernel_at(i)->op[0] == '_';
        if (!internal && !op_find(str_of(kernel_at(i)->op))) print_message("kernel of %s has no op\n", kernel_at(i)->op);
        assert_true(internal || op_find(str_of(kernel_at(i)->op)));
    }
    assert_null(op_find(STR("NoSuchOp")));
    expect_str(op_nearest(STR("MatMull")), "MatMul");
}

static void a_row_is_parsed(void **state) {
    (void)state;
    Arena *a = arena_new();
    OpInfo *op = NULL;
    const OpDef row = {"Test", "a: N * T, r: Ref(U), l: L -> out: int32",
                       "T: {float, double} = float; U: type; N: int >= 2; L: list(type) >= 1; pad: {'SAME', 'VALID'} = 'SAME'; dims: list(int) = [1, -2]; "
                       "s: string = 'a; b = c'; shape: shape = [2, -1]; any: shape = ?; f: float = -0.5",
                       OP_STATEFUL};
    expect_ok(op_info_parse(a, &row, &op));
    assert_int_equal(op->input_count, 3);
    expect_str(op->inputs[0].number_attr, "N");
    assert_true(op->inputs[1].is_ref);
    expect_str(op->inputs[2].type_list_attr, "L");
    assert_int_equal(op->outputs[0].type, DT_INT32);
    assert_int_equal(op_attr(op, STR("N"))->minimum, 2);
    DataType type;
    Str text;
    int64_t ints[2];
    float f;
    PartialShape shape;
    assert_true(attr_type(op_attr(op, STR("T"))->default_value, &type) && type == DT_FLOAT);
    assert_true(op_attr(op, STR("T"))->allowed_types == (1u << DT_FLOAT | 1u << DT_DOUBLE));
    assert_true(attr_string(op_attr(op, STR("pad"))->default_value, &text) && str_is(text, "SAME"));
    assert_true(attr_string(op_attr(op, STR("s"))->default_value, &text) && str_is(text, "a; b = c"));
    assert_true(attr_list_ints(op_attr(op, STR("dims"))->default_value, ints, 2) == 2 && ints[1] == -2);
    assert_true(attr_float(op_attr(op, STR("f"))->default_value, &f) && f == -0.5f);
    assert_true(attr_shape(op_attr(op, STR("shape"))->default_value, &shape) && shape.rank == 2 && shape.dims[1] == -1);
    assert_true(attr_shape(op_attr(op, STR("any"))->default_value, &shape) && shape.rank == -1);
    assert_null(op_attr(op, STR("U"))->default_value.ptr);
    const OpDef bad[] = {{"Bad", "a: T", "T: type", 0}, {"Bad", "a -> b: T", "T: type", 0}, {"Bad", "a: T ->", "", 0}, {"Bad", "->", "n: int = x", 0}, {"Bad", "->", "n", 0}};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) expect_error(op_info_parse(a, &bad[i], &op), CODE_INTERNAL, "op Bad");
    arena_free(a);
}

/* ---- GraphDef ---- */

static void a_graph_survives_export_and_import(void **state) {
    (void)state;
    GraphBuilder b = {0};
    gb_op(&b, "sum", "AddV2", "x,split:1,^first", DT_FLOAT); /* before its inputs */
    gb_node(&b, "first", "NoOp", "");
    b.device = "/job:ps/task:1";
    gb_f32(&b, "x", 2);
    gb_i32(&b, "axis", 0);
    gb_op(&b, "split", "Split", "axis,x", DT_FLOAT);
    gb_int(&b, "num_split", 2);
    Graph *g = import_ok(&b);
    StrBuf once = {0}, twice = {0};
    graph_export(g, &(GraphExport){0}, &once);
    Graph *again = graph_new();
    expect_ok(graph_import(again, strbuf_str(&once)));
    graph_export(again, &(GraphExport){0}, &twice);
    assert_true(str_eq(strbuf_str(&once), strbuf_str(&twice)));
    Node *sum = graph_find(again, STR("sum"));
    assert_int_equal(sum->input_count, 2);
    assert_int_equal(sum->inputs[1].index, 1);
    expect_str(sum->inputs[1].node->name, "split");
    expect_str(sum->controls[0]->name, "first");
    expect_str(sum->inputs[0].node->device, "/job:ps/task:1");
    assert_int_equal(graph_find(again, STR("split"))->output_count, 2);
    strbuf_clear(&once);
    strbuf_clear(&twice);
    graph_free(again);
    drop(g);
}

static void defaults_are_left_out_when_asked(void **state) {
    (void)state;
    GraphBuilder b = {0};
    gb_node(&b, "q", "FIFOQueueV2", "");
    gb_types(&b, "component_types", (DataType[]){DT_FLOAT}, 1);
    gb_int(&b, "capacity", -1);
    gb_string(&b, "shared_name", "mine");
    Graph *g = import_ok(&b);
    StrBuf with = {0}, without = {0};
    node_export(g->nodes[0], &(GraphExport){0}, &with);
    node_export(g->nodes[0], &(GraphExport){.strip_defaults = true}, &without);
    assert_non_null(memmem(with.ptr, with.len, "capacity", 8));
    assert_null(memmem(without.ptr, without.len, "capacity", 8));
    assert_non_null(memmem(without.ptr, without.len, "mine", 4));
    strbuf_clear(&with);
    strbuf_clear(&without);
    drop(g);
}

static void graphs_that_make_no_sense_are_refused(void **state) {
    (void)state;
    GraphBuilder b = {0};
    gb_op(&b, "n", "Neg", "missing", DT_FLOAT);
    expect_import_error(&b, CODE_INVALID_ARGUMENT, "Node 'n': Unknown input node 'missing'");
    gb_node(&b, "n", "NoOp", "^missing");
    expect_import_error(&b, CODE_INVALID_ARGUMENT, "Unknown input node '^missing'");
    gb_node(&b, "n", "NoOp", "");
    gb_node(&b, "n", "NoOp", "");
    expect_import_error(&b, CODE_INVALID_ARGUMENT, "Node 'n' is not unique");
    gb_f32(&b, "x", 1);
    gb_op(&b, "n", "Neg", "x:1", DT_FLOAT);
    expect_import_error(&b, CODE_INVALID_ARGUMENT, "invalid output 1 of source node x which has 1 outputs");
    gb_f32(&b, "x", 1);
    gb_op(&b, "n", "Neg", "x:-1", DT_FLOAT);
    expect_import_error(&b, CODE_INVALID_ARGUMENT, "Unknown input node 'x:-1'");
    gb_f32(&b, "x", 1);
    gb_op(&b, "n", "Neg", "x", DT_INT32);
    expect_import_error(&b, CODE_INVALID_ARGUMENT, "Input 0 of node n was passed float from x:0 incompatible with expected int32");
    gb_f32(&b, "x", 1);
    gb_op(&b, "n", "AddV2", "x", DT_FLOAT);
    expect_import_error(&b, CODE_INVALID_ARGUMENT, "expected inputs '2' do not match 1 inputs");
    gb_f32(&b, "x", 1);
    gb_node(&b, "n", "Neg", "x");
    expect_import_error(&b, CODE_INVALID_ARGUMENT, "missing attr 'T'");
    gb_f32(&b, "x", 1);
    gb_op(&b, "n", "Neg", "x", DT_STRING);
    expect_import_error(&b, CODE_INVALID_ARGUMENT, "not in the list of allowed values");
    gb_f32(&b, "x", 1);
    gb_op(&b, "n", "AddN", "x", DT_FLOAT);
    gb_int(&b, "N", 0);
    expect_import_error(&b, CODE_INVALID_ARGUMENT, "must be at least minimum 1");
    gb_node(&b, "a b", "NoOp", "");
    expect_import_error(&b, CODE_INVALID_ARGUMENT, "Node name 'a b' is not valid");
    gb_node(&b, "", "NoOp", "");
    expect_import_error(&b, CODE_INVALID_ARGUMENT, "has no name");
    gb_f32(&b, "x", 1);
    gb_op(&b, "n", "Neg", "^x,x", DT_FLOAT);
    expect_import_error(&b, CODE_INVALID_ARGUMENT, "Control dependencies must come after");
    gb_op(&b, "assign", "Assign", "x,x", DT_FLOAT);
    gb_f32(&b, "x", 1);
    expect_import_error(&b, CODE_INVALID_ARGUMENT, "expected float_ref");
    strbuf_add(&b.def, STR("\x0a\x7f"));
    expect_import_error(&b, CODE_INVALID_ARGUMENT, "Malformed GraphDef");
    strbuf_add(&b.def, STR("\x0a\x02\x0a\x05"));
    expect_import_error(&b, CODE_INVALID_ARGUMENT, "Malformed NodeDef");
}

static void add_split(GraphBuilder *b, const char *name, const char *inputs, int parts, DataType type) {
    gb_op(b, name, "Split", inputs, type);
    gb_int(b, "num_split", parts);
    gb_bool(b, ATTR_GROWN, true);
}

/* Extends a graph, or takes everything back when `text` says which error there must be. */
static void extend(Graph *g, GraphBuilder *b, const char *text) {
    GraphUndo undo = graph_undo_begin(g);
    Error *err = graph_extend(g, gb_graph(b), &undo);
    gb_clear(b);
    if (text) {
        expect_error(err, CODE_INVALID_ARGUMENT, text);
        graph_undo(&undo, g);
    } else {
        expect_ok(err);
    }
    graph_undo_clear(&undo);
}

static void nodes_grow_and_failed_changes_are_taken_back(void **state) {
    (void)state;
    GraphBuilder b = {0};
    gb_f32(&b, "x", 2);
    gb_i32(&b, "axis", 0);
    gb_op(&b, "split", "Split", "axis,x", DT_FLOAT);
    gb_int(&b, "num_split", 2);
    gb_op(&b, "user", "Neg", "split:1", DT_FLOAT);
    Graph *g = import_ok(&b);
    StrBuf before = {0}, after = {0};
    graph_export(g, &(GraphExport){0}, &before);
    add_split(&b, "split", "axis,x", 1, DT_FLOAT);
    extend(g, &b, "Node 'split' (op Split) does not have the outputs it had before it grew");
    add_split(&b, "split", "axis,x", 3, DT_DOUBLE);
    extend(g, &b, "does not have the outputs it had");
    add_split(&b, "nowhere", "axis,x", 3, DT_FLOAT);
    extend(g, &b, "Node 'nowhere' cannot grow: it is not in the graph");
    add_split(&b, "split", "axis,user", 3, DT_FLOAT);
    extend(g, &b, "contains a cycle");
    add_split(&b, "split", "axis,x,^x", 3, DT_FLOAT);
    gb_op(&b, "late", "Neg", "split:3", DT_FLOAT);
    extend(g, &b, "invalid output 3 of source node split which has 3 outputs");
    graph_export(g, &(GraphExport){0}, &after);
    assert_true(str_eq(strbuf_str(&before), strbuf_str(&after)));
    for (int i = 0; i < 2; i++) add_split(&b, "split", "axis,x", 3, DT_FLOAT); /* twice does no harm */
    gb_op(&b, "late", "Neg", "split:2", DT_FLOAT);
    extend(g, &b, NULL);
    Node *split = graph_find(g, STR("split"));
    Str mark;
    assert_int_equal(split->output_count, 3);
    assert_int_equal(split->input_count, 2);
    assert_false(node_attr(split, ATTR_GROWN, &mark));
    assert_ptr_equal(graph_find(g, STR("user"))->inputs[0].node, split);
    strbuf_clear(&before);
    strbuf_clear(&after);
    drop(g);
}

static void a_cycle_is_an_error_unless_it_is_a_loop(void **state) {
    (void)state;
    GraphBuilder b = {0};
    gb_op(&b, "a", "Neg", "b", DT_FLOAT);
    gb_op(&b, "b", "Neg", "a", DT_FLOAT);
    expect_import_error(&b, CODE_INVALID_ARGUMENT, "contains a cycle with 2 nodes");
    gb_node(&b, "self", "NoOp", "^self");
    expect_import_error(&b, CODE_INVALID_ARGUMENT, "contains a cycle with 1 nodes, including: self");
    gb_i32(&b, "limit", 3);
    gb_count_loop(&b, "loop", "limit", 10, NULL);
    drop(import_ok(&b));
}

static void an_unknown_op_waits_until_it_is_run(void **state) {
    (void)state;
    GraphBuilder b = {0};
    gb_f32(&b, "x", 1);
    gb_node(&b, "odd", "NobodyKnowsThis", "x");
    gb_op(&b, "n", "Neg", "odd:7", DT_FLOAT);
    Graph *g = import_ok(&b);
    assert_null(graph_find(g, STR("odd"))->info);
    drop(g);
}

static void a_hundred_thousand_nodes_are_read_in_a_second(void **state) {
    (void)state;
    GraphBuilder b = {0};
    char name[32], input[32] = "x";
    gb_f32(&b, "x", 1);
    StrBuf all = {0};
    for (int i = 0; i < 100000; i++) {
        snprintf(name, sizeof name, "layer_%d/neg", i);
        gb_op(&b, name, "Neg", input, DT_FLOAT);
        memcpy(input, name, sizeof name);
        strbuf_addf(&all, "%s^%s", i ? "," : "", name);
    }
    gb_node(&b, "all", "NoOp", all.ptr);
    strbuf_clear(&all);
    int64_t start = clock_mono_ms();
    Graph *g = import_ok(&b);
    int64_t ms = clock_mono_ms() - start;
    assert_int_equal(g->node_count, 100002);
    assert_int_equal(graph_find(g, STR("all"))->control_count, 100000);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    assert_true(ms < 1000);
#else
    assert_true(ms < 10000);
#endif
    drop(g);
}

/* One byte changed, or the end cut off: an error or a graph, never a crash. */
static void damaged_graphs_never_crash(void **state) {
    (void)state;
    GraphBuilder b = {0}, body = {.node_field = 3};
    gb_f32(&b, "x", 1);
    gb_i32(&b, "limit", 3);
    gb_count_loop(&b, "loop", "limit", 10, NULL);
    gb_op(&body, "y", "Neg", "a", DT_FLOAT);
    gb_function(&b, "F", "a: float", "z: float", "z=y:y:0", &body);
    gb_node(&b, "call", "F", "x");
    gb_colocate(&b, "x");
    Str good = gb_graph(&b);
    unsigned seed = 5;
    for (size_t round = 0; round < good.len + 3000; round++) {
        StrBuf bad = {0};
        strbuf_add(&bad, round < good.len ? str_slice(good, 0, round) : good);
        for (int change = 0; round >= good.len && change < 3; change++) {
            seed = seed * 1103515245u + 12345u;
            bad.ptr[(seed >> 8) % bad.len] ^= (char)(1 << (seed >> 28 & 7));
        }
        Graph *g = graph_new();
        g->functions = function_library_new();
        Error *err = graph_import(g, strbuf_str(&bad));
        if (!err) {
            FrameMap frames;
            err = frame_map_build(g, &frames);
            if (!err) frame_map_clear(&frames);
        }
        const Function *f = function_find(g->functions, STR("F"));
        FunctionBody *made = NULL;
        if (f) error_free(function_instantiate(g->functions, f, NULL, 0, &made));
        function_body_free(made);
        error_free(err);
        strbuf_clear(&bad);
        drop(g);
    }
    gb_clear(&b);
}

/* ---- Loops ---- */

static void every_node_is_in_its_frame(void **state) {
    (void)state;
    GraphBuilder b = {0};
    gb_i32(&b, "limit", 3);
    gb_count_loop(&b, "loop", "limit", 7, NULL);
    gb_op(&b, "after", "Neg", "loop/exit", DT_INT32);
    Graph *g = import_ok(&b);
    FrameMap m;
    expect_ok(frame_map_build(g, &m));
    assert_int_equal(m.frame_count, 2);
    expect_str(m.frames[1].name, "loop");
    assert_int_equal(m.frames[1].parallel_iterations, 7);
    assert_int_equal(m.frames[1].enter_count, 2);
    expect_str(m.frames[1].loop_cond->name, "loop/cond");
    const struct {
        const char *node;
        int frame;
    } rows[] = {{"limit", 0}, {"loop/enter", 0}, {"loop/limit", 0}, {"loop/merge", 1}, {"loop/one", 1}, {"loop/next", 1}, {"loop/exit", 1}, {"after", 0}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) assert_int_equal(m.node_frame[graph_find(g, str_of(rows[i].node))->id], rows[i].frame);
    frame_map_clear(&m);
    drop(g);
    gb_i32(&b, "limit", 3);
    gb_count_loop(&b, "loop", "limit", 7, NULL);
    gb_op(&b, "mixed", "AddV2", "loop/body,limit", DT_INT32);
    g = import_ok(&b);
    expect_error(frame_map_build(g, &m), CODE_INVALID_ARGUMENT, "inputs from different frames");
    drop(g);
    gb_i32(&b, "x", 3);
    gb_op(&b, "out", "Exit", "x", DT_INT32);
    g = import_ok(&b);
    expect_error(frame_map_build(g, &m), CODE_INVALID_ARGUMENT, "Cannot find a corresponding Enter op");
    drop(g);
}

/* ---- Pruning ---- */

static const ClientDevice client = {{"/job:w/replica:0/task:0/device:CPU:0", 36}, 0xabc, 0};

static Error *prune(const Graph *g, const char *feed, const char *second_feed, const char *fetch, const char *target, Graph **out) {
    Str feeds[2] = {str_of(feed), str_of(second_feed)}, fetches[1] = {str_of(fetch)}, targets[1] = {str_of(target)};
    RunSignature sig = {.feeds = feeds, .fetches = fetches, .targets = targets, .feed_count = (feed != NULL) + (second_feed != NULL), .fetch_count = fetch != NULL, .target_count = target != NULL};
    return graph_prune(g, &sig, &client, out);
}

static void build_prunable(GraphBuilder *b) {
    gb_placeholder(b, "p", DT_FLOAT);
    gb_f32(b, "x", 1);
    gb_op(b, "sum", "AddV2", "p,x", DT_FLOAT);
    gb_op(b, "neg", "Neg", "sum,^effect", DT_FLOAT);
    gb_node(b, "effect", "NoOp", "^p");
    gb_op(b, "unrelated", "Neg", "x", DT_FLOAT);
}

static void only_what_is_needed_stays(void **state) {
    (void)state;
    GraphBuilder b = {0};
    build_prunable(&b);
    Graph *g = import_ok(&b), *out = NULL;
    expect_ok(prune(g, NULL, NULL, "sum:0", NULL, &out));
    assert_int_equal(out->node_count, 4);
    assert_null(graph_find(out, STR("unrelated")));
    Node *send = graph_find(out, STR("_send_sum_0"));
    expect_str(send->op, "_Send");
    Str name;
    expect_ok(node_attr_string(send, "tensor_name", &name));
    expect_str(name, "sum:0");
    graph_free(out);
    expect_ok(prune(g, NULL, NULL, NULL, "unrelated", &out));
    assert_int_equal(out->node_count, 2);
    graph_free(out);
    drop(g);
}

static void a_feed_replaces_what_it_feeds(void **state) {
    (void)state;
    GraphBuilder b = {0};
    build_prunable(&b);
    Graph *g = import_ok(&b), *out = NULL;
    expect_ok(prune(g, "p", NULL, "neg", NULL, &out));
    Node *recv = graph_find(out, STR("_recv_p_0"));
    expect_str(recv->op, "_Recv");
    assert_null(graph_find(out, STR("p")));
    assert_ptr_equal(graph_find(out, STR("sum"))->inputs[0].node, recv);
    assert_ptr_equal(graph_find(out, STR("effect"))->controls[0], recv); /* control edges of a placeholder move too */
    graph_free(out);
    expect_ok(prune(g, "sum:0", NULL, "neg:0", NULL, &out));
    assert_null(graph_find(out, STR("x")));
    assert_non_null(graph_find(out, STR("p"))); /* the effect still waits for it */
    graph_free(out);
    expect_ok(prune(g, "unrelated", NULL, "x", NULL, &out)); /* a feed nobody needs */
    assert_int_equal(out->node_count, 2);
    graph_free(out);
    char *key = client_key(&client, STR("p:0"));
    assert_string_equal(key, "/job:w/replica:0/task:0/device:CPU:0;0000000000000abc;/job:w/replica:0/task:0/device:CPU:0;p:0;0:0");
    free(key);
    drop(g);
}

static void runs_that_make_no_sense_are_refused(void **state) {
    (void)state;
    GraphBuilder b = {0};
    build_prunable(&b);
    Graph *g = import_ok(&b), *out = NULL;
    expect_error(prune(g, NULL, NULL, NULL, NULL, &out), CODE_INVALID_ARGUMENT, "Must specify at least one target to fetch or execute.");
    expect_error(prune(g, "p", "p:0", "sum", NULL, &out), CODE_INVALID_ARGUMENT, "fed more than once");
    expect_error(prune(g, "p", NULL, "p", NULL, &out), CODE_INVALID_ARGUMENT, "p is both fed and fetched.");
    expect_error(prune(g, "nobody", NULL, "sum", NULL, &out), CODE_NOT_FOUND, "nobody");
    expect_error(prune(g, NULL, NULL, "nobody:0", NULL, &out), CODE_NOT_FOUND, "nobody:0");
    expect_error(prune(g, NULL, NULL, NULL, "nobody", &out), CODE_NOT_FOUND, "nobody");
    expect_error(prune(g, NULL, NULL, "sum:3", NULL, &out), CODE_INVALID_ARGUMENT, "output index too large, must be < 1");
    expect_error(prune(g, NULL, NULL, "effect", NULL, &out), CODE_INVALID_ARGUMENT, "produces no output");
    expect_error(prune(g, "effect", NULL, "sum", NULL, &out), CODE_INVALID_ARGUMENT, "effect should have output index < 0");
    expect_error(prune(g, NULL, NULL, "sum:x", NULL, &out), CODE_NOT_FOUND, "FetchOutputs node sum:x: not found");
    drop(g);
}

/* ---- Functions ---- */

static void a_function_body_is_made_with_its_attributes(void **state) {
    (void)state;
    GraphBuilder b = {0}, body = {.node_field = 3};
    gb_i32(&body, "axis", 0);
    gb_op(&body, "parts", "Split", "axis:output:0,a", DT_FLOAT);
    gb_int(&body, "num_split", 2);
    gb_op(&body, "sum", "AddV2", "parts:output:1,b,^noop", DT_FLOAT);
    gb_node(&body, "noop", "NoOp", "");
    gb_attr_bytes(&body, "_from_caller", 9, STR("who"));
    gb_function(&b, "F", "a: float, b: float", "c: float, d: float", "c=sum:z:0,d=a,^noop", &body);
    Graph *g = import_ok(&b);
    const Function *f = function_find(g->functions, STR("F"));
    FunctionBody *made = NULL;
    Arena *arena = arena_new();
    Attr attrs[] = {{STR("who"), attr_make_string(arena, STR("me"))}};
    expect_ok(function_instantiate(g->functions, f, attrs, 1, &made));
    assert_int_equal(made->arg_count, 2);
    assert_int_equal(made->ret_count, 2);
    expect_str(made->rets[0].node->name, "sum");
    assert_ptr_equal(made->rets[1].node, made->args[0]);
    assert_int_equal(made->control_ret_count, 1);
    Node *sum = graph_find(made->graph, STR("sum"));
    assert_int_equal(sum->inputs[0].index, 1);
    Str value;
    expect_ok(node_attr_string(graph_find(made->graph, STR("noop")), "_from_caller", &value));
    expect_str(value, "me");
    function_body_free(made);
    arena_free(arena);
    drop(g);
}

static void functions_that_make_no_sense_are_refused(void **state) {
    (void)state;
    static const struct {
        const char *input, *ret, *error;
    } rows[] = {
        {"nobody", "z=y:y:0", "unknown input 'nobody'"}, {"a:9", "z=y:y:0", "invalid output 9"},   {"a:-1", "z=y:y:0", "malformed input 'a:-1'"},
        {"a", "z=y:y:7", "does not exist"},              {"a", "z=y:5", "which has 1"},            {"a", "z=y:99999999999", "malformed input"},
        {"a", "z=nobody", "unknown input"},              {"a", "q=y:y:0", "output z is not set"},  {"a", "z=y:nothing:0", "no output named 'nothing'"},
        {"a", "z=y:y:0,^nobody", "unknown control output"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        GraphBuilder b = {0}, body = {.node_field = 3};
        gb_op(&body, "y", "Neg", rows[i].input, DT_FLOAT);
        gb_function(&b, "F", "a: float", "z: float", rows[i].ret, &body);
        Graph *g = import_ok(&b);
        FunctionBody *made = NULL;
        expect_error(function_instantiate(g->functions, function_find(g->functions, STR("F")), NULL, 0, &made), CODE_INVALID_ARGUMENT, rows[i].error);
        drop(g);
    }
    GraphBuilder b = {0}, body = {.node_field = 3};
    gb_node(&body, "fake", "_Arg", "");
    gb_type(&body, "T", DT_FLOAT);
    gb_int(&body, "index", 99);
    gb_function(&b, "F", "a: float", "z: float", "z=fake:output:0", &body);
    Graph *g = import_ok(&b);
    FunctionBody *made = NULL;
    expect_error(function_instantiate(g->functions, function_find(g->functions, STR("F")), NULL, 0, &made), CODE_INVALID_ARGUMENT, "is an _Arg");
    drop(g);
    gb_function(&b, "Neg", "a: float", "z: float", "z=a", &body);
    expect_import_error(&b, CODE_INVALID_ARGUMENT, "an op with the same name already exists");
    gb_function(&b, "F", "a: float", "z: float", "z=a", &body);
    gb_function(&b, "F", "a: float", "z: float", "z=a", &body);
    drop(import_ok(&b)); /* the same again is fine */
    gb_function(&b, "F", "a: float", "z: float", "z=a", &body);
    gb_function(&b, "F", "a: float, b: float", "z: float", "z=a", &body);
    expect_import_error(&b, CODE_INVALID_ARGUMENT, "a different function with the same name");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(attributes_are_read_as_what_they_are), cmocka_unit_test(every_registered_row_is_whole), cmocka_unit_test(a_row_is_parsed),
        cmocka_unit_test(a_graph_survives_export_and_import), cmocka_unit_test(defaults_are_left_out_when_asked),
        cmocka_unit_test(nodes_grow_and_failed_changes_are_taken_back),
        cmocka_unit_test(graphs_that_make_no_sense_are_refused), cmocka_unit_test(a_cycle_is_an_error_unless_it_is_a_loop),
        cmocka_unit_test(an_unknown_op_waits_until_it_is_run), cmocka_unit_test(a_hundred_thousand_nodes_are_read_in_a_second),
        cmocka_unit_test(damaged_graphs_never_crash), cmocka_unit_test(every_node_is_in_its_frame), cmocka_unit_test(only_what_is_needed_stays),
        cmocka_unit_test(a_feed_replaces_what_it_feeds), cmocka_unit_test(runs_that_make_no_sense_are_refused),
        cmocka_unit_test(a_function_body_is_made_with_its_attributes), cmocka_unit_test(functions_that_make_no_sense_are_refused),
    };
    return cmocka_run_group_tests(tests, register_ops, NULL);
}
