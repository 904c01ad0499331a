/* bench_pair.h: what a cluster of one ps and one worker does on this machine. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

typedef struct BenchPairOptions {
    int64_t seconds, megabytes;
    bool as_json;
} BenchPairOptions;

Error *bench_pair(const BenchPairOptions *o) MUST_CHECK; /* starts both, measures, prints, ends both */
