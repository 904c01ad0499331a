/* special_gamma.c: incomplete gamma and beta functions by series and continued fractions; Hurwitz's zeta function. */
#include "kernels/special_gamma.h"

#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>

#include "kernels/special.h"

enum { MAX_STEPS = 5000 };

/* A value and its derivative by a. */
typedef struct Dual {
    double value, slope;
} Dual;

/* igamma(a, x) = x^a e^-x / gamma(a + 1) times this series; for x <= a or small x. */
static Dual igamma_series(double a, double x) {
    Dual sum = {1, 0}, term = {1, 0};
    double r = a;
    for (int i = 0; i < MAX_STEPS; i++) {
        r += 1;
        term.slope = (term.slope - term.value / r) * (x / r);
        term.value *= x / r;
        sum.value += term.value;
        sum.slope += term.slope;
        if (term.value <= DBL_EPSILON * sum.value && fabs(term.slope) <= DBL_EPSILON * fabs(sum.slope)) break;
    }
    return sum;
}

/* igammac(a, x) = x^a e^-x / gamma(a) times this continued fraction; for x > a. */
static Dual igammac_fraction(double a, double x) {
    double y = 1 - a, z = x + y + 1, c = 0;
    Dual p2 = {1, 0}, q2 = {x, 0}, p1 = {x + 1, 0}, q1 = {z * x, -x}, answer;
    answer.value = p1.value / q1.value;
    answer.slope = (p1.slope - answer.value * q1.slope) / q1.value;
    for (int i = 0; i < MAX_STEPS; i++) {
        c += 1;
        y += 1;
        z += 2;
        double yc = y * c;
        Dual p = {p1.value * z - p2.value * yc, p1.slope * z - p1.value - p2.slope * yc + p2.value * c};
        Dual q = {q1.value * z - q2.value * yc, q1.slope * z - q1.value - q2.slope * yc + q2.value * c};
        double change = 1, slope_change = 1;
        if (q.value != 0) {
            Dual before = answer;
            answer.value = p.value / q.value;
            answer.slope = (p.slope - answer.value * q.slope) / q.value;
            change = fabs((before.value - answer.value) / answer.value);
            slope_change = fabs(before.slope - answer.slope);
        }
        p2 = p1;
        q2 = q1;
        p1 = p;
        q1 = q;
        if (fabs(p.value) > 1 / DBL_EPSILON) {
            Dual *all[] = {&p2, &p1, &q2, &q1};
            for (int j = 0; j < 4; j++) {
                all[j]->value *= DBL_EPSILON;
                all[j]->slope *= DBL_EPSILON;
            }
        }
        if (change <= DBL_EPSILON && slope_change <= DBL_EPSILON) break;
    }
    return answer;
}

/* x^a e^-x / gamma(a) */
static double density_times_x(double a, double x) {
    return exp(a * log(x) - x - special_lgamma(a));
}

static bool outside(double a, double x) {
    return !(x >= 0) || !(a > 0);
}

double special_igamma(double a, double x) {
    if (x == 0) return 0;
    if (outside(a, x)) return NAN;
    if (isinf(x)) return isinf(a) ? NAN : 1;
    if (isinf(a)) return 0;
    if (x > 1 && x > a) return 1 - density_times_x(a, x) * igammac_fraction(a, x).value;
    return density_times_x(a, x) / a * igamma_series(a, x).value;
}

double special_igammac(double a, double x) {
    if (outside(a, x)) return NAN;
    if (x == 0) return 1;
    if (isinf(x)) return isinf(a) ? NAN : 0;
    if (isinf(a)) return 1;
    if (x < 1 || x < a) return 1 - density_times_x(a, x) / a * igamma_series(a, x).value;
    return density_times_x(a, x) * igammac_fraction(a, x).value;
}

