/* hashmap.h: from Str or integer to pointer. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

/* Keys are borrowed: they must outlive their entry. Zero-initialised is empty. Not thread-safe. */
typedef struct StrMap {
    struct StrMapSlot *slots;
    size_t count, used, capacity;
} StrMap;

void *strmap_get(const StrMap *m, Str key); /* NULL when absent */
void *strmap_put(StrMap *m, Str key, void *value); /* value != NULL; returns the replaced one or NULL (the old key stays) */
void *strmap_remove(StrMap *m, Str key);           /* the removed value or NULL */
bool strmap_next(const StrMap *m, size_t *at, Str *key, void **value); /* start with *at = 0; no order */
void strmap_clear(StrMap *m);

typedef struct IntMap {
    struct IntMapSlot *slots;
    size_t count, used, capacity;
} IntMap;

void *intmap_get(const IntMap *m, uint64_t key);
void *intmap_put(IntMap *m, uint64_t key, void *value);
void *intmap_remove(IntMap *m, uint64_t key);
bool intmap_next(const IntMap *m, size_t *at, uint64_t *key, void **value);
void intmap_clear(IntMap *m);
