"""Queues, accumulators, barriers, and maps of sparse tensors."""
import numpy as np
import tensorflow as tf

from .table import PLAIN, program

v1, raw = tf.compat.v1, tf.raw_ops
NUMBERS = [t for t in PLAIN if t not in ("string", "bool")]
SUMS = ["float16", "bfloat16", "float32", "float64", "int32", "int64", "uint8", "int8", "int16", "uint16", "uint32", "uint64", "complex64", "complex128"]
I32, I64 = np.int32, np.int64


def queue_steps(p, made, v2):
    """What all queues can do. Elements are (x, int32 n)."""
    end = "V2" if v2 else ""
    call = lambda name, **more: getattr(raw, f"Queue{name}{end}")(handle=made, **more)
    types = [p.dtype, tf.int32]
    x, n, k = p.placeholder("x"), p.placeholder("n", tf.int32), p.placeholder("k", tf.int32)
    put, put_many = call("Enqueue", components=[x, n], timeout_ms=-1), call("EnqueueMany", components=[x, n], timeout_ms=-1)
    get = call("Dequeue", component_types=types, timeout_ms=-1)
    many = call("DequeueMany", n=k, component_types=types, timeout_ms=-1)
    up_to = call("DequeueUpTo", n=k, component_types=types, timeout_ms=-1)
    size, closed = call("Size"), call("IsClosed")
    close = call("Close", cancel_pending_enqueues=False)
    p.run([size, closed])
    p.run(feeds={x: p.values((2,)), n: I32(5)}, targets=[put])
    p.run(feeds={x: p.values((3, 2)), n: np.array([1, 2, 3], I32)}, targets=[put_many])
    p.run(feeds={x: p.values((3,)), n: I32(5)}, targets=[put])
    p.run(feeds={x: p.values((3, 2)), n: np.array([1, 2], I32)}, targets=[put_many])
    p.run(feeds={x: p.values((0, 2)), n: np.zeros((0,), I32)}, targets=[put_many])
    p.run([size])
    p.run(get)
    p.run(many, {k: I32(2)})
    p.run(many, {k: I32(-1)})
    p.run(feeds={x: p.values((2, 2)), n: np.array([8, 9], I32)}, targets=[put_many])
    p.run(targets=[close])
    p.run([size, closed])
    p.run(feeds={x: p.values((2,)), n: I32(5)}, targets=[put])
    p.run(many, {k: I32(9)})
    p.run(up_to, {k: I32(2)})
    p.run(up_to, {k: I32(9)})
    p.run(get)


def fifo(v2):
    def make(p):
        f = raw.FIFOQueueV2 if v2 else raw.FIFOQueue
        queue_steps(p, f(component_types=[p.dtype, tf.int32], shapes=[[2], []], capacity=9), v2)
    make.__name__ = "fifo_queue_v2" if v2 else "fifo_queue"
    return make


QUEUE_OPS = "QueueEnqueue{0} QueueEnqueueMany{0} QueueDequeue{0} QueueDequeueMany{0} QueueDequeueUpTo{0} QueueSize{0} QueueIsClosed{0} QueueClose{0}"
program("FIFOQueueV2 " + QUEUE_OPS.format("V2"), types=PLAIN)(fifo(True))
program("FIFOQueue " + " ".join(n for n in QUEUE_OPS.format("").split()), types=PLAIN)(fifo(False))


def shuffle(v2):
    def make(p):
        f = raw.RandomShuffleQueueV2 if v2 else raw.RandomShuffleQueue
        queue_steps(p, f(component_types=[p.dtype, tf.int32], shapes=[[2], []], capacity=9, min_after_dequeue=1, seed=3, seed2=4), v2)
    make.__name__ = "shuffle_queue_v2" if v2 else "shuffle_queue"
    return make


program("RandomShuffleQueueV2", types=["float32", "string", "int64"])(shuffle(True))
program("RandomShuffleQueue", types=["float32"])(shuffle(False))


