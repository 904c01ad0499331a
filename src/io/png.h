/* png.h: images as PNG files. */
#pragma once
#include <stdint.h>

#include "base/error.h"
#include "base/str.h"

/* pixels: height * width * channels bytes; channels: 1 grey, 2 grey and alpha, 3 RGB, 4 RGBA. */
Error *png_encode(const uint8_t *pixels, int64_t height, int64_t width, int channels, StrBuf *out) MUST_CHECK;
