/* placement_test.c: where nodes go, how a graph is cut, how functions become plain graphs. */
#include <stdlib.h>

#include "direct_run.h"
#include "graph/function.h"
#include "graph/graph_def.h"
#include "placement/lower.h"
#include "placement/partition.h"
#include "placement/placer.h"

enum { WORKER0, PS0, PS1, WORKER1, DEVICES };
static const char *const names[DEVICES] = {"/job:worker/replica:0/task:0/device:CPU:0", "/job:ps/replica:0/task:0/device:CPU:0", "/job:ps/replica:0/task:1/device:CPU:0",
                                           "/job:worker/replica:0/task:1/device:CPU:0"};
static PlacerDevice devices[DEVICES];
static PartitionDevice partition_devices[DEVICES];
static int edge_count;

static int set_up(void **state) {
    (void)state;
    ops_register_all();
    for (int i = 0; i < DEVICES; i++) {
        devices[i] = (PlacerDevice){.name = str_of(names[i]), .is_local = i == WORKER0, .priority = 50};
        expect_ok(device_name_parse(devices[i].name, &devices[i].parsed));
        partition_devices[i] = (PartitionDevice){.name = str_of(names[i]), .incarnation = 100 + (uint64_t)i, .task = i};
    }
    return 0;
}

static Graph *import(GraphBuilder *b) {
    Graph *g = graph_new();
    g->functions = function_library_new();
    expect_ok(graph_import(g, gb_graph(b)));
    gb_clear(b);
    return g;
}

static void drop(Graph *g) {
    FunctionLibrary *lib = g->functions;
    graph_free(g);
    function_library_free(lib);
}

static Error *place(Graph *g, bool soft) {
    return graph_place(g, &(PlacerOptions){.devices = devices, .device_count = DEVICES, .soft = soft});
}

static int placed(const Graph *g, const char *name) {
    return graph_find(g, str_of(name))->placed;
}

/* ---- Placing ---- */

static void nodes_go_where_they_are_told_others_to_the_master(void **state) {
    (void)state;
    GraphBuilder b = {0};
    b.device = "/job:ps/task:1";
    gb_f32(&b, "told", 1);
    b.device = "/job:worker";
    gb_op(&b, "some_worker", "Neg", "told", DT_FLOAT);
    b.device = "/cpu:0";
    gb_op(&b, "some_cpu", "Neg", "told", DT_FLOAT);
    b.device = "/job:ps";
    gb_op(&b, "some_ps", "Neg", "told", DT_FLOAT);
    b.device = NULL;
    gb_op(&b, "free", "Neg", "told", DT_FLOAT);
    Graph *g = import(&b);
    expect_ok(place(g, false));
    assert_int_equal(placed(g, "told"), PS1);
    assert_int_equal(placed(g, "some_worker"), WORKER0);
    assert_int_equal(placed(g, "some_cpu"), WORKER0);
    assert_int_equal(placed(g, "some_ps"), PS0);
    assert_int_equal(placed(g, "free"), WORKER0);
    drop(g);
}

static void ops_follow_the_variable_they_change(void **state) {
    (void)state;
    GraphBuilder b = {0};
    b.device = "/job:ps/task:1";
    gb_node(&b, "v", "VariableV2", "");
    gb_type(&b, "dtype", DT_FLOAT);
    gb_shape(&b, "shape", &SHAPE_SCALAR);
    gb_node(&b, "h", "VarHandleOp", "");
    gb_type(&b, "dtype", DT_FLOAT);
    gb_shape(&b, "shape", &SHAPE_SCALAR);
    b.device = NULL;
    gb_f32(&b, "x", 1);
    gb_op(&b, "unplaced", "Assign", "v,x", DT_FLOAT);
    gb_node(&b, "read", "ReadVariableOp", "h");
    gb_type(&b, "dtype", DT_FLOAT);
    b.device = "/job:worker/task:1";
    gb_op(&b, "misplaced", "AssignAdd", "v,x", DT_FLOAT);
    gb_op(&b, "value", "Identity", "v", DT_FLOAT);
    Graph *g = import(&b);
    expect_ok(place(g, false));
    assert_int_equal(placed(g, "unplaced"), PS1);
    assert_int_equal(placed(g, "read"), PS1);
    assert_int_equal(placed(g, "misplaced"), PS1);
    assert_int_equal(placed(g, "value"), WORKER1);
    drop(g);
}

