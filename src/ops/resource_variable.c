/* resource_variable.c: variables named by handles: VarHandleOp, ReadVariableOp, AssignVariableOp and their kin. */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "ops/elements.h"
#include "ops/op_list.h"
#include "runtime/closure.h"

const OpDef resource_variable_ops[] = {
    {"VarHandleOp", "-> resource: resource",
     "container: string = ''; shared_name: string = ''; debug_name: string = ''; dtype: type; shape: shape; "
     "allowed_devices: list(string) = []",
     OP_STATEFUL},
    {"_VarHandlesOp", "-> resources: N * resource",
     "containers: list(string); shared_names: list(string); N: int >= 0; dtypes: list(type); shapes: list(shape)",
     OP_STATEFUL},
    {"ReadVariableOp", "resource: resource -> value: dtype", "dtype: type", OP_STATEFUL},
    {"_ReadVariablesOp", "resources: N * resource -> values: dtypes", "N: int >= 0; dtypes: list(type) >= 1",
     OP_STATEFUL},
    {"AssignVariableOp", "resource: resource, value: dtype ->", "dtype: type; validate_shape: bool = false",
     OP_STATEFUL},
    {"AssignAddVariableOp", "resource: resource, value: dtype ->", "dtype: type", OP_STATEFUL},
    {"AssignSubVariableOp", "resource: resource, value: dtype ->", "dtype: type", OP_STATEFUL},
    {"VarIsInitializedOp", "resource: resource -> is_initialized: bool", "", OP_STATEFUL},
    {"VariableShape", "input: resource -> output: out_type", "out_type: {int32, int64} = int32", OP_STATEFUL},
    {"DestroyResourceOp", "resource: resource ->", "ignore_lookup_error: bool = true", OP_STATEFUL},
    {"ResourceCountUpTo", "resource: resource -> output: T", "limit: int; T: {int32, int64}", OP_STATEFUL},
    {"DisableCopyOnRead", "resource: resource ->", "", OP_STATEFUL},
    {0},
};

/* The name that asks for a variable without a name, which lives as long as its handle. */
#define ANONYMOUS_NAME "cd2c89b7-88b7-44c8-ad83-06c2a9158347"

typedef struct HandleState {
    DataType dtype;
    PartialShape shape;
    Str container, shared_name;
    Tensor *_Atomic made; /* the handle, from the first run on; a variable without a name has a new one each time */
} HandleState;

static Error *handle_init(const Node *node, void *state) {
    HandleState *s = state;
    Error *err = node_attr_type(node, "dtype", &s->dtype);
    if (!err) err = node_attr_shape(node, "shape", &s->shape);
    if (!err) err = node_attr_string(node, "container", &s->container);
    if (!err) err = node_attr_string(node, "shared_name", &s->shared_name);
    return err;
}

static void handle_clear(void *state) {
    tensor_unref(atomic_load(&((HandleState *)state)->made));
}

static void release_variable(void *direct) {
    resource_unref(direct);
}

static void output_handle(KernelContext *k, int i, HandleState *s) {
    Str name = s->shared_name.len ? s->shared_name : k->node->name;
    Tensor *made = atomic_load(&s->made), *none = NULL;
    if (made) {
        kernel_set_output(k, i, tensor_ref(made));
        return;
    }
    Tensor *t = kernel_make_handle(k, s->container, name, &variable_type);
    if (!t) return;
    ResourceHandle *h = tensor_handles(t)[0];
    h->dtype = s->dtype;
    h->shape = s->shape;
    if (str_is(name, ANONYMOUS_NAME)) {
        h->direct = variable_new(s->dtype, name);
        h->release_direct = release_variable;
    } else if (atomic_compare_exchange_strong(&s->made, &none, t)) {
        tensor_ref(t);
    }
    kernel_set_output(k, i, t);
}

static Error *run_var_handle(KernelContext *k) {
    output_handle(k, 0, k->state);
    return NULL;
}

typedef struct HandlesState {
    HandleState *items;
    int count;
} HandlesState;

