/* labels.c: shapes of predictions and labels compared before an op would broadcast them. */
#include "train/labels.h"

#include <stdlib.h>

#include "tensor/shape.h"

static char *text_of(const RillShape *s) {
    Shape shape = {.rank = s->rank};
    for (int i = 0; i < s->rank; i++) shape.dims[i] = s->dims[i];
    return shape_str(&shape);
}

void labels_check(RillGraph *g, const char *what, RillTensor said, RillTensor labels, int less) {
    if (rill_graph_failed(g)) return;
    RillShape a = rill_shape(g, said), b = rill_shape(g, labels);
    if (a.rank < 0 || b.rank < 0) return;
    bool ok = a.rank - less == b.rank;
    for (int i = 0; ok && i < b.rank; i++) ok = a.dims[i] < 0 || b.dims[i] < 0 || a.dims[i] == b.dims[i];
    if (ok) return;
    char *first = text_of(&a), *second = text_of(&b);
    rill_graph_fail(g, TF_INVALID_ARGUMENT, "%s: '%s:%d' has shape %s, the labels '%s:%d' have %s; they must %s", what, TF_OperationName(said.oper), said.index, first,
                    TF_OperationName(labels.oper), labels.index, second, less ? "have all its dimensions but the last" : "be of the same shape");
    free(first);
    free(second);
}

void labels_flatten(RillGraph *g, const char *what, RillTensor *logits, RillTensor *labels, bool are_classes) {
    labels_check(g, what, *logits, *labels, are_classes ? 1 : 0);
    RillShape shape = rill_shape(g, *logits);
    if (rill_graph_failed(g) || shape.rank <= 2) return;
    int64_t rows[] = {-1, shape.dims[shape.rank - 1]};
    if (rows[1] < 0) {
        rill_graph_fail(g, TF_INVALID_ARGUMENT, "%s: the last dimension of '%s:%d', the classes, must be known", what, TF_OperationName(logits->oper), logits->index);
        return;
    }
    *logits = rill_reshape(g, *logits, rows, 2);
    *labels = rill_reshape(g, *labels, rows, are_classes ? 1 : 2);
}
