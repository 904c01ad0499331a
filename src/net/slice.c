/* slice.c: Message, a list of refcounted bytes. */
#include "net/slice.h"

#include <stdlib.h>
#include <string.h>

#include "base/block_cache.h"
#include "base/memory.h"

enum { ALIGNMENT = 64 };

/* New pages are cleared by the kernel, which takes longer than to receive into them: so the memory comes from the cache,
 * with its size in front. */
bool received_memory_alloc(size_t len, size_t align_at, ReceivedMemory *out) {
    size_t size = len + 2 * ALIGNMENT;
    char *block = block_alloc(size);
    if (!block) return false;
    *(size_t *)block = size;
    *out = (ReceivedMemory){block, block + ALIGNMENT + (ALIGNMENT - align_at % ALIGNMENT) % ALIGNMENT};
    return true;
}

void received_memory_free(void *block) {
    if (block) block_free(block, *(size_t *)block);
}

void message_add_slice(Message *m, Slice slice) {
    m->slices = vec_reserve(m->slices, &m->capacity, m->count + 1, sizeof *m->slices);
    m->slices[m->count++] = slice;
    m->len += slice.len;
}

void message_add_take(Message *m, void *malloced, size_t len) {
    message_add_slice(m, (Slice){malloced, len, free, malloced});
}

void message_add_copy(Message *m, Str bytes) {
    if (bytes.len) message_add_take(m, xstrndup(bytes.ptr, bytes.len), bytes.len);
}

void message_clear(Message *m) {
    for (size_t i = 0; i < m->count; i++) {
        if (m->slices[i].release) m->slices[i].release(m->slices[i].owner);
    }
    free(m->slices);
    *m = (Message){0};
}

Message message_move(Message *m) {
    Message moved = *m;
    *m = (Message){0};
    return moved;
}

void message_copy_out(const Message *m, void *to, size_t from, size_t len) {
    char *out = to;
    for (size_t i = 0; i < m->count && len > 0; i++) {
        const Slice *s = &m->slices[i];
        if (from >= s->len) {
            from -= s->len;
            continue;
        }
        size_t n = s->len - from < len ? s->len - from : len;
        memcpy(out, (const char *)s->data + from, n);
        out += n;
        len -= n;
        from = 0;
    }
}

Str message_flatten(Message *m) {
    if (m->count > 1) {
        Message whole = {0};
        char *data = xmalloc(m->len);
        message_copy_out(m, data, 0, m->len);
        message_add_take(&whole, data, m->len);
        message_clear(m);
        *m = whole;
    }
    return m->count ? (Str){m->slices[0].data, m->slices[0].len} : (Str){"", 0};
}
