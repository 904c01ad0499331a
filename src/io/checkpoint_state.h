/* checkpoint_state.h: the file `checkpoint` of a folder: which checkpoints there are, and which is the latest. */
#pragma once
#include "base/error.h"
#include "base/file.h"

typedef struct CheckpointState {
    char *latest; /* prefix; absolute, or joined with the folder */
    PathList all; /* oldest first */
} CheckpointState;

/* NotFound when the folder has no such file. */
Error *checkpoint_state_read(const FileSystem *fs, const char *dir, CheckpointState *out) MUST_CHECK;
void checkpoint_state_clear(CheckpointState *s);

/* The prefix a user means: of a folder its latest checkpoint, of one of a checkpoint's files (PREFIX.index) that
 * checkpoint, of a SavedModel its variables; else the path itself. Malloced. */
Error *checkpoint_find(const FileSystem *fs, const char *path, char **prefix) MUST_CHECK;
