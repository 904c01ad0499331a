/* index_shuffle.h: where an index goes when the numbers up to `most` are shuffled by a seed, as TensorFlow does it. */
#pragma once
#include <stdint.h>

uint64_t index_shuffle(uint64_t index, const uint32_t *seed, uint64_t most, int64_t rounds); /* seed: three numbers; rounds: even, from 4 to 1024 */