def priority(v2):
    def make(p):
        f = raw.PriorityQueueV2 if v2 else raw.PriorityQueue
        q = f(component_types=[p.dtype], shapes=[[2]], capacity=9)
        end = "V2" if v2 else ""
        call = lambda name, **more: getattr(raw, f"Queue{name}{end}")(handle=q, **more)
        x, first, k = p.placeholder("x"), p.placeholder("first", tf.int64), p.placeholder("k", tf.int32)
        put = call("EnqueueMany", components=[first, x], timeout_ms=-1)
        get = call("Dequeue", component_types=[tf.int64, p.dtype], timeout_ms=-1)
        many = call("DequeueMany", n=k, component_types=[tf.int64, p.dtype], timeout_ms=-1)
        p.run(feeds={first: np.array([5, 1, 9, 1, -3], I64), x: p.values((5, 2))}, targets=[put])
        p.run(get)
        p.run(many, {k: I32(4)})
    make.__name__ = "priority_queue_v2" if v2 else "priority_queue"
    return make


program("PriorityQueueV2", types=["float32", "string", "int64"])(priority(True))
program("PriorityQueue", types=["float32"])(priority(False))


def padding(v2):
    def make(p):
        f = raw.PaddingFIFOQueueV2 if v2 else raw.PaddingFIFOQueue
        q = f(component_types=[p.dtype], shapes=[[None, 2]], capacity=9)
        end = "V2" if v2 else ""
        call = lambda name, **more: getattr(raw, f"Queue{name}{end}")(handle=q, **more)
        x, k = p.placeholder("x"), p.placeholder("k", tf.int32)
        put = call("Enqueue", components=[x], timeout_ms=-1)
        many = call("DequeueMany", n=k, component_types=[p.dtype], timeout_ms=-1)
        for length in (1, 3, 0):
            p.run(feeds={x: p.values((length, 2))}, targets=[put])
        p.run(feeds={x: p.values((1, 3))}, targets=[put])
        p.run(many, {k: I32(3)})
    make.__name__ = "padding_queue_v2" if v2 else "padding_queue"
    return make


program("PaddingFIFOQueueV2", types=PLAIN)(padding(True))
program("PaddingFIFOQueue", types=["float32"])(padding(False))


def accumulators(resource):
    def make(p):
        name = "ResourceConditionalAccumulator" if resource else "ConditionalAccumulator"
        start = "ResourceAccumulator" if resource else "Accumulator"
        a = getattr(raw, name)(dtype=p.dtype, shape=[2], reduction_type="SUM" if p.dtype.is_integer else "MEAN")
        x, step, k = p.placeholder("x"), p.placeholder("step", tf.int64), p.placeholder("k", tf.int32)
        apply = getattr(raw, start + "ApplyGradient")(handle=a, local_step=step, gradient=x)
        take = getattr(raw, start + "TakeGradient")(handle=a, num_required=k, dtype=p.dtype)
        count, move = getattr(raw, start + "NumAccumulated")(handle=a), getattr(raw, start + "SetGlobalStep")(handle=a, new_global_step=step)
        for s in (0, 1, 2):
            p.run(feeds={x: p.values((2,), 0, 4), step: I64(s)}, targets=[apply])
        p.run(feeds={x: p.values((3,), 0, 4), step: I64(0)}, targets=[apply])
        p.run([count])
        p.run([take], {k: I32(2)})
        p.run([count])
        p.run(feeds={x: p.values((2,), 0, 4), step: I64(0)}, targets=[apply])
        p.run([count])
        p.run(feeds={step: I64(5)}, targets=[move])
        p.run(feeds={x: p.values((2,), 0, 4), step: I64(4)}, targets=[apply])
        p.run(feeds={x: p.values((2,), 0, 4), step: I64(5)}, targets=[apply])
        p.run([count])
        p.run([take], {k: I32(1)})
        p.run([take], {k: I32(0)})
    make.__name__ = "resource_accumulators" if resource else "accumulators"
    return make


program("ConditionalAccumulator AccumulatorApplyGradient AccumulatorTakeGradient AccumulatorNumAccumulated AccumulatorSetGlobalStep",
        types=["float16", "float32", "float64"], rtol=1e-4)(accumulators(False))
