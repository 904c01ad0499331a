/* tensor_list_ops.c: TensorListReserve, PushBack, GetItem, Stack and the other ops on lists of tensors. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "ops/elements.h"
#include "ops/op_list.h"
#include "ops/tensor_list.h"

#define LIST_ATTRS "element_dtype: type; shape_type: {int32, int64}"

const OpDef tensor_list_ops_ops[] = {
    {"EmptyTensorList", "element_shape: shape_type, max_num_elements: int32 -> handle: variant", LIST_ATTRS, 0},
    {"TensorListReserve", "element_shape: shape_type, num_elements: int32 -> handle: variant", LIST_ATTRS, 0},
    {"TensorListPushBack", "input_handle: variant, tensor: element_dtype -> output_handle: variant", "element_dtype: type", 0},
    {"TensorListPushBackBatch", "input_handles: variant, tensor: element_dtype -> output_handles: variant", "element_dtype: type", 0},
    {"TensorListPopBack", "input_handle: variant, element_shape: int32 -> output_handle: variant, tensor: element_dtype", "element_dtype: type", 0},
    {"TensorListLength", "input_handle: variant -> length: int32", "", 0},
    {"TensorListElementShape", "input_handle: variant -> element_shape: shape_type", "shape_type: {int32, int64}", 0},
    {"TensorListResize", "input_handle: variant, size: int32 -> output_handle: variant", "", 0},
    {"TensorListGetItem", "input_handle: variant, index: int32, element_shape: Tshape -> item: element_dtype",
     "element_dtype: type; Tshape: {int32, int64} = int32", 0},
    {"TensorListSetItem", "input_handle: variant, index: int32, item: element_dtype -> output_handle: variant",
     "element_dtype: type; resize_if_index_out_of_bounds: bool = false", 0},
    {"TensorListStack", "input_handle: variant, element_shape: int32 -> tensor: element_dtype", "element_dtype: type; num_elements: int = -1", 0},
    {"TensorListFromTensor", "tensor: element_dtype, element_shape: shape_type -> output_handle: variant", LIST_ATTRS, 0},
    {"TensorListGather", "input_handle: variant, indices: int32, element_shape: int32 -> values: element_dtype", "element_dtype: type", 0},
    {"TensorListScatter", "tensor: element_dtype, indices: int32, element_shape: shape_type -> output_handle: variant", LIST_ATTRS, 0},
    {"TensorListScatterV2", "tensor: element_dtype, indices: int32, element_shape: shape_type, num_elements: int32 -> output_handle: variant", LIST_ATTRS, 0},
    {"TensorListScatterIntoExistingList", "input_handle: variant, tensor: element_dtype, indices: int32 -> output_handle: variant", "element_dtype: type", 0},
    {"TensorListConcat", "input_handle: variant -> tensor: element_dtype, lengths: int64", "element_dtype: type; element_shape: shape = ?", 0},
    {"TensorListConcatV2", "input_handle: variant, element_shape: shape_type, leading_dims: int64 -> tensor: element_dtype, lengths: int64", LIST_ATTRS, 0},
    {"TensorListSplit", "tensor: element_dtype, element_shape: shape_type, lengths: int64 -> output_handle: variant", LIST_ATTRS, 0},
    {"TensorListConcatLists", "input_a: variant, input_b: variant -> output: variant", "element_dtype: type", 0},
    {0},
};

enum { MAX_ELEMENTS = 1 << 28 };

static Error *type_init(const Node *node, void *state) {
    return node_attr_type(node, "element_dtype", state);
}

static DataType element_type(const KernelContext *k) {
    return *(DataType *)k->state;
}

static Error *check_count(int64_t count) {
    return count <= MAX_ELEMENTS ? NULL : error_invalid("A list of %lld elements is too long", (long long)count);
}

/* `where` tells which of several lists it is. */
static Error *check_item(const TensorList *list, const Tensor *item, const char *where) {
    if (partial_shape_matches(&list->shape, &item->shape)) return NULL;
    return error_invalid("Tried to append a tensor with incompatible shape to a list%s. Op element shape: %s list shape: %s", where,
                         shape_text(&item->shape).text, shape_text(&list->shape).text);
}

