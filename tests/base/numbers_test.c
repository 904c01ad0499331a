/* numbers_test.c: half and bfloat16, Philox against values TensorFlow 2.21 gave, flags. */
#include <math.h>

#include "base/flags.h"
#include "base/float16.h"
#include "base/float_mode.h"
#include "base/rng.h"
#include "unit_test.h"

static void every_half_survives_the_way_through_float(void **state) {
    (void)state;
    for (unsigned h = 0; h < 0x10000; h++) {
        float f = half_to_float((uint16_t)h);
        bool nan = (h & 0x7c00) == 0x7c00 && (h & 0x3ff);
        assert_int_equal(isnan(f) != 0, nan);
        if (!nan) assert_int_equal(float_to_half(f), h);
        float b = bfloat16_to_float((uint16_t)h);
        if (!isnan(b)) assert_int_equal(float_to_bfloat16(b), h);
    }
}

#if defined(__x86_64__) || defined(__aarch64__)
static void a_thread_takes_small_numbers_for_zero_until_told_otherwise(void **state) {
    (void)state;
    volatile float small = 1e-38f, tenth = 0.1f;
    assert_true(small * tenth > 0);
    FloatMode outer = float_mode_flush(), inner = float_mode_flush();
    float product = small * tenth;
    float_mode_restore(inner);
    float still = small * tenth;
    float_mode_restore(outer);
    assert_int_equal(float_bits(product), 0);
    assert_int_equal(float_bits(still), 0);
    assert_true(small * tenth > 0);
}
#endif

static void halves_round_to_nearest_even(void **state) {
    (void)state;
    const struct {
        float f;
        unsigned half, bfloat;
    } rows[] = {
        {1.0f, 0x3c00, 0x3f80},        {-2.0f, 0xc000, 0xc000},      {65504.0f, 0x7bff, 0x4780},  {65519.0f, 0x7bff, 0x4780},
        {65520.0f, 0x7c00, 0x4780},    {INFINITY, 0x7c00, 0x7f80},   {5.9604645e-8f, 0x0001, 0x3380}, {2.9802322e-8f, 0x0000, 0x3300},
        {1.00048828125f, 0x3c00, 0x3f80}, {1.00146484375f, 0x3c02, 0x3f80}, {1.00390625f, 0x3c04, 0x3f80}, {1.01171875f, 0x3c0c, 0x3f82},
        {3.3895314e38f, 0x7c00, 0x7f7f}, {3.4028235e38f, 0x7c00, 0x7f80}, {-0.0f, 0x8000, 0x8000},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        assert_int_equal(float_to_half(rows[i].f), rows[i].half);
        assert_int_equal(float_to_bfloat16(rows[i].f), rows[i].bfloat);
    }
    assert_true(isnan(half_to_float(float_to_half(NAN))) && isnan(bfloat16_to_float(float_to_bfloat16(NAN))));
}

/* StatelessRandomUniformFullIntV2 of uint32 with alg=1: the bits as they come. */
static void philox_gives_the_numbers_of_tensorflow(void **state) {
    (void)state;
    const struct {
        uint64_t key, low, high;
        uint32_t out[8];
    } rows[] = {
        {0, 0, 0, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8, 0xf8e4cca4, 0x5cb200db, 0xb1a574eb, 0x97eff67}},
        {0x123456789abcdef0, 5, 7, {0x4d8c736e, 0xb837cc79, 0xb89604b6, 0xa4354453, 0x7e73cfd3, 0x82d0a7b4, 0xe5f79839, 0x184f136a}},
        {1, UINT64_MAX, 7, {0xaf3a01cf, 0xb828414e, 0x858e6381, 0xef3803d9, 0xa226a945, 0x80c1a618, 0x3d059fdd, 0x417bdf60}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        Philox p = philox_from_state(rows[i].key, rows[i].low, rows[i].high);
        uint32_t out[4];
        for (int group = 0; group < 2; group++) {
            philox_next(&p, out);
            assert_memory_equal(out, rows[i].out + 4 * group, sizeof out);
        }
        Philox skipped = philox_from_state(rows[i].key, rows[i].low, rows[i].high);
        philox_skip(&skipped, 1);
        philox_next(&skipped, out);
        assert_memory_equal(out, rows[i].out + 4, sizeof out);
        PhiloxStream s = philox_stream(philox_from_state(rows[i].key, rows[i].low, rows[i].high));
        for (int j = 0; j < 8; j++) assert_int_equal(philox_stream_next(&s), rows[i].out[j]);
    }
}

