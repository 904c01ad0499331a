/* malformed_call.h: Call, one op with valid arguments, recorded or made up from its definition; and graphs that run it with others. */
#pragma once
#include "graph/function.h"
#include "graph/graph_def.h"
#include "graph_builder.h"
#include "malformed_attrs.h"
#include "malformed_values.h"
#include "runtime/direct_session.h"

enum { MAX_INPUTS = 24 };

typedef struct Call {
    Graph *graph; /* its node "x" is the call */
    Node *x;
    Str library; /* the GraphDef's FunctionDefLibrary */
    const OpInfo *op;
} Call;

/* What is changed in a graph of the call. */
typedef struct Change {
    const AttrInfo *attr;    /* (optional) gets this value */
    Str value;
    const AttrInfo *retyped; /* (optional) the type attribute that becomes `type` */
    DataType type;
    int handle_input;        /* this input gets bad_handle(handle_row), or another's handle; -1: none */
    int handle_row;
    bool leave_variables;    /* without a value */
} Change;

static const Change NO_CHANGE = {.handle_input = -1};

/* A graph ready to be run: which inputs are fed, with what by rights. */
typedef struct Prepared {
    DirectSession *session;
    char names[2 * MAX_INPUTS][16];
    Tensor *valid[2 * MAX_INPUTS];
    int feed_count;
    int input_feeds;    /* of these the first are inputs of the op, others values of variables */
    bool has_iterator;  /* the call makes a dataset: targets "make" and "next" draw from it */
} Prepared;

static inline bool call_read(Str graph_def, Call *c) {
    *c = (Call){.graph = graph_new()};
    c->graph->functions = function_library_new();
    WireReader r = wire_reader(graph_def);
    while (wire_next(&r))
        if (r.field == 2 && r.type == WIRE_BYTES) c->library = r.bytes;
    Error *err = graph_import(c->graph, graph_def);
    c->x = err ? NULL : graph_find(c->graph, STR("x"));
    c->op = c->x ? c->x->info : NULL;
    error_free(err);
    return c->op && c->x->input_count <= MAX_INPUTS;
}

static inline void call_clear(Call *c) {
    FunctionLibrary *functions = c->graph->functions;
    graph_free(c->graph);
    function_library_free(functions);
}

static inline bool is_constant(const Node *n) {
    return node_is(n, "Const");
}

static inline Tensor *constant_of(const Node *n) {
    Str value, proto;
    Tensor *t = NULL;
    if (node_attr(n, "value", &value) && attr_tensor(value, &proto)) error_free(tensor_proto_decode(proto, &t));
    return t;
}

static inline Tensor *usual_tensor(DataType dtype) {
    Tensor *t = NULL;
    Shape shape = shape_matrix(2, 2);
    error_free(tensor_new(dtype, dtype == DT_STRING ? &SHAPE_SCALAR : &shape, &t));
    for (int64_t i = 0; t && i < t->count; i++) set_element(t, i, 1);
    return t;
}

static inline void add_feed(Prepared *p, GraphBuilder *b, Tensor *valid) {
    snprintf(p->names[p->feed_count], sizeof p->names[0], "p%d", p->feed_count);
    gb_placeholder(b, p->names[p->feed_count], valid->dtype);
    p->valid[p->feed_count++] = valid;
}

/* Nodes that make handles of several kinds: where a handle of the wrong kind comes from. */
static inline const char *add_maker(GraphBuilder *b, DataType dtype, int row) {
    static const Shape any = {.rank = -1};
    DataType type = DT_FLOAT;
    if (dtype == DT_VARIANT && row % 2 == 0) {
        gb_const(b, "m_zero", tensor_scalar_i64(0), "");
        gb_const(b, "m_stop", tensor_scalar_i64(3), "");
        gb_const(b, "m_step", tensor_scalar_i64(1), "");
        gb_node(b, "maker", "RangeDataset", "m_zero,m_stop,m_step");
        type = DT_INT64;
        gb_types(b, "output_types", &type, 1);
        gb_shapes(b, "output_shapes", &SHAPE_SCALAR, 1);
    } else if (dtype == DT_VARIANT) {
        gb_const(b, "m_shape", tensor_scalar_i32(-1), "");
        gb_i32(b, "m_size", 3);
        gb_node(b, "maker", "TensorListReserve", "m_shape,m_size");
        gb_type(b, "element_dtype", DT_FLOAT);
        gb_type(b, "shape_type", DT_INT32);
    } else if (row % 4 == 0) {
        gb_node(b, "maker", "FIFOQueueV2", "");
        gb_types(b, "component_types", &type, 1);
    } else if (row % 4 == 1) {
        gb_node(b, "maker", "VarHandleOp", "");
        gb_type(b, "dtype", DT_STRING);
        gb_shape(b, "shape", &any);
    } else if (row % 4 == 2) {
        gb_node(b, "maker", "HashTableV2", "");
        gb_type(b, "key_dtype", DT_STRING);
        gb_type(b, "value_dtype", DT_INT64);
    } else {
        gb_i32(b, "m_size", 2);
        gb_node(b, "maker", "TensorArrayV3", "m_size");
        gb_type(b, "dtype", DT_FLOAT);
    }
    return "maker";
}

