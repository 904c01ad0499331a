"""Random ops: with TensorFlow's seeds they must give TensorFlow's numbers."""
import numpy as np
import tensorflow as tf

from .table import Call, cases, program

SHAPES = [(), (3,), (2, 5), (0,), (257,)]


def shape_of(c, s, attr):
    return np.array(s, c.type(attr))


@cases("StatelessRandomUniform StatelessRandomNormal StatelessTruncatedNormal StatelessRandomUniformFullInt", types={"Tseed": ["int64", "int32"]},
       primary="dtype", gradient=False)
def stateless(c):
    for s in SHAPES:
        yield Call(shape_of(c, s, "T"), np.array([5, 7], c.type("Tseed")))
    yield Call(shape_of(c, (4,), "T"), np.array([2**31 - 1, 0], c.type("Tseed")))
    yield Call(shape_of(c, (-1,), "T"), np.array([5, 7], c.type("Tseed")))
    yield Call(shape_of(c, (2,), "T"), np.array([5], c.type("Tseed")))


@cases("StatelessRandomUniformInt", primary="dtype", gradient=False)
def stateless_int(c):
    d = c.type("dtype")
    for s in SHAPES:
        yield Call(shape_of(c, s, "T"), np.array([5, 7], c.type("Tseed")), np.array(3, d), np.array(100, d))
    yield Call(shape_of(c, (2,), "T"), np.array([5, 7], c.type("Tseed")), np.array(5, d), np.array(5, d))


@cases("StatelessRandomUniformV2 StatelessRandomNormalV2 StatelessTruncatedNormalV2 StatelessRandomUniformFullIntV2", primary="dtype", gradient=False)
def stateless_v2(c):
    for alg in (1, 2, 3):
        counter = np.array([3, 9] if alg != 2 else [3], np.uint64)
        for s in SHAPES if c.full else SHAPES[1:3]:
            yield Call(shape_of(c, s, "Tshape"), np.array([77], np.uint64), counter, np.int32(alg))
    yield Call(shape_of(c, (2,), "Tshape"), np.array([77], np.uint64), np.array([3, 9], np.uint64), np.int32(9))
    yield Call(shape_of(c, (2,), "Tshape"), np.array([77, 1], np.uint64), np.array([3, 9], np.uint64), np.int32(1))
    yield Call(shape_of(c, (2,), "Tshape"), np.array([77], np.uint64), np.array([[3, 9]], np.uint64), np.int32(1))
    yield Call(shape_of(c, (2,), "Tshape"), np.array([77], np.uint64), np.array([3, 9], np.uint64), np.array([1], np.int32))


@cases("StatelessRandomUniformIntV2", primary="dtype", gradient=False)
def stateless_int_v2(c):
    d = c.type("dtype")
    for alg in (1, 2):
        counter = np.array([3, 9] if alg != 2 else [3], np.uint64)
        yield Call(shape_of(c, (7,), "Tshape"), np.array([77], np.uint64), counter, np.int32(alg), np.array(3, d), np.array(100, d))
    yield Call(shape_of(c, (2,), "Tshape"), np.array([77], np.uint64), np.array([3, 9], np.uint64), np.int32(1), np.array(5, d), np.array(5, d))


@cases("StatelessRandomGammaV2", primary="dtype", rtol=1e-3, gradient=False)
def stateless_gamma(c):
    yield Call(shape_of(c, (4, 2), "T"), np.array([5, 7], c.type("Tseed")), np.array([0.5, 3], c.type("dtype")))


@cases("StatelessRandomGammaV3", primary="dtype", rtol=1e-3, gradient=False)
def stateless_gamma_v3(c):
    yield Call(shape_of(c, (4, 2), "shape_dtype"), np.array([77], np.uint64), np.array([3, 9], np.uint64), np.int32(1), np.array([0.5, 3], c.type("dtype")))
    yield Call(shape_of(c, (4, 3), "shape_dtype"), np.array([77], np.uint64), np.array([3, 9], np.uint64), np.int32(1), np.array([0.5, 3], c.type("dtype")))
    yield Call(shape_of(c, (4, 2), "shape_dtype"), np.array([77], np.uint64), np.array([3], np.uint64), np.int32(2), np.array([0.5, 3], c.type("dtype")))


