/* builder.c: nodes, constants and the ops that gradients are made of. */
#include "gradients/builder.h"

#include <complex.h>
#include <stdlib.h>
#include <string.h>

#include "base/float16.h"
#include "base/memory.h"
#include "graph/function.h"
#include "graph/graph_def.h"

DataType output_dtype(Output x) {
    return x.node && x.node->info && x.index < x.node->output_count ? dtype_base(x.node->output_types[x.index])
                                                                    : DT_INVALID;
}

bool dtype_is_complex(DataType t) {
    return t == DT_COMPLEX64 || t == DT_COMPLEX128;
}

bool dtype_is_float(DataType t) {
    return t == DT_FLOAT || t == DT_DOUBLE || t == DT_HALF || t == DT_BFLOAT16;
}

bool dtype_is_trainable(DataType t) {
    return dtype_is_float(t) || dtype_is_complex(t) || t == DT_RESOURCE || t == DT_VARIANT;
}

void builder_clear(Builder *b) {
    free(b->attrs);
    b->attrs = NULL;
    b->attr_count = 0;
    b->attr_capacity = 0;
}

void b_fail(Builder *b, Error *take) {
    if (!take) return;
    if (b->error)
        error_free(take);
    else
        b->error = take;
}

/* ---- Attributes ---- */

void b_with(Builder *b, const char *name, Str value) {
    b->attrs = vec_reserve(b->attrs, &b->attr_capacity, (size_t)b->attr_count + 1, sizeof *b->attrs);
    b->attrs[b->attr_count++] = (Attr){str_of(name), value};
}

void b_with_bool(Builder *b, const char *name, bool v) {
    b_with(b, name, attr_make_bool(b->g->arena, v));
}

void b_with_int(Builder *b, const char *name, int64_t v) {
    b_with(b, name, attr_make_int(b->g->arena, v));
}

void b_with_float(Builder *b, const char *name, float v) {
    b_with(b, name, attr_make_float(b->g->arena, v));
}

void b_with_type(Builder *b, const char *name, DataType v) {
    b_with(b, name, attr_make_type(b->g->arena, v));
}

void b_with_string(Builder *b, const char *name, const char *v) {
    b_with(b, name, attr_make_string(b->g->arena, str_of(v)));
}

void b_with_attrs_of(Builder *b, const Node *n) {
    b->like = n;
}

static bool has_attr(const Node *n, Str name) {
    for (int i = 0; i < n->attr_count; i++)
        if (str_eq(n->attrs[i].name, name)) return true;
    return false;
}

static void infer(Builder *b, Node *n, Str name, Str value) {
    if (name.len && !has_attr(n, name)) node_add_attr(b->g, n, name, value);
}

/* How many inputs each list argument gets: what the single ones leave, shared equally. */
static int list_length(const OpInfo *info, int inputs) {
    int lists = 0;
    for (int i = 0; i < info->input_count; i++)
        lists += info->inputs[i].number_attr.len || info->inputs[i].type_list_attr.len;
    return lists ? (inputs - (info->input_count - lists)) / lists : 0;
}

static int given_length(const Node *n, Str number_attr, int otherwise) {
    int64_t number = otherwise;
    for (int i = 0; i < n->attr_count; i++)
        if (str_eq(n->attrs[i].name, number_attr)) attr_int(n->attrs[i].value, &number);
    return (int)number;
}

/* Types and numbers, from the inputs. */
static void infer_attrs(Builder *b, Node *n, const OpInfo *info, const Output *inputs, int count) {
    int each = list_length(info, count), at = 0;
    for (int i = 0; i < info->input_count && at <= count; i++) {
        const ArgInfo *arg = &info->inputs[i];
        int length = arg->number_attr.len      ? given_length(n, arg->number_attr, each)
                     : arg->type_list_attr.len ? each
                                               : 1;
        if (arg->type_list_attr.len && !has_attr(n, arg->type_list_attr)) {
            DataType *types = xcalloc((size_t)(length > 0 ? length : 1), sizeof *types);
            for (int j = 0; j < length && at + j < count; j++) types[j] = output_dtype(inputs[at + j]);
            node_add_attr(b->g, n, arg->type_list_attr, attr_make_types(b->g->arena, types, length > 0 ? length : 0));
            free(types);
        }
        infer(b, n, arg->number_attr, attr_make_int(b->g->arena, length));
        if (at < count) infer(b, n, arg->type_attr, attr_make_type(b->g->arena, output_dtype(inputs[at])));
        at += length;
    }
}

