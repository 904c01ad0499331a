/* png_filter.h: which filter a row of a PNG gets. */
#pragma once
#include <stddef.h>
#include <stdint.h>

/* The filter, 0 to 4, whose differences have the smallest sum of sizes; of equal ones the first. That is libpng's choice, found faster. `row` and the row
 * `above` it have n bytes, before which lie `pixel` zeros: as many as a pixel has bytes. */
int png_filter_of(const uint8_t *row, const uint8_t *above, size_t n, size_t pixel);
