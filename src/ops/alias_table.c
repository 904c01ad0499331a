/* alias_table.c: Walker's alias method: every bucket holds one number, or two. */
#include "ops/alias_table.h"

#include <stdlib.h>

#include "base/memory.h"

void alias_table_init(AliasTable *t, const float *weights, int64_t n) {
    int64_t *high = xmalloc((size_t)(n + 1) * sizeof *high), *low = xmalloc((size_t)(n + 1) * sizeof *low);
    int64_t highs = 0, lows = 0;
    double *part = xmalloc((size_t)(n + 1) * sizeof *part), total = 0;
    for (int64_t i = 0; i < n; i++) total += weights[i];
    t->count = n;
    t->chance = xmalloc((size_t)(n + 1) * sizeof *t->chance);
    t->other = xmalloc((size_t)(n + 1) * sizeof *t->other);
    for (int64_t i = 0; i < n; i++) {
        part[i] = (double)weights[i] * (double)n / total;
        t->other[i] = i;
        if (part[i] < 1)
            low[lows++] = i;
        else
            high[highs++] = i;
    }
    while (highs > 0 && lows > 0) {
        int64_t l = low[--lows], h = high[--highs];
        t->other[l] = h;
        part[h] -= 1 - part[l];
        if (part[h] < 1)
            low[lows++] = h;
        else
            high[highs++] = h;
    }
    for (int64_t i = 0; i < n; i++) t->chance[i] = (float)part[i];
    for (int64_t i = 0; i < highs; i++) t->chance[high[i]] = 1;
    for (int64_t i = 0; i < lows; i++) t->chance[low[i]] = 1;
    free(high);
    free(low);
    free(part);
}

void alias_table_clear(AliasTable *t) {
    free(t->chance);
    free(t->other);
    *t = (AliasTable){0};
}

int64_t alias_table_draw(const AliasTable *t, PhiloxStream *random) {
    float r = uniform_float(philox_stream_next(random));
    int64_t bucket = philox_stream_below(random, (uint32_t)t->count);
    return r < t->chance[bucket] ? bucket : t->other[bucket];
}
