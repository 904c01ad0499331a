/* fingerprint.h: hashes of strings that must be the same everywhere and always, as TensorFlow computes them. */
#pragma once
#include <stdint.h>

#include "base/str.h"

uint64_t fingerprint64(Str s);            /* FarmHash's Fingerprint64 */
uint64_t hash64(Str s);                   /* of StringToHashBucket */
uint64_t siphash(Str s, uint64_t key[2]); /* SipHash-2-4 */
