/* error.c: making, wrapping and freeing errors. */
#include "base/error.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/str.h"

static char *format(const char *fmt, va_list args) {
    va_list again;
    va_copy(again, args);
    int len = vsnprintf(NULL, 0, fmt, args);
    char *text = xmalloc((size_t)len + 1);
    vsnprintf(text, (size_t)len + 1, fmt, again);
    va_end(again);
    str_make_utf8(text);
    return text;
}

Error *error_newv(ErrorCode code, const char *fmt, va_list args) {
    Error *err = xcalloc(1, sizeof *err);
    err->code = code;
    err->message = format(fmt, args);
    return err;
}

Error *error_new(ErrorCode code, const char *fmt, ...) {
    va_list args;
    va_start(args, fmt);
    Error *err = error_newv(code, fmt, args);
    va_end(args);
    return err;
}

Error *error_invalid(const char *fmt, ...) {
    va_list args;
    va_start(args, fmt);
    Error *err = error_newv(CODE_INVALID_ARGUMENT, fmt, args);
    va_end(args);
    return err;
}

Error *error_not_found(const char *fmt, ...) {
    va_list args;
    va_start(args, fmt);
    Error *err = error_newv(CODE_NOT_FOUND, fmt, args);
    va_end(args);
    return err;
}

Error *error_internal(const char *fmt, ...) {
    va_list args;
    va_start(args, fmt);
    Error *err = error_newv(CODE_INTERNAL, fmt, args);
    va_end(args);
    return err;
}

Error *error_unimplemented(const char *fmt, ...) {
    va_list args;
    va_start(args, fmt);
    Error *err = error_newv(CODE_UNIMPLEMENTED, fmt, args);
    va_end(args);
    return err;
}

static void join(Error *err, const char *first, const char *second) {
    size_t a = strlen(first), b = strlen(second);
    char *text = xmalloc(a + b + 1);
    memcpy(text, first, a);
    memcpy(text + a, second, b + 1);
    free(err->message);
    err->message = text;
}

Error *error_wrap(Error *err, const char *fmt, ...) {
    if (!err) return NULL;
    va_list args;
    va_start(args, fmt);
    char *context = format(fmt, args);
    va_end(args);
    char *old = err->message;
    err->message = NULL;
    size_t len = strlen(context);
    context = xrealloc(context, len + 3);
    memcpy(context + len, ": ", 3);
    join(err, context, old);
    free(context);
    free(old);
    return err;
}

Error *error_append(Error *err, const char *fmt, ...) {
    if (!err) return NULL;
    va_list args;
    va_start(args, fmt);
    char *suffix = format(fmt, args);
    va_end(args);
    char *old = err->message;
    err->message = NULL;
    join(err, old, suffix);
    free(old);
    free(suffix);
    return err;
}

Error *error_derived(Error *err) {
    if (err) err->derived = true;
    return err;
}

Error *error_copy(const Error *err) {
    if (!err) return NULL;
    Error *copy = xmalloc(sizeof *copy);
    *copy = *err;
    copy->message = xstrdup(err->message);
    return copy;
}

void error_free(Error *err) {
    if (!err) return;
    free(err->message);
    free(err);
}

const char *error_code_name(ErrorCode code) {
    static const char *const names[] = {
        "OK",           "CANCELLED",         "UNKNOWN",           "INVALID_ARGUMENT",   "DEADLINE_EXCEEDED", "NOT_FOUND",
        "ALREADY_EXISTS", "PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION", "ABORTED",           "OUT_OF_RANGE",
        "UNIMPLEMENTED", "INTERNAL",          "UNAVAILABLE",       "DATA_LOSS",          "UNAUTHENTICATED",
    };
    return (unsigned)code < sizeof names / sizeof names[0] ? names[code] : "UNKNOWN";
}
