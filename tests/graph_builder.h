/* graph_builder.h: GraphDef and FunctionDef bytes written by hand, one node at a time, for tests. */
#pragma once
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "proto/wire.h"
#include "tensor/tensor.h"
#include "tensor/tensor_proto.h"

/* Zero-initialised is an empty GraphDef. A node is open from gb_node until the next one; attributes go to the open node. */
typedef struct GraphBuilder {
    StrBuf def, node;
    uint32_t node_field; /* 0: GraphDef's; 3: FunctionDef's */
    bool is_open;
    const char *device; /* of the nodes that follow; NULL: none */
} GraphBuilder;

static inline void gb_close_node(GraphBuilder *b) {
    if (b->is_open) wire_put_bytes(&b->def, b->node_field ? b->node_field : 1, strbuf_str(&b->node));
    b->is_open = false;
    b->node.len = 0;
}

/* inputs: "a,b:1,^c" or "". */
static inline void gb_node(GraphBuilder *b, const char *name, const char *op, const char *inputs) {
    gb_close_node(b);
    b->is_open = true;
    wire_put_bytes(&b->node, 1, str_of(name));
    wire_put_bytes(&b->node, 2, str_of(op));
    Str rest = str_of(inputs);
    while (rest.len) wire_put_bytes(&b->node, 3, str_next(&rest, ','));
    if (b->device) wire_put_bytes(&b->node, 4, str_of(b->device));
}

/* An attribute whose AttrValue is given serialised. */
static inline void gb_attr(GraphBuilder *b, const char *name, Str value) {
    StrBuf entry = {0};
    wire_put_bytes(&entry, 1, str_of(name));
    wire_put_bytes(&entry, 2, value);
    wire_put_bytes(&b->node, 5, strbuf_str(&entry));
    strbuf_clear(&entry);
}

static inline void gb_attr_bytes(GraphBuilder *b, const char *name, uint32_t field, Str bytes) {
    StrBuf value = {0};
    wire_put_bytes(&value, field, bytes);
    gb_attr(b, name, strbuf_str(&value));
    strbuf_clear(&value);
}

static inline void gb_attr_number(GraphBuilder *b, const char *name, uint32_t field, uint64_t number) {
    StrBuf value = {0};
    wire_put_uint(&value, field, number);
    gb_attr(b, name, strbuf_str(&value));
    strbuf_clear(&value);
}

static inline void gb_string(GraphBuilder *b, const char *name, const char *text) { gb_attr_bytes(b, name, 2, str_of(text)); }
static inline void gb_int(GraphBuilder *b, const char *name, int64_t v) { gb_attr_number(b, name, 3, (uint64_t)v); }
static inline void gb_bool(GraphBuilder *b, const char *name, bool v) { gb_attr_number(b, name, 5, v); }
static inline void gb_type(GraphBuilder *b, const char *name, DataType t) { gb_attr_number(b, name, 6, (uint64_t)t); }

static inline void gb_shape(GraphBuilder *b, const char *name, const PartialShape *shape) {
    StrBuf bytes = {0};
    shape_encode(shape, &bytes);
    gb_attr_bytes(b, name, 7, strbuf_str(&bytes));
    strbuf_clear(&bytes);
}

static inline void gb_types(GraphBuilder *b, const char *name, const DataType *types, int count) {
    StrBuf list = {0};
    for (int i = 0; i < count; i++) wire_put_uint(&list, 6, (uint64_t)types[i]);
    gb_attr_bytes(b, name, 1, strbuf_str(&list));
    strbuf_clear(&list);
}

static inline void gb_shapes(GraphBuilder *b, const char *name, const PartialShape *shapes, int count) {
    StrBuf list = {0};
    for (int i = 0; i < count; i++) {
        StrBuf bytes = {0};
        shape_encode(&shapes[i], &bytes);
        wire_put_bytes(&list, 7, strbuf_str(&bytes));
        strbuf_clear(&bytes);
    }
    gb_attr_bytes(b, name, 1, strbuf_str(&list));
    strbuf_clear(&list);
}

