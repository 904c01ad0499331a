/* tensor_array.c: TensorArrayV3 and the forms before it, an array of tensors that lives for one step, and its gradient arrays.

   Elements are written once, or added up in a gradient array. Reading an element that was never written gives zeros when its shape is known: a
   gradient array knows it from the array it belongs to. The float `flow` only orders the ops. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "ops/elements.h"
#include "ops/op_list.h"
#include "ops/tensor_list.h"

const OpDef tensor_array_ops[] = {
    {"TensorArrayV3", "size: int32 -> handle: resource, flow: float",
     "dtype: type; element_shape: shape = ?; dynamic_size: bool = false; clear_after_read: bool = true; identical_element_shapes: bool = false; "
     "tensor_array_name: string = ''",
     OP_STATEFUL},
    {"TensorArrayGradV3", "handle: resource, flow_in: float -> grad_handle: resource, flow_out: float", "source: string", OP_STATEFUL},
    {"TensorArrayWriteV3", "handle: resource, index: int32, value: T, flow_in: float -> flow_out: float", "T: type", OP_STATEFUL},
    {"TensorArrayReadV3", "handle: resource, index: int32, flow_in: float -> value: dtype", "dtype: type", OP_STATEFUL},
    {"TensorArrayGatherV3", "handle: resource, indices: int32, flow_in: float -> value: dtype", "dtype: type; element_shape: shape = ?", OP_STATEFUL},
    {"TensorArrayScatterV3", "handle: resource, indices: int32, value: T, flow_in: float -> flow_out: float", "T: type", OP_STATEFUL},
    {"TensorArrayConcatV3", "handle: resource, flow_in: float -> value: dtype, lengths: int64", "dtype: type; element_shape_except0: shape = ?", OP_STATEFUL},
    {"TensorArraySplitV3", "handle: resource, value: T, lengths: int64, flow_in: float -> flow_out: float", "T: type", OP_STATEFUL},
    {"TensorArraySizeV3", "handle: resource, flow_in: float -> size: int32", "", OP_STATEFUL},
    {"TensorArrayCloseV3", "handle: resource ->", "", OP_STATEFUL},
    {"TensorArrayGradWithShape", "handle: resource, flow_in: float, shape_to_prepend: int32 -> grad_handle: resource, flow_out: float", "source: string", OP_STATEFUL},
    {"TensorArrayV2", "size: int32 -> handle: string",
     "dtype: type; element_shape: shape = ?; dynamic_size: bool = false; clear_after_read: bool = true; tensor_array_name: string = ''", OP_STATEFUL},
    {"TensorArrayGradV2", "handle: string, flow_in: float -> grad_handle: string", "source: string", OP_STATEFUL},
    {"TensorArrayWriteV2", "handle: string, index: int32, value: T, flow_in: float -> flow_out: float", "T: type", 0},
    {"TensorArrayReadV2", "handle: string, index: int32, flow_in: float -> value: dtype", "dtype: type", 0},
    {"TensorArrayGatherV2", "handle: string, indices: int32, flow_in: float -> value: dtype", "dtype: type; element_shape: shape = ?", 0},
    {"TensorArrayScatterV2", "handle: string, indices: int32, value: T, flow_in: float -> flow_out: float", "T: type", 0},
    {"TensorArrayConcatV2", "handle: string, flow_in: float -> value: dtype, lengths: int64", "dtype: type; element_shape_except0: shape = ?", 0},
    {"TensorArraySplitV2", "handle: string, value: T, lengths: int64, flow_in: float -> flow_out: float", "T: type", 0},
    {"TensorArraySizeV2", "handle: string, flow_in: float -> size: int32", "", 0},
    {"TensorArrayCloseV2", "handle: string ->", "", 0},
    {"TensorArray", "size: int32 -> handle: Ref(string)",
     "dtype: type; dynamic_size: bool = false; clear_after_read: bool = true; tensor_array_name: string = ''; element_shape: shape = ?", OP_STATEFUL},
    {"TensorArrayGrad", "handle: string, flow_in: float -> grad_handle: Ref(string)", "source: string", OP_STATEFUL},
    {"TensorArrayWrite", "handle: Ref(string), index: int32, value: T, flow_in: float -> flow_out: float", "T: type", 0},
    {"TensorArrayRead", "handle: Ref(string), index: int32, flow_in: float -> value: dtype", "dtype: type", 0},
    {"TensorArrayPack", "handle: Ref(string), flow_in: float -> value: dtype", "dtype: type; element_shape: shape = ?", 0},
    {"TensorArrayUnpack", "handle: Ref(string), value: T, flow_in: float -> flow_out: float", "T: type", 0},
    {"TensorArrayGather", "handle: Ref(string), indices: int32, flow_in: float -> value: dtype", "dtype: type; element_shape: shape = ?", 0},
    {"TensorArrayScatter", "handle: Ref(string), indices: int32, value: T, flow_in: float -> flow_out: float", "T: type", 0},
    {"TensorArrayConcat", "handle: Ref(string), flow_in: float -> value: dtype, lengths: int64", "dtype: type; element_shape_except0: shape = ?", 0},
    {"TensorArraySplit", "handle: Ref(string), value: T, lengths: int64, flow_in: float -> flow_out: float", "T: type", 0},
    {"TensorArraySize", "handle: Ref(string), flow_in: float -> size: int32", "", 0},
    {"TensorArrayClose", "handle: Ref(string) ->", "", 0},
    {0},
};

enum { MAX_ELEMENTS = 1 << 28 };

typedef struct ArrayItem {
    Tensor *value;
    PartialShape shape; /* what is known of it */
    bool written, cleared;
} ArrayItem;

