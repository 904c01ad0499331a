/* block_cache.c: free blocks by size class: small ones in lists of each thread, filled from shared lists by the dozen; large ones in
 * shared lists. There are four classes from each power of two to the next. */
#include "base/block_cache.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"

enum {
    MIN_BITS = 6,                                  /* the smallest block is 64 bytes */
    SMALL_BITS = 13,                               /* up to 8 KiB are small */
    MAX_BITS = 40,                                 /* greater ones are not kept */
    SMALL_CLASSES = (SMALL_BITS - MIN_BITS) * 4 + 1, /* by class_of */
    CLASSES = (MAX_BITS - MIN_BITS) * 4 + 1,
    BATCH = 16, /* small blocks that move between a thread and the shared list at once; a thread keeps two batches */
    SHARED_BATCHES = 64,
    MAPPED_SIZE = 1 << 18, /* blocks from this size on are pages of their own */
};

/* Checkers of memory must see every allocation. */
#if defined(__SANITIZE_ADDRESS__)
#define IS_OFF true
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define IS_OFF true
#endif
#endif
#ifndef IS_OFF
#define IS_OFF false
#endif

/* A free block; the memory is its own. */
typedef struct Block {
    struct Block *next;
    struct Block *next_batch; /* of the first of a batch */
} Block;

typedef struct ThreadBlocks {
    Block *blocks[SMALL_CLASSES];
    int counts[SMALL_CLASSES];
} ThreadBlocks;

static struct {
    pthread_mutex_t mutex; /* guards all below */
    Block *batches[SMALL_CLASSES]; /* of BATCH blocks each */
    int batch_counts[SMALL_CLASSES];
    Block *large[CLASSES];
    size_t large_bytes, limit;
} shared = {.mutex = PTHREAD_MUTEX_INITIALIZER};

/* ---- Classes ---- */

/* Class 0 is 64 bytes; then 80, 96, 112, 128, 160, ... rounded up to multiples of 64. */
static int class_of(size_t size) {
    if (size <= 64) return 0;
    int bits = 63 - __builtin_clzll(size - 1); /* 2^bits < size <= 2^(bits+1) */
    size_t quarter = (size_t)1 << (bits - 2);
    return (bits - MIN_BITS) * 4 + (int)((size - ((size_t)1 << bits) + quarter - 1) / quarter);
}

static size_t class_size(int class) {
    if (class == 0) return 64;
    int bits = MIN_BITS + (class - 1) / 4, part = (class - 1) % 4 + 1;
    size_t size = ((size_t)1 << bits) + ((size_t)part << (bits - 2));
    return (size + 63) / 64 * 64;
}

/* ---- Small blocks ---- */

static _Thread_local ThreadBlocks *mine;
static pthread_key_t thread_key;

static void free_list(Block *b) {
    while (b) {
        Block *next = b->next;
        free(b);
        b = next;
    }
}

static void thread_ends(void *arg) {
    ThreadBlocks *t = arg;
    for (int c = 0; c < SMALL_CLASSES; c++) free_list(t->blocks[c]);
    free(t);
    mine = NULL;
}

static void make_key(void) {
    if (pthread_key_create(&thread_key, thread_ends) != 0) abort();
}

/* NULL when there is no memory for the lists. */
static ThreadBlocks *thread_blocks(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, make_key);
    ThreadBlocks *t = calloc(1, sizeof *t);
    if (t && pthread_setspecific(thread_key, t) != 0) {
        free(t);
        t = NULL;
    }
    return mine = t;
}

static void take_batch(ThreadBlocks *t, int class) {
    pthread_mutex_lock(&shared.mutex);
    Block *b = shared.batches[class];
    if (b) {
        shared.batches[class] = b->next_batch;
        shared.batch_counts[class]--;
        t->blocks[class] = b;
        t->counts[class] = BATCH;
    }
    pthread_mutex_unlock(&shared.mutex);
}

