/* iterator.c: iterators as resources: making, setting, pulling, passing by string, saving. */
#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "base/rng.h"
#include "ops/dataset/iterator_resource.h"
#include "ops/dataset/iterator_variant.h"
#include "ops/dataset/optional.h"
#include "ops/dataset/string_handle.h"
#include "ops/elements.h"
#include "ops/op_list.h"
#include "runtime/device.h"

const OpDef dataset_iterator_ops[] = {
    {"Iterator", "-> handle: resource",
     "shared_name: string; container: string; output_types: list(type) >= 1; output_shapes: list(shape) >= 1",
     OP_STATEFUL},
    {"IteratorV2", "-> handle: resource",
     "shared_name: string; container: string; output_types: list(type) >= 1; output_shapes: list(shape) >= 1",
     OP_STATEFUL},
    {"AnonymousIterator", "-> handle: resource", "output_types: list(type) >= 1; output_shapes: list(shape) >= 1",
     OP_STATEFUL},
    {"AnonymousIteratorV2", "-> handle: resource, deleter: variant",
     "output_types: list(type) >= 1; output_shapes: list(shape) >= 1", OP_STATEFUL},
    {"AnonymousIteratorV3", "-> handle: resource", "output_types: list(type) >= 1; output_shapes: list(shape) >= 1",
     OP_STATEFUL},
    {"OneShotIterator", "-> handle: resource",
     "dataset_factory: func; output_types: list(type) >= 1; output_shapes: list(shape) >= 1; container: string = '';"
     " shared_name: string = ''",
     OP_STATEFUL},
    {"MakeIterator", "dataset: variant, iterator: resource ->", "", OP_STATEFUL},
    {"DeleteIterator", "handle: resource, deleter: variant ->", "", OP_STATEFUL},
    {"IteratorGetNext", "iterator: resource -> components: output_types",
     "output_types: list(type) >= 1; output_shapes: list(shape) >= 1", OP_STATEFUL},
    {"IteratorGetNextSync", "iterator: resource -> components: output_types",
     "output_types: list(type) >= 1; output_shapes: list(shape) >= 1", OP_STATEFUL},
    {"IteratorGetNextAsOptional", "iterator: resource -> optional: variant",
     "output_types: list(type) >= 1; output_shapes: list(shape) >= 1", OP_STATEFUL},
    {"IteratorToStringHandle", "resource_handle: resource -> string_handle: string", "", OP_STATEFUL},
    {"IteratorFromStringHandle", "string_handle: string -> resource_handle: resource",
     "output_types: list(type) >= 0 = []; output_shapes: list(shape) >= 0 = []", OP_STATEFUL},
    {"IteratorFromStringHandleV2", "string_handle: string -> resource_handle: resource",
     "output_types: list(type) >= 0 = []; output_shapes: list(shape) >= 0 = []", OP_STATEFUL},
    {"IteratorGetDevice", "resource: resource -> device: string", "", OP_STATEFUL},
    {"ExperimentalIteratorGetDevice", "resource: resource -> device: string", "", OP_STATEFUL},
    {"SerializeIterator", "resource_handle: resource -> serialized: variant", "external_state_policy: int = 0",
     OP_STATEFUL},
    {"DeserializeIterator", "resource_handle: resource, serialized: variant ->", "", OP_STATEFUL},
    {0},
};

static Error *find_iterator(KernelContext *k, int i, IteratorResource **out) {
    Resource *r = NULL;
    Error *err = kernel_resource(k, i, &iterator_resource_type, &r);
    if (!err) *out = (IteratorResource *)r;
    return err;
}

static void done(KernelContext *k, IteratorResource *r, Error *err) {
    if (!err) {
        err = k->error;
        k->error = NULL;
    }
    if (r) resource_unref((Resource *)r);
    kernel_done(k, err);
}

/* ---- Making ---- */

typedef struct Expected {
    DataType *types;
    PartialShape *shapes;
    int count;
} Expected;

