"""Images: colours, resizing, boxes, cropping, codecs."""
import struct

import numpy as np

from .table import Call, cases, program

I32, F32 = np.int32, np.float32


@cases("RGBToHSV HSVToRGB", gradient=False)
def hsv(c):
    yield Call(c.values((2, 3, 3), 0, 1))
    yield Call(c.values((1, 2, 2, 3), 0, 1))
    yield Call(np.array([[0, 0, 0], [1, 1, 1], [0.5, 0.5, 0.5], [1, 0, 0.25], [0.25, 1, 0]], c.T))
    yield Call(c.values((2, 4), 0, 1))
    yield Call(c.values((), 0, 1))


@cases("AdjustHue AdjustSaturation", rtol=1e-4, atol=1e-5, gradient=False)
def adjust(c):
    for by in (0.0, 0.25, 0.75):
        yield Call(c.values((1, 2, 2, 3), 0, 1), np.array(by, F32))
    yield Call(c.values((2, 2, 3), 0, 1), np.array(0.5, F32))
    yield Call(c.values((2, 2, 4), 0, 1), np.array(0.5, F32))
    yield Call(c.values((0, 2, 2, 3), 0, 1), np.array(0.5, F32))


@cases("AdjustContrastv2", gradient=False)
def contrast(c):
    yield Call(c.values((1, 3, 2, 3), 0, 1), F32(0.5))
    yield Call(c.values((3, 2, 3), 0, 1), F32(2))
    yield Call(c.values((2, 3)), F32(2))


@cases("AdjustContrast", gradient=False)
def contrast_old(c):
    yield Call(c.values((1, 3, 2, 3), 0, 9), F32(0.5), F32(1), F32(7))


SIZES = [((1, 3, 4, 2), (6, 8)), ((2, 4, 4, 1), (2, 3)), ((1, 3, 3, 1), (3, 3)), ((1, 2, 3, 1), (5, 4))]


@cases("ResizeBilinear ResizeNearestNeighbor ResizeBicubic", rtol=1e-4, atol=1e-4, double=1e-5)
def resize(c):
    for attrs in ({}, {"align_corners": True}, {"half_pixel_centers": True}):
        for shape, size in SIZES if c.full else SIZES[:2]:
            yield Call(c.values(shape, 0, 99), np.array(size, I32), **attrs)
    yield Call(c.values((1, 3, 3, 1)), np.array([0, 2], I32), grad=False)
    yield Call(c.values((3, 3, 1)), np.array([2, 2], I32), grad=False)
    yield Call(c.values((1, 3, 3, 1)), np.array([2, 2, 2], I32), grad=False)


@cases("ResizeArea", rtol=1e-4, atol=1e-4, gradient=False)
def resize_area(c):
    for align in (False, True):
        for shape, size in SIZES if c.full else SIZES[:2]:
            yield Call(c.values(shape, 0, 99), np.array(size, I32), align_corners=align)


@cases("ResizeBilinearGrad ResizeBicubicGrad", rtol=1e-4, atol=1e-4, double=1e-5, gradient=False)
def resize_grad(c):
    for attrs in ({}, {"align_corners": True}, {"half_pixel_centers": True}):
        yield Call(c.values((1, 5, 4, 2), dtype=F32), c.values((1, 3, 3, 2)), **attrs)
        yield Call(c.values((1, 2, 2, 1), dtype=F32), c.values((1, 4, 3, 1)), **attrs)


@cases("ResizeNearestNeighborGrad", gradient=False)
def resize_nearest_grad(c):
    for attrs in ({}, {"align_corners": True}, {"half_pixel_centers": True}):
        yield Call(c.values((1, 5, 4, 2)), np.array([3, 3], I32), **attrs)
        yield Call(c.values((1, 2, 2, 1)), np.array([4, 3], I32), **attrs)


BOXES = np.array([[0, 0, 1, 1], [0.1, 0.2, 0.7, 0.9], [-0.25, 0.5, 1.25, 0.75]], F32)


