/* graph_internal.h: the struct behind RillGraph, for the files of this layer. */
#pragma once
#include "base/arena.h"
#include "base/hashmap.h"
#include "base/str.h"
#include "rill/graph.h"
#include "rill/variable.h"

/* Lists that parts of the library keep in the graph for one another. */
typedef enum RillList {
    LIST_UPDATES,         /* operations to run with each training step: moving averages of batch norm */
    LIST_TABLES,          /* operations that initialise lookup tables and dataset iterators */
    LIST_LOSSES,          /* outputs: penalties to be added to the loss */
    LIST_SUMMARIES,       /* outputs: string scalars */
    LIST_QUEUE_RUNNERS,   /* objects of queue_runner.c */
    LIST_DATASETS,        /* RillDataset */
    LIST_LOCAL_INITS,     /* further operations of the local init op */
    LIST_CHIEF_STARTS,    /* operations the chief runs, in order, whenever a session is ready: tokens of synchronous training */
    LIST_LEAVES,          /* operations a task runs, in order, when its training has ended well: others may wait for it */
    LIST_COUNT
} RillList;

typedef struct RillListItem {
    TF_Operation *op;
    int index;
    void *object;
} RillListItem;

typedef struct NameScope {
    char *ops;       /* prefix of names of operations, unique: "layer_1/" */
    char *variables; /* prefix of names of variables, as given: "layer/" */
} NameScope;

typedef struct DeviceScope {
    char *device; /* NULL: the setter's */
    RillDeviceSetter setter;
    char *ps_device, *worker_device;
    int64_t *ps_bytes;
    int next_ps;
} DeviceScope;

typedef struct ControlScope {
    TF_Operation **ops;
    int count;
} ControlScope;

struct RillGraph {
    TF_Graph *tf;
    TF_Status *status; /* for calls of the C API */
    TF_Code code;
    char *message;
    NameScope *names;
    int name_count;
    size_t name_capacity;
    StrMap scope_uses; /* op scope -> how often it was opened */
    DeviceScope *devices;
    int device_count;
    size_t device_capacity;
    ControlScope *controls;
    int control_count;
    int control_base; /* scopes below it do not count now: for nodes that must not wait for them, such as initial values */
    size_t control_capacity;
    int64_t seed, next_op_seed;
    RillVariable **variables;
    int variable_count;
    size_t variable_capacity;
    StrMap variables_by_name;
    RillVariable *global_step;
    int average_depth; /* > 0: variables that have a moving average stand for it */
    const RillVariable *beside; /* (optional) a variable made now goes where this one is, part by part */
    struct {
        RillListItem *items;
        int count;
        size_t capacity;
        void (*free_object)(void *); /* of the list's objects */
    } lists[LIST_COUNT];
};

/* ---- Names and devices ---- */
/* A free name for an operation in the scope around; malloced. */
char *graph_op_name(RillGraph *g, const char *name);
/* The full name of a variable in the scope around; malloced. */
char *graph_variable_name(const RillGraph *g, const char *name);
/* The device of an operation in the scopes around; malloced, "" for none. */
char *graph_op_device(RillGraph *g);
/* The device of a variable of that size; setters count it. */
char *graph_variable_device(RillGraph *g, int64_t bytes, bool is_local);
/* In how many parts a setter around wants a variable of that size and first dimension; 1 when there is none. */
int graph_variable_partitions(const RillGraph *g, int64_t bytes, int64_t rows);

/* Pushes a name scope that is not made unique or joined to the one around: "w/Initializer/". */
void graph_push_absolute(RillGraph *g, const char *scope);

/* Takes the status of a C API call that just failed into the graph's mistake, with what was being done. */
void graph_take_status(RillGraph *g, const char *doing);
/* A TF_Tensor of that type and shape with a copy of the data. */
TF_Tensor *tensor_of(TF_DataType type, const int64_t *dims, int rank, const void *data);
TF_Tensor *tensor_of_strings(const char *const *v, int count, int rank);

/* Derivatives of the sum of ys by each x. With `indices`, those of single rows stay so: their values and which rows they are; without, all are dense. */
void graph_gradients(RillGraph *g, const RillTensor *ys, int y_count, const RillTensor *xs, int x_count, RillTensor *values, RillTensor *indices);

void graph_list_add(RillGraph *g, RillList list, RillListItem item);
/* The seeds of the next random op. */
void graph_seeds(RillGraph *g, int64_t *seed, int64_t *seed2);

/* ---- Queue runners ---- */
typedef struct RillCoordinator RillCoordinator;
typedef struct RillSession RillSession;
void queue_runner_add(RillGraph *g, RillTensor queue, TF_Operation *const *enqueue_ops, int count, bool chief_only);
void queue_runners_start(RillSession *s, RillCoordinator *c, bool is_chief);

/* ---- Variables ---- */
typedef struct VariablePart {
    RillTensor handle, value;
    TF_Operation *initializer;
    int64_t first, rows;
} VariablePart;

struct RillVariable {
    char *name;
    TF_DataType type;
    RillShape shape;
    bool is_trainable, is_local;
    VariablePart *parts;
    int part_count;
    RillTensor value;
    TF_Operation *initializer;
};
void variable_free(RillVariable *v);

static inline bool tensor_ok(RillTensor t) {
    return t.oper != NULL;
}
static const RillTensor NO_TENSOR = {0};
