/* regex_internal.h: the program that a pattern is compiled to. */
#pragma once
#include <stdint.h>

#include "base/regex.h"

typedef enum RegexOp {
    REGEX_CLASS,  /* one character in a class */
    REGEX_SPLIT,  /* goes on at x, or else at y */
    REGEX_JUMP,   /* goes on at x */
    REGEX_SAVE,   /* notes the position in slot x */
    REGEX_ASSERT, /* a condition on the position */
    REGEX_MATCH,
} RegexOp;

typedef enum RegexAssert {
    AT_TEXT_START,
    AT_TEXT_END,
    AT_LINE_START,
    AT_LINE_END,
    AT_WORD_EDGE,
    NOT_AT_WORD_EDGE
} RegexAssert;

typedef struct RegexRange {
    uint32_t low, high;
} RegexRange;

typedef struct RegexClass {
    RegexRange *ranges;
    size_t count, capacity;
    bool negated;
    uint64_t ascii[2]; /* a bit for each rune below 128 that is in it, negation and all; set once the pattern is whole */
} RegexClass;

typedef struct RegexInst {
    RegexOp op;
    int x, y; /* targets, slot, condition, or number of the class */
} RegexInst;

struct Regex {
    RegexInst *insts;
    size_t count, capacity;
    RegexClass *classes;
    size_t class_count, class_capacity;
    int group_count; /* without group 0 */
    bool starts[256]; /* bytes that a match can begin with */
    bool may_be_empty;
};

enum { REGEX_LAST_RUNE = 0x10ffff };
#define REGEX_NO_RUNE UINT32_MAX

/* One character of UTF-8; a byte that starts none is REGEX_NO_RUNE, which is in no class, negated or not. */
size_t utf8_next(Str text, size_t at, uint32_t *rune);

void regex_class_add(RegexClass *c, uint32_t low, uint32_t high);
/* The class that an escape names, which begins behind the backslash with p or P; how many bytes it has. */
size_t regex_add_unicode(RegexClass *c, Str escape, bool ignore_case, bool *known);
void regex_add_cases(RegexClass *c, uint32_t low, uint32_t high); /* these and whatever differs from one of them only in case */

bool regex_class_has(const RegexClass *c, uint32_t rune);
void regex_find_starts(Regex *r); /* of a program that is whole */
