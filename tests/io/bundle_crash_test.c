/* bundle_crash_test.c: checkpoints written while the power goes, the process is killed, or the disk is full: what was there stays
 * whole, what is new is whole or not there. */
#include <errno.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/memory.h"
#include "crash_disk.h"
#include "io/bundle.h"
#include "io/slice_file.h"
#include "unit_test.h"

enum { TENSORS = 3 };

/* Tensors whose every element is `value`: whoever reads two values has a torn checkpoint. */
static Tensor *filled(int i, float value) {
    static const int64_t sizes[] = {7, 1000, 300000};
    Shape shape = shape_vector(sizes[i]);
    Tensor *t = NULL;
    expect_ok(tensor_new(DT_FLOAT, &shape, &t));
    for (int64_t k = 0; k < t->count; k++) tensor_f32(t)[k] = value;
    return t;
}

static Error *write_checkpoint(const FileSystem *fs, const char *prefix, float value) {
    BundleWriter *w = NULL;
    Error *err = bundle_writer_open(fs, prefix, &w);
    for (int i = 0; !err && i < TENSORS; i++) {
        Tensor *t = filled(i, value);
        char name[16];
        snprintf(name, sizeof name, "t%d", i);
        err = bundle_writer_add(w, str_of(name), t);
        tensor_unref(t);
    }
    if (!err) err = bundle_writer_finish(w);
    bundle_writer_close(w);
    return err;
}

/* Two parts, as two tasks write them, joined. */
static Error *write_merged(const FileSystem *fs, const char *prefix, const char *folder, float value) {
    char *parts[2] = {xasprintf("%s/part-0", folder), xasprintf("%s/part-1", folder)};
    Error *err = NULL;
    for (int p = 0; !err && p < 2; p++) {
        BundleWriter *w = NULL;
        err = bundle_writer_open(fs, parts[p], &w);
        for (int i = p; !err && i < TENSORS; i += 2) {
            Tensor *t = filled(i, value);
            char name[16];
            snprintf(name, sizeof name, "t%d", i);
            err = bundle_writer_add(w, str_of(name), t);
            tensor_unref(t);
        }
        if (!err) err = bundle_writer_finish(w);
        bundle_writer_close(w);
    }
    if (!err) err = bundle_merge(fs, (const char *const *)parts, 2, prefix, false);
    for (int p = 0; p < 2; p++) free(parts[p]);
    return err;
}

/* The value of the checkpoint, when it is whole. *value is -1 when there is none. */
static Error *read_checkpoint(const FileSystem *fs, const char *prefix, float *value) {
    Bundle *b = NULL;
    *value = -1;
    Error *err = bundle_open(fs, prefix, &b);
    if (err && err->code == CODE_NOT_FOUND) {
        error_free(err);
        return NULL;
    }
    for (int i = 0; !err && i < TENSORS; i++) {
        Tensor *t = NULL;
        char name[16];
        snprintf(name, sizeof name, "t%d", i);
        err = bundle_read(b, str_of(name), &t);
        if (err) break;
        if (i == 0) *value = tensor_f32(t)[0];
        for (int64_t k = 0; !err && k < t->count; k++)
            if (tensor_f32(t)[k] != *value) err = error_internal("%s holds %g and %g", prefix, *value, tensor_f32(t)[k]);
        tensor_unref(t);
    }
    bundle_close(b);
    return err;
}

static Error *write_old_format(const FileSystem *fs, const char *path, float value) {
    SliceFileWriter *w = slice_file_writer_new();
    TensorSlice whole = {.rank = 1, .length = {-1}};
    Error *err = NULL;
    for (int i = 0; !err && i < TENSORS; i++) {
        Tensor *t = filled(i, value);
        char name[16];
        snprintf(name, sizeof name, "t%d", i);
        err = slice_file_writer_add(w, str_of(name), &t->shape, &whole, t);
        tensor_unref(t);
    }
    if (!err) err = slice_file_writer_finish(w, fs, path);
    slice_file_writer_free(w);
    return err;
}

/* How a checkpoint is written. */
typedef enum Kind { ONE_TASK, MERGED, OLD_FORMAT, KIND_COUNT } Kind;

