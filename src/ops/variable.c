/* variable.c: reference variables: Variable, Assign, AssignAdd and what asks about them. */
#include "ops/elements.h"
#include "ops/op_list.h"

const OpDef variable_ops[] = {
    {"Variable", "-> ref: Ref(dtype)", "shape: shape; dtype: type; container: string = ''; shared_name: string = ''",
     OP_STATEFUL},
    {"VariableV2", "-> ref: Ref(dtype)", "shape: shape; dtype: type; container: string = ''; shared_name: string = ''",
     OP_STATEFUL},
    {"Assign", "ref: Ref(T), value: T -> output_ref: Ref(T)",
     "T: type; validate_shape: bool = true; use_locking: bool = true", OP_UNINITIALIZED_INPUT},
    {"AssignAdd", "ref: Ref(T), value: T -> output_ref: Ref(T)",
     "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, qint16, "
     "quint16, uint16, complex128, half, uint32, uint64}; use_locking: bool = false",
     0},
    {"AssignSub", "ref: Ref(T), value: T -> output_ref: Ref(T)",
     "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, qint16, "
     "quint16, uint16, complex128, half, uint32, uint64}; use_locking: bool = false",
     0},
    {"IsVariableInitialized", "ref: Ref(dtype) -> is_initialized: bool", "dtype: type", OP_UNINITIALIZED_INPUT},
    {"CountUpTo", "ref: Ref(T) -> output: T", "limit: int; T: {int32, int64}", 0},
    {0},
};

typedef struct VariableState {
    DataType dtype;
    PartialShape shape;
    Str container, shared_name;
} VariableState;

static Error *variable_init(const Node *node, void *state) {
    VariableState *s = state;
    Error *err = node_attr_type(node, "dtype", &s->dtype);
    if (!err) err = node_attr_shape(node, "shape", &s->shape);
    if (!err) err = node_attr_string(node, "container", &s->container);
    if (!err) err = node_attr_string(node, "shared_name", &s->shared_name);
    return err;
}

static Error *make_variable(void *arg, Resource **out) {
    KernelContext *k = arg;
    const VariableState *s = k->state;
    *out = &reference_variable_new(s->dtype, k->node->name)->base;
    return NULL;
}

static Error *run_variable(KernelContext *k) {
    const VariableState *s = k->state;
    Str name = s->shared_name.len ? s->shared_name : k->node->name;
    Resource *r = NULL;
    Error *err = resource_find_or_create(kernel_resources(k), s->container, name, &reference_variable_type, make_variable, k, &r);
    if (err) return err;
    Variable *v = (Variable *)r;
    if (v->dtype != s->dtype) {
        err = error_internal("Output 0 of type %s_ref does not match declared output type %s_ref for node {{node %.*s}}", dtype_name(v->dtype),
                             dtype_name(s->dtype), STR_ARG(k->node->name));
    } else {
        kernel_set_output_ref(k, 0, v);
    }
    resource_unref(r);
    return err;
}

static Error *uninitialised(const Variable *v) {
    return error_new(CODE_FAILED_PRECONDITION, "Attempting to use uninitialized value %s", v->name);
}

typedef struct AssignState {
    bool validate_shape;
    PartialShape declared; /* by the variable, where the node sees it; only known ones are compared */
} AssignState;

static bool is_known(const PartialShape *s) {
    if (s->rank < 0) return false;
    for (int d = 0; d < s->rank; d++) {
        if (s->dims[d] < 0) return false;
    }
    return true;
}

static Error *assign_init(const Node *node, void *state) {
    AssignState *s = state;
    s->declared.rank = -1;
    const Node *producer = node->input_count > 0 ? node->inputs[0].node : NULL;
    if (producer && (node_is(producer, "VariableV2") || node_is(producer, "Variable"))) {
        Error *err = node_attr_shape(producer, "shape", &s->declared);
        if (err) return err;
    }
    return node_attr_bool(node, "validate_shape", &s->validate_shape);
}

/* Copies into the old memory when it has the right size, so that readers which alias it see the new value; else takes
 * the value over when nobody else has it, else copies it. */
