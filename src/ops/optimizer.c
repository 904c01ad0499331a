/* optimizer.c: the table of optimizers, and the driver that runs one step on references or handles, dense or sparse. */
#include "ops/optimizer.h"

#include <stddef.h>

#include "base/float16.h"
#include "kernels/indexed_rows.h"
#include "ops/elements.h"

/* roles: what the inputs of the dense op are, in order: v a variable or slot, s a scalar, g the gradient, t an int64
 * scalar. The sparse op has its indices right after the gradient. */
typedef struct Optimizer {
    const char *name, *roles;
    size_t fn; /* offset in UpdateFns */
    const char *flag_attr;
    const char *dense_rate, *sparse_rate; /* what TensorFlow says lr is not, when it is not just "scalar: " */
} Optimizer;

#define SPACED "scalar : "
#define FTRL_RATE "positive scalar (or zero if multiply_linear_by_lr is set): "

static const Optimizer optimizers[] = {
    {"GradientDescent", "vsg", offsetof(UpdateFns, gradient_descent), NULL, NULL, NULL},
    {"Momentum", "vvsgs", offsetof(UpdateFns, momentum), "use_nesterov", NULL, SPACED},
    {"KerasMomentum", "vvsgs", offsetof(UpdateFns, keras_momentum), "use_nesterov", NULL, SPACED},
    {"Adagrad", "vvsg", offsetof(UpdateFns, adagrad), "update_slots", NULL, NULL},
    {"AdagradV2", "vvssg", offsetof(UpdateFns, adagrad_v2), "update_slots", NULL, NULL},
    {"Adam", "vvvssssssg", offsetof(UpdateFns, adam), "use_nesterov", SPACED, NULL},
    {"AdamWithAmsgrad", "vvvvssssssg", offsetof(UpdateFns, amsgrad), NULL, SPACED, NULL},
    {"AdaMax", "vvvsssssg", offsetof(UpdateFns, adamax), NULL, SPACED, NULL},
    {"RMSProp", "vvvssssg", offsetof(UpdateFns, rmsprop), NULL, SPACED, NULL},
    {"CenteredRMSProp", "vvvvssssg", offsetof(UpdateFns, centered_rmsprop), NULL, SPACED, NULL},
    {"Ftrl", "vvvgssss", offsetof(UpdateFns, ftrl), "multiply_linear_by_lr", NULL, FTRL_RATE},
    {"FtrlV2", "vvvgsssss", offsetof(UpdateFns, ftrl_v2), "multiply_linear_by_lr", NULL, FTRL_RATE},
    {"Adadelta", "vvvsssg", offsetof(UpdateFns, adadelta), NULL, NULL, NULL},
    {"AdagradDA", "vvvgssst", offsetof(UpdateFns, adagrad_da), NULL, NULL, NULL},
    {"ProximalGradientDescent", "vsssg", offsetof(UpdateFns, proximal_gradient_descent), NULL, NULL, NULL},
    {"ProximalAdagrad", "vvsssg", offsetof(UpdateFns, proximal_adagrad), NULL, "positive scalar: ", "positive scalar: "},
    {"PowerSign", "vvssssg", offsetof(UpdateFns, power_sign), NULL, NULL, NULL},
    {"AddSign", "vvssssg", offsetof(UpdateFns, add_sign), NULL, NULL, NULL},
    {0},
};

/* False when no optimizer knows the type. */
static bool update_type(DataType type, UpdateType *out) {
    switch (type) {
        case DT_FLOAT:
            *out = UPDATE_FLOAT;
            return true;
        case DT_DOUBLE:
            *out = UPDATE_DOUBLE;
            return true;
        case DT_HALF:
            *out = UPDATE_HALF;
            return true;
        case DT_BFLOAT16:
            *out = UPDATE_BFLOAT16;
            return true;
        case DT_COMPLEX64:
            *out = UPDATE_COMPLEX64;
            return true;
        case DT_COMPLEX128:
            *out = UPDATE_COMPLEX128;
            return true;
        default:
            return false;
    }
}

/* The function for the processor; NULL when the optimizer lacks the type. */
static UpdateFn *update_of(const OptimizerState *s) {
    return *(UpdateFn *const *)((const char *)update_fns(s->type) + s->row->fn);
}

Error *optimizer_init(const Node *node, void *state) {
    OptimizerState *s = state;
    Str name = node->op;
    if (str_starts(name, STR("Resource"))) name = str_slice(name, 8, name.len);
    s->sparse = str_starts(name, STR("Sparse"));
    if (s->sparse) name = str_slice(name, 6, name.len);
    name = str_slice(name, 5, name.len); /* after "Apply" */
    s->row = optimizers;
    while (s->row->name && !str_is(name, s->row->name)) s->row++;
    if (!s->row->name) return error_internal("No optimizer for op %.*s", STR_ARG(node->op));
    Error *err = node_attr_type(node, "T", &s->dtype);
    if (err) return err;
    if (!update_type(s->dtype, &s->type) || !update_of(s)) return kernel_lacks_type(node, s->dtype);
    return s->row->flag_attr ? node_attr_bool(node, s->row->flag_attr, &s->flag) : NULL;
}

