/* text.h: protobuf's text format, as people write it and as .pbtxt and `checkpoint` files hold it, made into wire
 * format. */
#pragma once
#include <protobuf-c/protobuf-c.h>

#include "base/error.h"
#include "base/str.h"

/* Appends the serialised message. Fields the descriptor does not know are read over; a google.protobuf.Any that is
 * spelled out
 * ([type.googleapis.com/package.Name] { ... }) is made from the type of that Name in `any_types` (ends with NULL),
 * others become empty ones. InvalidArgument names the line. */
Error *text_to_wire(const ProtobufCMessageDescriptor *type, const ProtobufCMessageDescriptor *const *any_types,
                    Str text, StrBuf *out) MUST_CHECK;