static void colocated_nodes_share_a_device(void **state) {
    (void)state;
    GraphBuilder b = {0};
    b.device = "/job:ps/task:1";
    gb_placeholder(&b, "anchor", DT_FLOAT);
    b.device = NULL;
    gb_op(&b, "near", "Neg", "anchor", DT_FLOAT);
    gb_colocate(&b, "anchor");
    gb_op(&b, "nearer", "Neg", "near", DT_FLOAT);
    gb_colocate(&b, "near");
    gb_op(&b, "one", "Neg", "near", DT_FLOAT); /* a class that is no node joins its members */
    gb_colocate(&b, "somewhere");
    b.device = "/job:ps/task:0";
    gb_op(&b, "two", "Neg", "near", DT_FLOAT);
    gb_colocate(&b, "somewhere");
    Graph *g = import(&b);
    expect_ok(place(g, false));
    assert_int_equal(placed(g, "near"), PS1);
    assert_int_equal(placed(g, "nearer"), PS1);
    assert_int_equal(placed(g, "one"), PS0);
    assert_int_equal(placed(g, "two"), PS0);
    drop(g);
    b.device = "/job:ps/task:1";
    gb_placeholder(&b, "anchor", DT_FLOAT);
    b.device = "/job:ps/task:0";
    gb_op(&b, "torn", "Neg", "anchor", DT_FLOAT);
    gb_colocate(&b, "anchor");
    g = import(&b);
    expect_error(place(g, false), CODE_INVALID_ARGUMENT, "Cannot colocate nodes");
    drop(g);
}

static void what_cannot_be_placed_is_said(void **state) {
    (void)state;
    GraphBuilder b = {0};
    b.device = "/job:ps/task:7";
    gb_f32(&b, "far", 1);
    Graph *g = import(&b);
    expect_error(place(g, false), CODE_INVALID_ARGUMENT, "Cannot assign a device for operation far: {{node far}} was explicitly assigned to /job:ps/task:7 but available devices are [ /job:ps");
    expect_error(place(g, true), CODE_INVALID_ARGUMENT, "far");
    drop(g);
    b.device = "/gpu:0";
    gb_f32(&b, "x", 1);
    gb_op(&b, "n", "Neg", "x", DT_FLOAT);
    g = import(&b);
    expect_error(place(g, false), CODE_INVALID_ARGUMENT, "was explicitly assigned to /gpu:0 ");
    expect_ok(place(g, true));
    assert_int_equal(placed(g, "n"), WORKER0);
    drop(g);
    b.device = "here";
    gb_f32(&b, "odd", 1);
    g = import(&b);
    expect_error(place(g, false), CODE_INVALID_ARGUMENT, "Malformed device specification 'here' in node {{node odd}}");
    drop(g);
}

static void a_constant_goes_to_its_only_consumer(void **state) {
    (void)state;
    GraphBuilder b = {0};
    gb_f32(&b, "for_ps", 1);
    gb_f32(&b, "for_both", 1);
    b.device = "/job:ps/task:1";
    gb_op(&b, "sum", "AddV2", "for_ps,for_both", DT_FLOAT);
    b.device = "/job:worker/task:1";
    gb_op(&b, "other", "Neg", "for_both", DT_FLOAT);
    b.device = NULL;
    gb_op(&b, "size", "Size", "other", DT_FLOAT);
    Graph *g = import(&b);
    expect_ok(place(g, false));
    assert_int_equal(placed(g, "for_ps"), PS1);
    assert_int_equal(placed(g, "for_both"), WORKER0);
    assert_int_equal(placed(g, "size"), WORKER1);
    drop(g);
}

static void stateful_nodes_stay_where_they_were(void **state) {
    (void)state;
    GraphBuilder b = {0};
    gb_variable(&b, "v", 1);
    Graph *g = import(&b);
    StrMap fixed = {0};
    strmap_put(&fixed, STR("v"), (void *)(intptr_t)(PS1 + 1));
    expect_ok(graph_place(g, &(PlacerOptions){.devices = devices, .device_count = DEVICES, .fixed = &fixed}));
    assert_int_equal(placed(g, "v"), PS1);
    assert_int_equal(placed(g, "v/init"), PS1);
    strmap_clear(&fixed);
    drop(g);
}

/* ---- Cutting ---- */

