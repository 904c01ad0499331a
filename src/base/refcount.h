/* refcount.h: atomic reference counts. */
#pragma once
#include <stdatomic.h>
#include <stdbool.h>

typedef struct RefCount {
    _Atomic int count;
} RefCount;

static inline void refcount_init(RefCount *r) {
    atomic_init(&r->count, 1);
}
static inline void refcount_inc(RefCount *r) {
    atomic_fetch_add_explicit(&r->count, 1, memory_order_relaxed);
}
/* True when this was the last one. */
static inline bool refcount_dec(RefCount *r) {
    return atomic_fetch_sub_explicit(&r->count, 1, memory_order_acq_rel) == 1;
}
static inline bool refcount_is_one(const RefCount *r) {
    return atomic_load_explicit(&r->count, memory_order_acquire) == 1;
}
