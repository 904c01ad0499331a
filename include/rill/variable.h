/* variable.h: variables of a graph, their initial values, and the lists a graph keeps. */
#ifndef RILL_VARIABLE_H_
#define RILL_VARIABLE_H_

#include "rill/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Initial values ---- */
typedef enum RillInitKind {
    RILL_INIT_DEFAULT,  /* Glorot uniform for matrices and filters, zeros for the rest */
    RILL_INIT_ZEROS,
    RILL_INIT_ONES,
    RILL_INIT_CONSTANT,           /* a */
    RILL_INIT_UNIFORM,            /* from a to b */
    RILL_INIT_NORMAL,             /* mean a, standard deviation b */
    RILL_INIT_TRUNCATED_NORMAL,   /* the same, within two deviations */
    RILL_INIT_GLOROT_UNIFORM,
    RILL_INIT_GLOROT_NORMAL,
    RILL_INIT_HE_NORMAL,
    RILL_INIT_HE_UNIFORM,
    RILL_INIT_TENSOR,             /* `tensor`, of the variable's shape */
} RillInitKind;

typedef struct RillInit {
    RillInitKind kind;
    double a, b;
    RillTensor tensor;
} RillInit;

/* Seeds of random ops that follow in this graph: the same seed gives the same values. 0 (as at the start): every run differs. */
RILL_API void rill_graph_seed(RillGraph *g, int64_t seed);
/* A tensor of initial values, as a variable of that shape would get. */
RILL_API RillTensor rill_initial(RillGraph *g, const RillInit *init, TF_DataType type, const int64_t *dims, int rank);

/* ---- Variables ---- */
typedef struct RillVariable RillVariable;

typedef struct RillVariableOptions {
    TF_DataType type; /* 0: TF_FLOAT */
    RillInit init;
    bool not_trainable; /* optimizers leave it alone */
    bool local;         /* of this worker: not saved, not shared, made by the local init op */
    int partitions;     /* split by rows into that many, spread over the ps tasks; 0: as the device setter says, which may split big ones */
} RillVariableOptions;

/* The variable of that name (within the name scopes). Names are those of checkpoints. options: NULL for a trainable float. A name that exists gives that variable
 * (its shape and type must agree): so a second model shares the weights of the first. */
RILL_API RillVariable *rill_variable(RillGraph *g, const char *name, const int64_t *dims, int rank, const RillVariableOptions *options);

RILL_API const char *rill_variable_name(const RillVariable *v);
RILL_API TF_DataType rill_variable_type(const RillVariable *v);
RILL_API RillShape rill_variable_shape(const RillVariable *v);
RILL_API RillTensor rill_variable_value(const RillVariable *v); /* read once a step, on the variable's device */
RILL_API RillTensor rill_variable_read(RillGraph *g, const RillVariable *v); /* read now: after the control scope around */
/* A variable split over several tasks has several parts; others have one. Part i holds rows [first, first + rows). */
RILL_API int rill_variable_parts(const RillVariable *v);
RILL_API RillTensor rill_variable_part(const RillVariable *v, int i, int64_t *first, int64_t *rows); /* its handle */
RILL_API RillTensor rill_variable_part_value(const RillVariable *v, int i);
RILL_API TF_Operation *rill_variable_initializer(const RillVariable *v);
RILL_API TF_Operation *rill_assign(RillGraph *g, const RillVariable *v, RillTensor value);
RILL_API TF_Operation *rill_assign_add(RillGraph *g, const RillVariable *v, RillTensor value);
RILL_API TF_Operation *rill_assign_sub(RillGraph *g, const RillVariable *v, RillTensor value);

/* The int64 scalar "global_step" that optimizers count in; made on first use, not trainable. */
RILL_API RillVariable *rill_global_step(RillGraph *g);

/* ---- What the graph holds ---- */
RILL_API int rill_variable_count(const RillGraph *g); /* all, in the order they were made */
RILL_API RillVariable *rill_variable_at(const RillGraph *g, int i);
RILL_API bool rill_variable_is_trainable(const RillVariable *v);
RILL_API bool rill_variable_is_local(const RillVariable *v);
RILL_API TF_Operation *rill_init_op(RillGraph *g);       /* of all variables but local ones; covers those made so far */
RILL_API TF_Operation *rill_local_init_op(RillGraph *g); /* of local variables and lookup tables */
/* A string vector with the names of variables, local ones aside, that have no value yet; empty when all have. */
RILL_API RillTensor rill_report_uninitialized(RillGraph *g);

/* Chooses devices of what follows, as tf.train.replica_device_setter: variables and their updates go to ps tasks, the rest to the worker. */
typedef struct RillDeviceSetter {
    int ps_tasks;             /* 0: no ps, everything goes to the worker */
    const char *ps_device;    /* NULL: "/job:ps" */
    const char *worker_device; /* NULL: "/job:worker" */
    bool round_robin;         /* in turn; otherwise to the task that holds the fewest bytes so far, which balances better */
    int64_t max_part_bytes;   /* variables larger than this are split by rows over the ps tasks; 0: 16 MiB; -1: never */
} RillDeviceSetter;
RILL_API void rill_device_setter_push(RillGraph *g, const RillDeviceSetter *setter); /* copied; taken away by rill_device_pop */

#ifdef __cplusplus
}
#endif
#endif
