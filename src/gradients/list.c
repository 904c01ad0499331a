/* list.c: gradients of lists and maps of tensors: a list or map of the gradients of the elements; and of optional values and composite tensors. */
#include "gradients/rule.h"

static DataType element_type(Builder *b, Rule *r) {
    return rule_type(b, r, "element_dtype");
}

static Output element_shape_of(Builder *b, Output list) {
    b_with_type(b, "shape_type", DT_INT32);
    return b_op1(b, "TensorListElementShape", list);
}

/* A list as long as that of input 0, of elements not set yet: they count as zeros. */
static Output reserve_like(Builder *b, Rule *r) {
    Output list = rule_in(r, 0), shape = element_shape_of(b, list), length = b_op1(b, "TensorListLength", list);
    b_with_type(b, "element_dtype", element_type(b, r));
    return b_op2(b, "TensorListReserve", shape, length);
}

static Output rows_shape(Builder *b, Rule *r, int i) {
    return b_items(b, rule_in_shape(r, i), 1, 0);
}

static Output gathered(Builder *b, Rule *r, Output dlist, int indices, int tensor) {
    Output inputs[] = {dlist, rule_in(r, indices), rows_shape(b, r, tensor)};
    b_with_type(b, "element_dtype", element_type(b, r));
    return b_op(b, "TensorListGather", inputs, 3);
}

static void from_tensor_grad(Builder *b, Rule *r) {
    Output dlist = rule_dy(r, 0), shape = rows_shape(b, r, 0);
    b_with_type(b, "element_dtype", element_type(b, r));
    rule_set(r, 0, b_op2(b, "TensorListStack", dlist, shape));
}

static void stack_grad(Builder *b, Rule *r) {
    rule_set(r, 0, b_op2(b, "TensorListFromTensor", rule_dy(r, 0), rule_in(r, 1)));
}

static void push_back_grad(Builder *b, Rule *r) {
    Output inputs[] = {rule_dy(r, 0), output_dtype(rule_in(r, 1)) == DT_VARIANT ? b_i32(b, -1) : rule_in_shape(r, 1)};
    b_with_type(b, "element_dtype", element_type(b, r));
    Node *n = b_node(b, "TensorListPopBack", inputs, 2);
    rule_set(r, 0, output_of(n, 0));
    rule_set(r, 1, output_of(n, 1));
}

static void pop_back_grad(Builder *b, Rule *r) {
    Output list = rule_has_dy(r, 0) ? rule_dy(r, 0) : NO_OUTPUT, item = rule_dy(r, 1);
    if (!has(list)) {
        Output shape = element_shape_of(b, rule_out(r, 0)), limit = b_i32(b, -1);
        b_with_type(b, "element_dtype", element_type(b, r));
        list = b_op2(b, "EmptyTensorList", shape, limit);
    }
    rule_set(r, 0, b_op2(b, "TensorListPushBack", list, item));
}

static void get_item_grad(Builder *b, Rule *r) {
    rule_set(r, 0, b_op3(b, "TensorListSetItem", reserve_like(b, r), rule_in(r, 1), rule_dy(r, 0)));
}

static void set_item_grad(Builder *b, Rule *r) {
    Output dlist = rule_dy(r, 0), index = rule_in(r, 1), item = rule_in(r, 2);
    if (rule_wants(r, 0)) rule_set(r, 0, b_op3(b, "TensorListSetItem", dlist, index, b_zeros_like(b, item)));
    if (!rule_wants(r, 2)) return;
    Output shape = output_dtype(item) == DT_VARIANT ? b_i32(b, -1) : rule_in_shape(r, 2);
    b_with_type(b, "element_dtype", element_type(b, r));
    rule_set(r, 2, b_op3(b, "TensorListGetItem", dlist, index, shape));
}

static void resize_grad(Builder *b, Rule *r) {
    rule_set(r, 0, b_op2(b, "TensorListResize", rule_dy(r, 0), b_op1(b, "TensorListLength", rule_in(r, 0))));
}

static void gather_grad(Builder *b, Rule *r) {
    Output list = rule_in(r, 0);
    rule_set(r, 0,
             b_op4(b, "TensorListScatterV2", rule_dy(r, 0), rule_in(r, 1), element_shape_of(b, list),
                   b_op1(b, "TensorListLength", list)));
}

static void scatter_grad(Builder *b, Rule *r) {
    rule_set(r, 0, gathered(b, r, rule_dy(r, 0), 1, 0));
}

static void scatter_into_grad(Builder *b, Rule *r) {
    Output dlist = rule_dy(r, 0);
    if (rule_wants(r, 0))
        rule_set(r, 0,
                 b_op3(b, "TensorListScatterIntoExistingList", dlist, b_zeros_like(b, rule_in(r, 1)), rule_in(r, 2)));
    if (rule_wants(r, 1)) rule_set(r, 1, gathered(b, r, dlist, 2, 1));
}

static void concat_grad(Builder *b, Rule *r) {
    rule_set(r, 0, b_op3(b, "TensorListSplit", rule_dy(r, 0), element_shape_of(b, rule_in(r, 0)), rule_out(r, 1)));
}

