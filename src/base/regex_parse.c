/* regex_parse.c: compiles a pattern to a program, in one pass of recursive descent.
 *
 * Code is emitted as it is parsed; what must come before something already emitted (the split of "x*") is made room for
 * by moving the code up, and a repeat with a count copies it. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/regex_internal.h"

enum { MAX_PROGRAM = 100000, MAX_REPEAT = 1000, MAX_DEPTH = 500 };

typedef struct Flags {
    bool ignore_case, dot_newline, multi_line, lazy;
} Flags;

typedef struct Parser {
    Regex *r;
    Str pattern;
    size_t at;
    Flags flags;
    int depth;
    int repeats; /* how often the counts of repeats in the last expression multiply to */
    const char *problem; /* the first one */
    Str part;            /* of the pattern that has it; may be empty */
} Parser;

size_t utf8_next(Str text, size_t at, uint32_t *rune) {
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    const unsigned char *p = (const unsigned char *)text.ptr + at;
    size_t left = text.len - at, n = p[0] < 0x80       ? 1
                                     : p[0] >> 5 == 6  ? 2
                                     : p[0] >> 4 == 14 ? 3
                                     : p[0] >> 3 == 30 ? 4
                                                       : 0;
    *rune = p[0];
    if (n == 1) return 1;
    bool ok = n && n <= left;
    uint32_t v = n ? p[0] & (0xffu >> (n + 1)) : 0;
    for (size_t i = 1; ok && i < n; i++) {
        ok = p[i] >> 6 == 2;
        v = v << 6 | (p[i] & 0x3f);
    }
    ok = ok && v >= least[n] && v <= REGEX_LAST_RUNE;
    *rune = ok ? v : REGEX_NO_RUNE;
    return ok ? n : 1;
}

/* The problem is in the pattern's bytes [from, to). */
static void fail_at(Parser *p, const char *problem, size_t from, size_t to) {
    if (p->problem) return;
    p->problem = problem;
    p->part = str_slice(p->pattern, from, to);
}

static void fail(Parser *p, const char *problem) {
    fail_at(p, problem, 0, 0);
}

static bool more(const Parser *p) {
    return !p->problem && p->at < p->pattern.len;
}

static char peek(const Parser *p) {
    return p->at < p->pattern.len ? p->pattern.ptr[p->at] : 0;
}

static bool take(Parser *p, const char *text) {
    if (!str_starts(str_slice(p->pattern, p->at, p->pattern.len), str_of(text))) return false;
    p->at += strlen(text);
    return true;
}

/* ---- Code ---- */

static void emit(Parser *p, RegexOp op, int x, int y) {
    Regex *r = p->r;
    if (r->count >= MAX_PROGRAM) {
        fail(p, "pattern too large - compile failed");
        return;
    }
    r->insts = vec_reserve(r->insts, &r->capacity, r->count + 1, sizeof *r->insts);
    r->insts[r->count++] = (RegexInst){op, x, y};
}

/* Moves code [from, count) up by one; jumps inside it follow. */
static void insert_before(Parser *p, size_t from, RegexOp op, int x, int y) {
    emit(p, REGEX_JUMP, 0, 0);
    if (p->problem) return;
    RegexInst *code = p->r->insts;
    memmove(code + from + 1, code + from, (p->r->count - 1 - from) * sizeof *code);
    for (size_t i = from + 1; i < p->r->count; i++) {
        bool jumps = code[i].op == REGEX_SPLIT || code[i].op == REGEX_JUMP;
        if (jumps && code[i].x >= (int)from) code[i].x++;
        if (code[i].op == REGEX_SPLIT && code[i].y >= (int)from) code[i].y++;
    }
    code[from] = (RegexInst){op, x, y};
}

/* Appends a copy of code [from, to). */
static void copy_code(Parser *p, size_t from, size_t to) {
    int shift = (int)(p->r->count - from);
    for (size_t i = from; i < to && !p->problem; i++) {
        RegexInst inst = p->r->insts[i];
        if (inst.op == REGEX_SPLIT || inst.op == REGEX_JUMP) inst.x += shift;
        if (inst.op == REGEX_SPLIT) inst.y += shift;
        emit(p, inst.op, inst.x, inst.y);
    }
}

static void set_split(Parser *p, size_t at, size_t first, size_t second, bool lazy) {
    if (p->problem) return;
    p->r->insts[at].x = (int)(lazy ? second : first);
    p->r->insts[at].y = (int)(lazy ? first : second);
}

static void make_star(Parser *p, size_t from, bool lazy) {
    insert_before(p, from, REGEX_SPLIT, 0, 0);
    emit(p, REGEX_JUMP, (int)from, 0);
    set_split(p, from, from + 1, p->r->count, lazy);
}