static inline DataType changed_type(const Change *change, Str attr_name, Str value, bool *changed) {
    DataType t = DT_INVALID;
    *changed = change->retyped && str_eq(attr_name, change->retyped->name) && attr_type(value, &t);
    return change->type;
}

/* The call's own node; with other attributes when the change says so. */
static inline void add_call_node(GraphBuilder *b, const Call *c, const Change *change, const char *inputs) {
    char *op = str_dup(c->x->op);
    gb_node(b, "x", op, inputs);
    free(op);
    for (int i = 0; i < c->op->attr_count; i++) {
        const AttrInfo *attr = &c->op->attrs[i];
        char *name = str_dup(attr->name);
        Str value;
        bool retype = false;
        if (change->attr == attr)
            gb_attr(b, name, change->value);
        else if (node_attr(c->x, name, &value)) {
            DataType type = changed_type(change, attr->name, value, &retype);
            if (retype)
                gb_type(b, name, type);
            else
                gb_attr(b, name, value);
        }
        free(name);
    }
}

/* How many inputs of which types the op wants with these attributes. */
static inline bool input_types(const Call *c, const Change *change, DataType *types, int *count) {
    GraphBuilder b = {0};
    add_call_node(&b, c, change, "");
    Arena *arena = arena_new();
    Graph *g = graph_new();
    NodeDefView view;
    Node *n = NULL;
    gb_close_node(&b);
    WireReader r = wire_reader(strbuf_str(&b.def));
    bool ok = wire_next(&r);
    Error *err = node_def_view(arena, r.bytes, &view);
    if (!err) err = graph_add_node(g, STR("x"), view.op, STR(""), &n);
    for (int i = 0; !err && i < view.attr_count; i++) node_add_attr(g, n, view.attrs[i].name, view.attrs[i].value);
    if (!err) err = node_resolve(g, n);
    ok = ok && !err && n->expected_inputs <= MAX_INPUTS;
    *count = ok ? n->expected_inputs : 0;
    for (int i = 0; i < *count; i++) types[i] = n->input_types[i];
    error_free(err);
    graph_free(g);
    arena_free(arena);
    gb_clear(&b);
    return ok;
}

static inline bool is_variable(const Node *n) {
    return node_is(n, "VarHandleOp") || node_is(n, "VariableV2") || node_is(n, "Variable");
}

/* Gives a copied variable a value, which is fed. */
static inline void add_init(GraphBuilder *b, Prepared *p, const char *name, bool is_ref, DataType dtype, const Shape *shape, StrBuf *controls) {
    if (p->feed_count == 2 * MAX_INPUTS) return;
    Shape full = *shape;
    for (int i = 0; i < full.rank; i++)
        if (full.dims[i] < 0 || full.dims[i] > 100) full.dims[i] = 2;
    Tensor *t = NULL;
    if (full.rank < 0) full = shape_matrix(2, 2);
    error_free(tensor_new(dtype, &full, &t));
    if (!t) return;
    for (int64_t i = 0; i < t->count; i++) set_element(t, i, (long double)(i % 3));
    add_feed(p, b, t);
    char node[80], inputs[160];
    snprintf(node, sizeof node, "%s/init", name);
    snprintf(inputs, sizeof inputs, "%s,%s", name, p->names[p->feed_count - 1]);
    gb_node(b, node, is_ref ? "Assign" : "AssignVariableOp", inputs);
    gb_type(b, is_ref ? "T" : "dtype", dtype);
    if (is_ref) gb_bool(b, "validate_shape", false);
    strbuf_addf(controls, ",^%s", node);
}