/* ---- Making lists ---- */

static Error *run_empty(KernelContext *k) {
    PartialShape shape = {.rank = -1};
    int64_t max_count = 0;
    if (k->in[1]->shape.rank != 0) return error_invalid("max_num_elements expected to be a scalar but got shape: %s", shape_text(&k->in[1]->shape).text);
    Error *err = kernel_partial_shape(k, 0, &shape);
    if (!err) err = kernel_scalar_int(k, 1, &max_count);
    if (!err) kernel_set_list(k, 0, tensor_list_new(element_type(k), &shape, max_count));
    return err;
}

static Error *run_reserve(KernelContext *k) {
    PartialShape shape = {.rank = -1};
    int64_t count = 0;
    Error *err = kernel_partial_shape(k, 0, &shape);
    if (err) return err;
    if (k->in[1]->shape.rank != 0) return error_invalid("The num_elements to reserve must be a tensor size 1, but got %s", shape_text(&k->in[1]->shape).text);
    count = tensor_index(k->in[1], 0);
    if (count < 0) return error_invalid("The num_elements to reserve must be a non negative number, but got %lld", (long long)count);
    err = check_count(count);
    if (err) return err;
    TensorList *list = tensor_list_new(element_type(k), &shape, -1);
    tensor_list_resize(list, count);
    kernel_set_list(k, 0, list);
    return NULL;
}

/* Whether rows of t may be elements of this shape. */
static Error *check_rows(const Tensor *t, const PartialShape *shape) {
    if (t->shape.rank < 1) return error_invalid("Tensor must be at least a vector, but saw shape: %s", shape_text(&t->shape).text);
    Shape row = t->shape;
    shape_remove_dim(&row, 0);
    if (partial_shape_matches(shape, &row)) return NULL;
    return error_invalid("Specified a list with shape %s from a tensor with shape %s", shape_text(shape).text, shape_text(&row).text);
}

static Error *run_from_tensor(KernelContext *k) {
    const Tensor *t = k->in[0];
    PartialShape shape = {.rank = -1};
    Error *err = kernel_partial_shape(k, 1, &shape);
    if (!err) err = check_rows(t, &shape);
    if (err) return err;
    TensorList *list = tensor_list_new(t->dtype, &shape, -1);
    tensor_list_resize(list, t->shape.dims[0]);
    for (int64_t i = 0; !err && i < list->count; i++) err = tensor_row(t, i, &list->items[i]);
    kernel_set_list(k, 0, list);
    return err;
}

/* Sets elements of the list, which is long enough, to rows of t, which fit it. */
static Error *scatter_rows(TensorList *list, const Tensor *t, const Tensor *indices) {
    Error *err = NULL;
    for (int64_t i = 0; !err && i < indices->count; i++) {
        Tensor *row = NULL;
        err = tensor_row(t, i, &row);
        if (!err) tensor_list_set(list, tensor_index(indices, i), row);
        tensor_unref(row);
    }
    return err;
}

/* The length a list needs to have all these elements. */
static Error *scattered_count(const Tensor *indices, int64_t *out) {
    int64_t count = 0;
    for (int64_t i = 0; i < indices->count; i++) {
        int64_t at = tensor_index(indices, i);
        if (at < 0) return error_invalid("Indices in TensorListScatter must all be non-negative.");
        if (at >= count) count = at + 1;
    }
    *out = count;
    return check_count(count);
}

