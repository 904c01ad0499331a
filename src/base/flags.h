/* flags.h: command line flags by table. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

typedef enum FlagKind { FLAG_STRING, FLAG_INT, FLAG_FLOAT, FLAG_BOOL, FLAG_LIST } FlagKind;

/* What a flag got that may be given several times; the texts are argv's. */
typedef struct FlagList {
    const char **items;
    int count;
} FlagList;
void flag_list_clear(FlagList *l);

/* One flag. "--name VALUE", "--name=VALUE", "-name VALUE"; "_" and "-" in names are the same. */
typedef struct Flag {
    const char *name; /* without dashes; NULL ends the table */
    FlagKind kind;
    void *value;          /* const char **, int64_t *, double *, bool * or FlagList * */
    const char *argument; /* what it takes, for the help: "JSON|FILE" */
    const char *help;
} Flag;

/* Reads flags until the first word that is none, or "--"; *next is its index. InvalidArgument names the flag. */
Error *flags_parse(const Flag *flags, int argc, char **argv, int first, int *next) MUST_CHECK;
/* The same, but flags may stand after and between the words, of which there may be `max`; `words` has room for them. */
Error *flags_parse_all(const Flag *flags, int argc, char **argv, int first, const char **words, int max,
                       int *count) MUST_CHECK;
void flags_print(const Flag *flags); /* on standard output */