@cases("CropAndResize", rtol=1e-4, atol=1e-4, double=1e-5)
def crop_and_resize(c):
    for method in ("bilinear", "nearest"):
        yield Call(c.values((2, 4, 5, 2), 0, 20), BOXES, np.array([0, 1, 0], I32), np.array([3, 2], I32), method=method, grad=method == "bilinear")
    yield Call(c.values((1, 4, 4, 1), 0, 20), BOXES, np.array([0, 0, 0], I32), np.array([2, 2], I32), extrapolation_value=9.0, grad=False)
    yield Call(c.values((1, 4, 4, 1), 0, 20), BOXES, np.array([0, 1, 0], I32), np.array([2, 2], I32), grad=False)
    yield Call(c.values((1, 4, 4, 1), 0, 20), BOXES, np.array([0], I32), np.array([2, 2], I32), grad=False)
    yield Call(c.values((1, 4, 4, 1), 0, 20), BOXES[:, :3], np.array([0, 0, 0], I32), np.array([2, 2], I32), grad=False)
    yield Call(c.values((1, 4, 4, 1), 0, 20), BOXES[0], np.array([0], I32), np.array([2, 2], I32), grad=False)


@cases("CropAndResizeGradImage", rtol=1e-4, atol=1e-4, double=1e-5, gradient=False)
def crop_grad_image(c):
    for method in ("bilinear", "nearest"):
        yield Call(c.values((3, 2, 2, 1), dtype=F32), BOXES, np.array([0, 1, 0], I32), np.array([2, 4, 4, 1], I32), method=method)


@cases("CropAndResizeGradBoxes", rtol=1e-4, atol=1e-4, gradient=False)
def crop_grad_boxes(c):
    yield Call(c.values((3, 2, 2, 1), dtype=F32), c.values((2, 4, 4, 1), 0, 20), BOXES, np.array([0, 1, 0], I32))


@cases("ExtractGlimpse ExtractGlimpseV2", gradient=False)
def glimpse(c):
    for centered, normalized in ((True, True), (False, True), (False, False)):
        yield Call(c.values((2, 5, 5, 1)), np.array([3, 2], I32), np.array([[0.25, -0.5], [0, 0]], F32) * (1 if normalized else 4), centered=centered, normalized=normalized,
                   uniform_noise=False, noise="zero")
    zero = dict(centered=True, normalized=True, uniform_noise=False, noise="zero")
    yield Call(c.values((1, 4, 4, 1)), np.array([6, 6], I32), np.zeros((1, 2), F32), **zero)
    yield Call(c.values((1, 4, 4, 1)), np.array([0, 6], I32), np.zeros((1, 2), F32), **zero)
    for offsets in ((2, 2), (1, 3), (2,)):
        yield Call(c.values((1, 4, 4, 1)), np.array([2, 2], I32), np.zeros(offsets, F32), **zero)
    yield Call(c.values((4, 4, 1)), np.array([2, 2], I32), np.zeros((1, 2), F32), **zero)
    yield Call(c.values((1, 4, 4, 1)), np.array([2], I32), np.zeros((1, 2), F32), **zero)


@cases("ImageProjectiveTransformV2 ImageProjectiveTransformV3", rtol=1e-3, atol=1e-3, double=1e-5, primary="dtype", gradient=False)
def projective(c):
    more = [F32(2)] if c.op.endswith("V3") else []
    move = np.array([[1, 0.25, -1, -0.125, 1, 0.5, 0, 0.0625 if c.is_float else 0]], F32)
    for interpolation in ("NEAREST", "BILINEAR"):
        for fill in ("CONSTANT", "REFLECT", "WRAP", "NEAREST") if c.full else ("CONSTANT",):
            yield Call(c.values((2, 4, 5, 2), 0, 9), move, np.array([4, 5], I32), *more, interpolation=interpolation, fill_mode=fill)
            turned = np.array([[1.1, 0.2, 0.3, -0.1, 0.9, 0.4, 0, 0], [1, 0, 2, 0, 1, -1, 0, 0]], F32)
            yield Call(c.values((2, 5, 4, 3), 0, 99), turned, np.array([6, 7], I32), *([F32(1.5)] if more else []), interpolation=interpolation, fill_mode=fill)
    for transforms, size in ((np.zeros((2, 8), F32), [1, 1]), (np.zeros((1, 7), F32), [1, 1]), (np.zeros((1, 8), F32), [0, 1]), (np.zeros((1, 8), F32), [1])):
        yield Call(c.values((1, 2, 2, 1), 0, 9), transforms, np.array(size, I32), *more, interpolation="NEAREST")