@cases("StatelessMultinomial", gradient=False)
def stateless_multinomial(c):
    yield Call(c.values((2, 4), 0, 3), np.int32(9), np.array([5, 7], c.type("Tseed")))
    yield Call(c.values((2, 4), 0, 3), np.int32(-1), np.array([5, 7], c.type("Tseed")))
    yield Call(c.values((4,), 0, 3), np.int32(3), np.array([5, 7], c.type("Tseed")))
    yield Call(c.values((2, 4), 0, 3), np.array([3], np.int32), np.array([5, 7], c.type("Tseed")))
    yield Call(c.values((2, 4), 0, 3), np.int32(3), np.array([5], c.type("Tseed")))
    for shape, n in (((2, 0), 3), ((2, 0), 0), ((0, 0), 3), ((0, 4), 3)):
        yield Call(c.values(shape), np.int32(n), np.array([5, 7], c.type("Tseed")))


@cases("StatelessShuffle", gradient=False)
def stateless_shuffle(c):
    yield Call(c.values((9,)), np.array([77], np.uint64), np.array([3, 9], np.uint64), np.int32(1))
    yield Call(c.values((4, 2)), np.array([77], np.uint64), np.array([3, 9], np.uint64), np.int32(1))


@cases("StatelessRandomGetKeyCounter StatelessRandomGetKeyCounterAlg", gradient=False)
def key_counter(c):
    yield Call(np.array([5, 7], c.type("Tseed")))
    yield Call(np.array([-5, 2**31 - 1], c.type("Tseed")))
    yield Call(np.array([5], c.type("Tseed")))


@cases("StatelessRandomGetAlg", gradient=False)
def get_alg(c):
    yield Call()


@cases("RandomUniform RandomStandardNormal TruncatedNormal", primary="dtype", gradient=False)
def seeded(c):
    for s in SHAPES:
        yield Call(shape_of(c, s, "T"), seed=3, seed2=len(s) + 1)
        yield Call(shape_of(c, s, "T"), seed=3, seed2=len(s) + 1)


@cases("RandomUniformInt", primary="Tout", gradient=False)
def seeded_int(c):
    d = c.type("Tout")
    for s in SHAPES:
        yield Call(shape_of(c, s, "T"), np.array(-3, d), np.array(100, d), seed=3, seed2=len(s) + 1)
    yield Call(shape_of(c, (2,), "T"), np.array(5, d), np.array(5, d), seed=3, seed2=2)


@cases("RandomGamma", rtol=1e-3, gradient=False)
def seeded_gamma(c):
    yield Call(shape_of(c, (3,), "S"), np.array([0.5, 3, 1], c.T), seed=3, seed2=4)
    yield Call(shape_of(c, (3,), "S"), np.array([0.5, 3, 1], c.T), seed=3, seed2=4)


@cases("RandomPoisson", primary="dtype", gradient=False)
def seeded_poisson(c):
    yield Call(shape_of(c, (5,), "S"), np.array([0.5, 3, 20], c.type("dtype")), seed=3, seed2=4)


@cases("RandomPoissonV2", primary="R", gradient=False)
def seeded_poisson_v2(c):
    yield Call(shape_of(c, (5,), "S"), np.array([1, 3, 20], c.type("R")), seed=3, seed2=4)
    yield Call(shape_of(c, (5,), "S"), np.array([], c.type("R")), seed=3, seed2=4)


