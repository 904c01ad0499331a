/* sparse_merge_test.c: the places of two sparse tensors, merged in runs, are those that are found one by one; and sums of them, small ones dropped. */
#include <math.h>
#include <stdlib.h>

#include "base/memory.h"
#include "base/rng.h"
#include "direct_run.h"
#include "ops/sparse_merge.h"

enum { MOST = 300, MOST_RANK = 3 };

/* Rows in order, of the `side`^rank there are each with a chance of one in `rare`, and a stretch of all of them. */
static SparseView view(int64_t *indices, int rank, int64_t side, uint32_t rare, int64_t all_from, int64_t all_to, uint64_t seed) {
    PhiloxStream s = philox_stream(philox_from_seeds(seed, 1));
    SparseView v = {.indices = indices, .shape = {.rank = rank}};
    int64_t places = 1;
    for (int d = 0; d < rank; d++) places *= v.shape.dims[d] = side;
    for (int64_t i = 0; i < places && v.nnz < MOST; i++) {
        if (philox_stream_below(&s, rare) != 0 && !(i >= all_from && i < all_to)) continue;
        for (int64_t d = rank - 1, rest = i; d >= 0; d--, rest /= side) indices[v.nnz * rank + d] = rest % side;
        v.nnz++;
    }
    return v;
}

static void check(const SparseView *a, const SparseView *b) {
    const int rank = a->shape.rank;
    SparseRuns r = sparse_merge(a, b);
    int64_t *places = xcalloc((size_t)(r.places * rank + 1), sizeof *places), i = 0, j = 0, at = 0;
    sparse_runs_put(&r, a, b, places);
    for (int64_t n = 0; n < r.count; n++) {
        assert_true(r.runs[n].count > 0);
        for (int64_t step = 0; step < r.runs[n].count; step++, at++) {
            const int order = i == a->nnz ? 1 : j == b->nnz ? -1 : sparse_compare(a->indices + i * rank, b->indices + j * rank, rank);
            const int64_t *want = order <= 0 ? a->indices + i * rank : b->indices + j * rank;
            assert_int_equal(r.runs[n].a >= 0 ? r.runs[n].a + step : -1, order <= 0 ? i : -1);
            assert_int_equal(r.runs[n].b >= 0 ? r.runs[n].b + step : -1, order >= 0 ? j : -1);
            for (int d = 0; d < rank; d++) assert_int_equal(places[at * rank + d], want[d]);
            i += order <= 0;
            j += order >= 0;
        }
    }
    assert_int_equal(at, r.places);
    assert_true(i == a->nnz && j == b->nnz);
    free(places);
    free(r.runs);
}

static void runs_are_the_places_one_by_one(void **state) {
    (void)state;
    static int64_t first[MOST * MOST_RANK], second[MOST * MOST_RANK];
    static const int64_t sides[] = {1, 300, 17, 7};
    static const uint32_t rare[] = {1, 2, 3, 40, 100000};
    for (int rank = 0; rank <= MOST_RANK; rank++) {
        for (size_t i = 0; i < 5; i++) {
            for (size_t j = 0; j < 5; j++) {
                const SparseView a = view(first, rank, sides[rank], rare[i], 40, 60, 1), b = view(second, rank, sides[rank], rare[j], 50, 90, 2);
                check(&a, &b);
                check(&a, &a);
            }
        }
    }
}

/* Of a (at 0 to 99) and b (at 50 to 149): what is in one stays however small; sums below the threshold go, and NaN. */
static void small_sums_are_dropped(void **state) {
    (void)state;
    enum { N = 100, BEHIND = 50 };
    GraphBuilder b = {0};
    for (int side = 0; side < 2; side++) {
        const Shape matrix = shape_matrix(N, 1), vector = shape_vector(N), one = shape_vector(1);
        Tensor *indices = NULL, *values = NULL, *shape = NULL;
        expect_ok(tensor_new(DT_INT64, &matrix, &indices));
        expect_ok(tensor_new(DT_FLOAT, &vector, &values));
        expect_ok(tensor_new(DT_INT64, &one, &shape));
        tensor_i64(shape)[0] = 1000;
        for (int i = 0; i < N; i++) {
            const int at = side * BEHIND + i;
            tensor_i64(indices)[i] = at;
            tensor_f32(values)[i] = at == 70 ? NAN : side == 0 ? 1e-3f : at % 3 ? 2 : -1e-3f;
        }
        gb_const(&b, side ? "b_indices" : "a_indices", indices, "");
        gb_const(&b, side ? "b_values" : "a_values", values, "");
        gb_const(&b, side ? "b_shape" : "a_shape", shape, "");
    }
    gb_f32(&b, "least", 0.5f);
    gb_op(&b, "z", "SparseAdd", "a_indices,a_values,a_shape,b_indices,b_values,b_shape,least", DT_FLOAT);
    gb_type(&b, "Treal", DT_FLOAT);
    DirectSession *s = open_session(&b, 1);
    Tensor *indices = run_fetch(s, "z"), *values = run_fetch(s, "z:1");
    int64_t kept = 0;
    for (int at = 0; at < BEHIND + N; at++) {
        const bool both = at >= BEHIND && at < N;
        if (both && (at % 3 == 0 || at == 70)) continue;
        assert_int_equal(tensor_i64(indices)[kept], at);
        assert_true(tensor_f32(values)[kept] == (both ? 2 + 1e-3f : at < BEHIND ? 1e-3f : at % 3 ? 2 : -1e-3f));
        kept++;
    }
    assert_int_equal(values->count, kept);
    tensor_unref(indices);
    tensor_unref(values);
    direct_session_free(s);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(runs_are_the_places_one_by_one), cmocka_unit_test(small_sums_are_dropped)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
