/* debug_dump_test.c: where the files of a debugger lie, and that no file is written twice. */
#include "io/debug_dump.h"

#include <stdlib.h>
#include <string.h>

#include "unit_test.h"

static int count_in(const char *dir) {
    PathList names = {0};
    expect_ok(file_system_local.list(dir, &names));
    int count = (int)names.count;
    path_list_clear(&names);
    return count;
}

static void every_value_has_a_file_of_its_own(void **state) {
    (void)state;
    char root[] = "/tmp/rill-debug-XXXXXX";
    assert_non_null(mkdtemp(root));
    DebugKey key = {.device = STR("/job:a/task:0/device:CPU:0"), .node = STR("scope/x"), .op = STR("DebugIdentity"), .slot = 1};
    for (int i = 0; i < 3; i++) expect_ok(debug_dump_tensor(&file_system_local, str_of(root), &key, STR("")));
    expect_ok(debug_dump_graph(&file_system_local, str_of(root), key.device, STR("graph")));
    expect_ok(debug_dump_run(&file_system_local, str_of(root), 7, STR("{}")));
    StrBuf dir = {0};
    strbuf_addf(&dir, "%s/_tfdbg_device_,job_a,task_0,device_CPU_0/scope", root);
    assert_int_equal(count_in(dir.ptr), 3);
    assert_int_equal(count_in(root), 2); /* the device, and what was run */
    strbuf_clear(&dir);
    char command[128];
    snprintf(command, sizeof command, "rm -r %s", root);
    assert_int_equal(system(command), 0);
}

static void schemes_are_told_apart(void **state) {
    (void)state;
    Str rest;
    assert_true(debug_url_is(STR("FILE:///a"), "file://", &rest));
    assert_true(str_is(rest, "/a"));
    assert_false(debug_url_is(STR("grpc://a"), "file://", &rest));
    assert_false(debug_url_is(STR("file"), "file://", &rest));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_value_has_a_file_of_its_own),
        cmocka_unit_test(schemes_are_told_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