static void cut(Graph *g, Graph **parts) {
    expect_ok(place(g, false));
    expect_ok(graph_partition(g, &(PartitionOptions){.devices = partition_devices, .device_count = DEVICES, .task_count = DEVICES, .edge_count = &edge_count}, parts));
}

static int count_op(const Graph *g, const char *op) {
    int n = 0;
    for (int i = 0; g && i < g->node_count; i++) n += node_is(g->nodes[i], op);
    return n;
}

static void free_parts(Graph **parts, Graph *g) {
    for (int i = 0; i < DEVICES; i++) graph_free(parts[i]);
    drop(g);
}

static Node *find_op(const Graph *g, const char *op) {
    for (int i = 0; i < g->node_count; i++)
        if (node_is(g->nodes[i], op)) return g->nodes[i];
    return NULL;
}

static void an_edge_is_sent_once_to_each_task(void **state) {
    (void)state;
    GraphBuilder b = {0};
    b.device = "/job:ps/task:0";
    gb_placeholder(&b, "x", DT_FLOAT);
    b.device = "/job:worker/task:0";
    gb_op(&b, "a", "Neg", "x", DT_FLOAT);
    gb_op(&b, "b", "AddV2", "x,x", DT_FLOAT);
    b.device = "/job:worker/task:1";
    gb_op(&b, "c", "Neg", "x", DT_FLOAT);
    Graph *g = import(&b), *parts[DEVICES];
    cut(g, parts);
    assert_null(parts[PS1]);
    assert_int_equal(count_op(parts[PS0], "_Send"), 2);
    assert_int_equal(count_op(parts[WORKER0], "_Recv"), 1);
    assert_int_equal(count_op(parts[WORKER1], "_Recv"), 1);
    Node *recv = find_op(parts[WORKER0], "_Recv");
    assert_ptr_equal(graph_find(parts[WORKER0], STR("a"))->inputs[0].node, recv);
    assert_ptr_equal(graph_find(parts[WORKER0], STR("b"))->inputs[1].node, recv);
    Str text, sent;
    int64_t incarnation;
    expect_ok(node_attr_string(recv, "send_device", &text));
    expect_str(text, names[PS0]);
    expect_ok(node_attr_string(recv, "recv_device", &text));
    expect_str(text, names[WORKER0]);
    expect_ok(node_attr_int(recv, "send_device_incarnation", &incarnation));
    assert_int_equal(incarnation, 100 + PS0);
    expect_ok(node_attr_string(recv, "tensor_name", &text));
    bool paired = false;
    for (int i = 0; i < parts[PS0]->node_count; i++) {
        if (!node_is(parts[PS0]->nodes[i], "_Send")) continue;
        expect_ok(node_attr_string(parts[PS0]->nodes[i], "tensor_name", &sent));
        paired |= str_eq(sent, text);
    }
    assert_true(paired);
    free_parts(parts, g);
}

static void a_control_edge_sends_an_empty_float(void **state) {
    (void)state;
    GraphBuilder b = {0};
    b.device = "/job:ps/task:0";
    gb_node(&b, "first", "NoOp", "");
    b.device = "/job:worker/task:0";
    gb_node(&b, "then", "NoOp", "^first");
    gb_node(&b, "also", "NoOp", "^first");
    Graph *g = import(&b), *parts[DEVICES];
    cut(g, parts);
    assert_int_equal(count_op(parts[PS0], "_Send"), 1);
    Node *then = graph_find(parts[WORKER0], STR("then"));
    expect_str(then->controls[0]->op, "Identity");
    assert_ptr_equal(then->controls[0], graph_find(parts[WORKER0], STR("also"))->controls[0]);
    expect_str(then->controls[0]->inputs[0].node->op, "_Recv");
    Node *token = find_op(parts[PS0], "Const");
    expect_str(token->controls[0]->name, "first");
    free_parts(parts, g);
}

static void a_reference_is_never_shared_and_read_late(void **state) {
    (void)state;
    GraphBuilder b = {0};
    b.device = "/job:ps/task:0";
    gb_node(&b, "v", "VariableV2", "");
    gb_type(&b, "dtype", DT_FLOAT);
    gb_shape(&b, "shape", &SHAPE_SCALAR);
    b.device = "/job:worker/task:0";
    gb_placeholder(&b, "x", DT_FLOAT);
    gb_op(&b, "a", "AddV2", "v,x", DT_FLOAT);
    gb_op(&b, "b", "Neg", "v", DT_FLOAT);
    Graph *g = import(&b), *parts[DEVICES];
    cut(g, parts);
    assert_int_equal(count_op(parts[WORKER0], "_Recv"), 2);
    Node *recv = graph_find(parts[WORKER0], STR("a"))->inputs[0].node;
    expect_str(recv->controls[0]->name, "x");
    free_parts(parts, g);
}