static Error *run_scatter(KernelContext *k) {
    const Tensor *t = k->in[0], *indices = k->in[1];
    PartialShape shape = {.rank = -1};
    int64_t size = -1, count = 0;
    Error *err = kernel_partial_shape(k, 2, &shape);
    if (!err && k->input_count == 4) err = kernel_scalar_int(k, 3, &size);
    if (!err) err = check_count(size);
    if (!err && size < -1) err = error_invalid("TensorListScatter expects num_elements >= -1, found: %lld", (long long)size);
    if (!err) err = check_rows(t, &shape);
    if (!err && indices->shape.rank != 1) err = error_invalid("Expected indices to be a vector, but received shape: %s", shape_text(&indices->shape).text);
    if (!err && indices->count != t->shape.dims[0])
        err = error_invalid("Invalid number of rows in input tensor. Expected: %lld Actual: %lld", (long long)indices->count, (long long)t->shape.dims[0]);
    if (!err) err = scattered_count(indices, &count);
    if (!err && size >= 0 && count > size)
        err = error_invalid("TensorListScatter: Trying to scatter at index %lld in list with size %lld", (long long)count - 1, (long long)size);
    if (err) return err;
    TensorList *list = tensor_list_new(t->dtype, &shape, -1);
    tensor_list_resize(list, size >= 0 ? size : count);
    err = scatter_rows(list, t, indices);
    kernel_set_list(k, 0, list);
    return err;
}

static Error *run_scatter_into(KernelContext *k) {
    const Tensor *t = k->in[1], *indices = k->in[2];
    TensorList *list = NULL;
    int64_t count = 0;
    Error *err = kernel_list(k, 0, t->dtype, &list);
    if (!err) err = check_rows(t, &list->shape);
    if (!err && indices->shape.rank != 1) err = error_invalid("Expected indices to be a vector, but received shape: %s", shape_text(&indices->shape).text);
    if (!err && indices->count != t->shape.dims[0])
        err = error_invalid("Expected len(indices) == tensor.shape[0], but saw: %lld vs. %lld", (long long)indices->count, (long long)t->shape.dims[0]);
    if (!err) err = scattered_count(indices, &count);
    if (!err) err = kernel_list_output(k, 0, 0, &list);
    if (err) return err;
    if (count > list->count) tensor_list_resize(list, count);
    return scatter_rows(list, t, indices);
}

static Error *run_split(KernelContext *k) {
    const Tensor *t = k->in[0], *lengths = k->in[2];
    PartialShape shape = {.rank = -1};
    Error *err = kernel_partial_shape(k, 1, &shape);
    if (err) return err;
    if (shape.rank == 0) return error_invalid("TensorListSplit requires element_shape to be at least of rank 1, but saw: %s", shape_text(&shape).text);
    if (t->shape.rank < 1) return error_invalid("Tensor must be at least a vector, but saw shape: %s", shape_text(&t->shape).text);
    PartialShape rows = shape;
    if (rows.rank > 0) rows.dims[0] = t->shape.dims[0];
    if (!partial_shape_matches(&rows, &t->shape))
        return error_invalid("tensor shape %s is not compatible with element_shape %s", shape_text(&t->shape).text, shape_text(&shape).text);
    if (lengths->shape.rank != 1) return error_invalid("Expected lengths to be a vector, received shape: %s", shape_text(&lengths->shape).text);
    TensorList *list = tensor_list_new(t->dtype, &shape, -1);
    tensor_list_resize(list, lengths->count);
    int64_t at = 0, row = shape_prod(&t->shape, 1, t->shape.rank);
    for (int64_t i = 0; !err && i < lengths->count; i++) {
        int64_t n = tensor_i64(lengths)[i];
        if (n < 0)
            err = error_invalid("Invalid value in lengths: %lld", (long long)n);
        else if (n > t->shape.dims[0] - at)
            err = error_invalid("Attempting to slice [%lld, %lld] from tensor with length %lld", (long long)at, (long long)(at + n), (long long)t->shape.dims[0]);
        if (err) break;
        Shape part = t->shape;
        part.dims[0] = n;
        err = tensor_new(t->dtype, &part, &list->items[i]);
        if (!err) elements_copy(t->dtype, list->items[i]->data, (char *)t->data + (size_t)(at * row) * dtype_size(t->dtype), n * row);
        at += n;
    }
    if (!err && at != t->shape.dims[0]) err = error_invalid("Unused values in tensor. Length of tensor: %lld Values used: %lld", (long long)t->shape.dims[0], (long long)at);
    kernel_set_list(k, 0, list);
    return err;
}

