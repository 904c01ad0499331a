/* apply_sparse.c: SparseApply*, an optimizer step of some rows of a variable, by reference or by handle. */
#include "ops/op_list.h"
#include "ops/optimizer.h"

const OpDef apply_sparse_ops[] = {
    {"SparseApplyMomentum", "var: Ref(T), accum: Ref(T), lr: T, grad: T, indices: Tindices, momentum: T -> out: Ref(T)",
     "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, qint16, "
     "quint16, uint16, complex128, half, uint32, uint64}; Tindices: {int32, int64}; use_locking: bool = false; "
     "use_nesterov: bool = false",
     0},
    {"ResourceSparseApplyMomentum", "var: resource, accum: resource, lr: T, grad: T, indices: Tindices, momentum: T ->",
     "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, qint16, "
     "quint16, uint16, complex128, half, uint32, uint64}; Tindices: {int32, int64}; use_locking: bool = false; "
     "use_nesterov: bool = false",
     OP_STATEFUL},
    {"ResourceSparseApplyKerasMomentum",
     "var: resource, accum: resource, lr: T, grad: T, indices: Tindices, momentum: T ->",
     "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, qint16, "
     "quint16, uint16, complex128, half, uint32, uint64}; Tindices: {int32, int64}; use_locking: bool = false; "
     "use_nesterov: bool = false",
     OP_STATEFUL},
    {"SparseApplyAdagrad", "var: Ref(T), accum: Ref(T), lr: T, grad: T, indices: Tindices -> out: Ref(T)",
     "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, qint16, "
     "quint16, uint16, complex128, half, uint32, uint64}; Tindices: {int32, int64}; use_locking: bool = false; "
     "update_slots: bool = true",
     0},
    {"ResourceSparseApplyAdagrad", "var: resource, accum: resource, lr: T, grad: T, indices: Tindices ->",
     "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, qint16, "
     "quint16, uint16, complex128, half, uint32, uint64}; Tindices: {int32, int64}; use_locking: bool = false; "
     "update_slots: bool = true",
     OP_STATEFUL},
    {"SparseApplyAdagradV2", "var: Ref(T), accum: Ref(T), lr: T, epsilon: T, grad: T, indices: Tindices -> out: Ref(T)",
     "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, qint16, "
     "quint16, uint16, complex128, half, uint32, uint64}; Tindices: {int32, int64}; use_locking: bool = false; "
     "update_slots: bool = true",
     0},
    {"ResourceSparseApplyAdagradV2", "var: resource, accum: resource, lr: T, epsilon: T, grad: T, indices: Tindices ->",
     "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, qint16, "
     "quint16, uint16, complex128, half, uint32, uint64}; Tindices: {int32, int64}; use_locking: bool = false; "
     "update_slots: bool = true",
     OP_STATEFUL},
    {"SparseApplyRMSProp",
     "var: Ref(T), ms: Ref(T), mom: Ref(T), lr: T, rho: T, momentum: T, epsilon: T, grad: T, indices: Tindices -> "
     "out: Ref(T)",
     "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, qint16, "
     "quint16, uint16, complex128, half, uint32, uint64}; Tindices: {int32, int64}; use_locking: bool = false",
     0},
    {"ResourceSparseApplyRMSProp",
     "var: resource, ms: resource, mom: resource, lr: T, rho: T, momentum: T, epsilon: T, grad: T, indices: Tindices "
     "->",
     "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, qint16, "
     "quint16, uint16, complex128, half, uint32, uint64}; Tindices: {int32, int64}; use_locking: bool = false",
     OP_STATEFUL},
    {"SparseApplyCenteredRMSProp",
     "var: Ref(T), mg: Ref(T), ms: Ref(T), mom: Ref(T), lr: T, rho: T, momentum: T, epsilon: T, grad: T, indices: "
     "Tindices -> out: Ref(T)",
     "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, qint16, "
     "quint16, uint16, complex128, half, uint32, uint64}; Tindices: {int32, int64}; use_locking: bool = false",
     0},
    {"ResourceSparseApplyCenteredRMSProp",
     "var: resource, mg: resource, ms: resource, mom: resource, lr: T, rho: T, momentum: T, epsilon: T, grad: T, "
     "indices: Tindices ->",
     "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, qint16, "
     "quint16, uint16, complex128, half, uint32, uint64}; Tindices: {int32, int64}; use_locking: bool = false",
     OP_STATEFUL},
    {"SparseApplyFtrl",
     "var: Ref(T), accum: Ref(T), linear: Ref(T), grad: T, indices: Tindices, lr: T, l1: T, l2: T, lr_power: T -> "
     "out: Ref(T)",
     "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, qint16, "
     "quint16, uint16, complex128, half, uint32, uint64}; Tindices: {int32, int64}; use_locking: bool = false; "
     "multiply_linear_by_lr: bool = false",
     0},
    {"ResourceSparseApplyFtrl",
     "var: resource, accum: resource, linear: resource, grad: T, indices: Tindices, lr: T, l1: T, l2: T, lr_power: T "
     "->",
     "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, qint16, "
     "quint16, uint16, complex128, half, uint32, uint64}; Tindices: {int32, int64}; use_locking: bool = false; "
     "multiply_linear_by_lr: bool = false",
     OP_STATEFUL},
    {"SparseApplyFtrlV2",
     "var: Ref(T), accum: Ref(T), linear: Ref(T), grad: T, indices: Tindices, lr: T, l1: T, l2: T, l2_shrinkage: T, "
     "lr_power: T -> out: Ref(T)",
     "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, qint16, "
     "quint16, uint16, complex128, half, uint32, uint64}; Tindices: {int32, int64}; use_locking: bool = false; "
     "multiply_linear_by_lr: bool = false",
     0},
    {"ResourceSparseApplyFtrlV2",
     "var: resource, accum: resource, linear: resource, grad: T, indices: Tindices, lr: T, l1: T, l2: T, "
     "l2_shrinkage: T, lr_power: T ->",
     "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, qint16, "
     "quint16, uint16, complex128, half, uint32, uint64}; Tindices: {int32, int64}; use_locking: bool = false; "
     "multiply_linear_by_lr: bool = false",
     OP_STATEFUL},
    {"SparseApplyAdadelta",
     "var: Ref(T), accum: Ref(T), accum_update: Ref(T), lr: T, rho: T, epsilon: T, grad: T, indices: Tindices -> out: "
     "Ref(T)",
     "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, qint16, "
     "quint16, uint16, complex128, half, uint32, uint64}; Tindices: {int32, int64}; use_locking: bool = false",
     0},
    {"ResourceSparseApplyAdadelta",
     "var: resource, accum: resource, accum_update: resource, lr: T, rho: T, epsilon: T, grad: T, indices: Tindices ->",
     "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, qint16, "
     "quint16, uint16, complex128, half, uint32, uint64}; Tindices: {int32, int64}; use_locking: bool = false",
     OP_STATEFUL},
    {"SparseApplyAdagradDA",
     "var: Ref(T), gradient_accumulator: Ref(T), gradient_squared_accumulator: Ref(T), grad: T, indices: Tindices, "
     "lr: T, l1: T, l2: T, global_step: int64 -> out: Ref(T)",
     "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, qint16, "
     "quint16, uint16, complex128, half, uint32, uint64}; Tindices: {int32, int64}; use_locking: bool = false",
     0},
    {"ResourceSparseApplyAdagradDA",
     "var: resource, gradient_accumulator: resource, gradient_squared_accumulator: resource, grad: T, indices: "
     "Tindices, lr: T, l1: T, l2: T, global_step: int64 ->",
     "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, qint16, "
     "quint16, uint16, complex128, half, uint32, uint64}; Tindices: {int32, int64}; use_locking: bool = false",
     OP_STATEFUL},
    {"SparseApplyProximalGradientDescent",
     "var: Ref(T), alpha: T, l1: T, l2: T, grad: T, indices: Tindices -> out: Ref(T)",
     "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, qint16, "
     "quint16, uint16, complex128, half, uint32, uint64}; Tindices: {int32, int64}; use_locking: bool = false",
     0},
    {"ResourceSparseApplyProximalGradientDescent",
     "var: resource, alpha: T, l1: T, l2: T, grad: T, indices: Tindices ->",
     "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, qint16, "
     "quint16, uint16, complex128, half, uint32, uint64}; Tindices: {int32, int64}; use_locking: bool = false",
     OP_STATEFUL},
    {"SparseApplyProximalAdagrad",
     "var: Ref(T), accum: Ref(T), lr: T, l1: T, l2: T, grad: T, indices: Tindices -> out: Ref(T)",
     "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, qint16, "
     "quint16, uint16, complex128, half, uint32, uint64}; Tindices: {int32, int64}; use_locking: bool = false",
     0},
    {"ResourceSparseApplyProximalAdagrad",
     "var: resource, accum: resource, lr: T, l1: T, l2: T, grad: T, indices: Tindices ->",
     "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, qint16, "
     "quint16, uint16, complex128, half, uint32, uint64}; Tindices: {int32, int64}; use_locking: bool = false",
     OP_STATEFUL},
    {0},
};

