/* ctc_test.c: the loss is that of all paths counted one by one, and its gradient the change of it, at every level of processors. */
#include "kernels/ctc.h"

#include <math.h>
#include <stdlib.h>

#include "kernels/cpu.h"
#include "unit_test.h"

enum { TIME = 5, CLASSES = 4, BLANK = 3 };

/* Whether a path is read as the labels: without its blanks, and with merge without repetitions. */
static bool reads(const int *path, bool merge, const int32_t *labels, int64_t count) {
    int64_t n = 0;
    for (int t = 0; t < TIME; t++) {
        if (path[t] == BLANK || (merge && t > 0 && path[t] == path[t - 1])) continue;
        if (n == count || labels[n++] != path[t]) return false;
    }
    return n == count;
}

static double loss_by_paths(const double *scores, bool merge, const int32_t *labels, int64_t count) {
    double chance = 0;
    for (int number = 0; number < 1 << 2 * TIME; number++) {
        int path[TIME];
        double sum = 0;
        for (int t = 0; t < TIME; t++) {
            path[t] = number >> 2 * t & 3;
            sum += scores[t * CLASSES + path[t]];
        }
        if (reads(path, merge, labels, count)) chance += exp(sum);
    }
    return -log(chance);
}

static double loss_of(const double *activations, bool merge, const int32_t *labels, int64_t count, double *gradient) {
    double scores[TIME * CLASSES], loss;
    for (int t = 0; t < TIME; t++) ctc_log_softmax(activations + t * CLASSES, CLASSES, scores + t * CLASSES);
    CtcInput in = {scores, TIME, CLASSES, BLANK};
    assert_true(ctc_loss(&in, labels, count, merge, &loss, gradient));
    double want = loss_by_paths(scores, merge, labels, count);
    assert_true(isinf(want) ? isinf(loss) : fabs(loss - want) < 1e-12);
    return loss;
}

static void check(bool merge, const int32_t *labels, int64_t count) {
    double x[TIME * CLASSES], gradient[TIME * CLASSES], other[TIME * CLASSES];
    for (int i = 0; i < TIME * CLASSES; i++) x[i] = (double)(rand() % 2001 - 1000) / 500;
    if (isinf(loss_of(x, merge, labels, count, gradient))) return;
    for (int i = 0; i < TIME * CLASSES; i++) {
        double kept = x[i], step = 1e-5;
        x[i] = kept + step;
        double more = loss_of(x, merge, labels, count, other);
        x[i] = kept - step;
        double less = loss_of(x, merge, labels, count, other);
        x[i] = kept;
        assert_true(fabs((more - less) / (2 * step) - gradient[i]) < 1e-8);
    }
}

static void losses_are_those_of_all_paths(void **state) {
    (void)state;
    static const int32_t labels[][TIME] = {{0}, {1, 2}, {1, 1}, {0, 0, 0}, {2, 1, 0, 2, 1}, {2, 2, 1, 1}};
    static const int64_t counts[] = {1, 2, 2, 3, 5, 4};
    for (int level = 0; level < CPU_LEVELS; level++) {
        cpu_limit((CpuLevel)level);
        for (int i = 0; i < 6; i++) {
            check(true, labels[i], counts[i]);
            check(false, labels[i], counts[i]);
        }
        check(true, labels[0], 0);
    }
    cpu_limit(CPU_AVX512);
}

static void scores_of_many_classes_sum_to_one(void **state) {
    (void)state;
    enum { MANY = 150 };
    for (int level = 0; level < CPU_LEVELS; level++) {
        cpu_limit((CpuLevel)level);
        for (int64_t n = 1; n <= MANY; n++) {
            double x[MANY], y[MANY], sum = 0, size = 0;
            for (int64_t i = 0; i < n; i++) size += exp(x[i] = y[i] = (double)(i * 7 % 11));
            ctc_log_softmax(y, n, y);
            for (int64_t i = 0; i < n; i++) {
                sum += exp(y[i]);
                assert_true(fabs(y[i] - (x[i] - log(size))) < 1e-13);
            }
            assert_true(fabs(sum - 1) < 1e-13);
        }
    }
    cpu_limit(CPU_AVX512);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(losses_are_those_of_all_paths),
        cmocka_unit_test(scores_of_many_classes_sum_to_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
