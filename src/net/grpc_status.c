/* grpc_status.c: grpc-status, grpc-message and grpc-status-details-bin.

   The details are the protobuf message GrpcPayloadContainer { map<string, bytes> payloads = 1; }: each entry is field 1
   with a nested { key = 1, value = 2 }. Two keys matter here; what else a peer sends is skipped. */
#include "net/grpc_status.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/base64.h"
#include "base/memory.h"

enum { MESSAGE_LIMIT = 3072 };

#define DERIVED STR("type.googleapis.com/tensorflow.DerivedStatus")
#define RESTARTED STR("type.googleapis.com/tensorflow.distributed_runtime.WorkerPossiblyRestarted")

/* ---- grpc-message ---- */

char *grpc_message_encode(Str text) {
    StrBuf out = {0};
    bool is_cut = text.len > MESSAGE_LIMIT;
    if (is_cut) {
        text.len = MESSAGE_LIMIT;
        while (text.len > 0 && ((unsigned char)text.ptr[text.len] & 0xc0) == 0x80) text.len--; /* no half character */
    }
    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.ptr[i];
        if (c >= 0x20 && c < 0x7f && c != '%')
            strbuf_addc(&out, (char)c);
        else
            strbuf_addf(&out, "%%%02X", c);
    }
    if (is_cut) strbuf_add(&out, STR(" ... [truncated]"));
    return strbuf_detach(&out);
}

static int hex_digit(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    return -1;
}

char *grpc_message_decode(Str text) {
    StrBuf out = {0};
    for (size_t i = 0; i < text.len; i++) {
        int high = text.ptr[i] == '%' && i + 2 < text.len ? hex_digit(text.ptr[i + 1]) : -1;
        int low = high >= 0 ? hex_digit(text.ptr[i + 2]) : -1;
        if (low >= 0) i += 2;
        strbuf_addc(&out, low >= 0 ? (char)(high * 16 + low) : text.ptr[i]);
    }
    return strbuf_detach(&out);
}

/* ---- Details ---- */

static void add_varint(StrBuf *out, size_t value) {
    for (; value >= 0x80; value >>= 7) strbuf_addc(out, (char)(value | 0x80));
    strbuf_addc(out, (char)value);
}

static void add_payload(StrBuf *out, Str key) {
    strbuf_addc(out, 0x0a);
    add_varint(out, key.len + 4);
    strbuf_addc(out, 0x0a);
    add_varint(out, key.len);
    strbuf_add(out, key);
    strbuf_add(out, (Str){"\x12\x00", 2});
}

void grpc_details_encode(const Error *err, StrBuf *out) {
    if (err->derived) add_payload(out, DERIVED);
    if (err->restarted) add_payload(out, RESTARTED);
}

static bool take_varint(Str *rest, uint64_t *value) {
    *value = 0;
    for (int shift = 0; shift < 64 && rest->len > 0; shift += 7) {
        unsigned char c = (unsigned char)*rest->ptr;
        *rest = str_slice(*rest, 1, rest->len);
        *value |= (uint64_t)(c & 0x7f) << shift;
        if (!(c & 0x80)) return true;
    }
    return false;
}

/* Takes one field off the front. Only length-delimited ones have bytes; numbers are skipped. */
static bool take_field(Str *rest, uint64_t *number, Str *bytes) {
    uint64_t tag, len;
    *bytes = (Str){"", 0};
    if (!take_varint(rest, &tag)) return false;
    *number = tag >> 3;
    switch (tag & 7) {
        case 0:
            *number = 0;
            return take_varint(rest, &len);
        case 1:
        case 5:
            len = (tag & 7) == 1 ? 8 : 4;
            *number = 0;
            break;
        case 2:
            if (!take_varint(rest, &len)) return false;
            break;
        default:
            return false;
    }
    if (len > rest->len) return false;
    *bytes = str_slice(*rest, 0, len);
    *rest = str_slice(*rest, len, rest->len);
    return true;
}

