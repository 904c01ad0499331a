/* ctc.h: connectionist temporal classification of one sequence: loss, gradient, beam search. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

/* Scores are time after time, `classes` numbers each, `stride` apart. */
typedef struct CtcInput {
    const double *scores; /* log-softmax of the activations: `time` rows of `classes` */
    int64_t time, classes;
    int blank;
} CtcInput;

void ctc_log_softmax(const double *from, int64_t classes, double *to);

/* -log p(labels | scores); infinity when no path fits. gradient (time x classes) is that by the activations. With
 * merge, repeated labels on a path count once. False when memory is out. */
bool ctc_loss(const CtcInput *in, const int32_t *labels, int64_t label_count, bool merge, double *loss,
              double *gradient);

/* The best sequences of labels, best first. */
typedef struct CtcPath {
    int32_t *labels; /* malloced */
    int64_t count;
    double log_probability;
} CtcPath;
/* Fills at most `max` paths and returns how many there are; the blank is the last class. */
int ctc_beam_search(const CtcInput *in, int width, bool merge_repeated, CtcPath *paths, int max);
