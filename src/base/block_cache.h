/* block_cache.h: memory that comes and goes with every step, kept for the next one. Fresh pages cost more than most loops over
 * them, and malloc gives large ones back to the system at once. */
#pragma once
#include <stddef.h>

/* 64-byte aligned; NULL when there is not enough memory. Any thread may free what another one has allocated. */
void *block_alloc(size_t size);
void *block_new(size_t size);    /* ends the process when there is no memory: for small things of our own */
void *block_zeroed(size_t size); /* the same, filled with 0 */
void block_free(void *block, size_t size); /* the size it was allocated with; NULL is allowed */

/* Bytes that wait to be used again; at most one of BLOCK_CACHE_PART parts of the machine's memory. */
enum { BLOCK_CACHE_PART = 16 };
size_t block_cache_size(void);
void block_cache_trim(void); /* gives all but the small blocks back to the system */
