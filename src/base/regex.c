/* regex.c: runs compiled patterns: all ways through the program advance together, one character at a time. */
#include "base/regex.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/regex_internal.h"

enum { SLOTS = 2 * REGEX_MAX_GROUPS };

typedef struct Way {
    int at; /* in the program, at a CLASS or MATCH */
    size_t slots[SLOTS];
} Way;

/* Ways in order of preference, at most one for each place in the program. */
typedef struct Ways {
    Way *items;
    int count;
    uint32_t *seen; /* by place: the generation in which it was added */
    uint32_t generation;
} Ways;

typedef struct Run {
    const Regex *r;
    Str text;
    Ways now, next;
    int *stack; /* places still to follow; negative: restore a slot */
    size_t *saved;
} Run;

static bool is_word(Str text, size_t at) {
    unsigned char c = (unsigned char)text.ptr[at];
    return isalnum(c) || c == '_';
}

static bool holds(RegexAssert what, Str text, size_t at) {
    bool before = at > 0 && is_word(text, at - 1), after = at < text.len && is_word(text, at);
    switch (what) {
        case AT_TEXT_START:
            return at == 0;
        case AT_TEXT_END:
            return at == text.len;
        case AT_LINE_START:
            return at == 0 || text.ptr[at - 1] == '\n';
        case AT_LINE_END:
            return at == text.len || text.ptr[at] == '\n';
        case AT_WORD_EDGE:
            return before != after;
        default:
            return before == after;
    }
}

/* Follows splits and jumps from `start` without consuming; a stack instead of recursion, since programs can be long.
 * Slots that are changed on the way are restored when the ways behind the change are done. */
static void add_way(Run *run, Ways *ways, int start, size_t pos, size_t *slots) {
    int depth = 0;
    run->stack[depth++] = start;
    while (depth > 0) {
        int at = run->stack[--depth];
        if (at < 0) {
            slots[-at - 1] = run->saved[depth];
            continue;
        }
        if (ways->seen[at] == ways->generation) continue;
        ways->seen[at] = ways->generation;
        const RegexInst *inst = &run->r->insts[at];
        switch (inst->op) {
            case REGEX_JUMP:
                run->stack[depth++] = inst->x;
                break;
            case REGEX_SPLIT:
                run->stack[depth++] = inst->y;
                run->stack[depth++] = inst->x;
                break;
            case REGEX_SAVE:
                run->saved[depth] = slots[inst->x];
                run->stack[depth++] = -inst->x - 1;
                slots[inst->x] = pos;
                run->stack[depth++] = at + 1;
                break;
            case REGEX_ASSERT:
                if (holds((RegexAssert)inst->x, run->text, pos)) run->stack[depth++] = at + 1;
                break;
            default: {
                Way *w = &ways->items[ways->count++];
                w->at = at;
                memcpy(w->slots, slots, sizeof w->slots);
            }
        }
    }
}

static bool in_class(const RegexClass *c, uint32_t rune) {
    bool found = false;
    if (rune == REGEX_NO_RUNE) return false;
    for (size_t i = 0; i < c->count && !found; i++) found = rune >= c->ranges[i].low && rune <= c->ranges[i].high;
    return found != c->negated;
}

/* Takes every way over one character. Ways behind one that has matched are worse and end. */
static bool advance(Run *run, size_t pos, size_t *found) {
    uint32_t rune = 0;
    bool matched = false;
    size_t size = pos < run->text.len ? utf8_next(run->text, pos, &rune) : 0;
    run->next.count = 0;
    run->next.generation++;
    for (int i = 0; i < run->now.count; i++) {
        Way *w = &run->now.items[i];
        const RegexInst *inst = &run->r->insts[w->at];
        if (inst->op == REGEX_MATCH) {
            memcpy(found, w->slots, sizeof w->slots);
            matched = true;
            break;
        }
        if (size && in_class(&run->r->classes[inst->x], rune))
            add_way(run, &run->next, w->at + 1, pos + size, w->slots);
    }
    Ways swap = run->now;
    run->now = run->next;
    run->next = swap;
    return matched;
}

static void ways_init(Ways *w, size_t n) {
    *w = (Ways){.items = xmalloc(n * sizeof *w->items), .seen = xcalloc(n, sizeof *w->seen), .generation = 1};
}

static void ways_clear(Ways *w) {
    free(w->items);
    free(w->seen);
}