@cases("DrawBoundingBoxes", gradient=False)
def draw_boxes(c):
    yield Call(c.values((1, 6, 6, 3), 0, 1), BOXES[None], static=True)
    yield Call(c.values((1, 6, 6, 1), 0, 1), BOXES[None, :1], static=True)


@cases("DrawBoundingBoxesV2", gradient=False)
def draw_boxes_v2(c):
    yield Call(c.values((1, 6, 6, 3), 0, 1), BOXES[None], np.array([[1, 0, 0], [0, 1, 0]], F32))
    yield Call(c.values((1, 6, 6, 3), 0, 1), BOXES[None], np.array([[1, 0], [0, 1]], F32))
    yield Call(c.values((1, 6, 6, 3), 0, 1), BOXES[None], np.array([1, 0, 0], F32))


NMS = np.array([[0, 0, 1, 1], [0, 0.1, 1, 1.1], [0, -0.1, 1, 0.9], [0, 10, 1, 11], [0, 10.1, 1, 11.1], [0, 100, 1, 101]], F32)
SCORES = np.array([0.9, 0.75, 0.6, 0.95, 0.5, 0.3], F32)


def bad_nms(t, thresholds):
    """Calls with one thing wrong, of a version with so many thresholds behind the three first inputs."""
    rest = [np.array(v, t) for v in (0.5, 0, 0)[:thresholds]]
    boxes, scores = NMS.astype(t), SCORES.astype(t)
    for b, s, n in ((boxes.reshape(-1), scores, I32(3)), (boxes[:, :3], scores, I32(3)), (boxes, scores[:5], I32(3)), (boxes, scores.reshape(2, 3), I32(3)),
                    (boxes, scores, I32(-1)), (boxes, scores, np.array([3], I32))):
        yield Call(b, s, n, *rest)
    for i in range(thresholds):
        yield Call(boxes, scores, I32(3), *rest[:i], np.array([0.5], t), *rest[i + 1:])
        yield Call(boxes, scores, I32(3), *rest[:i], np.array(-1, t), *rest[i + 1:])


@cases("NonMaxSuppression", gradient=False)
def nms(c):
    for n in (3, 30, 0):
        yield Call(NMS, SCORES, I32(n), iou_threshold=0.5)
    yield Call(NMS, SCORES[:3], I32(3))
    yield Call(NMS, SCORES, I32(3), iou_threshold=1.5)
    for call in bad_nms(F32, 0):
        yield call


@cases("NonMaxSuppressionV2", gradient=False)
def nms_v2(c):
    for n in (3, 30):
        yield Call(NMS.astype(c.T), SCORES.astype(c.T), I32(n), np.array(0.5, c.type("T_threshold")))
    if c.type("T_threshold") == c.T:
        yield from bad_nms(c.T, 1)


@cases("NonMaxSuppressionV3 NonMaxSuppressionV4", gradient=False)
def nms_v3(c):
    t = c.type("T_threshold")
    for n, score in ((3, 0), (30, 0.4), (2, 0.96)):
        yield Call(NMS.astype(c.T), SCORES.astype(c.T), I32(n), np.array(0.5, t), np.array(score, t))
    if c.op.endswith("4"):
        yield Call(NMS.astype(c.T), SCORES.astype(c.T), I32(8), np.array(0.5, t), np.array(0, t), pad_to_max_output_size=True)
    if t == c.T:
        yield from bad_nms(c.T, 2)


@cases("NonMaxSuppressionV5", gradient=False)
def nms_v5(c):
    v = lambda x: np.array(x, c.T)
    for sigma in (0, 0.5):
        yield Call(NMS.astype(c.T), SCORES.astype(c.T), I32(6), v(0.5), v(0), v(sigma))
    yield Call(NMS.astype(c.T), SCORES.astype(c.T), I32(8), v(0.5), v(0.4), v(0), pad_to_max_output_size=True)
    yield from bad_nms(c.T, 3)


