/* regex_test.c: what matches, what is replaced, what is no pattern, and that time stays linear. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>

#include "base/regex.h"

typedef struct MatchCase {
    const char *pattern, *text;
    bool full;
} MatchCase;

static void full_matches(void **state) {
    (void)state;
    static const MatchCase cases[] = {
        {"^s3://.*", "s3://bucket/x", true},
        {"^s3://.*", "/tmp/x", false},
        {"a*b+c?", "aabb", true},
        {"(ab|cd)*", "abcdab", true},
        {"(ab|cd)*", "abc", false},
        {"[a-c]{2,3}", "abc", true},
        {"[a-c]{2,3}", "a", false},
        {"[^x]+", "hello", true},
        {"\\d+\\.\\d*", "12.5", true},
        {"(?i)HeLLo", "hEllO", true},
        {".", "\xc3\xa9", true},
        {".*", "a\nb", false},
        {"(?s).*", "a\nb", true},
        {"x{0}y", "y", true},
        {"a|ab", "ab", true},
        {"(a|ab)(c|bcd)", "abcd", true},
        {"\\bword\\b", "word", true},
        {"[[:alpha:]_]+", "ab_c", true},
        {"\\x41\\n", "A\n", true},
        {"a{,2}", "a{,2}", true},
        {"", "", true},
        {"x{3}", "xxx", true},
        {"x{2,}", "xxxxx", true},
        {"(x{2}){2}", "xxxx", true},
        {"\\Qa.b\\E", "a.b", true},
        {"(?:a|b)c", "bc", true},
        {"[]a]+", "]a", true},
        {".", "\xff", false},
        {"[^a]", "\xc0\x80", false},
        {"[[:x]+", "[:x", true},
        {"\\pL+\\p{Nd}", "a\xc3\x89\xce\xb2" "1", true},
        {"\\p{Greek}", "\xce\xb2", true},
        {"\\p{Greek}", "b", false},
        {"[\\p{^Greek}]", "\xce\xb2", false},
        {"\\P{Lu}", "\xd0\x96", false},
        {"(?i)\\p{Ll}", "\xd0\x96", true},
        {"(?i)\xd0\xb6[k-k]", "\xd0\x96\xe2\x84\xaa", true},
        {"\\p{Any}\\pZ\\pC", "a\xc2\xa0\xe2\x80\x8d", true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        Regex *r = NULL;
        Error *err = regex_compile(str_of(cases[i].pattern), &r);
        if (err) fail_msg("%s: %s", cases[i].pattern, err->message);
        RegexMatcher *m = regex_matcher_new(r);
        if (regex_full_match(m, str_of(cases[i].text)) != cases[i].full)
            fail_msg("%s on %s", cases[i].pattern, cases[i].text);
        regex_matcher_free(m);
        regex_free(r);
    }
}

typedef struct ReplaceCase {
    const char *pattern, *rewrite, *text, *first, *all;
} ReplaceCase;

static void replacements(void **state) {
    (void)state;
    static const ReplaceCase cases[] = {
        {"[ao]", "<\\0>", "hello a", "hell<o> a", "hell<o> <a>"},
        {"b*", "-", "abc", "-abc", "-a-c-"},
        {"(\\w+)@(\\w+)", "\\2 \\1", "x@y z@w", "y x z@w", "y x w z"},
        {"x*", "", "axxb", "axxb", "ab"},
        {"a+?", "X", "aaa", "Xaa", "XXX"},
        {"^", ">", "ab", ">ab", ">ab"},
        {"$", "<", "ab", "ab<", "ab<"},
        {"\\.", "\\\\", "a.b.c", "a\\b.c", "a\\b\\c"},
        {"q", "z", "none", "none", "none"},
        {"n", "\\1", "none", "none", "none"},
        {"n", "x\\y", "none", "none", "xoxe"},
        {"n", "x\\", "none", "none", "xoxe"},
        {".", "-", "a\xffz", "-\xffz", "-\xff-"},
        {"a?\\b+\\d+", "<\\0>", "BaA..1B", "BaA..<1>B", "BaA..<1>B"}, /* the condition fails behind the a, and holds before the 1 */
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        Regex *r = NULL;
        StrBuf first = {0}, all = {0};
        assert_null(regex_compile(str_of(cases[i].pattern), &r));
        RegexMatcher *m = regex_matcher_new(r);
        regex_replace(m, str_of(cases[i].text), str_of(cases[i].rewrite), false, &first);
        regex_replace(m, str_of(cases[i].text), str_of(cases[i].rewrite), true, &all);
        assert_string_equal(strbuf_str(&first).ptr, cases[i].first);
        assert_string_equal(strbuf_str(&all).ptr, cases[i].all);
        strbuf_clear(&first);
        strbuf_clear(&all);
        regex_matcher_free(m);
        regex_free(r);
    }
}