/* A list that shares the elements of this one. */
static TensorList *copy_list(const TensorList *from) {
    TensorList *list = tensor_list_new(from->dtype, &from->shape, from->max_count);
    tensor_list_resize(list, from->count);
    for (int64_t i = 0; i < from->count; i++) tensor_list_set(list, i, from->items[i]);
    return list;
}

/* List `i` of a tensor of lists, which must be of the type the node says. */
static Error *nth_list(KernelContext *k, const Tensor *lists, const char *name, int64_t i, const TensorList **out) {
    const Variant *v = &tensor_variants(lists)[i];
    if (v->type != &tensor_list_type) return error_invalid("%s is not a TensorList at index %lld", name, (long long)i);
    const TensorList *list = v->object;
    if (list->dtype != element_type(k))
        return error_invalid("%s[%lld].dtype != element_dtype.  Saw: %s vs. %s", name, (long long)i, dtype_name(list->dtype), dtype_name(element_type(k)));
    *out = list;
    return NULL;
}

static Error *run_concat_lists(KernelContext *k) {
    const Tensor *a = k->in[0], *b = k->in[1];
    if (!shape_eq(&a->shape, &b->shape))
        return error_invalid("Incompatible input TensorList tensor shapes: %s vs. %s", shape_text(&a->shape).text, shape_text(&b->shape).text);
    Tensor *out = kernel_output(k, 0, &a->shape);
    Error *err = NULL;
    for (int64_t i = 0; out && !err && i < a->count; i++) {
        const TensorList *first = NULL, *second = NULL;
        err = nth_list(k, a, "input_a", i, &first);
        if (!err) err = nth_list(k, b, "input_b", i, &second);
        if (!err && !shape_eq(&first->shape, &second->shape))
            err = error_invalid("input_a and input_b TensorList element shapes are not identical at index %lld.  Saw %s vs. %s", (long long)i,
                                shape_text(&first->shape).text, shape_text(&second->shape).text);
        if (err) return err;
        TensorList *list = copy_list(first);
        tensor_list_resize(list, first->count + second->count);
        for (int64_t j = 0; j < second->count; j++) tensor_list_set(list, first->count + j, second->items[j]);
        tensor_variants(out)[i] = (Variant){&tensor_list_type, list};
    }
    return err;
}

/* ---- Changing lists ---- */

static Error *push(TensorList *list, Tensor *item, const char *where) {
    Error *err = check_item(list, item, where);
    if (!err && list->max_count >= 0 && list->count >= list->max_count)
        err = error_invalid("Tried to push item into a full list list size: %lld max_num_elements: %lld", (long long)list->count, (long long)list->max_count);
    if (err) return err;
    tensor_list_resize(list, list->count + 1);
    tensor_list_set(list, list->count - 1, item);
    return NULL;
}

static Error *run_push_back(KernelContext *k) {
    TensorList *list = NULL;
    Error *err = kernel_list(k, 0, k->in[1]->dtype, &list);
    if (!err) err = kernel_list_output(k, 0, 0, &list);
    return err ? err : push(list, k->in[1], "");
}

