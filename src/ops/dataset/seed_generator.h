/* seed_generator.h: SeedGenerator, which gives seeds to one iterator after the other: always the same or always new
 * ones. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "runtime/kernel.h"
#include "runtime/resource.h"

typedef struct SeedGenerator SeedGenerator;

/* Two zeros: seeds that nobody chose. */
SeedGenerator *seeds_new(int64_t seed, int64_t seed2, bool fixed);
void seeds_unref(SeedGenerator *g); /* NULL is allowed */
/* The generator in input i, a reference; NULL when the handle is a dummy. */
Error *kernel_seeds(KernelContext *k, int i, SeedGenerator **out) MUST_CHECK;
void seeds_draw(SeedGenerator *g, uint64_t *seed, uint64_t *seed2);

/* Where it stands, for the state of an iterator. */
typedef struct SeedState {
    int64_t seed, seed2, drawn;
} SeedState;
SeedState seeds_state(SeedGenerator *g);
void seeds_restore(SeedGenerator *g, SeedState s);
