/* wav.h: sounds as WAV files of 16-bit samples. */
#pragma once
#include <stdint.h>

#include "base/error.h"
#include "base/str.h"

/* Where the samples of a file lie: `frames` times `channels` little-endian numbers. */
typedef struct WavSound {
    const uint8_t *samples;
    int64_t frames, channels;
    uint32_t rate; /* frames in a second */
} WavSound;

/* Only 16-bit PCM; InvalidArgument for anything else. *out points into `file`. */
Error *wav_decode(Str file, WavSound *out) MUST_CHECK;
static inline float wav_sample(const WavSound *s, int64_t i) {
    return (float)(int16_t)(uint16_t)(s->samples[2 * i] | s->samples[2 * i + 1] << 8) / 32768.0f;
}

/* Appends a file; values are in [-1, 1], others become the nearest. The caller has seen that rate, channels (1 to 65535) and
 * size (less than 4 GiB) fit. */
void wav_encode(const float *values, int64_t frames, int64_t channels, uint32_t rate, StrBuf *out);