static void strings_travel_by_host(void **state) {
    (void)state;
    GraphBuilder b = {0};
    b.device = "/job:ps/task:0";
    gb_const(&b, "s", tensor_scalar_str(STR("text")), "");
    b.device = "/job:worker/task:0";
    gb_op(&b, "id", "Identity", "s", DT_STRING);
    Graph *g = import(&b), *parts[DEVICES];
    cut(g, parts);
    assert_int_equal(count_op(parts[PS0], "_HostSend"), 1);
    assert_int_equal(count_op(parts[WORKER0], "_HostRecv"), 1);
    free_parts(parts, g);
}

static void floats_may_travel_shortened(void **state) {
    (void)state;
    GraphBuilder b = {0};
    b.device = "/job:ps/task:0";
    gb_placeholder(&b, "x", DT_FLOAT);
    b.device = "/job:worker/task:0";
    gb_op(&b, "n", "Neg", "x", DT_FLOAT);
    Graph *g = import(&b), *parts[DEVICES];
    expect_ok(place(g, false));
    expect_ok(graph_partition(g, &(PartitionOptions){.devices = partition_devices, .device_count = DEVICES, .task_count = DEVICES, .edge_count = &edge_count, .bfloat16_edges = true}, parts));
    DataType type;
    expect_ok(node_attr_type(find_op(parts[WORKER0], "_Recv"), "tensor_type", &type));
    assert_int_equal(type, DT_BFLOAT16);
    expect_str(graph_find(parts[WORKER0], STR("n"))->inputs[0].node->op, "Cast");
    free_parts(parts, g);
}

static void what_the_first_task_sends_is_pushed_to_those_that_take_it(void **state) {
    (void)state;
    for (int from_first = 0; from_first < 2; from_first++) {
        GraphBuilder b = {0};
        b.device = "/job:ps/task:0";
        gb_placeholder(&b, "x", DT_FLOAT);
        b.device = "/job:worker/task:0";
        gb_op(&b, "n", "Neg", "x", DT_FLOAT);
        bool takes[DEVICES] = {false};
        PartitionDevice own[DEVICES];
        Graph *g = import(&b), *parts[DEVICES];
        Str value;
        expect_ok(place(g, false));
        memcpy(own, partition_devices, sizeof own);
        int first = from_first ? 0 : 1, other = 1 - first; /* tasks of the ps and of the worker */
        own[PS0].task = first;
        own[WORKER0].task = other;
        takes[0] = takes[1] = true;
        expect_ok(graph_partition(g, &(PartitionOptions){.devices = own, .device_count = DEVICES, .task_count = DEVICES, .edge_count = &edge_count, .pushed_to = takes}, parts));
        assert_int_equal(node_attr(find_op(parts[first], "_Send"), "_pushed", &value), from_first);
        assert_int_equal(node_attr(find_op(parts[other], "_Recv"), "_pushed", &value), from_first);
        free_parts(parts, g);
    }
}

static void a_loop_over_two_tasks_gets_a_control_loop(void **state) {
    (void)state;
    GraphBuilder b = {0};
    b.device = "/job:worker/task:0";
    gb_i32(&b, "limit", 3);
    gb_count_loop(&b, "loop", "limit", 10, "/job:ps/task:0");
    Graph *g = import(&b), *parts[DEVICES];
    cut(g, parts);
    Graph *ps = parts[PS0];
    assert_int_equal(count_op(ps, "Enter"), 1);
    assert_int_equal(count_op(ps, "Merge"), 1);
    Node *merge = find_op(ps, "Merge");
    assert_true(count_op(ps, "_Recv") >= 2);
    for (int i = 0; i < ps->node_count; i++) {
        if (!node_is(ps->nodes[i], "_Recv")) continue;
        assert_int_equal(ps->nodes[i]->control_count, 1);
        assert_ptr_equal(ps->nodes[i]->controls[0], merge);
    }
    Str frame;
    expect_ok(node_attr_string(find_op(ps, "Enter"), "frame_name", &frame));
    expect_str(frame, "loop");
    free_parts(parts, g);
}

