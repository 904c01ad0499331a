/* op_list.h: one row per file of ops; the only place that knows them all. */
#pragma once
#include "graph/op_def.h"
#include "runtime/kernel.h"

/* Each file NAME.c here defines `const OpDef NAME_ops[]` and `const KernelDef NAME_cpu[]`, both ended by {0}. */
#define OP_FILES(ROW) \
    ROW(const) \
    ROW(identity) \
    ROW(control_flow) \
    ROW(functional) \
    ROW(send_recv) \
    ROW(tensor_list_ops) \
    ROW(tensor_array) \
    ROW(stack) \
    ROW(unary) \
    ROW(unary_grad) \
    ROW(binary) \
    ROW(compare) \
    ROW(select) \
    ROW(cast) \
    ROW(reduce_ops) \
    ROW(argmax) \
    ROW(cumulative) \
    ROW(addn) \
    ROW(matmul) \
    ROW(bias) \
    ROW(activation) \
    ROW(softmax_ops) \
    ROW(cross_entropy) \
    ROW(queue) \
    ROW(accumulator) \
    ROW(save_restore) \
    ROW(files) \
    ROW(debug) \
    ROW(summary) \
    ROW(string_ops) \
    ROW(string_hash) \
    ROW(regex_ops) \
    ROW(variable) \
    ROW(resource_variable) \
    ROW(apply_gradient) \
    ROW(apply_sparse) \
    ROW(array) \
    ROW(shape_ops) \
    ROW(slice) \
    ROW(concat) \
    ROW(transpose_ops) \
    ROW(pad) \
    ROW(range) \
    ROW(fill) \
    ROW(matrix_diag) \
    ROW(gather_ops) \
    ROW(scatter) \
    ROW(stitch) \
    ROW(unique) \
    ROW(segment_ops) \
    ROW(parse_sequence) \
    ROW(session_handle) \
    ROW(unigram_sampler) \
    ROW(nms) \
    ROW(ctc) \
    ROW(special_ops) \
    ROW(search_ops) \
    ROW(fft_ops) \
    ROW(linalg) \
    ROW(sparse_dense) \
    ROW(sparse_math) \
    ROW(sparse_shape) \
    ROW(sparse_cross) \
    ROW(sparse_serialize) \
    ROW(set_ops) \
    ROW(random_ops) \
    ROW(stateless_random) \
    ROW(string_format) \
    ROW(reader) \
    ROW(conv) \
    ROW(pool_ops) \
    ROW(batch_norm) \
    ROW(lrn) \
    ROW(lookup) \
    ROW(parse_example) \
    ROW(einsum) \
    ROW(decode) \
    ROW(candidate_sampler) \
    ROW(barrier) \
    ROW(staging) \
    ROW(bincount) \
    ROW(media_summary) \
    ROW(map_staging) \
    ROW(space) \
    ROW(conv3d) \
    ROW(extract_patches) \
    ROW(dilation) \
    ROW(resize) \
    ROW(crop_and_resize) \
    ROW(color) \
    ROW(boxes) \
    ROW(warp) \
    ROW(image_io) \
    ROW(quantize) \
    ROW(fake_quant) \
    ROW(dataset_source) \
    ROW(dataset_file) \
    ROW(dataset_map) \
    ROW(dataset_parallel_map) \
    ROW(dataset_interleave) \
    ROW(dataset_batch) \
    ROW(dataset_shuffle) \
    ROW(dataset_cache) \
    ROW(dataset_sequence) \
    ROW(dataset_window) \
    ROW(dataset_group) \
    ROW(dataset_choose) \
    ROW(dataset_prefetch) \
    ROW(dataset_consume) \
    ROW(dataset_iterator) \
    ROW(dataset_optional) \
    ROW(sample_box) \
    ROW(record_input)

#define DECLARE(name)                \
    extern const OpDef name##_ops[]; \
    extern const KernelDef name##_cpu[];
OP_FILES(DECLARE)
#undef DECLARE

void ops_register_all(void); /* once, before anything else runs */