static Error *write_kind(Kind kind, float value) {
    switch (kind) {
        case MERGED: return write_merged(&crash_disk, "/d/ck", "/d/parts", value);
        case OLD_FORMAT: return write_old_format(&crash_disk, "/d/ck", value);
        default: return write_checkpoint(&crash_disk, "/d/ck", value);
    }
}

/* Writes `before` checkpoints of one prefix, then one more that is stopped at an operation. Returns false when the operation was
 * after its end. */
static bool crash_at(int operation, Kind kind, int before, Names names, bool torn) {
    disk_clear();
    for (int i = 1; i <= before; i++) expect_ok(write_kind(kind, (float)i));
    int start = disk.operations;
    disk.fail_at = start + operation;
    disk.torn = torn;
    Error *err = write_kind(kind, (float)(before + 1));
    bool reached = disk.operations > disk.fail_at, failed = err != NULL;
    error_free(err);
    disk_crash(names);
    float value;
    expect_ok(read_checkpoint(&crash_disk, "/d/ck", &value));
    float old = before ? (float)before : -1;
    if (value != old && value != (float)(before + 1)) fail_msg("operation %d: the checkpoint holds %g", operation, value);
    if (!failed && value != (float)(before + 1)) fail_msg("operation %d: a finished checkpoint is gone", operation);
    /* And the next one is written as if nothing had been. */
    expect_ok(write_kind(kind, 99));
    expect_ok(read_checkpoint(&crash_disk, "/d/ck", &value));
    assert_true(value == 99);
    return reached;
}

static void the_power_may_go_at_any_operation(void **state) {
    (void)state;
    int points = 0;
    for (Kind kind = 0; kind < KIND_COUNT; kind++)
        for (int before = 0; before < 3; before++)
            for (Names names = 0; names < NAMES_COUNT; names++)
                for (int operation = 0; crash_at(operation, kind, before, names, operation % 2); operation++) points++;
    print_message("%d points\n", points);
    assert_true(points > 100);
    disk_clear();
}

/* One operation fails, the process goes on: the error is told, the old checkpoint stays, nothing is left lying about. */
static void a_failing_operation_is_told_and_leaves_nothing(void **state) {
    (void)state;
    for (int before = 0; before < 3; before++) {
        for (int operation = 0;; operation++) {
            disk_clear();
            for (int i = 1; i <= before; i++) expect_ok(write_checkpoint(&crash_disk, "/d/ck", (float)i));
            int files = disk_count();
            disk.fail_at = disk.operations + operation;
            disk.fail_once = disk.torn = true;
            Error *err = write_checkpoint(&crash_disk, "/d/ck", (float)(before + 1));
            bool reached = disk.operations > disk.fail_at;
            float value;
            expect_ok(read_checkpoint(&crash_disk, "/d/ck", &value));
            if (!err) assert_true(value == (float)(before + 1));
            bool is_old = value == (before ? (float)before : -1.0f);
            if (err && is_old) {
                assert_string_equal(error_code_name(err->code), "RESOURCE_EXHAUSTED");
                assert_int_equal(disk_count(), files);
            }
            error_free(err);
            if (!reached) break;
        }
    }
    disk_clear();
}

static void a_torn_checkpoint_is_told_by_name(void **state) {
    (void)state;
    disk_clear();
    expect_ok(write_checkpoint(&crash_disk, "/d/ck", 1));
    DiskFile *f = disk_find("/d/ck.data-00000-of-00001");
    f->now.ptr[f->now.len - 5] ^= 1;
    float value;
    expect_error(read_checkpoint(&crash_disk, "/d/ck", &value), CODE_DATA_LOSS, "Tensor t2: /d/ck.data-00000-of-00001: checksum");
    f->now.len -= 100;
    expect_error(read_checkpoint(&crash_disk, "/d/ck", &value), CODE_DATA_LOSS, "Tensor t2: /d/ck.data-00000-of-00001: the file is shorter");
    expect_ok(crash_disk.remove("/d/ck.data-00000-of-00001"));
    expect_error(read_checkpoint(&crash_disk, "/d/ck", &value), CODE_NOT_FOUND, "Tensor t0: /d/ck.data-00000-of-00001");
    disk_clear();
}