/* What the node says of the elements. expected_clear also after an error. */
static Error *read_expected(const Node *node, Expected *out) {
    int shape_count = 0;
    *out = (Expected){0};
    Error *err = node_attr_types(node, "output_types", &out->types, &out->count);
    if (!err) err = node_attr_shapes(node, "output_shapes", &out->shapes, &shape_count);
    if (!err && shape_count != out->count)
        err = error_invalid("output_types and output_shapes must be of the same length, not %d and %d", out->count,
                            shape_count);
    return err;
}

static void expected_clear(Expected *e) {
    free(e->types);
    free(e->shapes);
}

static Error *make(KernelContext *k, IteratorResource **out) {
    Expected e;
    Error *err = read_expected(k->node, &e);
    if (!err) *out = iterator_resource_new(e.types, e.shapes, e.count);
    expected_clear(&e);
    return err;
}

static Error *create(KernelContext *k, Str name, Resource **out) {
    IteratorResource *r = NULL;
    (void)name;
    Error *err = make(k, &r);
    if (!err) *out = (Resource *)r;
    return err;
}

static Error *check_own_types(KernelContext *k, IteratorResource *r) {
    Expected e;
    Error *err = read_expected(k->node, &e);
    if (!err) err = iterator_check_expected(r, e.types, e.shapes, e.count);
    expected_clear(&e);
    return err;
}

static Error *run_iterator(KernelContext *k) {
    Resource *r = NULL;
    Error *err = kernel_own_resource(k, &iterator_resource_type, false, create, &r);
    if (err) return err;
    err = check_own_types(k, (IteratorResource *)r);
    resource_unref(r);
    return err;
}

static Error *run_anonymous(KernelContext *k) {
    IteratorResource *r = NULL;
    Error *err = make(k, &r);
    if (err) return err;
    Tensor *t = kernel_make_handle(k, STR(""), STR("anonymous_iterator"), &iterator_resource_type);
    if (!t) {
        resource_unref((Resource *)r);
        return NULL;
    }
    iterator_resource_own(r, tensor_handles(t)[0], kernel_blocking_pool(k));
    kernel_set_output(k, 0, t);
    if (k->output_count > 1) kernel_output(k, 1, &SHAPE_SCALAR);
    return NULL;
}

/* The oldest form has neither a deleter nor a handle that counts: it stays until it is destroyed by name. */
static Error *run_named_anonymous(KernelContext *k) {
    IteratorResource *r = NULL;
    Error *err = make(k, &r);
    if (err) return err;
    char name[48];
    snprintf(name, sizeof name, "AnonymousIterator%016llx", (unsigned long long)rng_entropy());
    err = resource_add(kernel_resources(k), STR(""), str_of(name), (Resource *)r);
    resource_unref((Resource *)r);
    if (!err) kernel_set_output(k, 0, kernel_make_handle(k, STR(""), str_of(name), &iterator_resource_type));
    return err;
}

static void set_once(KernelContext *k, void *arg) {
    IteratorResource *r = arg;
    Str value, function;
    Error *err = NULL;
    if (!node_attr(k->node, "dataset_factory", &value) || !attr_func(value, &function)) {
        err = error_invalid("Attribute dataset_factory is not a function");
    } else {
        Closure *factory = closure_new(k, function, NULL, 0);
        err = iterator_resource_set_once(r, k, factory);
        closure_unref(factory);
    }
    done(k, r, err);
}

static Error *run_one_shot(KernelContext *k) {
    Resource *r = NULL;
    Error *err = kernel_own_resource(k, &iterator_resource_type, false, create, &r);
    if (err) return err;
    if (iterator_is_set((IteratorResource *)r))
        resource_unref(r);
    else
        kernel_block(k, set_once, r);
    return NULL;
}

/* ---- Setting and deleting ---- */