static Error *handles_init(const Node *node, void *state) {
    HandlesState *s = state;
    Str *containers = NULL, *names = NULL;
    DataType *dtypes = NULL;
    PartialShape *shapes = NULL;
    int container_count = 0, name_count = 0, dtype_count = 0, shape_count_ = 0;
    Error *err = node_attr_strings(node, "containers", &containers, &container_count);
    if (!err) err = node_attr_strings(node, "shared_names", &names, &name_count);
    if (!err) err = node_attr_types(node, "dtypes", &dtypes, &dtype_count);
    if (!err) err = node_attr_shapes(node, "shapes", &shapes, &shape_count_);
    int n = node->output_count;
    if (!err && (container_count != n || name_count != n || dtype_count != n || shape_count_ != n))
        err = error_invalid("_VarHandlesOp needs %d containers, names, types and shapes", n);
    if (!err) {
        s->items = xcalloc((size_t)n + 1, sizeof *s->items);
        s->count = n;
        for (int i = 0; i < n; i++) s->items[i] = (HandleState){dtypes[i], shapes[i], containers[i], names[i], NULL};
    }
    free(containers);
    free(names);
    free(dtypes);
    free(shapes);
    return err;
}

static void handles_clear(void *state) {
    HandlesState *s = state;
    for (int i = 0; i < s->count; i++) handle_clear(&s->items[i]);
    free(s->items);
}

static Error *run_var_handles(KernelContext *k) {
    HandlesState *s = k->state;
    for (int i = 0; i < s->count; i++) output_handle(k, i, &s->items[i]);
    return NULL;
}

/* A snapshot of the variable that input i names; the caller's to unref. */
static Error *read_input(KernelContext *k, int i, Tensor **out) {
    Variable *v = NULL;
    Error *err = variable_missing(k, i, kernel_variable(k, i, &v));
    if (err) return err;
    *out = variable_read(v);
    if (!*out)
        err = error_new(
            CODE_FAILED_PRECONDITION,
            "Could not find variable %s. This could mean that the variable has been deleted. In TF1, it can also "
            "mean the variable is uninitialized.",
            v->name);
    resource_unref(&v->base);
    return err;
}

static Error *run_read(KernelContext *k) {
    for (int i = 0; i < k->input_count; i++) {
        Tensor *value = NULL;
        Error *err = read_input(k, i, &value);
        if (err) return err;
        if (value->dtype != kernel_output_type(k, i)) {
            err = error_invalid("Trying to read variable with wrong dtype. Expected %s got %s",
                                dtype_name(kernel_output_type(k, i)), dtype_name(value->dtype));
            tensor_unref(value);
            return err;
        }
        kernel_set_output(k, i, value);
    }
    return NULL;
}

typedef struct AssignState {
    DataType dtype;
    bool validate_shape;
} AssignState;

static Error *assign_init(const Node *node, void *state) {
    AssignState *s = state;
    Error *err = node_attr_type(node, "dtype", &s->dtype);
    return err ? err : node_attr_bool(node, "validate_shape", &s->validate_shape);
}

typedef struct NewVariable {
    DataType dtype;
    Str name;
} NewVariable;

static Error *make_variable(void *arg, Resource **out) {
    const NewVariable *n = arg;
    *out = &variable_new(n->dtype, n->name)->base;
    return NULL;
}

/* The first assignment makes the variable. */
static Error *find_or_make(KernelContext *k, DataType dtype, Variable **out) {
    Error *err = kernel_variable(k, 0, out);
    if (!err || err->code != CODE_NOT_FOUND) return err;
    error_free(err);
    const ResourceHandle *h = tensor_handles(k->in[0])[0];
    NewVariable fresh = {dtype, str_of(h->name)};
    Resource *r = NULL;
    err = resource_find_or_create(kernel_resources(k), str_of(h->container), fresh.name, &variable_type, make_variable,
                                  &fresh, &r);
    if (!err) *out = (Variable *)r;
    return err;
}