/* The attribute _class with one "loc:@NODE". */
static inline void gb_colocate(GraphBuilder *b, const char *node) {
    StrBuf list = {0}, text = {0};
    strbuf_addf(&text, "loc:@%s", node);
    wire_put_bytes(&list, 2, strbuf_str(&text));
    gb_attr_bytes(b, "_class", 1, strbuf_str(&list));
    strbuf_clear(&text);
    strbuf_clear(&list);
}

/* A function attribute without attributes of its own. */
static inline void gb_func(GraphBuilder *b, const char *name, const char *function) {
    StrBuf list = {0};
    wire_put_bytes(&list, 1, str_of(function));
    gb_attr_bytes(b, name, 10, strbuf_str(&list));
    strbuf_clear(&list);
}

static inline void gb_const(GraphBuilder *b, const char *name, Tensor *take, const char *controls) {
    gb_node(b, name, "Const", controls);
    StrBuf bytes = {0};
    tensor_proto_encode(take, &bytes);
    gb_type(b, "dtype", take->dtype);
    gb_attr_bytes(b, "value", 8, strbuf_str(&bytes));
    strbuf_clear(&bytes);
    tensor_unref(take);
}

static inline void gb_f32(GraphBuilder *b, const char *name, float v) { gb_const(b, name, tensor_scalar_f32(v), ""); }
static inline void gb_i32(GraphBuilder *b, const char *name, int v) { gb_const(b, name, tensor_scalar_i32(v), ""); }

/* A node with one type attribute T. */
static inline void gb_op(GraphBuilder *b, const char *name, const char *op, const char *inputs, DataType type) {
    gb_node(b, name, op, inputs);
    gb_type(b, "T", type);
}

static inline void gb_placeholder(GraphBuilder *b, const char *name, DataType type) {
    gb_node(b, name, "Placeholder", "");
    gb_type(b, "dtype", type);
}

/* A reference variable of a scalar float, NAME; NAME/init assigns it, NAME/read reads it. */
static inline void gb_variable(GraphBuilder *b, const char *name, float start) {
    char text[200], inputs[400];
    gb_node(b, name, "VariableV2", "");
    gb_type(b, "dtype", DT_FLOAT);
    gb_shape(b, "shape", &SHAPE_SCALAR);
    snprintf(text, sizeof text, "%s/start", name);
    gb_f32(b, text, start);
    snprintf(inputs, sizeof inputs, "%s,%s/start", name, name);
    snprintf(text, sizeof text, "%s/init", name);
    gb_op(b, text, "Assign", inputs, DT_FLOAT);
    snprintf(text, sizeof text, "%s/read", name);
    gb_op(b, text, "Identity", name, DT_FLOAT);
}

/* The same as a resource variable: readers get a value nobody changes any more. */
static inline void gb_resource_variable(GraphBuilder *b, const char *name, float start) {
    char text[200], inputs[400];
    gb_node(b, name, "VarHandleOp", "");
    gb_type(b, "dtype", DT_FLOAT);
    gb_shape(b, "shape", &SHAPE_SCALAR);
    gb_string(b, "shared_name", name);
    snprintf(text, sizeof text, "%s/start", name);
    gb_f32(b, text, start);
    snprintf(inputs, sizeof inputs, "%s,%s/start", name, name);
    snprintf(text, sizeof text, "%s/init", name);
    gb_node(b, text, "AssignVariableOp", inputs);
    gb_type(b, "dtype", DT_FLOAT);
    snprintf(text, sizeof text, "%s/read", name);
    gb_node(b, text, "ReadVariableOp", name);
    gb_type(b, "dtype", DT_FLOAT);
}

/* A loop that counts an int32 from 0 to LIMIT (a tensor name) in steps of one; its result is NAME/exit. The sum is made on `body_device`, the rest on the
 * builder's device. */
