/* dataset_origin.c: hashes of ops, functions and values.

   Maps in messages come in any order, so their entries are added; all else is hashed one after the other. */
#include "ops/dataset/dataset_origin.h"

#include <stdlib.h>

#include "base/fingerprint.h"
#include "base/memory.h"
#include "graph/function.h"
#include "proto/wire.h"
#include "runtime/executable.h"
#include "runtime/step_context.h"

enum { MAX_DEPTH = 16 }; /* of functions that name functions */
enum { FUNCTION_SIGNATURE = 1, FUNCTION_NODE = 3, FUNCTION_RET = 4 };
enum { SIGNATURE_NAME = 1 };
enum { NODE_OP = 2, NODE_INPUT = 3, NODE_ATTR = 5, NODE_NAME = 1 };
enum { METADATA_NAME = 1 };
enum { ENTRY_KEY = 1, ENTRY_VALUE = 2 };
enum { VALUE_LIST = 1, VALUE_FUNC = 10, LIST_FUNC = 9, FUNC_NAME = 1, FUNC_ATTR = 2 };

struct DatasetOrigin {
    Executable *executable; /* (optional) a reference: it owns the functions */
    const FunctionLibrary *functions;
    char *op;
    Attr *attrs; /* copies */
    int attr_count;
    Tensor **inputs;
    int input_count;
};

static Str copy(Str s) {
    return (Str){str_dup(s), s.len};
}

DatasetOrigin *dataset_origin_new(KernelContext *k) {
    DatasetOrigin *o = xcalloc(1, sizeof *o);
    if (k->step && k->step->executable) o->executable = executable_ref(k->step->executable);
    o->functions = k->step ? k->step->functions : NULL;
    o->op = str_dup(k->node->op);
    o->attrs = xcalloc((size_t)k->node->attr_count + 1, sizeof *o->attrs);
    for (; o->attr_count < k->node->attr_count; o->attr_count++)
        o->attrs[o->attr_count] = (Attr){.name = copy(k->node->attrs[o->attr_count].name),
                                         .value = copy(k->node->attrs[o->attr_count].value)};
    o->inputs = tuple_new(k->input_count);
    o->input_count = k->input_count;
    tuple_copy(o->inputs, k->in, k->input_count);
    return o;
}

void dataset_origin_free(DatasetOrigin *o) {
    if (!o) return;
    for (int i = 0; i < o->attr_count; i++) {
        free((char *)o->attrs[i].name.ptr);
        free((char *)o->attrs[i].value.ptr);
    }
    tuple_free(o->inputs, o->input_count);
    executable_unref(o->executable);
    free(o->attrs);
    free(o->op);
    free(o);
}

Str dataset_origin_op(const Dataset *d) {
    return d->origin ? str_of(d->origin->op) : STR("");
}

/* The attribute metadata is a message with the name. */
Str dataset_origin_name(const Dataset *d) {
    Str name = STR(""), metadata = STR("");
    for (int i = 0; d->origin && i < d->origin->attr_count; i++)
        if (str_is(d->origin->attrs[i].name, "metadata")) attr_string(d->origin->attrs[i].value, &metadata);
    WireReader r = wire_reader(metadata);
    while (wire_next(&r))
        if (r.field == METADATA_NAME && r.type == WIRE_BYTES) name = r.bytes;
    return name;
}

const Tensor *dataset_origin_input(const Dataset *d, int i) {
    return d->origin && i >= 0 && i < d->origin->input_count ? d->origin->inputs[i] : NULL;
}

bool dataset_origin_attr(const Dataset *d, int i, Str *name, Str *value) {
    if (!d->origin || i >= d->origin->attr_count) return false;
    *name = d->origin->attrs[i].name;
    *value = d->origin->attrs[i].value;
    return true;
}

const FunctionLibrary *dataset_origin_functions(const Dataset *d) {
    return d->origin ? d->origin->functions : NULL;
}

/* ---- The ops of its functions ---- */

typedef struct Visit {
    const FunctionLibrary *lib;
    OpVisitor *visit;
    int depth;
} Visit;

static Error *visit_function(Visit v, Str name);

/* A NameAttrList. */
static Error *visit_reference(Visit v, Str bytes) {
    Error *err = NULL;
    WireReader r = wire_reader(bytes);
    while (!err && wire_next(&r))
        if (r.type == WIRE_BYTES && r.field == FUNC_NAME) err = visit_function(v, r.bytes);
    return err;
}

