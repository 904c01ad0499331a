"""Cells of recurrent networks: LSTM and GRU, a step or a whole sequence, and their gradients."""
import numpy as np

from .table import Call, cases

LOOSE = dict(rtol=1e-4, atol=2e-5)


def weights(c, inputs, cells):
    """w, the peepholes, the biases."""
    return [c.values((inputs + cells, 4 * cells), -1, 1)] + [c.values((cells,), -1, 1) for _ in range(3)] + [c.values((4 * cells,), -1, 1)]


def lstm_inputs(c, batch, inputs, cells, time=None):
    x = (batch, inputs) if time is None else (time, batch, inputs)
    return [c.values(x, -2, 2), c.values((batch, cells), -2, 2), c.values((batch, cells), -1, 1)] + weights(c, inputs, cells)


def wrong_shapes(inputs):
    """Each input in turn with a dimension more, and with one element more of each dimension."""
    for i, value in enumerate(inputs):
        if value.ndim:
            for axis in range(value.ndim):
                yield [v if j != i else np.concatenate([v, v.take([0], axis)], axis) for j, v in enumerate(inputs)]


@cases("LSTMBlockCell", gradient=False, **LOOSE)
def lstm_cell(c):
    for size in ((2, 3, 4), (1, 5, 1), (3, 1, 17), (5, 0, 3)):
        yield Call(*lstm_inputs(c, *size))
    yield Call(*lstm_inputs(c, 2, 3, 4), forget_bias=0.5, cell_clip=0.25, use_peephole=True)
    yield Call(*lstm_inputs(c, 3, 2, 5), cell_clip=-1.0, use_peephole=True)
    yield Call(*lstm_inputs(c, 0, 3, 4))
    yield Call(*lstm_inputs(c, 2, 3, 0))
    values = lstm_inputs(c, 2, 3, 4)
    values[1] = np.array([[np.inf, -np.inf, np.nan, 1e3], [0, -0.0, 5, -5]], c.T)
    yield Call(*values)
    if c.full:
        for wrong in wrong_shapes(lstm_inputs(c, 2, 3, 4)):
            if len(wrong[4]) == len(wrong[5]) == len(wrong[6]) == 4:  # TensorFlow does not look at these, and reads what is not there
                yield Call(*wrong)


def step_values(c, shape):
    """i, cs, f, o, ci, co."""
    return [c.values(shape, 0.1, 0.9), c.values(shape, -2, 2), c.values(shape, 0.1, 0.9), c.values(shape, 0.1, 0.9), c.values(shape, -0.9, 0.9), c.values(shape, -0.9, 0.9)]


@cases("LSTMBlockCellGrad", gradient=False, **LOOSE)
def lstm_cell_grad(c):
    for use_peephole in (False, True):
        for batch, inputs, cells in ((2, 3, 4), (3, 1, 17), (0, 2, 3)):
            grads = [c.values((batch, cells)), c.values((batch, cells))]
            yield Call(*lstm_inputs(c, batch, inputs, cells), *step_values(c, (batch, cells)), *grads, use_peephole=use_peephole)
    if c.full:
        for wrong in wrong_shapes(lstm_inputs(c, 2, 3, 4) + step_values(c, (2, 4)) + [c.values((2, 4)), c.values((2, 4))]):
            if len(wrong[4]) == len(wrong[5]) == len(wrong[6]) == 4:
                yield Call(*wrong, use_peephole=False)


@cases("BlockLSTM BlockLSTMV2", **LOOSE)
def lstm(c):
    more = dict(forget_bias=0.5) if c.op == "BlockLSTM" else {}
    for size in ((2, 3, 4, 3), (1, 4, 2, 5), (2, 1, 16, 2), (3, 2, 4, 0)):
        yield Call(np.int64(size[-1]), *lstm_inputs(c, *size))
    yield Call(np.int64(2), *lstm_inputs(c, 0, 2, 4, 2), grad=False)  # TensorFlow leaves the gradients of the weights unset then
    yield Call(np.int64(3), *lstm_inputs(c, 2, 3, 4, 3), cell_clip=0.25, use_peephole=True, **more)
    yield Call(np.int64(2), *lstm_inputs(c, 2, 3, 4, 4), cell_clip=0.0, outputs=[1, 6], grad=False)
    yield Call(np.int64(0), *lstm_inputs(c, 2, 3, 4, 4), outputs=[1, 6], grad=False)
    yield Call(np.array([1], np.int64), *lstm_inputs(c, 2, 3, 4, 3), grad=False)
    if c.full:
        for wrong in wrong_shapes(lstm_inputs(c, 2, 3, 4, 3)):
            if len(wrong[0]) == 3:  # else it is a longer sequence
                yield Call(np.int64(3), *wrong, grad=False)


@cases("BlockLSTMGrad BlockLSTMGradV2", gradient=False, **LOOSE)
def lstm_grad(c):
    for use_peephole in (False, True):
        for steps, (batch, inputs, cells, time) in ((3, (2, 3, 4, 3)), (2, (1, 4, 2, 4)), (0, (2, 3, 4, 2)), (2, (3, 2, 16, 2))):
            shape = (time, batch, cells)
            values = step_values(c, shape) + [c.values(shape, -1, 1), c.values(shape), c.values(shape)]
            yield Call(np.int64(steps), *lstm_inputs(c, batch, inputs, cells, time), *values, use_peephole=use_peephole)
    values = lstm_inputs(c, 2, 3, 4, 3) + step_values(c, (3, 2, 4)) + [c.values((3, 2, 4)) for _ in range(3)]
    yield Call(np.array([3], np.int64), *values, use_peephole=False)


def gru_inputs(c, batch, inputs, cells):
    width = inputs + cells
    return [c.values((batch, inputs), -2, 2), c.values((batch, cells), -1, 1), c.values((width, 2 * cells), -1, 1), c.values((width, cells), -1, 1), c.values((2 * cells,), -1, 1),
            c.values((cells,), -1, 1)]


@cases("GRUBlockCell", gradient=False, **LOOSE)
def gru_cell(c):
    for size in ((2, 3, 4), (1, 5, 1), (3, 1, 17), (5, 0, 3), (0, 3, 4), (2, 3, 0)):
        yield Call(*gru_inputs(c, *size))
    for wrong in wrong_shapes(gru_inputs(c, 2, 3, 4)):
        yield Call(*wrong)


@cases("GRUBlockCellGrad", gradient=False, **LOOSE)
def gru_cell_grad(c):
    def values(batch, inputs, cells):
        shape = (batch, cells)
        return gru_inputs(c, batch, inputs, cells) + [c.values(shape, 0.1, 0.9), c.values(shape, 0.1, 0.9), c.values(shape, -0.9, 0.9), c.values(shape)]
    for size in ((2, 3, 4), (3, 1, 17), (0, 3, 4), (2, 0, 3)):
        yield Call(*values(*size))
    for wrong in wrong_shapes(values(2, 3, 4)):
        yield Call(*wrong)
