/* special_vectors.c: inverse error, scaled Bessel and gamma functions of arrays. */
#include "kernels/special_vectors.h"

#include <math.h>
#include <stdbool.h>

#include "kernels/cpu.h"
#include "kernels/special.h"

#define INLINE static inline __attribute__((always_inline))
enum { SPECIAL_BLOCK = 256, SERIES_LANES = 32 };

static const double MIDDLE_OVER[] = {-3.969683028665376e+01, 2.209460984245205e+02,  -2.759285104469687e+02,
                                     1.383577518672690e+02,  -3.066479806614716e+01, 2.506628277459239e+00};
static const double MIDDLE_UNDER[] = {-5.447609879822406e+01, 1.615858368580409e+02,  -1.556989798598866e+02,
                                      6.680131188771972e+01,  -1.328068155288572e+01, 1};
static const double TAIL_OVER[] = {-7.784894002430293e-03, -3.223964580411365e-01, -2.400758277161838e+00,
                                   -2.549732539343734e+00, 4.374664141464968e+00,  2.938163982698783e+00};
static const double TAIL_UNDER[] = {7.784695709041462e-03, 3.224671290700398e-01, 2.445134137142996e+00,
                                    3.754408661907416e+00, 1};

/* Chebyshev coefficients, computed with 90 digits: of e^-x I0(x) and e^-x I1(x) / x by x / 4 - 1, for x up to 8; of
 * sqrt(x) e^-x I(x) by 16 / x - 1 above. */
static const double I0_NEAR[] = {
    3.38397637204738033e-01, -3.04682672343198402e-01, 1.71620901522208769e-01, -9.49010970480476390e-02,
    4.93052842396707117e-02, -2.37374148058994705e-02, 1.05464603945949979e-02, -4.32430999505057593e-03,
    1.63947561694133574e-03, -5.76375574538582356e-04, 1.88502885095841649e-04, -5.75419501008210397e-05,
    1.64484480707288956e-05, -4.41673835845875052e-06, 1.11738753912010366e-06, -2.67079385394061193e-07,
    6.04699502254191863e-08, -1.30002500998624805e-08, 2.65982372468238660e-09, -5.18979560163526271e-10,
    9.67580903537323697e-11, -1.72682629144155587e-11, 2.95505266312963988e-12, -4.85644678311192896e-13,
    7.67618549860493607e-14, -1.16853328779934514e-14, 1.71539128555513307e-15, -2.43127984654795490e-16,
    3.33079451882223839e-17, -4.41534164647933951e-18};
static const double I0_FAR[] = {
    4.02245205507054393e-01,  3.36911647825569429e-03,  6.88975834691682454e-05,  2.89137052083475665e-06,
    2.04891858946906384e-07,  2.26666899049817804e-08,  3.39623202570838651e-09,  4.94060238822497006e-10,
    1.18891471078464390e-11,  -3.14991652796324165e-11, -1.32158118404477133e-11, -1.79417853150680615e-12,
    7.18012445138366601e-13,  3.85277838274214259e-13,  1.54008621752140996e-14,  -4.15056934728722224e-14,
    -9.55484669882830731e-15, 3.81168066935262240e-15,  1.77256013305652631e-15,  -3.42548561967721900e-16,
    -2.82762398051658365e-16, 3.46122286769746122e-17,  4.46562142029675975e-17,  -4.83050448594417803e-18,
    -7.23318048787475996e-18};
static const double I1_NEAR[] = {
    1.26293593221816824e-01, -1.76416518357834062e-01, 1.02643658689847095e-01, -5.29459812080949888e-02,
    2.47264490306265163e-02, -1.05640848946261974e-02, 4.15642294431288820e-03, -1.51357245063125315e-03,
    5.12285956168575759e-04, -1.61760815825896743e-04, 4.78156510755005422e-05, -1.32731636560394359e-05,
    3.47025130813767845e-06, -8.56872026469545475e-07, 2.00329475355213533e-07, -4.44505912879632805e-08,
    9.38153738649577259e-09, -1.88724975172282944e-09, 3.62559028155211725e-10, -6.66348972350202712e-11,
    1.17361862988909012e-11, -1.98397439776494364e-12, 3.22379336594557476e-13, -5.04218550472791179e-14,
    7.60068429473540767e-15, -1.10559694773538625e-15, 1.55363195773620054e-16, -2.11142121435816596e-17};
static const double I1_FAR[] = {
    3.89288117509140053e-01,  -9.76109749136146870e-03, -1.10588938762623713e-04, -3.88256480887769059e-06,
    -2.51223623787020884e-07, -2.63146884688951959e-08, -3.83538038596423700e-09, -5.58974346219658378e-10,
    -1.89749581235054126e-11, 3.25260358301548844e-11,  1.41258074366137819e-11,  2.03562854414708956e-12,
    -7.19855177624590836e-13, -4.08355111109219740e-13, -2.10154184277266430e-14, 4.27244001671195105e-14,
    1.04202769841288021e-14,  -3.81440307243700754e-15, -1.88035477551078251e-15, 3.30820231092092852e-16,
    2.96262899764595008e-16,  -3.20952592199342376e-17, -4.65030536848935801e-17, 4.41434832307170380e-18,
    7.51729631084211138e-18};
enum {
    I0_NEAR_COUNT = sizeof I0_NEAR / sizeof *I0_NEAR,
    I1_NEAR_COUNT = sizeof I1_NEAR / sizeof *I1_NEAR,
    FAR_COUNT = sizeof I0_FAR / sizeof *I0_FAR,
};
_Static_assert(sizeof I0_FAR == sizeof I1_FAR, "FAR_COUNT is of both");

#define CPU_BODY "kernels/special_vectors.inc"
#include "kernels/each_cpu.inc"

static void by_blocks(DoubleVectorFn *f, double *z, const double *x, int64_t n) {
    for (int64_t at = 0; at < n; at += SPECIAL_BLOCK)
        f(z + at, x + at, n - at < SPECIAL_BLOCK ? n - at : SPECIAL_BLOCK);
}
void special_ndtri(double *z, const double *x, int64_t n) {
    by_blocks(CPU_PICK(ndtri), z, x, n);
}
void special_erfinv(double *z, const double *x, int64_t n) {
    by_blocks(CPU_PICK(erfinv), z, x, n);
}
void special_i0(double *z, const double *x, int64_t n) {
    by_blocks(CPU_PICK(i0), z, x, n);
}
void special_i1(double *z, const double *x, int64_t n) {
    by_blocks(CPU_PICK(i1), z, x, n);
}
void special_i0e(double *z, const double *x, int64_t n) {
    by_blocks(CPU_PICK(i0e), z, x, n);
}
void special_i1e(double *z, const double *x, int64_t n) {
    by_blocks(CPU_PICK(i1e), z, x, n);
}
void special_digammas(double *z, const double *x, int64_t n) {
    by_blocks(CPU_PICK(digamma), z, x, n);
}
void special_lgammas(double *z, const double *x, int64_t n) {
    for (int64_t i = 0; i < n; i++) z[i] = special_lgamma(x[i]);
}
void special_lgammas_of_floats(double *z, const double *x, int64_t n) {
    by_blocks(CPU_PICK(lgamma), z, x, n);
}
