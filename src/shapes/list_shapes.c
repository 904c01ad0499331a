/* list_shapes.c: rules of tensor lists and tensor arrays; what is known of their elements travels with the handle. */
#include "shapes/rule_list.h"

static void give_list(ShapeContext *c, int output, PartialShape element) {
    ctx_out(c, output, SHAPE_SCALAR);
    c->out_handles[output] = (HandleShape){true, ctx_attr_type(c, "element_dtype"), element};
}

/* The elements of the list at input 0, which must be of the op's type. */
static PartialShape element_of(ShapeContext *c) {
    const HandleShape *h = &c->in_handles[0];
    if (!h->is_known) return SHAPE_UNKNOWN;
    DataType wanted = ctx_attr_type(c, "element_dtype");
    if (h->dtype != wanted)
        ctx_fail(c, "Trying to use a list with wrong element dtype. List has type %s but expected type %s", dtype_name(h->dtype), dtype_name(wanted));
    return h->shape;
}

static void empty_list(ShapeContext *c) {
    give_list(c, 0, ctx_shape_of_or_scalar(c, 0));
}

static void push_back(ShapeContext *c) {
    give_list(c, 0, element_of(c));
}

static void push_back_batch(ShapeContext *c) {
    PartialShape handles = ctx_in_rank(c, 0, 1), tensor = ctx_rank_at_least(c, c->in[1], 1);
    int64_t n = ctx_merge_dim(c, handles.dims[0], shape_dim(tensor, 0));
    give_list(c, 0, element_of(c));
    ctx_out(c, 0, shape_vector(n));
}

static void pop_back(ShapeContext *c) {
    PartialShape element = element_of(c);
    ctx_out(c, 0, SHAPE_SCALAR);
    c->out_handles[0] = c->in_handles[0];
    ctx_out(c, 1, element);
}

static void stack(ShapeContext *c) {
    PartialShape element = ctx_merge(c, element_of(c), ctx_shape_of_or_scalar(c, 1));
    int64_t n = ctx_attr_int(c, "num_elements");
    ctx_out(c, 0, ctx_concat(c, shape_vector(n == -1 ? DIM_UNKNOWN : n), element));
}

static void concat_of(ShapeContext *c, PartialShape wanted) {
    PartialShape element = ctx_merge(c, wanted, element_of(c));
    ctx_out(c, 1, shape_vector(DIM_UNKNOWN));
    if (element.rank >= 0) ctx_out(c, 0, ctx_concat(c, shape_vector(DIM_UNKNOWN), ctx_sub(c, element, 1, SHAPE_END)));
}

static void list_concat(ShapeContext *c) {
    concat_of(c, ctx_attr_shape(c, "element_shape"));
}

static void list_concat_v2(ShapeContext *c) {
    concat_of(c, ctx_shape_of_or_scalar(c, 1));
}

static void list_split(ShapeContext *c) {
    PartialShape rows = ctx_sub(c, ctx_rank_at_least(c, c->in[0], 1), 1, SHAPE_END), element = ctx_shape_of_or_scalar(c, 1);
    ctx_in_rank(c, 2, 1);
    ctx_merge(c, ctx_concat(c, shape_vector(DIM_UNKNOWN), rows), element);
    give_list(c, 0, element);
}

static void from_tensor(ShapeContext *c) {
    PartialShape rows = ctx_sub(c, c->in[0], 1, SHAPE_END), element = ctx_shape_of_or_scalar(c, 1);
    ctx_merge(c, rows, element);
    give_list(c, 0, element);
}

static void element_shape(ShapeContext *c) {
    PartialShape element = c->in_handles[0].is_known ? c->in_handles[0].shape : SHAPE_UNKNOWN;
    ctx_out(c, 0, element.rank < 0 ? SHAPE_UNKNOWN : shape_vector(element.rank));
}

static void get_item(ShapeContext *c) {
    PartialShape element = element_of(c);
    ctx_out(c, 0, ctx_merge(c, element, ctx_shape_of_or_scalar(c, 2)));
}

static void set_item(ShapeContext *c) {
    PartialShape element = c->in_handles[0].is_known ? c->in_handles[0].shape : SHAPE_UNKNOWN;
    ctx_merge(c, c->in[2], element);
    give_list(c, 0, element);
    if (c->in_handles[0].is_known) c->out_handles[0] = c->in_handles[0];
}