/* An AttrValue. */
static Error *visit_value(Visit v, Str value) {
    Error *err = NULL;
    WireReader r = wire_reader(value);
    while (!err && wire_next(&r)) {
        if (r.type != WIRE_BYTES) continue;
        if (r.field == VALUE_FUNC) err = visit_reference(v, r.bytes);
        if (r.field != VALUE_LIST) continue;
        WireReader list = wire_reader(r.bytes);
        while (!err && wire_next(&list))
            if (list.type == WIRE_BYTES && list.field == LIST_FUNC) err = visit_reference(v, list.bytes);
    }
    return err;
}

static Error *visit_node(Visit v, Str node) {
    Str op = STR("");
    Error *err = NULL;
    WireReader r = wire_reader(node);
    while (!err && wire_next(&r)) {
        if (r.type != WIRE_BYTES) continue;
        if (r.field == NODE_OP) op = r.bytes;
        if (r.field != NODE_ATTR) continue;
        WireReader entry = wire_reader(r.bytes);
        while (!err && wire_next(&entry))
            if (entry.field == ENTRY_VALUE && entry.type == WIRE_BYTES) err = visit_value(v, entry.bytes);
    }
    if (err) return err;
    return function_find(v.lib, op) ? visit_function(v, op) : v.visit(op);
}

static Error *visit_function(Visit v, Str name) {
    const Function *f = v.depth < MAX_DEPTH ? function_find(v.lib, name) : NULL;
    Error *err = NULL;
    WireReader r = wire_reader(f ? f->def : STR(""));
    v.depth++;
    while (!err && wire_next(&r))
        if (r.type == WIRE_BYTES && r.field == FUNCTION_NODE) err = visit_node(v, r.bytes);
    return err;
}

Error *dataset_origin_visit(const Dataset *d, OpVisitor *visit) {
    Error *err = NULL;
    for (int i = 0; d->origin && d->origin->functions && !err && i < d->origin->attr_count; i++)
        err = visit_value((Visit){.lib = d->origin->functions, .visit = visit}, d->origin->attrs[i].value);
    return err;
}

/* Those that call functions are as their functions are, and datasets made inside are saved with their iterators. */
static Error *refuse_state(Str op) {
    if (str_ends(op, STR("Dataset")) || str_ends(op, STR("DatasetV2"))) return NULL;
    static const char *const callers[] = {"Assert", "If", "While", "Case", "StatefulPartitionedCall"};
    for (size_t i = 0; i < sizeof callers / sizeof *callers; i++)
        if (str_is(op, callers[i])) return NULL;
    const OpInfo *info = op_find(op);
    return info && info->flags & OP_STATEFUL ? error_new(CODE_FAILED_PRECONDITION, "%.*s is stateful.", STR_ARG(op)) : NULL;
}

Error *dataset_origin_check_state(const Dataset *d) {
    return dataset_origin_visit(d, refuse_state);
}

Error *dataset_check_state(const Dataset *d) {
    Error *err = dataset_origin_check_state(d);
    for (int i = 0; !err && i < d->input_count; i++) err = dataset_check_state(d->inputs[i]);
    return err;
}

/* AttrValue: list=1. ListValue: shape=7. TensorShapeProto: dim=2. Dim: size=1. */
int64_t dataset_origin_rows(const Dataset *d) {
    Str name, value;
    for (int i = 0; dataset_origin_attr(d, i, &name, &value); i++) {
        if (!str_is(name, "output_shapes")) continue;
        static const uint32_t path[] = {1, 7, 2};
        for (size_t level = 0; level < sizeof path / sizeof *path; level++) {
            WireReader r = wire_reader(value);
            value = STR("");
            while (!value.len && wire_next(&r))
                if (r.field == path[level] && r.type == WIRE_BYTES) value = r.bytes;
        }
        WireReader dim = wire_reader(value);
        while (wire_next(&dim))
            if (dim.field == 1 && dim.type == WIRE_VARINT) return (int64_t)dim.number;
    }
    return -1;
}

/* ---- Once more, of other inputs ---- */

static Error *replace_inputs(const Dataset *d, Dataset *const *inputs, Tensor **in) {
    Error *err = NULL;
    for (int i = 0, next = 0; !err && i < d->origin->input_count && next < d->input_count; i++) {
        Dataset *was = NULL;
        if (in[i]->dtype != DT_VARIANT) continue;
        err = tensor_dataset(in[i], &was);
        if (err) break;
        tensor_unref(in[i]);
        in[i] = NULL;
        err = dataset_tensor(inputs[next++], &in[i]);
    }
    return err;
}

