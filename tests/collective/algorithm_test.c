/* algorithm_test.c: rings, trees and exchanges of one to six members that share a rendezvous, with sizes that do not divide; a member that fails. */
#include "collective/algorithm.h"

#include <stdlib.h>

#include "base/memory.h"
#include "base/thread.h"
#include "unit_test.h"

enum { MAX_MEMBERS = 6 };

/* A group whose members are all in this process. */
typedef struct Party {
    Group *group;
    Rendezvous *rendezvous;
    ThreadPool *pool;
    Latch latch;
    Tensor *in[MAX_MEMBERS], *out[MAX_MEMBERS];
    Error *err[MAX_MEMBERS];
} Party;

typedef struct Member {
    Party *party;
    int rank;
} Member;

static void party_begin(Party *p, int size, int64_t in_count, int64_t out_count) {
    *p = (Party){.rendezvous = rendezvous_new(1, NULL, NULL), .pool = threadpool_new("test", 2)};
    GroupMember members[MAX_MEMBERS];
    for (int i = 0; i < size; i++) members[i] = (GroupMember){xasprintf("/job:w/replica:0/task:0/device:CPU:%d", i), xstrdup("/job:w/replica:0/task:0"), 1, 0, true};
    p->group = group_new(1, STR("CPU"), members, size);
    latch_init(&p->latch, size);
    Shape in = shape_vector(in_count), out = shape_vector(out_count);
    for (int i = 0; i < size; i++) {
        group_member_clear(&members[i]);
        expect_ok(tensor_new(DT_INT64, &in, &p->in[i]));
        expect_ok(tensor_new(DT_INT64, &out, &p->out[i]));
        for (int64_t j = 0; j < in_count; j++) tensor_i64(p->in[i])[j] = (i + 1) * 1000003 + j * j;
        for (int64_t j = 0; j < out_count; j++) tensor_i64(p->out[i])[j] = -7;
    }
}

static void party_end(Party *p) {
    assert_true(rendezvous_is_empty(p->rendezvous));
    for (int i = 0; i < p->group->size; i++) {
        tensor_unref(p->in[i]);
        tensor_unref(p->out[i]);
        error_free(p->err[i]);
    }
    threadpool_free(p->pool);
    rendezvous_unref(p->rendezvous);
    latch_clear(&p->latch);
    group_unref(p->group);
}

static void moved(void *arg, Error *err) {
    Member *m = arg;
    Party *p = m->party;
    p->err[m->rank] = err;
    free(m);
    latch_done(&p->latch);
}

static MovesContext context_of(Party *p, int rank) {
    return (MovesContext){.rendezvous = p->rendezvous, .pool = p->pool, .group = p->group, .rank = rank, .in = p->in[rank], .out = p->out[rank],
                          .merge = row_math_int64.add, .divide = row_math_int64.divide};
}

static void start(Party *p, int rank, Moves *m) {
    Member *member = xcalloc(1, sizeof *member);
    *member = (Member){p, rank};
    moves_start(m, moved, member);
}

static void finish(Party *p) {
    latch_wait(&p->latch);
    for (int i = 0; i < p->group->size; i++) {
        expect_ok(p->err[i]);
        p->err[i] = NULL;
    }
}

static int64_t sum_at(const Party *p, int64_t j) {
    int64_t sum = 0;
    for (int i = 0; i < p->group->size; i++) sum += tensor_i64(p->in[i])[j];
    return sum;
}

static const int64_t counts[] = {0, 1, 7, 8, 9, 64, 1000, 100003};

static void reduce_all(const RingSubdivs *subdivs, bool in_place) {
    for (int size = 1; size <= MAX_MEMBERS; size++) {
        for (size_t c = 0; c < sizeof counts / sizeof counts[0]; c++) {
            Party p;
            party_begin(&p, size, counts[c], counts[c]);
            int64_t *want = xcalloc((size_t)counts[c], sizeof *want);
            for (int64_t j = 0; j < counts[c]; j++) want[j] = size > 1 ? sum_at(&p, j) / size : sum_at(&p, j);
            for (int i = 0; in_place && i < size; i++) {
                tensor_unref(p.out[i]);
                p.out[i] = tensor_ref(p.in[i]);
            }
            for (int i = 0; i < size; i++) {
                MovesContext context = context_of(&p, i);
                Moves *m = moves_new(&context);
                expect_ok(ring_reduce(m, &context, "1:2:0:0", subdivs));
                start(&p, i, m);
            }
            finish(&p);
            for (int i = 0; i < size; i++) assert_memory_equal(p.out[i]->data, want, (size_t)counts[c] * sizeof *want);
            free(want);
            party_end(&p);
        }
    }
}

static void a_ring_sums_and_divides(void **state) {
    (void)state;
    reduce_all(&(RingSubdivs){.max_per_device = -1}, false);
    reduce_all(&(RingSubdivs){.max_per_device = -1}, true);
}

static void several_rings_share_the_work(void **state) {
    (void)state;
    const int64_t offsets[] = {0, 1, -1, -2};
    reduce_all(&(RingSubdivs){.offsets = offsets, .count = 4}, false);
    reduce_all(&(RingSubdivs){.offsets = offsets, .count = 4}, true);
}

