/* dataset_test.c: iterators with threads of their own: cancelled, replaced, destroyed while they work; pulled by many.
 */
#include "direct_run.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "ops/dataset/dataset.h"

static void int64_const(GraphBuilder *b, const char *name, int64_t v) {
    gb_const(b, name, tensor_scalar_i64(v), "");
}

static void element_attrs(GraphBuilder *b) {
    DataType type = DT_INT64;
    gb_types(b, "output_types", &type, 1);
    gb_shapes(b, "output_shapes", &SHAPE_SCALAR, 1);
}

/* A dataset op whose elements are scalar int64. */
static void dataset(GraphBuilder *b, const char *name, const char *op, const char *inputs) {
    gb_node(b, name, op, inputs);
    element_attrs(b);
}

/* it: an iterator over `source`; init: sets it; next: pulls it. */
static void iterator(GraphBuilder *b, const char *source) {
    char inputs[100];
    gb_node(b, "it", "IteratorV2", "");
    gb_string(b, "shared_name", "");
    gb_string(b, "container", "");
    element_attrs(b);
    snprintf(inputs, sizeof inputs, "%s,it", source);
    gb_node(b, "init", "MakeIterator", inputs);
    gb_node(b, "next", "IteratorGetNext", "it");
    element_attrs(b);
}

/* range: the numbers from 0 on. */
static void endless_range(GraphBuilder *b) {
    int64_const(b, "zero", 0);
    int64_const(b, "one", 1);
    int64_const(b, "two", 2);
    int64_const(b, "four", 4);
    int64_const(b, "end", INT64_MAX);
    dataset(b, "range", "RangeDataset", "zero,end,one");
}

/* f(x) = x + 1 */
static void add_one_function(GraphBuilder *b) {
    GraphBuilder body = {.node_field = 3};
    int64_const(&body, "step", 1);
    gb_op(&body, "sum", "AddV2", "x,step:output:0", DT_INT64);
    gb_function(b, "add_one", "x: int64", "y: int64", "y=sum:z:0", &body);
}

/* wait(x, q) = an element of queue q, whenever there is one */
static void waiting_function(GraphBuilder *b) {
    GraphBuilder body = {.node_field = 3};
    DataType type = DT_INT64;
    gb_node(&body, "take", "QueueDequeueV2", "q");
    gb_types(&body, "component_types", &type, 1);
    gb_function(b, "wait", "x: int64, q: resource", "y: int64", "y=take:components:0", &body);
    gb_node(b, "queue", "FIFOQueueV2", "");
    gb_types(b, "component_types", &type, 1);
    gb_shapes(b, "shapes", &SHAPE_SCALAR, 1);
}

static void parallel_map(GraphBuilder *b, const char *name, const char *inputs, const char *function,
                         bool captures_queue) {
    DataType captured = DT_RESOURCE;
    dataset(b, name, "ParallelMapDatasetV2", inputs);
    gb_func(b, "f", function);
    gb_types(b, "Targuments", &captured, captures_queue ? 1 : 0);
}

static int64_t pull(DirectSession *s) {
    Tensor *t = run_fetch(s, "next");
    assert_int_equal(t->dtype, DT_INT64);
    int64_t v = tensor_i64(t)[0];
    tensor_unref(t);
    return v;
}

static void a_pipeline_with_threads_keeps_its_order(void **state) {
    (void)state;
    GraphBuilder b = {0};
    endless_range(&b);
    add_one_function(&b);
    parallel_map(&b, "map", "range,four", "add_one", false);
    dataset(&b, "ahead", "PrefetchDataset", "map,two");
    iterator(&b, "ahead");
    DirectSession *s = open_session(&b, 3);
    for (int round = 0; round < 3; round++) { /* each round ends the threads of the one before in mid-work */
        run_target(s, "init");
        for (int i = 0; i < 40; i++) assert_int_equal(pull(s), i + 1);
    }
    direct_session_free(s);
}

static void a_step_that_waits_for_an_element_can_be_cancelled(void **state) {
    (void)state;
    GraphBuilder b = {0};
    endless_range(&b);
    waiting_function(&b);
    parallel_map(&b, "map", "range,queue,four", "wait", true);
    dataset(&b, "ahead", "PrefetchDataset", "map,two");
    iterator(&b, "ahead");
    DirectSession *s = open_session(&b, 2);
    run_target(s, "init");
    Tensor *t = NULL;
    expect_error(run_error(s, "next", NULL, NULL, NULL, 50, &t), CODE_DEADLINE_EXCEEDED, NULL);
    expect_error(run_error(s, "next", NULL, NULL, NULL, 50, &t), CODE_DEADLINE_EXCEEDED, NULL);
    run_target(s, "init"); /* replaces an iterator whose calls are all waiting */
    expect_error(run_error(s, "next", NULL, NULL, NULL, 50, &t), CODE_DEADLINE_EXCEEDED, NULL);
    direct_session_free(s); /* and so does this */
}