Error *dataset_origin_remake(KernelContext *k, const Dataset *d, Dataset *const *inputs, Dataset **out) {
    const DatasetOrigin *o = d->origin;
    if (!o) return error_unimplemented("It is not known how a dataset of kind %s was made", d->kind->name);
    DataType variant = DT_VARIANT;
    Node node = {.name = k->node->name, .op = str_of(o->op), .info = op_find(str_of(o->op)), .attrs = o->attrs, .attr_count = o->attr_count,
                 .input_count = o->input_count, .expected_inputs = o->input_count, .output_types = &variant, .output_count = 1, .placed = k->node->placed};
    const KernelDef *def = NULL;
    KernelFn *run = NULL;
    Error *err = kernel_find(&node, &def, &run);
    if (err) return err;
    void *state = def->state_size ? xcalloc(1, def->state_size) : NULL;
    Tensor **in = tuple_new(o->input_count), *made = NULL;
    Variable **refs = xcalloc((size_t)o->input_count + 1, sizeof *refs), *made_ref = NULL;
    Dataset *result = NULL;
    tuple_copy(in, o->inputs, o->input_count);
    KernelContext inner = *k;
    inner.node = &node, inner.state = state, inner.input_count = o->input_count, inner.output_count = 1;
    inner.in = in, inner.ref = refs, inner.out = &made, inner.out_ref = &made_ref, inner.error = NULL;
    err = replace_inputs(d, inputs, in);
    if (!err && def->init) err = def->init(&node, state);
    if (!err) err = run(&inner);
    if (!err)
        err = inner.error;
    else
        error_free(inner.error);
    if (!err) err = tensor_dataset(made, &result);
    if (!err) *out = dataset_ref(result);
    if (def->clear) def->clear(state);
    tensor_unref(made);
    tuple_free(in, o->input_count);
    free(refs);
    free(state);
    return err;
}

/* ---- Hashes ---- */

static uint64_t mix(uint64_t h, uint64_t more) {
    uint64_t both[2] = {h, more};
    return fingerprint64((Str){(const char *)both, sizeof both});
}

static uint64_t hash_function(const FunctionLibrary *lib, Str name, int depth);
static uint64_t hash_value(const FunctionLibrary *lib, Str value, int depth);

/* An entry of a map from names to attribute values; those for the runtime alone do not count. */
static uint64_t hash_entry(const FunctionLibrary *lib, Str name, Str value, int depth) {
    if (str_starts(name, STR("_")) || str_is(name, "metadata")) return 0;
    return mix(fingerprint64(name), hash_value(lib, value, depth));
}

static uint64_t hash_attr(const FunctionLibrary *lib, Str entry, int depth) {
    Str key = STR(""), value = STR("");
    WireReader r = wire_reader(entry);
    while (wire_next(&r)) {
        if (r.field == ENTRY_KEY && r.type == WIRE_BYTES) key = r.bytes;
        if (r.field == ENTRY_VALUE && r.type == WIRE_BYTES) value = r.bytes;
    }
    return hash_entry(lib, key, value, depth);
}

/* A NameAttrList. */
static uint64_t hash_reference(const FunctionLibrary *lib, Str bytes, int depth) {
    uint64_t h = 1, attrs = 0;
    WireReader r = wire_reader(bytes);
    while (wire_next(&r)) {
        if (r.field == FUNC_NAME && r.type == WIRE_BYTES) h = mix(h, hash_function(lib, r.bytes, depth));
        if (r.field == FUNC_ATTR && r.type == WIRE_BYTES) attrs += hash_attr(lib, r.bytes, depth);
    }
    return mix(h, attrs);
}

/* An AttrValue: as its bytes, but for functions, which may have other names elsewhere. */
static uint64_t hash_value(const FunctionLibrary *lib, Str value, int depth) {
    uint64_t h = 2;
    WireReader r = wire_reader(value);
    while (wire_next(&r)) {
        if (r.field == VALUE_FUNC && r.type == WIRE_BYTES) {
            h = mix(h, hash_reference(lib, r.bytes, depth));
        } else if (r.field == VALUE_LIST && r.type == WIRE_BYTES) {
            WireReader list = wire_reader(r.bytes);
            while (wire_next(&list))
                h = mix(h, list.field == LIST_FUNC && list.type == WIRE_BYTES ? hash_reference(lib, list.bytes, depth)
                           : list.type == WIRE_BYTES                         ? fingerprint64(list.bytes)
                                                                             : list.number);
        } else {
            h = mix(mix(h, r.field), r.type == WIRE_BYTES ? fingerprint64(r.bytes) : r.number);
        }
    }
    return h;
}

