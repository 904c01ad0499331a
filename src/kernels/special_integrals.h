/* special_integrals.h: functions that are integrals: Bessel's K, Dawson's, Fresnel's, the exponential integral,
 * Spence's; in double precision. */
#pragma once

double special_k0e(double x); /* e^x times the modified Bessel function of the second kind; infinite up to 0 */
double special_k1e(double x);
double special_dawson(double x);
double special_expint(double x); /* Ei; NaN below 0 and at infinity */
double special_fresnel_sin(double x);
double special_fresnel_cos(double x);
double special_spence(double x); /* the dilogarithm of 1 - x; NaN below 0 and at infinity */
