/* special.c: gamma functions. */
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