static void copy_attrs(Builder *b, Node *n, const OpInfo *info) {
    for (int i = 0; b->like && i < b->like->attr_count; i++) {
        Str name = b->like->attrs[i].name;
        if (op_attr(info, name) && !has_attr(n, name)) node_add_attr(b->g, n, name, b->like->attrs[i].value);
    }
}

Node *b_node(Builder *b, const char *op, const Output *inputs, int count) {
    Node *n = NULL;
    const OpInfo *info = op_find(str_of(op));
    const Function *function = !info && b->g->functions ? function_find(b->g->functions, str_of(op)) : NULL;
    if (function) info = function->info;
    if (b->error) goto out;
    if (!info) b_fail(b, error_unimplemented("Gradients need the op %s, which is not registered", op));
    for (int i = 0; i < count; i++)
        if (!has(inputs[i]))
            b_fail(b, error_internal("Input %d of a gradient node %.*s/%s is missing", i, STR_ARG(b->scope), op));
    for (int i = 0; info && i < b->attr_count; i++)
        if (b->attrs[i].name.ptr[0] != '_' && !op_attr(info, b->attrs[i].name))
            b_fail(b, error_internal("Gradient node %.*s/%s has no attribute %.*s", STR_ARG(b->scope), op,
                                     STR_ARG(b->attrs[i].name)));
    if (b->error) goto out;
    Str name = graph_unique_name(b->g, arena_printf(b->g->arena, "%.*s/%s", STR_ARG(b->scope), op));
    b_fail(b, graph_adopt_node(b->g, name, arena_str(b->g->arena, str_of(op)), b->device, &n));
    if (b->error) goto out;
    for (int i = 0; i < b->attr_count; i++) node_add_attr(b->g, n, b->attrs[i].name, b->attrs[i].value);
    infer_attrs(b, n, info, inputs, count);
    copy_attrs(b, n, info);
    node_set_inputs(b->g, n, inputs, count);
    if (!count && b->pivot) node_add_control(b->g, n, b->pivot);
    Error *err = node_resolve(b->g, n);
    if (!err) err = graph_validate_node(n);
    b_fail(b, error_wrap(err, "gradient node %.*s", STR_ARG(n->name)));
out:
    b->attr_count = 0;
    b->like = NULL;
    return b->error ? NULL : n;
}

Output b_op(Builder *b, const char *op, const Output *inputs, int count) {
    return (Output){b_node(b, op, inputs, count), 0};
}

Output b_op0(Builder *b, const char *op) {
    return b_op(b, op, NULL, 0);
}

Output b_op1(Builder *b, const char *op, Output x) {
    return b_op(b, op, &x, 1);
}

Output b_op2(Builder *b, const char *op, Output x, Output y) {
    return b_op(b, op, (Output[]){x, y}, 2);
}

Output b_op3(Builder *b, const char *op, Output x, Output y, Output z) {
    return b_op(b, op, (Output[]){x, y, z}, 3);
}

Output b_op4(Builder *b, const char *op, Output x, Output y, Output z, Output u) {
    return b_op(b, op, (Output[]){x, y, z, u}, 4);
}

Output b_op5(Builder *b, const char *op, Output x, Output y, Output z, Output u, Output v) {
    return b_op(b, op, (Output[]){x, y, z, u, v}, 5);
}

/* ---- Constants ---- */

Output b_const(Builder *b, Tensor *take) {
    b_with(b, "value", attr_make_tensor(b->g->arena, take));
    b_with_type(b, "dtype", take->dtype);
    tensor_unref(take);
    return b_op0(b, "Const");
}

