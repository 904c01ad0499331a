/* philox_block.h: many numbers of a Philox generator at once, and the uniform numbers that are made of them. */
#pragma once
#include "base/rng.h"

/* Groups of four numbers, as philox_next gives them; each group is skipped by `apart` from the one before, 1: they follow each other. */
void philox_block(const Philox *start, uint64_t apart, uint32_t *out, int64_t groups);

/* As uniform_float of each of n numbers, and uniform_double of each of n pairs. */
void uniform_floats(const uint32_t *x, float *out, int64_t n);
void uniform_doubles(const uint32_t *x, double *out, int64_t n);
