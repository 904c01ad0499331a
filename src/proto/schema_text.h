/* schema_text.h: text format of messages that a Schema describes. */
#pragma once
#include "proto/schema.h"

/* Appends the serialised message. InvalidArgument names the line. */
Error *schema_text_to_wire(const Schema *s, const SchemaMessage *type, Str text, StrBuf *out) MUST_CHECK;
