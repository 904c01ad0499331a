/* fft.h: discrete Fourier transforms of any length. */
#pragma once
#include <complex.h>
#include <stdbool.h>
#include <stdint.h>

/* What is known of one length: roots of unity, factors, and for lengths with large prime factors a longer transform. */
typedef struct FftPlan FftPlan;

FftPlan *fft_plan_new(int64_t n);  /* n >= 1; NULL when there is not enough memory */
void fft_plan_free(FftPlan *plan); /* NULL is allowed */
int64_t fft_plan_length(const FftPlan *plan);
int64_t fft_plan_scratch(const FftPlan *plan); /* numbers of scratch that a transform needs */

/* data (n numbers, in place) = its transform, or n times its inverse. Any number of threads may use one plan. */
void fft_run(const FftPlan *plan, bool inverse, double _Complex *data, double _Complex *scratch);

/* A plan for n real numbers, n even, as a transform of half the length; for the two functions below. */
FftPlan *fft_plan_real_new(int64_t n);
/* data has n / 2 + 1 places: n real numbers in pairs at the start, then the n / 2 + 1 numbers that tell their
 * transform. */
void fft_run_real(const FftPlan *plan, double _Complex *data, double _Complex *scratch);
/* The other way: n times the n real numbers that the first half of a spectrum belongs to. Imaginary parts of its first
 * and last number count for nothing. */
void fft_run_real_inverse(const FftPlan *plan, double _Complex *data, double _Complex *scratch);

/* FFT_LANES transforms of one length side by side, of floats or doubles, in place: the real parts of number k of all of
 * them lie at data[2 * k * FFT_LANES], the imaginary parts after them. An inverse is the transform with real and
 * imaginary parts exchanged, before and after. */
enum { FFT_LANES = 16 };
/* FFT_LANES lines of `count` complex numbers, which begin at starts[l], brought side by side, and back; exchanged: their real and imaginary parts are. */
void fft_lanes_take_f32(const float *from, const int64_t *starts, int64_t count, bool exchanged, float *lanes);
void fft_lanes_give_f32(const float *lanes, int64_t count, bool exchanged, float *to, const int64_t *starts);
int64_t fft_lanes_scratch(const FftPlan *plan); /* floats or doubles that they need */
void fft_lanes_f32(const FftPlan *plan, float *data, float *scratch);
void fft_lanes_f64(const FftPlan *plan, double *data, double *scratch);
/* As fft_run_real and fft_run_real_inverse. */
void fft_lanes_real_f32(const FftPlan *plan, bool inverse, float *data, float *scratch);
void fft_lanes_real_f64(const FftPlan *plan, bool inverse, double *data, double *scratch);