static void set_number(Tensor *t, double v) {
    switch (t->dtype) {
        case DT_FLOAT:
            tensor_f32(t)[0] = (float)v;
            break;
        case DT_DOUBLE:
            tensor_f64(t)[0] = v;
            break;
        case DT_INT32:
        case DT_UINT32:
            tensor_i32(t)[0] = (int32_t)v;
            break;
        case DT_INT64:
        case DT_UINT64:
            tensor_i64(t)[0] = (int64_t)v;
            break;
        case DT_INT8:
        case DT_UINT8:
        case DT_BOOL:
            tensor_u8(t)[0] = (uint8_t)(int64_t)v;
            break;
        case DT_INT16:
        case DT_UINT16:
            *(int16_t *)t->data = (int16_t)v;
            break;
        case DT_HALF:
            *(uint16_t *)t->data = float_to_half((float)v);
            break;
        case DT_BFLOAT16:
            *(uint16_t *)t->data = float_to_bfloat16((float)v);
            break;
        case DT_COMPLEX64:
            *(float complex *)t->data = (float)v;
            break;
        case DT_COMPLEX128:
            *(double complex *)t->data = v;
            break;
        default:
            break; /* strings and the like are empty already */
    }
}

Output b_scalar(Builder *b, DataType type, double v) {
    Tensor *t = NULL;
    if (b->error) return NO_OUTPUT;
    b_fail(b, tensor_new(type, &SHAPE_SCALAR, &t));
    if (!t) return NO_OUTPUT;
    set_number(t, v);
    return b_const(b, t);
}

Output b_i32(Builder *b, int v) {
    return b_const(b, tensor_scalar_i32(v));
}

Output b_i32s(Builder *b, int count, const int *v) {
    Tensor *t = NULL;
    Shape shape = shape_vector(count);
    if (b->error) return NO_OUTPUT;
    b_fail(b, tensor_new(DT_INT32, &shape, &t));
    if (!t) return NO_OUTPUT;
    for (int i = 0; i < count; i++) tensor_i32(t)[i] = v[i];
    return b_const(b, t);
}

/* ---- Arithmetic ---- */

Output b_add(Builder *b, Output x, Output y) {
    return b_op2(b, "AddV2", x, y);
}

Output b_sub(Builder *b, Output x, Output y) {
    return b_op2(b, "Sub", x, y);
}

Output b_mul(Builder *b, Output x, Output y) {
    return b_op2(b, "Mul", x, y);
}

Output b_div(Builder *b, Output x, Output y) {
    return b_op2(b, "RealDiv", x, y);
}

Output b_neg(Builder *b, Output x) {
    return b_op1(b, "Neg", x);
}

Output b_square(Builder *b, Output x) {
    return b_op1(b, "Square", x);
}

Output b_scale(Builder *b, Output x, double factor) {
    return b_mul(b, x, b_scalar(b, output_dtype(x), factor));
}

Output b_shift(Builder *b, Output x, double term) {
    return b_add(b, x, b_scalar(b, output_dtype(x), term));
}

Output b_from(Builder *b, double term, Output x) {
    return b_sub(b, b_scalar(b, output_dtype(x), term), x);
}

Output b_conj(Builder *b, Output x) {
    return dtype_is_complex(output_dtype(x)) ? b_op1(b, "Conj", x) : x;
}

Output b_cast(Builder *b, Output x, DataType type) {
    if (output_dtype(x) == type) return x;
    b_with_type(b, "DstT", type);
    return b_op1(b, "Cast", x);
}

Output b_select(Builder *b, Output condition, Output x, Output y) {
    return b_op3(b, "SelectV2", condition, x, y);
}

Output b_where_or_zero(Builder *b, Output condition, Output x) {
    return b_select(b, condition, x, b_scalar(b, output_dtype(x), 0));
}

Output b_sum(Builder *b, Output x, Output axes, bool keep_dims) {
    b_with_bool(b, "keep_dims", keep_dims);
    return b_op2(b, "Sum", x, axes);
}

Output b_prod(Builder *b, Output x, Output axes) {
    return b_op2(b, "Prod", x, axes);
}

Output b_identity(Builder *b, Output x) {
    return b_op1(b, "Identity", x);
}