static void make_plus(Parser *p, size_t from, bool lazy) {
    emit(p, REGEX_SPLIT, 0, 0);
    set_split(p, p->r->count - 1, from, p->r->count, lazy);
}

static void make_optional(Parser *p, size_t from, bool lazy) {
    insert_before(p, from, REGEX_SPLIT, 0, 0);
    set_split(p, from, from + 1, p->r->count, lazy);
}

static void make_counted(Parser *p, size_t from, int min, int max, bool lazy) {
    size_t size = p->r->count - from;
    if (min == 0 && max == 0) {
        p->r->count = from;
    } else if (min == 0 && max < 0) {
        make_star(p, from, lazy);
    } else {
        for (int i = 1; i < min; i++) copy_code(p, from, from + size);
        if (max < 0) make_plus(p, p->r->count - size, lazy);
        /* x{2,4} is xx(x(x)?)?, which is the same as xxx?x? */
        if (min == 0) make_optional(p, from, lazy);
        size_t template = min == 0 ? from + 1 : from;
        for (int i = min ? min : 1; i < max && !p->problem; i++) {
            size_t at = p->r->count;
            copy_code(p, template, template + size);
            make_optional(p, at, lazy);
        }
    }
}

/* ---- Classes ---- */

void regex_class_add(RegexClass *c, uint32_t low, uint32_t high) {
    c->ranges = vec_reserve(c->ranges, &c->capacity, c->count + 1, sizeof *c->ranges);
    c->ranges[c->count++] = (RegexRange){low, high};
}

static void class_add_case(Parser *p, RegexClass *c, uint32_t low, uint32_t high) {
    regex_class_add(c, low, high);
    if (!p->flags.ignore_case || high > REGEX_LAST_RUNE) return;
    bool plain = high < 128; /* k and s have more forms than two */
    for (uint32_t v = low; v <= high && v < 128; v++) plain = plain && !strchr("kKsS", (int)v);
    if (!plain) regex_add_cases(c, low, high);
    for (uint32_t v = low; plain && v <= high; v++)
        if (isalpha((int)v)) regex_class_add(c, v ^ 0x20, v ^ 0x20);
}

typedef struct NamedClass {
    const char *name;
    const char *ranges; /* pairs of first and last */
} NamedClass;

static const NamedClass posix_classes[] = {
    {"alnum", "09AZaz"}, {"alpha", "AZaz"}, {"ascii", "\001\177"}, {"blank", "\t\t  "},  {"cntrl", "\001\037\177\177"},
    {"digit", "09"},     {"graph", "!~"},   {"lower", "az"},       {"print", " ~"},      {"punct", "!/:@[`{~"},
    {"space", "\t\r  "}, {"upper", "AZ"},   {"word", "09AZaz__"},  {"xdigit", "09AFaf"},
};

/* Adds the ranges, or what lies between them. */
static void class_add_named(RegexClass *c, const char *ranges, bool negated) {
    uint32_t next = 0;
    for (const char *at = ranges; *at; at += 2) {
        uint32_t low = (unsigned char)at[0], high = (unsigned char)at[1];
        if (!negated) regex_class_add(c, low, high);
        if (negated && low > next) regex_class_add(c, next, low - 1);
        next = high + 1;
    }
    if (negated) regex_class_add(c, next, REGEX_LAST_RUNE);
}

/* \d \w \s and the negated ones. */
static bool perl_class(char letter, RegexClass *c) {
    const char *ranges = NULL;
    switch (tolower((unsigned char)letter)) {
        case 'd':
            ranges = "09";
            break;
        case 'w':
            ranges = "09AZ__az";
            break;
        case 's':
            ranges = "\t\n\f\r  ";
            break;
    }
    if (ranges) class_add_named(c, ranges, isupper((unsigned char)letter));
    return ranges != NULL;
}