static void set(KernelContext *k, void *arg) {
    Dataset *d = NULL;
    Error *err = kernel_dataset(k, 0, &d);
    if (!err) err = iterator_resource_set(arg, k, d);
    done(k, arg, err);
}

static Error *run_make_iterator(KernelContext *k) {
    IteratorResource *r = NULL;
    Error *err = find_iterator(k, 1, &r);
    if (!err) kernel_block(k, set, r);
    return err;
}

/* One without a name goes with its last handle. */
static void delete (KernelContext *k, void *arg) {
    const Tensor *t = k->in[0];
    (void)arg;
    Error *err = NULL;
    if (t->count != 1 || !tensor_handles(t)[0]) {
        err = error_invalid("The input is not a handle to an iterator");
    } else if (!tensor_handles(t)[0]->direct) {
        const ResourceHandle *h = tensor_handles(t)[0];
        err = resource_delete(kernel_resources(k), str_of(h->container), str_of(h->name), &iterator_resource_type);
    }
    kernel_done(k, err);
}

static Error *run_delete(KernelContext *k) {
    kernel_block(k, delete, NULL);
    return NULL;
}

/* ---- Pulling ---- */

typedef struct GetNext {
    PartialShape *shapes; /* what the outputs must fit */
    int shape_count;
} GetNext;

static Error *get_next_init(const Node *node, void *state) {
    GetNext *g = state;
    return node_attr_shapes(node, "output_shapes", &g->shapes, &g->shape_count);
}

static void get_next_clear(void *state) {
    free(((GetNext *)state)->shapes);
}

static Error *check_element(KernelContext *k, Tensor *const *element, int count) {
    const GetNext *g = k->state;
    if (count != k->output_count)
        return error_invalid("Number of components does not match: expected %d types but got %d.", k->output_count,
                             count);
    for (int i = 0; i < count; i++)
        if (element[i]->dtype != kernel_output_type(k, i))
            return error_invalid("Data type mismatch at component %d: expected %s but got %s.", i,
                                 dtype_name(kernel_output_type(k, i)), dtype_name(element[i]->dtype));
    for (int i = 0; i < count && i < g->shape_count; i++)
        if (!partial_shape_matches(&g->shapes[i], &element[i]->shape))
            return error_invalid("Incompatible shapes at component %d: expected %s but got %s.", i,
                                 shape_text(&g->shapes[i]).text, shape_text(&element[i]->shape).text);
    return NULL;
}

static void get_next(KernelContext *k, void *arg) {
    Tensor **element = NULL;
    int count = 0;
    Error *err = iterator_resource_next(arg, k, &element, &count);
    if (!err && !element) err = error_new(CODE_OUT_OF_RANGE, "End of sequence");
    if (!err) err = check_element(k, element, count);
    for (int i = 0; !err && i < count; i++) {
        kernel_set_output(k, i, element[i]);
        element[i] = NULL;
    }
    tuple_free(element, count);
    done(k, arg, err);
}

static void get_next_as_optional(KernelContext *k, void *arg) {
    Tensor **element = NULL;
    int count = 0;
    Error *err = iterator_resource_next(arg, k, &element, &count);
    if (!err) kernel_set_optional(k, 0, element, count);
    tuple_free(element, count);
    done(k, arg, err);
}

static Error *run_get_next(KernelContext *k) {
    IteratorResource *r = NULL;
    Error *err = find_iterator(k, 0, &r);
    if (!err) kernel_block(k, get_next, r);
    return err;
}

static Error *run_get_next_as_optional(KernelContext *k) {
    IteratorResource *r = NULL;
    Error *err = find_iterator(k, 0, &r);
    if (!err) kernel_block(k, get_next_as_optional, r);
    return err;
}

/* ---- As strings ---- */

static Error *run_to_string(KernelContext *k) {
    IteratorResource *r = NULL;
    Error *err = find_iterator(k, 0, &r);
    if (err) return err;
    resource_unref((Resource *)r);
    return kernel_handle_to_string(k);
}