/* StatelessRandomGetKeyCounter of the seed [42, 7]; RandomUniform with seed=87, seed2=12. */
static void seeds_and_uniform_numbers_are_those_of_tensorflow(void **state) {
    (void)state;
    Philox p = philox_from_stateless(42, 7);
    assert_true(philox_key(&p) == 0xd310cceaa28359b3 && philox_counter(&p, 0) == 0 && philox_counter(&p, 1) == 0x2f50ca6d492add56);
    const float floats[] = {0x1.340c000000000p-6f, 0x1.c8d3a40000000p-1f, 0x1.3db2200000000p-4f, 0x1.ac66c80000000p-2f};
    p = philox_from_seeds(87, 12);
    uint32_t out[4];
    philox_next(&p, out);
    for (int i = 0; i < 4; i++) assert_true(uniform_float(out[i]) == floats[i]);
    const double doubles[] = {0x1.340c6f391a748p-3, 0x1.3db22fd6b19b2p-1, 0x1.7ad15c94ec054p-2};
    p = philox_from_seeds(87, 12);
    philox_next(&p, out);
    assert_true(uniform_double(out[0], out[1]) == doubles[0] && uniform_double(out[2], out[3]) == doubles[1]);
    philox_next(&p, out);
    assert_true(uniform_double(out[0], out[1]) == doubles[2]);
    assert_true(rng_entropy() != rng_entropy());
}

/* ---- Flags ---- */

static const char *text;
static int64_t number;
static bool yes;
static const Flag flags[] = {
    {"job-name", FLAG_STRING, &text, "NAME", "the job"}, {"task", FLAG_INT, &number, "N", "the task"}, {"verbose", FLAG_BOOL, &yes, NULL, "say more"}, {0},
};

static Error *parse(const char *line, int *next) {
    static char copy[200];
    static char *argv[20];
    int argc = 0;
    snprintf(copy, sizeof copy, "%s", line);
    for (char *word = strtok(copy, " "); word; word = strtok(NULL, " ")) argv[argc++] = word;
    text = NULL;
    number = 0;
    yes = false;
    return flags_parse(flags, argc, argv, 1, next);
}

static void flags_are_read_in_every_form(void **state) {
    (void)state;
    int next = 0;
    const char *const lines[] = {"rill --job_name ps --task 3 --verbose rest", "rill -job-name=ps -task=3 --verbose=true rest", "rill --verbose --task 3 --job-name ps -- --rest"};
    const int nexts[] = {6, 4, 7};
    for (int i = 0; i < 3; i++) {
        expect_ok(parse(lines[i], &next));
        assert_string_equal(text, "ps");
        assert_int_equal(number, 3);
        assert_true(yes);
        assert_int_equal(next, nexts[i]);
    }
    expect_ok(parse("rill --verbose=false --job_name= -", &next));
    assert_false(yes);
    assert_string_equal(text, "");
    assert_int_equal(next, 3);
    flags_print(flags);
}

static void a_wrong_flag_is_named(void **state) {
    (void)state;
    int next = 0;
    expect_error(parse("rill --jobname ps", &next), CODE_INVALID_ARGUMENT, "unknown flag --jobname");
    expect_error(parse("rill --task three", &next), CODE_INVALID_ARGUMENT, "--task needs a whole number, not 'three'");
    expect_error(parse("rill --task", &next), CODE_INVALID_ARGUMENT, "--task needs a value");
    expect_error(parse("rill --verbose=maybe", &next), CODE_INVALID_ARGUMENT, "--verbose is true or false");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_half_survives_the_way_through_float), cmocka_unit_test(halves_round_to_nearest_even),
        cmocka_unit_test(philox_gives_the_numbers_of_tensorflow), cmocka_unit_test(seeds_and_uniform_numbers_are_those_of_tensorflow),
#if defined(__x86_64__) || defined(__aarch64__)
        cmocka_unit_test(a_thread_takes_small_numbers_for_zero_until_told_otherwise),
#endif
        cmocka_unit_test(flags_are_read_in_every_form), cmocka_unit_test(a_wrong_flag_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