/* ---- Lowering ---- */

/* F(x) = x * x; G(x) = -x; Bigger(x, limit) = x < limit; Double(x, limit) = 2x, limit. */
static void add_functions(GraphBuilder *b) {
    GraphBuilder body = {.node_field = 3};
    gb_op(&body, "y", "Square", "x", DT_FLOAT);
    gb_function(b, "F", "x: float", "z: float", "z=y:y:0", &body);
    gb_op(&body, "y", "Neg", "x", DT_FLOAT);
    gb_function(b, "G", "x: float", "z: float", "z=y:y:0", &body);
    gb_op(&body, "y", "Less", "x,limit", DT_FLOAT);
    gb_function(b, "Bigger", "x: float, limit: float", "z: bool", "z=y:z:0", &body);
    gb_op(&body, "y", "AddV2", "x,x", DT_FLOAT);
    gb_function(b, "Double", "x: float, limit: float", "z: float, l: float", "z=y:z:0,l=limit", &body);
}

static void gb_call(GraphBuilder *b, const char *name, const char *function, const char *inputs, int count) {
    const DataType types[] = {DT_FLOAT, DT_FLOAT, DT_FLOAT};
    gb_node(b, name, "PartitionedCall", inputs);
    gb_types(b, "Tin", types, count);
    gb_types(b, "Tout", types, 1);
    gb_func(b, "f", function);
}

static void gb_if(GraphBuilder *b, const char *name, const char *inputs, bool lower, const char *yes, const char *no) {
    const DataType types[] = {DT_FLOAT};
    gb_node(b, name, "If", inputs);
    gb_type(b, "Tcond", DT_BOOL);
    gb_types(b, "Tin", types, 1);
    gb_types(b, "Tout", types, 1);
    gb_func(b, "then_branch", yes);
    gb_func(b, "else_branch", no);
    gb_bool(b, "_lower_using_switch_merge", lower);
}

static void gb_while(GraphBuilder *b, const char *name, bool lower) {
    const DataType types[] = {DT_FLOAT, DT_FLOAT};
    gb_node(b, name, "While", "x,limit");
    gb_types(b, "T", types, 2);
    gb_func(b, "cond", "Bigger");
    gb_func(b, "body", "Double");
    gb_bool(b, "_lower_using_switch_merge", lower);
}

static void calls_branches_and_loops_give_the_same_lowered_or_not(void **state) {
    (void)state;
    for (int lower = 0; lower < 2; lower++) {
        GraphBuilder b = {0};
        add_functions(&b);
        gb_f32(&b, "x", 3);
        gb_f32(&b, "limit", 50);
        gb_placeholder(&b, "pred", DT_BOOL);
        gb_call(&b, "call", "F", "x", 1);
        gb_node(&b, "named", "G", "x"); /* the op is the function's name */
        gb_if(&b, "if", "pred,x", lower, "F", "G");
        gb_while(&b, "while", lower);
        DirectSession *s = open_session(&b, 2);
        assert_float_equal(run_f32(s, "call"), 9, 0);
        assert_float_equal(run_f32(s, "named"), -3, 0);
        assert_float_equal(run_f32(s, "while:0"), 96, 0);
        assert_float_equal(run_f32(s, "while:1"), 50, 0);
        for (int i = 0; i < 2; i++) {
            Tensor *pred = tensor_scalar_bool(i), *t = NULL;
            expect_ok(run_error(s, "if", NULL, "pred", pred, 60000, &t));
            assert_float_equal(tensor_f32(t)[0], i ? 9 : -3, 0);
            tensor_unref(t);
            tensor_unref(pred);
        }
        direct_session_free(s);
    }
}

