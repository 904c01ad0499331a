/* saver.h: variables to checkpoints and back. The files are TensorFlow's (V2 checkpoints): either reads what the other wrote. */
#ifndef RILL_SAVER_H_
#define RILL_SAVER_H_

#include "rill/session.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct RillSaver RillSaver;

typedef struct RillSaverOptions {
    RillVariable *const *variables; /* NULL: all of the graph but local ones */
    const char *const *names;       /* (optional) under these names in the checkpoint, by variable; NULL: their own */
    int count;
    int keep;       /* how many checkpoints stay: older ones are deleted; 0: 5, -1: all */
    bool one_file;  /* all values through one task; otherwise every task writes its own part, at the same time (they must share the file system) */
} RillSaverOptions;

/* Adds what saves and restores to the graph; options may be NULL. Variables made later are not in it. NULL when the graph holds a mistake. */
RILL_API RillSaver *rill_saver_new(RillGraph *g, const RillSaverOptions *options);
RILL_API void rill_saver_free(RillSaver *s); /* before the graph; NULL is allowed */

/* Saves to "path-STEP" (step -1: "path"), notes it in the file `checkpoint` beside it and deletes what is too old. The prefix, malloced; NULL on error. A crash at
 * any moment leaves the checkpoints before whole. */
RILL_API char *rill_saver_save(RillSaver *s, RillSession *session, const char *path, int64_t step, TF_Status *status);
RILL_API TF_Code rill_saver_restore(RillSaver *s, RillSession *session, const char *prefix, TF_Status *status);
/* The newest whole checkpoint of a directory, malloced; NULL when there is none. One that is damaged or gone is passed over for the one before. */
RILL_API char *rill_latest_checkpoint(const char *directory);

#ifdef __cplusplus
}
#endif
#endif