typedef struct TensorArray {
    Resource base;
    char *name;
    DataType dtype;
    bool clear_after_read, identical_shapes, is_grad;
    pthread_mutex_t mutex; /* guards all below */
    bool dynamic_size;
    bool closed;
    PartialShape shape;
    ArrayItem *items;
    int64_t count;
    size_t capacity;
} TensorArray;

static void array_destroy(Resource *r) {
    TensorArray *a = (TensorArray *)r;
    for (int64_t i = 0; i < a->count; i++) tensor_unref(a->items[i].value);
    free(a->items);
    free(a->name);
    pthread_mutex_destroy(&a->mutex);
    free(a);
}

static const ResourceType tensor_array_type = {.type_name = "N10tensorflow11TensorArrayE", .what = "TensorArray", .destroy = array_destroy};

static void resize_locked(TensorArray *a, int64_t count) {
    a->items = vec_reserve(a->items, &a->capacity, (size_t)count, sizeof *a->items);
    for (int64_t i = a->count; i < count; i++) a->items[i] = (ArrayItem){.shape = a->shape};
    a->count = count;
}

static TensorArray *array_new(Str name, DataType dtype, const PartialShape *shape, int64_t count) {
    TensorArray *a = xcalloc(1, sizeof *a);
    resource_init(&a->base, &tensor_array_type);
    pthread_mutex_init(&a->mutex, NULL);
    a->name = str_dup(name);
    a->dtype = dtype;
    a->shape = *shape;
    resize_locked(a, count);
    return a;
}

/* ---- One element; the mutex is held ---- */