@cases("RandomShuffle", gradient=False)
def seeded_shuffle(c):
    yield Call(c.values((9,)), seed=3, seed2=4)
    yield Call(c.values((9,)), seed=3, seed2=4)
    yield Call(c.values((4, 2)), seed=3, seed2=4)
    yield Call(c.values((0,)), seed=3, seed2=4)
    yield Call(c.values(()), seed=3, seed2=4)


@cases("Multinomial", gradient=False)
def seeded_multinomial(c):
    yield Call(c.values((2, 4), 0, 3), np.int32(9), seed=3, seed2=4)
    yield Call(c.values((2, 4), 0, 3), np.int32(9), seed=3, seed2=4)
    yield Call(c.values((2, 0)), np.int32(9), seed=3, seed2=4)
    yield Call(c.values((2, 0)), np.int32(0), seed=3, seed2=4)
    yield Call(c.values((0, 0)), np.int32(3), seed=3, seed2=4)
    yield Call(c.values((2, 4), 0, 3), np.int32(-1), seed=3, seed2=4)
    yield Call(c.values((2, 4), 0, 3), np.array([3], np.int32), seed=3, seed2=4)
    yield Call(c.values((4,), 0, 3), np.int32(3), seed=3, seed2=4)


def samplers(**more):
    def make(c):
        for unique in (True, False):
            yield Call(np.array([[1], [3], [5]], np.int64), num_true=1, num_sampled=4, unique=unique, seed=3, seed2=4, **more)
            yield Call(np.array([[1, 2], [3, 0]], np.int64), num_true=2, num_sampled=4, unique=unique, seed=3, seed2=4, **more)
        yield Call(np.array([1], np.int64), num_true=1, num_sampled=4, unique=True, seed=3, seed2=4, **more)
        yield Call(np.array([[1], [99]], np.int64), num_true=1, num_sampled=4, unique=True, seed=3, seed2=4, **more)
        yield Call(np.array([[1], [-1]], np.int64), num_true=1, num_sampled=4, unique=False, seed=3, seed2=4, **more)
    return make


cases("UniformCandidateSampler LogUniformCandidateSampler LearnedUnigramCandidateSampler ThreadUnsafeUnigramCandidateSampler", rtol=1e-4, gradient=False)(samplers(range_max=10))
@cases("FixedUnigramCandidateSampler", rtol=1e-4, gradient=False)
def fixed_sampler(c):
    yield from samplers(range_max=6, unigrams=[1.0, 2.0, 3.0, 1.0, 5.0, 1.0], distortion=0.75)(c)
    for more in (dict(range_max=9, unigrams=[1.0, 2.0]), dict(range_max=3, unigrams=[1.0, 2.0, 3.0], num_shards=2, shard=1), dict(range_max=3, unigrams=[1.0, 2.0, 3.0], num_shards=2, shard=2),
                 dict(range_max=1, unigrams=[1.0, 2.0, 3.0], num_shards=2, shard=1), dict(range_max=4, unigrams=[1.0, 2.0, 3.0], num_reserved_ids=1),
                 dict(range_max=3, unigrams=[]), dict(range_max=3, unigrams=[1.0], vocab_file="both")):
        yield Call(np.array([[0], [1]], np.int64), num_true=1, num_sampled=2, unique=False, seed=3, seed2=4, **more)


@cases("AllCandidateSampler", gradient=False)
def all_sampler(c):
    yield Call(np.array([[1], [3]], np.int64), num_true=1, num_sampled=5, unique=True, seed=3, seed2=4)
    yield Call(np.array([[1], [5]], np.int64), num_true=1, num_sampled=5, unique=True, seed=3, seed2=4)


@cases("ComputeAccidentalHits", gradient=False)
def accidental_hits(c):
    yield Call(np.array([[1, 2], [3, 0]], np.int64), np.array([0, 2, 5, 1], np.int64), num_true=2)


