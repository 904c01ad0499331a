/* regex.h: regular expressions in time linear in the text; the common part of RE2's syntax, on UTF-8. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "base/str.h"

enum { REGEX_MAX_GROUPS = 10 }; /* group 0 is the whole match */

/* Immutable once compiled: any number of threads may match with it. */
typedef struct Regex Regex;

/* InvalidArgument says what is wrong with the pattern. */
Error *regex_compile(Str pattern, Regex **out) MUST_CHECK;
void regex_free(Regex *r);

/* What matching needs besides the pattern, which outlives it; one thread at a time. */
typedef struct RegexMatcher RegexMatcher;
RegexMatcher *regex_matcher_new(const Regex *r);
void regex_matcher_free(RegexMatcher *m);

/* The first match at or after `from`, leftmost, preferring what comes first in the pattern. groups[g] has a NULL ptr
 * when the group took no part. */
bool regex_search(RegexMatcher *m, Str text, size_t from, Str groups[REGEX_MAX_GROUPS]);
bool regex_full_match(RegexMatcher *m, Str text);

/* Replaces the first match or all; \0 to \9 in rewrite are the groups, \\ a backslash. As RE2 does it, a rewrite that
 * names a group the pattern lacks changes nothing, and one with another letter behind a backslash ends there (all) or changes
 * nothing (the first match). */
void regex_replace(RegexMatcher *m, Str text, Str rewrite, bool all, StrBuf *out);
