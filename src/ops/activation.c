/* activation.c: Relu, Relu6, Elu, Selu, LeakyRelu, Softplus, Softsign and their gradients. */
#include <tgmath.h>

#include "base/float16.h"
#include "ops/elementwise.h"
#include "ops/op_list.h"

const OpDef activation_ops[] = {
    {"Relu", "features: T -> activations: T",
     "T: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, uint64, qint8}", 0},
    {"ReluGrad", "gradients: T, features: T -> backprops: T",
     "T: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, uint64}", 0},
    {"Relu6", "features: T -> activations: T",
     "T: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, uint64}", 0},
    {"Relu6Grad", "gradients: T, features: T -> backprops: T",
     "T: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, uint64}", 0},
    {"Elu", "features: T -> activations: T", "T: {half, bfloat16, float, double}", 0},
    {"EluGrad", "gradients: T, outputs: T -> backprops: T", "T: {half, bfloat16, float, double}", 0},
    {"Selu", "features: T -> activations: T", "T: {half, bfloat16, float, double}", 0},
    {"SeluGrad", "gradients: T, outputs: T -> backprops: T", "T: {half, bfloat16, float, double}", 0},
    {"LeakyRelu", "features: T -> activations: T",
     "alpha: float = 0.20000000298; T: {half, bfloat16, float, double} = float", 0},
    {"LeakyReluGrad", "gradients: T, features: T -> backprops: T",
     "alpha: float = 0.20000000298; T: {half, bfloat16, float, double} = float", 0},
    {"Softplus", "features: T -> activations: T", "T: {half, bfloat16, float, double}", 0},
    {"SoftplusGrad", "gradients: T, features: T -> backprops: T", "T: {half, bfloat16, float, double}", 0},
    {"Softsign", "features: T -> activations: T", "T: {half, bfloat16, float, double}", 0},
    {"SoftsignGrad", "gradients: T, features: T -> backprops: T", "T: {half, bfloat16, float, double}", 0},
    {0},
};

#define SELU_SCALE 1.0507009873554804934193349852946
#define SELU_SCALE_ALPHA 1.7580993408473768599402175208123

typedef struct LeakyState {
    float alpha;
} LeakyState;

static Error *leaky_init(const Node *node, void *state) {
    LeakyState *st = state;
    return node_attr_float(node, "alpha", &st->alpha);
}

#define NEGATIVE(x) ((x) < 0)
#define BODY "ops/activation_float.inc"
#include "kernels/each_float.inc"
#undef NEGATIVE
#undef BODY
#define BODY "ops/activation_real.inc"
#include "kernels/each_signed.inc"
#include "kernels/each_unsigned.inc"

#define LEAKY .state_size = sizeof(LeakyState), .init = leaky_init

const KernelDef activation_cpu[] = {
    {"Relu", .by_type = {REAL_TYPES(relu)}, .flags = KERNEL_ELEMENTWISE},
    {"ReluGrad", .by_type = {REAL_TYPES(relu_grad)}, .flags = KERNEL_ELEMENTWISE},
    {"Relu6", .by_type = {REAL_TYPES(relu6)}, .flags = KERNEL_ELEMENTWISE},
    {"Relu6Grad", .by_type = {REAL_TYPES(relu6_grad)}, .flags = KERNEL_ELEMENTWISE},
    {"Elu", .by_type = {FLOAT_TYPES(elu)}, .flags = KERNEL_ELEMENTWISE},
    {"EluGrad", .by_type = {FLOAT_TYPES(elu_grad)}, .flags = KERNEL_ELEMENTWISE},
    {"Selu", .by_type = {FLOAT_TYPES(selu)}, .flags = KERNEL_ELEMENTWISE},
    {"SeluGrad", .by_type = {FLOAT_TYPES(selu_grad)}, .flags = KERNEL_ELEMENTWISE},
    {"LeakyRelu", .by_type = {FLOAT_TYPES(leaky)}, LEAKY, .flags = KERNEL_ELEMENTWISE},
    {"LeakyReluGrad", .by_type = {FLOAT_TYPES(leaky_grad)}, LEAKY, .flags = KERNEL_ELEMENTWISE},
    {"Softplus", .by_type = {FLOAT_TYPES(softplus)}, .flags = KERNEL_ELEMENTWISE},
    {"SoftplusGrad", .by_type = {FLOAT_TYPES(softplus_grad)}, .flags = KERNEL_ELEMENTWISE},
    {"Softsign", .by_type = {FLOAT_TYPES(softsign)}, .flags = KERNEL_ELEMENTWISE},
    {"SoftsignGrad", .by_type = {FLOAT_TYPES(softsign_grad)}, .flags = KERNEL_ELEMENTWISE},
    {0},
};
