/* tensor_list_ops.c: TensorListReserve, PushBack, GetItem, Stack and the other ops on lists of tensors. */
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

static Error *count_input(KernelContext *k, int i, const char *what, int64_t *out) {
    Error *err = kernel_scalar_int(k, i, out);
    if (!err && (*out < 0 || *out > MAX_ELEMENTS)) err = error_invalid("%s must be in [0, %d], got %lld", what, MAX_ELEMENTS, (long long)*out);
    return err;
}

static Error *check_item(const TensorList *list, const Tensor *item) {
    if (partial_shape_matches(&list->shape, &item->shape)) return NULL;
    return error_invalid("Tried to append a tensor with incompatible shape to a list. Op element shape: %s list shape: %s", shape_text(&item->shape).text,
                         shape_text(&list->shape).text);
}

/* ---- Making lists ---- */

static Error *run_empty(KernelContext *k) {
    PartialShape shape = {.rank = -1};
    int64_t max_count = 0;
    Error *err = kernel_partial_shape(k, 0, &shape);
    if (!err) err = kernel_scalar_int(k, 1, &max_count);
    if (!err) kernel_set_list(k, 0, tensor_list_new(element_type(k), &shape, max_count));
    return err;
}

static Error *run_reserve(KernelContext *k) {
    PartialShape shape = {.rank = -1};
    int64_t count = 0;
    Error *err = kernel_partial_shape(k, 0, &shape);
    if (!err) err = count_input(k, 1, "The num_elements to reserve", &count);
    if (err) return err;
    TensorList *list = tensor_list_new(element_type(k), &shape, -1);
    tensor_list_resize(list, count);
    kernel_set_list(k, 0, list);
    return NULL;
}

static Error *run_from_tensor(KernelContext *k) {
    const Tensor *t = k->in[0];
    PartialShape shape = {.rank = -1};
    Error *err = kernel_partial_shape(k, 1, &shape);
    if (err) return err;
    if (t->shape.rank < 1) return error_invalid("Tensor must be at least a vector, but saw shape: %s", shape_text(&t->shape).text);
    Shape row = t->shape;
    shape_remove_dim(&row, 0);
    if (!partial_shape_matches(&shape, &row))
        return error_invalid("Specified a list with shape %s from a tensor with shape %s", shape_text(&shape).text, shape_text(&row).text);
    TensorList *list = tensor_list_new(t->dtype, &shape, -1);
    tensor_list_resize(list, t->shape.dims[0]);
    for (int64_t i = 0; !err && i < list->count; i++) err = tensor_row(t, i, &list->items[i]);
    kernel_set_list(k, 0, list);
    return err;
}

static Error *scatter_rows(TensorList *list, const Tensor *t, const Tensor *indices) {
    if (t->shape.rank < 1 || indices->shape.rank != 1 || indices->count != t->shape.dims[0])
        return error_invalid("Specified %lld indices but tensor has shape %s", (long long)indices->count, shape_text(&t->shape).text);
    for (int64_t i = 0; i < indices->count; i++) {
        int64_t at = tensor_index(indices, i);
        if (at < 0 || at >= MAX_ELEMENTS) return error_invalid("Indices in TensorListScatter must all be non-negative; got %lld", (long long)at);
        if (at >= list->count) tensor_list_resize(list, at + 1);
        Tensor *row = NULL;
        Error *err = tensor_row(t, i, &row);
        if (!err) err = check_item(list, row);
        if (!err) tensor_list_set(list, at, row);
        tensor_unref(row);
        if (err) return err;
    }
    return NULL;
}

static Error *run_scatter(KernelContext *k) {
    PartialShape shape = {.rank = -1};
    int64_t count = -1;
    Error *err = kernel_partial_shape(k, 2, &shape);
    if (!err && k->input_count == 4) err = kernel_scalar_int(k, 3, &count);
    if (!err && (count < -1 || count > MAX_ELEMENTS)) err = error_invalid("TensorListScatter expects num_elements >= -1, found: %lld", (long long)count);
    if (err) return err;
    TensorList *list = tensor_list_new(k->in[0]->dtype, &shape, -1);
    if (count > 0) tensor_list_resize(list, count);
    err = scatter_rows(list, k->in[0], k->in[1]);
    if (!err && count >= 0 && list->count > count) err = error_invalid("TensorListScatter: Trying to scatter at index %lld in list with size %lld", (long long)list->count - 1, (long long)count);
    kernel_set_list(k, 0, list);
    return err;
}

