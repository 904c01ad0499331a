/* same_bits.h: a graph run with the passes and without. */
#pragma once
#include "direct_run.h"

enum { MAX_IN = 4 };

/* Runs "y" of the graph with passes and without, two steps each, in one thread and in two; takes the values of in0, in1, ... */
static inline void expect_same_bits(GraphBuilder *b, Tensor **in, int count) {
    static const char *const names[MAX_IN] = {"in0", "in1", "in2", "in3"};
    Str feeds[MAX_IN], fetches[] = {STR("y")}, def = gb_graph(b);
    for (int i = 0; i < count; i++) feeds[i] = str_of(names[i]);
    RunSignature sig = {.feeds = feeds, .feed_count = count, .fetches = fetches, .fetch_count = 1};
    ops_register_all();
    for (int threads = 1; threads <= 2; threads++) {
        Tensor *want = NULL;
        for (int on = 0; on < 2; on++) {
            DirectSession *s = NULL;
            expect_ok(direct_session_new(def, threads, &s));
            direct_session_set_passes(s, &(PassOptions){.disabled = on ? 0 : PASS_ALL});
            for (int step = 0; step < 2; step++) {
                Tensor *got = NULL, *kept[MAX_IN] = {0};
                for (int i = 0; i < count; i++) expect_ok(tensor_copy(in[i], &kept[i]));
                expect_ok(direct_session_run(s, &sig, in, &got, 60000));
                if (want) {
                    assert_true(shape_eq(&got->shape, &want->shape) && got->dtype == want->dtype);
                    assert_memory_equal(got->data, want->data, tensor_bytes(want));
                }
                for (int i = 0; i < count; i++) {
                    assert_memory_equal(in[i]->data, kept[i]->data, tensor_bytes(in[i]));
                    tensor_unref(kept[i]);
                }
                if (want)
                    tensor_unref(got);
                else
                    want = got;
            }
            direct_session_free(s);
        }
        tensor_unref(want);
    }
    gb_clear(b);
    for (int i = 0; i < count; i++) tensor_unref(in[i]);
}

static inline void placeholders(GraphBuilder *b, DataType type, int count) {
    static const char *const names[MAX_IN] = {"in0", "in1", "in2", "in3"};
    for (int i = 0; i < count; i++) gb_placeholder(b, names[i], type);
}