/* After a backslash: the character that the escape stands for. */
static uint32_t parse_escape(Parser *p) {
    static const char from[] = "nrtfva", to[] = "\n\r\t\f\v\a";
    if (!more(p)) {
        fail(p, "trailing \\");
        return 0;
    }
    size_t start = p->at - 1;
    char c = p->pattern.ptr[p->at++];
    const char *simple = strchr(from, c);
    if (simple && c) return (unsigned char)to[simple - from];
    if (c == 'x') {
        bool braces = take(p, "{");
        uint32_t v = 0;
        int digits = 0;
        for (; isxdigit((unsigned char)peek(p)) && (braces ? digits < 8 : digits < 2); digits++) {
            char d = p->pattern.ptr[p->at++];
            v = v * 16 + (uint32_t)(isdigit((unsigned char)d) ? d - '0' : tolower((unsigned char)d) - 'a' + 10);
        }
        if (!digits || v > REGEX_LAST_RUNE || (braces && !take(p, "}"))) fail_at(p, "invalid escape sequence", start, p->at);
        return v;
    }
    if (c >= '0' && c <= '7' && (c == '0' || isdigit((unsigned char)peek(p)))) {
        uint32_t v = (uint32_t)(c - '0');
        for (int i = 0; i < 2 && peek(p) >= '0' && peek(p) <= '7'; i++)
            v = v * 8 + (uint32_t)(p->pattern.ptr[p->at++] - '0');
        return v;
    }
    if (isalnum((unsigned char)c)) {
        fail_at(p, "invalid escape sequence", start, p->at);
        return 0;
    }
    p->at--;
    uint32_t rune;
    p->at += utf8_next(p->pattern, p->at, &rune);
    return rune;
}

static int class_new(Parser *p) {
    Regex *r = p->r;
    r->classes = vec_reserve(r->classes, &r->class_capacity, r->class_count + 1, sizeof *r->classes);
    r->classes[r->class_count] = (RegexClass){0};
    return (int)r->class_count++;
}

static bool named_in_brackets(Parser *p, RegexClass *c) {
    size_t start = p->at;
    if (!take(p, "[:")) return false;
    bool negated = take(p, "^");
    for (size_t i = 0; i < sizeof posix_classes / sizeof posix_classes[0]; i++) {
        size_t name = p->at;
        if (take(p, posix_classes[i].name) && take(p, ":]")) {
            class_add_named(c, posix_classes[i].ranges, negated);
            return true;
        }
        p->at = name;
    }
    p->at = start;
    Str rest = str_slice(p->pattern, start, p->pattern.len);
    const char *end = memmem(rest.ptr, rest.len, ":]", 2);
    if (!end) return false;
    fail_at(p, "invalid character class range", start, start + (size_t)(end - rest.ptr) + 2);
    return true;
}

/* At p or P behind a backslash: adds what the escape names. */
static bool unicode_class(Parser *p, RegexClass *c) {
    if (peek(p) != 'p' && peek(p) != 'P') return false;
    bool known = false;
    size_t start = p->at;
    p->at += regex_add_unicode(c, str_slice(p->pattern, p->at, p->pattern.len), p->flags.ignore_case, &known);
    if (!known) fail_at(p, "invalid character class range", start - 1, p->at);
    return true;
}

static uint32_t class_member(Parser *p) {
    uint32_t rune;
    if (take(p, "\\")) return parse_escape(p);
    p->at += utf8_next(p->pattern, p->at, &rune);
    return rune;
}

/* After '['. */
static void parse_class(Parser *p) {
    int number = class_new(p);
    size_t start = p->at - 1;
    RegexClass c = {.negated = take(p, "^")};
    bool closed = false;
    for (bool first = true; more(p) && !closed; first = false) {
        if (!first && take(p, "]")) {
            closed = true;
        } else if (named_in_brackets(p, &c)) {
            continue;
        } else if (peek(p) == '\\' && p->at + 1 < p->pattern.len && perl_class(p->pattern.ptr[p->at + 1], &c)) {
            p->at += 2;
        } else if (peek(p) == '\\' && p->at + 1 < p->pattern.len && strchr("pP", p->pattern.ptr[p->at + 1])) {
            p->at++;
            unicode_class(p, &c);
        } else {
            size_t from = p->at;
            uint32_t low = class_member(p), high = low;
            if (peek(p) == '-' && p->at + 1 < p->pattern.len && p->pattern.ptr[p->at + 1] != ']') {
                p->at++;
                high = class_member(p);
            }
            if (high < low) fail_at(p, "invalid character class range", from, p->at);
            class_add_case(p, &c, low, high);
        }
    }
    if (!closed) fail_at(p, "missing ]", start, p->pattern.len);
    p->r->classes[number] = c;
    emit(p, REGEX_CLASS, number, 0);
}

static void emit_rune(Parser *p, uint32_t rune) {
    int number = class_new(p);
    RegexClass c = {0};
    class_add_case(p, &c, rune, rune);
    p->r->classes[number] = c;
    emit(p, REGEX_CLASS, number, 0);
}

static void emit_dot(Parser *p) {
    int number = class_new(p);
    RegexClass c = {0};
    if (p->flags.dot_newline)
        regex_class_add(&c, 0, REGEX_LAST_RUNE);
    else
        class_add_named(&c, "\n\n", true);
    p->r->classes[number] = c;
    emit(p, REGEX_CLASS, number, 0);
}