static inline void gb_count_loop(GraphBuilder *b, const char *name, const char *limit, int parallel_iterations, const char *body_device) {
    char n[12][160], in[400];
    static const char *const parts[] = {"zero", "enter", "limit", "merge", "less", "cond", "switch", "body", "one", "add", "next", "exit"};
    for (int i = 0; i < 12; i++) snprintf(n[i], sizeof n[i], "%s/%s", name, parts[i]);
    enum { ZERO, ENTER, LIMIT, MERGE, LESS, COND, SWITCH, BODY, ONE, ADD, NEXT, EXIT };
    gb_i32(b, n[ZERO], 0);
    for (int i = 0; i < 2; i++) {
        gb_op(b, i ? n[LIMIT] : n[ENTER], "Enter", i ? limit : n[ZERO], DT_INT32);
        gb_string(b, "frame_name", name);
        gb_bool(b, "is_constant", i == 1);
        gb_int(b, "parallel_iterations", parallel_iterations);
    }
    snprintf(in, sizeof in, "%s,%s", n[ENTER], n[NEXT]);
    gb_op(b, n[MERGE], "Merge", in, DT_INT32);
    gb_int(b, "N", 2);
    snprintf(in, sizeof in, "%s,%s", n[MERGE], n[LIMIT]);
    gb_op(b, n[LESS], "Less", in, DT_INT32);
    gb_node(b, n[COND], "LoopCond", n[LESS]);
    snprintf(in, sizeof in, "%s,%s", n[MERGE], n[COND]);
    gb_op(b, n[SWITCH], "Switch", in, DT_INT32);
    snprintf(in, sizeof in, "%s:1", n[SWITCH]);
    gb_op(b, n[BODY], "Identity", in, DT_INT32);
    const char *device = b->device;
    if (body_device) b->device = body_device;
    snprintf(in, sizeof in, "^%s", n[BODY]);
    gb_const(b, n[ONE], tensor_scalar_i32(1), in);
    snprintf(in, sizeof in, "%s,%s", n[BODY], n[ONE]);
    gb_op(b, n[ADD], "AddV2", in, DT_INT32);
    b->device = device;
    gb_op(b, n[NEXT], "NextIteration", n[ADD], DT_INT32);
    gb_op(b, n[EXIT], "Exit", n[SWITCH], DT_INT32);
}

/* Adds a FunctionDef to the graph: arguments and results are "x: float, y: int32"; ret maps results, "z=node:out:0"; `body` holds the nodes
 * (node_field 3) and is cleared. Control results run by name: "^node". */
static inline void gb_function(GraphBuilder *b, const char *name, const char *args, const char *results, const char *ret, GraphBuilder *body) {
    StrBuf function = {0}, signature = {0}, arg = {0}, library = {0};
    gb_close_node(body);
    wire_put_bytes(&signature, 1, str_of(name));
    for (uint32_t field = 2; field <= 3; field++) {
        Str rest = str_of(field == 2 ? args : results);
        while (rest.len) {
            Str item = str_next(&rest, ',');
            Str arg_name = str_trim(str_next(&item, ':'));
            arg.len = 0;
            wire_put_bytes(&arg, 1, arg_name);
            wire_put_uint(&arg, 3, (uint64_t)dtype_from_name(str_trim(item)));
            wire_put_bytes(&signature, field, strbuf_str(&arg));
        }
    }
    wire_put_bytes(&function, 1, strbuf_str(&signature));
    strbuf_add(&function, strbuf_str(&body->def));
    Str rest = str_of(ret);
    while (rest.len) {
        Str value = str_next(&rest, ',');
        bool control = value.len && value.ptr[0] == '^';
        Str key = control ? STR("effect") : str_next(&value, '=');
        arg.len = 0;
        wire_put_bytes(&arg, 1, key);
        wire_put_bytes(&arg, 2, control ? str_slice(value, 1, value.len) : value);
        wire_put_bytes(&function, control ? 6 : 4, strbuf_str(&arg));
    }
    wire_put_bytes(&library, 1, strbuf_str(&function));
    gb_close_node(b);
    wire_put_bytes(&b->def, 2, strbuf_str(&library));
    strbuf_clear(&function);
    strbuf_clear(&signature);
    strbuf_clear(&arg);
    strbuf_clear(&library);
    strbuf_clear(&body->def);
    strbuf_clear(&body->node);
    *body = (GraphBuilder){.node_field = 3};
}

static inline Str gb_graph(GraphBuilder *b) {
    gb_close_node(b);
    return strbuf_str(&b->def);
}

static inline void gb_clear(GraphBuilder *b) {
    strbuf_clear(&b->def);
    strbuf_clear(&b->node);
    *b = (GraphBuilder){0};
}