static void cases_choose_their_branch(void **state) {
    (void)state;
    for (int lower = 0; lower < 2; lower++) {
        GraphBuilder b = {0};
        const DataType types[] = {DT_FLOAT};
        add_functions(&b);
        gb_f32(&b, "x", 3);
        gb_placeholder(&b, "which", DT_INT32);
        gb_node(&b, "case", "Case", "which,x");
        gb_types(&b, "Tin", types, 1);
        gb_types(&b, "Tout", types, 1);
        StrBuf list = {0}, f = {0};
        for (int i = 0; i < 2; i++) {
            f.len = 0;
            wire_put_bytes(&f, 1, i ? STR("G") : STR("F"));
            wire_put_bytes(&list, 9, strbuf_str(&f));
        }
        gb_attr_bytes(&b, "branches", 1, strbuf_str(&list));
        gb_bool(&b, "_lower_using_switch_merge", lower);
        strbuf_clear(&list);
        strbuf_clear(&f);
        DirectSession *s = open_session(&b, 2);
        const float expected[] = {-3, 9, -3, -3}; /* out of range: the last branch */
        for (int i = -1; i < 3; i++) {
            Tensor *which = tensor_scalar_i32(i), *t = NULL;
            expect_ok(run_error(s, "case", NULL, "which", which, 60000, &t));
            assert_float_equal(tensor_f32(t)[0], expected[i + 1], 0);
            tensor_unref(t);
            tensor_unref(which);
        }
        direct_session_free(s);
    }
}

static void functions_in_functions_are_lowered(void **state) {
    (void)state;
    GraphBuilder b = {0}, body = {.node_field = 3};
    add_functions(&b);
    gb_f32(&body, "zero", 0);
    gb_op(&body, "less", "Less", "x,zero:output:0", DT_FLOAT);
    gb_call(&body, "call", "F", "x", 1);
    gb_if(&body, "if", "less:z:0,call:output:0", true, "G", "F");
    gb_function(&b, "Outer", "x: float", "z: float", "z=if:output:0", &body);
    gb_f32(&b, "minus", -2);
    gb_f32(&b, "plus", 2);
    gb_call(&b, "a", "Outer", "minus", 1);
    gb_call(&b, "b", "Outer", "plus", 1);
    Graph *g = import(&b), *lowered = NULL;
    expect_ok(graph_lower(g, &lowered));
    assert_int_equal(count_op(lowered, "PartitionedCall") + count_op(lowered, "If"), 0);
    assert_true(count_op(lowered, "Merge") >= 2);
    graph_free(lowered);
    StrBuf def = {0};
    graph_export(g, &(GraphExport){0}, &def);
    DirectSession *s = NULL;
    expect_ok(direct_session_new(strbuf_str(&def), 2, &s));
    assert_float_equal(run_f32(s, "a"), -4, 0);
    assert_float_equal(run_f32(s, "b"), 16, 0);
    direct_session_free(s);
    strbuf_clear(&def);
    drop(g);
}

static void only_a_body_of_several_devices_says_where_its_nodes_run(void **state) {
    (void)state;
    for (int partitioned = 0; partitioned < 2; partitioned++) {
        GraphBuilder b = {0}, body = {.node_field = 3, .device = "/device:GPU:3"};
        gb_op(&body, "y", "Square", "x", DT_FLOAT);
        gb_function(&b, "F", "x: float", "z: float", "z=y:y:0", &body);
        b.device = "/job:worker/device:CPU:0";
        gb_f32(&b, "x", 3);
        if (partitioned) gb_call(&b, "call", "F", "x", 1);
        else gb_node(&b, "call", "F", "x");
        Graph *g = import(&b), *lowered = NULL;
        expect_ok(graph_lower(g, &lowered));
        expect_str(find_op(lowered, "Square")->device, partitioned ? "/job:worker/device:GPU:3" : "/job:worker/device:CPU:0");
        graph_free(lowered);
        drop(g);
    }
}

/* Factorial(n) = n < 2 ? 1 : n * Factorial(n - 1), by a function that calls itself in a branch. */
static void a_function_that_calls_itself_ends(void **state) {
    (void)state;
    for (int lower = 0; lower < 2; lower++) {
        GraphBuilder b = {0}, body = {.node_field = 3};
        gb_f32(&body, "one", 1);
        gb_function(&b, "One", "n: float", "z: float", "z=one:output:0", &body);
        gb_f32(&body, "one", 1);
        gb_op(&body, "less", "Sub", "n,one:output:0", DT_FLOAT);
        gb_call(&body, "again", "Factorial", "less:z:0", 1);
        gb_op(&body, "product", "Mul", "n,again:output:0", DT_FLOAT);
        gb_function(&b, "Step", "n: float", "z: float", "z=product:z:0", &body);
        gb_f32(&body, "two", 2);
        gb_op(&body, "small", "Less", "n,two:output:0", DT_FLOAT);
        gb_if(&body, "if", "small:z:0,n", lower, "One", "Step");
        gb_function(&b, "Factorial", "n: float", "z: float", "z=if:output:0", &body);
        gb_f32(&b, "five", 5);
        gb_call(&b, "result", "Factorial", "five", 1);
        DirectSession *s = open_session(&b, 2);
        assert_float_equal(run_f32(s, "result"), 120, 0);
        direct_session_free(s);
    }
}

