/* regex.c: runs compiled patterns: all ways through the program advance together, one character at a time. */
#include "base/regex.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/regex_internal.h"

enum { SLOTS = 2 * REGEX_MAX_GROUPS };

/* Ways through the program in order of preference, at most one for each place in it. */
typedef struct Ways {
    int *at;       /* in the program, at a CLASS or MATCH */
    size_t *slots; /* of all ways, slot_count each */
    int count;
    uint32_t *seen; /* by place: the generation in which it was added */
    uint32_t generation;
} Ways;

struct RegexMatcher {
    const Regex *r;
    int slot_count; /* what a way notes: beginnings and ends of groups, or none */
    Str text;
    Ways now, next;
    int *stack; /* places still to follow; negative: restore a slot */
    size_t *saved;
    struct States *states; /* of full matches; NULL until the first, and where there are none */
    bool asked_for_states;
};

/* Sets of ways that full matches have met, each with the set that a character leads to: a text that stays among them costs a look-up for each character. Only for
 * patterns without conditions, whose ways depend on nothing but the character, and for ASCII. */
enum { MOST_STATES = 128, MOST_PLACES = 4096, ASCII = 128, UNKNOWN = -1 };
typedef struct States {
    int count;
    int *places; /* those of state i, sorted, are first[i] to first[i + 1] */
    int first[MOST_STATES + 1];
    bool accepts[MOST_STATES]; /* when the text ends here */
    int16_t next[MOST_STATES][ASCII];
} States;

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
static void add_way(RegexMatcher *run, Ways *ways, int start, size_t pos, size_t *slots) {
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
                if (inst->x < run->slot_count) {
                    run->saved[depth] = slots[inst->x];
                    run->stack[depth++] = -inst->x - 1;
                    slots[inst->x] = pos;
                }
                run->stack[depth++] = at + 1;
                break;
            case REGEX_ASSERT:
                if (holds((RegexAssert)inst->x, run->text, pos)) run->stack[depth++] = at + 1;
                break;
            default: {
                ways->at[ways->count] = at;
                memcpy(ways->slots + (size_t)ways->count++ * (size_t)run->slot_count, slots, (size_t)run->slot_count * sizeof *slots);
            }
        }
    }
}

static bool in_class(const RegexClass *c, uint32_t rune) {
    if (rune < 128) return c->ascii[rune / 64] >> rune % 64 & 1;
    return rune != REGEX_NO_RUNE && regex_class_has(c, rune);
}

/* Ways through nothing yet, in a generation of their own. */
static void begin(Ways *w, size_t places) {
    w->count = 0;
    if (++w->generation == 0) { /* after four milliards of characters */
        memset(w->seen, 0, places * sizeof *w->seen);
        w->generation = 1;
    }
}

/* Takes every way over one character. Ways behind one that has matched are worse and end. */
static bool advance(RegexMatcher *run, size_t pos, size_t size, uint32_t rune, size_t *found) {
    const size_t slots = (size_t)run->slot_count;
    bool matched = false;
    begin(&run->next, run->r->count);
    for (int i = 0; i < run->now.count; i++) {
        const RegexInst *inst = &run->r->insts[run->now.at[i]];
        size_t *noted = run->now.slots + (size_t)i * slots;
        if (inst->op == REGEX_MATCH) {
            memcpy(found, noted, slots * sizeof *noted);
            matched = true;
            break;
        }
        if (size && in_class(&run->r->classes[inst->x], rune)) add_way(run, &run->next, run->now.at[i] + 1, pos + size, noted);
    }
    Ways swap = run->now;
    run->now = run->next;
    run->next = swap;
    return matched;
}

static void ways_init(Ways *w, size_t places, size_t slots) {
    *w = (Ways){.at = xmalloc(places * sizeof *w->at), .slots = xmalloc((places * slots + 1) * sizeof *w->slots), .seen = xcalloc(places, sizeof *w->seen)};
}

static void ways_clear(Ways *w) {
    free(w->at);
    free(w->slots);
    free(w->seen);
}

RegexMatcher *regex_matcher_new(const Regex *r) {
    const int groups = r->group_count + 1 < REGEX_MAX_GROUPS ? r->group_count + 1 : REGEX_MAX_GROUPS;
    RegexMatcher *m = xcalloc(1, sizeof *m);
    m->r = r;
    ways_init(&m->now, r->count, 2 * (size_t)groups);
    ways_init(&m->next, r->count, 2 * (size_t)groups);
    m->stack = xmalloc((3 * r->count + 4) * sizeof *m->stack);
    m->saved = xmalloc((3 * r->count + 4) * sizeof *m->saved);
    return m;
}

void regex_matcher_free(RegexMatcher *m) {
    if (!m) return;
    ways_clear(&m->now);
    ways_clear(&m->next);
    free(m->stack);
    free(m->saved);
    if (m->states) free(m->states->places);
    free(m->states);
    free(m);
}

/* A full match must reach the end: shorter ones are no matches. */
static void drop_matches(RegexMatcher *run) {
    Ways *w = &run->now;
    int kept = 0;
    for (int i = 0; i < w->count; i++)
        if (run->r->insts[w->at[i]].op != REGEX_MATCH) w->at[kept++] = w->at[i];
    w->count = kept;
}