static Error *run_push_back_batch(KernelContext *k) {
    const Tensor *lists = k->in[0], *t = k->in[1];
    if (t->shape.rank < 1) return error_invalid("Expected tensor to be at least a vector, but saw shape: %s", shape_text(&t->shape).text);
    if (t->shape.dims[0] != lists->count)
        return error_invalid("Expected tensor.shape[0] == input_handles.size, but saw %lld vs. %lld", (long long)t->shape.dims[0], (long long)lists->count);
    Tensor *out = kernel_output(k, 0, &lists->shape);
    Error *err = NULL;
    for (int64_t i = 0; out && !err && i < lists->count; i++) {
        const Variant *v = &tensor_variants(lists)[i];
        if (v->type != &tensor_list_type) return error_invalid("Input handle at index %lld is not a list", (long long)i);
        const TensorList *from = v->object;
        if (from->dtype != t->dtype) return error_invalid("Invalid data type at index %lld: %s, list has %s", (long long)i, dtype_name(t->dtype), dtype_name(from->dtype));
        TensorList *list = copy_list(from);
        tensor_variants(out)[i] = (Variant){&tensor_list_type, list};
        Tensor *row = NULL;
        char where[48];
        snprintf(where, sizeof where, " at index %lld", (long long)i);
        err = tensor_row(t, i, &row);
        if (!err) err = push(list, row, where);
        tensor_unref(row);
    }
    return err;
}

/* What is known of the shapes of these elements, into `shape`. */
static Error *merge_shapes(Tensor *const *items, int64_t n, PartialShape *shape) {
    Error *err = NULL;
    for (int64_t i = 0; !err && i < n; i++)
        if (items[i]) err = partial_shape_merge(shape, &items[i]->shape);
    return err;
}

static Error *run_pop_back(KernelContext *k) {
    TensorList *list = NULL;
    PartialShape shape = {.rank = -1};
    Error *err = kernel_list(k, 0, element_type(k), &list);
    if (!err) err = kernel_partial_shape(k, 1, &shape);
    if (!err && list->count == 0) err = error_invalid("Trying to pop from an empty list.");
    if (err) return err;
    Tensor *item = tensor_ref(list->items[list->count - 1]);
    if (!item) {
        err = partial_shape_merge(&shape, &list->shape);
        if (!err && !partial_shape_is_full(&shape))
            err = error_invalid("Trying to read an uninitialized tensor but element_shape is not fully defined.%s", shape_text(&shape).text);
        if (!err) err = tensor_zeros(list->dtype, &shape, &item);
    }
    if (!err) err = kernel_list_output(k, 0, 0, &list);
    if (err) {
        tensor_unref(item);
        return err;
    }
    kernel_set_output(k, 1, item);
    tensor_list_resize(list, list->count - 1);
    return NULL;
}

static Error *run_resize(KernelContext *k) {
    TensorList *list = NULL;
    int64_t count = 0;
    if (k->in[1]->shape.rank != 0) return error_invalid("size must be a scalar");
    Error *err = kernel_scalar_int(k, 1, &count);
    if (!err && count < 0) err = error_invalid("TensorListSlice expects size to be non-negative. Got: %lld", (long long)count);
    if (!err) err = check_count(count);
    if (!err) err = kernel_list_output(k, 0, 0, &list);
    if (!err) tensor_list_resize(list, count);
    return err;
}

typedef struct SetItem {
    DataType type;
    bool grow;
} SetItem;

static Error *set_item_init(const Node *node, void *state) {
    SetItem *s = state;
    Error *err = node_attr_type(node, "element_dtype", &s->type);
    return err ? err : node_attr_bool(node, "resize_if_index_out_of_bounds", &s->grow);
}

static Error *run_set_item(KernelContext *k) {
    const SetItem *s = k->state;
    TensorList *list = NULL;
    int64_t at = 0;
    if (k->in[1]->shape.rank != 0) return error_invalid("Expected argument 1 to be a scalar. Received shape %s", shape_text(&k->in[1]->shape).text);
    Error *err = kernel_scalar_int(k, 1, &at);
    if (!err) err = kernel_list(k, 0, k->in[2]->dtype, &list);
    if (!err && !partial_shape_matches(&list->shape, &k->in[2]->shape))
        err = error_invalid("Tried to set a tensor with incompatible shape at a list index. Item element shape: %s list shape: %s",
                            shape_text(&k->in[2]->shape).text, shape_text(&list->shape).text);
    if (!err && (at < 0 || at > MAX_ELEMENTS || (!s->grow && at >= list->count)))
        err = error_invalid("Trying to modify element %lld in a list with %lld elements.", (long long)at, (long long)list->count);
    if (!err) err = kernel_list_output(k, 0, 0, &list);
    if (err) return err;
    if (at >= list->count) tensor_list_resize(list, at + 1);
    tensor_list_set(list, at, k->in[2]);
    return NULL;
}

