/* codec.h: between messages of the transport and what the services work with. */
#pragma once
#include <protobuf-c/protobuf-c.h>

#include "base/error.h"
#include "net/slice.h"
#include "tensor/tensor.h"

/* Unpacks a request; InvalidArgument names the message when it is malformed. Free with protobuf_c_message_free_unpacked(m, NULL). */
Error *codec_unpack(const ProtobufCMessageDescriptor *type, Message *bytes, ProtobufCMessage **out) MUST_CHECK;
void codec_pack(const ProtobufCMessage *m, Message *out);

/* One field of a message: NamedTensorProto{name=1, tensor=2}, TensorProto, or bytes; elements of plain tensors are not copied. */
void codec_add_named_tensor(Message *m, uint32_t field, Str name, Tensor *t);
void codec_add_tensor(Message *m, uint32_t field, Tensor *t);
void codec_add_bytes(Message *m, uint32_t field, Str bytes);

/* RecvTensorResponse both ways. A dead value has is_dead set and t NULL. */
void codec_put_recv_tensor(Message *m, Tensor *t, bool is_dead, int64_t send_start_micros);
/* The same behind other fields, which are taken out of `front`. */
void codec_put_received(Message *m, StrBuf *front, Tensor *t, bool is_dead);
Error *codec_get_recv_tensor(Message *m, Tensor **t, bool *is_dead) MUST_CHECK; /* a large tensor is made of the message's memory */
size_t codec_recv_tensor_align_at(Str head);                                   /* an AlignAt: its elements */

static inline Str codec_str(ProtobufCBinaryData b) {
    return (Str){b.data ? (const char *)b.data : "", b.len};
}

/* RecvBufResponse: the bytes of a tensor of a plain dtype, as the piece of a collective. Received ones are a vector of uint8. */
void codec_put_recv_buf(Message *m, Tensor *t, int64_t send_start_micros);
Error *codec_get_recv_buf(Message *m, Tensor **t, bool *is_dead) MUST_CHECK;
size_t codec_recv_buf_align_at(Str head);
