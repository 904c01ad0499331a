/* debug_events.c: DebugIdentityV2, DebugNumericSummaryV2: values on their way, as tfdbg v2 asks for them. */
#include <math.h>
#include <stdlib.h>

#include "ops/elements.h"
#include "ops/op_list.h"
#include "ops/sampling.h"

const OpDef debug_events_ops[] = {
    {"DebugIdentityV2", "input: T -> output: T",
     "T: type; tfdbg_context_id: string = ''; op_name: string = ''; output_slot: int = -1; tensor_debug_mode: int = -1; "
     "debug_urls: list(string) = []; circular_buffer_size: int = 1000; tfdbg_run_id: string = ''",
     OP_STATEFUL},
    {"DebugNumericSummaryV2", "input: T -> output: output_dtype",
     "output_dtype: {float, double} = float; T: type; tensor_debug_mode: int = -1; tensor_id: int = -1", 0},
    {0},
};

/* ---- DebugIdentityV2 ---- */

static Error *check_urls(const Node *node, void *state) {
    (void)state;
    Str *urls = NULL;
    int count = 0;
    Error *err = node_attr_strings(node, "debug_urls", &urls, &count);
    for (int i = 0; !err && i < count; i++)
        if (!str_starts(urls[i], STR("file://"))) err = error_internal("Unsupported debug URL schema in: %.*s", STR_ARG(urls[i]));
    free(urls);
    return err;
}

/* TensorFlow keeps what passed in a buffer that the program of the same process writes out: a server's stays with it. */
static Error *run_identity(KernelContext *k) {
    kernel_set_output(k, 0, tensor_ref(k->in[0]));
    return NULL;
}

/* ---- DebugNumericSummaryV2 ---- */

enum { CURT_HEALTH = 2, CONCISE_HEALTH = 3, FULL_HEALTH = 4, SHAPE_SUMMARY = 5, INF_NAN_SLOTS = 8, SHAPE_SLOTS = 6 };

typedef struct SummaryState {
    int64_t mode, id;
} SummaryState;

static Error *init_summary(const Node *node, void *state) {
    SummaryState *s = state;
    Error *err = node_attr_int(node, "tensor_debug_mode", &s->mode);
    return err ? err : node_attr_int(node, "tensor_id", &s->id);
}

typedef struct Health {
    double negative_inf, positive_inf, nan, negative, zero, positive;
} Health;

static Health health_of(const Tensor *t) {
    Health h = {0};
    for (int64_t i = 0; i < t->count; i++) {
        double x = t->dtype == DT_BOOL ? tensor_bool(t)[i] : sampling_number(t, i);
        double *kind = isnan(x) ? &h.nan : isinf(x) ? (x < 0 ? &h.negative_inf : &h.positive_inf) : x < 0 ? &h.negative : x == 0 ? &h.zero : &h.positive;
        ++*kind;
    }
    return h;
}

/* The numbers of a mode, in their order; how many. */
static int describe(const SummaryState *s, const Tensor *t, double out[11]) {
    Health h = s->mode == SHAPE_SUMMARY ? (Health){0} : health_of(t);
    double id = (double)s->id, count = (double)t->count, type = (double)t->dtype, rank = t->shape.rank;
    switch (s->mode) {
        case CURT_HEALTH: out[0] = id, out[1] = h.negative_inf + h.positive_inf + h.nan > 0; return 2;
        case CONCISE_HEALTH: out[0] = id, out[1] = count, out[2] = h.negative_inf, out[3] = h.positive_inf, out[4] = h.nan; return 5;
        case FULL_HEALTH: {
            const double all[11] = {id, -1, type, rank, count, h.negative_inf, h.positive_inf, h.nan, h.negative, h.zero, h.positive};
            for (int i = 0; i < 11; i++) out[i] = all[i];
            return 11;
        }
        case SHAPE_SUMMARY: {
            int first = t->shape.rank > SHAPE_SLOTS ? t->shape.rank - SHAPE_SLOTS : 0;
            out[0] = id, out[1] = type, out[2] = rank, out[3] = count;
            for (int i = 0; i < SHAPE_SLOTS; i++) out[4 + i] = first + i < t->shape.rank ? (double)t->shape.dims[first + i] : 0;
            return 4 + SHAPE_SLOTS;
        }
        case INF_NAN_SLOTS: out[0] = h.negative_inf ? -INFINITY : 0, out[1] = h.positive_inf ? INFINITY : 0, out[2] = h.nan ? NAN : 0; return 3;
        default: return 0;
    }
}

static Error *run_summary(KernelContext *k) {
    const SummaryState *s = k->state;
    const bool wide = kernel_output_type(k, 0) == DT_DOUBLE;
    const int digits = wide ? 53 : 24;
    if (s->mode != INF_NAN_SLOTS && s->id > (int64_t)1 << digits)
        return error_invalid("DebugNumericSummaryV2Op requires tensor_id to be less than or equal to (2^%d). Given tensor_id:%lld", digits, (long long)s->id);
    double numbers[11];
    int n = describe(s, k->in[0], numbers);
    if (!n) return error_unimplemented("Unimplemented tensor debug mode: %lld", (long long)s->mode);
    Tensor *out = kernel_output(k, 0, &(Shape){.rank = 1, .dims = {n}});
    for (int i = 0; out && i < n; i++) {
        if (wide)
            tensor_f64(out)[i] = numbers[i];
        else
            tensor_f32(out)[i] = (float)numbers[i];
    }
    return NULL;
}

#define NUMBERS(run)                                                                                                                               \
    [DT_HALF] = run, [DT_BFLOAT16] = run, [DT_FLOAT] = run, [DT_DOUBLE] = run, [DT_BOOL] = run, [DT_INT8] = run, [DT_INT16] = run, [DT_INT32] = run, \
    [DT_INT64] = run, [DT_UINT8] = run, [DT_UINT16] = run, [DT_UINT32] = run, [DT_UINT64] = run

const KernelDef debug_events_cpu[] = {
    {"DebugIdentityV2", .run = run_identity, .init = check_urls},
    {"DebugNumericSummaryV2", .by_type = {NUMBERS(run_summary)}, .state_size = sizeof(SummaryState), .init = init_summary},
    {0},
};
