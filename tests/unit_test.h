/* unit_test.h: cmocka, and what most tests say of errors. */
#pragma once
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include <string.h>

#include "base/error.h"

static inline void expect_ok_at(Error *err, const char *file, int line) {
    if (!err) return;
    print_message("%s:%d: %s: %s\n", file, line, error_code_name(err->code), err->message);
    error_free(err);
    _fail(file, line);
}

/* The error has this code, and its message holds `text` (NULL: any); it is freed. */
static inline void expect_error_at(Error *err, ErrorCode code, const char *text, const char *file, int line) {
    bool ok = err && err->code == code && (!text || strstr(err->message, text));
    if (!ok) print_message("%s:%d: expected %s with \"%s\", got %s: %s\n", file, line, error_code_name(code), text ? text : "",
                           err ? error_code_name(err->code) : "success", err ? err->message : "");
    error_free(err);
    if (!ok) _fail(file, line);
}

#define expect_ok(err) expect_ok_at(err, __FILE__, __LINE__)
#define expect_error(err, code, text) expect_error_at(err, code, text, __FILE__, __LINE__)
#define expect_str(s, text) do { Str expect_s = (s); if (!str_is(expect_s, text)) { print_message("got \"%.*s\"\n", STR_ARG(expect_s)); assert_true(false); } } while (0)
