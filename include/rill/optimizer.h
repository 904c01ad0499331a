/* optimizer.h: gradients become better variables: every method of tf.train, learning rates, clipping, moving averages; alone, asynchronous, synchronous. */
#ifndef RILL_OPTIMIZER_H_
#define RILL_OPTIMIZER_H_

#include "rill/task.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum RillMethod {
    RILL_SGD,
    RILL_MOMENTUM, /* momentum (0.9); nesterov */
    RILL_ADAGRAD,  /* initial (0.1) */
    RILL_ADADELTA, /* rho (0.95), epsilon (1e-8) */
    RILL_ADAM,     /* beta1 (0.9), beta2 (0.999), epsilon (1e-8) */
    RILL_ADAMAX,   /* the same */
    RILL_RMSPROP,  /* rho (0.9), momentum (0), epsilon (1e-10) */
    RILL_CENTERED_RMSPROP,
    RILL_FTRL,     /* initial (0.1), power (-0.5), l1, l2 */
    RILL_PROXIMAL_SGD,     /* l1, l2 */
    RILL_PROXIMAL_ADAGRAD, /* initial (0.1), l1, l2 */
    RILL_ADAGRAD_DA,       /* initial (0.1), l1, l2; counts in the global step */
    RILL_METHOD_COUNT
} RillMethod;

/* Numbers that are 0 mean the default in brackets above; write a tiny one for a true zero. */
typedef struct RillOptimizer {
    RillMethod method;
    double learning_rate;
    RillTensor rate; /* (optional) a schedule instead */
    double momentum, rho, beta1, beta2, epsilon, initial, l1, l2, power;
    bool nesterov;
    double clip_norm;  /* > 0: all gradients together are scaled down to that norm */
    double clip_value; /* > 0: each number is cut to [-value, value] */
} RillOptimizer;

/* The training operation: computes gradients of the loss by all trainable variables, updates them, counts the global step, and runs what must run with each step
 * (batch norm). Penalties of layers are added to the loss. Rows of embeddings are updated alone. */
RILL_API TF_Operation *rill_minimize(RillGraph *g, const RillOptimizer *o, RillTensor loss);

/* ---- The same in two steps ---- */
typedef struct RillGradient {
    RillVariable *variable;
    int part;           /* of a variable in several */
    RillTensor values;  /* without operation: the loss does not depend on it */
    RillTensor indices; /* with operation: `values` are the gradients of these rows */
} RillGradient;
/* By all trainable variables; malloced, *count of them. NULL after a mistake. */
RILL_API RillGradient *rill_compute_gradients(RillGraph *g, RillTensor loss, int *count);
RILL_API void rill_clip_by_global_norm(RillGraph *g, RillGradient *gradients, int count, double norm);
RILL_API void rill_clip_by_value(RillGraph *g, RillGradient *gradients, int count, double value);
/* count_step: the global step goes up by one, after all. */
RILL_API TF_Operation *rill_apply_gradients(RillGraph *g, const RillOptimizer *o, const RillGradient *gradients, int count, bool count_step);

/* ---- Many workers ---- */
typedef struct RillAverages RillAverages;
typedef struct RillSync {
    int aggregate;  /* gradients averaged for one update; 0: as many as workers. Fewer than workers: the slowest are backups, late gradients are dropped */
    int workers;    /* 0: those of the cluster */
    const RillAverages *averages; /* (optional) moved by the chief after each update */
} RillSync;
/* Synchronous training, as SyncReplicasOptimizer: gradients of `aggregate` workers are averaged on the ps tasks and applied once by the chief; then all go on with the
 * new values. Needs RillTraining or RillSupervisor: the chief has a thread and a start operation for it. When the chief ends, or so many others that fewer than
 * `aggregate` are left, the runs of the rest give OutOfRange: the training has ended. */
RILL_API TF_Operation *rill_minimize_sync(RillGraph *g, const RillTask *task, const RillOptimizer *o, RillTensor loss, const RillSync *sync);
/* Asynchronous, but no worker is more than `staleness` steps ahead of the slowest. When one ends, the others may do as many steps as it did; soon
 * after, OutOfRange ends them. */
RILL_API TF_Operation *rill_minimize_bounded(RillGraph *g, const RillTask *task, const RillOptimizer *o, RillTensor loss, int staleness);

/* ---- Learning rates, by the global step ---- */
RILL_API RillTensor rill_decay_exponential(RillGraph *g, double rate, int64_t steps, double factor, bool staircase); /* rate * factor^(step/steps) */
RILL_API RillTensor rill_decay_natural_exp(RillGraph *g, double rate, int64_t steps, double factor, bool staircase); /* rate * e^(-factor*step/steps) */
RILL_API RillTensor rill_decay_inverse_time(RillGraph *g, double rate, int64_t steps, double factor, bool staircase); /* rate / (1 + factor*step/steps) */
RILL_API RillTensor rill_decay_polynomial(RillGraph *g, double rate, int64_t steps, double end, double power); /* from rate to end, then end */
RILL_API RillTensor rill_decay_cosine(RillGraph *g, double rate, int64_t steps, double alpha); /* from rate to alpha*rate, then that */
RILL_API RillTensor rill_piecewise(RillGraph *g, const int64_t *boundaries, int count, const double *values); /* count + 1 values: values[i] up to boundaries[i] */
RILL_API RillTensor rill_warm_up(RillGraph *g, RillTensor rate, int64_t steps); /* from 0 to rate in that many steps, then rate */

/* ---- Moving averages of variables ---- */
/* Averages of the trainable variables made so far, each beside its variable: average = decay * average + (1 - decay) * value. With by_step the decay is smaller at
 * first: min(decay, (1+step)/(10+step)). */
RILL_API RillAverages *rill_averages_new(RillGraph *g, double decay, bool by_step);
RILL_API void rill_averages_free(RillAverages *a); /* NULL is allowed */
/* The operation that moves them, when `after` (the training operation; NULL: at once) has run: run it in the place of that one. In synchronous training give the
 * averages to RillSync instead: they move once for each update, not once for each worker. */
RILL_API TF_Operation *rill_averages_update(const RillAverages *a, TF_Operation *after);
/* Between these two, a layer or rill_variable that shares a variable gets its average instead: a second model, for validation. */
RILL_API void rill_averages_push(const RillAverages *a);
RILL_API void rill_averages_pop(const RillAverages *a);
/* The variables and the names their averages have in checkpoints: for a RillSaver that restores the averages in their place, for evaluation. */
RILL_API int rill_averages_list(const RillAverages *a, RillVariable *const **variables, const char *const **names);

#ifdef __cplusplus
}
#endif
#endif
