"""Sounds: WAV files, spectrograms and the features of speech that are made of them."""
import struct

import numpy as np

from .table import Call, cases


def chunk(name, data):
    return name + struct.pack("<I", len(data)) + data


def form(channels=1, rate=8000, bits=16, code=1, frame=None, second=None, extra=b""):
    frame = channels * bits // 8 if frame is None else frame
    return chunk(b"fmt ", struct.pack("<HHIIHH", code, channels, rate, (frame * rate if second is None else second) % 2**32, frame, bits) + extra)


def wav(*chunks):
    body = b"WAVE" + b"".join(chunks)
    return b"RIFF" + struct.pack("<I", len(body)) + body


SAMPLES = struct.pack("<8h", 0, 1, -1, 32767, -32768, 1000, -1000, 7)
DATA = chunk(b"data", SAMPLES)


@cases("DecodeWav")
def decode_wav(c):
    one = lambda x: np.array(x, object)
    for content in (wav(form(), DATA), wav(form(2), DATA), wav(form(3), DATA), wav(form(extra=b"\0\0"), DATA), wav(chunk(b"JUNK", b"abcd"), form(), chunk(b"LIST", b"xyz1"), DATA),
                    wav(form(), chunk(b"data", b"")), wav(form(), DATA, chunk(b"LIST", b"ab")), wav(form(), DATA)[:-1], wav(form(), DATA)[:30], wav(form(), DATA)[:12], b"", b"RIFX", wav(form()),
                    wav(DATA), wav(form(bits=8), DATA), wav(form(code=3), DATA), wav(form(channels=0), DATA), wav(form(frame=4), DATA), wav(form(second=5), DATA),
                    wav(form(), DATA, DATA), wav(form(), b"data" + struct.pack("<I", 2**31) + SAMPLES), wav(form(), b"data" + struct.pack("<I", 1000) + SAMPLES),
                    wav(form(), b"LIST" + struct.pack("<I", 1000) + SAMPLES), wav(form(extra=b"\0\0\0\0"), DATA), wav(form(rate=2**31 + 5), DATA), wav(chunk(b"what", b""), form(), DATA)):
        yield Call(one(content))
    for channels, samples in ((1, -1), (3, -1), (-1, 3), (2, 12), (0, 2), (2, 0)):
        yield Call(one(wav(form(2), DATA)), desired_channels=channels, desired_samples=samples)
    yield Call(one([wav(form(), DATA)]))


@cases("EncodeWav")
def encode_wav(c):
    rate = np.int32(16000)
    yield Call(np.array([[0, 1], [-1, 0.5], [2, -2], [1e-5, 0.99999], [0.1, -0.1]], np.float32), rate)
    yield Call(np.zeros((0, 1), np.float32), rate)
    yield Call(np.array([[0.5]], np.float32), np.int32(1))
    yield Call(np.zeros((3, 0), np.float32), rate)
    yield Call(np.zeros((3,), np.float32), rate)
    yield Call(np.zeros((3, 1), np.float32), np.int32(0))
    yield Call(np.zeros((3, 1), np.float32), np.int32(-5))
    yield Call(np.zeros((3, 1), np.float32), np.array([5], np.int32))


@cases("AudioSpectrogram", rtol=1e-4, atol=1e-5)
def spectrogram(c):
    for shape, window, stride, squared in (((64, 1), 16, 8, False), ((64, 2), 16, 8, True), ((50, 3), 12, 5, True), ((40, 1), 2, 1, False), ((33, 1), 33, 7, True), ((10, 2), 16, 4, False), ((0, 1), 8, 4, False),
                                           ((20, 0), 8, 4, False), ((40, 1), 3, 50, True)):
        yield Call(c.values(shape), window_size=window, stride=stride, magnitude_squared=squared)
    yield Call(c.values((64,)), window_size=16, stride=8)


@cases("Mfcc", rtol=1e-4, atol=1e-4)
def mfcc(c):
    rate = np.int32(16000)
    power = lambda *shape: np.abs(c.values(shape))
    yield Call(power(1, 3, 257), rate)
    yield Call(power(2, 2, 513), np.int32(44100))
    yield Call(np.zeros((1, 2, 257), np.float32), rate)
    yield Call(power(1, 2, 129), rate, upper_frequency_limit=7000.0, lower_frequency_limit=100.0, filterbank_channel_count=20, dct_coefficient_count=20)
    yield Call(power(1, 2, 33), np.int32(4000))
    yield Call(power(0, 2, 33), rate)
    yield Call(-power(1, 1, 257), rate)
    for more in (dict(filterbank_channel_count=0), dict(dct_coefficient_count=0), dict(dct_coefficient_count=41), dict(lower_frequency_limit=-1.0), dict(upper_frequency_limit=10.0)):
        yield Call(power(1, 2, 257), rate, **more)
    yield Call(power(1, 2, 1), rate)
    yield Call(power(1, 2, 257), np.int32(0))
    yield Call(power(2, 257), rate)
    yield Call(power(1, 2, 257), np.array([16000], np.int32))
