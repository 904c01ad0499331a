/* advisory_test.c: the argument patterns of TensorFlow's security advisories; each must give a status, and where TensorFlow gives an error, an error of its code.

   The calls are in advisories.bin, recorded by scripts/record_advisories.py from the table scripts/advisory_rows.py. usage: advisory_test [PART-OF-A-NAME]. */
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "malformed_call.h"
#include "ops/op_list.h"
#include "unit_test.h"

#if defined(__SANITIZE_ADDRESS__)
/* A large allocation fails instead of taking the machine's memory. */
__attribute__((visibility("default"))) const char *__asan_default_options(void);
const char *__asan_default_options(void) {
    return "allocator_may_return_null=1:max_allocation_size_mb=1024:handle_abort=1:detect_leaks=1";
}
#endif

enum { WAIT_MS = 200 };

/* Where Rill answers otherwise, and why that is right. */
static const struct {
    const char *name, *code, *why;
} others[] = {
    {"AvgPoolGrad: orig_input_shape of zeros", "INVALID_ARGUMENT", "the window does not fit the image"},
    {"AvgPoolGrad: huge orig_input_shape", "INVALID_ARGUMENT", "the gradient's shape is checked before memory is asked for"},
    {"Dilation2D: zero rates", "INVALID_ARGUMENT", "a rate of 0 has no meaning"},
    {"ExtractVolumePatches: huge ksizes", "INVALID_ARGUMENT", "TensorFlow's depth overflows to a small one"},
    {"ParallelConcat: shape that overflows", "OK", "the attribute is a hint, the shapes of the inputs decide"},
    {"ImmutableConst: shape", "PERMISSION_DENIED", "a task maps no files into memory for a client"},
    {"SparseReduceSum: indices out of range", "INVALID_ARGUMENT", "indices are checked one by one"},
    {"SparseConcat: shapes that overflow", "INVALID_ARGUMENT", "the caller's fault, not ours"},
    {"OrderedMapStage: indices out of range", "INVALID_ARGUMENT", "the index of a value that no one can take"},
    {"RestoreV2: shape_and_slices garbage", "NOT_FOUND", "the file is looked for first"},
    {"BatchNormWithGlobalNormalizationGrad: mean too short", "INVALID_ARGUMENT", "TensorFlow refuses the op in graphs of this version; Rill runs it in any"},
    {"BatchNormWithGlobalNormalization: empty", "OK", "TensorFlow refuses the op in graphs of this version; Rill runs it in any"},
    {"ReadVariableOp: wrong handle", "INVALID_ARGUMENT", "the handle is of a table, not of a variable that is gone"},
};

static Str recorded;
static const char *wanted;

static int load(void **state) {
    (void)state;
    int fd = open("tests/ops/advisories.bin", O_RDONLY);
    struct stat st;
    if (fd < 0 || fstat(fd, &st) != 0) return -1;
    recorded = (Str){mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0), (size_t)st.st_size};
    close(fd);
    ops_register_all();
    return 0;
}

static Error *run_call(Str graph_def) {
    DirectSession *s = NULL;
    Error *err = direct_session_new(graph_def, 1, &s);
    if (err) return err;
    Str targets[] = {STR("x")};
    RunSignature sig = {.targets = targets, .target_count = 1};
    err = direct_session_run(s, &sig, NULL, NULL, WAIT_MS);
    direct_session_free(s);
    return err;
}

/* TensorFlow's answer is "DIED" where even its newest version ends, or it takes too long: then any status will do. */
static bool agrees(Str name, Str expected, const Error *err) {
    const char *got = err ? error_code_name(err->code) : "OK";
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        if (str_is(name, others[i].name)) return strcmp(others[i].code, got) == 0;
    return str_is(expected, "DIED") || str_is(expected, "DEADLINE_EXCEEDED") || str_is(expected, got);
}

static void every_published_pattern_gives_a_status(void **state) {
    (void)state;
    int count = 0, absent = 0, different = 0;
    WireReader r = wire_reader(recorded);
    while (wire_next(&r)) {
        Graph *g = graph_new();
        Error *err = graph_import(g, r.bytes);
        Node *x = graph_find(g, STR("x"));
        Str name = {"", 0}, expected = {"", 0};
        if (x) error_free(node_attr_string(x, "_name", &name));
        if (x) error_free(node_attr_string(x, "_expect", &expected));
        bool skip = x && ((wanted && !memmem(name.ptr, name.len, wanted, strlen(wanted))) || !kernel_exists(x->op));
        absent += x && !kernel_exists(x->op);
        if (!skip && !err) err = run_call(r.bytes);
        count += !skip;
        if (!skip && !agrees(name, expected, err)) {
            print_message("%.*s: expected %.*s, got %s: %s\n", STR_ARG(name), STR_ARG(expected), err ? error_code_name(err->code) : "OK", err ? err->message : "");
            different++;
        }
        error_free(err);
        graph_free(g);
    }
    print_message("advisories: %d patterns, %d of ops Rill lacks\n", count, absent);
    assert_int_equal(different, 0);
    assert_true(count > (wanted ? 0 : 300));
}

int main(int argc, char **argv) {
    wanted = argc > 1 ? argv[1] : NULL;
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_published_pattern_gives_a_status)};
    return cmocka_run_group_tests(tests, load, NULL);
}