/* ---- Expressions ---- */

static void parse_alternatives(Parser *p);

/* After "(?": flags, and whether a group follows. */
static bool parse_flags(Parser *p) {
    Flags flags = p->flags;
    size_t start = p->at - 2;
    for (bool on = true; more(p); p->at++) {
        switch (peek(p)) {
            case '-':
                on = false;
                break;
            case 'i':
                flags.ignore_case = on;
                break;
            case 's':
                flags.dot_newline = on;
                break;
            case 'm':
                flags.multi_line = on;
                break;
            case 'U':
                flags.lazy = on;
                break;
            case ':':
                p->at++;
                p->flags = flags;
                return true;
            case ')':
                p->flags = flags;
                return false;
            default:
                fail_at(p, "invalid perl operator", start, p->at + 1);
                return false;
        }
    }
    fail_at(p, "missing )", 0, p->pattern.len);
    return false;
}

/* A bad name is shown up to its bracket, without one with all that follows. */
static void fail_named(Parser *p, size_t start) {
    const char *end = memchr(p->pattern.ptr + start, '>', p->pattern.len - start);
    fail_at(p, "invalid named capture group", start, end ? (size_t)(end - p->pattern.ptr) + 1 : p->pattern.len);
}

/* After '('. */
static void parse_group(Parser *p) {
    Flags outer = p->flags;
    int group = 0;
    if (++p->depth > MAX_DEPTH) {
        fail(p, "expression nests too deeply");
        return;
    }
    size_t start = p->at - 1;
    if (take(p, "?P<") || take(p, "?<")) {
        while (isalnum((unsigned char)peek(p)) || peek(p) == '_') p->at++;
        bool named = p->pattern.ptr[p->at - 1] != '<';
        if (!take(p, ">") || !named) fail_named(p, start);
        group = ++p->r->group_count;
    } else if (take(p, "?")) {
        if (!parse_flags(p)) { /* "(?i)": the flags hold for the rest of the group around it */
            if (!take(p, ")")) fail_at(p, "missing )", 0, p->pattern.len);
            p->repeats = 1;
            p->depth--;
            return;
        }
    } else {
        group = ++p->r->group_count;
    }
    bool saved = group && group < REGEX_MAX_GROUPS;
    if (saved) emit(p, REGEX_SAVE, 2 * group, 0);
    parse_alternatives(p);
    if (saved) emit(p, REGEX_SAVE, 2 * group + 1, 0);
    if (!take(p, ")")) fail_at(p, "missing )", 0, p->pattern.len);
    p->flags = outer;
    p->depth--;
}

static void parse_backslash(Parser *p) {
    if (p->at >= p->pattern.len) {
        fail(p, "trailing \\");
        return;
    }
    char c = peek(p);
    RegexClass perl = {0};
    if (c == 'A' || c == 'z' || c == 'b' || c == 'B') {
        p->at++;
        emit(p, REGEX_ASSERT,
             c == 'A'   ? AT_TEXT_START
             : c == 'z' ? AT_TEXT_END
             : c == 'b' ? AT_WORD_EDGE
                        : NOT_AT_WORD_EDGE,
             0);
    } else if (perl_class(c, &perl) || unicode_class(p, &perl)) {
        if (c != 'p' && c != 'P') p->at++;
        int number = class_new(p);
        p->r->classes[number] = perl;
        emit(p, REGEX_CLASS, number, 0);
    } else if (c == 'Q') {
        p->at++;
        while (more(p) && !take(p, "\\E")) {
            uint32_t rune;
            p->at += utf8_next(p->pattern, p->at, &rune);
            emit_rune(p, rune);
        }
    } else {
        emit_rune(p, parse_escape(p));
    }
}

static void parse_atom(Parser *p) {
    uint32_t rune;
    if (take(p, "(")) {
        parse_group(p);
    } else if (take(p, "[")) {
        parse_class(p);
    } else if (take(p, ".")) {
        emit_dot(p);
    } else if (take(p, "^")) {
        emit(p, REGEX_ASSERT, p->flags.multi_line ? AT_LINE_START : AT_TEXT_START, 0);
    } else if (take(p, "$")) {
        emit(p, REGEX_ASSERT, p->flags.multi_line ? AT_LINE_END : AT_TEXT_END, 0);
    } else if (take(p, "\\")) {
        parse_backslash(p);
    } else if (strchr("*+?", peek(p))) {
        size_t lazy = p->at + 1 < p->pattern.len && p->pattern.ptr[p->at + 1] == '?';
        fail_at(p, "no argument for repetition operator", p->at, p->at + 1 + lazy);
    } else {
        p->at += utf8_next(p->pattern, p->at, &rune);
        emit_rune(p, rune);
    }
}

