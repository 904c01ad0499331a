/* direct_run.h: runs hand-made graphs in a DirectSession, for tests. */
#pragma once
#include "graph_builder.h"
#include "ops/op_list.h"
#include "runtime/direct_session.h"
#include "unit_test.h"

/* Takes the builder's graph; the builder is empty afterwards. */
static inline DirectSession *open_session(GraphBuilder *b, int threads) {
    DirectSession *s = NULL;
    ops_register_all();
    expect_ok(direct_session_new(gb_graph(b), threads, &s));
    gb_clear(b);
    return s;
}

static inline Error *run_error(DirectSession *s, const char *fetch, const char *target, const char *feed, Tensor *value, int64_t timeout_ms, Tensor **out) {
    Str fetches[] = {str_of(fetch)}, targets[] = {str_of(target)}, feeds[] = {str_of(feed)};
    RunSignature sig = {.feeds = feeds, .fetches = fetches, .targets = targets, .feed_count = feed != NULL, .fetch_count = fetch != NULL, .target_count = target != NULL};
    return direct_session_run(s, &sig, &value, out, timeout_ms);
}

static inline Tensor *run_fetch(DirectSession *s, const char *fetch) {
    Tensor *t = NULL;
    expect_ok(run_error(s, fetch, NULL, NULL, NULL, 60000, &t));
    return t;
}

static inline float run_f32(DirectSession *s, const char *fetch) {
    Tensor *t = run_fetch(s, fetch);
    assert_int_equal(t->dtype, DT_FLOAT);
    float v = tensor_f32(t)[0];
    tensor_unref(t);
    return v;
}

static inline int run_i32(DirectSession *s, const char *fetch) {
    Tensor *t = run_fetch(s, fetch);
    assert_int_equal(t->dtype, DT_INT32);
    int v = tensor_i32(t)[0];
    tensor_unref(t);
    return v;
}

static inline void run_target(DirectSession *s, const char *target) {
    expect_ok(run_error(s, NULL, target, NULL, NULL, 60000, NULL));
}
