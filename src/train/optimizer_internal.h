/* optimizer_internal.h: what all ways of minimizing share. */
#pragma once
#include "rill/optimizer.h"

RillTensor optimizer_loss(RillGraph *g, RillTensor loss); /* with the penalties of layers */
void optimizer_clip(RillGraph *g, const RillOptimizer *o, RillGradient *gradients, int count); /* as the optimizer says */
TF_Operation *optimizer_with_updates(RillGraph *g, TF_Operation *train); /* train and what runs with every step */
