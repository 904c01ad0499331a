/* map_defun.c: MapDefun: a function called for every row of its arguments, its results stacked. */
#include <pthread.h>
#include <stdlib.h>

#include "base/memory.h"
#include "base/thread.h"
#include "ops/dataset/dataset.h"
#include "ops/elements.h"
#include "ops/op_list.h"
#include "ops/tensor_list.h"

const OpDef map_defun_ops[] = {
    {"MapDefun", "arguments: Targuments, captured_inputs: Tcaptured -> output: output_types",
     "Targuments: list(type) >= 1; Tcaptured: list(type) >= 0 = []; output_types: list(type) >= 1; output_shapes: "
     "list(shape) >= 1; f: func; max_intra_op_parallelism: int = 1",
     0},
    {0},
};

enum { CALLS_AT_ONCE = 64 };

typedef struct MapDefun {
    Closure *f;
    PartialShape *shapes; /* of one row of each output */
    int arg_count;
    int64_t row_count;
} MapDefun;

typedef struct RowCall {
    Latch *latch;
    Error *err;
    Tensor **rets;
    int ret_count;
} RowCall;

static void row_done(void *arg, Error *err, Tensor **rets, int ret_count) {
    RowCall *call = arg;
    call->err = err;
    call->rets = rets;
    call->ret_count = ret_count;
    latch_done(call->latch);
}

static Error *start_row(KernelContext *k, const MapDefun *m, int64_t row, RowCall *call) {
    Tensor **args = tuple_new(m->arg_count);
    Error *err = NULL;
    for (int i = 0; !err && i < m->arg_count; i++) err = tensor_row(k->in[i], row, &args[i]);
    if (!err) closure_start(m->f, NULL, kernel_cancel(k), args, m->arg_count, row_done, call);
    tuple_free(args, m->arg_count);
    return err;
}

/* Up to CALLS_AT_ONCE rows from `first` on; their results go to outputs[output][row]. */
static Error *run_rows(KernelContext *k, const MapDefun *m, int64_t first, int count, Tensor ***outputs) {
    RowCall calls[CALLS_AT_ONCE] = {0};
    Latch latch;
    latch_init(&latch, count);
    Error *err = NULL;
    for (int i = 0; i < count; i++) {
        calls[i].latch = &latch;
        Error *failed = err ? NULL : start_row(k, m, first + i, &calls[i]);
        if (failed || err) latch_done(&latch);
        if (failed) err = failed;
    }
    latch_wait(&latch);
    latch_clear(&latch);
    for (int i = 0; i < count; i++) {
        if (!err && !calls[i].err && calls[i].rets && calls[i].ret_count != k->output_count)
            err = error_invalid("Mismatch in number of function outputs.");
        for (int o = 0; !err && !calls[i].err && o < k->output_count; o++) {
            outputs[o][first + i] = calls[i].rets[o];
            calls[i].rets[o] = NULL;
        }
        if (calls[i].err && !err)
            err = calls[i].err;
        else
            error_free(calls[i].err);
        tuple_free(calls[i].rets, calls[i].ret_count);
    }
    return err;
}

static Error *stack_output(KernelContext *k, const MapDefun *m, int o, Tensor *const *rows) {
    PartialShape shape = m->shapes[o];
    Tensor *out = NULL;
    if (!m->row_count && !partial_shape_is_full(&shape))
        return error_internal("Output %d of MapDefun has no rows that could tell its shape", o);
    for (int64_t i = 0; i < m->row_count; i++) {
        if (rows[i]->dtype != kernel_output_type(k, o))
            return error_invalid("Mismatch in function return type and expected output type for output: %d", o);
        if (!partial_shape_matches(&shape, &rows[i]->shape))
            return error_invalid("Mismatch in function retval shape, %s, and expected output shape, %s.",
                                 shape_text(&rows[i]->shape).text, shape_text(&shape).text);
        shape = rows[i]->shape;
    }
    Error *err = tensors_stack(rows, m->row_count, kernel_output_type(k, o), &shape, &out);
    if (!err) kernel_set_output(k, o, out);
    return err;
}

static void map_defun_free(MapDefun *m) {
    closure_unref(m->f);
    free(m->shapes);
    free(m);
}

/* The arrays of results grow with the calls: rows may be many, and of no bytes. */
static void call_rows(KernelContext *k, void *arg) {
    MapDefun *m = arg;
    Tensor ***outputs = xcalloc((size_t)k->output_count, sizeof *outputs);
    size_t *capacity = xcalloc((size_t)k->output_count, sizeof *capacity);
    Error *err = NULL;
    int64_t row = 0;
    while (!err && row < m->row_count) {
        int count = m->row_count - row < CALLS_AT_ONCE ? (int)(m->row_count - row) : CALLS_AT_ONCE;
        for (int o = 0; o < k->output_count; o++) {
            outputs[o] = vec_reserve(outputs[o], &capacity[o], (size_t)row + (size_t)count, sizeof **outputs);
            for (int i = 0; i < count; i++) outputs[o][row + i] = NULL;
        }
        err = run_rows(k, m, row, count, outputs);
        row += count;
    }
    for (int o = 0; !err && o < k->output_count; o++) err = stack_output(k, m, o, outputs[o]);
    for (int o = 0; o < k->output_count; o++) {
        for (int64_t i = 0; i < row; i++) tensor_unref(outputs[o][i]);
        free(outputs[o]);
    }
    free(outputs);
    free(capacity);
    map_defun_free(m);
    if (!err) {
        err = k->error;
        k->error = NULL;
    }
    kernel_done(k, err);
}

static Error *check_rows(KernelContext *k, MapDefun *m) {
    m->row_count = k->in[0]->shape.rank ? k->in[0]->shape.dims[0] : -1;
    for (int i = 0; i < m->arg_count; i++) {
        if (k->in[i]->shape.rank == 0)
            return error_invalid("All inputs must have rank at least 1. Input %d has a rank of 0.", i);
        if (k->in[i]->shape.dims[0] != m->row_count)
            return error_invalid(
                "All inputs must have the same dimension 0. Input %d has leading dimension %lld, while all previous "
                "inputs have leading dimension %lld",
                i, (long long)k->in[i]->shape.dims[0], (long long)m->row_count);
    }
    return NULL;
}

static Error *run(KernelContext *k) {
    MapDefun *m = xcalloc(1, sizeof *m);
    DataType *types = NULL;
    int shape_count = 0;
    Error *err = node_attr_types(k->node, "Targuments", &types, &m->arg_count);
    free(types);
    if (!err && (m->arg_count < 1 || m->arg_count > k->input_count))
        err = error_invalid("Must have at least one input.");
    if (!err) err = kernel_closure(k, "f", "Tcaptured", m->arg_count, &m->f, NULL);
    if (!err) err = node_attr_shapes(k->node, "output_shapes", &m->shapes, &shape_count);
    if (!err && shape_count != k->output_count)
        err = error_invalid("Length of output_shapes and output_types must match.");
    if (!err) err = check_rows(k, m);
    if (err)
        map_defun_free(m);
    else
        kernel_block(k, call_rows, m);
    return err;
}

const KernelDef map_defun_cpu[] = {
    {"MapDefun", .run = run, .flags = KERNEL_DEFERS},
    {0},
};
