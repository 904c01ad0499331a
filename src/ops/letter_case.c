/* letter_case.c: StringUpper and StringLower: ASCII letters, or with encoding "utf-8" those of all scripts. */
#include <limits.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>
#include <wctype.h>

#include "ops/op_list.h"

const OpDef letter_case_ops[] = {
    {"StringUpper", "input: string -> output: string", "encoding: string = ''", 0},
    {"StringLower", "input: string -> output: string", "encoding: string = ''", 0},
    {0},
};

typedef struct CaseState {
    bool upper;
    locale_t unicode; /* 0: bytes */
} CaseState;

static Error *init_case(const Node *node, void *state) {
    CaseState *s = state;
    s->upper = str_is(node->op, "StringUpper");
    Str encoding;
    Error *err = node_attr_string(node, "encoding", &encoding);
    if (err) return err;
    if (encoding.len > 0 && !str_is(encoding, "utf-8"))
        return error_invalid("only utf-8 or '' (no encoding) is supported, received %.*s", STR_ARG(encoding));
    if (encoding.len == 0) return NULL;
    s->unicode = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
    return s->unicode ? NULL : error_unimplemented("This machine has no locale C.UTF-8");
}

static void clear_case(void *state) {
    CaseState *s = state;
    if (s->unicode) freelocale(s->unicode);
}

static void change_bytes(bool upper, TString *to, Str from) {
    char first = upper ? 'a' : 'A', last = upper ? 'z' : 'Z';
    tstring_set(to, from);
    for (size_t c = 0; c < to->len; c++)
        if (to->ptr[c] >= first && to->ptr[c] <= last) to->ptr[c] ^= 0x20;
}

/* Bytes that are not UTF-8 stay as they are. The thread's locale is the state's. */
static void change_letters(bool upper, TString *to, Str from) {
    StrBuf b = {0};
    mbstate_t in = {0}, out = {0};
    for (size_t i = 0; i < from.len;) {
        wchar_t letter;
        size_t size = mbrtowc(&letter, from.ptr + i, from.len - i, &in);
        if (size == 0 || size > from.len - i) {
            memset(&in, 0, sizeof in);
            strbuf_addc(&b, from.ptr[i++]);
            continue;
        }
        char bytes[MB_LEN_MAX];
        size_t len = wcrtomb(bytes, (wchar_t)(upper ? towupper((wint_t)letter) : towlower((wint_t)letter)), &out);
        if (upper && letter == 0xdf) {
            strbuf_add(&b, STR("SS")); /* the one letter of Latin-1 that becomes two */
        } else if (len <= sizeof bytes) {
            strbuf_add(&b, (Str){bytes, len});
        }
        i += size;
    }
    size_t len = b.len;
    tstring_take(to, strbuf_detach(&b), len);
}

static Error *run_case(KernelContext *k) {
    const CaseState *s = k->state;
    Tensor *out = kernel_output(k, 0, &k->in[0]->shape);
    if (!out) return NULL;
    locale_t before = s->unicode ? uselocale(s->unicode) : (locale_t)0;
    for (int64_t i = 0; i < out->count; i++) {
        Str from = tstring_str(&tensor_str(k->in[0])[i]);
        (s->unicode ? change_letters : change_bytes)(s->upper, &tensor_str(out)[i], from);
    }
    if (s->unicode) uselocale(before);
    return NULL;
}

const KernelDef letter_case_cpu[] = {
    {"StringUpper", .run = run_case, .state_size = sizeof(CaseState), .init = init_case, .clear = clear_case},
    {"StringLower", .run = run_case, .state_size = sizeof(CaseState), .init = init_case, .clear = clear_case},
    {0},
};
