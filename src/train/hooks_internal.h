/* hooks_internal.h: hooks that a training makes for itself. */
#pragma once
#include "rill/training.h"

RillHook *hook_checkpoint(RillSaver *saver, const char *directory, int seconds, int64_t steps);
RillHook *hook_summary(RillTensor merged, RillTensor loss, const char *directory, int every_steps);
RillHook *hook_step_rate(int every_steps, RillTensor loss);

/* For hooks: an error that ends the training. */
void training_fail(RillTraining *t, TF_Code code, const char *message);
const RillTask *training_task(const RillTraining *t);