static void split_grad(Builder *b, Rule *r) {
    Output dlist = rule_dy(r, 0), shape = b_concat2(b, b_i32s(b, 1, (int[]){-1}), rows_shape(b, r, 0), 0),
           lengths = rule_in(r, 2);
    b_with_type(b, "element_dtype", element_type(b, r));
    rule_set(r, 0, b_op3(b, "TensorListConcatV2", dlist, shape, lengths));
}

/* ---- Optional values ---- */

static void optional_from_grad(Builder *b, Rule *r) {
    const Node *n = rule_node(r);
    Output dy = rule_dy(r, 0);
    DataType *types = arena_calloc(b->g->arena, (size_t)n->input_count, sizeof *types);
    PartialShape *shapes = arena_calloc(b->g->arena, (size_t)n->input_count, sizeof *shapes);
    for (int i = 0; i < n->input_count; i++) {
        types[i] = dtype_base(n->input_types[i]);
        shapes[i].rank = -1;
    }
    b_with(b, "output_types", attr_make_types(b->g->arena, types, n->input_count));
    b_with(b, "output_shapes", attr_make_shapes(b->g->arena, shapes, n->input_count));
    Node *parts = b_node(b, "OptionalGetValue", &dy, 1);
    for (int i = 0; i < n->input_count; i++) rule_set(r, i, output_of(parts, i));
}

static void optional_get_grad(Builder *b, Rule *r) {
    const Node *n = rule_node(r);
    Output *dys = arena_calloc(b->g->arena, (size_t)n->output_count, sizeof *dys);
    for (int i = 0; i < n->output_count; i++) dys[i] = rule_dy(r, i);
    rule_set(r, 0, b_op(b, "OptionalFromValue", dys, n->output_count));
}

/* ---- Maps ---- */

static void map_lookup_grad(Builder *b, Rule *r) {
    rule_set(r, 0, b_op3(b, "TensorMapInsert", b_op0(b, "EmptyTensorMap"), rule_in(r, 1), rule_dy(r, 0)));
}

/* What was put under the key gets the gradient that stands there, and what was there before gets none; without one there are zeros. */
static void map_insert_grad(Builder *b, Rule *r) {
    Output dmap = rule_dy(r, 0), key = rule_in(r, 1), value = rule_in(r, 2), found = b_op2(b, "TensorMapHasKey", dmap, key);
    Node *maps = b_node(b, "Switch", (Output[]){dmap, found}, 2), *values = b_node(b, "Switch", (Output[]){value, found}, 2);
    Output with = output_of(maps, 1), without = output_of(maps, 0);
    b_with_type(b, "value_dtype", output_dtype(value));
    Output item = b_op2(b, "TensorMapLookup", with, key);
    b_with_type(b, "value_dtype", output_dtype(value));
    Output rest = b_op2(b, "TensorMapErase", with, key);
    rule_set(r, 0, b_op2(b, "Merge", without, rest));
    rule_set(r, 2, b_op2(b, "Merge", b_zeros_like(b, output_of(values, 0)), item));
}

static void map_erase_grad(Builder *b, Rule *r) {
    (void)b;
    rule_set(r, 0, rule_dy(r, 0));
}

/* ---- Composite tensors ---- */

static void composite_from_grad(Builder *b, Rule *r) {
    const Node *n = rule_node(r);
    Output dy = rule_dy(r, 0);
    b_with_attrs_of(b, n);
    Node *parts = b_node(b, "CompositeTensorVariantToComponents", &dy, 1);
    for (int i = 0; i < n->input_count; i++) rule_set(r, i, output_of(parts, i));
}

/* Parts that have no gradient, as row splits, stand as they are. */
static void composite_to_grad(Builder *b, Rule *r) {
    const Node *n = rule_node(r);
    Output *dys = arena_calloc(b->g->arena, (size_t)n->output_count + 1, sizeof *dys);
    for (int i = 0; i < n->output_count; i++) dys[i] = rule_has_dy(r, i) ? rule_dy(r, i) : rule_out(r, i);
    b_with_attrs_of(b, n);
    rule_set(r, 0, b_op(b, "CompositeTensorVariantFromComponents", dys, n->output_count));
}

const GradientDef list_gradients[] = {
    {"CompositeTensorVariantFromComponents", composite_from_grad},
    {"CompositeTensorVariantToComponents", composite_to_grad},
    {"OptionalFromValue", optional_from_grad},
    {"OptionalGetValue", optional_get_grad},
    {"TensorListConcat", concat_grad},
    {"TensorListConcatV2", concat_grad},
    {"TensorListFromTensor", from_tensor_grad},
    {"TensorListGather", gather_grad},
    {"TensorListGetItem", get_item_grad},
    {"TensorListPopBack", pop_back_grad},
    {"TensorListPushBack", push_back_grad},
    {"TensorListResize", resize_grad},
    {"TensorListScatter", scatter_grad},
    {"TensorListScatterIntoExistingList", scatter_into_grad},
    {"TensorListScatterV2", scatter_grad},
    {"TensorListSetItem", set_item_grad},
    {"TensorListSplit", split_grad},
    {"TensorListStack", stack_grad},
    {"EmptyTensorMap", NULL},
    {"TensorMapErase", map_erase_grad},
    {"TensorMapHasKey", NULL},
    {"TensorMapInsert", map_insert_grad},
    {"TensorMapLookup", map_lookup_grad},
    {"TensorMapSize", NULL},
    {"TensorMapStackKeys", NULL},
    {0},
};
