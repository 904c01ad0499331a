/* reader_resource.c: readers, and reads that wait for the name of a file. */
#include "ops/reader_resource.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "proto/wire.h"
#include "tensor/print.h"

typedef struct ReadOp {
    struct ReadOp *next;
    Reader *reader;
    Queue *names;
    Cancel *cancel;
    int64_t max;
    ReaderDone *done;
    void *arg;
    Record *records;
    int64_t count;
    size_t capacity;
    Error *error;
} ReadOp;

struct Reader {
    Resource base;
    char *name;
    const ReaderKind *kind;
    void *state;           /* used by the first of `waiting` only */
    char *file;            /* being read; NULL: none */
    char *last_file;       /* the one before it; NULL: none */
    pthread_mutex_t mutex; /* guards what follows */
    ReadOp *waiting, *last;
    int64_t started, finished, produced;
};

static void destroy(Resource *r) {
    Reader *reader = (Reader *)r;
    reader->kind->close(reader->state);
    if (reader->kind->destroy) reader->kind->destroy(reader->state);
    free(reader->state);
    free(reader->file);
    free(reader->last_file);
    free(reader->name);
    pthread_mutex_destroy(&reader->mutex);
    free(reader);
}

const ResourceType reader_type = {.type_name = "N10tensorflow15ReaderInterfaceE", .what = "reader", .destroy = destroy};

Reader *reader_new(Str name, const ReaderKind *kind, void *state) {
    Reader *r = xcalloc(1, sizeof *r);
    resource_init(&r->base, &reader_type);
    pthread_mutex_init(&r->mutex, NULL);
    r->name = str_dup(name);
    r->kind = kind;
    r->state = state;
    return r;
}

static void drop_file(Reader *r) {
    r->kind->close(r->state);
    free(r->last_file);
    r->last_file = r->file;
    r->file = NULL;
}

static void finish_file(Reader *r) {
    drop_file(r);
    pthread_mutex_lock(&r->mutex);
    r->finished = r->started;
    pthread_mutex_unlock(&r->mutex);
}

static void add_record(ReadOp *op, StrBuf *key, StrBuf *value) {
    op->records = vec_reserve(op->records, &op->capacity, (size_t)op->count + 1, sizeof *op->records);
    Record *record = &op->records[op->count++];
    record->key_len = key->len;
    record->key = strbuf_detach(key);
    record->value_len = value->len;
    record->value = strbuf_detach(value);
    pthread_mutex_lock(&op->reader->mutex);
    op->reader->produced++;
    pthread_mutex_unlock(&op->reader->mutex);
}

/* Reads from the open file until there is enough or the file ends. */
static void read_file(ReadOp *op) {
    Reader *r = op->reader;
    bool at_end = false;
    while (!op->error && !at_end && op->count < op->max) {
        StrBuf key = {0}, value = {0};
        bool produced = false;
        op->error = r->kind->next(r->state, r->file, &key, &value, &produced, &at_end);
        if (!op->error && produced) add_record(op, &key, &value);
        if (!op->error && !produced && !at_end)
            op->error = error_internal("Reader '%s' gave neither a record nor an end", r->name);
        strbuf_clear(&key);
        strbuf_clear(&value);
    }
    if (at_end) finish_file(r); /* a file that cannot be read stays the current one: the next read fails again */
}

static void finish_op(ReadOp *op) {
    if (op->count && op->error) { /* what was read counts more than why there is no more */
        error_free(op->error);
        op->error = NULL;
    }
    op->done(op->arg, op->error, op->records, op->count);
    for (int64_t i = 0; i < op->count; i++) {
        free(op->records[i].key);
        free(op->records[i].value);
    }
    free(op->records);
    resource_unref((Resource *)op->names);
    resource_unref(&op->reader->base);
    free(op);
}

static _Thread_local ReadOp *asking; /* the op whose queue_dequeue is running on this thread */

static void advance(Reader *r);

static void got_name(void *arg, Error *err, Tensor **components) {
    ReadOp *op = arg;
    Reader *r = op->reader;
    op->error = err;
    if (!err && (components[0]->dtype != DT_STRING || components[0]->count != 1)) {
        op->error = error_invalid("Expected to dequeue a single string element for reader '%s'", r->name);
    } else if (!err) {
        r->file = str_dup(tstring_str(tensor_str(components[0])));
        pthread_mutex_lock(&r->mutex);
        r->started++;
        pthread_mutex_unlock(&r->mutex);
        op->error = r->kind->open(r->state, r->file);
        if (op->error) drop_file(r);
    }
    if (asking == op)
        asking = NULL; /* the loop that asked goes on */
    else
        advance(r);
}

/* Carries the first of those who wait as far as possible. True when it waits for a name now. */
static bool advance_first(ReadOp *op) {
    while (!op->error && op->count == 0) {
        if (op->reader->file) {
            read_file(op);
            continue;
        }
        ReadOp *outer = asking;
        asking = op;
        queue_dequeue(op->names, op->cancel, got_name, op);
        /* When the name came from this thread, op still waits for us; otherwise another thread may have freed it. */
        bool here = asking == NULL;
        asking = outer;
        if (!here) return true;
    }
    return false;
}