/* ---- Reading lists ---- */

static Error *run_length(KernelContext *k) {
    TensorList *list = NULL;
    Error *err = kernel_list(k, 0, DT_INVALID, &list);
    if (!err) kernel_set_output(k, 0, tensor_scalar_i32((int32_t)list->count));
    return err;
}

static Error *run_element_shape(KernelContext *k) {
    TensorList *list = NULL;
    Error *err = kernel_list(k, 0, DT_INVALID, &list);
    if (err) return err;
    Shape shape = list->shape.rank < 0 ? SHAPE_SCALAR : shape_vector(list->shape.rank);
    Tensor *out = kernel_output(k, 0, &shape);
    for (int64_t d = 0; out && d < out->count; d++) index_put(out, d, list->shape.rank < 0 ? -1 : list->shape.dims[d]);
    return NULL;
}

static Error *run_get_item(KernelContext *k) {
    TensorList *list = NULL;
    int64_t at = 0;
    PartialShape shape = {.rank = -1};
    Tensor *item = NULL;
    Error *err = kernel_list(k, 0, element_type(k), &list);
    if (!err) err = kernel_scalar_int(k, 1, &at);
    if (!err) err = kernel_partial_shape(k, 2, &shape);
    if (!err && (at < 0 || at >= list->count))
        err = error_invalid("Trying to access element %lld in a list with %lld elements.", (long long)at, (long long)list->count);
    if (err) return err;
    if (list->items[at]) {
        kernel_set_output(k, 0, tensor_ref(list->items[at]));
        return NULL;
    }
    err = partial_shape_merge(&shape, &list->shape);
    if (!err && !partial_shape_is_full(&shape)) err = merge_shapes(list->items, list->count, &shape);
    if (!err && !partial_shape_is_full(&shape))
        err = error_invalid("Trying to read an uninitialized tensor but element_shape is not fully defined: %s and no list element is set.", shape_text(&shape).text);
    if (!err) err = tensor_zeros(list->dtype, &shape, &item);
    if (!err) kernel_set_output(k, 0, item);
    return err;
}

typedef struct StackState {
    DataType type;
    int64_t count;
} StackState;

static Error *stack_init(const Node *node, void *state) {
    StackState *s = state;
    Error *err = node_attr_type(node, "element_dtype", &s->type);
    return err ? err : node_attr_int(node, "num_elements", &s->count);
}

static Error *run_stack(KernelContext *k) {
    const StackState *s = k->state;
    TensorList *list = NULL;
    PartialShape shape = {.rank = -1};
    Tensor *out = NULL;
    Error *err = kernel_list(k, 0, s->type, &list);
    if (!err) err = kernel_partial_shape(k, 1, &shape);
    if (!err && s->count >= 0 && s->count != list->count)
        err = error_invalid("Operation expected a list with %lld elements but got a list with %lld elements.", (long long)s->count, (long long)list->count);
    if (!err) err = partial_shape_merge(&shape, &list->shape);
    if (!err && list->count == 0 && !partial_shape_is_full(&shape))
        err = error_invalid("Tried to stack elements of an empty list with non-fully-defined element_shape: %s", shape_text(&shape).text);
    if (!err) err = merge_shapes(list->items, list->count, &shape);
    if (!err && !partial_shape_is_full(&shape))
        err = error_invalid("Tried to stack list which only contains uninitialized tensors and has a non-fully-defined element_shape: %s", shape_text(&shape).text);
    if (!err) err = tensors_stack(list->items, list->count, list->dtype, &shape, &out);
    if (!err) kernel_set_output(k, 0, out);
    return err;
}