#define STATE .state_size = sizeof(OptimizerState), .init = optimizer_init

const KernelDef apply_sparse_cpu[] = {
    {"SparseApplyMomentum", .run = optimizer_run, STATE, .flags = KERNEL_REFS | KERNEL_EXPENSIVE},
    {"ResourceSparseApplyMomentum", .run = optimizer_run, STATE, .flags = KERNEL_EXPENSIVE},
    {"ResourceSparseApplyKerasMomentum", .run = optimizer_run, STATE, .flags = KERNEL_EXPENSIVE},
    {"SparseApplyAdagrad", .run = optimizer_run, STATE, .flags = KERNEL_REFS | KERNEL_EXPENSIVE},
    {"ResourceSparseApplyAdagrad", .run = optimizer_run, STATE, .flags = KERNEL_EXPENSIVE},
    {"SparseApplyAdagradV2", .run = optimizer_run, STATE, .flags = KERNEL_REFS | KERNEL_EXPENSIVE},
    {"ResourceSparseApplyAdagradV2", .run = optimizer_run, STATE, .flags = KERNEL_EXPENSIVE},
    {"SparseApplyRMSProp", .run = optimizer_run, STATE, .flags = KERNEL_REFS | KERNEL_EXPENSIVE},
    {"ResourceSparseApplyRMSProp", .run = optimizer_run, STATE, .flags = KERNEL_EXPENSIVE},
    {"SparseApplyCenteredRMSProp", .run = optimizer_run, STATE, .flags = KERNEL_REFS | KERNEL_EXPENSIVE},
    {"ResourceSparseApplyCenteredRMSProp", .run = optimizer_run, STATE, .flags = KERNEL_EXPENSIVE},
    {"SparseApplyFtrl", .run = optimizer_run, STATE, .flags = KERNEL_REFS | KERNEL_EXPENSIVE},
    {"ResourceSparseApplyFtrl", .run = optimizer_run, STATE, .flags = KERNEL_EXPENSIVE},
    {"SparseApplyFtrlV2", .run = optimizer_run, STATE, .flags = KERNEL_REFS | KERNEL_EXPENSIVE},
    {"ResourceSparseApplyFtrlV2", .run = optimizer_run, STATE, .flags = KERNEL_EXPENSIVE},
    {"SparseApplyAdadelta", .run = optimizer_run, STATE, .flags = KERNEL_REFS | KERNEL_EXPENSIVE},
    {"ResourceSparseApplyAdadelta", .run = optimizer_run, STATE, .flags = KERNEL_EXPENSIVE},
    {"SparseApplyAdagradDA", .run = optimizer_run, STATE, .flags = KERNEL_REFS | KERNEL_EXPENSIVE},
    {"ResourceSparseApplyAdagradDA", .run = optimizer_run, STATE, .flags = KERNEL_EXPENSIVE},
    {"SparseApplyProximalGradientDescent", .run = optimizer_run, STATE, .flags = KERNEL_REFS | KERNEL_EXPENSIVE},
    {"ResourceSparseApplyProximalGradientDescent", .run = optimizer_run, STATE, .flags = KERNEL_EXPENSIVE},
    {"SparseApplyProximalAdagrad", .run = optimizer_run, STATE, .flags = KERNEL_REFS | KERNEL_EXPENSIVE},
    {"ResourceSparseApplyProximalAdagrad", .run = optimizer_run, STATE, .flags = KERNEL_EXPENSIVE},
    {0},
};