/* From `from` to the end of the text; slots of the best match in found[slot_count]. */
static bool search(RegexMatcher *run, Str text, size_t from, bool full, size_t *found) {
    const Regex *r = run->r;
    bool matched = false;
    run->text = text;
    begin(&run->now, r->count);
    for (size_t pos = from; pos <= text.len;) {
        if (!run->now.count) {
            if (matched || (full && pos != from)) break;
            if (!full && !r->may_be_empty) {
                while (pos < text.len && !r->starts[(unsigned char)text.ptr[pos]]) pos++;
                if (pos == text.len) break;
                begin(&run->now, r->count); /* conditions that failed on the way here may hold here */
            }
        }
        if (!matched && (pos == from || !full)) {
            size_t slots[SLOTS];
            memset(slots, 0xff, sizeof slots);
            add_way(run, &run->now, 0, pos, slots);
        }
        if (full && pos < text.len) drop_matches(run); /* nothing is noted then */
        uint32_t rune = 0;
        const size_t size = pos < text.len ? utf8_next(text, pos, &rune) : 0;
        matched |= advance(run, pos, size, rune, found);
        pos += size ? size : 1;
    }
    return matched;
}

bool regex_search(RegexMatcher *m, Str text, size_t from, Str groups[REGEX_MAX_GROUPS]) {
    size_t found[SLOTS];
    const int count = m->r->group_count + 1 < REGEX_MAX_GROUPS ? m->r->group_count + 1 : REGEX_MAX_GROUPS;
    m->slot_count = 2 * count;
    if (!search(m, text, from, false, found)) return false;
    for (int g = 0; g < REGEX_MAX_GROUPS; g++) {
        bool part = g < count && found[2 * g] != SIZE_MAX && found[2 * g + 1] != SIZE_MAX;
        groups[g] = part ? str_slice(text, found[2 * g], found[2 * g + 1]) : (Str){0};
    }
    return true;
}

/* ---- Full matches by states ---- */

/* The number of the set of ways; UNKNOWN when there are too many. */
static int state_of(RegexMatcher *run, const Ways *w) {
    States *s = run->states;
    if (s->count == MOST_STATES) return UNKNOWN;
    const int begin_at = s->first[s->count];
    s->places = xrealloc(s->places, ((size_t)begin_at + (size_t)w->count + 1) * sizeof *s->places);
    int *places = s->places + begin_at, count = 0;
    bool accepts = false;
    for (int i = 0; i < w->count; i++) {
        if (run->r->insts[w->at[i]].op == REGEX_MATCH) {
            accepts = true;
            continue;
        }
        int at = count++;
        for (; at > 0 && places[at - 1] > w->at[i]; at--) places[at] = places[at - 1];
        places[at] = w->at[i];
    }
    for (int i = 0; i < s->count; i++) {
        int size = s->first[i + 1] - s->first[i];
        if (s->accepts[i] == accepts && size == count && memcmp(s->places + s->first[i], places, (size_t)count * sizeof *places) == 0) return i;
    }
    s->accepts[s->count] = accepts;
    s->first[s->count + 1] = begin_at + count;
    return s->count++;
}

static int next_state(RegexMatcher *run, int state, uint32_t rune) {
    States *s = run->states;
    size_t none[1];
    begin(&run->next, run->r->count);
    for (int i = s->first[state]; i < s->first[state + 1]; i++) {
        if (in_class(&run->r->classes[run->r->insts[s->places[i]].x], rune)) add_way(run, &run->next, s->places[i] + 1, 0, none);
    }
    int next = state_of(run, &run->next);
    s->next[state][rune] = (int16_t)next;
    return next;
}

static void make_states(RegexMatcher *run) {
    size_t none[1];
    if (run->r->count > MOST_PLACES) return;
    for (size_t i = 0; i < run->r->count; i++)
        if (run->r->insts[i].op == REGEX_ASSERT) return;
    run->states = xcalloc(1, sizeof *run->states);
    memset(run->states->next, 0xff, sizeof run->states->next);
    begin(&run->now, run->r->count);
    add_way(run, &run->now, 0, 0, none);
    state_of(run, &run->now);
}

/* False: the states do not say. */
static bool match_by_states(RegexMatcher *run, Str text, bool *matched) {
    const States *s = run->states;
    int state = 0;
    for (size_t pos = 0; pos < text.len; pos++) {
        const unsigned char c = (unsigned char)text.ptr[pos];
        if (c >= ASCII) return false;
        int next = s->next[state][c];
        if (next == UNKNOWN) next = next_state(run, state, c);
        if (next == UNKNOWN) return false;
        state = next;
        if (s->first[state] == s->first[state + 1] && !s->accepts[state]) break; /* no way leads on */
    }
    *matched = s->accepts[state];
    return true;
}

bool regex_full_match(RegexMatcher *m, Str text) {
    size_t found[SLOTS];
    bool matched;
    m->slot_count = 0;
    if (!m->asked_for_states) make_states(m);
    m->asked_for_states = true;
    if (m->states && match_by_states(m, text, &matched)) return matched;
    return search(m, text, 0, true, found);
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

void regex_replace(RegexMatcher *m, Str text, Str rewrite, bool all, StrBuf *out) {
    Str groups[REGEX_MAX_GROUPS];
    size_t at = 0, last_end = SIZE_MAX;
    int highest_group;
    size_t usable = usable_rewrite(rewrite, &highest_group);
    if (highest_group > m->r->group_count || (!all && usable < rewrite.len)) {
        strbuf_add(out, text);
        return;
    }
    rewrite.len = usable;
    while (at <= text.len && regex_search(m, text, at, groups)) {
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
