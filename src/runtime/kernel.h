/* kernel.h: KernelDef, a row that says how the CPU computes one op; KernelContext, what a running kernel sees. */
#pragma once
#include <stdbool.h>

#include "base/error.h"
#include "base/threadpool.h"
#include "graph/graph.h"
#include "runtime/cancel.h"
#include "runtime/resource.h"
#include "tensor/tensor.h"

typedef struct KernelContext KernelContext;
typedef Error *KernelFn(KernelContext *k);

enum {
    KERNEL_EXPENSIVE = 1,   /* worth another thread: others go on meanwhile */
    KERNEL_PER_SESSION = 2, /* its state is made once for each (session, node name) and shared by all graphs of the session */
    KERNEL_DEFERS = 4,      /* may call kernel_defer */
    KERNEL_REFS = 8,        /* takes references to variables as inputs: k->ref[i] is set where the op says Ref(T) */
    KERNEL_SKIPS = 16,      /* may leave outputs unset: they are dead */
    KERNEL_RUNS_DEAD = 32,  /* runs also when an input is dead: k->dead is set then, and inputs may be NULL */
    KERNEL_ELEMENTWISE = 64, /* made of a loop over elements, which it tells when k->loop is set */
    KERNEL_TAIL = 128,       /* calls kernel_tail for its only output */
};

/* Loops over elements; `param` is the kernel's state. */
typedef void UnaryLoop(const void *param, void *z, const void *x, int64_t n);
/* dx, dy are 0 (the same element throughout) or 1; not both 0 unless n is 1. */
typedef void BinaryLoop(const void *param, void *z, const void *x, const void *y, int64_t dx, int64_t dy, int64_t n);
typedef void TernaryLoop(const void *param, void *z, const void *const *x, const int64_t *step, int64_t n);

/* Which shapes a loop of several inputs is for. */
typedef enum ElementShapes {
    ELEMENTS_BROADCAST,
    ELEMENTS_SAME_SHAPE,
    ELEMENTS_SAME_COUNT, /* the result has the shape of the first */
    ELEMENTS_BIAS,       /* the second is a vector along the last dimension of the first, which has at least two */
    ELEMENTS_LIMITS,     /* the second and the third have the shape of the first or none */
} ElementShapes;

/* What a KERNEL_ELEMENTWISE kernel does: one of the loops; none when these attributes make it something else. */
typedef struct ElementLoop {
    UnaryLoop *unary;
    BinaryLoop *binary;
    TernaryLoop *ternary;
    ElementShapes shapes;
} ElementLoop;

/* What is done to the output of a KERNEL_TAIL kernel while it is in the cache. */
typedef struct OutputTail {
    RangeCall (*start)(void *arg, Tensor *out); /* out has been made, and nothing can fail any more: gives what to call for its elements */
    void *arg;
} OutputTail;

typedef struct KernelDef {
    const char *op;
    KernelFn *run;                 /* for any type; NULL when by_type says it */
    KernelFn *by_type[DT_COUNT];   /* chosen by the attribute type_attr */
    const char *type_attr;         /* (optional) default "T" */
    size_t state_size;             /* bytes at k->state, cleared before init; 0: none */
    Error *(*init)(const Node *node, void *state); /* (optional) reads attributes once, when the plan is built */
    void (*clear)(void *state);                    /* (optional) frees what init and run put into the state; also after an init that failed half way */
    unsigned flags;
} KernelDef;

typedef struct StepContext StepContext;       /* runtime/step_context.h: of the running step */
typedef struct Device Device;                 /* runtime/device.h: where the node was placed */

struct KernelContext {
    const Node *node; /* name and op, for messages; attributes are read in init. A kernel of several nodes sets the one that failed */
    void *state;      /* of KernelDef.state_size bytes; shared by all steps: lock what changes */
    int input_count, output_count;
    Tensor **in;     /* borrowed. NULL only where ref[i] is set */
    Variable **ref;  /* borrowed. Set where the op declares Ref(T) and the producer is a variable, else NULL */
    Tensor **out;    /* set by kernel_set_output and friends */
    Variable **out_ref;
    StepContext *step;
    Device *device;
    ThreadPool *pool; /* for parallel_for */
    bool dead;        /* an input is dead (KERNEL_RUNS_DEAD) */
    uint64_t frame_id; /* of the loop the node runs in, 0 outside */
    int64_t iteration;
    ElementLoop *loop; /* (optional) to be filled instead of running; there are no inputs then */
    const OutputTail *tail; /* (optional) */
    size_t output_limit; /* bytes of one tensor; 0: none. Set when constants are folded */
    Error *error;     /* the first failure of the functions below; the kernel then just returns NULL */
};

