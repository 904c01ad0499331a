/* request_ids.h: the last n request ids, to refuse a request that comes twice. Memory: 16 to 24 bytes for each of the n from the first id on, none before. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

/* Thread-safe. */
typedef struct RequestIds RequestIds;

RequestIds *request_ids_new(int capacity);
void request_ids_free(RequestIds *r);
bool request_ids_add(RequestIds *r, int64_t id); /* false when it was there; 0 is never remembered */
