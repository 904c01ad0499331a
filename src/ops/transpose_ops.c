/* transpose_ops.c: Transpose, ConjugateTranspose, InvertPermutation. */
#include <complex.h>

#include "ops/elements.h"
#include "ops/op_list.h"

const OpDef transpose_ops_ops[] = {
    {"Transpose", "x: T, perm: Tperm -> y: T", "T: type; Tperm: {int32, int64} = int32", 0},
    {"ConjugateTranspose", "x: T, perm: Tperm -> y: T", "T: type; Tperm: {int32, int64} = int32", 0},
    {"InvertPermutation", "x: T -> y: T", "T: {int32, int64} = int32", 0},
    {0},
};

static Error *read_permutation(const Tensor *perm, int rank, int *out) {
    if (perm->shape.rank != 1) return error_invalid("perm must be rank 1, got shape %s", shape_text(&perm->shape).text);
    if (perm->count != rank)
        return error_invalid("transpose expects a vector of size %d. But input(1) is a vector of size %lld", rank,
                             (long long)perm->count);
    bool seen[SHAPE_MAX_RANK] = {false};
    for (int i = 0; i < rank; i++) {
        int64_t d = index_at(perm, i);
        if (d < -rank || d >= rank) return error_invalid("%lld is out of range [0 .. %d)", (long long)(d < 0 ? d + rank : d), rank);
        if (d < 0) d += rank;
        out[i] = (int)d;
        seen[d] = true;
    }
    for (int d = 0; d < rank; d++) {
        if (seen[d]) continue;
        StrBuf text = {0};
        for (int i = 0; i < rank; i++) strbuf_addf(&text, "%s%d", i ? "," : "", out[i]);
        Error *err = error_invalid("%d is missing from {%s}.", d, text.ptr);
        strbuf_clear(&text);
        return err;
    }
    return NULL;
}

static Error *transpose(KernelContext *k, bool conjugate) {
    const Tensor *in = k->in[0];
    int perm[SHAPE_MAX_RANK];
    Error *err = read_permutation(k->in[1], in->shape.rank, perm);
    if (err) return err;
    Shape shape = in->shape;
    bool same_order = true; /* of the dimensions above 1: then the memory is the same */
    int last = -1;
    for (int d = 0; d < shape.rank; d++) {
        shape.dims[d] = in->shape.dims[perm[d]];
        if (shape.dims[d] == 1) continue;
        same_order = same_order && perm[d] > last;
        last = perm[d];
    }
    bool plain = !conjugate || (in->dtype != DT_COMPLEX64 && in->dtype != DT_COMPLEX128);
    if (same_order && plain) {
        kernel_set_output(k, 0, tensor_alias(in, in->dtype, &shape));
        return NULL;
    }
    Tensor *out = kernel_output(k, 0, &shape);
    if (!out || out->count == 0) return NULL;
    copy_transpose(k->pool, element_kind(in->dtype), shape.rank, in->shape.dims, perm, out->data, in->data);
    if (plain) return NULL;
    for (int64_t i = 0; i < out->count; i++) {
        if (out->dtype == DT_COMPLEX64) {
            ((float complex *)out->data)[i] = conjf(((float complex *)out->data)[i]);
        } else {
            ((double complex *)out->data)[i] = conj(((double complex *)out->data)[i]);
        }
    }
    return NULL;
}

static Error *run_transpose(KernelContext *k) {
    return transpose(k, false);
}

static Error *run_conjugate_transpose(KernelContext *k) {
    return transpose(k, true);
}

static Error *run_invert_permutation(KernelContext *k) {
    const Tensor *in = k->in[0];
    if (in->shape.rank != 1) return error_invalid("invert_permutation expects a 1D vector.");
    Tensor *out = kernel_output(k, 0, &in->shape);
    if (!out) return NULL;
    for (int64_t i = 0; i < in->count; i++) index_put(out, i, -1);
    for (int64_t i = 0; i < in->count; i++) {
        int64_t d = index_at(in, i);
        if (d < 0 || d >= in->count)
            return error_invalid("%lld is not between 0 and %lld", (long long)d, (long long)in->count);
        if (index_at(out, d) != -1) return error_invalid("%lld is duplicated in the input.", (long long)d);
        index_put(out, d, i);
    }
    return NULL;
}

const KernelDef transpose_ops_cpu[] = {
    {"Transpose", .run = run_transpose},
    {"ConjugateTranspose", .run = run_conjugate_transpose},
    {"InvertPermutation", .run = run_invert_permutation},
    {0},
};