@cases("SampleDistortedBoundingBox", gradient=False)
def sample_box(c):
    yield Call(np.array([60, 50, 3], c.T), np.array([[[0.1, 0.2, 0.7, 0.9]]], np.float32), seed=3, seed2=4, min_object_covered=0.1)
    yield Call(np.array([60, 50, 3], c.T), np.zeros((1, 0, 4), np.float32), seed=3, seed2=4, use_image_if_no_bounding_boxes=True)
    yield Call(np.array([60, 50, 3], c.T), np.zeros((1, 0, 4), np.float32), seed=3, seed2=4)
    box = np.array([[[0.1, 0.2, 0.7, 0.9]]], np.float32)
    for attrs in (dict(aspect_ratio_range=[2, 0.5]), dict(aspect_ratio_range=[0, 1]), dict(area_range=[0, 0.5]), dict(area_range=[0.5, 1.5]), dict(area_range=[0.5, 0.1]),
                  dict(max_attempts=0), dict(max_attempts=-1)):
        yield Call(np.array([60, 50, 3], c.T), box, seed=3, seed2=4, **attrs)
    for size in ([60, 50], [[60, 50, 3]], [0, 50, 3], [60, 0, 3]) + (([60, -1, 3], [-1, 50, 3]) if c.name[0] == "i" else ()):
        yield Call(np.array(size, c.T), box, seed=3, seed2=4)
    for wrong in ([[[0.6, 0.2, 0.1, 0.7]]], [[[0.1, 0.2, 1.6, 0.7]]], [[0.1, 0.2, 0.7, 0.9]], [[[0.1, 0.2, 0.7]]]):
        yield Call(np.array([60, 50, 3], c.T), np.array(wrong, np.float32), seed=3, seed2=4)


@cases("SampleDistortedBoundingBoxV2", gradient=False)
def sample_box_v2(c):
    yield Call(np.array([60, 50, 3], c.T), np.array([[[0.1, 0.2, 0.7, 0.9]]], np.float32), np.float32(0.1), seed=3, seed2=4)


@cases("StatelessSampleDistortedBoundingBox", gradient=False)
def sample_box_stateless(c):
    yield Call(np.array([60, 50, 3], c.T), np.array([[[0.1, 0.2, 0.7, 0.9]]], np.float32), np.float32(0.1), np.array([5, 7], c.type("Tseed")))


@cases("StatelessRandomPoisson", types={"Rtype": ["float16", "float32", "float64", "int32", "int64"]}, primary="dtype", gradient=False)
def stateless_poisson(c):
    r = c.type("Rtype")
    for seed in ([1, 2], [-5, 99]):
        yield Call(np.array([6, 3], c.type("T")), np.array(seed, c.type("Tseed")), np.array([1, 5, 40], r))
    yield Call(np.array([5], c.type("T")), np.array([3, 4], c.type("Tseed")), np.array(3, r))
    yield Call(np.array([0, 2], c.type("T")), np.array([3, 4], c.type("Tseed")), np.array([3, 4], r))
    yield Call(np.array([6, 2], c.type("T")), np.array([3, 4], c.type("Tseed")), np.array([1, 5, 40], r))
    yield Call(np.array([6, 3], c.type("T")), np.array([3], c.type("Tseed")), np.array([1, 5, 40], r))