/* The inputs of one run, sorted by role. */
typedef struct Step {
    KernelContext *k;
    const OptimizerState *s;
    UpdateFn *update;
    Variable *vars[UPDATE_MAX_SLOTS];
    int var_count;
    double scalars[UPDATE_MAX_SCALARS];
    int scalar_count;
    const Tensor *grad, *indices;
    int grad_input;
    char *data[UPDATE_MAX_SLOTS];
} Step;

/* The sign that TensorFlow's sparse Ftrl, and both forms of ProximalAdagrad, want of a scalar: 1 positive, 2 not
 * negative, -2 not positive, 0 any. */
static int wanted_sign(const Step *step, Str name) {
    const char *optimizer = step->s->row->name;
    bool ftrl = step->s->sparse && !strncmp(optimizer, "Ftrl", 4);
    if (!ftrl && strcmp(optimizer, "ProximalAdagrad")) return 0;
    if (str_is(name, "lr_power")) return -2;
    return str_is(name, "lr") && !(ftrl && step->s->flag) ? 1 : 2;
}

/* In TensorFlow's words, which differ a little from one optimizer to the next. */
static Error *not_a_scalar(const Step *step, int i) {
    const Optimizer *row = step->s->row;
    Str name = step->k->node->info->inputs[i].name;
    const char *long_name = str_is(name, "l1")             ? "l1 regularization strength"
                            : str_is(name, "l2")           ? "l2 regularization strength"
                            : str_is(name, "l2_shrinkage") ? "l2 shrinkage regularization strength"
                                                           : NULL;
    bool rate = str_is(name, "lr"), power = str_is(name, "lr_power");
    const char *kind = "scalar: ", *special = step->s->sparse ? row->sparse_rate : row->dense_rate;
    if (wanted_sign(step, name)) kind = power ? "non-positive scalar: " : "non-negative scalar: ";
    if (rate && special) kind = special;
    if (power && !step->s->sparse) kind = "scalar";
    if (long_name) name = str_of(long_name);
    return error_invalid("%.*s is not a %s%s", STR_ARG(name), kind,
                         shape_text(&step->k->in[i]->shape).text);
}

static Error *take_scalar(Step *step, int i) {
    const Tensor *t = step->k->in[i];
    if (t->shape.rank != 0) return not_a_scalar(step, i);
    double value;
    switch (t->dtype) {
        case DT_FLOAT:
            value = tensor_f32(t)[0];
            break;
        case DT_DOUBLE:
            value = tensor_f64(t)[0];
            break;
        case DT_HALF:
            value = half_to_float(*(const uint16_t *)t->data);
            break;
        case DT_BFLOAT16:
            value = bfloat16_to_float(*(const uint16_t *)t->data);
            break;
        case DT_COMPLEX64:
        case DT_COMPLEX128: {
            bool single = t->dtype == DT_COMPLEX64;
            value = single ? tensor_f32(t)[0] : tensor_f64(t)[0];
            if ((single ? tensor_f32(t)[1] : tensor_f64(t)[1]) != 0)
                return error_unimplemented("%.*s has an imaginary part", STR_ARG(step->k->node->info->inputs[i].name));
            break;
        }
        default:
            value = (double)index_at(t, 0);
    }
    int sign = wanted_sign(step, step->k->node->info->inputs[i].name);
    if ((sign == 1 && !(value > 0)) || (sign == 2 && !(value >= 0)) || (sign == -2 && !(value <= 0))) return not_a_scalar(step, i);
    step->scalars[step->scalar_count++] = value;
    return NULL;
}

/* One that a handle means but that has no value is TensorFlow's own mistake, as it says. */
static Error *take_variable(Step *step, int i) {
    Error *err = kernel_variable(step->k, i, &step->vars[step->var_count]);
    if (!err) step->var_count++;
    if (!err || err->code != CODE_NOT_FOUND) return err;
    error_free(err);
    return error_internal("Invalid variable reference.");
}

static Error *take_inputs(Step *step) {
    int i = 0;
    for (const char *role = step->s->row->roles; *role; role++, i++) {
        Error *err = NULL;
        if (*role == 'v') {
            err = take_variable(step, i);
        } else if (*role == 'g') {
            step->grad = step->k->in[i];
            step->grad_input = i;
            if (step->s->sparse) step->indices = step->k->in[++i];
        } else {
            err = take_scalar(step, i);
        }
        if (err) return err;
    }
    return NULL;
}

