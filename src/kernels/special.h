/* special.h: functions of one number that the C library lacks, in double precision. */
#pragma once

double special_lgamma(double x); /* log|gamma(x)|; thread-safe, unlike lgamma */
double special_digamma(double x);
double special_ndtri(double p); /* inverse of the standard normal distribution */
double special_erfinv(double x);
double special_i0e(double x); /* e^-|x| times the modified Bessel function */
double special_i1e(double x);