static void bad_patterns_are_refused(void **state) {
    (void)state;
    static const char *const bad[] = {
        "(",     ")",          "[a", "*a", "a{1001}", "\\", "[b-a]", "(?z)", "((((x{1000}){1000}){1000}){1000})",
        "\\xzz", "[[:nope:]]", "a**", "\xff"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        Regex *r = NULL;
        Error *err = regex_compile(str_of(bad[i]), &r);
        if (!err) fail_msg("%s was taken", bad[i]);
        assert_int_equal(err->code, CODE_INVALID_ARGUMENT);
        error_free(err);
    }
    static const char *const parts[][2] = {
        {"a[b", "missing ]: [b"},         {"(a", "missing ): (a"},
        {"a)", "unexpected ): a)"},       {"+?", "no argument for repetition operator: +?"},
        {"a*?+", "bad repetition operator: *?+"},
        {"a{2}{3}", "bad repetition operator: {2}{3}"},
        {"(a{50}|b){30}", "invalid repetition size: {30}"},
        {"[x\\8]", "invalid escape sequence: \\8"},
        {"[c-a]", "invalid character class range: c-a"},
        {"[[:no:]]", "invalid character class range: [:no:]"},
        {"\\p{Nope}a", "invalid character class range: \\p{Nope}"},
        {"[\\pQ]", "invalid character class range: \\pQ"},
        {"\\p{Greek", "invalid character class range: \\p{Greek"},
        {"\\p{greek}", "invalid character class range: \\p{greek}"},
        {"a(?=b)", "invalid perl operator: (?="},
        {"(?P<a-b>c)", "invalid named capture group: (?P<a-b>"},
    };
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        Regex *r = NULL;
        Error *err = regex_compile(str_of(parts[i][0]), &r);
        if (!err) fail_msg("%s was taken", parts[i][0]);
        StrBuf expected = {0};
        strbuf_addf(&expected, "Invalid pattern: %s, error: %s", parts[i][0], parts[i][1]);
        assert_string_equal(err->message, strbuf_str(&expected).ptr);
        strbuf_clear(&expected);
        error_free(err);
    }
    StrBuf deep = {0};
    for (int i = 0; i < 100000; i++) strbuf_addc(&deep, '(');
    Regex *r = NULL;
    Error *err = regex_compile(strbuf_str(&deep), &r);
    assert_non_null(err);
    error_free(err);
    strbuf_clear(&deep);
}

/* One matcher for many texts: by the states it has met, with characters that have none, and when there are more than it keeps. */
static void a_matcher_matches_many_texts(void **state) {
    (void)state;
    Regex *r = NULL;
    assert_null(regex_compile(STR("[ab]*a[ab]{9}(.*x)?"), &r)); /* 1024 states */
    RegexMatcher *m = regex_matcher_new(r);
    for (int i = 0; i < 4096; i++) {
        char text[20];
        int len = 0;
        for (int bit = 0; bit < 12; bit++) text[len++] = i >> bit & 1 ? 'a' : 'b';
        assert_int_equal(regex_full_match(m, (Str){text, (size_t)len}), i >> 2 & 1);
        if (i % 3) text[len++] = (char)0xc3, text[len++] = (char)0xa9;
        text[len++] = 'x';
        bool any = (i & 7) != 0; /* an a with nine letters behind it, then anything */
        assert_int_equal(regex_full_match(m, (Str){text, (size_t)len}), any);
        assert_false(regex_full_match(m, (Str){text, (size_t)len - 1}) && i % 3);
    }
    regex_matcher_free(m);
    regex_free(r);
}

static void hard_patterns_take_no_time(void **state) {
    (void)state;
    StrBuf text = {0};
    for (int i = 0; i < 3000; i++) strbuf_addc(&text, 'a');
    Regex *r = NULL;
    assert_null(regex_compile(STR("(a*)*b|(a|a)*c|(a?){50}a{50}b"), &r));
    RegexMatcher *m = regex_matcher_new(r);
    assert_false(regex_full_match(m, strbuf_str(&text)));
    regex_matcher_free(m);
    regex_free(r);
    strbuf_clear(&text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(full_matches),
        cmocka_unit_test(replacements),
        cmocka_unit_test(bad_patterns_are_refused),
        cmocka_unit_test(a_matcher_matches_many_texts),
        cmocka_unit_test(hard_patterns_take_no_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