static Error *run_gather(KernelContext *k) {
    TensorList *list = NULL;
    PartialShape shape = {.rank = -1};
    const Tensor *indices = k->in[1];
    Tensor *out = NULL;
    Error *err = kernel_list(k, 0, element_type(k), &list);
    if (!err) err = kernel_partial_shape(k, 2, &shape);
    if (!err) err = partial_shape_merge(&shape, &list->shape);
    if (!err && indices->count == 0 && !partial_shape_is_full(&shape))
        err = error_invalid("Tried to gather 0-elements from a list with non-fully-defined shape: %s", shape_text(&shape).text);
    if (err) return err;
    Tensor **items = xcalloc((size_t)indices->count, sizeof *items);
    const bool whole = partial_shape_is_full(&shape);
    for (int64_t i = 0; !err && i < indices->count; i++) {
        int64_t at = tensor_index(indices, i);
        if (at < 0 || at >= list->count)
            err = error_invalid(whole ? "Index %lld out o range; list only has %lld elements." : "Trying to gather element %lld in a list with %lld elements.",
                                (long long)at, (long long)list->count);
        else
            items[i] = list->items[at];
    }
    if (!err) err = merge_shapes(items, indices->count, &shape);
    if (!err && !partial_shape_is_full(&shape))
        err = error_invalid("Tried to gather uninitialized tensors from a list with non-fully-defined element_shape: %s", shape_text(&shape).text);
    if (!err) err = tensors_stack(items, indices->count, list->dtype, &shape, &out);
    if (!err) kernel_set_output(k, 0, out);
    free(items);
    return err;
}

/* How a list is joined: each element has `first` rows, or as many as it likes (-1), of the shape `rest`. */
typedef struct Joined {
    int64_t first;
    PartialShape rest;
} Joined;

/* The older op goes by its attribute alone, the newer one by its input and the list. */
static Error *joined_init(KernelContext *k, const TensorList *list, Joined *j) {
    PartialShape shape = {.rank = -1};
    bool older = k->input_count == 1;
    Error *err = older ? node_attr_shape(k->node, "element_shape", &shape) : kernel_partial_shape(k, 1, &shape);
    if (!err && !older) err = partial_shape_merge(&shape, &list->shape);
    if (!err && shape.rank == 0) err = error_invalid("Concat requires elements to be at least vectors, found scalars instead.");
    if (err) return err;
    *j = (Joined){-1, shape};
    if (shape.rank < 0) return NULL;
    if (!older) j->first = shape.dims[0];
    shape_remove_dim(&j->rest, 0);
    return NULL;
}

/* Holds the elements against the shape and learns from them what it lacks: also how many rows they have, where all have the same. */
static Error *joined_learn(Joined *j, const TensorList *list) {
    int64_t same = j->first;
    for (int64_t i = 0; i < list->count; i++) {
        const Tensor *item = list->items[i];
        if (!item) continue;
        if (item->shape.rank < 1) return error_invalid("Concat saw a scalar shape at index %lld but requires at least vectors.", (long long)i);
        Shape row = item->shape;
        shape_remove_dim(&row, 0);
        Error *err = partial_shape_merge(&j->rest, &row);
        if (err) return err;
        int64_t rows = item->shape.dims[0];
        if (j->first >= 0 && rows != j->first)
            return error_invalid("First entry of element_shape input does not match the first dim of list element at index: %lld Expected: %lld Actual: %lld",
                                 (long long)i, (long long)j->first, (long long)rows);
        same = same == -1 || same == rows ? rows : -2;
    }
    j->first = same < 0 ? -1 : same;
    return NULL;
}