/* A node the call depends on, as recorded, in the changed type where it had the old one. */
static inline void add_copied(GraphBuilder *b, Prepared *p, const Call *c, const Node *n, const Change *change, StrBuf *controls) {
    DataType old = DT_INVALID, own = DT_INVALID;
    char *old_name = change->retyped ? str_dup(change->retyped->name) : NULL;
    if (old_name) error_free(node_attr_type(c->x, old_name, &old));
    free(old_name);
    StrBuf inputs = {0};
    for (int i = 0; i < n->input_count; i++) strbuf_addf(&inputs, "%s%.*s:%d", i ? "," : "", STR_ARG(n->inputs[i].node->name), n->inputs[i].index);
    char *op = str_dup(n->op), *name = str_dup(n->name);
    gb_node(b, name, op, strbuf_str(&inputs).ptr);
    DataType dtype = DT_INVALID;
    for (int i = 0; i < n->attr_count; i++) {
        char *attr = str_dup(n->attrs[i].name);
        bool matches = old && attr_type(n->attrs[i].value, &own) && own == old && !is_constant(n);
        if (matches)
            gb_type(b, attr, change->type);
        else
            gb_attr(b, attr, n->attrs[i].value);
        if (strcmp(attr, "dtype") == 0) dtype = matches ? change->type : own;
        free(attr);
    }
    if (dtype == DT_INVALID) error_free(node_attr_type(n, "dtype", &dtype));
    PartialShape shape = {.rank = -1};
    if (is_variable(n) && !change->leave_variables) {
        error_free(node_attr_shape(n, "shape", &shape));
        add_init(b, p, name, !node_is(n, "VarHandleOp"), dtype, &shape, controls);
    }
    free(op);
    free(name);
    strbuf_clear(&inputs);
}

static inline bool feeds_call_alone(const Call *c, const Node *n) {
    for (int i = 0; i < c->graph->node_count; i++)
        for (int j = 0; c->graph->nodes[i] != c->x && j < c->graph->nodes[i]->input_count; j++)
            if (c->graph->nodes[i]->inputs[j].node == n) return false;
    return true;
}

/* A variable made up for an input that has no recorded producer. */
static inline void add_variable(GraphBuilder *b, Prepared *p, const Change *change, int i, bool is_ref, DataType dtype, StrBuf *controls, StrBuf *inputs) {
    static const Shape shape = {2, {2, 2}};
    char name[16];
    snprintf(name, sizeof name, "v%d", i);
    gb_node(b, name, is_ref ? "VariableV2" : "VarHandleOp", "");
    gb_type(b, "dtype", dtype);
    gb_shape(b, "shape", &shape);
    if (!is_ref) gb_string(b, "shared_name", name);
    if (!change->leave_variables) add_init(b, p, name, is_ref, dtype, &shape, controls);
    strbuf_addf(inputs, "%s%s", inputs->len ? "," : "", name);
}

static inline void add_inputs(GraphBuilder *b, Prepared *p, const Call *c, const Change *change, const DataType *types, int count, StrBuf *controls, StrBuf *inputs) {
    for (int i = 0; i < count; i++) {
        Output from = i < c->x->input_count ? c->x->inputs[i] : (Output){0};
        DataType type = dtype_base(types[i]);
        bool is_handle = type == DT_RESOURCE || type == DT_VARIANT;
        if (is_handle && change->handle_input == i && change->handle_row >= BAD_HANDLES) {
            strbuf_addf(inputs, "%s%s", inputs->len ? "," : "", add_maker(b, type, change->handle_row));
        } else if (is_handle && (change->handle_input == i || (!from.node && type == DT_VARIANT))) {
            add_feed(p, b, bad_handle(type, change->handle_input == i ? change->handle_row : 0));
            strbuf_addf(inputs, "%s%s", inputs->len ? "," : "", p->names[p->feed_count - 1]);
        } else if (from.node && !is_constant(from.node)) {
            strbuf_addf(inputs, "%s%.*s:%d", inputs->len ? "," : "", STR_ARG(from.node->name), from.index);
        } else if (dtype_is_ref(types[i]) || is_handle) {
            DataType of = is_handle ? DT_FLOAT : type;
            for (int j = 0; is_handle && j < c->op->attr_count; j++)
                if (str_is(c->op->attrs[j].type, "type")) {
                    char *name = str_dup(c->op->attrs[j].name);
                    if (change->retyped != &c->op->attrs[j]) error_free(node_attr_type(c->x, name, &of)); else of = change->type;
                    free(name);
                    break;
                }
            add_variable(b, p, change, i, !is_handle, of == DT_RESOURCE || of == DT_VARIANT || dtype_is_ref(of) ? DT_FLOAT : of, controls, inputs);
        } else {
            Tensor *valid = from.node ? constant_of(from.node) : usual_tensor(type);
            if (valid && valid->dtype != type) {
                Tensor *other = retyped(valid, type);
                tensor_unref(valid);
                valid = other;
            }
            if (!valid) valid = usual_tensor(type);
            add_feed(p, b, valid);
            strbuf_addf(inputs, "%s%s", inputs->len ? "," : "", p->names[p->feed_count - 1]);
        }
    }
}