/* ---- On a real disk ---- */

static char dir[64];

static int make_folder(void **state) {
    (void)state;
    snprintf(dir, sizeof dir, "/tmp/rill_bundle_crash.XXXXXX");
    return !mkdtemp(dir);
}

static int remove_folder(void **state) {
    (void)state;
    char *parts = xasprintf("%s/parts", dir), *folders[] = {parts, dir};
    for (int i = 0; i < 2; i++) {
        PathList names = {0};
        error_free(file_system_local.list(folders[i], &names));
        for (size_t k = 0; k < names.count; k++) {
            char *path = xasprintf("%s/%s", folders[i], names.items[k]);
            error_free(file_system_local.remove(path));
            free(path);
        }
        path_list_clear(&names);
        error_free(file_system_local.remove_dir(folders[i]));
    }
    free(parts);
    return 0;
}

/* Writes checkpoint after checkpoint under one prefix until it is killed; tells the number of each that is finished. */
static void write_until_killed(int pipe_fd, float first, bool merged) {
    char *prefix = xasprintf("%s/ck", dir), *parts = xasprintf("%s/parts", dir);
    for (float value = first;; value++) {
        Error *err = merged ? write_merged(&file_system_local, prefix, parts, value)
                            : write_checkpoint(&file_system_local, prefix, value);
        if (err || write(pipe_fd, &value, sizeof value) != sizeof value) _exit(1);
    }
}

/* The child is killed after a random time; the checkpoint is at least the last one it finished. */
static float kill_a_writer(float first, bool merged, uint32_t delay_us) {
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (!child) {
        close(ends[0]);
        write_until_killed(ends[1], first, merged);
    }
    close(ends[1]);
    float finished = first - 1, value;
    /* Not before it has begun: the first checkpoint is whole. Then at any moment. */
    if (read(ends[0], &finished, sizeof finished) != sizeof finished) fail_msg("the writer ended by itself");
    struct timespec delay = {0, (long)delay_us * 1000};
    nanosleep(&delay, NULL);
    kill(child, SIGKILL);
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status));
    while (read(ends[0], &value, sizeof value) == sizeof value) finished = value;
    close(ends[0]);
    char *prefix = xasprintf("%s/ck", dir);
    expect_ok(read_checkpoint(&file_system_local, prefix, &value));
    free(prefix);
    if (value != finished && value != finished + 1) fail_msg("%g was finished, %g is there", finished, value);
    return value;
}

static void a_writer_may_be_killed_at_any_moment(void **state) {
    (void)state;
    float next = 1;
    uint32_t random = 12345;
    for (int i = 0; i < 60; i++) {
        random = random * 1664525u + 1013904223u;
        next = kill_a_writer(next, i % 3 == 2, random % 6000) + 1;
    }
}

static void a_file_that_may_not_grow_leaves_the_old_checkpoint(void **state) {
    (void)state;
    char *prefix = xasprintf("%s/ck", dir);
    expect_ok(write_checkpoint(&file_system_local, prefix, 1));
    pid_t child = fork();
    assert_true(child >= 0);
    if (!child) {
        struct rlimit limit = {500000, 500000};
        signal(SIGXFSZ, SIG_IGN);
        setrlimit(RLIMIT_FSIZE, &limit);
        Error *err = write_checkpoint(&file_system_local, prefix, 2);
        _exit(err && err->code == CODE_RESOURCE_EXHAUSTED && strstr(err->message, prefix) ? 0 : 1);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    float value;
    expect_ok(read_checkpoint(&file_system_local, prefix, &value));
    assert_true(value == 1);
    PathList names = {0};
    expect_ok(file_system_local.list(dir, &names));
    assert_int_equal(names.count, 2);
    path_list_clear(&names);
    free(prefix);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_power_may_go_at_any_operation),
        cmocka_unit_test(a_failing_operation_is_told_and_leaves_nothing),
        cmocka_unit_test(a_torn_checkpoint_is_told_by_name),
        cmocka_unit_test_setup_teardown(a_writer_may_be_killed_at_any_moment, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(a_file_that_may_not_grow_leaves_the_old_checkpoint, make_folder, remove_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
