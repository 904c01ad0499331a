/* softmax.h: rows of logits to probabilities and losses. */
#pragma once
#include <stdint.h>

/* z may be x. n is at least 1. */
void softmax_row_f32(float *z, const float *x, int64_t n);
void softmax_row_f64(double *z, const double *x, int64_t n);
void softmax_row_f16(uint16_t *z, const uint16_t *x, int64_t n);
void softmax_row_bf16(uint16_t *z, const uint16_t *x, int64_t n);
void log_softmax_row_f32(float *z, const float *x, int64_t n);
void log_softmax_row_f64(double *z, const double *x, int64_t n);
void log_softmax_row_f16(uint16_t *z, const uint16_t *x, int64_t n);
void log_softmax_row_bf16(uint16_t *z, const uint16_t *x, int64_t n);

/* Cross entropy of softmax(x) with the distribution y, whose elements are dy (0 or 1) apart, and its gradient by x;
 * x is dx apart. */
void cross_entropy_row_f32(float *loss, float *grad, const float *x, int64_t dx, const float *y, int64_t dy, int64_t n);
void cross_entropy_row_f64(double *loss, double *grad, const double *x, int64_t dx, const double *y, int64_t dy,
                           int64_t n);
void cross_entropy_row_f16(uint16_t *loss, uint16_t *grad, const uint16_t *x, int64_t dx, const uint16_t *y, int64_t dy,
                           int64_t n);
void cross_entropy_row_bf16(uint16_t *loss, uint16_t *grad, const uint16_t *x, int64_t dx, const uint16_t *y,
                            int64_t dy, int64_t n);

/* The same for the distribution that has all its weight at `label`, in [0, n). */
void label_entropy_row_f32(float *loss, float *grad, const float *x, int64_t n, int64_t label);
void label_entropy_row_f64(double *loss, double *grad, const double *x, int64_t n, int64_t label);
void label_entropy_row_f16(uint16_t *loss, uint16_t *grad, const uint16_t *x, int64_t n, int64_t label);
void label_entropy_row_bf16(uint16_t *loss, uint16_t *grad, const uint16_t *x, int64_t n, int64_t label);
