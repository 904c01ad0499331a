/* dual_loss.h: losses of linear models and their duals, for stochastic dual coordinate ascent. */
#pragma once
#include <stdbool.h>

#include "base/str.h"

typedef enum LabelKind { LABEL_ANY, LABEL_BINARY, LABEL_NOT_NEGATIVE } LabelKind; /* binary: 0 or 1, which become -1 and 1 */

/* What is known of one example: its label (converted), its weight, its dual variable, the model's prediction wx, its squared norm over l2. */
typedef struct DualExample {
    double label, weight, dual, wx, norm;
    double partitions; /* of the loss, in each of which others do the same */
} DualExample;

typedef struct DualLoss {
    const char *name;
    double (*update)(const DualExample *e);                      /* the dual variable that is best with all others as they are */
    double (*dual_loss)(double dual, double label, double weight);
    double (*primal_loss)(double wx, double label, double weight);
    double (*derivative)(double wx, double label, double weight); /* of the primal loss by wx */
    double smoothness;                                            /* the derivative changes by at most 1/smoothness of the change of wx */
    LabelKind labels;
} DualLoss;

const DualLoss *dual_loss_find(Str name); /* NULL: there is none */
/* false: there is no such label. */
bool dual_loss_label(const DualLoss *loss, float *label);