static void a_ring_gathers_in_the_order_of_ranks(void **state) {
    (void)state;
    for (int size = 1; size <= MAX_MEMBERS; size++) {
        for (size_t c = 0; c < sizeof counts / sizeof counts[0]; c++) {
            Party p;
            party_begin(&p, size, counts[c], counts[c] * size);
            for (int i = 0; i < size; i++) {
                MovesContext context = context_of(&p, i);
                Moves *m = moves_new(&context);
                ring_gather(m, &context, "1:2:0:0");
                start(&p, i, m);
            }
            finish(&p);
            for (int i = 0; i < size; i++)
                for (int from = 0; from < size; from++)
                    assert_memory_equal(tensor_i64(p.out[i]) + from * counts[c], p.in[from]->data, (size_t)counts[c] * sizeof(int64_t));
            party_end(&p);
        }
    }
}

static void each_gets_its_part_of_the_sum(void **state) {
    (void)state;
    for (int size = 1; size <= MAX_MEMBERS; size++) {
        const int64_t part = 701;
        Party p;
        party_begin(&p, size, part * size, part * size);
        for (int i = 0; i < size; i++) {
            MovesContext context = context_of(&p, i);
            context.divide = NULL;
            Moves *m = moves_new(&context);
            ring_reduce_scatter(m, &context, "1:2:0:0");
            start(&p, i, m);
        }
        finish(&p);
        for (int i = 0; i < size; i++)
            for (int64_t j = i * part; j < (i + 1) * part; j++) assert_int_equal(tensor_i64(p.out[i])[j], sum_at(&p, j));
        party_end(&p);
    }
}

static void a_tree_reaches_all_from_any_source(void **state) {
    (void)state;
    for (int size = 1; size <= MAX_MEMBERS; size++) {
        for (int source = 0; source < size; source++) {
            Party p;
            party_begin(&p, size, 1000, 1000);
            for (int i = 0; i < size; i++) {
                MovesContext context = context_of(&p, i);
                if (i != source) context.in = NULL;
                Moves *m = moves_new(&context);
                tree_broadcast(m, &context, "1:2:0:0", source);
                start(&p, i, m);
            }
            finish(&p);
            for (int i = 0; i < size; i++) assert_memory_equal(p.out[i]->data, p.in[source]->data, 1000 * sizeof(int64_t));
            party_end(&p);
        }
    }
}

static void rows_go_to_their_ranks(void **state) {
    (void)state;
    for (int size = 1; size <= MAX_MEMBERS; size++) {
        const int64_t row = 33;
        Party p;
        party_begin(&p, size, row * size, row * size);
        for (int i = 0; i < size; i++) {
            MovesContext context = context_of(&p, i);
            Moves *m = moves_new(&context);
            all_to_all(m, &context, "1:2:0:0");
            start(&p, i, m);
        }
        finish(&p);
        for (int i = 0; i < size; i++)
            for (int from = 0; from < size; from++)
                assert_memory_equal(tensor_i64(p.out[i]) + from * row, tensor_i64(p.in[from]) + i * row, (size_t)row * sizeof(int64_t));
        party_end(&p);
    }
}

static void an_abort_ends_those_who_wait_for_a_member_that_never_comes(void **state) {
    (void)state;
    Party p;
    party_begin(&p, 3, 100, 100);
    latch_done(&p.latch); /* rank 2 stays away */
    for (int i = 0; i < 2; i++) {
        MovesContext context = context_of(&p, i);
        Moves *m = moves_new(&context);
        expect_ok(ring_reduce(m, &context, "1:2:0:0", &(RingSubdivs){.max_per_device = -1}));
        start(&p, i, m);
    }
    Error *reason = error_new(CODE_UNAVAILABLE, "rank 2 is gone");
    rendezvous_abort(p.rendezvous, reason);
    error_free(reason);
    latch_wait(&p.latch);
    for (int i = 0; i < 2; i++) {
        expect_error(p.err[i], CODE_UNAVAILABLE, "rank 2 is gone");
        p.err[i] = NULL;
    }
    party_end(&p);
}

static void members_with_other_sizes_are_found_out(void **state) {
    (void)state;
    Party p;
    party_begin(&p, 2, 100, 100);
    Shape other = shape_vector(300);
    tensor_unref(p.in[1]);
    tensor_unref(p.out[1]);
    expect_ok(tensor_new(DT_INT64, &other, &p.in[1]));
    expect_ok(tensor_new(DT_INT64, &other, &p.out[1]));
    memset(p.in[1]->data, 0, tensor_bytes(p.in[1]));
    for (int i = 0; i < 2; i++) {
        MovesContext context = context_of(&p, i);
        Moves *m = moves_new(&context);
        expect_ok(ring_reduce(m, &context, "1:2:0:0", &(RingSubdivs){.max_per_device = -1}));
        start(&p, i, m);
    }
    latch_wait(&p.latch);
    for (int i = 0; i < 2; i++) {
        expect_error(p.err[i], CODE_INTERNAL, "bytes where");
        p.err[i] = NULL;
    }
    party_end(&p);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_ring_sums_and_divides),
        cmocka_unit_test(several_rings_share_the_work),
        cmocka_unit_test(a_ring_gathers_in_the_order_of_ranks),
        cmocka_unit_test(each_gets_its_part_of_the_sum),
        cmocka_unit_test(a_tree_reaches_all_from_any_source),
        cmocka_unit_test(rows_go_to_their_ranks),
        cmocka_unit_test(an_abort_ends_those_who_wait_for_a_member_that_never_comes),
        cmocka_unit_test(members_with_other_sizes_are_found_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
