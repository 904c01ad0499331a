"""Apply*, SparseApply* and their forms for resource variables: slots, scalars and gradients by the names of their arguments."""
import numpy as np
import tensorflow as tf

from .table import Call, cases, program

APPLY = ("AdaMax Adadelta Adagrad AdagradDA AdagradV2 Adam AddSign CenteredRMSProp Ftrl FtrlV2 GradientDescent Momentum PowerSign "
         "ProximalAdagrad ProximalGradientDescent RMSProp").split()
SPARSE = ("Adadelta Adagrad AdagradDA AdagradV2 CenteredRMSProp Ftrl FtrlV2 Momentum ProximalAdagrad ProximalGradientDescent RMSProp").split()
NAMES = [f"Apply{n}" for n in APPLY] + [f"ResourceApply{n}" for n in APPLY + ["AdamWithAmsgrad", "KerasMomentum"]] + \
        [f"SparseApply{n}" for n in SPARSE] + [f"ResourceSparseApply{n}" for n in SPARSE + ["KerasMomentum"]]
SCALARS = {"lr": 0.125, "alpha": 0.125, "l1": 0.0625, "l2": 0.125, "l2_shrinkage": 0.0625, "lr_power": -0.5, "rho": 0.875, "momentum": 0.75, "epsilon": 0.0625,
           "beta1": 0.875, "beta2": 0.9375, "beta1_power": 0.75, "beta2_power": 0.875, "logbase": 0.5, "sign_decay": 0.75, "beta": 0.75,
           "global_step": 3, "alpha_sign": 0.25}
POSITIVE = ("accum", "accum_update", "ms", "v", "vhat", "gradient_squared_accumulator", "mg_squared")
ATTRIBUTES = {"Adam": [{}, {"use_nesterov": True}], "Momentum": [{}, {"use_nesterov": True}], "KerasMomentum": [{}, {"use_nesterov": True}],
              "Adagrad": [{}, {"update_slots": False}], "AdagradV2": [{}, {"update_slots": False}], "FtrlV2": [{}, {"multiply_linear_by_lr": True}],
              "Ftrl": [{}, {"multiply_linear_by_lr": True}]}


def slot(c, name, shape):
    if name == "mg":
        return c.values(shape, -0.25, 0.25)
    low, high = (0.5, 2) if name in POSITIVE else (-1, 1)
    return c.values(shape, low, high)


def arguments(c, shape, indices=None, wrong_grad=False):
    found = []
    for a in c.op_def.input_arg:
        if a.is_ref or a.type == 20:
            found.append(slot(c, a.name, shape))
        elif a.name in ("grad", "delta"):
            s = ((len(indices),) + shape[1:]) if indices is not None else shape
            found.append(c.values(s + (1,) if wrong_grad else s, -1, 1))
        elif a.name == "indices":
            found.append(np.array(indices, c.type("Tindices")))
        elif a.name == "global_step":
            found.append(np.int64(3))
        else:
            found.append(np.array(SCALARS[a.name], c.T))
    return found


@cases(" ".join(NAMES), gradient=False, rtol=1e-4, atol=1e-5)
def optimizer(c):
    kind = c.op.replace("Resource", "").replace("Sparse", "").replace("Apply", "")
    sparse = "Sparse" in c.op
    for attrs in ATTRIBUTES.get(kind, [{}]):
        if sparse:
            yield Call(*arguments(c, (4, 2), [2, 0]), **attrs)
            yield Call(*arguments(c, (4, 2), [1, 1, 3]), **attrs)
            if c.full:
                yield Call(*arguments(c, (3,), [1]), **attrs)
                yield Call(*arguments(c, (3, 2), []), **attrs)
        else:
            yield Call(*arguments(c, (2, 3)), **attrs)
            if c.full:
                yield Call(*arguments(c, ()), **attrs)
                yield Call(*arguments(c, (0, 2)), **attrs)
                yield Call(*arguments(c, (37,)), **attrs)
    if c.full:
        if sparse:
            yield Call(*arguments(c, (4, 2), [4]))
            yield Call(*arguments(c, (4, 2), [-1]))
        else:
            yield Call(*arguments(c, (2, 3), wrong_grad=True))


@program("ResourceApplyGradientDescent ResourceApplyAdam ResourceSparseApplyAdagrad")
def apply_to_what_has_no_value(p):
    """Each variable in turn: none has a value, then all but one."""
    R = tf.raw_ops
    var, m, v = (R.VarHandleOp(dtype=tf.float32, shape=None, shared_name=n, name=n) for n in ("var", "m", "v"))
    grad, half = tf.ones([2, 3]), tf.constant(0.5)
    give = [R.AssignVariableOp(resource=h, value=grad) for h in (var, m, v)]
    drop = [R.DestroyResourceOp(resource=h) for h in (var, m, v)]
    steps = [R.ResourceApplyGradientDescent(var=var, alpha=half, delta=grad),
             R.ResourceApplyAdam(var=var, m=m, v=v, beta1_power=half, beta2_power=half, lr=half, beta1=half, beta2=half, epsilon=half, grad=grad),
             R.ResourceSparseApplyAdagrad(var=var, accum=m, lr=half, grad=grad, indices=tf.constant([0, 1]))]
    for step in steps:
        p.run(targets=[step])
    p.run(targets=give)
    for i in range(2):
        p.run(targets=[drop[i]])
        for step in steps:
            p.run(targets=[step])
        p.run(targets=[give[i]])
