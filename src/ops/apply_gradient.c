/* apply_gradient.c: Apply*, an optimizer step of the whole variable, by reference or by handle. */
#include "ops/op_list.h"
#include "ops/optimizer.h"

const OpDef apply_gradient_ops[] = {
    {"ApplyGradientDescent", "var: Ref(T), alpha: T, delta: T -> out: Ref(T)",
     "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, qint16, "
     "quint16, uint16, complex128, half, uint32, uint64}; use_locking: bool = false",
     0},
    {"ResourceApplyGradientDescent", "var: resource, alpha: T, delta: T ->",
     "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, qint16, "
     "quint16, uint16, complex128, half, uint32, uint64}; use_locking: bool = false",
     OP_STATEFUL},
    {"ApplyMomentum", "var: Ref(T), accum: Ref(T), lr: T, grad: T, momentum: T -> out: Ref(T)",
     "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, qint16, "
     "quint16, uint16, complex128, half, uint32, uint64}; use_locking: bool = false; use_nesterov: bool = false",
     0},
    {"ResourceApplyMomentum", "var: resource, accum: resource, lr: T, grad: T, momentum: T ->",
     "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, qint16, "
     "quint16, uint16, complex128, half, uint32, uint64}; use_locking: bool = false; use_nesterov: bool = false",
     OP_STATEFUL},
    {"ResourceApplyKerasMomentum", "var: resource, accum: resource, lr: T, grad: T, momentum: T ->",
     "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, qint16, "
     "quint16, uint16, complex128, half, uint32, uint64}; use_locking: bool = false; use_nesterov: bool = false",
     OP_STATEFUL},
    {"ApplyAdagrad", "var: Ref(T), accum: Ref(T), lr: T, grad: T -> out: Ref(T)",
     "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, qint16, "
     "quint16, uint16, complex128, half, uint32, uint64}; use_locking: bool = false; update_slots: bool = true",
     0},
    {"ResourceApplyAdagrad", "var: resource, accum: resource, lr: T, grad: T ->",
     "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, qint16, "
     "quint16, uint16, complex128, half, uint32, uint64}; use_locking: bool = false; update_slots: bool = true",
     OP_STATEFUL},
    {"ApplyAdagradV2", "var: Ref(T), accum: Ref(T), lr: T, epsilon: T, grad: T -> out: Ref(T)",
     "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, qint16, "
     "quint16, uint16, complex128, half, uint32, uint64}; use_locking: bool = false; update_slots: bool = true",
     0},
    {"ResourceApplyAdagradV2", "var: resource, accum: resource, lr: T, epsilon: T, grad: T ->",
     "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, qint16, "
     "quint16, uint16, complex128, half, uint32, uint64}; use_locking: bool = false; update_slots: bool = true",
     OP_STATEFUL},
    {"ApplyAdam",
     "var: Ref(T), m: Ref(T), v: Ref(T), beta1_power: T, beta2_power: T, lr: T, beta1: T, beta2: T, epsilon: T, grad: "
     "T -> out: Ref(T)",
     "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, qint16, "
     "quint16, uint16, complex128, half, uint32, uint64}; use_locking: bool = false; use_nesterov: bool = false",
     0},
    {"ResourceApplyAdam",
     "var: resource, m: resource, v: resource, beta1_power: T, beta2_power: T, lr: T, beta1: T, beta2: T, epsilon: T, "
     "grad: T ->",
     "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, qint16, "
     "quint16, uint16, complex128, half, uint32, uint64}; use_locking: bool = false; use_nesterov: bool = false",
     OP_STATEFUL},
    {"ResourceApplyAdamWithAmsgrad",
     "var: resource, m: resource, v: resource, vhat: resource, beta1_power: T, beta2_power: T, lr: T, beta1: T, "
     "beta2: T, epsilon: T, grad: T ->",
     "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, qint16, "
     "quint16, uint16, complex128, half, uint32, uint64}; use_locking: bool = false",
     OP_STATEFUL},
    {"ApplyAdaMax",
     "var: Ref(T), m: Ref(T), v: Ref(T), beta1_power: T, lr: T, beta1: T, beta2: T, epsilon: T, grad: T -> out: Ref(T)",
     "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, qint16, "
     "quint16, uint16, complex128, half, uint32, uint64}; use_locking: bool = false",
     0},
    {"ResourceApplyAdaMax",
     "var: resource, m: resource, v: resource, beta1_power: T, lr: T, beta1: T, beta2: T, epsilon: T, grad: T ->",
     "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, qint16, "
     "quint16, uint16, complex128, half, uint32, uint64}; use_locking: bool = false",
     OP_STATEFUL},
    {"ApplyRMSProp",
     "var: Ref(T), ms: Ref(T), mom: Ref(T), lr: T, rho: T, momentum: T, epsilon: T, grad: T -> out: Ref(T)",
     "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, qint16, "
     "quint16, uint16, complex128, half, uint32, uint64}; use_locking: bool = false",
     0},
    {"ResourceApplyRMSProp",
     "var: resource, ms: resource, mom: resource, lr: T, rho: T, momentum: T, epsilon: T, grad: T ->",
     "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, qint16, "
     "quint16, uint16, complex128, half, uint32, uint64}; use_locking: bool = false",
     OP_STATEFUL},
    {"ApplyCenteredRMSProp",
     "var: Ref(T), mg: Ref(T), ms: Ref(T), mom: Ref(T), lr: T, rho: T, momentum: T, epsilon: T, grad: T -> out: Ref(T)",
     "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, qint16, "
     "quint16, uint16, complex128, half, uint32, uint64}; use_locking: bool = false",
     0},
    {"ResourceApplyCenteredRMSProp",
     "var: resource, mg: resource, ms: resource, mom: resource, lr: T, rho: T, momentum: T, epsilon: T, grad: T ->",
     "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, qint16, "
     "quint16, uint16, complex128, half, uint32, uint64}; use_locking: bool = false",
     OP_STATEFUL},
    {"ApplyFtrl",
     "var: Ref(T), accum: Ref(T), linear: Ref(T), grad: T, lr: T, l1: T, l2: T, lr_power: T -> out: Ref(T)",
     "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, qint16, "
     "quint16, uint16, complex128, half, uint32, uint64}; use_locking: bool = false; multiply_linear_by_lr: bool = "
     "false",
     0},
    {"ResourceApplyFtrl",
     "var: resource, accum: resource, linear: resource, grad: T, lr: T, l1: T, l2: T, lr_power: T ->",
     "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, qint16, "
     "quint16, uint16, complex128, half, uint32, uint64}; use_locking: bool = false; multiply_linear_by_lr: bool = "
     "false",
     OP_STATEFUL},
    {"ApplyFtrlV2",
     "var: Ref(T), accum: Ref(T), linear: Ref(T), grad: T, lr: T, l1: T, l2: T, l2_shrinkage: T, lr_power: T -> out: "
     "Ref(T)",
     "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, qint16, "
     "quint16, uint16, complex128, half, uint32, uint64}; use_locking: bool = false; multiply_linear_by_lr: bool = "
     "false",
     0},
    {"ResourceApplyFtrlV2",
     "var: resource, accum: resource, linear: resource, grad: T, lr: T, l1: T, l2: T, l2_shrinkage: T, lr_power: T ->",
     "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, qint16, "
     "quint16, uint16, complex128, half, uint32, uint64}; use_locking: bool = false; multiply_linear_by_lr: bool = "
     "false",
     OP_STATEFUL},
    {"ApplyAdadelta",
     "var: Ref(T), accum: Ref(T), accum_update: Ref(T), lr: T, rho: T, epsilon: T, grad: T -> out: Ref(T)",
     "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, qint16, "
     "quint16, uint16, complex128, half, uint32, uint64}; use_locking: bool = false",
     0},
    {"ResourceApplyAdadelta",
     "var: resource, accum: resource, accum_update: resource, lr: T, rho: T, epsilon: T, grad: T ->",
     "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, qint16, "
     "quint16, uint16, complex128, half, uint32, uint64}; use_locking: bool = false",
     OP_STATEFUL},
    {"ApplyAdagradDA",
     "var: Ref(T), gradient_accumulator: Ref(T), gradient_squared_accumulator: Ref(T), grad: T, lr: T, l1: T, l2: T, "
     "global_step: int64 -> out: Ref(T)",
     "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, qint16, "
     "quint16, uint16, complex128, half, uint32, uint64}; use_locking: bool = false",
     0},
    {"ResourceApplyAdagradDA",
     "var: resource, gradient_accumulator: resource, gradient_squared_accumulator: resource, grad: T, lr: T, l1: T, "
     "l2: T, global_step: int64 ->",
     "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, qint16, "
     "quint16, uint16, complex128, half, uint32, uint64}; use_locking: bool = false",
     OP_STATEFUL},
    {"ApplyProximalGradientDescent", "var: Ref(T), alpha: T, l1: T, l2: T, delta: T -> out: Ref(T)",
     "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, qint16, "
     "quint16, uint16, complex128, half, uint32, uint64}; use_locking: bool = false",
     0},
    {"ResourceApplyProximalGradientDescent", "var: resource, alpha: T, l1: T, l2: T, delta: T ->",
     "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, qint16, "
     "quint16, uint16, complex128, half, uint32, uint64}; use_locking: bool = false",
     OP_STATEFUL},
    {"ApplyProximalAdagrad", "var: Ref(T), accum: Ref(T), lr: T, l1: T, l2: T, grad: T -> out: Ref(T)",
     "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, qint16, "
     "quint16, uint16, complex128, half, uint32, uint64}; use_locking: bool = false",
     0},
    {"ResourceApplyProximalAdagrad", "var: resource, accum: resource, lr: T, l1: T, l2: T, grad: T ->",
     "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, qint16, "
     "quint16, uint16, complex128, half, uint32, uint64}; use_locking: bool = false",
     OP_STATEFUL},
    {"ApplyPowerSign", "var: Ref(T), m: Ref(T), lr: T, logbase: T, sign_decay: T, beta: T, grad: T -> out: Ref(T)",
     "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, qint16, "
     "quint16, uint16, complex128, half, uint32, uint64}; use_locking: bool = false",
     0},
    {"ResourceApplyPowerSign", "var: resource, m: resource, lr: T, logbase: T, sign_decay: T, beta: T, grad: T ->",
     "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, qint16, "
     "quint16, uint16, complex128, half, uint32, uint64}; use_locking: bool = false",
     OP_STATEFUL},
    {"ApplyAddSign", "var: Ref(T), m: Ref(T), lr: T, alpha: T, sign_decay: T, beta: T, grad: T -> out: Ref(T)",
     "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, qint16, "
     "quint16, uint16, complex128, half, uint32, uint64}; use_locking: bool = false",
     0},
    {"ResourceApplyAddSign", "var: resource, m: resource, lr: T, alpha: T, sign_decay: T, beta: T, grad: T ->",
     "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, qint16, "
     "quint16, uint16, complex128, half, uint32, uint64}; use_locking: bool = false",
     OP_STATEFUL},
    {0},
};

