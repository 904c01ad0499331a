/* replace.h: a file that appears whole or not at all. */
#pragma once
#include "base/error.h"
#include "base/file.h"
#include "base/str.h"

char *temporary_path(const char *path); /* a name beside it that nobody else uses, malloced */

/* Puts a file in place at once: written beside it, synced, renamed, the directory synced. `replaced` tells whether the new file is there, also when an error came after. */
Error *file_replace(const FileSystem *fs, const char *path, Str bytes, bool *replaced) MUST_CHECK;