static Error *write_locked(TensorArray *a, int64_t i, Tensor *value) {
    if (value->dtype != a->dtype) return error_invalid("TensorArray dtype is %s but Op is trying to write dtype %s.", dtype_name(a->dtype), dtype_name(value->dtype));
    if (i < 0 || i >= MAX_ELEMENTS || (i >= a->count && !a->dynamic_size))
        return error_invalid("TensorArray %s: Tried to write to index %lld but array is not resizeable and size is: %lld", a->name, (long long)i, (long long)a->count);
    if (!partial_shape_matches(&a->shape, &value->shape))
        return error_invalid("TensorArray %s: Could not write to TensorArray index %lld because the value shape is %s which is incompatible with the TensorArray's inferred element shape: %s "
                             "(consider setting infer_shape=False).",
                             a->name, (long long)i, shape_text(&value->shape).text, shape_text(&a->shape).text);
    if (a->identical_shapes) a->shape = value->shape;
    if (i >= a->count) resize_locked(a, i + 1);
    ArrayItem *item = &a->items[i];
    if (item->cleared) return error_invalid("TensorArray %s: Could not write to TensorArray index %lld because it has already been read.", a->name, (long long)i);
    if (item->written && !a->is_grad)
        return error_invalid("TensorArray %s: Could not write to TensorArray index %lld because it has already been written to.", a->name, (long long)i);
    const RowMath *math = row_math(a->dtype);
    if (!partial_shape_matches(&item->shape, &value->shape) || (item->written && (!math || !math->add)))
        return error_invalid("TensorArray %s: Could not aggregate to TensorArray index %lld because the existing shape is %s but the new input shape is %s.", a->name, (long long)i,
                             shape_text(&item->shape).text, shape_text(&value->shape).text);
    if (!item->written) {
        item->value = tensor_ref(value);
        item->shape = value->shape;
        item->written = true;
        return NULL;
    }
    Tensor *sum = NULL;
    Error *err = tensor_copy(item->value, &sum);
    if (err) return err;
    math->add(sum->data, value->data, value->count);
    tensor_unref(item->value);
    item->value = sum;
    return NULL;
}

static Error *read_locked(TensorArray *a, int64_t i, Tensor **out) {
    if (i < 0 || i >= a->count)
        return error_invalid("Tried to read from index %lld but array size is: %lld", (long long)i, (long long)a->count);
    ArrayItem *item = &a->items[i];
    if (item->cleared)
        return error_invalid("TensorArray %s: Could not read index %lld twice because it was cleared after a previous read (perhaps try setting clear_after_read = false?).", a->name,
                             (long long)i);
    if (!item->written) {
        Tensor *none = NULL, *stacked = NULL;
        PartialShape shape = item->shape; /* that of the array may have become known since */
        Error *err = partial_shape_merge(&shape, &a->shape);
        if (!err && partial_shape_is_full(&shape) && a->dtype == DT_STRING) return error_invalid("tensor_array::TensorSetZero type not supported: string");
        if (!err) err = tensors_stack(&none, 1, a->dtype, &shape, &stacked);
        if (err) {
            error_free(err);
            return error_invalid("TensorArray %s: Could not read from TensorArray index %lld.  Furthermore, the element shape is not fully defined: %s.  It is possible you are working with a "
                                 "resizeable TensorArray and stop_gradients is not allowing the gradients to be written.  If you set the full "
                                 "element_shape property on the forward TensorArray, the proper all-zeros tensor will be returned instead of incurring this error.",
                                 a->name, (long long)i, shape_text(&shape).text);
        }
        err = tensor_row(stacked, 0, out);
        tensor_unref(stacked);
        return err;
    }
    *out = tensor_ref(item->value);
    if (a->clear_after_read) {
        tensor_unref(item->value);
        item->value = NULL;
        item->cleared = true;
    }
    return NULL;
}

/* ---- Making arrays ---- */

/* The array that input 0 names, with its mutex held; unlock and unref by let_go. */
static Error *take_array(KernelContext *k, TensorArray **out) {
    Resource *r = NULL;
    Error *err = kernel_resource(k, 0, &tensor_array_type, &r);
    if (err) return err;
    TensorArray *a = (TensorArray *)r;
    pthread_mutex_lock(&a->mutex);
    if (a->closed) {
        err = error_invalid("TensorArray %s has already been closed.", a->name);
        pthread_mutex_unlock(&a->mutex);
        resource_unref(r);
        return err;
    }
    *out = a;
    return NULL;
}

static void let_go(TensorArray *a) {
    pthread_mutex_unlock(&a->mutex);
    resource_unref(&a->base);
}

