/* special.c: gamma, inverse error and scaled Bessel functions. */
#include "kernels/special.h"

#include <math.h>

double special_lgamma(double x) {
    int sign;
    return lgamma_r(x, &sign);
}

/* Recurrence up to 10, then the asymptotic series; reflection below 0. */
double special_digamma(double x) {
    double reflected = 0;
    if (isnan(x)) return x;
    if (x <= 0) {
        double whole = floor(x);
        if (x == whole) return NAN;
        reflected = M_PI / tan(M_PI * (x - whole));
        x = 1 - x;
    }
    double sum = 0;
    while (x < 10) {
        sum += 1 / x;
        x += 1;
    }
    double z = 1 / (x * x);
    double series =
        z * (1.0 / 12 - z * (1.0 / 120 - z * (1.0 / 252 - z * (1.0 / 240 - z * (1.0 / 132 - z * (691.0 / 32760))))));
    return log(x) - 0.5 / x - series - sum - reflected;
}

static double ndtri_start(double p) {
    static const double a[] = {-3.969683028665376e+01, 2.209460984245205e+02,  -2.759285104469687e+02,
                               1.383577518672690e+02,  -3.066479806614716e+01, 2.506628277459239e+00};
    static const double b[] = {-5.447609879822406e+01, 1.615858368580409e+02, -1.556989798598866e+02,
                               6.680131188771972e+01, -1.328068155288572e+01};
    static const double c[] = {-7.784894002430293e-03, -3.223964580411365e-01, -2.400758277161838e+00,
                               -2.549732539343734e+00, 4.374664141464968e+00,  2.938163982698783e+00};
    static const double d[] = {7.784695709041462e-03, 3.224671290700398e-01, 2.445134137142996e+00,
                               3.754408661907416e+00};
    if (p < 0.02425) {
        double q = sqrt(-2 * log(p));
        return (((((c[0] * q + c[1]) * q + c[2]) * q + c[3]) * q + c[4]) * q + c[5]) /
               ((((d[0] * q + d[1]) * q + d[2]) * q + d[3]) * q + 1);
    }
    double q = p - 0.5, r = q * q;
    return (((((a[0] * r + a[1]) * r + a[2]) * r + a[3]) * r + a[4]) * r + a[5]) * q /
           (((((b[0] * r + b[1]) * r + b[2]) * r + b[3]) * r + b[4]) * r + 1);
}

/* A rational approximation (Acklam) good to 1e-9, then one step of Halley's method. */
double special_ndtri(double p) {
    if (!(p >= 0 && p <= 1)) return NAN;
    if (p == 0) return -INFINITY;
    if (p == 1) return INFINITY;
    if (p > 0.5) return -special_ndtri(1 - p);
    double x = ndtri_start(p);
    double u = (0.5 * erfc(-x * M_SQRT1_2) - p) * 2.5066282746310002 * exp(x * x / 2);
    return isfinite(u) ? x - u / (1 + x * u / 2) : x;
}

double special_erfinv(double x) {
    double size = fabs(x);
    if (!(size <= 1)) return NAN;
    if (size == 1) return copysign(INFINITY, x);
    double z = -special_ndtri((1 - size) / 2) * M_SQRT1_2;
    if (size < 0.9) z -= (erf(z) - size) / M_2_SQRTPI * exp(z * z);
    return copysign(z, x);
}

/* e^-x I_n(x) for n 0 or 1: the power series, whose terms are all positive; large x: the asymptotic series. */
static double bessel_scaled(double x, int n) {
    if (x > 50) {
        const double mu = 4.0 * n * n;
        double term = 1, sum = 1;
        for (int i = 1; i < 30; i++) {
            double odd = 2 * i - 1, next = -term * (mu - odd * odd) / (i * 8 * x);
            if (fabs(next) >= fabs(term) || fabs(next) < 1e-17) break;
            term = next;
            sum += term;
        }
        return sum / sqrt(2 * M_PI * x);
    }
    const double quarter = x * x / 4;
    double term = n ? x / 2 : 1, sum = term;
    for (int k = 1; term > sum * 1e-17; k++) sum += term *= quarter / ((double)k * (k + n));
    return sum * exp(-x);
}

double special_i0e(double x) {
    return isnan(x) ? x : bessel_scaled(fabs(x), 0);
}
double special_i1e(double x) {
    return isnan(x) || x == 0 ? x : copysign(bessel_scaled(fabs(x), 1), x);
}
