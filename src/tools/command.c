/* command.c: what subcommands share: their flags, their subcommands, how they fail. */
#include "tools/command.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"

char *program_path(void) {
    char self[PATH_MAX];
    ssize_t len = readlink("/proc/self/exe", self, sizeof self - 1);
    return len > 0 ? xstrndup(self, (size_t)len) : xstrdup("rill");
}

char *program_folder(void) {
    char *path = program_path(), *slash = strrchr(path, '/');
    char *folder = slash ? xstrndup(path, (size_t)(slash - path)) : xstrdup(".");
    free(path);
    return folder;
}

int command_failed(const char *name, Error *err) {
    fflush(stdout);
    fprintf(stderr, "rill %s: %s\n", name, err->message);
    error_free(err);
    return EXIT_FAILURE;
}

bool command_parse(const Flag *flags, const char *usage, int argc, char **argv, const char **words, int min, int max,
                   int *count, int *code) {
    Error *err = flags_parse_all(flags, argc, argv, 1, words, max, count);
    const Flag *help = flags;
    while (help->name && strcmp(help->name, "help")) help++;
    if (!err && help->name && *(bool *)help->value) {
        printf("usage: rill %s\n", usage);
        flags_print(flags);
        *code = 0;
        return false;
    }
    if (!err && *count < min) err = error_invalid("an argument is missing");
    if (!err) return true;
    int line = (int)strcspn(usage, "\n");
    fprintf(stderr, "rill %s: %s\nusage: rill %.*s\n", argv[0], err->message, line, usage);
    error_free(err);
    *code = EXIT_USAGE;
    return false;
}

static void print_rows(FILE *to, const Subcommand *rows, const char *name, const char *about) {
    fprintf(to, "rill %s: %s\n\nusage: rill %s COMMAND ...      rill %s COMMAND --help\n\n", name, about, name, name);
    for (const Subcommand *r = rows; r->name; r++) fprintf(to, "  %-10s %s\n", r->name, r->help);
}

int subcommand_run(const Subcommand *rows, const char *name, const char *about, int argc, char **argv) {
    if (argc < 2 || strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "help") == 0) {
        print_rows(argc < 2 ? stderr : stdout, rows, name, about);
        return argc < 2 ? EXIT_USAGE : 0;
    }
    for (const Subcommand *r = rows; r->name; r++) {
        if (strcmp(argv[1], r->name)) continue;
        char *whole = xasprintf("%s %s", name, r->name);
        argv[1] = whole;
        int code = r->run(argc - 1, argv + 1);
        free(whole);
        return code;
    }
    fprintf(stderr, "rill %s: unknown command '%s'; try rill %s --help\n", name, argv[1], name);
    return EXIT_USAGE;
}
