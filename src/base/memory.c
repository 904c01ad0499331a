/* memory.c: allocation that dies when memory is out. */
#include "base/memory.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { HUGE_PAGE = 2 << 20, HUGE_LIMIT = 8 << 20 };

static void *check(void *ptr) {
    if (!ptr) {
        fputs("rill: out of memory\n", stderr);
        abort();
    }
    return ptr;
}

void *xmalloc(size_t size) {
    return check(malloc(size ? size : 1));
}

void *xcalloc(size_t count, size_t size) {
    return check(calloc(count ? count : 1, size ? size : 1));
}

void *xrealloc(void *ptr, size_t size) {
    return check(realloc(ptr, size ? size : 1));
}

char *xstrdup(const char *text) {
    return check(strdup(text));
}

char *xstrndup(const char *text, size_t len) {
    char *copy = xmalloc(len + 1);
    if (len) memcpy(copy, text, len);
    copy[len] = 0;
    return copy;
}

char *xasprintf(const char *fmt, ...) {
    char *text = NULL;
    va_list args;
    va_start(args, fmt);
    int len = vasprintf(&text, fmt, args);
    va_end(args);
    return check(len < 0 ? NULL : text);
}

void *try_alloc(size_t size) {
    if (size > (size_t)1 << 46) return NULL;
    if (size < HUGE_LIMIT) return aligned_alloc(64, (size + 63) / 64 * 64 + (size == 0) * 64);
    /* Large blocks come in huge pages: the first touch of 4 KiB pages costs more than the copy into them. */
    void *ptr = NULL;
    if (posix_memalign(&ptr, HUGE_PAGE, size) != 0) return NULL;
    madvise(ptr, size / HUGE_PAGE * HUGE_PAGE, MADV_HUGEPAGE);
    return ptr;
}

void *map_pages(size_t size) {
    if (size > (size_t)1 << 46) return NULL;
    size_t slack = size < HUGE_LIMIT ? 0 : HUGE_PAGE;
    char *pages = mmap(NULL, size + slack, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED) return NULL;
    if (!slack) return pages;
    size_t page = (size_t)sysconf(_SC_PAGESIZE), before = -(uintptr_t)pages % HUGE_PAGE, whole = (size + page - 1) / page * page;
    if (before) munmap(pages, before);
    if (slack > before) munmap(pages + before + whole, slack - before);
    madvise(pages + before, size / HUGE_PAGE * HUGE_PAGE, MADV_HUGEPAGE);
    return pages + before;
}

void unmap_pages(void *pages, size_t size) {
    munmap(pages, size);
}

void *vec_reserve(void *items, size_t *capacity, size_t need, size_t item_size) {
    if (need <= *capacity) return items;
    size_t grown = *capacity ? *capacity * 2 : 8;
    if (grown < need) grown = need;
    *capacity = grown;
    return xrealloc(items, grown * item_size);
}
