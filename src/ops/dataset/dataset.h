/* dataset.h: Dataset, a description of a sequence of elements, and DatasetIterator, a walk along it.

   A dataset is immutable and travels as a variant. Iterators are pulled by threads that may block (runtime/closure.h):
   next is straight-line code. One iterator is pulled by one thread at a time. */
#pragma once
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "ops/dataset/iterator_state.h"
#include "runtime/cancel.h"
#include "runtime/closure.h"
#include "runtime/kernel.h"
#include "tensor/tensor.h"

typedef struct Dataset Dataset;
typedef struct DatasetIterator DatasetIterator;
typedef struct DatasetOrigin DatasetOrigin; /* ops/dataset/dataset_origin.h */

/* On whose behalf an iterator is pulled. */
typedef struct IteratorContext {
    Cancel *cancel;
    ClosureScope *scope; /* (optional) */
    bool drops_errors;   /* whoever pulls drops errors and pulls again: what fails for good must be left behind */
    bool by_place;       /* the walk looks for the element of one place: what shuffles has a place for each, the same for every walk */
    const char *root;    /* (optional) what errors call the walk; else it is a session's iterator */
    const DatasetIterator *parent; /* (optional) the iterator that pulls or starts another */
} IteratorContext;

enum { CARDINALITY_INFINITE = -1, CARDINALITY_UNKNOWN = -2 };

/* A row for each kind of dataset. */
typedef struct DatasetKind {
    const char *name;
    size_t size, iterator_size;  /* of structs that begin with Dataset and DatasetIterator; 0: just those */
    void (*destroy)(Dataset *d); /* (optional) what it has besides inputs and closure */
    int64_t (*cardinality)(const Dataset *d);                 /* (optional) else it is unknown */
    Error *(*start)(DatasetIterator *it, IteratorContext *c); /* (optional) */
    /* Fills out[component_count], cleared before, or sets *end. Once ended it ends again. On error what is in out is
     * freed by the caller. */
    Error *(*next)(DatasetIterator *it, IteratorContext *c, Tensor **out, bool *end);
    /* (optional) What `restore` of a fresh iterator needs to go on from here; without them: the state of the input. */
    Error *(*save)(DatasetIterator *it, IteratorState *s);
    Error *(*restore)(DatasetIterator *it, IteratorContext *c, IteratorState *s);
    void (*stop)(DatasetIterator
                     *it); /* (optional) ends its threads, frees what it has besides input; also after a failed start */
    bool joins_map; /* a map right below is one with it: an error spoils the whole element above */
    bool is_map;
    bool is_wrapper; /* stands for its input; only what tells how a pipeline was made sees it */
} DatasetKind;

struct Dataset {
    RefCount refs;
    const DatasetKind *kind;
    DataType *types; /* of the components of an element */
    int component_count;
    Dataset **inputs;
    int input_count;
    Closure *closure;      /* (optional) */
    DatasetOrigin *origin; /* (optional) the op that made it */
};

struct DatasetIterator {
    const DatasetKind *kind;
    Dataset *dataset;       /* a reference */
    DatasetIterator *input; /* (optional) freed with it */
    const DatasetIterator *parent; /* (optional) outlives it */
    const char *root;              /* as in the context it was started in */
};

extern const VariantType dataset_variant_type;

/* ---- Making ---- */
/* With given component types; inputs get references. */
Dataset *dataset_new(const DatasetKind *kind, const DataType *types, int count, Dataset *const *inputs,
                     int input_count);
Dataset *dataset_like(const DatasetKind *kind, Dataset *input); /* elements of the same types as the input's */
/* Types from a list(type) attribute of the node. */
Error *dataset_from_attr(KernelContext *k, const DatasetKind *kind, const char *types_attr, Dataset *const *inputs,
                         int input_count, Dataset **out) MUST_CHECK;
Dataset *dataset_ref(Dataset *d);
void dataset_unref(Dataset *d);
int64_t dataset_cardinality(const Dataset *d);

/* The dataset in input i, borrowed; InvalidArgument when it is none. */
Error *kernel_dataset(KernelContext *k, int i, Dataset **out) MUST_CHECK;
Error *tensor_dataset(const Tensor *t, Dataset **out) MUST_CHECK;
Error *tensor_dataset_wrapped(const Tensor *t, Dataset **out) MUST_CHECK; /* may be a wrapper */
void kernel_set_dataset(KernelContext *k, int o, Dataset *take);
Error *dataset_tensor(Dataset *d, Tensor **out) MUST_CHECK; /* a scalar variant with a reference of its own */
/* A function given by attribute `attr`, with the inputs [first, first + count of types in list attribute types_attr)
 * captured; *next is the first input after them (may be NULL). */
Error *kernel_closure(KernelContext *k, const char *attr, const char *types_attr, int first, Closure **out,
                      int *next) MUST_CHECK;
/* Scalars of one element. */
Error *kernel_int64(KernelContext *k, int i, const char *what, int64_t *out) MUST_CHECK;
Error *kernel_bool(KernelContext *k, int i, const char *what, bool *out) MUST_CHECK;
Error *kernel_string(KernelContext *k, int i, const char *what, Str *out) MUST_CHECK; /* borrowed */

/* ---- Walking ---- */
Error *dataset_iterate(Dataset *d, IteratorContext *c, DatasetIterator **out) MUST_CHECK;
void iterator_free(DatasetIterator *it); /* NULL is allowed; waits for its threads */
Error *iterator_next(DatasetIterator *it, IteratorContext *c, Tensor **out, bool *end) MUST_CHECK;
Error *iterator_start_input(DatasetIterator *it, IteratorContext *c) MUST_CHECK; /* it->input, over inputs[0] */
Error *iterator_save(DatasetIterator *it, IteratorState *s) MUST_CHECK;
Error *iterator_restore(DatasetIterator *it, IteratorContext *c, IteratorState *s) MUST_CHECK;
/* The state of it->input, which may be NULL, then and now. */
Error *iterator_save_input(DatasetIterator *it, IteratorState *s) MUST_CHECK;
Error *iterator_restore_input(DatasetIterator *it, IteratorContext *c, IteratorState *s) MUST_CHECK;

/* Calls a function whose results must be `count` tensors of these types; types NULL: any. */
Error *dataset_call(Closure *f, IteratorContext *c, Tensor *const *args, int arg_count, const DataType *types,
                    int count, Tensor **out) MUST_CHECK;
Error *dataset_check_results(Tensor *const *rets, int ret_count, const DataType *types, int count) MUST_CHECK;

/* ---- Elements: tuples of tensors ---- */
Tensor **tuple_new(int count);           /* of NULLs */
void tuple_clear(Tensor **e, int count); /* unrefs and NULLs */
void tuple_free(Tensor **e, int count);  /* NULL is allowed */
void tuple_move(Tensor **to, Tensor **from, int count);
void tuple_copy(Tensor **to, Tensor *const *from, int count); /* more references */

/* ---- Threads ---- */
/* Waits on cond with mutex held until ready(arg); false when the context is cancelled and it is not. */
bool iterator_wait(IteratorContext *c, pthread_mutex_t *mutex, pthread_cond_t *cond, bool (*ready)(void *arg),
                   void *arg);
Error *iterator_cancelled(IteratorContext *c); /* the error of a cancelled context; NULL when it is not */
int dataset_parallelism(int64_t asked);        /* calls at once: as asked, -1: one for each core */
