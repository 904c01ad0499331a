/* base64.h: bytes as text of 64 letters; written without padding, read with or without. */
#pragma once
#include <stdbool.h>

#include "base/str.h"

char *base64_encode(Str bytes);            /* malloced */
bool base64_decode(Str text, StrBuf *out); /* false: not base64; *out may hold a part of it */