/* Zeros for an element that is not set: as many rows as the others have, or as the input of the leading dimensions says. */
static Error *joined_zeros(KernelContext *k, const Joined *j, DataType dtype, int64_t i, Tensor **out) {
    const Tensor *leading = k->input_count == 3 ? k->in[2] : NULL;
    int64_t given = leading ? leading->count : 0, rows = j->first;
    if (!leading && rows < 0)
        return error_invalid("Concating lists with uninitialized tensors is not supported in this version of TensorListConcat. Consider updating your GraphDef to "
                             "run the newer version.");
    if (i < given)
        rows = tensor_index(leading, i);
    else if (rows < 0)
        return error_invalid("List contains uninitialized tensor at index %lld but leading_dims has only %lld elements.", (long long)i, (long long)given);
    if (rows < 0) return error_invalid("Expected a non-negative size, got %lld", (long long)rows);
    Shape shape = j->rest;
    shape_insert_dim(&shape, 0, rows);
    return tensor_zeros(dtype, &shape, out);
}

static Error *run_concat(KernelContext *k) {
    TensorList *list = NULL;
    Joined j = {-1, {.rank = -1}};
    Error *err = kernel_list(k, 0, element_type(k), &list);
    if (!err) err = joined_init(k, list, &j);
    if (!err && list->count == 0 && !partial_shape_is_full(&j.rest))
        err = error_invalid("All except the first dimension must be fully defined when concating an empty tensor list. element_shape: %s", shape_text(&j.rest).text);
    if (!err && !partial_shape_is_full(&list->shape)) err = joined_learn(&j, list);
    if (!err && !partial_shape_is_full(&j.rest))
        err = error_invalid("Trying to concat list with only uninitialized tensors but element_shape_except_first_dim is not fully defined: %s", shape_text(&j.rest).text);
    if (err) return err;
    Tensor **items = xcalloc((size_t)list->count, sizeof *items), *out = NULL, *lengths = NULL;
    for (int64_t i = 0; !err && i < list->count; i++) {
        items[i] = tensor_ref(list->items[i]);
        if (!items[i]) err = joined_zeros(k, &j, list->dtype, i, &items[i]);
    }
    if (!err) err = tensors_concat(items, list->count, list->dtype, &j.rest, &out, &lengths);
    for (int64_t i = 0; i < list->count; i++) tensor_unref(items[i]);
    free(items);
    if (err) {
        tensor_unref(out);
        return err;
    }
    kernel_set_output(k, 0, out);
    kernel_set_output(k, 1, lengths);
    return NULL;
}

#define TYPED .state_size = sizeof(DataType), .init = type_init

const KernelDef tensor_list_ops_cpu[] = {
    {"EmptyTensorList", .run = run_empty, TYPED},
    {"TensorListReserve", .run = run_reserve, TYPED},
    {"TensorListPushBack", .run = run_push_back, TYPED},
    {"TensorListPushBackBatch", .run = run_push_back_batch, TYPED},
    {"TensorListPopBack", .run = run_pop_back, TYPED},
    {"TensorListLength", .run = run_length},
    {"TensorListElementShape", .run = run_element_shape},
    {"TensorListResize", .run = run_resize},
    {"TensorListGetItem", .run = run_get_item, TYPED},
    {"TensorListSetItem", .run = run_set_item, .state_size = sizeof(SetItem), .init = set_item_init},
    {"TensorListStack", .run = run_stack, .state_size = sizeof(StackState), .init = stack_init},
    {"TensorListFromTensor", .run = run_from_tensor, TYPED},
    {"TensorListGather", .run = run_gather, TYPED},
    {"TensorListScatter", .run = run_scatter, TYPED},
    {"TensorListScatterV2", .run = run_scatter, TYPED},
    {"TensorListScatterIntoExistingList", .run = run_scatter_into, TYPED},
    {"TensorListConcat", .run = run_concat, TYPED},
    {"TensorListConcatV2", .run = run_concat, TYPED},
    {"TensorListSplit", .run = run_split, TYPED},
    {"TensorListConcatLists", .run = run_concat_lists, TYPED},
    {0},
};
