/* temporary_variable.c: TemporaryVariable and DestroyTemporaryVariable: variables of one step, known by a name until they are destroyed. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "ops/elements.h"
#include "ops/op_list.h"

const OpDef temporary_variable_ops[] = {
    {"TemporaryVariable", "-> ref: Ref(dtype)", "shape: shape; dtype: type; var_name: string = ''", OP_STATEFUL},
    {"DestroyTemporaryVariable", "ref: Ref(T) -> value: T", "T: type; var_name: string", 0},
    {0},
};

/* A name in a step. In a loop the node that has it makes one variable in every iteration. */
typedef struct TemporaryName {
    Resource base;
    const Node *owner;
    pthread_mutex_t mutex; /* guards count */
    int64_t count;         /* variables that are not destroyed yet */
} TemporaryName;

static void destroy_name(Resource *r) {
    TemporaryName *t = (TemporaryName *)r;
    pthread_mutex_destroy(&t->mutex);
    free(t);
}

static const ResourceType temporary_type = {.type_name = "N10tensorflow19TemporaryVariableOp6TmpVarE", .what = "temporary variable", .destroy = destroy_name};

static Error *create_name(void *owner, Resource **out) {
    TemporaryName *t = xcalloc(1, sizeof *t);
    resource_init(&t->base, &temporary_type);
    pthread_mutex_init(&t->mutex, NULL);
    t->owner = owner;
    *out = &t->base;
    return NULL;
}

/* Adds to the number of variables of that name; false when it would be less than none. */
static bool count_name(TemporaryName *t, int64_t more) {
    pthread_mutex_lock(&t->mutex);
    bool ok = t->count + more >= 0;
    if (ok) t->count += more;
    pthread_mutex_unlock(&t->mutex);
    return ok;
}

static Error *already_exists(const KernelContext *k, Str name) {
    return error_new(CODE_ALREADY_EXISTS, "Resource __per_step_%lld/%.*s/%s", (long long)kernel_step_id(k), STR_ARG(name), temporary_type.type_name);
}

static Error *not_found(const KernelContext *k, Str name) {
    return error_not_found("Resource __per_step_%lld/%.*s/%s does not exist.", (long long)kernel_step_id(k), STR_ARG(name), temporary_type.type_name);
}

typedef struct TemporaryState {
    DataType dtype;
    PartialShape shape;
    Str name;
} TemporaryState;

static Error *name_init(const Node *node, Str *name) {
    Error *err = node_attr_string(node, "var_name", name);
    if (!err && !name->len) *name = node->name;
    return err;
}

static Error *make_init(const Node *node, void *state) {
    TemporaryState *s = state;
    Error *err = node_attr_type(node, "dtype", &s->dtype);
    if (!err) err = node_attr_shape(node, "shape", &s->shape);
    return err ? err : name_init(node, &s->name);
}

static Error *destroy_init(const Node *node, void *state) {
    return name_init(node, state);
}

static Error *take_name(KernelContext *k, Str name) {
    Resource *r = NULL;
    Error *err = resource_find_or_create(kernel_step_resources(k), STR(""), name, &temporary_type, create_name, (void *)k->node, &r);
    if (err) return err;
    TemporaryName *t = (TemporaryName *)r;
    if (t->owner != k->node)
        err = already_exists(k, name);
    else
        count_name(t, 1);
    resource_unref(r);
    return err;
}

static Error *run_make(KernelContext *k) {
    const TemporaryState *s = k->state;
    Tensor *value = NULL;
    Error *err = take_name(k, s->name);
    if (!err) err = tensor_new(s->dtype, &s->shape, &value);
    if (err) return err;
    if (dtype_is_plain(s->dtype)) memset(value->data, 0, tensor_bytes(value));
    Variable *v = reference_variable_new(s->dtype, k->node->name);
    variable_assign(v, value);
    kernel_set_output_ref(k, 0, v);
    tensor_unref(value);
    resource_unref(&v->base);
    return NULL;
}

static Error *run_destroy(KernelContext *k) {
    Str name = *(Str *)k->state;
    Variable *v = k->ref[0];
    Resource *r = NULL;
    if (!v) return error_invalid("The input of %.*s is not a variable", STR_ARG(k->node->name));
    Error *err = resource_find(kernel_step_resources(k), STR(""), name, &temporary_type, &r);
    bool known = !err && count_name((TemporaryName *)r, -1);
    error_free(err);
    resource_unref(r);
    if (!known) return not_found(k, name);
    Tensor *value = variable_read(v);
    if (!value) return error_new(CODE_FAILED_PRECONDITION, "Attempting to use uninitialized value %s", v->name);
    kernel_set_output(k, 0, value);
    return NULL;
}

const KernelDef temporary_variable_cpu[] = {
    {"TemporaryVariable", .run = run_make, .state_size = sizeof(TemporaryState), .init = make_init},
    {"DestroyTemporaryVariable", .run = run_destroy, .state_size = sizeof(Str), .init = destroy_init, .flags = KERNEL_REFS},
    {0},
};
