/* tensor_proto.h: Tensor to and from serialised TensorProto, for every dtype. */
#pragma once
#include "base/error.h"
#include "base/str.h"
#include "tensor/tensor.h"

/* tensor_content, or the typed fields with TensorFlow's rule that the last value repeats and none means zeros. */
Error *tensor_proto_decode(Str bytes, Tensor **out) MUST_CHECK;

/* The same over bytes that have an owner: when the elements are many and lie as a tensor's must, the tensor is made of them, *taken is true, and
 * release(owner) comes with its last reference. The bytes may be changed. */
Error *tensor_proto_decode_in_place(Str bytes, void (*release)(void *), void *owner, Tensor **out, bool *taken) MUST_CHECK;

/* Where tensor_content begins in the beginning of a TensorProto; 0 when that does not show. */
size_t tensor_proto_content_at(Str head);

/* dtype, shape, then everything in tensor_content (never shortened). Empty variants are written as such. */
void tensor_proto_encode(const Tensor *t, StrBuf *out);

/* The same, but strings are in string_val, the only place where Python's make_ndarray looks for them: for files. */
void tensor_proto_encode_readable(const Tensor *t, StrBuf *out);

/* The same up to and with the length of tensor_content, for plain dtypes: the elements follow as they lie in memory. */
void tensor_proto_encode_header(const Tensor *t, StrBuf *out);

/* A variant type that can come back from the wire. */
typedef struct VariantDecoder {
    const char *type_name;
    Error *(*decode)(Str metadata, Tensor **tensors, int tensor_count, Variant *out); /* borrows tensors */
} VariantDecoder;
/* One element of a DT_VARIANT tensor as VariantTensorDataProto; Unimplemented when its type has no such form. */
Error *variant_encode(const Variant *v, StrBuf *out) MUST_CHECK;
Error *variant_decode(Str bytes, Variant *out) MUST_CHECK; /* *out was empty; gets a reference */

void variant_registry_init(const VariantDecoder *rows); /* once, ends with a NULL type_name */