static uint64_t hash_node(const FunctionLibrary *lib, Str node, int depth) {
    uint64_t h = 3, attrs = 0;
    WireReader r = wire_reader(node);
    while (wire_next(&r)) {
        if (r.type != WIRE_BYTES) continue;
        if (r.field == NODE_OP) h = mix(h, hash_function(lib, r.bytes, depth));
        if (r.field == NODE_NAME || r.field == NODE_INPUT) h = mix(h, fingerprint64(r.bytes));
        if (r.field == NODE_ATTR) attrs += hash_attr(lib, r.bytes, depth);
    }
    return mix(h, attrs);
}

static uint64_t hash_signature(Str signature) {
    uint64_t h = 4;
    WireReader r = wire_reader(signature);
    while (wire_next(&r))
        if (r.field != SIGNATURE_NAME && r.type == WIRE_BYTES) h = mix(mix(h, r.field), fingerprint64(r.bytes));
    return h;
}

/* The body of a function, or the name of an op that is none. */
static uint64_t hash_function(const FunctionLibrary *lib, Str name, int depth) {
    const Function *f = lib && depth < MAX_DEPTH ? function_find(lib, name) : NULL;
    if (!f) return fingerprint64(name);
    uint64_t h = 5, nodes = 0, rets = 0;
    WireReader r = wire_reader(f->def);
    while (wire_next(&r)) {
        if (r.type != WIRE_BYTES) continue;
        if (r.field == FUNCTION_SIGNATURE) h = mix(h, hash_signature(r.bytes));
        if (r.field == FUNCTION_NODE) nodes += hash_node(lib, r.bytes, depth + 1);
        if (r.field == FUNCTION_RET) rets += fingerprint64(r.bytes);
    }
    return mix(mix(h, nodes), rets);
}

static uint64_t hash_tensor(const Tensor *t) {
    uint64_t h = mix(6, (uint64_t)t->dtype);
    for (int i = 0; i < t->shape.rank; i++) h = mix(h, (uint64_t)t->shape.dims[i]);
    if (dtype_is_plain(t->dtype)) return mix(h, fingerprint64((Str){t->data, tensor_bytes(t)}));
    for (int64_t i = 0; i < t->count; i++) {
        if (t->dtype == DT_STRING) h = mix(h, fingerprint64(tstring_str(&tensor_str(t)[i])));
        if (t->dtype == DT_RESOURCE && tensor_handles(t)[i])
            h = mix(h, fingerprint64(str_of(tensor_handles(t)[i]->type_name)));
        if (t->dtype != DT_VARIANT || !tensor_variants(t)[i].type) continue;
        const Variant *v = &tensor_variants(t)[i];
        h = mix(h, v->type == &dataset_variant_type ? dataset_fingerprint(v->object)
                                                    : fingerprint64(str_of(v->type->type_name)));
    }
    return h;
}

/* Two pipelines that differ in seeds alone are one for those who keep what it gave. */
static bool is_seed(const OpInfo *op, int input) {
    if (!op || input >= op->input_count) return false;
    Str name = op->inputs[input].name;
    return str_is(name, "seed") || str_is(name, "seed2") || str_is(name, "seed_generator");
}

uint64_t dataset_fingerprint(const Dataset *d) {
    uint64_t h = fingerprint64(str_of(d->kind->name)), attrs = 0;
    const DatasetOrigin *o = d->origin;
    for (int i = 0; i < d->component_count; i++) h = mix(h, (uint64_t)d->types[i]);
    for (int i = 0; !o && i < d->input_count; i++) h = mix(h, dataset_fingerprint(d->inputs[i]));
    if (!o) return h;
    h = mix(h, fingerprint64(str_of(o->op)));
    for (int i = 0; i < o->attr_count; i++) attrs += hash_entry(o->functions, o->attrs[i].name, o->attrs[i].value, 0);
    h = mix(h, attrs);
    const OpInfo *op = op_find(str_of(o->op));
    for (int i = 0; i < o->input_count; i++)
        if (o->inputs[i] && !is_seed(op, i)) h = mix(h, hash_tensor(o->inputs[i]));
    return h;
}