@cases("StatelessRandomBinomial", types={"S": ["int32"]}, primary="dtype", gradient=False)
def stateless_binomial(c):
    t, shape, seed = c.type("T"), lambda *a: np.array(a, c.type("S")), lambda *a: np.array(a, c.type("Tseed"))
    yield Call(shape(9, 4), seed(1, 2), np.array([10, 40, 100, 3], t), np.array([0.25, 0.5, 0.75, 0.9], t))
    yield Call(shape(9, 2, 3), seed(-7, 2), np.array([[10], [300]], t), np.array([0.125, 0.5, 0.96875], t))
    yield Call(shape(7), seed(5, 6), np.array(50, t), np.array(0.5, t))
    yield Call(shape(2, 6), seed(5, 6), np.array([0, -3, 5, 5, 5, 5], t), np.array([0.5, 0.5, 0, 1, -1, 2], t))
    if np.dtype(t).kind == "f" and c.types["dtype"] not in ("int32", "int64"):
        yield Call(shape(2, 4), seed(5, 6), np.array([5, 0, 5, 7], t), np.array([np.nan, np.nan, 0.5, np.nan], t))
    yield Call(shape(0, 2), seed(5, 6), np.array([3, 4], t), np.array(0.5, t))
    yield Call(shape(3), seed(5, 6), np.array([3, 4], t), np.array(0.5, t))
    yield Call(shape(3, 3), seed(5, 6), np.array([3, 4], t), np.array([0.5, 0.5, 0.5], t))
    yield Call(shape(2), seed(5), np.array([3, 4], t), np.array(0.5, t))


@cases("StatefulRandomBinomial", types={"S": ["int32"]}, primary="dtype", gradient=False)
def stateful_binomial(c):
    t, state, shape = c.type("T"), np.array([3, 9, 77], np.int64), lambda *a: np.array(a, c.type("S"))
    yield Call(state, np.int64(1), shape(9, 3), np.array([10, 40, 3], t), np.array([0.25, 0.5, 0.875], t))
    yield Call(state, np.int64(1), shape(5, 2), np.array([10, 400], t), np.array(0.5, t))
    yield Call(state, np.int64(2), shape(5, 2), np.array([10, 400], t), np.array(0.5, t))
    yield Call(state[:2], np.int64(1), shape(5, 2), np.array([10, 400], t), np.array(0.5, t))
    yield Call(state, np.int64(1), shape(5), np.array([10, 400], t), np.array(0.5, t))


def bounds(c, t):
    """Parameters that ask for each way of drawing: most of the distribution, a narrow stretch of it, its tail, one side only."""
    inf = np.inf
    return [np.array(a, t) for a in ([0, 1, 0.5, 0, 2], [1, 2, 1, 0.5, 1], [-2, 1, 2, 3, -inf], [2, 1.5, inf, inf, -1])]


@cases("ParameterizedTruncatedNormal", types={"T": ["int32"]}, primary="dtype", gradient=False)
def parameterized_truncated_normal(c):
    t, shape, seeds = c.type("dtype"), lambda *a: np.array(a, c.type("T")), dict(seed=5, seed2=9)
    one = lambda x: np.array(x, t)
    yield Call(shape(5, 7), *bounds(c, t), **seeds)
    yield Call(shape(3, 50), one(1), one(2), one(-2), one(3), **seeds)
    yield Call(shape(6), one([1]), one([2]), one(4), one(np.inf), **seeds)
    yield Call(shape(2, 3), one([1, 2]), one(1), one([0, 0]), one(0.5), **seeds)
    yield Call(shape(0, 3), one(1), one(1), one(0), one(1), **seeds)
    yield Call(shape(2), one(1), one(-1), one(0), one(1), **seeds)
    yield Call(shape(2), one(1), one(1), one(1), one(0), **seeds)
    yield Call(shape(2), one(1), one(1), one(-np.inf), one(np.inf), **seeds)
    yield Call(shape(3), one([1, 2]), one(1), one(0), one(1), **seeds)
    yield Call(shape(), one(1), one(1), one(0), one(1), **seeds)