static Error *run_scatter_into(KernelContext *k) {
    TensorList *list = NULL;
    Error *err = kernel_list(k, 0, k->in[1]->dtype, &list);
    if (!err) err = kernel_list_output(k, 0, 0, &list);
    return err ? err : scatter_rows(list, k->in[1], k->in[2]);
}

static Error *run_split(KernelContext *k) {
    const Tensor *t = k->in[0], *lengths = k->in[2];
    PartialShape shape = {.rank = -1};
    Error *err = kernel_partial_shape(k, 1, &shape);
    if (err) return err;
    if (t->shape.rank < 1) return error_invalid("Tensor must be at least a vector, but saw shape: %s", shape_text(&t->shape).text);
    if (lengths->shape.rank != 1) return error_invalid("Expected lengths to be a vector, received shape: %s", shape_text(&lengths->shape).text);
    TensorList *list = tensor_list_new(t->dtype, &shape, -1);
    tensor_list_resize(list, lengths->count);
    int64_t at = 0, row = shape_prod(&t->shape, 1, t->shape.rank);
    for (int64_t i = 0; !err && i < lengths->count; i++) {
        int64_t n = tensor_i64(lengths)[i];
        if (n < 0 || n > t->shape.dims[0] - at) {
            err = error_invalid("Invalid length %lld in lengths: the tensor has %lld rows", (long long)n, (long long)t->shape.dims[0]);
            break;
        }
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

static Error *run_concat_lists(KernelContext *k) {
    TensorList *a = NULL, *b = NULL, *out = NULL;
    Error *err = kernel_list(k, 0, element_type(k), &a);
    if (!err) err = kernel_list(k, 1, element_type(k), &b);
    if (!err) err = kernel_list_output(k, 0, 0, &out);
    if (err) return err;
    int64_t before = out->count, more = b->count;
    tensor_list_resize(out, before + more);
    for (int64_t i = 0; i < more; i++) tensor_list_set(out, before + i, b->items[i]);
    return NULL;
}

/* ---- Changing lists ---- */

static Error *push(TensorList *list, Tensor *item) {
    if (list->max_count >= 0 && list->count >= list->max_count)
        return error_invalid("Tried to push item into a full list; list size: %lld max_num_elements: %lld", (long long)list->count, (long long)list->max_count);
    Error *err = check_item(list, item);
    if (err) return err;
    tensor_list_resize(list, list->count + 1);
    tensor_list_set(list, list->count - 1, item);
    return NULL;
}

static Error *run_push_back(KernelContext *k) {
    TensorList *list = NULL;
    Error *err = kernel_list(k, 0, k->in[1]->dtype, &list);
    if (!err) err = kernel_list_output(k, 0, 0, &list);
    return err ? err : push(list, k->in[1]);
}

static Error *run_push_back_batch(KernelContext *k) {
    const Tensor *lists = k->in[0], *t = k->in[1];
    if (t->shape.rank < 1 || t->shape.dims[0] != lists->count)
        return error_invalid("Expected tensor.shape[0] == input_handles.size, but saw %s vs. %lld", shape_text(&t->shape).text, (long long)lists->count);
    Tensor *out = kernel_output(k, 0, &lists->shape);
    Error *err = NULL;
    for (int64_t i = 0; out && !err && i < lists->count; i++) {
        const Variant *v = &tensor_variants(lists)[i];
        if (v->type != &tensor_list_type) return error_invalid("Input handle at index %lld is not a list", (long long)i);
        const TensorList *from = v->object;
        if (from->dtype != t->dtype) return error_invalid("Invalid data type at index %lld: %s, list has %s", (long long)i, dtype_name(t->dtype), dtype_name(from->dtype));
        TensorList *list = tensor_list_new(from->dtype, &from->shape, from->max_count);
        tensor_list_resize(list, from->count);
        for (int64_t j = 0; j < from->count; j++) tensor_list_set(list, j, from->items[j]);
        tensor_variants(out)[i] = (Variant){&tensor_list_type, list};
        Tensor *row = NULL;
        err = tensor_row(t, i, &row);
        if (!err) err = push(list, row);
        tensor_unref(row);
    }
    return err;
}

/* An element, or zeros where none was set. */
static Error *item_or_zeros(const TensorList *list, int64_t i, const PartialShape *wanted, Tensor **out) {
    PartialShape shape = *wanted;
    Error *err = partial_shape_merge(&shape, &list->shape);
    if (err) return err;
    if (list->items[i]) {
        if (!partial_shape_matches(&shape, &list->items[i]->shape))
            return error_invalid("Incompatible shapes: element_shape %s, element %s", shape_text(&shape).text, shape_text(&list->items[i]->shape).text);
        *out = tensor_ref(list->items[i]);
        return NULL;
    }
    Tensor *stacked = NULL, *none = NULL;
    for (int64_t j = 0; !err && j < list->count; j++)
        if (list->items[j]) err = partial_shape_merge(&shape, &list->items[j]->shape);
    if (!err) err = tensors_stack(&none, 1, list->dtype, &shape, &stacked);
    if (err) {
        error_free(err);
        return error_invalid("Trying to read an uninitialized tensor but element_shape is not fully defined: %s and no list element is set.", shape_text(&shape).text);
    }
    err = tensor_row(stacked, 0, out);
    tensor_unref(stacked);
    return err;
}

static Error *run_pop_back(KernelContext *k) {
    TensorList *list = NULL;
    PartialShape shape = {.rank = -1};
    Error *err = kernel_list(k, 0, element_type(k), &list);
    if (!err) err = kernel_partial_shape(k, 1, &shape);
    if (!err && list->count == 0) err = error_invalid("Trying to pop from an empty list.");
    if (!err) err = kernel_list_output(k, 0, 0, &list);
    Tensor *item = NULL;
    if (!err) err = item_or_zeros(list, list->count - 1, &shape, &item);
    if (err) return err;
    kernel_set_output(k, 1, item);
    tensor_list_resize(list, list->count - 1);
    return NULL;
}

static Error *run_resize(KernelContext *k) {
    TensorList *list = NULL;
    int64_t count = 0;
    Error *err = count_input(k, 1, "TensorListResize: size", &count);
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
    Error *err = kernel_scalar_int(k, 1, &at);
    if (!err) err = kernel_list(k, 0, k->in[2]->dtype, &list);
    if (!err && (at < 0 || at > MAX_ELEMENTS || (!s->grow && at >= list->count)))
        err = error_invalid("Trying to modify element %lld in a list with %lld elements.", (long long)at, (long long)list->count);
    if (!err) err = check_item(list, k->in[2]);
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
    if (!err) err = item_or_zeros(list, at, &shape, &item);
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
    if (err) return err;
    Tensor **items = xcalloc((size_t)indices->count, sizeof *items);
    for (int64_t i = 0; !err && i < indices->count; i++) {
        int64_t at = tensor_index(indices, i);
        if (at < 0 || at >= list->count)
            err = error_invalid("Trying to gather element %lld in a list with %lld elements.", (long long)at, (long long)list->count);
        else
            items[i] = list->items[at];
    }
    if (!err) err = tensors_stack(items, indices->count, list->dtype, &shape, &out);
    if (!err) kernel_set_output(k, 0, out);
    free(items);
    return err;
}

static Error *run_concat(KernelContext *k) {
    TensorList *list = NULL;
    PartialShape shape = {.rank = -1};
    Error *err = kernel_list(k, 0, element_type(k), &list);
    if (!err && k->input_count == 3)
        err = kernel_partial_shape(k, 1, &shape);
    else if (!err)
        err = node_attr_shape(k->node, "element_shape", &shape);
    if (!err) err = partial_shape_merge(&shape, &list->shape);
    if (err) return err;
    PartialShape rest = {.rank = -1};
    if (shape.rank > 0) {
        rest = shape;
        shape_remove_dim(&rest, 0);
    }
    Tensor *out = NULL, *lengths = NULL;
    err = tensors_concat(list->items, list->count, list->dtype, &rest, &out, &lengths);
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
