#!/usr/bin/env python3
"""Makes src/kernels/sobol_directions.bin, the direction numbers of Sobol's sequence that Joe and Kuo chose, from what TensorFlow samples.

usage: make_sobol.py [--check]
Dimension 0 needs none. Dimension j > 0 has the j-th primitive polynomial over two elements, by degree and then by value, and as many odd numbers as its degree, the k-th
below 2^k. The file is a row of bits, lowest first: for each dimension the inner coefficients of the polynomial (degree - 1 bits), then the numbers without their lowest bit (k - 1
bits each). --check compares with the file; it also sees that the numbers that follow from these are TensorFlow's."""
import os
import sys

os.environ.update(TF_CPP_MIN_LOG_LEVEL="3", CUDA_VISIBLE_DEVICES="")

import numpy as np
import tensorflow as tf

PATH = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "src", "kernels", "sobol_directions.bin")
DIMENSIONS = 21200
DIGITS = 29
DEGREE = 18


def directions():
    """[digit][dimension]: odd numbers. Point 2^k differs from point 0 in direction k and, when there is one, in direction k - 1."""
    found = []
    for k in range(DIGITS):
        point = tf.raw_ops.SobolSample(dim=DIMENSIONS, num_results=1, skip=2**k - 1, dtype=tf.float64).numpy()[0]
        bits = (point * 2**DIGITS).astype(np.int64)
        found.append(bits ^ found[-1] if k else bits)
    return [v >> (DIGITS - 1 - k) for k, v in enumerate(found)]


def times_x(value, polynomial, degree):
    value <<= 1
    return value ^ polynomial if value >> degree else value


def multiply(a, b, polynomial, degree):
    product = 0
    while b:
        if b & 1:
            product ^= a
        a, b = times_x(a, polynomial, degree), b >> 1
    return product


def power_of_x(n, polynomial, degree):
    result, base = 1, 2 if degree > 1 else times_x(1, polynomial, degree)
    while n:
        if n & 1:
            result = multiply(result, base, polynomial, degree)
        base, n = multiply(base, base, polynomial, degree), n >> 1
    return result


def primitive_polynomials(degree):
    order = 2**degree - 1
    primes = [p for p in range(2, order + 1) if order % p == 0 and all(p % q for q in range(2, int(p**0.5) + 1))]
    for inner in range(2**(degree - 1)):
        polynomial = (1 << degree) | (inner << 1) | 1
        if power_of_x(order, polynomial, degree) == 1 and all(power_of_x(order // p, polynomial, degree) != 1 for p in primes if p < order or degree > 1):
            yield inner


def pack(numbers):
    """The bits, and the check of what follows from them."""
    bits, j = [], 1
    for degree in range(1, DEGREE + 1):
        for inner in primitive_polynomials(degree):
            if j == DIMENSIONS:
                break
            m = [int(numbers[k][j]) for k in range(DIGITS)]
            for k in range(degree, DIGITS):
                follows = m[k - degree] ^ (m[k - degree] << degree)
                for i in range(1, degree):
                    if inner >> (degree - 1 - i) & 1:
                        follows ^= m[k - i] << i
                assert m[k] == follows, f"dimension {j}: number {k} is {m[k]}, not {follows}"
            bits += [inner >> i & 1 for i in range(degree - 1)]
            for k in range(degree):
                assert m[k] & 1 and m[k] < 2 << k
                bits += [m[k] >> i & 1 for i in range(1, k + 1)]
            j += 1
    assert j == DIMENSIONS
    return np.packbits(np.array(bits, np.uint8), bitorder="little").tobytes()


def main():
    data = pack(directions())
    if sys.argv[1:] == ["--check"]:
        sys.exit(None if open(PATH, "rb").read() == data else "make_sobol.py: the file is not what TensorFlow samples")
    with open(PATH, "wb") as f:
        f.write(data)
    print(f"{PATH}: {len(data)} bytes")


if __name__ == "__main__":
    main()