static void effects_of_a_branch_run_only_there(void **state) {
    (void)state;
    for (int lower = 0; lower < 2; lower++) {
        GraphBuilder b = {0}, body = {.node_field = 3};
        gb_f32(&body, "ten", 10);
        gb_node(&body, "add", "AssignAddVariableOp", "h,ten:output:0");
        gb_type(&body, "dtype", DT_FLOAT);
        gb_op(&body, "out", "Identity", "ten:output:0,^add", DT_FLOAT);
        gb_function(&b, "AddTen", "h: resource", "z: float", "z=out:output:0,^add", &body);
        gb_f32(&body, "zero", 0);
        gb_function(&b, "Leave", "h: resource", "z: float", "z=zero:output:0", &body);
        gb_resource_variable(&b, "v", 1);
        gb_placeholder(&b, "pred", DT_BOOL);
        const DataType in[] = {DT_RESOURCE}, out[] = {DT_FLOAT};
        gb_node(&b, "if", "If", "pred,v");
        gb_type(&b, "Tcond", DT_BOOL);
        gb_types(&b, "Tin", in, 1);
        gb_types(&b, "Tout", out, 1);
        gb_func(&b, "then_branch", "AddTen");
        gb_func(&b, "else_branch", "Leave");
        gb_bool(&b, "_lower_using_switch_merge", lower);
        DirectSession *s = open_session(&b, 2);
        run_target(s, "v/init");
        float expected = 1;
        for (int i = 0; i < 4; i++) {
            Tensor *pred = tensor_scalar_bool(i % 2);
            expect_ok(run_error(s, NULL, "if", "pred", pred, 60000, NULL));
            tensor_unref(pred);
            if (i % 2) expected += 10;
            assert_float_equal(run_f32(s, "v/read"), expected, 0);
        }
        direct_session_free(s);
    }
}

static void calls_that_make_no_sense_fail_when_they_are_run(void **state) {
    (void)state;
    GraphBuilder b = {0};
    add_functions(&b);
    gb_f32(&b, "x", 3);
    gb_call(&b, "lost", "Nobody", "x", 1);
    gb_call(&b, "call", "F", "x,x", 2);
    DirectSession *s = open_session(&b, 2);
    assert_float_equal(run_f32(s, "x"), 3, 0);
    expect_error(run_error(s, NULL, "lost", NULL, NULL, 60000, NULL), CODE_NOT_FOUND, "Nobody");
    expect_error(run_error(s, NULL, "call", NULL, NULL, 60000, NULL), CODE_INVALID_ARGUMENT, "takes 1 arguments");
    direct_session_free(s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nodes_go_where_they_are_told_others_to_the_master), cmocka_unit_test(ops_follow_the_variable_they_change),
        cmocka_unit_test(colocated_nodes_share_a_device), cmocka_unit_test(what_cannot_be_placed_is_said),
        cmocka_unit_test(a_constant_goes_to_its_only_consumer), cmocka_unit_test(stateful_nodes_stay_where_they_were),
        cmocka_unit_test(an_edge_is_sent_once_to_each_task), cmocka_unit_test(a_control_edge_sends_an_empty_float),
        cmocka_unit_test(a_reference_is_never_shared_and_read_late), cmocka_unit_test(strings_travel_by_host),
        cmocka_unit_test(floats_may_travel_shortened),
        cmocka_unit_test(what_the_first_task_sends_is_pushed_to_those_that_take_it), cmocka_unit_test(a_loop_over_two_tasks_gets_a_control_loop),
        cmocka_unit_test(calls_branches_and_loops_give_the_same_lowered_or_not), cmocka_unit_test(cases_choose_their_branch),
        cmocka_unit_test(functions_in_functions_are_lowered), cmocka_unit_test(only_a_body_of_several_devices_says_where_its_nodes_run),
        cmocka_unit_test(a_function_that_calls_itself_ends),
        cmocka_unit_test(effects_of_a_branch_run_only_there), cmocka_unit_test(calls_that_make_no_sense_fail_when_they_are_run),
    };
    return cmocka_run_group_tests(tests, set_up, NULL);
}