static Error *assign_locked(Variable *v, Tensor *value, bool validate_shape) {
    if (v->dtype != value->dtype)
        return error_invalid("Trying to assign variable with wrong dtype. Expected %s got %s", dtype_name(v->dtype),
                             dtype_name(value->dtype));
    if (validate_shape && v->value && !shape_eq(&v->value->shape, &value->shape))
        return error_invalid("Trying to assign to variable with tensor with wrong shape. Expected %s got %s",
                             shape_text(&v->value->shape).text, shape_text(&value->shape).text);
    Tensor *old = v->value;
    v->value = tensor_ref(value);
    tensor_unref(old);
    return NULL;
}

static Error *run_assign(KernelContext *k) {
    const AssignState *s = k->state;
    Variable *v = NULL;
    Error *err = find_or_make(k, s->dtype, &v);
    if (err) return err;
    pthread_mutex_lock(&v->mutex);
    err = assign_locked(v, k->in[1], s->validate_shape);
    pthread_mutex_unlock(&v->mutex);
    resource_unref(&v->base);
    return err;
}

static Error *update_locked(KernelContext *k, Variable *v, RowFn *fn) {
    const Tensor *value = k->in[1];
    Error *err = variable_write_locked(k, 0, v, value->dtype);
    if (err) return err;
    if (!shape_eq(&v->value->shape, &value->shape))
        return error_invalid("Cannot update variable with shape %s using a Tensor with shape %s, shapes must be equal.",
                             shape_text(&v->value->shape).text, shape_text(&value->shape).text);
    rows_apply(k->pool, fn, dtype_size(value->dtype), v->value->data, value->data, value->count);
    return NULL;
}

static Error *run_update(KernelContext *k, RowFn *fn) {
    if (!fn) return kernel_lacks_type(k->node, k->in[1]->dtype);
    Variable *v = NULL;
    Error *err = kernel_variable(k, 0, &v);
    if (err) return err;
    pthread_mutex_lock(&v->mutex);
    err = update_locked(k, v, fn);
    pthread_mutex_unlock(&v->mutex);
    resource_unref(&v->base);
    return err;
}

static Error *run_assign_add(KernelContext *k) {
    const RowMath *m = row_math(k->in[1]->dtype);
    return run_update(k, m ? m->add : NULL);
}

static Error *run_assign_sub(KernelContext *k) {
    const RowMath *m = row_math(k->in[1]->dtype);
    return run_update(k, m ? m->sub : NULL);
}

static Error *run_is_initialized(KernelContext *k) {
    Variable *v = NULL;
    Tensor *value = NULL;
    Error *err = kernel_variable(k, 0, &v);
    if (err && err->code != CODE_NOT_FOUND) return err;
    error_free(err);
    if (v) value = variable_read(v);
    kernel_set_output(k, 0, tensor_scalar_bool(value != NULL));
    tensor_unref(value);
    if (v) resource_unref(&v->base);
    return NULL;
}

static Error *run_variable_shape(KernelContext *k) {
    Tensor *value = NULL;
    Variable *v = NULL;
    Error *err = kernel_variable(k, 0, &v); /* one that is not there is not found, no failed condition as of a read */
    resource_unref((Resource *)v);
    if (!err) err = read_input(k, 0, &value);
    if (err) return err;
    Shape shape = shape_vector(value->shape.rank);
    Tensor *out = kernel_output(k, 0, &shape);
    for (int d = 0; out && d < value->shape.rank; d++) {
        if (out->dtype == DT_INT64) {
            tensor_i64(out)[d] = value->shape.dims[d];
        } else {
            tensor_i32(out)[d] = (int32_t)value->shape.dims[d];
        }
    }
    tensor_unref(value);
    return NULL;
}

typedef struct DestroyState {
    bool ignore_lookup_error;
} DestroyState;

static Error *destroy_init(const Node *node, void *state) {
    return node_attr_bool(node, "ignore_lookup_error", &((DestroyState *)state)->ignore_lookup_error);
}

