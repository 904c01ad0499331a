/* status.c: TF_Status and TF_Buffer. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "capi/status_internal.h"

typedef struct Payload {
    char *key, *value;
} Payload;

struct TF_Status {
    TF_Code code;
    char *message; /* NULL: "" */
    Payload *payloads;
    int payload_count;
    size_t payload_capacity;
};

TF_Status *TF_NewStatus(void) {
    return xcalloc(1, sizeof(TF_Status));
}

static void clear(TF_Status *s) {
    for (int i = 0; i < s->payload_count; i++) {
        free(s->payloads[i].key);
        free(s->payloads[i].value);
    }
    free(s->payloads);
    free(s->message);
    *s = (TF_Status){.code = TF_OK};
}

void TF_DeleteStatus(TF_Status *s) {
    if (!s) return;
    clear(s);
    free(s);
}

void TF_SetStatus(TF_Status *s, TF_Code code, const char *msg) {
    char *message = code == TF_OK ? NULL : xstrdup(msg ? msg : ""); /* msg may be the status's own */
    clear(s);
    s->code = code;
    s->message = message;
}

TF_Code TF_GetCode(const TF_Status *s) {
    return s->code;
}

const char *TF_Message(const TF_Status *s) {
    return s->message ? s->message : "";
}

void TF_SetPayload(TF_Status *s, const char *key, const char *value) {
    if (s->code == TF_OK) return;
    for (int i = 0; i < s->payload_count; i++) {
        if (strcmp(s->payloads[i].key, key) != 0) continue;
        free(s->payloads[i].value);
        s->payloads[i].value = xstrdup(value);
        return;
    }
    s->payloads = vec_reserve(s->payloads, &s->payload_capacity, (size_t)s->payload_count + 1, sizeof *s->payloads);
    s->payloads[s->payload_count++] = (Payload){xstrdup(key), xstrdup(value)};
}

void TF_ForEachPayload(const TF_Status *s, TF_PayloadVisitor visitor, void *capture) {
    for (int i = 0; i < s->payload_count; i++) visitor(s->payloads[i].key, s->payloads[i].value, capture);
}

static TF_Code code_of_errno(int number) {
    switch (number) {
        case 0: return TF_OK;
        case EINVAL:
        case ENAMETOOLONG:
        case E2BIG:
        case EDESTADDRREQ:
        case EDOM:
        case EFAULT:
        case EILSEQ:
        case ENOPROTOOPT:
        case ENOSTR:
        case ENOTSOCK:
        case ENOTTY:
        case EPROTOTYPE:
        case ESPIPE: return TF_INVALID_ARGUMENT;
        case ETIMEDOUT:
        case ETIME: return TF_DEADLINE_EXCEEDED;
        case ENODEV:
        case ENOENT:
        case ENXIO:
        case ESRCH: return TF_NOT_FOUND;
        case EEXIST:
        case EADDRNOTAVAIL:
        case EALREADY: return TF_ALREADY_EXISTS;
        case EPERM:
        case EACCES:
        case EROFS: return TF_PERMISSION_DENIED;
        case ENOTEMPTY:
        case EISDIR:
        case ENOTDIR:
        case EADDRINUSE:
        case EBADF:
        case EBUSY:
        case ECHILD:
        case EISCONN:
        case ENOTBLK:
        case ENOTCONN:
        case EPIPE:
        case ESHUTDOWN:
        case ETXTBSY: return TF_FAILED_PRECONDITION;
        case ENOSPC:
        case EDQUOT:
        case EMFILE:
        case EMLINK:
        case ENFILE:
        case ENOBUFS:
        case ENODATA:
        case ENOMEM:
        case ENOSR:
        case EUSERS: return TF_RESOURCE_EXHAUSTED;
        case EFBIG:
        case EOVERFLOW:
        case ERANGE: return TF_OUT_OF_RANGE;
        case ENOSYS:
        case ENOTSUP:
        case EAFNOSUPPORT:
        case EPFNOSUPPORT:
        case EPROTONOSUPPORT:
        case ESOCKTNOSUPPORT:
        case EXDEV: return TF_UNIMPLEMENTED;
        case EAGAIN:
        case ECONNREFUSED:
        case ECONNABORTED:
        case ECONNRESET:
        case EINTR:
        case EHOSTDOWN:
        case EHOSTUNREACH:
        case ENETDOWN:
        case ENETRESET:
        case ENETUNREACH:
        case ENOLCK:
        case ENOLINK: return TF_UNAVAILABLE;
        case EDEADLK:
        case ESTALE: return TF_ABORTED;
        case ECANCELED: return TF_CANCELLED;
        default: return TF_UNKNOWN;
    }
}

void TF_SetStatusFromIOError(TF_Status *s, int error_code, const char *context) {
    char *message = xasprintf("%s; %s", context, strerror(error_code));
    TF_SetStatus(s, code_of_errno(error_code), message);
    free(message);
}

bool status_take(TF_Status *s, Error *err) {
    TF_SetStatus(s, err ? (TF_Code)err->code : TF_OK, err ? err->message : "");
    error_free(err);
    return s->code == TF_OK;
}

Error *status_error(const TF_Status *s) {
    return s->code == TF_OK ? NULL : error_new((ErrorCode)s->code, "%s", TF_Message(s));
}

/* ---- TF_Buffer ---- */

static void free_data(void *data, size_t length) {
    (void)length;
    free(data);
}

TF_Buffer *TF_NewBuffer(void) {
    return xcalloc(1, sizeof(TF_Buffer));
}

TF_Buffer *TF_NewBufferFromString(const void *proto, size_t proto_len) {
    TF_Buffer *b = TF_NewBuffer();
    void *copy = xmalloc(proto_len);
    if (proto_len) memcpy(copy, proto, proto_len);
    *b = (TF_Buffer){copy, proto_len, free_data};
    return b;
}

void TF_DeleteBuffer(TF_Buffer *b) {
    if (!b) return;
    if (b->data_deallocator) b->data_deallocator((void *)b->data, b->length);
    free(b);
}

TF_Buffer TF_GetBuffer(TF_Buffer *b) {
    return *b;
}

Error *buffer_fill(TF_Buffer *b, StrBuf *take) {
    if (b->data) {
        strbuf_clear(take);
        return error_invalid("Passing non-empty TF_Buffer is invalid.");
    }
    size_t length = take->len;
    *b = (TF_Buffer){strbuf_detach(take), length, free_data};
    return NULL;
}
