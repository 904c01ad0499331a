/* regex_starts.c: what is found out about a compiled pattern once, so that matching need not: the ASCII part of its classes, and how a match can begin. */
#include <stdlib.h>

#include "base/memory.h"
#include "base/regex_internal.h"

bool regex_class_has(const RegexClass *c, uint32_t rune) {
    bool found = false;
    for (size_t i = 0; i < c->count && !found; i++) found = rune >= c->ranges[i].low && rune <= c->ranges[i].high;
    return found != c->negated;
}

static void fill_ascii(RegexClass *c) {
    for (size_t i = 0; i < c->count; i++)
        for (uint32_t rune = c->ranges[i].low; rune <= c->ranges[i].high && rune < 128; rune++) c->ascii[rune / 64] |= 1ull << rune % 64;
    for (int half = 0; half < 2 && c->negated; half++) c->ascii[half] = ~c->ascii[half];
}

/* Everything that is reached without a character; conditions are taken to hold. */
void regex_find_starts(Regex *r) {
    for (size_t i = 0; i < r->class_count; i++) fill_ascii(&r->classes[i]);
    for (int byte = 128; byte < 256; byte++) r->starts[byte] = true;
    bool *seen = xcalloc(r->count, sizeof *seen);
    int *stack = xmalloc((2 * r->count + 1) * sizeof *stack), depth = 0;
    stack[depth++] = 0;
    while (depth > 0) {
        const int at = stack[--depth];
        if (seen[at]) continue;
        seen[at] = true;
        const RegexInst *inst = &r->insts[at];
        if (inst->op == REGEX_CLASS) {
            for (int rune = 0; rune < 128; rune++) r->starts[rune] |= r->classes[inst->x].ascii[rune / 64] >> rune % 64 & 1;
        } else if (inst->op == REGEX_MATCH) {
            r->may_be_empty = true;
        } else {
            if (inst->op == REGEX_SPLIT) stack[depth++] = inst->y;
            stack[depth++] = inst->op == REGEX_SPLIT || inst->op == REGEX_JUMP ? inst->x : at + 1;
        }
    }
    free(seen);
    free(stack);
}