/* The thread has two batches: one goes. */
static void give_batch(ThreadBlocks *t, int class) {
    Block *first = t->blocks[class], *last = first;
    for (int i = 1; i < BATCH; i++) last = last->next;
    t->blocks[class] = last->next;
    t->counts[class] -= BATCH;
    last->next = NULL;
    pthread_mutex_lock(&shared.mutex);
    bool kept = shared.batch_counts[class] < SHARED_BATCHES;
    if (kept) {
        first->next_batch = shared.batches[class];
        shared.batches[class] = first;
        shared.batch_counts[class]++;
    }
    pthread_mutex_unlock(&shared.mutex);
    if (!kept) free_list(first);
}

static void *small_alloc(int class) {
    ThreadBlocks *t = mine ? mine : thread_blocks();
    if (t && !t->blocks[class]) take_batch(t, class);
    if (!t || !t->blocks[class]) return try_alloc(class_size(class));
    Block *b = t->blocks[class];
    t->blocks[class] = b->next;
    t->counts[class]--;
    return b;
}

static void small_free(Block *b, int class) {
    ThreadBlocks *t = mine ? mine : thread_blocks();
    if (!t) {
        free(b);
        return;
    }
    b->next = t->blocks[class];
    t->blocks[class] = b;
    if (++t->counts[class] == 2 * BATCH) give_batch(t, class);
}

/* ---- Large blocks ---- */

static size_t limit_locked(void) {
    if (shared.limit) return shared.limit;
    long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    return shared.limit = (pages > 0 && page > 0 ? (size_t)pages * (size_t)page : (size_t)1 << 30) / BLOCK_CACHE_PART;
}

/* Greater blocks do not come from malloc: once one of its own mappings was freed, it puts blocks of that size among all others, and what is given back stays in
   holes between them. */
static void *new_large(size_t size) {
    return size < MAPPED_SIZE ? try_alloc(size) : map_pages(size);
}

static void end_large(Block *b, size_t size) {
    if (size < MAPPED_SIZE)
        free(b);
    else
        unmap_pages(b, size);
}

static void *large_alloc(int class) {
    pthread_mutex_lock(&shared.mutex);
    Block *b = shared.large[class];
    if (b) {
        shared.large[class] = b->next;
        shared.large_bytes -= class_size(class);
    }
    pthread_mutex_unlock(&shared.mutex);
    if (!b) b = new_large(class_size(class));
    if (b) return b;
    block_cache_trim();
    return new_large(class_size(class));
}

static void large_free(Block *b, int class) {
    size_t size = class_size(class);
    pthread_mutex_lock(&shared.mutex);
    bool kept = shared.large_bytes + size <= limit_locked();
    if (kept) {
        b->next = shared.large[class];
        shared.large[class] = b;
        shared.large_bytes += size;
    }
    pthread_mutex_unlock(&shared.mutex);
    if (!kept) end_large(b, size);
}

void *block_alloc(size_t size) {
    if (IS_OFF || size > (size_t)1 << MAX_BITS) return try_alloc(size);
    int class = class_of(size);
    return class < SMALL_CLASSES ? small_alloc(class) : large_alloc(class);
}

void *block_new(size_t size) {
    void *block = block_alloc(size);
    if (!block) abort();
    return block;
}

void *block_zeroed(size_t size) {
    return memset(block_new(size), 0, size);
}

void block_free(void *block, size_t size) {
    if (!block) return;
    if (IS_OFF || size > (size_t)1 << MAX_BITS) {
        free(block);
        return;
    }
    int class = class_of(size);
    if (class < SMALL_CLASSES) {
        small_free(block, class);
    } else {
        large_free(block, class);
    }
}

size_t block_cache_size(void) {
    pthread_mutex_lock(&shared.mutex);
    size_t size = shared.large_bytes;
    pthread_mutex_unlock(&shared.mutex);
    return size;
}

void block_cache_trim(void) {
    Block *all[CLASSES];
    pthread_mutex_lock(&shared.mutex);
    memcpy(all, shared.large, sizeof all);
    memset(shared.large, 0, sizeof shared.large);
    shared.large_bytes = 0;
    pthread_mutex_unlock(&shared.mutex);
    for (int c = SMALL_CLASSES; c < CLASSES; c++) {
        for (Block *next, *b = all[c]; b; b = next) {
            next = b->next;
            end_large(b, class_size(c));
        }
    }
}
