/* hashmap.c: open addressing with linear probing; a removed slot keeps a tombstone until the table is rebuilt. */
#include "base/hashmap.h"

#include <stdlib.h>

#include "base/block_cache.h"
#include "base/memory.h"

static char tombstone; /* its address marks a removed slot */
#define REMOVED ((void *)&tombstone)

struct StrMapSlot {
    Str key;
    uint64_t hash;
    void *value; /* NULL: never used */
};

struct IntMapSlot {
    uint64_t key;
    void *value;
};

static uint64_t mix(uint64_t x) {
    x ^= x >> 33;
    x *= 0xff51afd7ed558ccdull;
    x ^= x >> 33;
    x *= 0xc4ceb9fe1a85ec53ull;
    return x ^ x >> 33;
}

/* Tables of a step come and go with it: small ones are kept for the next. */
enum { KEPT_TABLE = 4096 };

static void *table_new(size_t size) {
    return size <= KEPT_TABLE ? block_zeroed(size) : xcalloc(1, size);
}

static void table_free(void *table, size_t size) {
    if (size <= KEPT_TABLE)
        block_free(table, size);
    else
        free(table);
}

/* The capacity a table needs before one more entry goes in: at most 2/3 full, tombstones counted. */
static size_t capacity_for(size_t count, size_t used, size_t capacity) {
    if ((used + 1) * 3 <= capacity * 2) return capacity;
    size_t wanted = 16;
    while ((count + 1) * 2 > wanted) wanted *= 2;
    return wanted < capacity && count * 2 > capacity ? capacity * 2 : wanted;
}

static struct StrMapSlot *str_find_slot(const StrMap *m, Str key, uint64_t hash) {
    if (!m->capacity) return NULL;
    for (size_t i = hash & (m->capacity - 1);; i = (i + 1) & (m->capacity - 1)) {
        struct StrMapSlot *s = &m->slots[i];
        if (!s->value) return NULL;
        if (s->value != REMOVED && s->hash == hash && str_eq(s->key, key)) return s;
    }
}

void *strmap_get(const StrMap *m, Str key) {
    struct StrMapSlot *s = str_find_slot(m, key, str_hash(key));
    return s ? s->value : NULL;
}

static void str_insert(StrMap *m, Str key, uint64_t hash, void *value) {
    size_t i = hash & (m->capacity - 1);
    while (m->slots[i].value && m->slots[i].value != REMOVED) i = (i + 1) & (m->capacity - 1);
    if (!m->slots[i].value) m->used++;
    m->slots[i] = (struct StrMapSlot){key, hash, value};
    m->count++;
}

void *strmap_put(StrMap *m, Str key, void *value) {
    uint64_t hash = str_hash(key);
    struct StrMapSlot *s = str_find_slot(m, key, hash);
    if (s) {
        void *old = s->value;
        s->value = value;
        return old;
    }
    size_t capacity = capacity_for(m->count, m->used, m->capacity);
    if (capacity != m->capacity || (m->used + 1) * 3 > capacity * 2) {
        StrMap bigger = {table_new(capacity * sizeof *s), 0, 0, capacity};
        for (size_t i = 0; i < m->capacity; i++)
            if (m->slots[i].value && m->slots[i].value != REMOVED) str_insert(&bigger, m->slots[i].key, m->slots[i].hash, m->slots[i].value);
        table_free(m->slots, m->capacity * sizeof *m->slots);
        *m = bigger;
    }
    str_insert(m, key, hash, value);
    return NULL;
}

void *strmap_remove(StrMap *m, Str key) {
    struct StrMapSlot *s = str_find_slot(m, key, str_hash(key));
    if (!s) return NULL;
    void *old = s->value;
    s->value = REMOVED;
    m->count--;
    return old;
}

bool strmap_next(const StrMap *m, size_t *at, Str *key, void **value) {
    for (; *at < m->capacity; ++*at) {
        struct StrMapSlot *s = &m->slots[*at];
        if (!s->value || s->value == REMOVED) continue;
        if (key) *key = s->key;
        if (value) *value = s->value;
        ++*at;
        return true;
    }
    return false;
}

void strmap_clear(StrMap *m) {
    table_free(m->slots, m->capacity * sizeof *m->slots);
    *m = (StrMap){0};
}

static struct IntMapSlot *int_find_slot(const IntMap *m, uint64_t key) {
    if (!m->capacity) return NULL;
    for (size_t i = mix(key) & (m->capacity - 1);; i = (i + 1) & (m->capacity - 1)) {
        struct IntMapSlot *s = &m->slots[i];
        if (!s->value) return NULL;
        if (s->value != REMOVED && s->key == key) return s;
    }
}

void *intmap_get(const IntMap *m, uint64_t key) {
    struct IntMapSlot *s = int_find_slot(m, key);
    return s ? s->value : NULL;
}

static void int_insert(IntMap *m, uint64_t key, void *value) {
    size_t i = mix(key) & (m->capacity - 1);
    while (m->slots[i].value && m->slots[i].value != REMOVED) i = (i + 1) & (m->capacity - 1);
    if (!m->slots[i].value) m->used++;
    m->slots[i] = (struct IntMapSlot){key, value};
    m->count++;
}

void *intmap_put(IntMap *m, uint64_t key, void *value) {
    struct IntMapSlot *s = int_find_slot(m, key);
    if (s) {
        void *old = s->value;
        s->value = value;
        return old;
    }
    size_t capacity = capacity_for(m->count, m->used, m->capacity);
    if (capacity != m->capacity || (m->used + 1) * 3 > capacity * 2) {
        IntMap bigger = {table_new(capacity * sizeof *s), 0, 0, capacity};
        for (size_t i = 0; i < m->capacity; i++)
            if (m->slots[i].value && m->slots[i].value != REMOVED) int_insert(&bigger, m->slots[i].key, m->slots[i].value);
        table_free(m->slots, m->capacity * sizeof *m->slots);
        *m = bigger;
    }
    int_insert(m, key, value);
    return NULL;
}

void *intmap_remove(IntMap *m, uint64_t key) {
    struct IntMapSlot *s = int_find_slot(m, key);
    if (!s) return NULL;
    void *old = s->value;
    s->value = REMOVED;
    m->count--;
    return old;
}

bool intmap_next(const IntMap *m, size_t *at, uint64_t *key, void **value) {
    for (; *at < m->capacity; ++*at) {
        struct IntMapSlot *s = &m->slots[*at];
        if (!s->value || s->value == REMOVED) continue;
        if (key) *key = s->key;
        if (value) *value = s->value;
        ++*at;
        return true;
    }
    return false;
}

void intmap_clear(IntMap *m) {
    table_free(m->slots, m->capacity * sizeof *m->slots);
    *m = (IntMap){0};
}