/* The derivative of igamma by a, divided by x^a e^-x / gamma(a). */
static double scaled_slope(double a, double x) {
    if (x > 1 && x > a) {
        Dual f = igammac_fraction(a, x);
        return -(f.slope + f.value * (log(x) - special_digamma(a)));
    }
    Dual s = igamma_series(a, x);
    return (s.slope + s.value * (log(x) - special_digamma(a + 1))) / a;
}

double special_igamma_grad_a(double a, double x) {
    if (x == 0) return 0;
    if (outside(a, x)) return NAN;
    if (isinf(x)) return 0;
    return density_times_x(a, x) * scaled_slope(a, x);
}

double special_gamma_sample_grad(double a, double sample) {
    if (sample == 0) return 0;
    if (outside(a, sample)) return NAN;
    return -sample * scaled_slope(a, sample);
}

double special_zeta(double x, double q) {
    /* (2k)! / B_2k, of the Euler-Maclaurin sum */
    static const double terms[] = {12.0,
                                   -720.0,
                                   30240.0,
                                   -1209600.0,
                                   47900160.0,
                                   -1307674368000.0 / 691,
                                   74724249600.0,
                                   -1.067062284288e16 / 3617,
                                   5.109094217170944e18 / 43867,
                                   -8.028576626982912e20 / 174611,
                                   1.5511210043330985984e23 / 854513,
                                   -1.6938241367317436694528e27 / 236364091};
    if (x == 1) return INFINITY;
    if (!(x > 1) || isnan(q)) return NAN;
    if (q <= 0) {
        if (q == floor(q)) return x == floor(x) && fmod(x, 2) == 0 ? INFINITY : NAN;
        if (x != floor(x) || q < -1e7) return NAN;
    }
    if (isinf(q)) return 0;
    double sum = pow(q, -x), a = q, b = 0;
    for (int i = 0; i < 9 || a <= 9; i++) {
        a += 1;
        b = pow(a, -x);
        sum += b;
        if (fabs(b / sum) < DBL_EPSILON) return sum;
    }
    double w = a, factor = 1, k = 0;
    sum += b * w / (x - 1) - 0.5 * b;
    for (int i = 0; i < 12; i++) {
        factor *= x + k;
        b /= w;
        double t = factor * b / terms[i];
        sum += t;
        if (fabs(t / sum) < DBL_EPSILON) break;
        k += 1;
        factor *= x + k;
        b /= w;
        k += 1;
    }
    return sum;
}

double special_polygamma(double n, double x) {
    if (!(n >= 0) || n != floor(n)) return NAN;
    if (n == 0) return special_digamma(x);
    double size = exp(special_lgamma(n + 1)) * special_zeta(n + 1, x);
    return fmod(n, 2) == 0 ? -size : size;
}

static double betainc_fraction(double a, double b, double x) {
    const double tiny = 1e-300;
    double c = 1, d = 1 - (a + b) * x / (a + 1);
    d = 1 / (fabs(d) < tiny ? tiny : d);
    double h = d;
    for (int m = 1; m < MAX_STEPS; m++) {
        double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
        d = 1 + even * d;
        c = 1 + even / c;
        d = 1 / (fabs(d) < tiny ? tiny : d);
        c = fabs(c) < tiny ? tiny : c;
        h *= d * c;
        double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
        d = 1 + odd * d;
        c = 1 + odd / c;
        d = 1 / (fabs(d) < tiny ? tiny : d);
        c = fabs(c) < tiny ? tiny : c;
        h *= d * c;
        if (fabs(d * c - 1) < DBL_EPSILON) break;
    }
    return h;
}

double special_betainc(double a, double b, double x) {
    if (!(a > 0) || !(b > 0) || !(x >= 0 && x <= 1)) return NAN;
    if (x == 0 || x == 1) return x;
    double front = exp(special_lgamma(a + b) - special_lgamma(a) - special_lgamma(b) + a * log(x) + b * log1p(-x));
    if (x < (a + 1) / (a + b + 2)) return front * betainc_fraction(a, b, x) / a;
    return 1 - front * betainc_fraction(b, a, 1 - x) / b;
}
