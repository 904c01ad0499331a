/* debug.c: Assert, Print, PrintV2, CheckNumerics, Timestamp. */
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/float16.h"
#include "base/log.h"
#include "ops/op_list.h"
#include "tensor/print.h"

const OpDef debug_ops[] = {
    {"Assert", "condition: bool, data: T ->", "T: list(type) >= 1; summarize: int = 3", OP_STATEFUL},
    {"Print", "input: T, data: U -> output: T",
     "T: type; U: list(type) >= 0; message: string = ''; first_n: int = -1; summarize: int = 3", OP_STATEFUL},
    {"PrintV2", "input: string ->", "output_stream: string = 'stderr'; end: string = '\n'", OP_STATEFUL},
    {"CheckNumerics", "tensor: T -> output: T", "T: {bfloat16, half, float, double}; message: string", OP_STATEFUL},
    {"CheckNumericsV2", "tensor: T -> output: T", "T: {bfloat16, half, float, double}; message: string", OP_STATEFUL},
    {"Timestamp", "-> ts: double", "", OP_STATEFUL},
    {0},
};

static Error *init_assert(const Node *node, void *state) {
    return node_attr_int(node, "summarize", state);
}

static Error *run_assert(KernelContext *k) {
    const Tensor *condition = k->in[0];
    if (condition->shape.rank != 0) {
        char *text = shape_str(&condition->shape);
        Error *err = error_invalid("In[0] should be a scalar: %s", text);
        free(text);
        return err;
    }
    if (*tensor_bool(condition)) return NULL;
    int64_t summarize = *(int64_t *)k->state;
    StrBuf text = {0};
    for (int i = 1; i < k->input_count; i++) {
        strbuf_add(&text, i > 1 ? STR(" [") : STR("["));
        if (!print_marks(&text, k->in[i], summarize)) print_values(&text, k->in[i], summarize);
        strbuf_addc(&text, ']');
    }
    Error *err = error_invalid("assertion failed: %s", strbuf_str(&text).ptr);
    strbuf_clear(&text);
    return err;
}

/* ---- Print ---- */

typedef struct PrintState {
    Str message;
    int64_t first_n, summarize;
    _Atomic int64_t printed;
} PrintState;

static Error *init_print(const Node *node, void *state) {
    PrintState *s = state;
    Str message;
    Error *err = node_attr_string(node, "message", &message);
    if (!err) err = node_attr_int(node, "first_n", &s->first_n);
    if (!err) err = node_attr_int(node, "summarize", &s->summarize);
    if (!err) s->message = (Str){str_dup(message), message.len};
    return err;
}

static void clear_print(void *state) {
    free((char *)((PrintState *)state)->message.ptr);
}

static Error *run_print(KernelContext *k) {
    PrintState *s = k->state;
    kernel_set_output(k, 0, tensor_ref(k->in[0]));
    if (s->first_n >= 0 && atomic_fetch_add(&s->printed, 1) >= s->first_n) return NULL;
    StrBuf text = {0};
    strbuf_add(&text, s->message);
    for (int i = 1; i < k->input_count; i++) {
        strbuf_addc(&text, '[');
        if (!print_marks(&text, k->in[i], s->summarize)) print_values(&text, k->in[i], s->summarize);
        strbuf_addc(&text, ']');
    }
    strbuf_addc(&text, '\n');
    fwrite(text.ptr, 1, text.len, stderr);
    strbuf_clear(&text);
    return NULL;
}

typedef struct PrintV2State {
    char *stream;
    Str end;
} PrintV2State;

static Error *init_print_v2(const Node *node, void *state) {
    PrintV2State *s = state;
    Str stream, end;
    Error *err = node_attr_string(node, "output_stream", &stream);
    if (!err) err = node_attr_string(node, "end", &end);
    if (err) return err;
    s->stream = str_dup(stream);
    s->end = (Str){str_dup(end), end.len};
    return NULL;
}

static void clear_print_v2(void *state) {
    PrintV2State *s = state;
    free(s->stream);
    free((char *)s->end.ptr);
}

