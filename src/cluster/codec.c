/* codec.c: protobuf-c for small messages, tensors by reference. */
#include "cluster/codec.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "proto/wire.h"
#include "tensor/tensor_proto.h"

Error *codec_unpack(const ProtobufCMessageDescriptor *type, Message *bytes, ProtobufCMessage **out) {
    Str flat = message_flatten(bytes);
    *out = protobuf_c_message_unpack(type, NULL, flat.len, (const uint8_t *)flat.ptr);
    return *out ? NULL : error_invalid("Malformed %s", type->short_name);
}

void codec_pack(const ProtobufCMessage *m, Message *out) {
    size_t len = protobuf_c_message_get_packed_size(m);
    if (!len) return;
    uint8_t *bytes = xmalloc(len);
    protobuf_c_message_pack(m, bytes);
    message_add_take(out, bytes, len);
}

static void release_tensor(void *t) {
    tensor_unref(t);
}

static void add_buffer(Message *m, StrBuf *b) {
    size_t len = b->len;
    if (len) message_add_take(m, strbuf_detach(b), len);
    strbuf_clear(b);
}

static size_t varint_size(uint64_t v) {
    size_t n = 1;
    for (; v >= 0x80; v >>= 7) n++;
    return n;
}

/* The serialised tensor in two parts: what is written here and, for plain dtypes, the elements as they lie in memory. */
static void tensor_parts(Tensor *t, StrBuf *head, size_t *tail) {
    *tail = 0;
    if (!dtype_is_plain(t->dtype)) {
        tensor_proto_encode(t, head);
        return;
    }
    tensor_proto_encode_header(t, head);
    *tail = tensor_bytes(t);
}

enum { COPY_LIMIT = 512 }; /* smaller tensors are copied: a slice of their own would cost more */

static void add_parts(Message *m, StrBuf *outer, StrBuf *head, Tensor *t, size_t tail) {
    strbuf_add(outer, strbuf_str(head));
    strbuf_clear(head);
    if (tail && tail <= COPY_LIMIT) {
        strbuf_add(outer, (Str){t->data, tail});
        tail = 0;
    }
    add_buffer(m, outer);
    if (tail) message_add_slice(m, (Slice){t->data, tail, release_tensor, tensor_ref(t)});
}

static void add_tensor(Message *m, StrBuf *front, uint32_t field, Tensor *t) {
    StrBuf head = {0};
    size_t tail;
    tensor_parts(t, &head, &tail);
    wire_put_tag(front, field, WIRE_BYTES);
    wire_put_varint(front, head.len + tail);
    add_parts(m, front, &head, t, tail);
}

void codec_add_tensor(Message *m, uint32_t field, Tensor *t) {
    StrBuf none = {0};
    add_tensor(m, &none, field, t);
}

void codec_add_named_tensor(Message *m, uint32_t field, Str name, Tensor *t) {
    StrBuf head = {0}, outer = {0};
    size_t tail;
    tensor_parts(t, &head, &tail);
    size_t tensor_len = head.len + tail;
    wire_put_tag(&outer, field, WIRE_BYTES);
    wire_put_varint(&outer, 1 + varint_size(name.len) + name.len + 1 + varint_size(tensor_len) + tensor_len);
    wire_put_bytes(&outer, 1, name);
    wire_put_tag(&outer, 2, WIRE_BYTES);
    wire_put_varint(&outer, tensor_len);
    add_parts(m, &outer, &head, t, tail);
}

void codec_add_bytes(Message *m, uint32_t field, Str bytes) {
    StrBuf b = {0};
    wire_put_bytes(&b, field, bytes);
    add_buffer(m, &b);
}

void codec_put_received(Message *m, StrBuf *front, Tensor *t, bool is_dead) {
    if (is_dead) {
        wire_put_uint(front, 2, 1);
        strbuf_add(front, (Str){"\x0a\x0a\x08\x01\x12\x04\x12\x02\x08\x00\x22\x00", 12}); /* float, shape [0], no content */
        add_buffer(m, front);
        return;
    }
    add_tensor(m, front, 1, t);
}

void codec_put_recv_tensor(Message *m, Tensor *t, bool is_dead, int64_t send_start_micros) {
    StrBuf b = {0};
    wire_put_uint(&b, 3, (uint64_t)send_start_micros);
    codec_put_received(m, &b, t, is_dead);
}

Error *codec_get_recv_tensor(Message *m, Tensor **t, bool *is_dead) {
    Str flat = message_flatten(m);
    Str tensor = {NULL, 0};
    *is_dead = false;
    WireReader r = wire_reader(flat);
    while (wire_next(&r)) {
        if (r.field == 1 && r.type == WIRE_BYTES) tensor = r.bytes;
        if (r.field == 2 && r.type == WIRE_VARINT) *is_dead = r.number != 0;
    }
    *t = NULL;
    if (r.failed) return error_internal("Malformed RecvTensorResponse");
    if (*is_dead) return NULL;
    if (!tensor.ptr) return error_internal("RecvTensorResponse has no tensor");
    const Slice *slice = &m->slices[0];
    bool taken;
    if (!slice->release) return tensor_proto_decode(tensor, t);
    Error *err = tensor_proto_decode_in_place(tensor, slice->release, slice->owner, t, &taken);
    if (!err && taken) {
        m->slices[0].release = NULL; /* the tensor's now */
        message_clear(m);
    }
    return err;
}

