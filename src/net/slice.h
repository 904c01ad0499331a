/* slice.h: Slice, refcounted bytes that travel without being copied; Message, a list of them. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"

/* Bytes with an owner that is told when they are no longer needed. */
typedef struct Slice {
    const void *data;
    size_t len;
    void (*release)(void *owner); /* NULL: the bytes outlive every use */
    void *owner;
} Slice;

/* The bytes of one gRPC message, in pieces. Zero-initialised is empty. */
typedef struct Message {
    Slice *slices;
    size_t count, capacity;
    size_t len; /* sum of the slices */
} Message;

/* From the first bytes of a message that is coming (often not all of them): the place that shall be at a multiple of 64
 * bytes in memory; 0 when it does not matter. */
typedef size_t AlignAt(Str head);

/* Memory for a message that comes: `len` bytes, whose byte `align_at` is at a multiple of 64. False: there is not enough. */
typedef struct ReceivedMemory {
    char *block; /* for received_memory_free */
    char *data;
} ReceivedMemory;

bool received_memory_alloc(size_t len, size_t align_at, ReceivedMemory *out);
void received_memory_free(void *block);

void message_add_copy(Message *m, Str bytes);
void message_add_take(Message *m, void *malloced, size_t len); /* freed with free() */
void message_add_slice(Message *m, Slice slice);               /* takes it over */
void message_clear(Message *m);                                /* releases every slice */
Message message_move(Message *m);                              /* leaves *m empty */
void message_copy_out(const Message *m, void *to, size_t from, size_t len); /* bytes [from, from+len) */

/* The whole message as one piece: the only slice's own memory, else a copy that replaces the slices. */
Str message_flatten(Message *m);
