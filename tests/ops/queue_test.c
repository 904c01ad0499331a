/* queue_test.c: queues under many threads, waiting, closing and cancelling. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/memory.h"
#include "base/thread.h"
#include "ops/accumulator_resource.h"
#include "ops/queue_resource.h"

static Queue *make_queue(QueueKind kind, int64_t capacity) {
    DataType types[] = {DT_INT64};
    Shape shapes[] = {SHAPE_SCALAR};
    return queue_new(
        STR("q"),
        &(QueueSpec){.kind = kind, .capacity = capacity, .component_count = 1, .types = types, .shapes = shapes});
}

/* What came out of one operation. */
typedef struct Outcome {
    Latch done;
    ErrorCode code;
    char message[160];
    int64_t count, first, sum;
} Outcome;

static void record(void *arg, Error *err, Tensor **components) {
    Outcome *o = arg;
    o->code = err ? err->code : CODE_OK;
    o->message[0] = 0;
    if (err) strncat(o->message, err->message, sizeof o->message - 1);
    o->count = components ? components[0]->count : 0;
    o->first = o->count ? tensor_i64(components[0])[0] : 0;
    o->sum = 0;
    for (int64_t i = 0; i < o->count; i++) o->sum += tensor_i64(components[0])[i];
    error_free(err);
    latch_done(&o->done);
}

static void outcome_init(Outcome *o) {
    *o = (Outcome){0};
    latch_init(&o->done, 1);
}

static void put(Queue *q, int64_t value, Outcome *o) {
    Tensor *t = tensor_scalar_i64(value);
    outcome_init(o);
    queue_enqueue(q, &t, NULL, record, o);
    tensor_unref(t);
}

static bool finished(Outcome *o) {
    return latch_wait_for(&o->done, 0);
}

static void a_closed_queue_gives_back_what_a_batch_had_taken(void **state) {
    (void)state;
    Queue *q = make_queue(QUEUE_FIFO, 10);
    Outcome put_it, many, up_to, closed, late;
    put(q, 1, &put_it);
    put(q, 2, &put_it);
    outcome_init(&many);
    queue_dequeue_many(q, 3, false, NULL, record, &many);
    assert_false(finished(&many));
    assert_int_equal(queue_size(q), 0); /* taken as they come, so that a batch may be larger than the queue */
    outcome_init(&closed);
    queue_close(q, false, NULL, record, &closed);
    assert_true(finished(&closed) && finished(&many));
    assert_int_equal(many.code, CODE_OUT_OF_RANGE);
    assert_string_equal(many.message,
                        "FIFOQueue 'q' is closed and has insufficient elements (requested 1, current size 0)");
    assert_int_equal(queue_size(q), 2);
    outcome_init(&up_to);
    queue_dequeue_many(q, 3, true, NULL, record, &up_to);
    assert_true(finished(&up_to));
    assert_int_equal(up_to.count, 2);
    assert_int_equal(up_to.first, 1);
    put(q, 3, &late);
    assert_int_equal(late.code, CODE_CANCELLED);
    assert_string_equal(late.message, "FIFOQueue 'q' is closed.");
    resource_unref((Resource *)q);
}

static void a_full_queue_makes_enqueues_wait_and_close_waits_for_them(void **state) {
    (void)state;
    Queue *q = make_queue(QUEUE_FIFO, 1);
    Outcome a, b, closed, got;
    put(q, 1, &a);
    put(q, 2, &b);
    assert_true(finished(&a) && !finished(&b));
    outcome_init(&closed);
    queue_close(q, false, NULL, record, &closed);
    assert_false(queue_is_closed(q));
    outcome_init(&got);
    queue_dequeue(q, NULL, record, &got);
    assert_true(finished(&got) && finished(&b) && finished(&closed));
    assert_true(queue_is_closed(q));
    assert_int_equal(queue_size(q), 1);
    resource_unref((Resource *)q);
}

static void closing_can_cancel_enqueues(void **state) {
    (void)state;
    Queue *q = make_queue(QUEUE_FIFO, 1);
    Outcome a, b, closed;
    put(q, 1, &a);
    put(q, 2, &b);
    outcome_init(&closed);
    queue_close(q, true, NULL, record, &closed);
    assert_true(finished(&b));
    assert_int_equal(b.code, CODE_CANCELLED);
    resource_unref((Resource *)q);
}

static void a_cancelled_dequeue_gives_back_its_elements(void **state) {
    (void)state;
    Queue *q = make_queue(QUEUE_FIFO, 10);
    Cancel cancel;
    Outcome a, many;
    cancel_init(&cancel);
    put(q, 5, &a);
    outcome_init(&many);
    queue_dequeue_many(q, 2, false, &cancel, record, &many);
    assert_false(finished(&many));
    cancel_now(&cancel, error_new(CODE_CANCELLED, "step over"));
    assert_true(finished(&many));
    assert_int_equal(many.code, CODE_CANCELLED);
    assert_int_equal(queue_size(q), 1);
    outcome_init(&many);
    queue_dequeue(q, &cancel, record, &many); /* cancelled before it began */
    assert_int_equal(many.code, CODE_CANCELLED);
    cancel_clear(&cancel);
    resource_unref((Resource *)q);
}