/* flow: of the forms that have one beside the handle. */
static void set_handle(KernelContext *k, Str name, Tensor *take_flow) {
    kernel_set_handle(k, resource_default_container(kernel_step_resources(k)), name, &tensor_array_type);
    if (k->output_count > 1)
        kernel_set_output(k, 1, take_flow);
    else
        tensor_unref(take_flow);
}

typedef struct ArrayState {
    DataType dtype;
    PartialShape shape;
    bool dynamic_size, clear_after_read, identical_shapes;
    Str name;
} ArrayState;

static Error *array_init(const Node *node, void *state) {
    ArrayState *s = state;
    Error *err = node_attr_type(node, "dtype", &s->dtype);
    if (!err) err = node_attr_shape(node, "element_shape", &s->shape);
    if (!err) err = node_attr_bool(node, "dynamic_size", &s->dynamic_size);
    if (!err) err = node_attr_bool(node, "clear_after_read", &s->clear_after_read);
    Str value;
    if (node_attr(node, "identical_element_shapes", &value)) attr_bool(value, &s->identical_shapes);
    return err ? err : node_attr_string(node, "tensor_array_name", &s->name);
}

/* Input i, which must be one number. */
static Error *scalar_input(KernelContext *k, int i, const char *what, int64_t *out) {
    if (k->in[i]->shape.rank != 0) return error_invalid("TensorArray %s must be scalar, but had shape: %s", what, shape_text(&k->in[i]->shape).text);
    return kernel_scalar_int(k, i, out);
}

static Error *run_array(KernelContext *k) {
    static _Atomic int64_t counter; /* names within the process are unique, so that arrays of loop iterations never meet */
    const ArrayState *s = k->state;
    int64_t count = 0;
    Error *err = scalar_input(k, 0, "size", &count);
    if (!err && count < 0) err = error_invalid("Size should be >= 0.");
    if (!err && count > MAX_ELEMENTS) err = error_invalid("Size should be at most %d, got %lld", MAX_ELEMENTS, (long long)count);
    if (err) return err;
    char *name = xasprintf("%.*s_%lld", STR_ARG(s->name.len ? s->name : k->node->name), (long long)atomic_fetch_add(&counter, 1));
    TensorArray *a = array_new(str_of(name), s->dtype, &s->shape, count);
    a->dynamic_size = s->dynamic_size;
    a->clear_after_read = s->clear_after_read;
    a->identical_shapes = s->identical_shapes;
    err = resource_add(kernel_step_resources(k), STR(""), str_of(name), &a->base);
    resource_unref(&a->base);
    if (!err) set_handle(k, str_of(name), tensor_scalar_f32(0));
    free(name);
    return err;
}

typedef struct GradArg {
    TensorArray *forward;
    const char *name;
    Shape prefix; /* of the shapes of its elements */
} GradArg;

static PartialShape prepended(const Shape *prefix, PartialShape s) {
    for (int d = 0; s.rank >= 0 && d < prefix->rank; d++) shape_insert_dim(&s, d, prefix->dims[d]);
    return s;
}

static Error *create_grad(void *arg, Resource **out) {
    const GradArg *g = arg;
    TensorArray *forward = g->forward;
    for (int64_t i = -1; i < forward->count; i++) {
        const PartialShape *s = i < 0 ? &forward->shape : &forward->items[i].shape;
        if (s->rank + g->prefix.rank > SHAPE_MAX_RANK) return error_invalid("Shapes of %d dimensions are not supported", s->rank + g->prefix.rank);
    }
    PartialShape shape = prepended(&g->prefix, forward->shape);
    TensorArray *a = array_new(str_of(g->name), forward->dtype, &shape, forward->count);
    for (int64_t i = 0; i < a->count; i++) a->items[i].shape = prepended(&g->prefix, forward->items[i].shape);
    a->is_grad = true;
    a->identical_shapes = forward->identical_shapes;
    *out = &a->base;
    return NULL;
}