static Error *destroy(KernelContext *k) {
    const DestroyState *s = k->state;
    const ResourceHandle *h = tensor_handles(k->in[0])[0];
    ResourceType type = {.type_name = h->type_name};
    Error *err = resource_delete(kernel_resources(k), str_of(h->container), str_of(h->name), &type);
    if (err && s->ignore_lookup_error) {
        error_free(err);
        err = NULL;
    }
    return err;
}

static void destroy_blocking(KernelContext *k, void *arg) {
    (void)arg;
    kernel_done(k, destroy(k));
}

/* The end of any but a variable may wait for threads and functions, as an iterator's does. */
static Error *run_destroy(KernelContext *k) {
    const ResourceHandle *h = k->in[0]->count == 1 ? tensor_handles(k->in[0])[0] : NULL;
    if (!h) return error_invalid("DestroyResourceOp needs one handle");
    if (h->direct) return NULL;
    if (!strcmp(h->type_name, variable_type.type_name)) return destroy(k);
    kernel_block(k, destroy_blocking, NULL);
    return NULL;
}

typedef struct CountState {
    int64_t limit;
} CountState;

static Error *count_init(const Node *node, void *state) {
    return node_attr_int(node, "limit", &((CountState *)state)->limit);
}

static Error *count_locked(KernelContext *k, Variable *v) {
    const CountState *s = k->state;
    Error *err = variable_write_locked(k, 0, v, kernel_output_type(k, 0));
    if (err) return err;
    Tensor *value = v->value;
    if (value->shape.rank != 0) return error_invalid("input is not a scalar: %s", shape_text(&value->shape).text);
    int64_t now = tensor_index(value, 0);
    if (now >= s->limit) return error_new(CODE_OUT_OF_RANGE, "Reached limit of %lld", (long long)s->limit);
    kernel_set_output(k, 0, value->dtype == DT_INT32 ? tensor_scalar_i32((int32_t)now) : tensor_scalar_i64(now));
    if (value->dtype == DT_INT32) {
        tensor_i32(value)[0] = (int32_t)(now + 1);
    } else {
        tensor_i64(value)[0] = now + 1;
    }
    return NULL;
}

static Error *run_count_up_to(KernelContext *k) {
    Variable *v = NULL;
    Error *err = kernel_variable(k, 0, &v);
    if (err) return err;
    pthread_mutex_lock(&v->mutex);
    err = count_locked(k, v);
    pthread_mutex_unlock(&v->mutex);
    resource_unref(&v->base);
    return err;
}

/* Reads are always snapshots here, so there is nothing to change; the variable must exist. */
static Error *run_disable_copy_on_read(KernelContext *k) {
    Variable *v = NULL;
    Error *err = kernel_variable(k, 0, &v);
    if (!err) resource_unref(&v->base);
    return err;
}

const KernelDef resource_variable_cpu[] = {
    {"VarHandleOp", .run = run_var_handle, .state_size = sizeof(HandleState), .init = handle_init, .clear = handle_clear},
    {"_VarHandlesOp", .run = run_var_handles, .state_size = sizeof(HandlesState), .init = handles_init,
     .clear = handles_clear},
    {"ReadVariableOp", .run = run_read},
    {"_ReadVariablesOp", .run = run_read},
    {"AssignVariableOp", .run = run_assign, .state_size = sizeof(AssignState), .init = assign_init},
    {"AssignAddVariableOp", .run = run_assign_add},
    {"AssignSubVariableOp", .run = run_assign_sub},
    {"VarIsInitializedOp", .run = run_is_initialized},
    {"VariableShape", .run = run_variable_shape},
    {"DestroyResourceOp", .run = run_destroy, .state_size = sizeof(DestroyState), .init = destroy_init, .flags = KERNEL_DEFERS},
    {"ResourceCountUpTo", .run = run_count_up_to, .state_size = sizeof(CountState), .init = count_init},
    {"DisableCopyOnRead", .run = run_disable_copy_on_read},
    {0},
};
