/* example_json.h: tf.Example written as JSON, made into wire format. */
#pragma once
#include "base/error.h"
#include "base/str.h"

/* Appends the serialised Example, its features in the order of the text. InvalidArgument says where the text is wrong. */
Error *example_from_json(Str json, StrBuf *out) MUST_CHECK;