static void a_function_that_waits_in_the_step_itself_is_cancelled(void **state) {
    (void)state;
    GraphBuilder b = {0};
    DataType captured = DT_RESOURCE;
    endless_range(&b);
    waiting_function(&b);
    dataset(&b, "map", "MapDataset", "range,queue");
    gb_func(&b, "f", "wait");
    gb_types(&b, "Targuments", &captured, 1);
    iterator(&b, "map");
    DirectSession *s = open_session(&b, 1);
    run_target(s, "init");
    Tensor *t = NULL;
    expect_error(run_error(s, "next", NULL, NULL, NULL, 50, &t), CODE_DEADLINE_EXCEEDED, NULL);
    direct_session_free(s);
}

typedef struct Puller {
    DirectSession *session;
    int64_t sum;
} Puller;

enum { PULLERS = 6, PULLS = 50 };

static void *pull_many(void *arg) {
    Puller *p = arg;
    for (int i = 0; i < PULLS; i++) p->sum += pull(p->session);
    return NULL;
}

static void many_steps_share_an_iterator(void **state) {
    (void)state;
    GraphBuilder b = {0};
    endless_range(&b);
    add_one_function(&b);
    parallel_map(&b, "map", "range,four", "add_one", false);
    dataset(&b, "ahead", "PrefetchDataset", "map,four");
    iterator(&b, "ahead");
    DirectSession *s = open_session(&b, 3);
    run_target(s, "init");
    pthread_t threads[PULLERS];
    Puller pullers[PULLERS];
    int64_t sum = 0, n = PULLERS * PULLS;
    for (int i = 0; i < PULLERS; i++) {
        pullers[i] = (Puller){.session = s};
        pthread_create(&threads[i], NULL, pull_many, &pullers[i]);
    }
    for (int i = 0; i < PULLERS; i++) {
        pthread_join(threads[i], NULL);
        sum += pullers[i].sum;
    }
    assert_int_equal(sum, n * (n + 1) / 2); /* every element once */
    direct_session_free(s);
}

/* few(x) = a prefetched range of the numbers below x modulo 3: parallel_interleave has a thread for each, and each has
 * one. */
static void threads_within_threads_end(void **state) {
    (void)state;
    GraphBuilder b = {0}, body = {.node_field = 3};
    int64_const(&body, "zero", 0);
    int64_const(&body, "one", 1);
    int64_const(&body, "three", 3);
    gb_op(&body, "few", "FloorMod", "x,three:output:0", DT_INT64);
    dataset(&body, "range", "RangeDataset", "zero:output:0,few:z:0,one:output:0");
    dataset(&body, "ahead", "PrefetchDataset", "range:handle:0,one:output:0");
    gb_function(&b, "few", "x: int64", "y: variant", "y=ahead:handle:0", &body);
    endless_range(&b);
    dataset(&b, "all", "ParallelInterleaveDatasetV3", "range,four,two,two");
    gb_func(&b, "f", "few");
    gb_types(&b, "Targuments", NULL, 0);
    iterator(&b, "all");
    DirectSession *s = open_session(&b, 2);
    run_target(s, "init");
    int64_t sum = 0;
    for (int i = 0; i < 60; i++) sum += pull(s);
    assert_int_equal(sum, 20); /* of three elements of the input: 0; 0, 1 */
    direct_session_free(s);
}

static void what_is_no_dataset_is_refused(void **state) {
    (void)state;
    GraphBuilder b = {0};
    int64_const(&b, "one", 1);
    gb_node(&b, "none", "OptionalNone", "");
    dataset(&b, "take", "TakeDataset", "none,one");
    iterator(&b, "take");
    DirectSession *s = open_session(&b, 1);
    expect_error(run_error(s, NULL, "init", NULL, NULL, 60000, NULL), CODE_INVALID_ARGUMENT,
                 "must be a Dataset object");
    Tensor *t = NULL;
    expect_error(run_error(s, "next", NULL, NULL, NULL, 60000, &t), CODE_FAILED_PRECONDITION,
                 "has not been initialized");
    direct_session_free(s);
}

/* A state that was cut anywhere, or that belongs to another pipeline, is an error and nothing worse. */
static void damaged_states_are_refused(void **state) {
    (void)state;
    IteratorState written = {0};
    Tensor *t = tensor_scalar_i64(7);
    state_put_int(&written, 5);
    expect_ok(state_put_element(&written, &t, 1));
    state_put_error(&written, NULL);
    tensor_unref(t);
    for (size_t len = 0; len < written.written.len; len++) {
        IteratorState s = {.reader = wire_reader((Str){written.written.ptr, len})};
        DataType type = DT_INT64;
        int64_t v = 0;
        Tensor *element = NULL;
        Error *err = state_get_range(&s, 0, 9, &v), *told = NULL;
        if (!err) err = state_get_element(&s, &type, 1, &element);
        if (!err) err = state_get_error(&s, &told);
        assert_non_null(err);
        error_free(err);
        tensor_unref(element);
    }
    strbuf_clear(&written.written);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_pipeline_with_threads_keeps_its_order),
        cmocka_unit_test(a_step_that_waits_for_an_element_can_be_cancelled),
        cmocka_unit_test(a_function_that_waits_in_the_step_itself_is_cancelled),
        cmocka_unit_test(many_steps_share_an_iterator),
        cmocka_unit_test(threads_within_threads_end),
        cmocka_unit_test(what_is_no_dataset_is_refused),
        cmocka_unit_test(damaged_states_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
