/* arena.c: blocks of growing size, bump allocation. */
#include "base/arena.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

enum { FIRST_BLOCK = 4096, LARGEST_BLOCK = 1 << 20 };

typedef struct Block {
    struct Block *next;
    size_t size, used;
    _Alignas(16) char bytes[];
} Block;

struct Arena {
    Block *blocks; /* the newest first */
    size_t total;
};

Arena *arena_new(void) {
    return xcalloc(1, sizeof(Arena));
}

void arena_free(Arena *arena) {
    if (!arena) return;
    for (Block *b = arena->blocks; b;) {
        Block *next = b->next;
        free(b);
        b = next;
    }
    free(arena);
}

static Block *add_block(Arena *arena, size_t need) {
    size_t size = arena->blocks ? arena->blocks->size * 2 : FIRST_BLOCK;
    if (size > LARGEST_BLOCK) size = LARGEST_BLOCK;
    if (size < need) size = need;
    Block *b = xmalloc(sizeof *b + size);
    b->size = size;
    b->used = 0;
    b->next = arena->blocks;
    arena->blocks = b;
    arena->total += size;
    return b;
}

void *arena_alloc(Arena *arena, size_t size) {
    size = (size + 15) & ~(size_t)15;
    Block *b = arena->blocks;
    if (!b || b->size - b->used < size) b = add_block(arena, size);
    void *ptr = b->bytes + b->used;
    b->used += size;
    return ptr;
}

void *arena_calloc(Arena *arena, size_t count, size_t size) {
    size_t total;
    if (__builtin_mul_overflow(count, size, &total)) total = SIZE_MAX / 2; /* xmalloc dies */
    void *ptr = arena_alloc(arena, total);
    memset(ptr, 0, total);
    return ptr;
}

Str arena_str(Arena *arena, Str text) {
    char *copy = arena_alloc(arena, text.len + 1);
    if (text.len) memcpy(copy, text.ptr, text.len);
    copy[text.len] = 0;
    return (Str){copy, text.len};
}

Str arena_printf(Arena *arena, const char *fmt, ...) {
    va_list args, again;
    va_start(args, fmt);
    va_copy(again, args);
    int len = vsnprintf(NULL, 0, fmt, args);
    char *text = arena_alloc(arena, (size_t)len + 1);
    vsnprintf(text, (size_t)len + 1, fmt, again);
    va_end(again);
    va_end(args);
    return (Str){text, (size_t)len};
}

size_t arena_size(const Arena *arena) {
    return arena->total;
}
