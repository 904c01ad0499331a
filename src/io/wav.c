/* wav.c: sounds as WAV files of 16-bit samples.

   A file is a row of chunks, each a name of four letters, its size and that many bytes: RIFF with all others in it, `fmt ` (channels,
   rate, bits), `data` (the samples, channel by channel of each frame). Others may stand between them. */
#include "io/wav.h"

#include <math.h>

enum { PCM = 1, SAMPLE_BITS = 16, SAMPLE_BYTES = 2 };

/* ---- Writing ---- */

static void put_le(StrBuf *b, uint32_t v, int bytes) {
    for (int i = 0; i < bytes; i++) strbuf_addc(b, (char)(v >> 8 * i));
}

void wav_encode(const float *values, int64_t frames, int64_t channels, uint32_t rate, StrBuf *out) {
    uint32_t size = (uint32_t)(frames * channels * SAMPLE_BYTES), frame = (uint32_t)channels * SAMPLE_BYTES;
    strbuf_add(out, STR("RIFF"));
    put_le(out, size + 36, 4);
    strbuf_add(out, STR("WAVEfmt "));
    put_le(out, 16, 4);
    put_le(out, PCM, 2);
    put_le(out, (uint32_t)channels, 2);
    put_le(out, rate, 4);
    put_le(out, rate * frame, 4);
    put_le(out, frame, 2);
    put_le(out, SAMPLE_BITS, 2);
    strbuf_add(out, STR("data"));
    put_le(out, size, 4);
    for (int64_t i = 0; i < frames * channels; i++) {
        float v = isnan(values[i]) ? 0 : roundf(values[i] * 32768.0f);
        put_le(out, (uint32_t)(int32_t)fminf(fmaxf(v, -32768), 32767), 2);
    }
}

/* ---- Reading ---- */

/* Keeps the first error; after it nothing is read. */
typedef struct WavReader {
    Str rest;
    Error *err;
} WavReader;

static Str take(WavReader *r, size_t size) {
    if (!r->err && size > r->rest.len) r->err = error_invalid("Data too short when trying to read string");
    if (r->err) return (Str){"", 0};
    Str part = str_slice(r->rest, 0, size);
    r->rest = str_slice(r->rest, size, r->rest.len);
    return part;
}

static uint32_t take_number(WavReader *r, size_t bytes) {
    Str part = take(r, bytes);
    uint32_t n = 0;
    for (size_t i = 0; i < part.len; i++) n |= (uint32_t)(uint8_t)part.ptr[i] << 8 * i;
    return n;
}

static void expect(WavReader *r, const char *text) {
    Str found = take(r, 4);
    if (!r->err && !str_is(found, text)) r->err = error_invalid("Header mismatch: Expected %s but found %.*s", text, STR_ARG(found));
}

/* Chunks that recorders put before the format. */
static void skip_to_format(WavReader *r) {
    static const char *const known[] = {"JUNK", "bext", "iXML", "qlty", "mext", "levl", "link", "axml"};
    for (;;) {
        Str name = take(r, 4);
        if (r->err || str_is(name, "fmt ")) return;
        bool is_known = false;
        for (size_t i = 0; i < sizeof known / sizeof *known; i++) is_known |= str_is(name, known[i]);
        if (!is_known) {
            r->err = error_invalid("Unexpected field %.*s", STR_ARG(name));
            return;
        }
        take(r, take_number(r, 4));
    }
}

static void read_format(WavReader *r, WavSound *out) {
    uint32_t size = take_number(r, 4);
    if (!r->err && size != 16 && size != 18) r->err = error_invalid("Bad format chunk size for WAV: Expected 16 or 18, but got%u", size);
    uint32_t code = take_number(r, 2);
    if (!r->err && code != PCM) r->err = error_invalid("Bad audio format for WAV: Expected 1 (PCM), but got%u", code);
    out->channels = take_number(r, 2);
    if (!r->err && out->channels < 1) r->err = error_invalid("Bad number of channels for WAV: Expected at least 1, but got 0");
    out->rate = take_number(r, 4);
    uint32_t per_second = take_number(r, 4), per_frame = take_number(r, 2);
    uint32_t bits = take_number(r, 2);
    if (!r->err && bits != SAMPLE_BITS) r->err = error_invalid("Can only read 16-bit WAV files, but received %u", bits);
    if (!r->err && per_frame != (uint32_t)out->channels * SAMPLE_BYTES)
        r->err = error_invalid("Bad bytes per sample in WAV header: Expected %u but got %u", (uint32_t)out->channels * SAMPLE_BYTES, per_frame);
    uint64_t expected = (uint64_t)per_frame * out->rate;
    if (!r->err && per_second != expected)
        r->err = error_invalid("Bad bytes per second in WAV header: Expected %llu but got %u (sample_rate=%u, bytes_per_sample=%u)", (unsigned long long)expected,
                               per_second, out->rate, per_frame);
    if (size == 18 && r->rest.len >= 2) take(r, 2);
    else if (size == 18) r->rest.len = 0;
}

static void read_chunks(WavReader *r, WavSound *out) {
    bool found = false;
    while (!r->err && r->rest.len > 0) {
        Str name = take(r, 4);
        uint32_t size = take_number(r, 4);
        if (!r->err && size > INT32_MAX)
            r->err = error_invalid("WAV data chunk '%.*s' is too large: %u bytes, but the limit is %d", STR_ARG(name), size, INT32_MAX);
        if (r->err) return;
        if (!str_is(name, "data")) {
            r->rest = str_slice(r->rest, size, r->rest.len);
            continue;
        }
        if (found) r->err = error_invalid("More than one data chunk found in WAV");
        found = true;
        out->frames = size / ((uint32_t)out->channels * SAMPLE_BYTES);
        out->samples = (const uint8_t *)take(r, (size_t)(out->frames * out->channels * SAMPLE_BYTES)).ptr;
    }
    if (!r->err && !found) r->err = error_invalid("No data chunk found in WAV");
}

Error *wav_decode(Str file, WavSound *out) {
    WavReader r = {.rest = file};
    *out = (WavSound){0};
    expect(&r, "RIFF");
    take_number(&r, 4);
    expect(&r, "WAVE");
    skip_to_format(&r);
    if (!r.err) read_format(&r, out);
    if (!r.err) read_chunks(&r, out);
    return r.err;
}
