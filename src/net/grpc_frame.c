/* grpc_frame.c: a message on the wire is 1 byte "compressed", 4 bytes length (big endian), then the bytes. Between Rill tasks of one host the first
   byte may also say "lent" (see lending.c). */
#include "net/grpc_frame.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

enum { IS_PLAIN = 0, IS_LENT = 2 };
enum { PREFIX_LEN = 5, FIRST_CAPACITY = 1 << 20 };

static Message frame(Message *message, uint8_t kind) {
    Message framed = {0};
    size_t n = message->len;
    uint8_t prefix[PREFIX_LEN] = {kind, (uint8_t)(n >> 24), (uint8_t)(n >> 16), (uint8_t)(n >> 8), (uint8_t)n};
    framed.slices = vec_reserve(NULL, &framed.capacity, message->count + 1, sizeof *framed.slices);
    message_add_copy(&framed, (Str){(const char *)prefix, PREFIX_LEN});
    for (size_t i = 0; i < message->count; i++) message_add_slice(&framed, message->slices[i]);
    free(message->slices);
    *message = (Message){0};
    return framed;
}

Message grpc_frame_message(Message *message) {
    return frame(message, IS_PLAIN);
}

Message grpc_frame_lend(const Lending *lending, Message *message, Loan **loan) {
    Message places = {0};
    *loan = NULL;
    if (!lending_fits(lending, message)) return frame(message, IS_PLAIN);
    *loan = loan_new(message, &places);
    return frame(&places, IS_LENT);
}

static size_t limit_of(const GrpcReader *r) {
    return r->limit ? r->limit : GRPC_MESSAGE_LIMIT;
}

static Error *read_prefix(GrpcReader *r) {
    const uint8_t *p = r->prefix;
    r->is_lent = p[0] == IS_LENT && r->lending;
    if (p[0] != IS_PLAIN && !r->is_lent) return error_unimplemented("compressed messages are not supported (flag %d)", p[0]);
    r->len = (size_t)p[1] << 24 | (size_t)p[2] << 16 | (size_t)p[3] << 8 | p[4];
    size_t limit = limit_of(r);
    if (r->len > limit)
        return error_new(CODE_RESOURCE_EXHAUSTED, "message of %zu bytes is larger than the limit of %zu bytes", r->len,
                         limit);
    return NULL;
}

/* A prefix alone reserves little; whoever has sent FIRST_CAPACITY gets room for the rest. `head`: the first bytes. */
static Error *reserve(GrpcReader *r, size_t need, Str head) {
    if (need <= r->capacity) return NULL;
    size_t capacity = need <= FIRST_CAPACITY && r->len > FIRST_CAPACITY ? FIRST_CAPACITY : r->len;
    ReceivedMemory memory;
    if (!received_memory_alloc(capacity, r->align_at ? r->align_at(head) : 0, &memory))
        return error_new(CODE_RESOURCE_EXHAUSTED, "no memory for a message of %zu bytes", r->len);
    if (r->got) memcpy(memory.data, r->data, r->got);
    received_memory_free(r->memory);
    r->memory = memory.block;
    r->data = memory.data;
    r->capacity = capacity;
    return NULL;
}

size_t grpc_reader_room(GrpcReader *r, char **to) {
    if (r->prefix_len < PREFIX_LEN || !r->data || r->got == r->len) return 0;
    if (r->got == r->capacity) {
        Error *err = reserve(r, r->got + 1, (Str){r->data, r->got});
        error_free(err); /* feeding finds the same */
        if (err) return 0;
    }
    *to = r->data + r->got;
    return r->capacity - r->got;
}

Error *grpc_reader_feed(GrpcReader *r, Str bytes) {
    Error *err = NULL;
    while (r->prefix_len < PREFIX_LEN && bytes.len > 0) {
        r->prefix[r->prefix_len++] = (uint8_t)*bytes.ptr;
        bytes = str_slice(bytes, 1, bytes.len);
        if (r->prefix_len == PREFIX_LEN) err = read_prefix(r);
    }
    if (err || bytes.len == 0) return err;
    if (bytes.len > r->len - r->got) return error_unimplemented("more than one message in a call");
    if (!r->data || bytes.ptr != r->data + r->got) {
        err = reserve(r, r->got + bytes.len, r->got ? (Str){r->data, r->got} : bytes);
        if (err) return err;
        memcpy(r->data + r->got, bytes.ptr, bytes.len);
    }
    r->got += bytes.len;
    return NULL;
}

bool grpc_reader_is_complete(const GrpcReader *r) {
    return r->prefix_len == PREFIX_LEN && r->got == r->len;
}

Error *grpc_reader_take(GrpcReader *r, ThreadPool *helpers, Message *out) {
    Message message = {0};
    Error *err = NULL;
    if (r->data) message_add_slice(&message, (Slice){r->data, r->len, received_memory_free, r->memory});
    r->data = r->memory = NULL;
    if (r->is_lent) err = loan_fetch(lending_peer(r->lending), &message, limit_of(r), r->align_at, helpers);
    if (err)
        message_clear(&message);
    else
        *out = message;
    return err;
}

void grpc_reader_clear(GrpcReader *r) {
    received_memory_free(r->memory);
    lending_unref(r->lending);
    *r = (GrpcReader){.limit = r->limit, .align_at = r->align_at};
}

/* ---- Timeouts: at most 8 digits and a unit ---- */

typedef struct Unit {
    char letter;
    int64_t ns;
} Unit;

static const Unit units[] = {
    {'n', 1}, {'u', 1000}, {'m', 1000000}, {'S', 1000000000}, {'M', 60000000000}, {'H', 3600000000000},
};

Str grpc_timeout_format(int64_t timeout_ns, char out[GRPC_TIMEOUT_SIZE]) {
    if (timeout_ns < 1) timeout_ns = 1;
    const Unit *unit = units;
    while (unit->letter != 'H' && timeout_ns / unit->ns >= 99999999) unit++;
    int64_t count = timeout_ns / unit->ns + (timeout_ns % unit->ns != 0);
    int len =
        snprintf(out, GRPC_TIMEOUT_SIZE, "%lld%c", (long long)(count > 99999999 ? 99999999 : count), unit->letter);
    return (Str){out, (size_t)len};
}

bool grpc_timeout_parse(Str text, int64_t *timeout_ns) {
    int64_t count = 0;
    if (text.len < 2 || text.len > 9) return false;
    for (size_t i = 0; i + 1 < text.len; i++) {
        if (text.ptr[i] < '0' || text.ptr[i] > '9') return false;
        count = count * 10 + (text.ptr[i] - '0');
    }
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
        if (units[i].letter != text.ptr[text.len - 1]) continue;
        *timeout_ns = count > INT64_MAX / 4 / units[i].ns ? INT64_MAX / 4 : count * units[i].ns;
        return true;
    }
    return false;
}
