/* fingerprint.h: hashes of strings that must be the same everywhere and always, as TensorFlow computes them. */
#pragma once
#include <stdint.h>

#include "base/str.h"

uint64_t fingerprint64(Str s);            /* FarmHash's Fingerprint64 */
void fingerprint128(Str s, uint64_t out[2]); /* its Fingerprint128: the low half, the high half */
uint64_t hash64(Str s);                   /* of StringToHashBucket */
uint64_t siphash(Str s, uint64_t key[2]); /* SipHash-2-4 */

/* TensorFlow's Hash64Combine: of frames and of keys of collectives. */
static inline uint64_t hash64_combine(uint64_t a, uint64_t b) {
    return a ^ (b + 0x9e3779b97f4a7800ull + (a << 10) + (a >> 4));
}
