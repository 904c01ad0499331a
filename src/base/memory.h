/* memory.h: allocation that dies when memory is out, and try_alloc for sizes that users or peers choose. */
#pragma once
#include <stddef.h>

void *xmalloc(size_t size);
void *xcalloc(size_t count, size_t size);
void *xrealloc(void *ptr, size_t size);
char *xstrdup(const char *text);
char *xstrndup(const char *text, size_t len);
char *xasprintf(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* NULL when there is not enough memory; 64-byte aligned; free with free(). */
void *try_alloc(size_t size);

/* Pages of their own, filled with 0; NULL when there is not enough memory. What is unmapped goes back to the system at once. */
void *map_pages(size_t size);
void unmap_pages(void *pages, size_t size);

/* Makes room for `need` elements in a growing array; returns the array, perhaps moved. */
void *vec_reserve(void *items, size_t *capacity, size_t need, size_t item_size);