/* Other fields may come before the tensor. */
size_t codec_recv_tensor_align_at(Str head) {
    WireReader r = wire_reader(head);
    uint64_t tag, value;
    while (r.at < r.end && wire_varint(&r, &tag) && wire_varint(&r, &value)) {
        if (tag == (1 << 3 | WIRE_BYTES)) {
            size_t from = (size_t)(r.at - (const uint8_t *)head.ptr), at = tensor_proto_content_at(str_slice(head, from, head.len));
            return at ? from + at : 0;
        }
        if ((tag & 7) == WIRE_BYTES && value <= (size_t)(r.end - r.at))
            r.at += value;
        else if ((tag & 7) != WIRE_VARINT)
            return 0;
    }
    return 0;
}

/* ---- RecvBufResponse { transport_options = 4: Any { type_url = 1, value = 2: RecvBufRespExtra { tensor_content = 1, repeated } } } ---- */

#define EXTRA_TYPE "type.googleapis.com/tensorflow.RecvBufRespExtra"
enum { BUF_ALIGN = 16 }; /* of elements, at least */

void codec_put_recv_buf(Message *m, Tensor *t, int64_t send_start_micros) {
    size_t len = tensor_bytes(t), extra = 1 + varint_size(len) + len, any = 1 + 1 + sizeof EXTRA_TYPE - 1 + 1 + varint_size(extra) + extra;
    StrBuf b = {0}, none = {0};
    wire_put_uint(&b, 5, (uint64_t)send_start_micros);
    wire_put_tag(&b, 4, WIRE_BYTES);
    wire_put_varint(&b, any);
    wire_put_bytes(&b, 1, STR(EXTRA_TYPE));
    wire_put_tag(&b, 2, WIRE_BYTES);
    wire_put_varint(&b, extra);
    wire_put_tag(&b, 1, WIRE_BYTES);
    wire_put_varint(&b, len);
    add_parts(m, &b, &none, t, len);
}

static bool find_bytes(Str message, uint32_t field, Str *out) {
    WireReader r = wire_reader(message);
    bool found = false;
    while (wire_next(&r)) {
        if (r.field != field || r.type != WIRE_BYTES) continue;
        *out = r.bytes;
        found = true;
    }
    return found && !r.failed;
}

Error *codec_get_recv_buf(Message *m, Tensor **t, bool *is_dead) {
    Str any, extra, piece = {NULL, 0};
    *is_dead = false;
    *t = NULL;
    if (!find_bytes(message_flatten(m), 4, &any) || !find_bytes(any, 2, &extra)) return error_internal("RecvBufResponse has no content");
    size_t len = 0, pieces = 0;
    WireReader r = wire_reader(extra);
    while (wire_next(&r)) {
        if (r.field != 1 || r.type != WIRE_BYTES) continue;
        piece = r.bytes;
        len += piece.len;
        pieces++;
    }
    if (r.failed) return error_internal("Malformed RecvBufResponse");
    Shape shape = shape_vector((int64_t)len);
    Slice *slice = &m->slices[0];
    if (pieces == 1 && slice->release && (uintptr_t)piece.ptr % BUF_ALIGN == 0) {
        *t = tensor_wrap(DT_UINT8, &shape, (void *)piece.ptr, slice->release, slice->owner);
        slice->release = NULL; /* the tensor's now */
        message_clear(m);
        return NULL;
    }
    Error *err = tensor_new(DT_UINT8, &shape, t);
    if (err) return err;
    uint8_t *to = tensor_u8(*t);
    for (r = wire_reader(extra); wire_next(&r);) {
        if (r.field != 1 || r.type != WIRE_BYTES || !r.bytes.len) continue;
        memcpy(to, r.bytes.ptr, r.bytes.len);
        to += r.bytes.len;
    }
    return NULL;
}

size_t codec_recv_buf_align_at(Str head) {
    WireReader r = wire_reader(head);
    uint64_t tag, value;
    const uint32_t path[] = {4, 2, 1}; /* down to the content; other fields are numbers, or the name of the type */
    size_t depth = 0;
    while (r.at < r.end && wire_varint(&r, &tag) && wire_varint(&r, &value)) {
        if (tag == (path[depth] << 3 | WIRE_BYTES)) {
            if (++depth == 3) return (size_t)(r.at - (const uint8_t *)head.ptr);
        } else if ((tag & 7) == WIRE_BYTES) {
            if (value > (size_t)(r.end - r.at)) return 0;
            r.at += value;
        } else if ((tag & 7) != WIRE_VARINT) {
            return 0;
        }
    }
    return 0;
}
