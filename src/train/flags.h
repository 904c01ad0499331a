/* flags.h: ProgramFlags, the command line of a user's program: every --name=value, known beforehand or not. */
#pragma once
#include "base/str.h"

typedef struct ProgramFlag {
    const char *name; /* without dashes; "-" became "_" */
    const char *value;
} ProgramFlag;

typedef struct ProgramFlags {
    char *text; /* holds the strings */
    ProgramFlag *flags;
    int flag_count;
    const char **words;
    int word_count;
} ProgramFlags;

/* "--name=value"; "--name value" when the next word is no flag; "--name" alone is "true", "--noname" of a lone flag too stays a name. After "--" all are words. */
void program_flags_init(ProgramFlags *f, int argc, char **argv);
void program_flags_clear(ProgramFlags *f);
const char *program_flag(const ProgramFlags *f, const char *name); /* the last one; NULL when it is not there */
