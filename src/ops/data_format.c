/* data_format.c: DataFormatDimMap and DataFormatVecPermute, dimensions and vectors from one order of letters (NHWC) to
 * another (NCHW). */
#include "ops/elements.h"
#include "ops/op_list.h"

const OpDef data_format_ops[] = {
    {"DataFormatDimMap", "x: T -> y: T",
     "T: {int32, int64} = int32; src_format: string = 'NHWC'; dst_format: string = 'NCHW'", 0},
    {"DataFormatVecPermute", "x: T -> y: T",
     "T: {int32, int64} = int32; src_format: string = 'NHWC'; dst_format: string = 'NCHW'", 0},
    {0},
};

enum { MAX_LETTERS = 5 };

/* to[i] is the place in dst of the letter at i in src, all of them and those of space alone. */
typedef struct FormatState {
    int count, to[MAX_LETTERS];
    int space_count, space_to[MAX_LETTERS];
} FormatState;

static bool is_space(char letter) {
    return letter != 'N' && letter != 'C';
}

/* Every letter of the one is in the other, and is there once. */
static bool is_permutation(Str src, Str dst) {
    if (src.len != dst.len) return false;
    for (size_t i = 0; i < src.len; i++) {
        int found = 0;
        for (size_t j = 0; j < dst.len; j++)
            found += dst.ptr[j] == src.ptr[i];
        for (size_t j = 0; j < i; j++)
            found += src.ptr[j] == src.ptr[i];
        if (found != 1) return false;
    }
    return true;
}

static Error *init_format(const Node *node, void *state) {
    FormatState *s = state;
    Str src, dst;
    Error *err = node_attr_string(node, "src_format", &src);
    if (!err) err = node_attr_string(node, "dst_format", &dst);
    if (err) return err;
    if (src.len != 4 && src.len != MAX_LETTERS)
        return error_invalid("Source format must be of length 4 or 5, received src_format = %.*s", STR_ARG(src));
    if (dst.len != 4 && dst.len != MAX_LETTERS)
        return error_invalid("Destination format must be of length 4 or 5, received dst_format = %.*s", STR_ARG(dst));
    if (!is_permutation(src, dst))
        return error_invalid("Destination and source format must determine a permutation, got %.*s and %.*s",
                             STR_ARG(src), STR_ARG(dst));
    s->count = (int)src.len;
    for (int i = 0; i < s->count; i++) {
        int place = -1, before = 0;
        for (int j = 0; j < s->count && place < 0; j++) {
            if (dst.ptr[j] == src.ptr[i])
                place = j;
            else
                before += is_space(dst.ptr[j]);
        }
        s->to[i] = place;
        if (is_space(src.ptr[i])) s->space_to[s->space_count++] = before;
    }
    return NULL;
}

static Error *run_dim_map(KernelContext *k) {
    const FormatState *s = k->state;
    Tensor *y = kernel_output(k, 0, &k->in[0]->shape);
    for (int64_t i = 0; y && i < y->count; i++) {
        int64_t x = index_at(k->in[0], i) % s->count;
        index_put(y, i, s->to[x < 0 ? x + s->count : x]);
    }
    return NULL;
}

static Error *run_permute(KernelContext *k) {
    const FormatState *s = k->state;
    const Tensor *x = k->in[0];
    int64_t n = x->shape.rank ? x->shape.dims[0] : 0, width = x->shape.rank == 2 ? 2 : 1;
    if (x->shape.rank != 1 && x->shape.rank != 2)
        return error_invalid("input must be a vector or 2D tensor, but got shape %s", shape_text(&x->shape).text);
    if (n != s->count && n != s->count - 2)
        return error_invalid("%s input must be of size %d or %d, but got shape %s",
                             x->shape.rank == 1 ? "1D" : "First dimension of 2D", s->count - 2, s->count,
                             shape_text(&x->shape).text);
    if (x->shape.rank == 2 && x->shape.dims[1] != 2)
        return error_invalid("Second dimension of 2D input must be of size 2, but got shape %s",
                             shape_text(&x->shape).text);
    if (n == s->count - 2 && s->space_count != s->count - 2)
        return error_invalid("The formats have no two letters N and C");
    Tensor *y = kernel_output(k, 0, &x->shape);
    for (int64_t i = 0; y && i < x->count; i++) {
        int to = n == s->count ? s->to[i / width] : s->space_to[i / width];
        index_put(y, to * width + i % width, index_at(x, i));
    }
    return NULL;
}

const KernelDef data_format_cpu[] = {
    {"DataFormatDimMap", .run = run_dim_map, .state_size = sizeof(FormatState), .init = init_format},
    {"DataFormatVecPermute", .run = run_permute, .state_size = sizeof(FormatState), .init = init_format},
    {0},
};