static Error *run_grad(KernelContext *k) {
    Str source;
    TensorArray *forward = NULL;
    GradArg arg = {.prefix = SHAPE_SCALAR};
    Error *err = node_attr_string(k->node, "source", &source);
    if (!err && k->input_count > 2) err = kernel_shape_input(k, 2, &arg.prefix);
    if (!err) err = take_array(k, &forward);
    if (err) return err;
    arg.forward = forward;
    if (!forward->is_grad) forward->dynamic_size = false; /* its size is fixed from now on */
    char *name = xasprintf("%s@%.*s", forward->name, STR_ARG(source));
    Resource *grad = NULL;
    arg.name = name;
    err = resource_find_or_create(kernel_step_resources(k), STR(""), str_of(name), &tensor_array_type, create_grad, &arg, &grad);
    let_go(forward);
    if (!err) {
        set_handle(k, str_of(name), tensor_ref(k->in[1]));
        resource_unref(grad);
    }
    free(name);
    return err;
}

/* ---- Writing and reading ---- */

static Error *run_write(KernelContext *k) {
    int64_t i = 0;
    TensorArray *a = NULL;
    Error *err = scalar_input(k, 1, "index", &i);
    if (!err) err = take_array(k, &a);
    if (err) return err;
    err = write_locked(a, i, k->in[2]);
    let_go(a);
    kernel_set_output(k, 0, tensor_ref(k->in[3]));
    return err;
}

static Error *check_type(const TensorArray *a, DataType wanted) {
    if (a->dtype == wanted) return NULL;
    return error_invalid("TensorArray dtype is %s but Op requested dtype %s.", dtype_name(a->dtype), dtype_name(wanted));
}

static Error *run_read(KernelContext *k) {
    int64_t i = 0;
    TensorArray *a = NULL;
    Tensor *value = NULL;
    Error *err = scalar_input(k, 1, "index", &i);
    if (!err) err = take_array(k, &a);
    if (err) return err;
    err = check_type(a, kernel_output_type(k, 0));
    if (!err) err = read_locked(a, i, &value);
    let_go(a);
    if (!err) kernel_set_output(k, 0, value);
    return err;
}

/* Elements that are joined have one shape, but for the first `skip` dimensions; none at all have to know it from elsewhere. */
static Error *check_joined(Tensor *const *items, int64_t n, const PartialShape *known, int skip) {
    if (n == 0 && !partial_shape_is_full(known))
        return error_unimplemented("TensorArray has size zero, but %s %s is not fully defined. Currently only static shapes are supported when %s zero-size TensorArrays.",
                                   skip ? "element_shape_except0" : "element shape", shape_text(known).text, skip ? "concatenating" : "packing");
    Shape first = {0};
    for (int64_t i = 0; i < n; i++) {
        Shape s = items[i]->shape;
        if (s.rank < skip) return error_invalid("Concat saw a scalar shape at index %lld but requires at least vectors.  Did you mean to call pack?", (long long)i);
        if (skip) shape_remove_dim(&s, 0);
        if (i == 0) first = s;
        if (!shape_eq(&first, &s))
            return error_invalid("TensorArray has inconsistent shapes.  Index 0 has %sshape: %s but index %lld has %sshape: %s", skip ? "(excepting dimension 0) " : "", shape_text(&first).text,
                                 (long long)i, skip ? "(excepting dimension 0) " : "", shape_text(&s).text);
    }
    return NULL;
}

/* Reads several elements; *items is the caller's to free with clear_items. */
static Error *read_many_locked(TensorArray *a, const Tensor *indices, int64_t n, Tensor **items) {
    Error *err = NULL;
    for (int64_t i = 0; !err && i < n; i++) err = read_locked(a, indices ? tensor_index(indices, i) : i, &items[i]);
    return err;
}

static void clear_items(Tensor **items, int64_t n) {
    for (int64_t i = 0; i < n; i++) tensor_unref(items[i]);
    free(items);
}