static bool search(const Regex *r, Str text, size_t from, bool full, Str *groups) {
    size_t found[SLOTS];
    bool matched = false;
    Run run = {.r = r, .text = text};
    ways_init(&run.now, r->count);
    ways_init(&run.next, r->count);
    run.stack = xmalloc((3 * r->count + 4) * sizeof *run.stack);
    run.saved = xmalloc((3 * r->count + 4) * sizeof *run.saved);
    for (size_t pos = from; pos <= text.len;) {
        if (!matched && (pos == from || !full)) {
            size_t slots[SLOTS];
            memset(slots, 0xff, sizeof slots);
            add_way(&run, &run.now, 0, pos, slots);
        }
        if (!run.now.count && (matched || full)) break;
        size_t end[SLOTS];
        uint32_t rune;
        /* A full match must reach the end, so shorter ones are no matches. */
        if (full && pos < text.len) {
            int kept = 0;
            for (int i = 0; i < run.now.count; i++)
                if (r->insts[run.now.items[i].at].op != REGEX_MATCH) run.now.items[kept++] = run.now.items[i];
            run.now.count = kept;
        }
        if (advance(&run, pos, end)) {
            memcpy(found, end, sizeof found);
            matched = true;
        }
        pos += pos < text.len ? utf8_next(text, pos, &rune) : 1;
    }
    ways_clear(&run.now);
    ways_clear(&run.next);
    free(run.stack);
    free(run.saved);
    for (int g = 0; matched && groups && g < REGEX_MAX_GROUPS; g++) {
        bool part = found[2 * g] != SIZE_MAX && found[2 * g + 1] != SIZE_MAX;
        groups[g] = part ? str_slice(text, found[2 * g], found[2 * g + 1]) : (Str){0};
    }
    return matched;
}

bool regex_search(const Regex *r, Str text, size_t from, Str groups[REGEX_MAX_GROUPS]) {
    return search(r, text, from, false, groups);
}

bool regex_full_match(const Regex *r, Str text) {
    return search(r, text, 0, true, NULL);
}

/* The length of the part of the rewrite that can be used: what stands before a backslash that begins nothing. */
static size_t usable_rewrite(Str rewrite, int *highest_group) {
    size_t i = 0;
    *highest_group = 0;
    for (; i < rewrite.len; i++) {
        if (rewrite.ptr[i] != '\\') continue;
        char c = i + 1 < rewrite.len ? rewrite.ptr[i + 1] : 0;
        if (c != '\\' && !isdigit((unsigned char)c)) break;
        if (c != '\\' && c - '0' > *highest_group) *highest_group = c - '0';
        i++;
    }
    return i;
}

static void put_rewrite(Str rewrite, const Str *groups, StrBuf *out) {
    for (size_t i = 0; i < rewrite.len; i++) {
        char c = rewrite.ptr[i];
        if (c != '\\' || i + 1 == rewrite.len) {
            strbuf_addc(out, c);
            continue;
        }
        c = rewrite.ptr[++i];
        if (isdigit((unsigned char)c)) {
            if (groups[c - '0'].ptr) strbuf_add(out, groups[c - '0']);
        } else {
            strbuf_addc(out, c);
        }
    }
}

void regex_replace(const Regex *r, Str text, Str rewrite, bool all, StrBuf *out) {
    Str groups[REGEX_MAX_GROUPS];
    size_t at = 0, last_end = SIZE_MAX;
    int highest_group;
    size_t usable = usable_rewrite(rewrite, &highest_group);
    if (highest_group > r->group_count || (!all && usable < rewrite.len)) {
        strbuf_add(out, text);
        return;
    }
    rewrite.len = usable;
    while (at <= text.len && regex_search(r, text, at, groups)) {
        size_t start = (size_t)(groups[0].ptr - text.ptr), end = start + groups[0].len;
        strbuf_add(out, str_slice(text, at, start));
        at = start;
        if (start == end && start == last_end) { /* no empty match right behind a match */
            uint32_t rune;
            if (at == text.len) break;
            size_t size = utf8_next(text, at, &rune);
            strbuf_add(out, str_slice(text, at, at + size));
            at += size;
            continue;
        }
        put_rewrite(rewrite, groups, out);
        at = last_end = end;
        if (!all) break;
    }
    strbuf_add(out, str_slice(text, at, text.len));
}