static Error *run_print_v2(KernelContext *k) {
    const PrintV2State *s = k->state;
    Str stream = str_of(s->stream);
    if (k->in[0]->shape.rank != 0) return error_invalid("Input is expected to be scalar");
    StrBuf text = {0};
    Error *err = NULL;
    strbuf_add(&text, tstring_str(tensor_str(k->in[0])));
    if (str_is(stream, "log(info)")) {
        log_info("%s", strbuf_str(&text).ptr);
    } else if (str_is(stream, "log(warning)")) {
        log_warn("%s", strbuf_str(&text).ptr);
    } else if (str_is(stream, "log(error)")) {
        log_error("%s", strbuf_str(&text).ptr);
    } else if (str_starts(stream, STR("file://"))) {
        File *f;
        strbuf_add(&text, s->end);
        err = file_system_local.open(s->stream, FILE_APPEND, &f);
        if (!err) {
            err = file_system_local.write(f, text.ptr, text.len);
            file_system_local.close(f);
        }
    } else if (str_is(stream, "stdout") || str_is(stream, "stderr")) {
        FILE *to = str_is(stream, "stdout") ? stdout : stderr;
        strbuf_add(&text, s->end);
        fwrite(strbuf_str(&text).ptr, 1, text.len, to);
        fflush(to);
    } else {
        err = error_invalid("Unknown output stream: %s", s->stream);
    }
    strbuf_clear(&text);
    return err;
}

/* ---- CheckNumerics ---- */

typedef struct Found {
    bool nan, positive, negative;
} Found;

static void look(Found *f, double v) {
    f->nan = f->nan || isnan(v);
    f->positive = f->positive || (isinf(v) && v > 0);
    f->negative = f->negative || (isinf(v) && v < 0);
}

static Found look_at(const Tensor *t) {
    Found f = {0};
    const uint16_t *small = t->data;
    for (int64_t i = 0; i < t->count; i++) {
        if (t->dtype == DT_FLOAT && !isfinite(tensor_f32(t)[i])) look(&f, tensor_f32(t)[i]);
        if (t->dtype == DT_DOUBLE && !isfinite(tensor_f64(t)[i])) look(&f, tensor_f64(t)[i]);
        if (t->dtype == DT_HALF) look(&f, half_to_float(small[i]));
        if (t->dtype == DT_BFLOAT16) look(&f, bfloat16_to_float(small[i]));
    }
    return f;
}

static Error *init_message(const Node *node, void *state) {
    Str message;
    Error *err = node_attr_string(node, "message", &message);
    if (!err) *(char **)state = str_dup(message);
    return err;
}

static void clear_message(void *state) {
    free(*(char **)state);
}

static Error *check(KernelContext *k, bool signs) {
    Found f = look_at(k->in[0]);
    StrBuf what = {0};
    if (signs && f.negative) strbuf_addf(&what, "-Inf");
    if (signs && f.positive) strbuf_addf(&what, "%s+Inf", what.len ? (f.nan ? ", " : " and ") : "");
    if (!signs && (f.positive || f.negative)) strbuf_addf(&what, "Inf");
    if (f.nan && what.len) strbuf_addf(&what, "%s", signs && f.positive && f.negative ? ", and " : " and ");
    if (f.nan) strbuf_addf(&what, "NaN");
    if (!what.len) {
        kernel_set_output(k, 0, tensor_ref(k->in[0]));
        return NULL;
    }
    Error *err = error_invalid("%s : Tensor had %s values", *(char **)k->state, what.ptr);
    strbuf_clear(&what);
    return err;
}

static Error *run_check(KernelContext *k) {
    return check(k, false);
}
static Error *run_check_v2(KernelContext *k) {
    return check(k, true);
}

static Error *run_timestamp(KernelContext *k) {
    Tensor *out = kernel_output(k, 0, &SHAPE_SCALAR);
    if (out) *tensor_f64(out) = (double)clock_wall_us() / 1e6;
    return NULL;
}

const KernelDef debug_cpu[] = {
    {"Assert", .run = run_assert, .state_size = sizeof(int64_t), .init = init_assert},
    {"Print", .run = run_print, .state_size = sizeof(PrintState), .init = init_print, .clear = clear_print},
    {"PrintV2", .run = run_print_v2, .state_size = sizeof(PrintV2State), .init = init_print_v2,
     .clear = clear_print_v2},
    {"CheckNumerics", .run = run_check, .state_size = sizeof(char *), .init = init_message, .clear = clear_message},
    {"CheckNumericsV2", .run = run_check_v2, .state_size = sizeof(char *), .init = init_message,
     .clear = clear_message},
    {"Timestamp", .run = run_timestamp},
    {0},
};