program("ResourceConditionalAccumulator ResourceAccumulatorApplyGradient ResourceAccumulatorTakeGradient ResourceAccumulatorNumAccumulated "
        "ResourceAccumulatorSetGlobalStep", types=["float16", "float32", "float64"], rtol=1e-4)(accumulators(True))


@program("SparseConditionalAccumulator SparseAccumulatorApplyGradient SparseAccumulatorTakeGradient", types=["float16", "float32", "float64"])
def sparse_accumulators(p):
    a = raw.SparseConditionalAccumulator(dtype=p.dtype, shape=[4, 2])
    x, i, s, k = p.placeholder("x"), p.placeholder("i", tf.int64), p.placeholder("s", tf.int64), p.placeholder("k", tf.int32)
    apply = raw.SparseAccumulatorApplyGradient(handle=a, local_step=0, gradient_indices=i, gradient_values=x, gradient_shape=s, has_known_shape=True)
    take = raw.SparseAccumulatorTakeGradient(handle=a, num_required=k, dtype=p.dtype)
    shape = np.array([4, 2], I64)
    p.run(feeds={i: np.array([0, 2], I64), x: p.values((2, 2)), s: shape}, targets=[apply])
    p.run(feeds={i: np.array([2, 3], I64), x: p.values((2, 2)), s: shape}, targets=[apply])
    p.run(feeds={i: np.array([2, 3], I64), x: p.values((1, 2)), s: shape}, targets=[apply])
    p.run([take.indices, take.values, take.shape], {k: I32(2)})


@program("Barrier BarrierInsertMany BarrierTakeMany BarrierReadySize BarrierIncompleteSize BarrierClose", types=["float32", "string", "int64"])
def barriers(p):
    b = raw.Barrier(component_types=[p.dtype, tf.int32], shapes=[[2], []])
    keys, x, n, k = p.placeholder("keys", tf.string), p.placeholder("x"), p.placeholder("n", tf.int32), p.placeholder("k", tf.int32)
    first = raw.BarrierInsertMany(handle=b, keys=keys, values=x, component_index=0)
    second = raw.BarrierInsertMany(handle=b, keys=keys, values=n, component_index=1)
    take = raw.BarrierTakeMany(handle=b, num_elements=k, component_types=[p.dtype, tf.int32], allow_small_batch=True)
    ready, waiting, close = raw.BarrierReadySize(handle=b), raw.BarrierIncompleteSize(handle=b), raw.BarrierClose(handle=b)
    p.run(feeds={keys: np.array([b"a", b"b", b"c"], object), x: p.values((3, 2))}, targets=[first])
    p.run([ready, waiting])
    p.run(feeds={keys: np.array([b"b", b"a"], object), n: np.array([1, 2], I32)}, targets=[second])
    p.run([ready, waiting])
    p.run([take.indices, take.keys, *take.values], {k: I32(2)})
    p.run(feeds={keys: np.array([b"c", b"c"], object), n: np.array([1, 2], I32)}, targets=[second])
    p.run(targets=[close])
    p.run([take.indices, take.keys, *take.values], {k: I32(2)})


@program("AddSparseToTensorsMap AddManySparseToTensorsMap TakeManySparseFromTensorsMap", types=PLAIN)
def sparse_maps(p):
    i, x, s, handles = p.placeholder("i", tf.int64), p.placeholder("x"), p.placeholder("s", tf.int64), p.placeholder("handles", tf.int64)
    one = raw.AddSparseToTensorsMap(sparse_indices=i, sparse_values=x, sparse_shape=s, shared_name="m")
    many = raw.AddManySparseToTensorsMap(sparse_indices=i, sparse_values=x, sparse_shape=s, shared_name="m")
    take = raw.TakeManySparseFromTensorsMap(sparse_handles=handles, dtype=p.dtype, shared_name="m")
    p.run([one], {i: np.array([[0], [2]], I64), x: p.values((2,)), s: np.array([3], I64)})
    p.run([many], {i: np.array([[0, 1], [1, 0], [1, 2]], I64), x: p.values((3,)), s: np.array([2, 3], I64)})
    p.run([take.sparse_indices, take.sparse_values, take.sparse_shape], {handles: np.array([1, 0], I64)})
    p.run([take.sparse_values], {handles: np.array([0], I64)})