bool grpc_details_decode(Str bytes, Error *err) {
    uint64_t number;
    Str entry, field;
    while (bytes.len > 0) {
        if (!take_field(&bytes, &number, &entry)) return false;
        if (number != 1) continue;
        while (entry.len > 0) {
            if (!take_field(&entry, &number, &field)) return false;
            if (number == 1 && str_eq(field, DERIVED)) err->derived = true;
            if (number == 1 && str_eq(field, RESTARTED)) err->restarted = true;
        }
    }
    return true;
}

/* ---- Trailers sent ---- */

static void add_trailer(GrpcTrailers *t, Str name, const char *value) {
    t->headers[t->count++] = (Http2Header){name, str_of(value)};
}

void grpc_trailers_init(GrpcTrailers *t, const Error *err) {
    *t = (GrpcTrailers){0};
    unsigned code = err ? (unsigned)err->code : 0;
    snprintf(t->code, sizeof t->code, "%u", code > 99 ? (unsigned)CODE_UNKNOWN : code);
    add_trailer(t, STR("grpc-status"), t->code);
    if (!err) return;
    t->message = grpc_message_encode(str_of(err->message));
    add_trailer(t, STR("grpc-message"), t->message);
    StrBuf details = {0};
    grpc_details_encode(err, &details);
    if (details.len) {
        t->details = base64_encode(strbuf_str(&details));
        add_trailer(t, STR("grpc-status-details-bin"), t->details);
    }
    strbuf_clear(&details);
}

void grpc_trailers_clear(GrpcTrailers *t) {
    free(t->message);
    free(t->details);
    *t = (GrpcTrailers){0};
}

/* ---- Status received ---- */

void grpc_status_add(GrpcStatus *s, Str name, Str value) {
    int64_t number;
    if (str_is(name, ":status")) {
        s->http_status = str_to_int64(value, &number) ? (int)number : -1;
    } else if (str_is(name, "content-type")) {
        s->is_grpc = str_starts(value, STR("application/grpc"));
    } else if (str_is(name, "grpc-status")) {
        s->has_code = true;
        s->code =
            str_to_int64(value, &number) && number >= 0 && number <= CODE_UNAUTHENTICATED ? (int)number : CODE_UNKNOWN;
    } else if (str_is(name, "grpc-message")) {
        free(s->message);
        s->message = grpc_message_decode(value);
    } else if (str_is(name, "grpc-status-details-bin")) {
        strbuf_clear(&s->details);
        if (!base64_decode(value, &s->details)) strbuf_clear(&s->details);
    }
}

static ErrorCode code_of_http(int status) {
    switch (status) {
        case 400:
            return CODE_INTERNAL;
        case 401:
            return CODE_UNAUTHENTICATED;
        case 403:
            return CODE_PERMISSION_DENIED;
        case 404:
            return CODE_UNIMPLEMENTED;
        case 429:
        case 502:
        case 503:
        case 504:
            return CODE_UNAVAILABLE;
        default:
            return CODE_UNKNOWN;
    }
}

Error *grpc_status_error(const GrpcStatus *s) {
    if (!s->has_code && s->http_status != 200)
        return error_new(code_of_http(s->http_status), "the peer answered with HTTP status %d", s->http_status);
    if (!s->has_code) return error_new(CODE_UNKNOWN, "the peer ended the call without a status");
    if (s->code == CODE_OK) return NULL;
    Error *err = error_new((ErrorCode)s->code, "%s", s->message ? s->message : "");
    grpc_details_decode(strbuf_str(&s->details), err);
    return err;
}

void grpc_status_clear(GrpcStatus *s) {
    free(s->message);
    strbuf_clear(&s->details);
    *s = (GrpcStatus){0};
}

ErrorCode grpc_code_of_http2(uint32_t code) {
    switch (code) {
        case HTTP2_REFUSED_STREAM:
            return CODE_UNAVAILABLE;
        case HTTP2_CANCEL:
            return CODE_CANCELLED;
        case HTTP2_ENHANCE_YOUR_CALM:
            return CODE_RESOURCE_EXHAUSTED;
        case HTTP2_INADEQUATE_SECURITY:
            return CODE_PERMISSION_DENIED;
        default:
            return CODE_INTERNAL;
    }
}
