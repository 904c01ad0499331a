/* sequence_reader.h: Sequence, what a run of ParseSequenceExample and its kin has found in the examples. */
#pragma once
#include "base/hashmap.h"
#include "io/example.h"
#include "ops/elements.h"
#include "proto/wire.h"

/* Columns come in groups, in this order, as do the outputs. */
enum { CONTEXT_SPARSE, CONTEXT_DENSE, CONTEXT_RAGGED, LIST_SPARSE, LIST_DENSE, LIST_RAGGED, GROUPS };

typedef struct SequenceState {
    int count[GROUPS];
    DataType *types[GROUPS];
    DataType *context_splits, *list_splits;
    PartialShape *context_shapes, *list_shapes;
    Str *keys, *may_miss; /* ParseSequenceExample: from attributes; copies */
    int key_count, may_miss_count;
    bool single; /* ParseSingleSequenceExample */
} SequenceState;

/* One column of one example. */
typedef struct Cell {
    ExampleFeature feature; /* of the context; DT_INVALID: not there */
    Str list;               /* of feature lists: serialised FeatureList; ptr NULL: not there */
    int64_t steps, values;  /* in the list; values in all */
    int64_t most;           /* values in one step */
} Cell;

typedef struct Sequence {
    const SequenceState *s;
    KernelContext *k;
    const Tensor *serialized, *names;
    Tensor *const *defaults;
    Str *keys;
    bool *may_miss;       /* dense lists */
    int columns, context; /* all; those of the context */
    int64_t batch;
    bool scalar;
    StrMap context_index, list_index;
    Cell *cells; /* [batch][columns] */
} Sequence;

int sequence_first_column(const SequenceState *s, int group); /* of GROUPS: how many there are */
Cell *sequence_cell(const Sequence *q, int64_t e, int c);
/* "Name: x, Feature list: y<what> (data type: float)" */
Error *sequence_column_error(const Sequence *q, int64_t e, int c, const char *what);
/* A list that has to be there and is not. */
Error *sequence_list_missing(const Sequence *q, int64_t e, int c);
/* Step `step` of a list has `count` values, which are not those of `shape`. */
Error *sequence_step_error(const Sequence *q, int64_t e, int c, int64_t step, int64_t count, const Shape *shape);
/* Fills the cells of example e; `found` has room for a feature of each column of the context. */
Error *sequence_read_example(const Sequence *q, int64_t e, ExampleFeature *found) MUST_CHECK;
/* The next step of a list; false at the end, or with r->failed set. */
bool sequence_next_step(WireReader *r, ExampleFeature *f);