static void advance(Reader *r) {
    for (;;) {
        pthread_mutex_lock(&r->mutex);
        ReadOp *op = r->waiting;
        pthread_mutex_unlock(&r->mutex);
        if (advance_first(op)) return;
        pthread_mutex_lock(&r->mutex);
        r->waiting = op->next;
        if (!r->waiting) r->last = NULL;
        bool more = r->waiting != NULL;
        pthread_mutex_unlock(&r->mutex);
        /* Somebody who waits holds a reference, so the reader lives on when there is more to do. */
        finish_op(op);
        if (!more) return;
    }
}

void reader_read(Reader *r, Queue *names, int64_t max, Cancel *cancel, ReaderDone *done, void *arg) {
    ReadOp *op = xcalloc(1, sizeof *op);
    *op = (ReadOp){.reader = r, .names = names, .cancel = cancel, .max = max, .done = done, .arg = arg};
    resource_ref(&r->base);
    resource_ref((Resource *)names);
    if (queue_component_count(names) != 1 || queue_component_type(names, 0) != DT_STRING)
        op->error = error_invalid("Expected a queue of strings for reader '%s'", r->name);
    pthread_mutex_lock(&r->mutex);
    bool first = !r->waiting;
    *(r->last ? &r->last->next : &r->waiting) = op;
    r->last = op;
    pthread_mutex_unlock(&r->mutex);
    if (first) advance(r);
}

int64_t reader_records_produced(Reader *r) {
    pthread_mutex_lock(&r->mutex);
    int64_t n = r->produced;
    pthread_mutex_unlock(&r->mutex);
    return n;
}

int64_t reader_units_completed(Reader *r) {
    pthread_mutex_lock(&r->mutex);
    int64_t n = r->finished;
    pthread_mutex_unlock(&r->mutex);
    return n;
}

/* With the lock held. */
static void start_anew(Reader *r) {
    r->kind->close(r->state);
    free(r->file);
    free(r->last_file);
    r->file = r->last_file = NULL;
    r->started = r->finished = r->produced = 0;
}

Error *reader_reset(Reader *r) {
    pthread_mutex_lock(&r->mutex);
    bool busy = r->waiting != NULL;
    if (!busy) start_anew(r);
    pthread_mutex_unlock(&r->mutex);
    return busy ? error_new(CODE_FAILED_PRECONDITION, "Reader '%s' is being read", r->name) : NULL;
}

/* ReaderBaseState: work_started, work_finished, num_records_produced, current_work. */
Error *reader_serialize(Reader *r, StrBuf *out) {
    if (!r->kind->can_serialize) return error_unimplemented("Reader SerializeState");
    pthread_mutex_lock(&r->mutex);
    if (r->started) wire_put_uint(out, 1, (uint64_t)r->started);
    if (r->finished) wire_put_uint(out, 2, (uint64_t)r->finished);
    if (r->produced) wire_put_uint(out, 3, (uint64_t)r->produced);
    const char *work = r->waiting ? NULL : r->file ? r->file : r->last_file; /* the last one stays when it is done */
    if (work && *work) wire_put_bytes(out, 4, str_of(work));
    pthread_mutex_unlock(&r->mutex);
    return NULL;
}

static Error *bad_state(const Reader *r, Str state) {
    StrBuf text = {0};
    print_escaped(&text, str_slice(state, 0, state.len < 200 ? state.len : 200));
    Error *err = error_invalid("Could not parse state for %s '%s': %.*s", r->kind->name, r->name, STR_ARG(strbuf_str(&text)));
    strbuf_clear(&text);
    return err;
}

/* A state that cannot be taken leaves a reader as new. */
Error *reader_restore(Reader *r, Str state) {
    int64_t counts[3] = {0};
    Str file = {0};
    WireReader w = wire_reader(state);
    while (wire_next(&w)) {
        if (w.field >= 1 && w.field <= 3 && w.type == WIRE_VARINT) counts[w.field - 1] = (int64_t)w.number;
        if (w.field == 4 && w.type == WIRE_BYTES) file = w.bytes;
    }
    Error *bad = NULL;
    if (!r->kind->can_serialize) {
        bad = error_unimplemented("Reader RestoreState");
    } else if (w.failed || counts[0] < 0 || counts[1] < 0 || counts[2] < 0) {
        bad = bad_state(r, state);
    } else if (counts[0] > counts[1]) {
        bad = error_invalid("Inconsistent work started vs. finished when restoring in %s '%s': work_started: %lld", r->kind->name,
                            r->name, (long long)counts[0]);
    }
    pthread_mutex_lock(&r->mutex);
    Error *err = r->waiting ? error_new(CODE_FAILED_PRECONDITION, "Reader '%s' is being read", r->name) : NULL;
    if (!err && bad) {
        start_anew(r);
        err = bad;
    } else if (err) {
        error_free(bad);
    } else {
        r->started = counts[0];
        r->finished = counts[1];
        r->produced = counts[2];
        free(r->file);
        free(r->last_file);
        r->file = NULL;
        r->last_file = str_dup(file);
    }
    pthread_mutex_unlock(&r->mutex);
    return err;
}