@cases("NonMaxSuppressionWithOverlaps", gradient=False)
def nms_overlaps(c):
    overlaps = np.array([[1, 0.7, 0], [0.7, 1, 0.2], [0, 0.2, 1]], F32)
    yield Call(overlaps, SCORES[:3], I32(3), F32(0.5), F32(0))
    yield Call(overlaps, SCORES[:3].reshape(1, 3), I32(3), F32(0.5), F32(0))
    yield Call(overlaps, SCORES[:2], I32(3), F32(0.5), F32(0))
    yield Call(overlaps[:, :2], SCORES[:3], I32(3), F32(0.5), F32(0))
    yield Call(overlaps, SCORES[:3], np.array([3], I32), F32(0.5), F32(0))
    yield Call(overlaps, SCORES[:3], I32(3), np.array([0.5], F32), F32(0))
    yield Call(overlaps, SCORES[:3], I32(3), F32(0.5), np.array([0], F32))


@cases("CombinedNonMaxSuppression", gradient=False)
def nms_combined(c):
    boxes = np.stack([NMS / 101, NMS[::-1] / 101]).reshape(2, 6, 1, 4).astype(F32)
    scores = np.stack([np.stack([SCORES, SCORES[::-1]], 1)] * 2).astype(F32)
    for attrs in ({}, {"pad_per_class": True}, {"clip_boxes": False}):
        yield Call(boxes, scores, I32(2), I32(3), F32(0.5), F32(0.4), **attrs)
    yield Call(boxes * np.array([1, np.nan, 1, 1], F32), scores, I32(2), I32(3), F32(0.5), F32(0.4))
    good = [I32(2), I32(3), F32(0.5), F32(0.4)]
    yield Call(boxes[:, :, 0], scores, *good)
    for i in range(4):
        yield Call(boxes, scores, *good[:i], np.array([1], good[i].dtype), *good[i + 1:])
        yield Call(boxes, scores, *good[:i], np.array(-1, good[i].dtype), *good[i + 1:])


def photo(c, height=6, width=7, channels=3):
    return c.ints((height, width, channels), 0, 256, np.uint8)


def encoded(kind, image):
    import tensorflow as tf
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        return np.array(session.run(getattr(tf.io, "encode_" + kind)(image)), object)


