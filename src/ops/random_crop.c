/* random_crop.c: RandomCrop, a part of an image at a random place. */
#include "ops/elements.h"
#include "ops/op_list.h"
#include "ops/random_state.h"

const OpDef random_crop_ops[] = {
    {"RandomCrop", "image: T, size: int64 -> output: T",
     "T: {uint8, int8, int16, int32, int64, float, double}; seed: int = 0; seed2: int = 0", OP_STATEFUL},
    {0},
};

static Error *check_side(const char *side, int64_t have, int64_t want) {
    if (want < 0) return error_invalid("The %s of a crop must be at least 0, got %lld", side, (long long)want);
    if (want <= have) return NULL;
    return error_new(CODE_FAILED_PRECONDITION, "%s must be >= target_%s: %s = %lld, target_%s = %lld", side, side, side, (long long)have, side,
                              (long long)want);
}

static Error *run_random_crop(KernelContext *k) {
    const Tensor *image = k->in[0], *size = k->in[1];
    if (image->shape.rank != 3) return error_invalid("input must be 3-dimensional%s", shape_text(&image->shape).text);
    if (size->shape.rank != 1) return error_invalid("shape_t must be 1-dimensional%s", shape_text(&size->shape).text);
    if (size->count != 2) return error_invalid("shape_t must have two elements%s", shape_text(&size->shape).text);
    int64_t height = image->shape.dims[0], width = image->shape.dims[1], channels = image->shape.dims[2];
    int64_t to_height = tensor_i64(size)[0], to_width = tensor_i64(size)[1];
    Error *err = check_side("width", width, to_width);
    if (!err) err = check_side("height", height, to_height);
    if (err) return err;
    Shape shape = shape_of(3, (int64_t[]){to_height, to_width, channels});
    Tensor *out = kernel_output(k, 0, &shape);
    if (!out) return NULL;
    PhiloxStream random = philox_stream(random_state_reserve(k->state, 1));
    int64_t left = 0, top = 0;
    if (width > to_width) left = philox_stream_next(&random) % (uint32_t)(width - to_width + 1);
    if (height > to_height) top = philox_stream_next(&random) % (uint32_t)(height - to_height + 1);
    size_t pixel = (size_t)channels * dtype_size(image->dtype), row = (size_t)to_width * pixel;
    for (int64_t y = 0; y < to_height; y++) {
        const char *from = (const char *)image->data + (size_t)((top + y) * width + left) * pixel;
        memcpy((char *)out->data + (size_t)y * row, from, row);
    }
    return NULL;
}

#define CROP run_random_crop
const KernelDef random_crop_cpu[] = {
    {"RandomCrop",
     .by_type = {[DT_UINT8] = CROP, [DT_INT8] = CROP, [DT_INT16] = CROP, [DT_INT32] = CROP, [DT_INT64] = CROP, [DT_FLOAT] = CROP, [DT_DOUBLE] = CROP},
     .state_size = sizeof(RandomState), .init = random_state_init, .clear = random_state_clear, .flags = KERNEL_PER_SESSION},
    {0},
};
