/* train_test.h: what the tests of the training library share. */
#pragma once
#include <math.h>
#include <stdlib.h>
#include <unistd.h>

#include "rill/train.h"
#include "unit_test.h"

static inline void expect_graph_at(const RillGraph *g, const char *file, int line) {
    if (!rill_graph_failed(g)) return;
    print_message("%s:%d: %s\n", file, line, rill_graph_message(g));
    _fail(file, line);
}
#define expect_graph(g) expect_graph_at(g, __FILE__, __LINE__)

static inline void expect_mistake_at(const RillGraph *g, TF_Code code, const char *text, const char *file, int line) {
    if (rill_graph_code(g) == code && strstr(rill_graph_message(g), text)) return;
    print_message("%s:%d: expected code %d with \"%s\", got %d: %s\n", file, line, code, text, rill_graph_code(g), rill_graph_message(g));
    _fail(file, line);
}
#define expect_mistake(g, code, text) expect_mistake_at(g, code, text, __FILE__, __LINE__)

static inline void expect_status_at(TF_Status *s, const char *file, int line) {
    if (TF_GetCode(s) == TF_OK) return;
    print_message("%s:%d: %d: %s\n", file, line, TF_GetCode(s), TF_Message(s));
    _fail(file, line);
}
#define expect_status(s) expect_status_at(s, __FILE__, __LINE__)

/* A session in this process. */
static inline RillSession *open_local(RillGraph *g) {
    TF_Status *status = TF_NewStatus();
    expect_graph(g);
    RillSession *s = rill_session_open(g, NULL, NULL, status);
    expect_status(status);
    TF_DeleteStatus(status);
    return s;
}

static inline void run_op(RillSession *s, TF_Operation *op) {
    TF_Status *status = TF_NewStatus();
    rill_session_run_op(s, op, status);
    expect_status(status);
    TF_DeleteStatus(status);
}

static inline double number_of(RillSession *s, RillTensor t) {
    TF_Status *status = TF_NewStatus();
    double n = rill_session_number(s, t, status);
    expect_status(status);
    TF_DeleteStatus(status);
    return n;
}

/* A folder of this test, made anew; malloced. */
static inline char *temporary_folder(void) {
    char *path = strdup("/tmp/rill-train-XXXXXX");
    assert_non_null(mkdtemp(path));
    return path;
}
