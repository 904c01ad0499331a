/* accumulator.c: ConditionalAccumulator, SparseConditionalAccumulator and the ops on them. */
#include "ops/accumulator_resource.h"
#include "ops/elements.h"
#include "ops/op_list.h"

const OpDef accumulator_ops[] = {
    {"ConditionalAccumulator", "-> handle: Ref(string)",
     "dtype: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, qint16, "
     "quint16, uint16, complex128, half, uint32, uint64}; shape: shape; container: string = ''; shared_name: "
     "string = ''; reduction_type: {'MEAN', 'SUM'} = 'MEAN'",
     OP_STATEFUL},
    {"ResourceConditionalAccumulator", "-> handle: resource",
     "dtype: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, qint16, "
     "quint16, uint16, complex128, half, uint32, uint64}; shape: shape; container: string = ''; shared_name: "
     "string = ''; reduction_type: {'MEAN', 'SUM'} = 'MEAN'",
     OP_STATEFUL},
    {"SparseConditionalAccumulator", "-> handle: Ref(string)",
     "dtype: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, qint16, "
     "quint16, uint16, complex128, half, uint32, uint64}; shape: shape; container: string = ''; shared_name: "
     "string = ''; reduction_type: {'MEAN', 'SUM'} = 'MEAN'",
     OP_STATEFUL},
    {"AccumulatorApplyGradient", "handle: Ref(string), local_step: int64, gradient: dtype ->",
     "dtype: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, qint16, "
     "quint16, uint16, complex128, half, uint32, uint64}",
     0},
    {"ResourceAccumulatorApplyGradient", "handle: resource, local_step: int64, gradient: dtype ->",
     "dtype: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, qint16, "
     "quint16, uint16, complex128, half, uint32, uint64}",
     OP_STATEFUL},
    {"SparseAccumulatorApplyGradient",
     "handle: Ref(string), local_step: int64, gradient_indices: int64, gradient_values: dtype, gradient_shape: "
     "int64 ->",
     "dtype: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, qint16, "
     "quint16, uint16, complex128, half, uint32, uint64}; has_known_shape: bool",
     0},
    {"AccumulatorTakeGradient", "handle: Ref(string), num_required: int32 -> average: dtype",
     "dtype: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, qint16, "
     "quint16, uint16, complex128, half, uint32, uint64}",
     0},
    {"ResourceAccumulatorTakeGradient", "handle: resource, num_required: int32 -> average: dtype",
     "dtype: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, qint16, "
     "quint16, uint16, complex128, half, uint32, uint64}",
     OP_STATEFUL},
    {"SparseAccumulatorTakeGradient",
     "handle: Ref(string), num_required: int32 -> indices: int64, values: dtype, shape: int64",
     "dtype: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, qint16, "
     "quint16, uint16, complex128, half, uint32, uint64}",
     0},
    {"AccumulatorSetGlobalStep", "handle: Ref(string), new_global_step: int64 ->", "", 0},
    {"ResourceAccumulatorSetGlobalStep", "handle: resource, new_global_step: int64 ->", "", OP_STATEFUL},
    {"AccumulatorNumAccumulated", "handle: Ref(string) -> num_accumulated: int32", "", 0},
    {"ResourceAccumulatorNumAccumulated", "handle: resource -> num_accumulated: int32", "", OP_STATEFUL},
    {0},
};

static Error *make_init(const Node *node, AccumulatorSpec *spec, bool sparse) {
    Str reduction;
    spec->sparse = sparse;
    Error *err = node_attr_type(node, "dtype", &spec->dtype);
    if (!err) err = node_attr_shape(node, "shape", &spec->shape);
    if (!err) err = node_attr_string(node, "reduction_type", &reduction);
    if (!err) spec->mean = str_is(reduction, "MEAN");
    return err;
}

static Error *init_dense(const Node *node, void *state) {
    return make_init(node, state, false);
}
static Error *init_sparse(const Node *node, void *state) {
    return make_init(node, state, true);
}

static Error *create(KernelContext *k, Str name, Resource **out) {
    Accumulator *a;
    Error *err = accumulator_new(name, k->state, &a);
    if (!err) *out = (Resource *)a;
    return err;
}

static Error *run_make(KernelContext *k) {
    Resource *r = NULL;
    Error *err = kernel_own_resource(k, &accumulator_type, false, create, &r);
    if (!err) err = accumulator_check_spec((Accumulator *)r, k->state);
    resource_unref(r);
    return err;
}