/* Of a dataset: an iterator over it, so that its elements are made, too. */
static inline void add_iterator(GraphBuilder *b, Prepared *p, const Call *c, const Change *change) {
    if (c->op->output_count != 1 || c->op->outputs[0].type != DT_VARIANT || !op_attr(c->op, STR("output_types")) || !op_attr(c->op, STR("output_shapes"))) return;
    Str types, shapes;
    if (!node_attr(c->x, "output_types", &types) || !node_attr(c->x, "output_shapes", &shapes)) return;
    if (change->attr && str_is(change->attr->name, "output_types")) types = change->value;
    if (change->attr && str_is(change->attr->name, "output_shapes")) shapes = change->value;
    for (int i = 0; i < 2; i++) {
        gb_node(b, i ? "next" : "iterator", i ? "IteratorGetNext" : "IteratorV2", i ? "iterator" : "");
        gb_attr(b, "output_types", types);
        gb_attr(b, "output_shapes", shapes);
        if (!i) gb_string(b, "shared_name", "iterator");
        if (!i) gb_string(b, "container", "");
    }
    gb_node(b, "make", "MakeIterator", "x,iterator");
    p->has_iterator = true;
}

static inline void prepared_clear(Prepared *p) {
    direct_session_free(p->session);
    for (int i = 0; i < p->feed_count; i++) tensor_unref(p->valid[i]);
    *p = (Prepared){0};
}

/* NULL, and a session in *p; or what the import of the changed graph says. */
static inline Error *call_prepare(const Call *c, const Change *change, Prepared *p) {
    GraphBuilder b = {0};
    StrBuf controls = {0}, inputs = {0};
    DataType types[MAX_INPUTS];
    int count = 0;
    *p = (Prepared){0};
    if (input_types(c, change, types, &count)) add_inputs(&b, p, c, change, types, count, &controls, &inputs);
    p->input_feeds = p->feed_count;
    for (int i = 0; i < c->graph->node_count; i++) {
        const Node *n = c->graph->nodes[i];
        if (n != c->x && !(is_constant(n) && feeds_call_alone(c, n))) add_copied(&b, p, c, n, change, &controls);
    }
    strbuf_add(&inputs, inputs.len || !controls.len ? strbuf_str(&controls) : str_slice(strbuf_str(&controls), 1, controls.len));
    add_call_node(&b, c, change, strbuf_str(&inputs).ptr);
    add_iterator(&b, p, c, change);
    gb_close_node(&b);
    if (c->library.len) wire_put_bytes(&b.def, 2, c->library);
    Error *err = direct_session_new(gb_graph(&b), 1, &p->session);
    if (err) prepared_clear(p);
    gb_clear(&b);
    strbuf_clear(&controls);
    strbuf_clear(&inputs);
    return err;
}

/* A GraphDef with a node "x" of the op, for ops nobody recorded. */
static inline void call_invent(const OpInfo *op, StrBuf *out) {
    GraphBuilder b = {0};
    char *name = str_dup(op->name);
    StrBuf inputs = {0};
    Call probe = {.op = op};
    Graph *g = graph_new();
    Error *err = graph_add_node(g, STR("x"), op->name, STR(""), &probe.x);
    for (int i = 0; !err && i < op->attr_count; i++) {
        StrBuf value = {0};
        if (op->attrs[i].default_value.ptr)
            strbuf_add(&value, op->attrs[i].default_value);
        else
            usual_attr(&op->attrs[i], &value);
        node_add_attr(g, probe.x, op->attrs[i].name, strbuf_str(&value));
        strbuf_clear(&value);
    }
    DataType types[MAX_INPUTS];
    int count = 0;
    if (!err) input_types(&probe, &NO_CHANGE, types, &count);
    for (int i = 0; i < count; i++) {
        char node[16];
        snprintf(node, sizeof node, "n%d", i);
        DataType type = dtype_base(types[i]);
        if (dtype_is_ref(types[i])) {
            gb_node(&b, node, "VariableV2", "");
            gb_type(&b, "dtype", type);
            gb_shape(&b, "shape", &(Shape){2, {2, 2}});
        } else if (type == DT_RESOURCE) {
            gb_node(&b, node, "VarHandleOp", "");
            gb_type(&b, "dtype", DT_FLOAT);
            gb_shape(&b, "shape", &(Shape){2, {2, 2}});
            gb_string(&b, "shared_name", node);
        } else if (type == DT_VARIANT) {
            gb_node(&b, node, "Placeholder", "");
            gb_type(&b, "dtype", type);
        } else {
            gb_const(&b, node, usual_tensor(type), "");
        }
        strbuf_addf(&inputs, "%s%s", i ? "," : "", node);
    }
    if (!err) add_call_node(&b, &probe, &NO_CHANGE, strbuf_str(&inputs).ptr);
    error_free(err);
    strbuf_add(out, gb_graph(&b));
    gb_clear(&b);
    graph_free(g);
    free(name);
    strbuf_clear(&inputs);
}