def bmp(bits, height):
    """A BMP two pixels wide."""
    pixels = bytes(range(7, 7 + (2 * bits // 8 + 3) // 4 * 4 * abs(height)))
    head = struct.pack("<IHHIIiiHHIIiiII", 54 + len(pixels), 0, 0, 54, 40, 2, height, 1, bits, 0, len(pixels), 0, 0, 0, 0)
    return np.array(b"BM" + head + pixels, object)


@cases("DecodePng", gradient=False, primary="dtype")
def decode_png(c):
    for channels in (1, 2, 3, 4):
        data = encoded("png", photo(c, channels=channels))
        yield Call(data, channels=0)
        for wanted in (1, 3, 4):
            yield Call(data, channels=wanted)
    yield Call(encoded("png", photo(c).astype(np.uint16) * 257))
    yield Call(np.array(b"junk", object))


@cases("DecodeImage", gradient=False, primary="dtype")
def decode_image(c):
    yield Call(encoded("png", photo(c)), channels=3)
    yield Call(np.array(b"junk", object))
    yield Call(np.array(b"", object))
    yield from webp_calls()
    yield from webp_calls(expand_animations=False)
    from_top = ((24, -3),) if c.types["dtype"] == "uint8" else ()  # TensorFlow's process ends with others
    for bits, height in ((8, 3), (24, 3), (32, 3), (16, 3)) + from_top:
        for channels in (0, 1, 3, 4):
            yield Call(bmp(bits, height), channels=channels)


# Four rows of five pixels that libwebp wrote: without loss as RGB and RGBA, and with loss.
WEBP = {name: bytes.fromhex(data) for name, data in {
    "rgb": "524946467c000000574542505650384c700000002f04c000008592dada1af9138043a2150885dbb8eda986e75061d55013004893030af0721b60c5d9ffbc6d601f6e7b504135916c35edf7"
    "818958610003a8a1a4fd0a882a5040858e0c0efa1fdbf81f5cb0adf217bbc486f88efed43967fc4f1597c2049bc4c0a08488ee1549972855d4",
    "rgba": "52494646b2000000574542505650384ca60000002f04c000109fa036b66d28f3c5fb1a2bc1c8855ad0812294ab839d3e9446b2d5fc50c0278347d2020dd0bf46d10032cfa8892429ba5fc4"
    "09204205064e16b2c8c828245078f85225b16d45eaff022c1e9a50810cb4c0d204bd6329b03bc2e0e2af81297e02d242d8fb39163b7e559104de3c9294e5509a0372e995f2f72fe9dcf516"
    "b22c9b36acdcf71166d510cd750e856d1ba9a1637cfe88fe07edb70696389fab367f4324",
    "lossy": "524946465e000000574542505650382052000000f001009d012a0500040001402625b00274ba0002ba7c989c00fe0b26084a1f4cee61b9d7fd57e7fc0f5f26c1ffc1c6fee657f8c0869f44"
    "b055347896fde1fcad7f5a1a52fd9a87015e5fdff1eb78fc780000",
}.items()}


def chunk(name, data):
    return name + struct.pack("<I", len(data)) + data + b"\0" * (len(data) % 2)


def animated(frames):
    """The canvas is that of one frame; there is alpha: TensorFlow's process ends with animations that have none."""
    def small(x):
        return struct.pack("<I", x)[:3]
    parts = [chunk(b"VP8X", bytes([0x12, 0, 0, 0]) + small(4) + small(3)), chunk(b"ANIM", struct.pack("<IH", 0, 0))]
    for i, frame in enumerate(frames):
        parts.append(chunk(b"ANMF", small(0) * 2 + small(4) + small(3) + small(40 * (i + 1)) + b"\0" + frame[12:]))
    body = b"WEBP" + b"".join(parts)
    return b"RIFF" + struct.pack("<I", len(body)) + body


def webp_calls(**more):
    for name, data in WEBP.items():
        for channels in (0, 1, 3, 4):
            yield Call(np.array(data, object), channels=channels, **more)
    yield Call(np.array(animated([WEBP["rgba"], WEBP["rgb"]]), object), **more)
    for bad in (WEBP["rgb"][:20], WEBP["rgb"][:40], WEBP["rgb"][:-8]):
        yield Call(np.array(bad, object), **more)


@cases("DecodeWebP", gradient=False, primary="dtype")
def decode_webp(c):
    yield from webp_calls()
    yield Call(np.array(b"junk", object))
    yield Call(np.array(b"", object))
    yield Call(encoded("png", photo(c)), channels=3)


SMOOTH = np.add.outer(np.arange(16) * 8, np.arange(16) * 6).astype(np.uint8)


@cases("ExtractJpegShape", gradient=False)
def jpeg_shape(c):
    yield Call(encoded("jpeg", np.stack([SMOOTH] * 3, -1)))
    yield Call(np.array(b"junk", object))


KERNELS = ("lanczos1", "lanczos3", "lanczos5", "gaussian", "box", "triangle", "keyscubic", "mitchellcubic")


@cases("ScaleAndTranslate", rtol=1e-4, atol=1e-4)
def scale_and_translate(c):
    f = lambda *a: np.array(a, F32)
    size = lambda *a: np.array(a, I32)
    for kernel in KERNELS if c.full else KERNELS[1:2]:
        for antialias in (True, False):
            attrs = {"kernel_type": kernel, "antialias": antialias}
            yield Call(c.values((2, 5, 6, 3), 0, 50), size(3, 9), f(0.6, 1.5), f(0, 0), **attrs)
            yield Call(c.values((1, 4, 4, 1), 0, 50), size(8, 2), f(2, 0.25), f(-1, 0.5), **attrs)
            yield Call(c.values((1, 4, 4, 1), 0, 50), size(4, 4), f(1, 1), f(100, -100), **attrs)
    bad = c.values((1, 4, 4, 1), 0, 50)
    yield Call(bad[0], size(3, 3), f(1, 1), f(0, 0), grad=False)
    yield Call(bad, size(3), f(1, 1), f(0, 0), grad=False)
    yield Call(bad, size(0, 3), f(1, 1), f(0, 0), grad=False)
    yield Call(bad, size(3, 3), f(0, 1), f(0, 0), grad=False)
    yield Call(bad, size(3, 3), f(1, -1), f(0, 0), grad=False)
    yield Call(bad, size(3, 3), f(1), f(0, 0), grad=False)
    yield Call(bad, size(3, 3), f(1, 1), f(0, 0, 0), grad=False)
    yield Call(bad[:, :0], size(3, 3), f(1, 1), f(0, 0), grad=False)
    yield Call(bad[:0], size(3, 3), f(1, 1), f(0, 0), grad=False)
    yield Call(bad, size(3, 3), f(1, 1), f(0, 0), kernel_type="nosuch", grad=False)


@cases("ScaleAndTranslateGrad", rtol=1e-4, atol=1e-4, gradient=False)
def scale_and_translate_grad(c):
    f = lambda *a: np.array(a, F32)
    for kernel in KERNELS:
        for antialias in (True, False):
            yield Call(c.values((2, 3, 9, 3)), c.values((2, 5, 6, 3)), f(0.6, 1.5), f(0, 0.5), kernel_type=kernel, antialias=antialias)
    yield Call(c.values((3, 9, 3)), c.values((2, 5, 6, 3)), f(0.6, 1.5), f(0, 0.5))
    yield Call(c.values((2, 3, 9, 3)), c.values((5, 6, 3)), f(0.6, 1.5), f(0, 0.5))
    yield Call(c.values((2, 3, 9, 3)), c.values((2, 5, 6, 3)), f(0, 1.5), f(0, 0.5))


def image_arguments(fed):
    """One argument of another rank than it has to have."""
    i32 = lambda v: fed(v, np.int32)
    f32 = lambda v: fed(v, np.float32)
    boxes, image = np.array([[0, 0, 1, 1.0]]), np.ones((1, 4, 4, 1))
    crop = dict(image=f32(image), boxes=f32(boxes), box_ind=i32([0]), crop_size=i32([2, 2]))
    yield "crop_b", "CropAndResize", {**crop, "boxes": f32(boxes[0])}
    yield "crop_i", "CropAndResize", {**crop, "box_ind": i32([[0]])}
    grad = dict(grads=f32(np.ones((1, 2, 2, 1))), image=f32(image), boxes=f32(boxes), box_ind=i32([0]))
    yield "crop_gb", "CropAndResizeGradBoxes", {**grad, "boxes": f32(boxes[0])}
    yield "crop_gd", "CropAndResizeGradBoxes", {**grad, "image": f32(np.ones((1, 4, 4, 2)))}
    overlaps = dict(overlaps=f32(np.ones((2, 2))), scores=f32([1, 2]), max_output_size=i32(1), overlap_threshold=f32(0.5), score_threshold=f32(0))
    yield "overlaps_r", "NonMaxSuppressionWithOverlaps", {**overlaps, "overlaps": f32([1, 2])}
    yield "overlaps_s", "NonMaxSuppressionWithOverlaps", {**overlaps, "overlaps": f32(np.ones((1, 2)))}
    several = dict(boxes=f32(np.ones((1, 3, 1, 4))), scores=f32(np.ones((1, 3, 2))), max_output_size_per_class=i32(1), max_total_size=i32(2), iou_threshold=f32(0.5),
                   score_threshold=f32(0))
    yield "several_b", "CombinedNonMaxSuppression", {**several, "boxes": f32(np.ones((1, 3, 1, 4, 1)))}
    yield "several_s", "CombinedNonMaxSuppression", {**several, "scores": f32(np.ones((1, 3, 2, 1)))}
    yield "warp", "ImageProjectiveTransformV3", dict(images=f32(image), transforms=f32(np.ones((1, 8))), output_shape=i32([2, 2]), fill_value=f32([0]), interpolation="NEAREST")
    yield "scale", "ScaleAndTranslate", dict(images=f32(image), size=i32([[2, 2]]), scale=f32([1, 1]), translation=f32([0, 0]))


@program("CropAndResize CropAndResizeGradBoxes NonMaxSuppressionWithOverlaps CombinedNonMaxSuppression ImageProjectiveTransformV3 ScaleAndTranslate")
def image_arguments_of_wrong_ranks(p):
    p.run_each(image_arguments)
