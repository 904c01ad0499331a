/* matching_files.c: MatchingFilesDataset: the files that match patterns, found while they are asked for.

   Folders wait beside the files found so far; the least path of all is next, and a folder is then replaced by what it
   has. So the paths of one pattern come in order, and only as much of the tree is read as is needed. */
#include <errno.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"
#include "ops/dataset/dataset.h"
#include "ops/op_list.h"

const OpDef dataset_matching_ops[] = {
    {"MatchingFilesDataset", "patterns: string -> handle: variant", "", OP_STATEFUL},
    {"ExperimentalMatchingFilesDataset", "patterns: string -> handle: variant", "", OP_STATEFUL},
    {0},
};

typedef struct MatchingDataset {
    Dataset base;
    PathList patterns;
} MatchingDataset;

typedef struct Waiting {
    char *path;
    bool is_dir;
} Waiting;

typedef struct MatchingIterator {
    DatasetIterator base;
    Waiting *waiting; /* sorted, the least at the end */
    size_t count, capacity;
    int64_t at;    /* patterns begun */
    char *pattern; /* the one at work */
    bool matched;  /* something was found */
} MatchingIterator;

static bool is_before(const char *path, bool is_dir, const Waiting *w) {
    int order = strcmp(path, w->path);
    return order < 0 || (order == 0 && is_dir < w->is_dir);
}

static void add_waiting(MatchingIterator *m, char *take, bool is_dir) {
    m->waiting = vec_reserve(m->waiting, &m->capacity, m->count + 1, sizeof *m->waiting);
    size_t low = 0, high = m->count; /* those in [0, low) come after it */
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (is_before(take, is_dir, &m->waiting[middle]))
            low = middle + 1;
        else
            high = middle;
    }
    memmove(m->waiting + low + 1, m->waiting + low, (m->count - low) * sizeof *m->waiting);
    m->waiting[low] = (Waiting){take, is_dir};
    m->count++;
}

static char *join(const char *dir, const char *name) {
    return *dir && dir[strlen(dir) - 1] == '/' ? xasprintf("%s%s", dir, name) : xasprintf("%s/%s", dir, name);
}

/* Puts what a folder has in its place. One that vanished has nothing. */
static Error *open_dir(MatchingIterator *m, const char *dir) {
    size_t fixed = strcspn(m->pattern, "*?[\\");
    PathList names = {0};
    Error *err = file_system_local.list(dir, &names);
    for (size_t i = 0; !err && i < names.count; i++) {
        char *path = join(dir, names.items[i]);
        bool is_dir = strncmp(path, m->pattern, fixed) == 0 && file_system_local.is_dir(path);
        if (is_dir || (strncmp(path, m->pattern, fixed) == 0 && fnmatch(m->pattern, path, FNM_PATHNAME) == 0))
            add_waiting(m, path, is_dir);
        else
            free(path);
    }
    path_list_clear(&names);
    return err;
}

/* The folder that all matches of the pattern lie below. */
static Error *begin_pattern(MatchingIterator *m) {
    const char *given = ((MatchingDataset *)m->base.dataset)->patterns.items[m->at];
    size_t fixed = strcspn(given, "*?[\\");
    char *dir = str_dup((Str){given, fixed}), *slash = strrchr(dir, '/');
    if (slash) slash[slash == dir] = 0;
    free(m->pattern);
    m->pattern = slash ? str_dup(str_of(given)) : join(".", given);
    for (char *p = m->pattern; *p; p++)
        if (*p == '\\') *p = '/';
    Error *err = open_dir(m, slash ? dir : ".");
    free(dir);
    m->at++;
    return err;
}

static Error *next_match(DatasetIterator *it, IteratorContext *c, Tensor **out, bool *end) {
    MatchingIterator *m = (MatchingIterator *)it;
    const MatchingDataset *d = (const MatchingDataset *)it->dataset;
    while (m->count || m->at < (int64_t)d->patterns.count) {
        Error *err = iterator_cancelled(c);
        if (err) return err;
        if (!m->count) {
            err = begin_pattern(m);
            if (err) return err;
            continue;
        }
        Waiting first = m->waiting[--m->count];
        if (!first.is_dir) {
            out[0] = tensor_scalar_str(str_of(first.path));
            m->matched = true;
        } else {
            err = open_dir(m, first.path);
        }
        free(first.path);
        if (err && err->code == CODE_NOT_FOUND) {
            error_free(err);
            err = NULL;
        }
        if (err || out[0]) return err;
    }
    *end = true;
    return m->matched ? NULL : error_new(CODE_NOT_FOUND, "Don't find any matched files");
}

static void stop_matching(DatasetIterator *it) {
    MatchingIterator *m = (MatchingIterator *)it;
    while (m->count) free(m->waiting[--m->count].path);
    free(m->waiting);
    free(m->pattern);
}

static Error *save_matching(DatasetIterator *it, IteratorState *s) {
    MatchingIterator *m = (MatchingIterator *)it;
    state_put_int(s, m->at);
    state_put_text(s, str_of(m->pattern));
    state_put_int(s, m->matched);
    state_put_int(s, (int64_t)m->count);
    for (size_t i = 0; i < m->count; i++) {
        state_put_text(s, str_of(m->waiting[i].path));
        state_put_int(s, m->waiting[i].is_dir);
    }
    return NULL;
}

static Error *restore_matching(DatasetIterator *it, IteratorContext *c, IteratorState *s) {
    MatchingIterator *m = (MatchingIterator *)it;
    int64_t matched = 0, count = 0;
    Str text = STR("");
    (void)c;
    Error *err = state_get_range(s, 0, (int64_t)((MatchingDataset *)it->dataset)->patterns.count, &m->at);
    if (!err) err = state_get_text(s, &text);
    if (!err) err = state_get_range(s, 0, 1, &matched);
    if (!err) err = state_get_range(s, 0, INT64_MAX, &count);
    if (err) return err;
    m->pattern = str_dup(text);
    m->matched = matched;
    for (int64_t i = 0; !err && i < count; i++) {
        int64_t is_dir = 0;
        err = state_get_text(s, &text);
        if (!err) err = state_get_range(s, 0, 1, &is_dir);
        if (!err) add_waiting(m, str_dup(text), is_dir);
    }
    return err;
}

static void destroy_matching(Dataset *d) {
    path_list_clear(&((MatchingDataset *)d)->patterns);
}

static const DatasetKind matching_kind = {.name = "MatchingFiles",
                                          .size = sizeof(MatchingDataset),
                                          .iterator_size = sizeof(MatchingIterator),
                                          .destroy = destroy_matching,
                                          .next = next_match,
                                          .save = save_matching,
                                          .restore = restore_matching,
                                          .stop = stop_matching};

static Error *run_matching(KernelContext *k) {
    const Tensor *patterns = k->in[0];
    DataType types[] = {DT_STRING};
    MatchingDataset *d = (MatchingDataset *)dataset_new(&matching_kind, types, 1, NULL, 0);
    for (int64_t i = 0; i < patterns->count; i++) {
        char *pattern = str_dup(tstring_str(&tensor_str(patterns)[i]));
        path_list_add(&d->patterns, pattern);
        free(pattern);
    }
    kernel_set_dataset(k, 0, &d->base);
    return NULL;
}

const KernelDef dataset_matching_cpu[] = {
    {"MatchingFilesDataset", .run = run_matching},
    {"ExperimentalMatchingFilesDataset", .run = run_matching},
    {0},
};
