/* layers.h: layers, losses and metrics. Images are [batch, height, width, channels]. Weights are variables under the layer's name: "conv1/kernel", "conv1/bias". */
#ifndef RILL_LAYERS_H_
#define RILL_LAYERS_H_

#include "rill/variable.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum RillActivation {
    RILL_LINEAR, RILL_RELU, RILL_RELU6, RILL_LEAKY_RELU, RILL_TANH, RILL_SIGMOID, RILL_SOFTMAX, RILL_ELU, RILL_SELU, RILL_SOFTPLUS, RILL_GELU, RILL_SWISH
} RillActivation;
RILL_API RillTensor rill_activate(RillGraph *g, RillTensor x, RillActivation a);

typedef struct RillDense {
    int units;
    RillActivation activation;
    RillInit kernel, bias; /* default: Glorot uniform and zeros */
    bool no_bias;
    double l2; /* > 0: adds l2 * sum(kernel^2) / 2 to the loss */
} RillDense;
RILL_API RillTensor rill_dense(RillGraph *g, const char *name, RillTensor x, const RillDense *o); /* over the last dimension */

typedef struct RillConv {
    int filters;
    int size, height, width; /* of the window; size for both */
    int stride;              /* 0: 1 */
    int dilation;            /* 0: 1 */
    bool valid;              /* no padding; otherwise as much as keeps the size */
    RillActivation activation;
    RillInit kernel, bias;
    bool no_bias;
    double l2;
} RillConv;
RILL_API RillTensor rill_conv2d(RillGraph *g, const char *name, RillTensor x, const RillConv *o);
RILL_API RillTensor rill_max_pool(RillGraph *g, RillTensor x, int size, int stride, bool valid);
RILL_API RillTensor rill_avg_pool(RillGraph *g, RillTensor x, int size, int stride, bool valid);
RILL_API RillTensor rill_global_avg_pool(RillGraph *g, RillTensor x);
RILL_API RillTensor rill_flatten(RillGraph *g, RillTensor x); /* all but the first dimension become one */
RILL_API RillTensor rill_dropout(RillGraph *g, RillTensor x, double rate); /* that share becomes 0, the rest is scaled up; leave it out when evaluating */

typedef struct RillBatchNorm {
    bool training;   /* by the batch, moving the averages along; otherwise by the averages */
    double momentum; /* 0: 0.99 */
    double epsilon;  /* 0: 1e-3 */
} RillBatchNorm;
RILL_API RillTensor rill_batch_norm(RillGraph *g, const char *name, RillTensor x, const RillBatchNorm *o); /* over all but the last dimension */
RILL_API RillTensor rill_layer_norm(RillGraph *g, const char *name, RillTensor x); /* over the last dimension */

typedef struct RillEmbedding {
    int64_t rows;
    int width;
    int partitions; /* over the ps tasks; 0: as the device setter says */
    RillInit init;  /* default: normal, deviation 1/sqrt(width) */
} RillEmbedding;
RILL_API RillTensor rill_embedding(RillGraph *g, const char *name, RillTensor ids, const RillEmbedding *o); /* ids of any shape; one dimension more */

/* A layer of LSTM cells over [batch, time, features], time known; all outputs, or the last one. */
RILL_API RillTensor rill_lstm(RillGraph *g, const char *name, RillTensor x, int units, bool only_last);

/* ---- Losses: means over the batch, and over all other dimensions, such as time ----
   Predictions and labels of different shapes, as far as they are known, are a mistake: nothing is broadcast. */
RILL_API RillTensor rill_loss_sparse_softmax(RillGraph *g, RillTensor logits, RillTensor labels); /* [..., classes] and class numbers [...] */
RILL_API RillTensor rill_loss_softmax(RillGraph *g, RillTensor logits, RillTensor labels);        /* labels: probabilities */
RILL_API RillTensor rill_loss_sigmoid(RillGraph *g, RillTensor logits, RillTensor labels);        /* labels: 0 or 1, of the logits' shape */
RILL_API RillTensor rill_loss_mean_squared(RillGraph *g, RillTensor predictions, RillTensor labels);
RILL_API RillTensor rill_loss_absolute(RillGraph *g, RillTensor predictions, RillTensor labels);
RILL_API RillTensor rill_loss_huber(RillGraph *g, RillTensor predictions, RillTensor labels, double delta);
RILL_API RillTensor rill_loss_hinge(RillGraph *g, RillTensor logits, RillTensor labels); /* labels: 0 or 1 */
RILL_API RillTensor rill_loss_log(RillGraph *g, RillTensor predictions, RillTensor labels); /* predictions: probabilities */
/* A penalty that rill_minimize adds to the loss. */
RILL_API void rill_add_loss(RillGraph *g, RillTensor penalty);
/* An operation that rill_minimize runs with every step. */
RILL_API void rill_add_update(RillGraph *g, TF_Operation *update);

/* ---- Metrics ---- */
RILL_API RillTensor rill_accuracy(RillGraph *g, RillTensor logits, RillTensor labels); /* of this batch; labels: class numbers */
/* Over many runs, in local variables: run `update` with each batch, read `value` at the end; `reset` starts again. */
typedef struct RillMetric {
    RillTensor value;
    TF_Operation *update, *reset;
} RillMetric;
RILL_API RillMetric rill_metric_mean(RillGraph *g, const char *name, RillTensor values);
RILL_API RillMetric rill_metric_accuracy(RillGraph *g, const char *name, RillTensor logits, RillTensor labels);
RILL_API RillMetric rill_metric_mean_squared(RillGraph *g, const char *name, RillTensor predictions, RillTensor labels);
RILL_API RillMetric rill_metric_precision(RillGraph *g, const char *name, RillTensor predictions, RillTensor labels); /* bool or 0/1, both */
RILL_API RillMetric rill_metric_recall(RillGraph *g, const char *name, RillTensor predictions, RillTensor labels);
RILL_API RillMetric rill_metric_top_k(RillGraph *g, const char *name, RillTensor logits, RillTensor labels, int k);

#ifdef __cplusplus
}
#endif
#endif
