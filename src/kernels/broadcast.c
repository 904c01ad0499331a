/* broadcast.c: joins the dimensions of broadcast arrays and walks them row by row. */
#include "kernels/broadcast.h"

static int64_t dim_from_end(const BroadcastInput *in, int back) {
    return back < in->rank ? in->dims[in->rank - 1 - back] : 1;
}

static bool result_dims(BroadcastPlan *p, const BroadcastInput *inputs) {
    p->out_rank = 0;
    for (int i = 0; i < p->input_count; i++) {
        if (inputs[i].rank > p->out_rank) p->out_rank = inputs[i].rank;
    }
    if (p->out_rank > BROADCAST_MAX_RANK) return false;
    for (int back = 0; back < p->out_rank; back++) {
        int64_t size = 1;
        for (int i = 0; i < p->input_count; i++) {
            int64_t d = dim_from_end(&inputs[i], back);
            if (d == 1 || d == size) continue;
            if (size != 1) return false;
            size = d;
        }
        p->out_dims[p->out_rank - 1 - back] = size;
    }
    return true;
}

/* True when dimension `outer` continues where `inner` ends for every input, so that both are one. */
static bool can_join(const BroadcastPlan *p, const int64_t *outer_strides, int64_t inner_dim, int inner) {
    for (int i = 0; i < p->input_count; i++) {
        if (outer_strides[i] != p->strides[i][inner] * inner_dim) return false;
    }
    return true;
}

bool broadcast_plan_init(BroadcastPlan *p, const BroadcastInput *inputs, int input_count) {
    p->input_count = input_count;
    if (!result_dims(p, inputs)) return false;
    p->count = 1;
    p->rank = 1;
    for (int d = 0; d < p->out_rank; d++) {
        if (p->out_dims[d] == 0) p->count = 0;
    }
    if (p->count == 0) return true;

    /* Collected from the innermost outwards, then turned round. */
    int64_t size_of[BROADCAST_MAX_INPUTS];
    for (int i = 0; i < input_count; i++) size_of[i] = 1;
    int rank = 0;
    for (int back = 0; back < p->out_rank; back++) {
        int64_t size = p->out_dims[p->out_rank - 1 - back], strides[BROADCAST_MAX_INPUTS];
        if (__builtin_mul_overflow(p->count, size, &p->count)) {
            p->count = INT64_MAX;
            return true;
        }
        if (size == 1) continue;
        for (int i = 0; i < input_count; i++) {
            int64_t d = dim_from_end(&inputs[i], back);
            strides[i] = d == 1 ? 0 : size_of[i];
            size_of[i] *= d;
        }
        if (rank > 0 && can_join(p, strides, p->dims[rank - 1], rank - 1)) {
            p->dims[rank - 1] *= size;
            continue;
        }
        p->dims[rank] = size;
        for (int i = 0; i < input_count; i++) p->strides[i][rank] = strides[i];
        rank++;
    }
    if (rank == 0) {
        p->dims[0] = 1;
        for (int i = 0; i < input_count; i++) p->strides[i][0] = 1;
        rank = 1;
    }
    p->rank = rank;
    for (int a = 0, b = rank - 1; a < b; a++, b--) {
        int64_t swap = p->dims[a];
        p->dims[a] = p->dims[b];
        p->dims[b] = swap;
        for (int i = 0; i < input_count; i++) {
            swap = p->strides[i][a];
            p->strides[i][a] = p->strides[i][b];
            p->strides[i][b] = swap;
        }
    }
    return true;
}

void broadcast_walk(const BroadcastPlan *p, int64_t begin, int64_t end, BroadcastRow *row, void *arg) {
    if (begin >= end) return;
    int last = p->rank - 1;
    int64_t inner = p->dims[last], index[BROADCAST_MAX_RANK];
    int64_t at[BROADCAST_MAX_INPUTS] = {0}, step[BROADCAST_MAX_INPUTS] = {0}, in_at[BROADCAST_MAX_INPUTS];
    int64_t rest = begin / inner, skip = begin % inner;
    for (int d = last - 1; d >= 0; d--) {
        index[d] = rest % p->dims[d];
        rest /= p->dims[d];
        for (int i = 0; i < p->input_count; i++) at[i] += index[d] * p->strides[i][d];
    }
    for (int i = 0; i < p->input_count; i++) step[i] = p->strides[i][last];

    for (int64_t out = begin; out < end;) {
        int64_t n = inner - skip < end - out ? inner - skip : end - out;
        for (int i = 0; i < p->input_count; i++) in_at[i] = at[i] + skip * step[i];
        row(arg, out, in_at, step, n);
        out += n;
        skip = 0;
        for (int d = last - 1; d >= 0; d--) {
            for (int i = 0; i < p->input_count; i++) at[i] += p->strides[i][d];
            if (++index[d] < p->dims[d]) break;
            for (int i = 0; i < p->input_count; i++) at[i] -= p->dims[d] * p->strides[i][d];
            index[d] = 0;
        }
    }
}
