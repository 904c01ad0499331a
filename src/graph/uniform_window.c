/* uniform_window.c: reads the attributes of a uniform convolution and lays the window over two shapes. */
#include "graph/uniform_window.h"

#include <stdio.h>
#include <stdlib.h>

#include "proto/wire.h"

static Error *read_list(const Node *node, const char *name, WindowList *out) {
    int64_t *items = NULL;
    int count = 0;
    Error *err = node_attr_ints(node, name, &items, &count);
    if (!err && count > 2 * SHAPE_MAX_RANK) err = error_invalid("%s has %d elements", name, count);
    for (int i = 0; i < count && !err; i++) {
        out->at[i] = items[i];
        if (items[i] < INT32_MIN || items[i] > INT32_MAX) err = error_invalid("Attr %s has value %lld out of range for an int32", name, (long long)items[i]);
    }
    out->count = count;
    free(items);
    return err;
}

static bool add_space(WindowOrder *order, uint64_t value) {
    if (order->count >= SHAPE_MAX_RANK) return false;
    order->dims[order->count++] = (int64_t)value;
    return true;
}

/* A UniformQuantizedConvolutionDimensionNumbersAttr: 1 and 2 are batch and features of lhs, 3 its space; 4 to 6 the input features, output features and space of rhs;
 * 7 to 9 those of the result. */
static Error *read_orders(Str message, UniformWindow *w) {
    WindowOrder *const orders[] = {&w->lhs, &w->rhs, &w->out};
    for (int i = 0; i < 3; i++) orders[i]->count = 2;
    WireReader r = wire_reader(message);
    bool good = true;
    while (good && wire_next(&r)) {
        if (r.field < 1 || r.field > 9) continue;
        WindowOrder *order = orders[(r.field - 1) / 3];
        int which = (int)(r.field - 1) % 3;
        if (order == &w->rhs && which < 2) which = 1 - which;
        if (which < 2) {
            if (r.type == WIRE_VARINT) order->dims[which] = (int64_t)r.number;
        } else if (r.type == WIRE_VARINT) {
            good = add_space(order, r.number);
        } else if (r.type == WIRE_BYTES) {
            WireReader packed = wire_reader(r.bytes);
            uint64_t value;
            while (good && packed.at < packed.end) good = wire_varint(&packed, &value) && add_space(order, value);
        }
    }
    if (!good || r.failed) return error_invalid("Error parsing convolution dimension numbers.");
    if (w->lhs.count == 2) w->lhs.count = w->rhs.count = w->out.count = 0; /* as if there were no message */
    return NULL;
}

Error *uniform_window_init(UniformWindow *w, const Node *node) {
    Str padding = {0}, numbers = {0};
    Error *err = read_list(node, "window_strides", &w->strides);
    if (!err) err = read_list(node, "lhs_dilation", &w->lhs_dilation);
    if (!err) err = read_list(node, "rhs_dilation", &w->rhs_dilation);
    if (!err) err = read_list(node, "explicit_padding", &w->pads);
    if (!err) err = node_attr_int(node, "batch_group_count", &w->batch_groups);
    if (!err) err = node_attr_int(node, "feature_group_count", &w->feature_groups);
    if (!err) err = node_attr_string(node, "padding", &padding);
    if (!err) err = node_attr_string(node, "dimension_numbers", &numbers);
    if (err) return err;
    w->padding = str_is(padding, "EXPLICIT") ? WINDOW_EXPLICIT : str_is(padding, "SAME") ? WINDOW_SAME : WINDOW_VALID;
    if (w->padding == WINDOW_VALID && !str_is(padding, "VALID"))
        return error_invalid("padding Attr must be one of [EXPLICIT | SAME | VALID], but given: %.*s", STR_ARG(padding));
    if (w->padding != WINDOW_EXPLICIT && w->pads.count)
        return error_invalid("If padding Attr is not 'EXPLICIT', explicit_padding Attr must be empty. Given padding %.*s and explicit_padding of size %d", STR_ARG(padding), w->pads.count);
    return numbers.len ? read_orders(numbers, w) : NULL;
}

/* ---- The plan ---- */

static Error *join(const char *words, const WindowList *list) {
    StrBuf text = {0};
    for (int i = 0; i < list->count; i++) strbuf_addf(&text, "%s%lld", i ? ", " : "", (long long)list->at[i]);
    Error *err = error_invalid("%s%.*s", words, STR_ARG(strbuf_str(&text)));
    strbuf_clear(&text);
    return err;
}

/* A list of one number for each dimension of space, all at least one; to[2..]. */
static Error *spread(const char *name, const WindowList *list, int space, int64_t *to) {
    char words[80];
    for (int i = 0; i < space; i++) to[2 + i] = list->count ? list->at[i] : 1;
    if (list->count == 0) return NULL;
    if (list->count != space) return error_invalid("Size of %s Attr must be dims - 2.", name);
    snprintf(words, sizeof words, "All elements of %s must be >= 1. Given ", name);
    for (int i = 0; i < space; i++)
        if (list->at[i] < 1) return join(words, list);
    return NULL;
}

static Error *place(const WindowOrder *order, int rank, int *to) {
    bool taken[SHAPE_MAX_RANK] = {false};
    for (int i = 0; i < rank; i++) to[i] = i;
    if (order->count == 0) return NULL;
    for (int i = 0; i < order->count; i++) {
        if (i == 2 && order->count != rank)
            return error_invalid("Spatial dimensions size must be rank - 2. Given rank %d and spatial dimensions size %d", rank, order->count - 2);
        int64_t d = order->dims[i];
        if (d < 0 || d >= rank) return error_invalid("Each dimension number must be in region [0, rank). Given rank %d and dimension number value %lld", rank, (long long)d);
        if (taken[d]) return error_invalid("Dimension number %lld is given twice", (long long)d);
        taken[d] = true;
        to[i] = (int)d;
    }
    return order->count == rank ? NULL : error_invalid("Spatial dimensions size must be rank - 2. Given rank %d and spatial dimensions size %d", rank, order->count - 2);
}

