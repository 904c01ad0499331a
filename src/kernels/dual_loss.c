/* dual_loss.c: logistic, squared, hinge, smooth hinge and Poisson loss. */
#include "kernels/dual_loss.h"

#include <float.h>
#include <math.h>

enum { NEWTON_STEPS = 10 };

/* The weight that the example's own change has in its prediction. */
static double pull(const DualExample *e) {
    return e->partitions * e->norm * e->weight;
}

/* Newton's method for x where the dual variable is (1 + tanh x) / (2 label). */
static double logistic_update(const DualExample *e) {
    double x = 0;
    for (int i = 0; i < NEWTON_STEPS; i++) {
        double t = tanh(x);
        double value = -2 * e->label * x - e->wx - pull(e) * (0.5 * (1 + t) / e->label - e->dual);
        double slope = -2 * e->label - pull(e) * (1 - t * t) * 0.5 / e->label;
        x -= value / slope;
    }
    return 0.5 * (1 + tanh(x)) / e->label;
}

static double logistic_dual(double dual, double label, double weight) {
    double p = dual * label, q = 1 - p;
    return (p * (p > 0 ? log(p) : 0) + q * (q > 0 ? log(q) : 0)) * weight;
}

static double logistic_primal(double wx, double label, double weight) {
    double m = label * wx;
    return (m > 0 ? log1p(exp(-m)) : log1p(exp(m)) - m) * weight;
}

static double logistic_derivative(double wx, double label, double weight) {
    double m = label * wx;
    return -(m > 0 ? exp(-m) / (1 + exp(-m)) : 1 / (1 + exp(m))) * label * weight;
}

static double squared_update(const DualExample *e) {
    return e->dual + (e->label - e->dual - e->wx) / (1 + pull(e));
}

static double squared_dual(double dual, double label, double weight) {
    return dual * (0.5 * dual - label) * weight;
}

static double squared_primal(double wx, double label, double weight) {
    return (wx - label) * (wx - label) * weight * 0.5;
}

static double squared_derivative(double wx, double label, double weight) {
    return (wx - label) * weight;
}

/* label times the dual variable of a hinge is in [0, 1]. */
static double within(double dual, double label) {
    return label * dual < 0 ? 0 : label * dual > 1 ? label : dual;
}

static double hinge_update(const DualExample *e) {
    return within(e->dual + (e->label - e->wx) / pull(e), e->label);
}

static double hinge_dual(double dual, double label, double weight) {
    double p = dual * label;
    return p < 0 || p > 1 ? DBL_MAX : -p * weight;
}

static double hinge_primal(double wx, double label, double weight) {
    return fmax(0, 1 - label * wx) * weight;
}

static double hinge_derivative(double wx, double label, double weight) {
    return label * wx < 1 ? -label * weight : 0;
}

/* The same with a parabola of this width before the corner. */
static const double WIDTH = 1;

static double smooth_update(const DualExample *e) {
    return within(e->dual + (e->label - e->wx - WIDTH * e->dual) / (pull(e) + WIDTH), e->label);
}

static double smooth_dual(double dual, double label, double weight) {
    double p = dual * label;
    return p < 0 || p > 1 ? DBL_MAX : (-p + 0.5 * WIDTH * dual * dual) * weight;
}

static double smooth_primal(double wx, double label, double weight) {
    double m = label * wx;
    if (m >= 1) return 0;
    return m <= 1 - WIDTH ? (1 - m - WIDTH / 2) * weight : (1 - m) * (1 - m) * weight * 0.5 / WIDTH;
}

static double smooth_derivative(double wx, double label, double weight) {
    (void)weight;
    double m = label * wx;
    return m >= 1 ? 0 : m <= 1 - WIDTH ? -label : (wx - label) / WIDTH;
}

/* Newton's method for x where the dual variable is label - e^x. */
static double poisson_update(const DualExample *e) {
    double rest = e->label - e->dual, x = rest > 0 ? log(rest) : 0;
    for (int i = 0; i < NEWTON_STEPS; i++) {
        double g = exp(x);
        x -= (x - e->wx - pull(e) * (rest - g)) / (1 + pull(e) * g);
    }
    return e->label - exp(x);
}

static double poisson_dual(double dual, double label, double weight) {
    double rest = label - dual;
    return rest == 0 ? 0 : rest < 0 ? DBL_MAX : rest * (log(rest) - 1) * weight;
}

static double poisson_primal(double wx, double label, double weight) {
    return (exp(wx) - wx * label) * weight;
}

static double poisson_derivative(double wx, double label, double weight) {
    return (exp(wx) - label) * weight;
}

static const DualLoss losses[] = {
    {"logistic_loss", logistic_update, logistic_dual, logistic_primal, logistic_derivative, 4, LABEL_BINARY},
    {"squared_loss", squared_update, squared_dual, squared_primal, squared_derivative, 1, LABEL_ANY},
    {"hinge_loss", hinge_update, hinge_dual, hinge_primal, hinge_derivative, 0, LABEL_BINARY},
    {"smooth_hinge_loss", smooth_update, smooth_dual, smooth_primal, smooth_derivative, 1, LABEL_BINARY},
    {"poisson_loss", poisson_update, poisson_dual, poisson_primal, poisson_derivative, 1, LABEL_NOT_NEGATIVE},
    {0},
};

const DualLoss *dual_loss_find(Str name) {
    for (const DualLoss *l = losses; l->name; l++)
        if (str_is(name, l->name)) return l;
    return NULL;
}

bool dual_loss_label(const DualLoss *loss, float *label) {
    if (loss->labels == LABEL_NOT_NEGATIVE) return !(*label < 0);
    if (loss->labels == LABEL_ANY || *label == 1) return true;
    if (*label != 0) return false;
    *label = -1;
    return true;
}