@cases("StatelessParameterizedTruncatedNormal", types={"S": ["int32"]}, primary="dtype", gradient=False)
def stateless_parameterized_truncated_normal(c):
    t, shape, seed = c.type("dtype"), lambda *a: np.array(a, c.type("S")), lambda *a: np.array(a, c.type("Tseed"))
    one = lambda x: np.array(x, t)
    yield Call(shape(9, 5), seed(1, 2), *bounds(c, t))
    yield Call(shape(4, 2, 3), seed(-7, 2), one([[0], [1]]), one([1, 2, 3]), one(-1), one([[2.5], [1.5]]))
    yield Call(shape(60), seed(5, 6), one(1), one(2), one(-2), one(3))
    yield Call(shape(0, 2), seed(5, 6), one([3, 4]), one(1), one(0), one(5))
    yield Call(shape(2, 2), seed(5, 6), one([3, 4]), one([1, -1]), one(0), one(5))
    yield Call(shape(3), seed(5, 6), one([3, 4]), one(1), one(0), one(5))
    yield Call(shape(3, 3), seed(5, 6), one([3, 4]), one([1, 1, 1]), one(0), one(5))
    yield Call(shape(2), seed(5), one([3, 4]), one(1), one(0), one(5))


@cases("StatefulUniform StatefulStandardNormalV2 StatefulTruncatedNormal StatefulUniformFullInt", types={"shape_dtype": ["int32"]}, primary="dtype", gradient=False)
def stateful(c):
    state, shape = np.array([3, 9, 77], np.int64), lambda *a: np.array(a, c.type("shape_dtype"))
    for s in SHAPES if c.full else SHAPES[1:3]:
        yield Call(state, np.int64(1), shape(*s))
    yield Call(np.array([-1, -1, -5, 8], np.int64), np.int64(1), shape(5))
    for algorithm in (0, 2, 3, -1):
        yield Call(state, np.int64(algorithm), shape(5))
    yield Call(state, np.array([1], np.int64), shape(5))
    yield Call(state[:2], np.int64(1), shape(5))
    yield Call(state.reshape(1, 3), np.int64(1), shape(5))
    yield Call(state, np.int64(1), shape(-1))


@cases("StatefulUniformInt", types={"shape_dtype": ["int32"]}, primary="dtype", gradient=False)
def stateful_int(c):
    d, state, shape = c.type("dtype"), np.array([3, 9, 77], np.int64), lambda *a: np.array(a, c.type("shape_dtype"))
    for s in SHAPES:
        yield Call(state, np.int64(1), shape(*s), np.array(3, d), np.array(100, d))
    yield Call(state, np.int64(1), shape(5), np.array(np.iinfo(d).min, d), np.array(np.iinfo(d).max, d))
    yield Call(state, np.int64(1), shape(5), np.array(3, d), np.array(3, d))
    yield Call(state, np.int64(1), shape(0), np.array(3, d), np.array(3, d))
    yield Call(state, np.int64(1), shape(5), np.array([3], d), np.array(5, d))
    yield Call(state, np.int64(1), shape(5), np.array(3, d), np.array([5], d))
    yield Call(state, np.int64(2), shape(5), np.array(3, d), np.array(5, d))


@cases("StatefulStandardNormal", types={"shape_dtype": ["int32"]}, primary="dtype", gradient=False)
def stateful_normal(c):
    state, shape = np.array([1, 3, 9, 77], np.int64), lambda *a: np.array(a, c.type("shape_dtype"))
    for s in SHAPES:
        yield Call(state, shape(*s))
    yield Call(state[:3], shape(5))
    yield Call(state[:0], shape(5))
    yield Call(np.array([2, 3, 9, 77], np.int64), shape(5))


