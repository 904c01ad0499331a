/* block_cache_test.c: blocks of all sizes, freed here and elsewhere; what is kept and given back. */
#include "base/block_cache.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/threadpool.h"
#include "unit_test.h"

enum { SIZES = 400 };

/* About a quarter more each time, with some that are one off. */
static size_t size_at(int i) {
    size_t size = 1;
    for (int j = 0; j < i / 4; j++) size += size / 6 + 1;
    return size + (size_t)(i % 4);
}

static void blocks_are_whole_and_apart(void **state) {
    (void)state;
    unsigned char *blocks[SIZES];
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < SIZES; i++) {
            size_t size = size_at(i) > 1 << 22 ? 1 << 22 : size_at(i);
            blocks[i] = block_alloc(size);
            assert_non_null(blocks[i]);
            assert_int_equal((uintptr_t)blocks[i] % 64, 0);
            memset(blocks[i], i % 251, size);
        }
        for (int i = 0; i < SIZES; i++) {
            size_t size = size_at(i) > 1 << 22 ? 1 << 22 : size_at(i);
            assert_int_equal(blocks[i][0], i % 251);
            assert_int_equal(blocks[i][size - 1], i % 251);
            block_free(blocks[i], size);
        }
    }
    block_free(NULL, 100);
}

static void a_large_block_waits_for_its_next_user(void **state) {
    (void)state;
    block_cache_trim();
    assert_int_equal(block_cache_size(), 0);
    void *block = block_alloc(1 << 20);
    block_free(block, 1 << 20);
    if (block_cache_size() == 0) skip(); /* a checker of memory sees every allocation */
    assert_true(block_cache_size() >= 1 << 20);
    void *again = block_alloc((1 << 20) - 100);
    assert_ptr_equal(again, block);
    assert_int_equal(block_cache_size(), 0);
    block_free(again, (1 << 20) - 100);
    block_cache_trim();
    assert_int_equal(block_cache_size(), 0);
}

static void what_cannot_be_had_is_null(void **state) {
    (void)state;
    assert_null(block_alloc((size_t)1 << 50));
}

typedef struct Passing {
    pthread_mutex_t mutex; /* guards slots */
    void *slots[64];
} Passing;

/* Puts a block into a slot and frees the one that lay there, most often another thread's. */
static void pass_blocks(void *arg, int64_t begin, int64_t end) {
    Passing *p = arg;
    for (int64_t i = begin; i < end; i++) {
        int slot = (int)(i * 7 % 64);
        size_t size = slot < 48 ? 64 + (size_t)slot * 8 : 100000; /* each slot has its size */
        char *block = block_alloc(size);
        memset(block, 1, size);
        pthread_mutex_lock(&p->mutex);
        void *old = p->slots[slot];
        p->slots[slot] = block;
        pthread_mutex_unlock(&p->mutex);
        block_free(old, size);
    }
}

static void threads_free_what_others_allocated(void **state) {
    (void)state;
    Passing p = {.mutex = PTHREAD_MUTEX_INITIALIZER};
    ThreadPool *pool = threadpool_new("test", 4);
    threadpool_parallel_for(pool, 100000, 100, pass_blocks, &p);
    threadpool_free(pool);
    for (int slot = 0; slot < 64; slot++) block_free(p.slots[slot], slot < 48 ? 64 + (size_t)slot * 8 : 100000);
    block_cache_trim();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_are_whole_and_apart),
        cmocka_unit_test(a_large_block_waits_for_its_next_user),
        cmocka_unit_test(what_cannot_be_had_is_null),
        cmocka_unit_test(threads_free_what_others_allocated),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