#define STATE .state_size = sizeof(OptimizerState), .init = optimizer_init

const KernelDef apply_gradient_cpu[] = {
    {"ApplyGradientDescent", .run = optimizer_run, STATE, .flags = KERNEL_REFS | KERNEL_EXPENSIVE},
    {"ResourceApplyGradientDescent", .run = optimizer_run, STATE, .flags = KERNEL_EXPENSIVE},
    {"ApplyMomentum", .run = optimizer_run, STATE, .flags = KERNEL_REFS | KERNEL_EXPENSIVE},
    {"ResourceApplyMomentum", .run = optimizer_run, STATE, .flags = KERNEL_EXPENSIVE},
    {"ResourceApplyKerasMomentum", .run = optimizer_run, STATE, .flags = KERNEL_EXPENSIVE},
    {"ApplyAdagrad", .run = optimizer_run, STATE, .flags = KERNEL_REFS | KERNEL_EXPENSIVE},
    {"ResourceApplyAdagrad", .run = optimizer_run, STATE, .flags = KERNEL_EXPENSIVE},
    {"ApplyAdagradV2", .run = optimizer_run, STATE, .flags = KERNEL_REFS | KERNEL_EXPENSIVE},
    {"ResourceApplyAdagradV2", .run = optimizer_run, STATE, .flags = KERNEL_EXPENSIVE},
    {"ApplyAdam", .run = optimizer_run, STATE, .flags = KERNEL_REFS | KERNEL_EXPENSIVE},
    {"ResourceApplyAdam", .run = optimizer_run, STATE, .flags = KERNEL_EXPENSIVE},
    {"ResourceApplyAdamWithAmsgrad", .run = optimizer_run, STATE, .flags = KERNEL_EXPENSIVE},
    {"ApplyAdaMax", .run = optimizer_run, STATE, .flags = KERNEL_REFS | KERNEL_EXPENSIVE},
    {"ResourceApplyAdaMax", .run = optimizer_run, STATE, .flags = KERNEL_EXPENSIVE},
    {"ApplyRMSProp", .run = optimizer_run, STATE, .flags = KERNEL_REFS | KERNEL_EXPENSIVE},
    {"ResourceApplyRMSProp", .run = optimizer_run, STATE, .flags = KERNEL_EXPENSIVE},
    {"ApplyCenteredRMSProp", .run = optimizer_run, STATE, .flags = KERNEL_REFS | KERNEL_EXPENSIVE},
    {"ResourceApplyCenteredRMSProp", .run = optimizer_run, STATE, .flags = KERNEL_EXPENSIVE},
    {"ApplyFtrl", .run = optimizer_run, STATE, .flags = KERNEL_REFS | KERNEL_EXPENSIVE},
    {"ResourceApplyFtrl", .run = optimizer_run, STATE, .flags = KERNEL_EXPENSIVE},
    {"ApplyFtrlV2", .run = optimizer_run, STATE, .flags = KERNEL_REFS | KERNEL_EXPENSIVE},
    {"ResourceApplyFtrlV2", .run = optimizer_run, STATE, .flags = KERNEL_EXPENSIVE},
    {"ApplyAdadelta", .run = optimizer_run, STATE, .flags = KERNEL_REFS | KERNEL_EXPENSIVE},
    {"ResourceApplyAdadelta", .run = optimizer_run, STATE, .flags = KERNEL_EXPENSIVE},
    {"ApplyAdagradDA", .run = optimizer_run, STATE, .flags = KERNEL_REFS | KERNEL_EXPENSIVE},
    {"ResourceApplyAdagradDA", .run = optimizer_run, STATE, .flags = KERNEL_EXPENSIVE},
    {"ApplyProximalGradientDescent", .run = optimizer_run, STATE, .flags = KERNEL_REFS | KERNEL_EXPENSIVE},
    {"ResourceApplyProximalGradientDescent", .run = optimizer_run, STATE, .flags = KERNEL_EXPENSIVE},
    {"ApplyProximalAdagrad", .run = optimizer_run, STATE, .flags = KERNEL_REFS | KERNEL_EXPENSIVE},
    {"ResourceApplyProximalAdagrad", .run = optimizer_run, STATE, .flags = KERNEL_EXPENSIVE},
    {"ApplyPowerSign", .run = optimizer_run, STATE, .flags = KERNEL_REFS | KERNEL_EXPENSIVE},
    {"ResourceApplyPowerSign", .run = optimizer_run, STATE, .flags = KERNEL_EXPENSIVE},
    {"ApplyAddSign", .run = optimizer_run, STATE, .flags = KERNEL_REFS | KERNEL_EXPENSIVE},
    {"ResourceApplyAddSign", .run = optimizer_run, STATE, .flags = KERNEL_EXPENSIVE},
    {0},
};