/* indices NULL: all elements. */
static Error *gather(KernelContext *k, const Tensor *indices) {
    PartialShape shape = {.rank = -1};
    TensorArray *a = NULL;
    Tensor *out = NULL;
    Error *err = node_attr_shape(k->node, "element_shape", &shape);
    if (!err) err = take_array(k, &a);
    if (err) return err;
    int64_t n = indices ? indices->count : a->count;
    Tensor **items = xcalloc((size_t)n, sizeof *items);
    err = check_type(a, kernel_output_type(k, 0));
    if (!err) err = partial_shape_merge(&shape, &a->shape);
    if (!err) err = read_many_locked(a, indices, n, items);
    let_go(a);
    if (!err) err = check_joined(items, n, &shape, 0);
    if (!err) err = tensors_stack(items, n, kernel_output_type(k, 0), &shape, &out);
    if (!err) kernel_set_output(k, 0, out);
    clear_items(items, n);
    return err;
}

static Error *run_gather(KernelContext *k) {
    const Tensor *indices = k->in[1];
    if (indices->shape.rank != 1) return error_invalid("Expected indices to be a vector, but received shape: %s", shape_text(&indices->shape).text);
    return gather(k, indices);
}

static Error *run_pack(KernelContext *k) {
    return gather(k, NULL);
}

/* Row i of value becomes the element that indices says, or element i when it is NULL. */
static Error *scatter_locked(TensorArray *a, const Tensor *indices, const Tensor *value) {
    Error *err = NULL;
    for (int64_t i = 0; !err && i < value->shape.dims[0]; i++) {
        Tensor *row = NULL;
        err = tensor_row(value, i, &row);
        if (!err) err = write_locked(a, indices ? tensor_index(indices, i) : i, row);
        tensor_unref(row);
    }
    return err;
}

static Error *run_scatter(KernelContext *k) {
    const Tensor *indices = k->in[1], *value = k->in[2];
    TensorArray *a = NULL;
    if (indices->shape.rank != 1) return error_invalid("Expected indices to be a vector, but received shape: %s", shape_text(&indices->shape).text);
    if (value->shape.rank < 1) return error_invalid("Expected value to be at least a vector, but received shape: %s", shape_text(&value->shape).text);
    if (value->shape.dims[0] != indices->count)
        return error_invalid("Expected len(indices) == values.shape[0], but saw: %lld vs. %lld", (long long)indices->count, (long long)value->shape.dims[0]);
    int64_t last = -1;
    for (int64_t i = 0; i < indices->count; i++) last = tensor_index(indices, i) > last ? tensor_index(indices, i) : last;
    Error *err = take_array(k, &a);
    if (err) return err;
    if (last >= a->count && !a->dynamic_size) err = error_invalid("Max scatter index must be < array size (%lld vs. %lld)", (long long)last, (long long)a->count);
    if (!err) err = scatter_locked(a, indices, value);
    let_go(a);
    kernel_set_output(k, 0, tensor_ref(k->in[3]));
    return err;
}

static Error *run_unpack(KernelContext *k) {
    const Tensor *value = k->in[1];
    TensorArray *a = NULL;
    if (value->shape.rank < 1) return error_invalid("Input value for unpack must be at least a vector but received shape: %s", shape_text(&value->shape).text);
    Error *err = take_array(k, &a);
    if (err) return err;
    if (!a->dynamic_size && value->shape.dims[0] != a->count)
        err = error_invalid("Input value must have first dimension equal to the array size (%lld vs. %lld)", (long long)value->shape.dims[0], (long long)a->count);
    if (!err) err = scatter_locked(a, NULL, value);
    let_go(a);
    kernel_set_output(k, 0, tensor_ref(k->in[2]));
    return err;
}

static Error *run_concat(KernelContext *k) {
    PartialShape rest = {.rank = -1};
    TensorArray *a = NULL;
    Tensor *out = NULL, *lengths = NULL;
    Error *err = node_attr_shape(k->node, "element_shape_except0", &rest);
    if (!err) err = take_array(k, &a);
    if (err) return err;
    int64_t n = a->count;
    Tensor **items = xcalloc((size_t)n, sizeof *items);
    err = check_type(a, kernel_output_type(k, 0));
    if (!err) err = read_many_locked(a, NULL, n, items);
    let_go(a);
    if (!err) err = check_joined(items, n, &rest, 1);
    if (!err) err = tensors_concat(items, n, kernel_output_type(k, 0), &rest, &out, &lengths);
    clear_items(items, n);
    if (err) {
        tensor_unref(out);
        return err;
    }
    kernel_set_output(k, 0, out);
    kernel_set_output(k, 1, lengths);
    return NULL;
}