static Error *find(KernelContext *k, Accumulator **out) {
    Resource *r;
    Error *err = kernel_resource(k, 0, &accumulator_type, &r);
    if (!err) *out = (Accumulator *)r;
    return err;
}

static Error *number(KernelContext *k, const char *what, int64_t *out) {
    if (k->in[1]->shape.rank) return error_invalid("Argument %s must be scalar, but had bad shape %s", what, shape_text(&k->in[1]->shape).text);
    return kernel_scalar_int(k, 1, out);
}

static Error *run_apply(KernelContext *k) {
    Accumulator *a;
    int64_t step;
    Error *err = number(k, "local_step", &step);
    if (!err) err = find(k, &a);
    if (err) return err;
    err = accumulator_apply(a, step, k->in[2]);
    resource_unref((Resource *)a);
    return err;
}

static Error *init_apply_sparse(const Node *node, void *state) {
    return node_attr_bool(node, "has_known_shape", state);
}

static Error *run_apply_sparse(KernelContext *k) {
    const bool *has_known_shape = k->state;
    Accumulator *a;
    int64_t step;
    Error *err = number(k, "local_step", &step);
    if (!err) err = find(k, &a);
    if (err) return err;
    err = accumulator_apply_sparse(a, step, k->in[2], k->in[3], *has_known_shape ? k->in[4] : NULL);
    resource_unref((Resource *)a);
    return err;
}

static void taken(void *arg, Error *err, Tensor **results) {
    KernelContext *k = arg;
    for (int i = 0; !err && i < k->output_count; i++) kernel_set_output(k, i, tensor_ref(results[i]));
    kernel_done(k, err);
}

static Error *run_take(KernelContext *k) {
    Accumulator *a;
    int64_t required;
    Error *err = number(k, "num_required", &required);
    if (!err && required <= 0)
        err = error_invalid("Argument num_required must be positive, but was %lld", (long long)required);
    if (!err) err = find(k, &a);
    if (err) return err;
    int value = k->output_count == 3 ? 1 : 0;
    if (accumulator_is_sparse(a) != (value == 1))
        err = error_invalid("The accumulator holds %s gradients", accumulator_is_sparse(a) ? "sparse" : "dense");
    else if (accumulator_dtype(a) != kernel_output_type(k, value))
        err = error_invalid("The accumulator has dtype %s, not %s", dtype_name(accumulator_dtype(a)),
                            dtype_name(kernel_output_type(k, value)));
    if (!err) {
        KernelContext *d = kernel_defer(k);
        accumulator_take(a, required, kernel_cancel(d), taken, d);
    }
    resource_unref((Resource *)a);
    return err;
}

static Error *run_set_step(KernelContext *k) {
    Accumulator *a;
    int64_t step;
    Error *err = number(k, "num_required", &step); /* so TensorFlow calls it */
    if (!err) err = find(k, &a);
    if (err) return err;
    accumulator_set_step(a, step);
    resource_unref((Resource *)a);
    return NULL;
}

static Error *run_count(KernelContext *k) {
    Accumulator *a;
    Error *err = find(k, &a);
    if (err) return err;
    kernel_set_output(k, 0, tensor_scalar_i32((int32_t)accumulator_count(a)));
    resource_unref((Resource *)a);
    return NULL;
}

#define MAKE(op_name, init_fn) \
    { op_name, .run = run_make, .state_size = sizeof(AccumulatorSpec), .init = init_fn, .flags = KERNEL_PER_SESSION }

const KernelDef accumulator_cpu[] = {
    MAKE("ConditionalAccumulator", init_dense),
    MAKE("ResourceConditionalAccumulator", init_dense),
    MAKE("SparseConditionalAccumulator", init_sparse),
    {"AccumulatorApplyGradient", .run = run_apply},
    {"ResourceAccumulatorApplyGradient", .run = run_apply},
    {"SparseAccumulatorApplyGradient", .run = run_apply_sparse, .state_size = sizeof(bool), .init = init_apply_sparse},
    {"AccumulatorTakeGradient", .run = run_take, .flags = KERNEL_DEFERS},
    {"ResourceAccumulatorTakeGradient", .run = run_take, .flags = KERNEL_DEFERS},
    {"SparseAccumulatorTakeGradient", .run = run_take, .flags = KERNEL_DEFERS},
    {"AccumulatorSetGlobalStep", .run = run_set_step},
    {"ResourceAccumulatorSetGlobalStep", .run = run_set_step},
    {"AccumulatorNumAccumulated", .run = run_count},
    {"ResourceAccumulatorNumAccumulated", .run = run_count},
    {0},
};