static int64_t dilated(int64_t size, int64_t dilation) {
    return size == 0 ? 0 : 1 + dilation * (size - 1);
}

static Error *check_groups(const UniformWindow *w, int64_t features, int64_t taken, int64_t made, int64_t batch) {
    const long long g = w->feature_groups, b = w->batch_groups;
    if (g <= 0) return error_invalid("feature_group_count must be a positive integer, given: %lld", g);
    if (features % g) return error_invalid("feature_group_count must divide lhs feature dimension size, but %lld does not divide %lld", g, (long long)features);
    if (taken == 0 || features % taken)
        return error_invalid("rhs input feature dimension must divide lhs feature dimension size, but %lld does not divide %lld", (long long)taken, (long long)features);
    if (features / g != taken)
        return error_invalid("lhs feature dimension size divided by feature_group_count must equal the rhs input feature dimension size, but %lld / %lld != %lld", (long long)features, g,
                             (long long)taken);
    if (made % g) return error_invalid("rhs output dimension size must be a multiple of feature_group_count, but %lld is not a multiple of %lld", (long long)made, g);
    if (b <= 0) return error_invalid("batch_group_count Attr must be a positive integer. Given: %lld", b);
    if (batch % b) return error_invalid("batch_group_count must divide lhs batch dimension size, but %lld does not divide %lld", b, (long long)batch);
    if (made % b) return error_invalid("rhs output dimension size must be a multiple of batch_group_count, but %lld is not a multiple of %lld", (long long)made, b);
    return NULL;
}

static Error *pad(const UniformWindow *w, const Shape *lhs, const Shape *rhs, WindowPlan *p) {
    if (w->padding == WINDOW_EXPLICIT) {
        if (w->pads.count != 2 * (p->rank - 2))
            return error_invalid("Size of explicit_padding Attr must be 2 * (rank - 2). Given rank %d and explicit_padding of size %d", p->rank, w->pads.count);
        for (int i = 0; i < w->pads.count; i++)
            if (w->pads.at[i] < 0) return join("All explicit_padding elems must be >= 0, Given ", &w->pads);
    }
    for (int d = 2; d < p->rank; d++) {
        int64_t in = dilated(lhs->dims[p->lhs[d]], p->lhs_dilation[d]), size = dilated(rhs->dims[p->rhs[d]], p->rhs_dilation[d]), stride = p->stride[d];
        p->before[d] = p->after[d] = 0;
        if (w->padding == WINDOW_EXPLICIT) {
            p->before[d] = w->pads.at[2 * (d - 2)];
            p->after[d] = w->pads.at[2 * (d - 2) + 1];
        } else if (w->padding == WINDOW_SAME) {
            int64_t total = ((in + stride - 1) / stride - 1) * stride + size - in;
            total = total > 0 ? total : 0;
            p->before[d] = total / 2;
            p->after[d] = total - total / 2;
        }
        int64_t out = (in + p->before[d] + p->after[d] - size + 1 + stride - 1) / stride;
        if (out < 0) return error_invalid("Expected shape dimensions to be non-negative, got %lld", (long long)out);
        p->shape.dims[p->out[d]] = out;
    }
    return NULL;
}

/* "words[2,3][4]" */
static Error *misfit(const char *words, const Shape *lhs, const Shape *rhs) {
    char *a = shape_str(lhs), *b = shape_str(rhs);
    Error *err = error_invalid("%s%s%s", words, a, b);
    free(a);
    free(b);
    return err;
}

Error *uniform_window_plan(const UniformWindow *w, const Shape *lhs, const Shape *rhs, WindowPlan *p) {
    *p = (WindowPlan){.rank = lhs->rank};
    if (lhs->rank != rhs->rank) return misfit("lhs and rhs must have same dims. Given lhs and rhs of shapes: ", lhs, rhs);
    if (lhs->rank <= 2) return error_invalid("lhs and rhs shape dims must be at least 3. Given: %d", lhs->rank);
    const int space = lhs->rank - 2;
    Error *err = spread("window_strides", &w->strides, space, p->stride);
    if (!err) err = spread("lhs_dilation", &w->lhs_dilation, space, p->lhs_dilation);
    if (!err) err = spread("rhs_dilation", &w->rhs_dilation, space, p->rhs_dilation);
    if (!err) err = place(&w->lhs, p->rank, p->lhs);
    if (!err) err = place(&w->rhs, p->rank, p->rhs);
    if (!err) err = place(&w->out, p->rank, p->out);
    for (int d = 0; d < lhs->rank && !err; d++)
        if (lhs->dims[d] > INT32_MAX || rhs->dims[d] > INT32_MAX) err = misfit("lhs and rhs are too large: ", lhs, rhs);
    const int64_t batch = err ? 0 : lhs->dims[p->lhs[0]], made = err ? 0 : rhs->dims[p->rhs[0]];
    if (!err) err = check_groups(w, lhs->dims[p->lhs[1]], rhs->dims[p->rhs[1]], made, batch);
    if (err) return err;
    p->shape.rank = p->rank;
    p->shape.dims[p->out[0]] = batch / w->batch_groups;
    p->shape.dims[p->out[1]] = made;
    return pad(w, lhs, rhs, p);
}
