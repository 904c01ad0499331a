/* labels.h: what a model says and what is true, brought to a form in which they can be compared. */
#pragma once
#include "rill/graph.h"

/* Records a mistake that names both when their shapes cannot be equal, as far as they are known; a broadcast would compare each with all. `less`: dimensions at the end
 * of `said` that labels lack. `what`: who asks. */
void labels_check(RillGraph *g, const char *what, RillTensor said, RillTensor labels, int less);

/* [..., classes] and labels [...] (or [..., classes]) as [n, classes] and [n] (or [n, classes]). */
void labels_flatten(RillGraph *g, const char *what, RillTensor *logits, RillTensor *labels, bool are_classes);