static Error *run_split(KernelContext *k) {
    const Tensor *value = k->in[1], *lengths = k->in[2];
    TensorArray *a = NULL;
    if (lengths->shape.rank != 1) return error_invalid("Expected lengths to be a vector, received shape: %s", shape_text(&lengths->shape).text);
    if (value->shape.rank < 1) return error_invalid("Expected value to be at least a vector, but received shape: %s", shape_text(&value->shape).text);
    int64_t total = 0;
    for (int64_t i = 0; i < lengths->count; i++) {
        if (tensor_i64(lengths)[i] < 0 || tensor_i64(lengths)[i] > value->shape.dims[0]) return error_invalid("Length %lld of part %lld does not fit", (long long)tensor_i64(lengths)[i], (long long)i);
        total += tensor_i64(lengths)[i];
    }
    if (total != value->shape.dims[0])
        return error_invalid("Expected sum of lengths to be equal to values.shape[0], but sum of lengths is %lld and value's shape is: %s", (long long)total, shape_text(&value->shape).text);
    Error *err = take_array(k, &a);
    if (err) return err;
    if (lengths->count != a->count && !a->dynamic_size)
        err = error_invalid("TensorArray's size is not equal to the size of lengths (%lld vs. %lld), and the TensorArray is not marked as dynamically resizeable", (long long)a->count,
                            (long long)lengths->count);
    int64_t at = 0;
    for (int64_t i = 0; !err && i < lengths->count; i++) {
        int64_t n = tensor_i64(lengths)[i];
        Tensor *view = tensor_rows(value, at, at + n), *part = NULL;
        err = tensor_copy(view, &part);
        if (!err) err = write_locked(a, i, part);
        tensor_unref(part);
        tensor_unref(view);
        at += n;
    }
    let_go(a);
    kernel_set_output(k, 0, tensor_ref(k->in[3]));
    return err;
}

static Error *run_size(KernelContext *k) {
    TensorArray *a = NULL;
    Error *err = take_array(k, &a);
    if (err) return err;
    kernel_set_output(k, 0, tensor_scalar_i32((int32_t)a->count));
    let_go(a);
    return NULL;
}

static Error *run_close(KernelContext *k) {
    TensorArray *a = NULL;
    Error *err = take_array(k, &a);
    if (err) return err;
    a->closed = true;
    for (int64_t i = 0; i < a->count; i++) {
        tensor_unref(a->items[i].value);
        a->items[i].value = NULL;
    }
    let_go(a);
    return NULL;
}

/* The ops that all forms have. */
#define FORM(v)                                                                                           \
    {"TensorArray" v, .run = run_array, .state_size = sizeof(ArrayState), .init = array_init},            \
        {"TensorArrayGrad" v, .run = run_grad}, {"TensorArrayWrite" v, .run = run_write},                 \
        {"TensorArrayRead" v, .run = run_read}, {"TensorArrayGather" v, .run = run_gather},               \
        {"TensorArrayScatter" v, .run = run_scatter}, {"TensorArrayConcat" v, .run = run_concat},         \
        {"TensorArraySplit" v, .run = run_split}, {"TensorArraySize" v, .run = run_size},                 \
    {                                                                                                     \
        "TensorArrayClose" v, .run = run_close                                                            \
    }

const KernelDef tensor_array_cpu[] = {
    FORM("V3"),
    FORM("V2"),
    FORM(""),
    {"TensorArrayGradWithShape", .run = run_grad},
    {"TensorArrayPack", .run = run_pack},
    {"TensorArrayUnpack", .run = run_unpack},
    {0},
};