static void priorities_and_arrival_decide(void **state) {
    (void)state;
    Queue *q = make_queue(QUEUE_PRIORITY, -1);
    Outcome o;
    int64_t in[] = {5, 1, 9, 1, -3}, want[] = {-3, 1, 1, 5, 9};
    for (int i = 0; i < 5; i++) put(q, in[i], &o);
    for (int i = 0; i < 5; i++) {
        outcome_init(&o);
        queue_dequeue(q, NULL, record, &o);
        assert_int_equal(o.first, want[i]);
    }
    resource_unref((Resource *)q);
}

/* ---- Many threads ---- */

enum { THREADS = 4, EACH = 2000 };

typedef struct Work {
    Queue *q;
    int64_t base;
    _Atomic int64_t *taken_sum, *taken_count;
} Work;

static void *produce(void *arg) {
    Work *w = arg;
    for (int i = 0; i < EACH; i++) {
        Outcome o;
        put(w->q, w->base + i, &o);
        latch_wait(&o.done);
        latch_clear(&o.done);
    }
    return NULL;
}

/* Every third dequeue is cancelled by another thread while it may be running; elements must not be lost by that. */
static void *cancel_soon(void *arg) {
    cancel_now(arg, error_new(CODE_CANCELLED, "too late"));
    return NULL;
}

static void *consume(void *arg) {
    Work *w = arg;
    for (int i = 0;; i++) {
        Outcome o;
        Cancel cancel;
        pthread_t canceller;
        bool cancelled = i % 3 == 0;
        cancel_init(&cancel);
        outcome_init(&o);
        if (cancelled) pthread_create(&canceller, NULL, cancel_soon, &cancel);
        if (i % 2)
            queue_dequeue_many(w->q, 3, true, &cancel, record, &o);
        else
            queue_dequeue(w->q, &cancel, record, &o);
        latch_wait(&o.done);
        if (cancelled) pthread_join(canceller, NULL);
        cancel_clear(&cancel);
        latch_clear(&o.done);
        atomic_fetch_add(w->taken_sum, o.sum);
        atomic_fetch_add(w->taken_count, o.count);
        if (o.code == CODE_OUT_OF_RANGE) return NULL;
    }
}

static void nothing_is_lost_between_threads(void **state) {
    (void)state;
    Queue *q = make_queue(QUEUE_FIFO, 7);
    _Atomic int64_t sum = 0, count = 0;
    pthread_t producers[THREADS], consumers[THREADS];
    Work work[THREADS];
    for (int i = 0; i < THREADS; i++) {
        work[i] = (Work){q, (int64_t)i * EACH, &sum, &count};
        pthread_create(&producers[i], NULL, produce, &work[i]);
        pthread_create(&consumers[i], NULL, consume, &work[i]);
    }
    for (int i = 0; i < THREADS; i++) pthread_join(producers[i], NULL);
    Outcome closed;
    outcome_init(&closed);
    queue_close(q, false, NULL, record, &closed);
    for (int i = 0; i < THREADS; i++) pthread_join(consumers[i], NULL);
    int64_t n = THREADS * EACH;
    assert_int_equal(atomic_load(&count), n);
    assert_int_equal(atomic_load(&sum), n * (n - 1) / 2);
    resource_unref((Resource *)q);
}

/* ---- Accumulators ---- */

typedef struct Taken {
    bool done;
    ErrorCode code;
    float first;
    const void *data;
} Taken;

static void take_done(void *arg, Error *err, Tensor **results) {
    Taken *t = arg;
    t->done = true;
    t->code = err ? err->code : CODE_OK;
    if (!err) t->data = results[results[1] ? 1 : 0]->data;
    if (!err) t->first = *(const float *)t->data;
    error_free(err);
}

static void an_accumulator_waits_for_enough_fresh_gradients(void **state) {
    (void)state;
    Accumulator *a;
    AccumulatorSpec spec = {.mean = true, .dtype = DT_FLOAT, .shape = SHAPE_SCALAR};
    assert_null(accumulator_new(STR("a"), &spec, &a));
    Tensor *one = tensor_scalar_f32(1), *three = tensor_scalar_f32(3);
    Taken taken = {0}, cancelled = {0};
    accumulator_take(a, 2, NULL, take_done, &taken);
    assert_null(accumulator_apply(a, 0, one));
    assert_false(taken.done);
    assert_null(accumulator_apply(a, 0, three));
    assert_true(taken.done && taken.first == 2);
    assert_null(accumulator_apply(a, 0, one)); /* of the step that is over: dropped */
    assert_int_equal(accumulator_count(a), 0);
    Cancel cancel;
    cancel_init(&cancel);
    accumulator_take(a, 1, &cancel, take_done, &cancelled);
    assert_false(cancelled.done);
    cancel_now(&cancel, error_new(CODE_ABORTED, "enough"));
    assert_true(cancelled.done);
    assert_int_equal(cancelled.code, CODE_CANCELLED);
    cancel_clear(&cancel);
    tensor_unref(one);
    tensor_unref(three);
    resource_unref((Resource *)a);
}

