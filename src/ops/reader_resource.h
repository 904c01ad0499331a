/* reader_resource.h: Reader, gives the records of files whose names come from a queue; the kinds of files. */
#pragma once
#include <stdint.h>

#include "base/error.h"
#include "ops/queue_resource.h"
#include "runtime/resource.h"

typedef struct Reader Reader;

/* How one kind of reader reads one file at a time. */
typedef struct ReaderKind {
    const char *name;
    Error *(*open)(void *state, const char *file);
    /* One record: key and value are set when *produced; *at_end when there is none after it or none at all. */
    Error *(*next)(void *state, const char *file, StrBuf *key, StrBuf *value, bool *produced, bool *at_end);
    void (*close)(void *state);   /* the file; may be called when none is open */
    void (*destroy)(void *state); /* (optional) */
    bool can_serialize;           /* between files its whole state is the counts and the name */
} ReaderKind;

extern const ResourceType reader_type;

Reader *reader_new(Str name, const ReaderKind *kind, void *state); /* takes state, malloced */

typedef struct Record {
    char *key, *value;
    size_t key_len, value_len;
} Record;

/* err is the callee's; records are borrowed (their strings may be taken: set them to NULL). No lock is held. */
typedef void ReaderDone(void *arg, Error *err, Record *records, int64_t count);

/* Reads one record or up to max of them, from one file; takes the next name from the queue when needed. Reads of one
 * reader are done one after another. */
void reader_read(Reader *r, Queue *names, int64_t max, Cancel *cancel, ReaderDone *done, void *arg);

int64_t reader_records_produced(Reader *r);
int64_t reader_units_completed(Reader *r);
Error *reader_reset(Reader *r) MUST_CHECK;
Error *reader_serialize(Reader *r, StrBuf *out) MUST_CHECK;
Error *reader_restore(Reader *r, Str state) MUST_CHECK;