@cases("RandomIndexShuffle", types={"Tseed": ["int32", "uint32", "int64", "uint64"]}, primary="dtype", gradient=False)
def index_shuffle(c):
    d, seed = c.type("dtype"), lambda *a: np.array(a, np.int64).astype(c.type("Tseed"))
    for most in (0, 1, 5, 65535, 65536, 65537, 2**18, 2**31 - 1):
        yield Call(np.array([0, 1, max(most - 1, 0)], d), seed(1, 2, 3), np.array(most, d))
    yield Call(np.arange(40).astype(d), seed(7, -2, 99), np.array(39, d), rounds=8)
    yield Call(np.array(3, d), seed(1, 2, 3), np.array(10, d))
    yield Call(np.array(3, d), seed((1, 2, 3), (4, 5, 6)), np.array(10, d))
    yield Call(np.array([3, 4], d), seed((1, 2, 3), (4, 5, 6)), np.array([10, 70000], d), rounds=6)
    yield Call(np.zeros((0,), d), seed(1, 2, 3), np.array(10, d))
    yield Call(np.array([3, 4], d), seed((1, 2, 3), (4, 5, 6), (7, 8, 9)), np.array(10, d))
    yield Call(np.array([3, 4], d), seed(1, 2), np.array(10, d))
    yield Call(np.array([3, 4], d), seed(1, 2, 3, 4), np.array(10, d))
    yield Call(np.array([3, 4], d), seed(1, 2, 3), np.array([10, 11, 12], d))
    yield Call(np.array([[3, 4]], d), seed(1, 2, 3), np.array(10, d))
    if c.name.startswith("int"):
        yield Call(np.array([3, 4], d), seed(1, 2, 3), np.array(-1, d))
        yield Call(np.array([-3, 4], d), seed(1, 2, 3), np.array(10, d))
    if c.name.endswith("64"):
        yield Call(np.array([3, 2**62], d), seed(1, 2, 3), np.array(2**63 - 1, d))
        yield Call(np.array([3, 2**40], d), seed(1, 2, 3), np.array(2**40 + 5, d))


@cases("SobolSample", primary="dtype", rtol=1e-9, gradient=False)
def sobol(c):
    for dim, count, skip in [(1, 1, 0), (1, 10, 0), (2, 20, 0), (3, 17, 5), (40, 8, 100), (2, 1100, 1000), (5, 3, 2**29), (300, 2, 40000),
                             (0, 1, 0), (-1, 1, 0), (21201, 1, 0), (1, 0, 0), (1, 1, -1), (1, 2**31 - 1, 0), (1, 2**30, 2**30)]:
        yield Call(np.int32(dim), np.int32(count), np.int32(skip))
    yield Call(np.int32([1]), np.int32(1), np.int32(1))
    yield Call(np.int32(1), np.int32([1, 2]), np.int32(1))
    yield Call(np.int32(1), np.int32(1), np.int32([]))


@program("SobolSample", types=["float32", "float64"])
def sobol_of_many_dimensions(p):
    skip = p.placeholder("skip", tf.int32)
    points = tf.raw_ops.SobolSample(dim=21200, num_results=3, skip=skip, dtype=p.dtype)
    parts = [points[:, at:at + 3] for at in (0, 1, 2, 5, 11, 35, 99, 159, 335, 479, 1109, 1865, 3665, 5713, 13423, 17000, 21197)]
    for count in (0, 1, 1000, 2**20 - 2, 2**28 + 12345):
        p.run(parts, {skip: np.int32(count)})


@cases("StochasticCastToInt", types={"Tin": ["float16", "bfloat16", "float32", "float64"], "Tout": ["int8", "int16", "int32"], "*": []}, primary="Tin", gradient=False)
def stochastic_cast(c):
    key, counter, t = np.array([77], np.uint64), np.array([3, 9], np.uint64), c.type("Tin")
    for n in (1, 3, 8, 13, 37):
        yield Call(c.rng.uniform(-40, 40, n).astype(t), key, counter, np.int32(1))
    yield Call(np.array([[0.25, 3, -2, np.nan, 127, 128], [-0.5, -128, -129.5, 0, 0.75, 60.5]]).astype(t), key, counter, np.int32(1))
    yield Call(np.array([1e4, -1e4, 40000.5, np.inf, -np.inf, -4e4, 5e8, -6e9, 7e9, 0.5, 32767, 32766.5]).astype(t), key, counter, np.int32(1))
    yield Call(np.zeros((0, 2), t), key, counter, np.int32(1))
    yield Call(np.array(0.5, t), key, counter, np.int32(2))
    yield Call(np.array(0.5, t), np.array([1, 2], np.uint64), counter, np.int32(1))