/* Each variable once, in the order of addresses: two steps that share variables cannot wait for each other. */
static void lock_all(Step *step, bool lock) {
    Variable *sorted[UPDATE_MAX_SLOTS];
    int n = 0;
    for (int i = 0; i < step->var_count; i++) {
        int at = n;
        while (at > 0 && (uintptr_t)sorted[at - 1] > (uintptr_t)step->vars[i]) at--;
        if (at > 0 && sorted[at - 1] == step->vars[i]) continue;
        memmove(&sorted[at + 1], &sorted[at], (size_t)(n - at) * sizeof sorted[0]);
        sorted[at] = step->vars[i];
        n++;
    }
    for (int i = 0; i < n; i++) {
        if (lock) {
            pthread_mutex_lock(&sorted[i]->mutex);
        } else {
            pthread_mutex_unlock(&sorted[i]->mutex);
        }
    }
}

static void dense_range(void *arg, int64_t begin, int64_t end) {
    const Step *step = arg;
    int64_t size = (int64_t)dtype_size(step->s->dtype);
    void *v[UPDATE_MAX_SLOTS];
    for (int i = 0; i < step->var_count; i++) v[i] = step->data[i] + begin * size;
    step->update(v, (const char *)step->grad->data + begin * size, step->scalars, step->s->flag, end - begin);
}

static Error *dense(Step *step) {
    const Shape *var = &step->vars[0]->value->shape;
    if (!shape_eq(var, &step->grad->shape))
        return error_invalid("var and %.*s do not have the same shape%s %s",
                             STR_ARG(step->k->node->info->inputs[step->grad_input].name), shape_text(var).text,
                             shape_text(&step->grad->shape).text);
    threadpool_parallel_for(step->k->pool, step->grad->count, 16384, dense_range, step);
    return NULL;
}

static Error *check_sparse(const Step *step) {
    const Shape *var = &step->vars[0]->value->shape, *grad = &step->grad->shape;
    if (var->rank < 1) return error_invalid("var must be at least 1 dimensional");
    if (step->indices->shape.rank != 1) return error_invalid("indices must be one-dimensional");
    if (grad->rank != var->rank) return error_invalid("grad must have the same number of dimensions as var");
    for (int d = 1; d < var->rank; d++) {
        if (var->dims[d] != grad->dims[d]) return error_invalid("var and grad must match in dimension %d", d);
    }
    if (grad->dims[0] != step->indices->count)
        return error_invalid("grad must be the same size as indices in the first dimension.");
    for (int64_t i = 0; i < step->indices->count; i++) {
        int64_t row = index_at(step->indices, i);
        if (row >= 0 && row < var->dims[0]) continue;
        if (node_is(step->k->node, "ResourceSparseApplyKerasMomentum"))
            return error_invalid("indices[%lld] = %lld is not in [0, %lld)", (long long)i, (long long)row, (long long)var->dims[0]);
        return error_invalid("Index %lld at offset %lld in indices is out of range", (long long)row, (long long)i);
    }
    return NULL;
}

static void update_row(void *arg, int64_t row, int64_t i) {
    const Step *step = arg;
    const Shape *var = &step->vars[0]->value->shape;
    int64_t width = shape_prod(var, 1, var->rank), row_bytes = width * (int64_t)dtype_size(step->s->dtype);
    void *v[UPDATE_MAX_SLOTS];
    for (int j = 0; j < step->var_count; j++) v[j] = step->data[j] + row * row_bytes;
    step->update(v, (const char *)step->grad->data + i * row_bytes, step->scalars, step->s->flag, width);
}

/* An index that comes twice is applied twice. */
static Error *sparse(Step *step) {
    Error *err = check_sparse(step);
    if (err) return err;
    const Shape *var = &step->vars[0]->value->shape;
    IndexedRows rows = {.indices = step->indices->data, .wide = step->indices->dtype == DT_INT64, .count = step->indices->count,
                        .first = step->data[0], .row_bytes = (size_t)shape_prod(var, 1, var->rank) * dtype_size(step->s->dtype),
                        .fn = update_row, .arg = step};
    indexed_rows_run(&rows, step->k->pool);
    return NULL;
}

static Error *update_locked(Step *step) {
    const OpInfo *info = step->k->node->info;
    for (int i = 0; i < step->var_count; i++) {
        Error *err = variable_write_locked(step->k, i, step->vars[i], step->s->dtype);
        if (err) return err;
        const Shape *var = &step->vars[0]->value->shape, *slot = &step->vars[i]->value->shape;
        if (!shape_eq(var, slot))
            return error_invalid("var and %.*s do not have the same shape%s %s", STR_ARG(info->inputs[i].name),
                                 shape_text(var).text, shape_text(slot).text);
    }
    for (int i = 0; i < step->var_count; i++) step->data[i] = step->vars[i]->value->data;
    return step->s->sparse ? sparse(step) : dense(step);
}

Error *optimizer_run(KernelContext *k) {
    Step step = {.k = k, .s = k->state, .update = update_of(k->state)};
    Error *err = take_inputs(&step);
    if (!err) {
        lock_all(&step, true);
        err = update_locked(&step);
        lock_all(&step, false);
    }
    for (int i = 0; i < step.var_count; i++) resource_unref(&step.vars[i]->base);
    if (!err) kernel_pass_ref(k, 0);
    return err;
}