static Error *run_from_string(KernelContext *k) {
    Resource *r = NULL;
    Tensor *handle = NULL;
    Error *err = kernel_handle_from_string(k, &iterator_resource_type, &r, &handle);
    if (err) return err;
    err = check_own_types(k, (IteratorResource *)r);
    resource_unref(r);
    if (err)
        tensor_unref(handle);
    else
        kernel_set_output(k, 0, handle);
    return err;
}

static Error *run_get_device(KernelContext *k) {
    kernel_set_output(k, 0, tensor_scalar_str(str_of(k->device->name)));
    return NULL;
}

/* ---- State ---- */

enum { POLICY_FAIL = 2 }; /* of what functions keep outside of the pipeline */

static Error *init_save(const Node *node, void *state) {
    int64_t policy = 0;
    Error *err = node_attr_int(node, "external_state_policy", &policy);
    *(bool *)state = policy == POLICY_FAIL;
    return err;
}

static void save(KernelContext *k, void *arg) {
    IteratorState s = {0};
    Error *err = iterator_resource_save(arg, k, *(bool *)k->state, &s);
    Shape one = shape_vector(1);
    Tensor *t = err ? NULL : kernel_output(k, 0, &one);
    if (t) iterator_variant_set(tensor_variants(t), strbuf_str(&s.written));
    strbuf_clear(&s.written);
    done(k, arg, err);
}

static Error *run_save(KernelContext *k) {
    IteratorResource *r = NULL;
    Error *err = find_iterator(k, 0, &r);
    if (!err) kernel_block(k, save, r);
    return err;
}

static void restore(KernelContext *k, void *arg) {
    const Tensor *t = k->in[1];
    Str bytes = STR("");
    Error *err = t->count == 1 ? iterator_variant_get(tensor_variants(t), &bytes)
                               : error_invalid("The state of an iterator is one variant");
    IteratorState s = {.reader = wire_reader(bytes)};
    if (!err) err = iterator_resource_restore(arg, k, &s);
    done(k, arg, err);
}

static Error *run_restore(KernelContext *k) {
    IteratorResource *r = NULL;
    Error *err = find_iterator(k, 0, &r);
    if (!err) kernel_block(k, restore, r);
    return err;
}

#define GET_NEXT_STATE .state_size = sizeof(GetNext), .init = get_next_init, .clear = get_next_clear
const KernelDef dataset_iterator_cpu[] = {
    {"Iterator", .run = run_iterator},
    {"IteratorV2", .run = run_iterator},
    {"AnonymousIterator", .run = run_named_anonymous},
    {"AnonymousIteratorV2", .run = run_anonymous},
    {"AnonymousIteratorV3", .run = run_anonymous},
    {"OneShotIterator", .run = run_one_shot, .flags = KERNEL_DEFERS},
    {"MakeIterator", .run = run_make_iterator, .flags = KERNEL_DEFERS},
    {"DeleteIterator", .run = run_delete, .flags = KERNEL_DEFERS},
    {"IteratorGetNext", .run = run_get_next, GET_NEXT_STATE, .flags = KERNEL_DEFERS},
    {"IteratorGetNextSync", .run = run_get_next, GET_NEXT_STATE, .flags = KERNEL_DEFERS},
    {"IteratorGetNextAsOptional", .run = run_get_next_as_optional, .flags = KERNEL_DEFERS},
    {"IteratorToStringHandle", .run = run_to_string},
    {"IteratorFromStringHandle", .run = run_from_string},
    {"IteratorFromStringHandleV2", .run = run_from_string},
    {"IteratorGetDevice", .run = run_get_device},
    {"ExperimentalIteratorGetDevice", .run = run_get_device},
    {"SerializeIterator", .run = run_save, .state_size = sizeof(bool), .init = init_save, .flags = KERNEL_DEFERS},
    {"DeserializeIterator", .run = run_restore, .flags = KERNEL_DEFERS},
    {0},
};