/* ---- Outputs ---- */
/* A new tensor of the node's declared output type; NULL (and k->error) when it cannot be made. */
Tensor *kernel_output(KernelContext *k, int i, const Shape *shape);
/* The memory of input `in` when nobody else needs it and dtype and size fit, else a new tensor. */
Tensor *kernel_output_from(KernelContext *k, int i, int in, const Shape *shape);
void kernel_set_output(KernelContext *k, int i, Tensor *take); /* takes over a reference */
void kernel_set_output_ref(KernelContext *k, int i, Variable *v); /* of a Ref(T) output; keeps its own reference */
/* Scratch of the given type; unref it yourself. */
Tensor *kernel_scratch(KernelContext *k, DataType dtype, const Shape *shape);
DataType kernel_output_type(const KernelContext *k, int i); /* without DT_REF */
/* What a KERNEL_TAIL kernel calls for every range of elements of its output when they are final. */
static inline RangeCall kernel_tail(const KernelContext *k, Tensor *out) {
    return k->tail ? k->tail->start(k->tail->arg, out) : (RangeCall){0};
}

/* ---- Inputs that must be small integers ---- */
/* A shape given as an int32 or int64 vector (scalar -1/[] not accepted unless `unknown_ok`: then -1 dims may occur). */
Error *kernel_shape_input(KernelContext *k, int i, Shape *out) MUST_CHECK;
Error *kernel_scalar_int(KernelContext *k, int i, int64_t *out) MUST_CHECK; /* one element, int32 or int64 */
Error *kernel_axis(int64_t axis, int rank, int *out) MUST_CHECK; /* negative counts from the end */

/* ---- Resources ---- */
/* The resource that input i names: a DT_RESOURCE handle, or a string pair {container, name} of old ops. Checks the
 * device and the type; *out gets a reference. */
Error *kernel_resource(KernelContext *k, int i, const ResourceType *type, Resource **out) MUST_CHECK;
ResourceManager *kernel_resources(KernelContext *k);
ResourceManager *kernel_step_resources(KernelContext *k); /* those that vanish at the end of the step */
/* A handle to (container, name) on this device; container "" is the default one. */
Tensor *kernel_make_handle(KernelContext *k, Str container, Str name, const ResourceType *type);
/* Sets output 0 to such a handle, in the form the op declares: a resource, string or Ref(string). */
void kernel_set_handle(KernelContext *k, Str container, Str name, const ResourceType *type);
/* For ops that own what they name (queues, readers, accumulators, tables): the resource of this node, made on first use.
 * attributes container and shared_name decide: with a shared_name it is shared by all sessions of the device, else it is
 * private to (session, node) and lives until the session closes; with node_name_shared the node's name serves as
 * shared_name. Sets output 0 to the handle. create gets its full name. Returns a reference in *out (out may be NULL). */
typedef Error *OwnResourceCreate(KernelContext *k, Str name, Resource **out);
Error *kernel_own_resource(KernelContext *k, const ResourceType *type, bool node_name_shared, OwnResourceCreate *create,
                           Resource **out) MUST_CHECK;

/* ---- Waiting: a kernel never blocks its thread ---- */
/* Moves the context to the heap and returns it; the kernel then returns NULL and somebody calls kernel_done later, from any
 * thread, exactly once. The context passed to the kernel must not be used afterwards. */
KernelContext *kernel_defer(KernelContext *k);
void kernel_done(KernelContext *k, Error *err); /* takes err; outputs must be set when it is NULL */
Cancel *kernel_cancel(KernelContext *k);        /* of the step */
int64_t kernel_step_id(const KernelContext *k);

/* Fills the registry, once. Tables end with a row whose op is NULL. */
void kernel_registry_init(const KernelDef *const *tables, int table_count);
/* The kernel of a node; the error names op, types and what is there. */
Error *kernel_find(const Node *node, const KernelDef **def, KernelFn **run) MUST_CHECK;
/* What a kernel for all types says of one that it is not for: in the words for a node without a kernel. */
Error *kernel_lacks_type(const Node *node, DataType type) MUST_CHECK;
bool kernel_exists(Str op);
bool kernel_has(const Node *node); /* for its types, too */
const KernelDef *kernel_of(Str op); /* NULL when there is none */
int kernel_count(void);
const KernelDef *kernel_at(int i);