static Error *assign_locked(Variable *v, Tensor *value, const AssignState *s) {
    const Shape *old = v->value ? &v->value->shape : is_known(&s->declared) ? &s->declared : NULL;
    if (s->validate_shape && old && !shape_eq(old, &value->shape))
        return error_invalid("Assign requires shapes of both tensors to match. lhs shape= %s rhs shape= %s",
                             shape_text(old).text, shape_text(&value->shape).text);
    if (v->value && v->value->count == value->count && v->value->dtype == value->dtype) {
        if (v->value->data != value->data) elements_copy(value->dtype, v->value->data, value->data, value->count);
        if (!shape_eq(&v->value->shape, &value->shape)) {
            Tensor *other = tensor_alias(v->value, value->dtype, &value->shape);
            tensor_unref(v->value);
            v->value = other;
        }
        return NULL;
    }
    Tensor *fresh = NULL;
    if (tensor_is_unique(value)) {
        fresh = tensor_ref(value);
    } else {
        Error *err = tensor_copy(value, &fresh);
        if (err) return err;
    }
    tensor_unref(v->value);
    v->value = fresh;
    return NULL;
}

static Error *run_assign(KernelContext *k) {
    Variable *v = k->ref[0];
    if (!v) return error_invalid("The input of %.*s is not a variable", STR_ARG(k->node->name));
    pthread_mutex_lock(&v->mutex);
    Error *err = assign_locked(v, k->in[1], k->state);
    pthread_mutex_unlock(&v->mutex);
    if (!err) kernel_pass_ref(k, 0);
    return err;
}

static Error *update_locked(KernelContext *k, Variable *v, RowFn *fn) {
    const Tensor *value = k->in[1];
    Error *err = variable_write_locked(k, 0, v, value->dtype);
    if (err) return err;
    if (!shape_eq(&v->value->shape, &value->shape)) return error_invalid("Parameters and update must be the same size");
    rows_apply(k->pool, fn, dtype_size(value->dtype), v->value->data, value->data, value->count);
    return NULL;
}

static Error *run_update(KernelContext *k, RowFn *fn) {
    Variable *v = k->ref[0];
    if (!v) return error_invalid("The input of %.*s is not a variable", STR_ARG(k->node->name));
    if (!fn) return kernel_lacks_type(k->node, k->in[1]->dtype);
    pthread_mutex_lock(&v->mutex);
    Error *err = update_locked(k, v, fn);
    pthread_mutex_unlock(&v->mutex);
    if (!err) kernel_pass_ref(k, 0);
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
    Tensor *value = k->ref[0] ? variable_read(k->ref[0]) : tensor_ref(k->in[0]);
    kernel_set_output(k, 0, tensor_scalar_bool(value != NULL));
    tensor_unref(value);
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
    Tensor *value = v->value;
    if (!value) return uninitialised(v);
    if (value->shape.rank != 0) return error_invalid("input is not a scalar: %s", shape_text(&value->shape).text);
    if (value->dtype != DT_INT32 && value->dtype != DT_INT64) return error_invalid("CountUpTo needs integers");
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
    Variable *v = k->ref[0];
    if (!v) return error_invalid("The input of %.*s is not a variable", STR_ARG(k->node->name));
    pthread_mutex_lock(&v->mutex);
    Error *err = count_locked(k, v);
    pthread_mutex_unlock(&v->mutex);
    return err;
}

const KernelDef variable_cpu[] = {
    {"Variable", .run = run_variable, .state_size = sizeof(VariableState), .init = variable_init},
    {"VariableV2", .run = run_variable, .state_size = sizeof(VariableState), .init = variable_init},
    {"Assign", .run = run_assign, .state_size = sizeof(AssignState), .init = assign_init, .flags = KERNEL_REFS},
    {"AssignAdd", .run = run_assign_add, .flags = KERNEL_REFS},
    {"AssignSub", .run = run_assign_sub, .flags = KERNEL_REFS},
    {"IsVariableInitialized", .run = run_is_initialized, .flags = KERNEL_REFS},
    {"CountUpTo", .run = run_count_up_to, .state_size = sizeof(CountState), .init = count_init, .flags = KERNEL_REFS},
    {0},
};