/* "{2}", "{2,}", "{2,5}"; anything else is text. */
static bool parse_count(Parser *p, int *min, int *max) {
    size_t start = p->at;
    int values[2] = {-1, -1}, n = 0;
    bool comma = false, ok = take(p, "{");
    for (; ok && more(p) && peek(p) != '}'; p->at++) {
        char c = peek(p);
        if (c == ',' && !comma) {
            comma = true;
            n = 1;
        } else if (isdigit((unsigned char)c) && values[n] <= MAX_REPEAT) {
            values[n] = (values[n] < 0 ? 0 : values[n]) * 10 + c - '0';
        } else {
            ok = false;
            break;
        }
    }
    ok = ok && take(p, "}") && values[0] >= 0;
    if (!ok) p->at = start;
    *min = values[0];
    *max = comma ? values[1] : values[0];
    return ok;
}

static void parse_repeats(Parser *p, size_t from) {
    size_t before = 0; /* the repeat that this one would repeat */
    for (bool repeated = false; more(p); repeated = true) {
        int min = 0, max = 0;
        size_t start = p->at;
        char op = peek(p);
        bool counted = op == '{' && parse_count(p, &min, &max);
        if (!counted && op != '*' && op != '+' && op != '?') return;
        if (!counted) p->at++;
        bool lazy = take(p, "?") != p->flags.lazy;
        if (repeated) fail_at(p, "bad repetition operator", before, p->at);
        before = start;
        if (p->problem) return;
        int most = max < 0 ? min : max;
        if (counted && most >= 2 && most <= MAX_REPEAT) p->repeats *= most;
        if (counted && (most > MAX_REPEAT || (max >= 0 && max < min) || p->repeats > MAX_REPEAT))
            fail_at(p, "invalid repetition size", start, p->at);
        else if (counted)
            make_counted(p, from, min, max, lazy);
        else if (op == '*')
            make_star(p, from, lazy);
        else if (op == '+')
            make_plus(p, from, lazy);
        else
            make_optional(p, from, lazy);
    }
}

static void parse_sequence(Parser *p) {
    int most = 1;
    while (more(p) && peek(p) != '|' && peek(p) != ')') {
        size_t from = p->r->count;
        p->repeats = 1;
        parse_atom(p);
        parse_repeats(p, from);
        if (p->repeats > most) most = p->repeats;
    }
    p->repeats = most;
}

static void parse_alternatives(Parser *p) {
    size_t from = p->r->count;
    parse_sequence(p);
    int repeats = p->repeats;
    if (!take(p, "|")) return;
    insert_before(p, from, REGEX_SPLIT, (int)from + 1, 0);
    emit(p, REGEX_JUMP, 0, 0);
    size_t jump = p->r->count - 1;
    if (p->problem) return;
    p->r->insts[from].y = (int)p->r->count;
    if (++p->depth > MAX_DEPTH) fail(p, "expression nests too deeply");
    parse_alternatives(p);
    p->depth--;
    if (repeats > p->repeats) p->repeats = repeats;
    if (!p->problem) p->r->insts[jump].x = (int)p->r->count;
}

void regex_free(Regex *r) {
    if (!r) return;
    for (size_t i = 0; i < r->class_count; i++) free(r->classes[i].ranges);
    free(r->classes);
    free(r->insts);
    free(r);
}

Error *regex_compile(Str pattern, Regex **out) {
    Parser p = {.r = xcalloc(1, sizeof(Regex)), .pattern = pattern};
    uint32_t rune = 0;
    for (size_t i = 0; i < pattern.len && rune != REGEX_NO_RUNE;) i += utf8_next(pattern, i, &rune);
    if (rune == REGEX_NO_RUNE) fail(&p, "invalid UTF-8");
    emit(&p, REGEX_SAVE, 0, 0);
    parse_alternatives(&p);
    if (!p.problem && p.at < pattern.len) fail_at(&p, "unexpected )", 0, pattern.len);
    emit(&p, REGEX_SAVE, 1, 0);
    emit(&p, REGEX_MATCH, 0, 0);
    if (p.problem) {
        Error *err = error_invalid("Invalid pattern: %.*s, error: %s%s%.*s", STR_ARG(pattern), p.problem,
                                   p.part.len ? ": " : "", STR_ARG(p.part));
        regex_free(p.r);
        return err;
    }
    regex_find_starts(p.r);
    *out = p.r;
    return NULL;
}