/* The first gradient of a step becomes the sum without a copy, unless somebody else still has it. */
static void an_accumulator_takes_over_a_gradient_that_is_nobody_elses(void **state) {
    (void)state;
    for (int sparse = 0; sparse < 2; sparse++) {
        AccumulatorSpec spec = {.mean = true, .sparse = sparse, .dtype = DT_FLOAT, .shape = sparse ? shape_vector(9) : SHAPE_SCALAR};
        Shape row = shape_vector(1);
        Tensor *index, *gradients[3];
        assert_null(tensor_new(DT_INT64, &row, &index));
        tensor_i64(index)[0] = 5;
        Accumulator *a;
        assert_null(accumulator_new(STR("a"), &spec, &a));
        for (int i = 0; i < 3; i++) {
            assert_null(tensor_new(DT_FLOAT, sparse ? &row : &spec.shape, &gradients[i]));
            tensor_f32(gradients[i])[0] = (float)(i + 1);
        }
        for (int alone = 1; alone >= 0; alone--) {
            Taken taken = {0};
            Tensor *first = gradients[alone], *other = alone ? NULL : tensor_ref(first);
            for (int i = 0; i < 2; i++) {
                Tensor *gradient = i ? gradients[2] : first;
                assert_null(sparse ? accumulator_apply_sparse(a, 1, index, gradient, NULL) : accumulator_apply(a, 1, gradient));
            }
            accumulator_take(a, 2, NULL, take_done, &taken);
            assert_true(taken.done && taken.code == CODE_OK);
            assert_true(taken.first == (alone ? 2.5f : 2));
            if (!sparse) assert_int_equal(taken.data == first->data, alone); /* rows are merged elsewhere */
            if (other) assert_true(tensor_f32(other)[0] == 1);
            tensor_unref(other);
        }
        Taken taken = {0}; /* the mean of one gradient is the gradient */
        assert_null(sparse ? accumulator_apply_sparse(a, 2, index, gradients[2], NULL) : accumulator_apply(a, 2, gradients[2]));
        accumulator_take(a, 1, NULL, take_done, &taken);
        assert_true(taken.done && taken.first == 3 && taken.data == gradients[2]->data);
        for (int i = 0; i < 3; i++) tensor_unref(gradients[i]);
        tensor_unref(index);
        resource_unref((Resource *)a);
    }
}

static void count_release(void *count) {
    ++*(int *)count;
}

/* A gradient in the memory of a message is kept without a copy, never written to, and given back. */
static void an_accumulator_keeps_a_gradient_that_was_lent(void **state) {
    (void)state;
    for (int sparse = 0; sparse < 2; sparse++) {
        AccumulatorSpec spec = {.mean = true, .sparse = sparse, .dtype = DT_FLOAT, .shape = shape_vector(1)};
        float memory[] = {1}, more[] = {3};
        int64_t zero[] = {0};
        int released = 0;
        Accumulator *a;
        assert_null(accumulator_new(STR("a"), &spec, &a));
        Tensor *index = tensor_wrap(DT_INT64, &spec.shape, zero, count_release, &released);
        Tensor *second = tensor_wrap(DT_FLOAT, &spec.shape, more, count_release, &released);
        for (int count = 1; count <= 2; count++) {
            Taken taken = {0};
            Tensor *first = tensor_wrap(DT_FLOAT, &spec.shape, memory, count_release, &released);
            for (int i = 0; i < count; i++) {
                Tensor *gradient = i ? second : first;
                assert_null(sparse ? accumulator_apply_sparse(a, 1, index, gradient, NULL) : accumulator_apply(a, 1, gradient));
            }
            tensor_unref(first);
            accumulator_take(a, count, NULL, take_done, &taken);
            assert_true(taken.done && taken.first == (float)count);
            assert_int_equal(taken.data == (const void *)memory, count == 1);
            assert_true(memory[0] == 1 && more[0] == 3);
            assert_int_equal(released, count);
        }
        tensor_unref(second);
        tensor_unref(index);
        assert_int_equal(released, 4);
        resource_unref((Resource *)a);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_closed_queue_gives_back_what_a_batch_had_taken),
        cmocka_unit_test(a_full_queue_makes_enqueues_wait_and_close_waits_for_them),
        cmocka_unit_test(closing_can_cancel_enqueues),
        cmocka_unit_test(a_cancelled_dequeue_gives_back_its_elements),
        cmocka_unit_test(priorities_and_arrival_decide),
        cmocka_unit_test(nothing_is_lost_between_threads),
        cmocka_unit_test(an_accumulator_waits_for_enough_fresh_gradients),
        cmocka_unit_test(an_accumulator_takes_over_a_gradient_that_is_nobody_elses),
        cmocka_unit_test(an_accumulator_keeps_a_gradient_that_was_lent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