static void list_resize(ShapeContext *c) {
    ctx_want_scalar(c, 1);
    ctx_out(c, 0, SHAPE_SCALAR);
    c->out_handles[0] = c->in_handles[0];
}

static void list_gather(ShapeContext *c) {
    PartialShape element = ctx_merge(c, element_of(c), ctx_shape_of_or_scalar(c, 2));
    ctx_out(c, 0, ctx_concat(c, c->in[1], element));
}

static void list_scatter(ShapeContext *c) {
    PartialShape element = ctx_shape_of_or_scalar(c, 2);
    give_list(c, 0, element);
}

static void scatter_into(ShapeContext *c) {
    ctx_rank_at_least(c, c->in[1], 1);
    ctx_in_rank(c, 2, 1);
    give_list(c, 0, element_of(c));
}

static void concat_lists(ShapeContext *c) {
    PartialShape outer = ctx_merge(c, c->in[0], c->in[1]), element = SHAPE_UNKNOWN;
    const HandleShape *a = &c->in_handles[0], *b = &c->in_handles[1];
    DataType dtype = ctx_attr_type(c, "element_dtype");
    for (int i = 0; i < 2; i++) {
        const HandleShape *h = i ? b : a;
        if (!h->is_known) continue;
        if (h->dtype != dtype) ctx_fail(c, "input list %d has element dtype %s, not %s", i, dtype_name(h->dtype), dtype_name(dtype));
        element = ctx_merge(c, element, h->shape);
    }
    give_list(c, 0, element);
    ctx_out(c, 0, outer);
}

/* ---- Tensor arrays ---- */

static void array_handle(ShapeContext *c) {
    ctx_dim_is(c, ctx_in_rank(c, 0, 1).dims[0], 2);
}

static void tensor_array(ShapeContext *c) {
    ctx_want_scalar(c, 0);
    ctx_out(c, 0, shape_vector(2));
    ctx_out(c, 1, SHAPE_SCALAR);
    bool identical = ctx_attr_bool(c, "identical_element_shapes");
    DataType dtype = ctx_attr_type(c, "dtype");
    c->out_handles[0] = (HandleShape){true, dtype, identical ? ctx_attr_shape(c, "element_shape") : SHAPE_UNKNOWN};
}

static void array_grad(ShapeContext *c) {
    array_handle(c);
    ctx_out(c, 0, shape_vector(2));
    ctx_out(c, 1, SHAPE_SCALAR);
    c->out_handles[0] = c->in_handles[0];
}

static PartialShape array_element(ShapeContext *c) {
    return c->in_handles[0].is_known ? c->in_handles[0].shape : SHAPE_UNKNOWN;
}

static void array_write(ShapeContext *c) {
    array_handle(c);
    ctx_want_scalar(c, 1);
    ctx_want_scalar(c, 3);
    if (c->in_handles[0].is_known) ctx_merge(c, array_element(c), c->in[2]);
    ctx_out(c, 0, SHAPE_SCALAR);
}

static void array_read(ShapeContext *c) {
    array_handle(c);
    ctx_want_scalar(c, 1);
    ctx_want_scalar(c, 2);
    ctx_out(c, 0, array_element(c));
}

static void array_gather(ShapeContext *c) {
    PartialShape indices = ctx_in_rank(c, 1, 1);
    array_handle(c);
    ctx_want_scalar(c, 2);
    ctx_out(c, 0, ctx_concat(c, indices, c->in_handles[0].is_known ? array_element(c) : ctx_attr_shape(c, "element_shape")));
}

static void array_scatter(ShapeContext *c) {
    array_handle(c);
    PartialShape indices = ctx_in_rank(c, 1, 1), value = c->in[2];
    ctx_want_scalar(c, 3);
    value = ctx_rank_at_least(c, value, 1);
    ctx_merge_dim(c, shape_dim(value, 0), indices.dims[0]);
    if (c->in_handles[0].is_known) ctx_merge(c, array_element(c), ctx_sub(c, value, 1, SHAPE_END));
    ctx_out(c, 0, SHAPE_SCALAR);
}

