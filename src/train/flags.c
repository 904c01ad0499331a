/* flags.c: splits a command line into flags and words, and reads them by name. */
#include "train/flags.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "train/task_internal.h"

/* Copies a name into the text at *at, with "-" as "_". */
static const char *put(char *text, size_t *at, const char *from, size_t len, bool is_name) {
    char *to = text + *at;
    for (size_t i = 0; i < len; i++) to[i] = is_name && from[i] == '-' ? '_' : from[i];
    to[len] = 0;
    *at += len + 1;
    return to;
}

void program_flags_init(ProgramFlags *f, int argc, char **argv) {
    size_t size = 1, at = 0;
    for (int i = 1; i < argc; i++) size += strlen(argv[i]) + 2;
    *f = (ProgramFlags){.text = xcalloc(size, 1), .flags = xcalloc((size_t)argc + 1, sizeof *f->flags), .words = xcalloc((size_t)argc + 1, sizeof *f->words)};
    bool only_words = false;
    for (int i = 1; i < argc; i++) {
        const char *word = argv[i];
        if (only_words || word[0] != '-' || !word[1] || (word[1] != '-' && (word[1] == '.' || (word[1] >= '0' && word[1] <= '9')))) {
            f->words[f->word_count++] = word;
            continue;
        }
        if (strcmp(word, "--") == 0) {
            only_words = true;
            continue;
        }
        const char *name = word + 1 + (word[1] == '-'), *equals = strchr(name, '=');
        ProgramFlag *flag = &f->flags[f->flag_count++];
        flag->name = put(f->text, &at, name, equals ? (size_t)(equals - name) : strlen(name), true);
        bool takes_next = !equals && i + 1 < argc && strncmp(argv[i + 1], "--", 2) != 0;
        flag->value = equals ? equals + 1 : takes_next ? argv[++i] : "true";
    }
}

void program_flags_clear(ProgramFlags *f) {
    free(f->text);
    free(f->flags);
    free(f->words);
    *f = (ProgramFlags){0};
}

const char *program_flag(const ProgramFlags *f, const char *name) {
    for (int i = f->flag_count - 1; i >= 0; i--)
        if (strcmp(f->flags[i].name, name) == 0) return f->flags[i].value;
    return NULL;
}

/* ---- For programs ---- */

const char *rill_flag(const RillTask *t, const char *name, const char *otherwise) {
    const char *value = program_flag(t->flags, name);
    return value ? value : otherwise;
}

/* A value that is no number ends the program: going on with another one would train something else. */
static void wrong(const char *name, const char *value, const char *wants) {
    fprintf(stderr, "flag --%s: '%s' is not %s\n", name, value, wants);
    exit(2);
}

int64_t rill_flag_int(const RillTask *t, const char *name, int64_t otherwise) {
    const char *value = program_flag(t->flags, name);
    if (!value) return otherwise;
    char *end;
    errno = 0;
    long long n = strtoll(value, &end, 10);
    if (errno || *end || end == value) wrong(name, value, "a whole number");
    return n;
}

double rill_flag_float(const RillTask *t, const char *name, double otherwise) {
    const char *value = program_flag(t->flags, name);
    if (!value) return otherwise;
    char *end;
    double n = strtod(value, &end);
    if (*end || end == value) wrong(name, value, "a number");
    return n;
}

bool rill_flag_bool(const RillTask *t, const char *name, bool otherwise) {
    static const char *const yes[] = {"true", "True", "1", "yes", "t"}, *const no[] = {"false", "False", "0", "no", "f"};
    const char *value = program_flag(t->flags, name);
    if (!value) return otherwise;
    for (size_t i = 0; i < sizeof yes / sizeof yes[0]; i++) {
        if (strcmp(value, yes[i]) == 0) return true;
        if (strcmp(value, no[i]) == 0) return false;
    }
    wrong(name, value, "true or false");
    return otherwise;
}

int rill_word_count(const RillTask *t) {
    return t->flags->word_count;
}

const char *rill_word(const RillTask *t, int i) {
    return i >= 0 && i < t->flags->word_count ? t->flags->words[i] : NULL;
}
