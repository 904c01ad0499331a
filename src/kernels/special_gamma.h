/* special_gamma.h: incomplete gamma and beta functions, their derivatives, Hurwitz's zeta function; double precision.
 */
#pragma once

double special_igamma(double a, double x);        /* regularised lower incomplete gamma */
double special_igammac(double a, double x);       /* 1 - igamma */
double special_igamma_grad_a(double a, double x); /* derivative of igamma by a */
/* Derivative by a of a sample of the gamma distribution a, drawn as `sample`. */
double special_gamma_sample_grad(double a, double sample);
double special_zeta(double x, double q); /* sum over k >= 0 of (k + q)^-x */
double special_polygamma(double n, double x);
double special_betainc(double a, double b, double x); /* regularised incomplete beta */
