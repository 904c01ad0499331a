/* arena.h: memory freed all at once. */
#pragma once
#include <stddef.h>

#include "base/str.h"

/* Not thread-safe. What is in an arena is never freed alone and never outlives it. */
typedef struct Arena Arena;

Arena *arena_new(void);
void arena_free(Arena *arena);
void *arena_alloc(Arena *arena, size_t size);             /* 16-byte aligned, not cleared */
void *arena_calloc(Arena *arena, size_t count, size_t size); /* cleared; dies on overflow */
Str arena_str(Arena *arena, Str text);                    /* a copy, followed by a 0 byte */
Str arena_printf(Arena *arena, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
size_t arena_size(const Arena *arena); /* bytes taken from the system */
