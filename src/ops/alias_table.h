/* alias_table.h: AliasTable, Walker's method to draw numbers by given weights, with two random numbers each. */
#pragma once
#include <stdint.h>

#include "base/rng.h"

typedef struct AliasTable {
    int64_t count;
    float *chance;  /* of staying with the bucket drawn */
    int64_t *other; /* else this one */
} AliasTable;

void alias_table_init(AliasTable *t, const float *weights, int64_t count); /* count > 0, their sum positive */
void alias_table_clear(AliasTable *t);
int64_t alias_table_draw(const AliasTable *t, PhiloxStream *random);
