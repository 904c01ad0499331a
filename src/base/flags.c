/* flags.c: reads flags into variables. */
#include "base/flags.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/str.h"

void flag_list_clear(FlagList *l) {
    free(l->items);
    *l = (FlagList){0};
}

static bool same_name(const char *name, Str given) {
    if (strlen(name) != given.len) return false;
    for (size_t i = 0; i < given.len; i++) {
        char a = name[i] == '_' ? '-' : name[i], b = given.ptr[i] == '_' ? '-' : given.ptr[i];
        if (a != b) return false;
    }
    return true;
}

static Error *set(const Flag *flag, const char *text) {
    if (flag->kind == FLAG_STRING) {
        *(const char **)flag->value = text;
    } else if (flag->kind == FLAG_INT) {
        if (!str_to_int64(str_of(text), flag->value)) return error_invalid("--%s needs a whole number, not '%s'", flag->name, text);
    } else if (flag->kind == FLAG_FLOAT) {
        char *end;
        *(double *)flag->value = strtod(text, &end);
        if (end == text || *end) return error_invalid("--%s needs a number, not '%s'", flag->name, text);
    } else if (flag->kind == FLAG_LIST) {
        FlagList *l = flag->value;
        l->items = xrealloc(l->items, (size_t)(l->count + 1) * sizeof *l->items);
        l->items[l->count++] = text;
    } else if (strcmp(text, "true") == 0 || strcmp(text, "false") == 0) {
        *(bool *)flag->value = *text == 't';
    } else {
        return error_invalid("--%s is true or false, not '%s'", flag->name, text);
    }
    return NULL;
}

Error *flags_parse(const Flag *flags, int argc, char **argv, int first, int *next) {
    int i = first;
    for (; i < argc && argv[i][0] == '-' && argv[i][1]; i++) {
        if (strcmp(argv[i], "--") == 0) {
            i++;
            break;
        }
        Str rest = str_of(argv[i] + (argv[i][1] == '-' ? 2 : 1));
        bool has_value = str_find(rest, '=') >= 0;
        Str name = str_next(&rest, '=');
        const Flag *flag = flags;
        while (flag->name && !same_name(flag->name, name)) flag++;
        if (!flag->name) return error_invalid("unknown flag %s", argv[i]);
        const char *text = rest.ptr;
        if (!has_value && flag->kind == FLAG_BOOL)
            text = "true";
        else if (!has_value && i + 1 >= argc)
            return error_invalid("--%s needs a value", flag->name);
        else if (!has_value)
            text = argv[++i];
        Error *err = set(flag, text);
        if (err) return err;
    }
    *next = i;
    return NULL;
}

Error *flags_parse_all(const Flag *flags, int argc, char **argv, int first, const char **words, int max, int *count) {
    *count = 0;
    for (int at = first; at < argc;) {
        int next = at;
        Error *err = flags_parse(flags, argc, argv, at, &next);
        if (err) return err;
        bool only_words = next > at && strcmp(argv[next - 1], "--") == 0;
        while (next < argc) {
            if (*count == max) return error_invalid("unexpected argument '%s'", argv[next]);
            words[(*count)++] = argv[next++];
            if (!only_words) break;
        }
        at = next;
    }
    return NULL;
}

void flags_print(const Flag *flags) {
    for (const Flag *f = flags; f->name; f++) {
        char left[64];
        snprintf(left, sizeof left, "--%s%s%s", f->name, f->argument ? " " : "", f->argument ? f->argument : "");
        printf("  %-28s %s\n", left, f->help);
    }
}