static void array_split(ShapeContext *c) {
    array_handle(c);
    ctx_in_rank(c, 2, 1);
    ctx_want_scalar(c, 3);
    ctx_out(c, 0, SHAPE_SCALAR);
}

static void array_concat(ShapeContext *c) {
    array_handle(c);
    ctx_want_scalar(c, 1);
    ctx_out(c, 1, shape_vector(DIM_UNKNOWN));
}

const ShapeRow list_rules[] = {
    {"EmptyTensorList", empty_list, 0},
    {"TensorArray", rule_unknown, 0},
    {"TensorArrayClose", rule_unknown, 0},
    {"TensorArrayCloseV2", array_handle, 0},
    {"TensorArrayConcat", rule_unknown, 0},
    {"TensorArrayConcatV2", array_concat, 0},
    {"TensorArrayGather", rule_unknown, 0},
    {"TensorArrayGatherV2", rule_unknown, "[2] [?] []"},
    {"TensorArrayGrad", rule_unknown, 0},
    {"TensorArrayGradV2", 0, "[2] -> [2]"},
    {"TensorArrayGradWithShape", array_grad, 0},
    {"TensorArrayPack", rule_unknown, 0},
    {"TensorArrayRead", rule_unknown, 0},
    {"TensorArrayReadV2", rule_unknown, "[2] [] []"},
    {"TensorArrayScatter", rule_unknown, 0},
    {"TensorArrayScatterV2", 0, "[2] [?] * [] -> []"},
    {"TensorArraySize", rule_unknown, 0},
    {"TensorArraySizeV2", rule_scalar, "[2]"},
    {"TensorArraySplit", rule_unknown, 0},
    {"TensorArraySplitV2", 0, "[2] * [?] [] -> []"},
    {"TensorArrayUnpack", rule_unknown, 0},
    {"TensorArrayV2", 0, "[] -> [2]"},
    {"TensorArrayWrite", rule_unknown, 0},
    {"TensorArrayWriteV2", 0, "[2] [] * [] -> []"},
    {"TensorArrayCloseV3", array_handle, 0},
    {"TensorArrayConcatV3", array_concat, 0},
    {"TensorArrayGatherV3", array_gather, 0},
    {"TensorArrayGradV3", array_grad, 0},
    {"TensorArrayReadV3", array_read, 0},
    {"TensorArrayScatterV3", array_scatter, 0},
    {"TensorArraySizeV3", rule_scalar, "[2]"},
    {"TensorArraySplitV3", array_split, 0},
    {"TensorArrayV3", tensor_array, 0},
    {"TensorArrayWriteV3", array_write, 0},
    {"TensorListConcat", list_concat, 0},
    {"TensorListConcatLists", concat_lists, 0},
    {"TensorListConcatV2", list_concat_v2, 0},
    {"TensorListElementShape", element_shape, 0},
    {"TensorListFromTensor", from_tensor, 0},
    {"TensorListGather", list_gather, 0},
    {"TensorListGetItem", get_item, 0},
    {"TensorListLength", rule_scalar, 0},
    {"TensorListPopBack", pop_back, 0},
    {"TensorListPushBack", push_back, 0},
    {"TensorListPushBackBatch", push_back_batch, 0},
    {"TensorListReserve", empty_list, 0},
    {"TensorListResize", list_resize, 0},
    {"TensorListScatter", list_scatter, 0},
    {"TensorListScatterIntoExistingList", scatter_into, 0},
    {"TensorListScatterV2", list_scatter, 0},
    {"TensorListSetItem", set_item, 0},
    {"TensorListSplit", list_split, 0},
    {"TensorListStack", stack, 0},
    {"CompositeTensorVariantFromComponents", rule_scalar, 0},
    {"CompositeTensorVariantToComponents", rule_unknown, 0},
    {"EmptyTensorMap", rule_scalar, 0},
    {"TensorMapErase", rule_scalar, 0},
    {"TensorMapHasKey", rule_scalar, 0},
    {"TensorMapInsert", rule_scalar, 0},
    {"TensorMapLookup", rule_unknown, 0},
    {"TensorMapSize", rule_scalar, 0},
    {"TensorMapStackKeys", rule_unknown, 0},
    {0},
};
