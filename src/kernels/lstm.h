/* lstm.h: the gates of an LSTM cell for a batch, and their derivatives. Products with the weights are the caller's. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/threadpool.h"

/* A row of gates has four parts of `cells` numbers: input, cell input, forget, output; with forget_second the forget part
 * stands before the cell input. */
typedef struct LstmCell {
    int64_t batch, cells;
    bool forget_second;
    float forget_bias;
    float clip;                    /* of the new state; 0 or less: none */
    const float *bias;             /* of the gates */
    const float *wci, *wcf, *wco;  /* peepholes, `cells` each; wci NULL: none */
} LstmCell;

/* What one step computes: batch x cells each. */
typedef struct LstmValues {
    float *i, *cs, *f, *o, *ci, *co, *h;
} LstmValues;

/* gates: the product of input and weights, used up; more: (optional) another part of that product, to be added. */
void lstm_forward(const LstmCell *c, float *gates, const float *more, const float *cs_prev, const LstmValues *to,
                  ThreadPool *pool);

/* The gradients by the gates (dgates) and by the state before, from those by the state and the output of this step; v->h is not
 * looked at. cs_prev_grad may be cs_grad. */
void lstm_backward(const LstmCell *c, const LstmValues *v, const float *cs_prev, const float *cs_grad, const float *h_grad,
                   float *dgates, float *cs_prev_grad, ThreadPool *pool);

/* Adds to the gradients of the peepholes those of this step. */
void lstm_peephole_backward(const LstmCell *c, const float *dgates, const float *cs_prev, const float *cs, float *wci_grad,
                            float *wcf_grad, float *wco_grad);
