/* block_cache_test.c: blocks of all sizes, freed here and elsewhere; what is kept and given back. */
#include "base/block_cache.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

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

static size_t resident(void) {
    size_t all, pages;
    FILE *f = fopen("/proc/self/statm", "r");
    assert_non_null(f);
    assert_int_equal(fscanf(f, "%zu %zu", &all, &pages), 2);
    fclose(f);
    return pages * (size_t)sysconf(_SC_PAGESIZE);
}

/* Also the second time, when something small was allocated in between: as a server sees it whose sessions come and go. */
static void what_is_trimmed_goes_back_to_the_system(void **state) {
    (void)state;
    enum { COUNT = 32, SIZE = 1 << 20 };
    void *blocks[COUNT], *small[2 * COUNT];
    block_cache_trim();
    size_t before = resident();
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < COUNT; i++) {
            blocks[i] = block_alloc(SIZE);
            assert_non_null(blocks[i]);
            memset(blocks[i], 1, SIZE);
            small[round * COUNT + i] = malloc(5000);
        }
        for (int i = 0; i < COUNT; i++) block_free(blocks[i], SIZE);
        bool is_off = block_cache_size() == 0;
        block_cache_trim();
        if (!is_off) assert_true(resident() < before + (size_t)COUNT * SIZE / 8);
    }
    for (int i = 0; i < 2 * COUNT; i++) free(small[i]);
}

static void the_largest_blocks_are_whole(void **state) {
    (void)state;
    for (size_t size = 7 << 20; size < 40 << 20; size += (3 << 20) + 12345) {
        char *block = block_alloc(size);
        assert_non_null(block);
        block[0] = block[size / 2] = block[size - 1] = 1;
        block_free(block, size);
        block_cache_trim();
    }
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
        cmocka_unit_test(what_is_trimmed_goes_back_to_the_system),
        cmocka_unit_test(the_largest_blocks_are_whole),
        cmocka_unit_test(what_cannot_be_had_is_null),
        cmocka_unit_test(threads_free_what_others_allocated),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
