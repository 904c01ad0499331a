/* restore_test.c: which steps bring a session to the state a model was saved in; tests/tools/graph_test.py runs real models. */
#include "model/restore.h"

#include <stdlib.h>

#include "base/memory.h"
#include "unit_test.h"

enum { MAX_STEPS = 4 };

/* A session that writes down what it is asked to run. */
typedef struct Recorder {
    char *steps[MAX_STEPS]; /* "target <- feed=value ..." */
    int count, fail_at;     /* the step that fails; -1: none */
} Recorder;

static Error *record(void *session, const RunSignature *signature, Tensor *const *feeds, Tensor **fetches) {
    Recorder *r = session;
    StrBuf text = {0};
    (void)fetches;
    assert_int_equal(signature->target_count, 1);
    assert_int_equal(signature->fetch_count, 0);
    strbuf_addf(&text, "%.*s", STR_ARG(signature->targets[0]));
    for (int i = 0; i < signature->feed_count; i++)
        strbuf_addf(&text, " %.*s=%.*s", STR_ARG(signature->feeds[i]), STR_ARG(tstring_str(tensor_str(feeds[i]))));
    r->steps[r->count] = strbuf_detach(&text);
    return r->count++ == r->fail_at ? error_new(CODE_DATA_LOSS, "broken") : NULL;
}

static void clear(Recorder *r) {
    for (int i = 0; i < r->count; i++) free(r->steps[i]);
    *r = (Recorder){.fail_at = -1};
}

static MetaGraph model(AssetFile *assets) {
    return (MetaGraph){
        .saver = {.present = true, .filename_tensor = STR("save/Const:0"), .restore_op = STR("save/restore_all")},
        .init_op = STR("init"),
        .assets = assets,
        .asset_count = assets ? 3 : 0,
    };
}

static void variables_come_first_then_the_init_op_both_with_assets(void **state) {
    (void)state;
    AssetFile assets[] = {{STR("a:0"), STR("words.txt")}, {STR("b:0"), STR("more.txt")}, {STR("a:0"), STR("words.txt")}};
    MetaGraph m = model(assets);
    Recorder r = {.fail_at = -1};
    expect_ok(meta_graph_restore(&m, &(RestoreFrom){.variables = "m/variables", .assets = "m/assets"}, record, &r));
    assert_int_equal(r.count, 2);
    assert_string_equal(r.steps[0], "save/restore_all a:0=m/assets/words.txt b:0=m/assets/more.txt save/Const:0=m/variables");
    assert_string_equal(r.steps[1], "init a:0=m/assets/words.txt b:0=m/assets/more.txt");
    clear(&r);
}

static void what_is_not_there_is_not_run(void **state) {
    (void)state;
    MetaGraph m = model(NULL);
    Recorder r = {.fail_at = -1};
    expect_ok(meta_graph_restore(&m, &(RestoreFrom){0}, record, &r));
    assert_int_equal(r.count, 1);
    assert_string_equal(r.steps[0], "init");
    clear(&r);
    m.init_op = STR("");
    expect_ok(meta_graph_restore(&m, &(RestoreFrom){0}, record, &r));
    assert_int_equal(r.count, 0);
    m.saver.present = false;
    expect_error(meta_graph_restore(&m, &(RestoreFrom){.variables = "x"}, record, &r), CODE_FAILED_PRECONDITION, "restore x");
}

static void the_first_failure_ends_it_and_is_named(void **state) {
    (void)state;
    MetaGraph m = model(NULL);
    Recorder r = {.fail_at = 0};
    expect_error(meta_graph_restore(&m, &(RestoreFrom){.variables = "v"}, record, &r), CODE_DATA_LOSS, "restoring v: broken");
    assert_int_equal(r.count, 1);
    clear(&r);
    r.fail_at = 1;
    expect_error(meta_graph_restore(&m, &(RestoreFrom){.variables = "v"}, record, &r), CODE_DATA_LOSS, "init op init: broken");
    clear(&r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(variables_come_first_then_the_init_op_both_with_assets),
        cmocka_unit_test(what_is_not_there_is_not_run),
        cmocka_unit_test(the_first_failure_ends_it_and_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
