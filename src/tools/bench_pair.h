/* bench_pair.h: what a cluster of one ps and one worker does on this machine. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

typedef struct BenchPairOptions {
    int64_t seconds, megabytes;
    const char *only; /* (optional) the one row to measure */
    bool as_json;
} BenchPairOptions;

bool bench_pair_has(const char *name); /* a row of that name */
Error *bench_pair(const BenchPairOptions *o) MUST_CHECK; /* starts both, measures, prints, ends both */
