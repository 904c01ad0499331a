/* special_integrals.c: integrals by series, by continued fractions, or by the trapezoidal rule where it converges
 * exponentially. */
#include "kernels/special_integrals.h"

#include <complex.h>
#include <math.h>

/* The integral over t of exp(-x (cosh t - 1)) times cosh(order t). The integrand is analytic around the real axis and
   falls faster than an exponential, so equal steps give full precision once a step is small against its width, 1 /
   sqrt(x), and against pi. */
static double bessel_k_scaled(double x, int order) {
    if (isnan(x)) return x;
    if (x <= 0) return INFINITY;
    if (isinf(x)) return 0;
    double step = fmin(0.25, 0.5 / sqrt(x)), sum = 0.5;
    for (int i = 1;; i++) {
        double t = step * i, s = sinh(t / 2), weight = exp(-2 * x * s * s);
        if (weight == 0) break;
        double term = order ? weight * cosh(t) : weight;
        sum += term;
        if (term < sum * 1e-18) break;
    }
    return sum * step;
}

double special_k0e(double x) {
    return bessel_k_scaled(x, 0);
}

double special_k1e(double x) {
    return bessel_k_scaled(x, 1);
}

/* Rybicki's sum of Gaussians at odd multiples of a step, of which those near x count; the power series near 0, where it
 * would cancel. */
double special_dawson(double x) {
    enum { TERMS = 18 };
    const double step = 0.2;
    double size = fabs(x);
    if (isnan(x)) return x;
    if (size < 0.2) {
        double x2 = x * x, term = x, sum = x;
        for (int k = 1; k < 20; k++) sum += term *= -2 * x2 / (2 * k + 1);
        return sum;
    }
    if (size > 1e8) return 0.5 / x;
    double middle = 2 * rint(0.5 * size / step), sum = 0;
    for (int k = -TERMS; k < TERMS; k++) {
        double n = middle + 2 * k + 1, d = size - n * step;
        sum += exp(-d * d) / n;
    }
    return copysign(sum * M_2_SQRTPI / 2, x);
}

double special_expint(double x) {
    const double euler = 0.57721566490153286061;
    if (!(x >= 0) || isinf(x)) return NAN;
    if (x == 0) return -INFINITY;
    if (x < 40) {
        double term = 1, sum = 0;
        for (int k = 1; k < 200; k++) {
            term *= x / k;
            sum += term / k;
            if (term < sum * 1e-18) break;
        }
        return euler + log(x) + sum;
    }
    double term = 1, sum = 1;
    for (int k = 1; k < 40; k++) {
        term *= k / x;
        sum += term;
        if (term < 1e-18) break;
    }
    return exp(x) / x * sum;
}

/* C(x) + i S(x) for x >= 0. */
static double complex fresnel(double x) {
    double a = M_PI_2 * x * x;
    if (x < 1.5) { /* x times the sum over k of (i a)^k / (k! (2 k + 1)) */
        double complex term = 1, sum = 1;
        for (int k = 1; k < 60; k++) {
            term *= I * a / k;
            sum += term / (2 * k + 1);
        }
        return x * sum;
    }
    if (x > 1e8) return 0.5 + 0.5 * I;
    /* (1 + i) / 2 times erf(z), z = sqrt(pi) / 2 (1 - i) x, from the continued fraction of erfc, by Lentz's method. */
    double complex z = 0.5 * sqrt(M_PI) * (1 - I) * x, b = 2 * z * z + 1, f = b, c = b, d = 0;
    for (int k = 1; k < 400; k++) {
        double complex numerator = -(2.0 * k - 1) * (2 * k);
        b += 4;
        d = 1 / (b + numerator * d);
        c = b + numerator / c;
        f *= c * d;
        if (cabs(c * d - 1) < 1e-16) break;
    }
    double complex erfc = M_2_SQRTPI * z / f * (cos(a) + I * sin(a));
    return 0.5 * (1 + I) * (1 - erfc);
}

double special_fresnel_sin(double x) {
    return isnan(x) ? x : copysign(cimag(fresnel(fabs(x))), x);
}

double special_fresnel_cos(double x) {
    return isnan(x) ? x : copysign(creal(fresnel(fabs(x))), x);
}

/* The sum of z^k / k^2 for z of at most a half. */
static double dilogarithm_series(double z) {
    double power = 1, sum = 0;
    for (int k = 1; k < 60; k++) {
        power *= z;
        sum += power / ((double)k * k);
    }
    return sum;
}

double special_spence(double x) {
    const double sixth = M_PI * M_PI / 6;
    if (!(x >= 0) || isinf(x)) return NAN;
    if (x == 0) return sixth;
    if (x > 1) return -special_spence(1 / x) - 0.5 * log(x) * log(x);
    double z = 1 - x;
    return z <= 0.5 ? dilogarithm_series(z) : sixth - log(x) * log1p(-x) - dilogarithm_series(x);
}
