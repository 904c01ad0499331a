/* media_summary.c: ImageSummary, AudioSummary, AudioSummaryV2: pictures and sounds in tf.Summary. */
#include <string.h>

#include "ops/op_list.h"
#include "ops/summary_value.h"
#include "tensor/tensor_proto.h"

const OpDef media_summary_ops[] = {
    {"ImageSummary", "tag: string, tensor: T -> summary: string",
     "max_images: int >= 1 = 3; T: {uint8, float, half, double} = float; bad_color: tensor", 0},
    {"AudioSummary", "tag: string, tensor: float -> summary: string", "sample_rate: float; max_outputs: int >= 1 = 3",
     0},
    {"AudioSummaryV2", "tag: string, tensor: float, sample_rate: float -> summary: string", "max_outputs: int >= 1 = 3",
     0},
    {0},
};

static Error *set_summary(KernelContext *k, StrBuf *summary, Error *err) {
    Tensor *out = err ? NULL : kernel_output(k, 0, &SHAPE_SCALAR);
    size_t len = summary->len;
    if (out)
        tstring_take(tensor_str(out), strbuf_detach(summary), len);
    else
        strbuf_clear(summary);
    return err;
}

/* ---- Images ---- */

typedef struct ImageState {
    int64_t max_images;
    uint8_t bad_color[4]; /* for pixels that are not finite */
} ImageState;

static Error *init_image(const Node *node, void *state) {
    ImageState *s = state;
    Str value, proto;
    Tensor *color = NULL;
    memcpy(s->bad_color, (uint8_t[]){255, 0, 0, 255}, 4);
    Error *err = node_attr_int(node, "max_images", &s->max_images);
    if (!err && node_attr(node, "bad_color", &value) && attr_tensor(value, &proto))
        err = tensor_proto_decode(proto, &color);
    if (!err && color && color->dtype != DT_UINT8)
        err = error_invalid("bad_color must be uint8, got %s", dtype_name(color->dtype));
    for (int64_t i = 0; !err && color && i < color->count && i < 4; i++) s->bad_color[i] = tensor_u8(color)[i];
    tensor_unref(color);
    return err;
}

static Error *run_image(KernelContext *k) {
    const ImageState *s = k->state;
    if (k->in[0]->shape.rank != 0) return error_invalid("Tags must be a scalar");
    StrBuf summary = {0};
    Error *err = summary_put_images(&summary, tstring_str(tensor_str(k->in[0])), k->in[1], s->max_images, s->bad_color);
    return set_summary(k, &summary, err);
}

/* ---- Sounds ---- */

typedef struct AudioState {
    int64_t max_outputs;
    float sample_rate; /* of AudioSummary */
} AudioState;

static Error *init_audio_v2(const Node *node, void *state) {
    return node_attr_int(node, "max_outputs", &((AudioState *)state)->max_outputs);
}

static Error *init_audio(const Node *node, void *state) {
    Error *err = init_audio_v2(node, state);
    return err ? err : node_attr_float(node, "sample_rate", &((AudioState *)state)->sample_rate);
}

static Error *audio(KernelContext *k, float rate) {
    const AudioState *s = k->state;
    if (k->in[0]->shape.rank != 0) return error_invalid("Tag must be a scalar");
    StrBuf summary = {0};
    Error *err = summary_put_sounds(&summary, tstring_str(tensor_str(k->in[0])), k->in[1], s->max_outputs, rate);
    return set_summary(k, &summary, err);
}

static Error *run_audio(KernelContext *k) {
    return audio(k, ((AudioState *)k->state)->sample_rate);
}

static Error *run_audio_v2(KernelContext *k) {
    if (k->in[2]->count != 1) return error_invalid("sample_rate must be a scalar");
    return audio(k, *tensor_f32(k->in[2]));
}

const KernelDef media_summary_cpu[] = {
    {"ImageSummary", .run = run_image, .state_size = sizeof(ImageState), .init = init_image, .flags = KERNEL_EXPENSIVE},
    {"AudioSummary", .run = run_audio, .state_size = sizeof(AudioState), .init = init_audio},
    {"AudioSummaryV2", .run = run_audio_v2, .state_size = sizeof(AudioState), .init = init_audio_v2},
    {0},
};
