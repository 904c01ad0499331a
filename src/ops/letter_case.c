/* letter_case.c: StringUpper and StringLower: ASCII letters, or with encoding "utf-8" those of all scripts, by ICU's tables. */
#include <stdlib.h>
#include <string.h>
#include <unicode/ustring.h>

#include "base/memory.h"
#include "ops/op_list.h"

const OpDef letter_case_ops[] = {
    {"StringUpper", "input: string -> output: string", "encoding: string = ''", 0},
    {"StringLower", "input: string -> output: string", "encoding: string = ''", 0},
    {0},
};

typedef struct CaseState {
    bool upper;
    bool unicode; /* else bytes */
} CaseState;

static Error *init_case(const Node *node, void *state) {
    CaseState *s = state;
    s->upper = str_is(node->op, "StringUpper");
    Str encoding;
    Error *err = node_attr_string(node, "encoding", &encoding);
    if (err) return err;
    if (encoding.len > 0 && !str_is(encoding, "utf-8"))
        return error_invalid("only utf-8 or '' (no encoding) is supported, received %.*s", STR_ARG(encoding));
    s->unicode = encoding.len > 0;
    return NULL;
}

static void change_bytes(bool upper, TString *to, Str from) {
    char first = upper ? 'a' : 'A', last = upper ? 'z' : 'Z';
    char *text = tstring_room(to, from.len);
    for (size_t c = 0; c < from.len; c++) text[c] = (char)(from.ptr[c] >= first && from.ptr[c] <= last ? from.ptr[c] ^ 0x20 : from.ptr[c]);
}

enum { MOST_UNITS_A_LETTER = 3 }; /* one unit of UTF-16 becomes at most that many, and each of them 3 bytes of UTF-8 */

/* Bytes that are not UTF-8 become U+FFFD; a zero ends the text, as it does in TensorFlow. */
static Error *change_letters(bool upper, TString *to, Str from) {
    from.len = from.len ? strnlen(from.ptr, from.len) : 0;
    if (from.len > INT32_MAX / 10) return error_invalid("A string of %zu bytes is too long to change its case", from.len);
    int32_t len = 0, capacity = (int32_t)from.len * MOST_UNITS_A_LETTER + 1;
    UErrorCode status = U_ZERO_ERROR;
    UChar *units = xmalloc((from.len + 1) * sizeof *units), *changed = xmalloc((size_t)capacity * sizeof *changed);
    u_strFromUTF8WithSub(units, (int32_t)from.len + 1, &len, from.ptr, (int32_t)from.len, 0xfffd, NULL, &status);
    len = upper ? u_strToUpper(changed, capacity, units, len, "", &status) : u_strToLower(changed, capacity, units, len, "", &status);
    char *bytes = xmalloc((size_t)len * 3 + 1);
    int32_t size = 0;
    u_strToUTF8(bytes, len * 3 + 1, &size, changed, len, &status);
    free(units);
    free(changed);
    if (U_FAILURE(status)) {
        free(bytes);
        return error_internal("The case of a string cannot be changed: %s", u_errorName(status));
    }
    tstring_take(to, bytes, (size_t)size);
    return NULL;
}

typedef struct BytesJob {
    bool upper;
    const TString *from;
    TString *to;
} BytesJob;

static void change_range(void *arg, int64_t begin, int64_t end) {
    const BytesJob *job = arg;
    for (int64_t i = begin; i < end; i++) change_bytes(job->upper, &job->to[i], tstring_str(&job->from[i]));
}

static Error *run_case(KernelContext *k) {
    const CaseState *s = k->state;
    const TString *from = tensor_str(k->in[0]);
    Tensor *out = kernel_output(k, 0, &k->in[0]->shape);
    Error *err = NULL;
    if (out && !s->unicode) threadpool_parallel_for(k->pool, out->count, 2048, change_range, &(BytesJob){s->upper, from, tensor_str(out)});
    for (int64_t i = 0; out && s->unicode && !err && i < out->count; i++) err = change_letters(s->upper, &tensor_str(out)[i], tstring_str(&from[i]));
    return err;
}

const KernelDef letter_case_cpu[] = {
    {"StringUpper", .run = run_case, .state_size = sizeof(CaseState), .init = init_case},
    {"StringLower", .run = run_case, .state_size = sizeof(CaseState), .init = init_case},
    {0},
};
