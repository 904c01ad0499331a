/* pieces.c: the parts of a fused node, run by their own kernels when they cannot run together. */
#include "ops/pieces.h"

#include <stdlib.h>

#include "base/memory.h"

static bool find_own(Piece *p, const KernelDef *own) {
    DataType type = p->node->output_types[0];
    for (; own && own->op; own++) {
        if (!str_is(p->node->op, own->op) || type >= DT_COUNT || !own->by_type[type]) continue;
        p->def = own;
        p->run = own->by_type[type];
        return true;
    }
    return false;
}

static Error *piece_init(Piece *p, const Node *node, const KernelDef *own_kernels) {
    p->node = node;
    Error *err = find_own(p, own_kernels) ? NULL : kernel_find(node, &p->def, &p->run);
    if (err || !p->def->state_size) return err;
    p->state = xcalloc(1, p->def->state_size);
    return p->def->init ? p->def->init(node, p->state) : NULL;
}

Error *pieces_init(Pieces *p, const Node *fused, const KernelDef *own_kernels) {
    if (!fused->part_count) return error_invalid("Op %.*s is made by Rill itself and cannot be in a client's graph", STR_ARG(fused->op));
    p->pieces = xcalloc((size_t)fused->part_count, sizeof *p->pieces);
    p->last_use = xcalloc((size_t)fused->part_count, sizeof *p->last_use);
    p->input_last_use = xcalloc((size_t)fused->input_count, sizeof *p->input_last_use);
    for (int i = 0; i < fused->part_count; i++) {
        const Node *part = fused->parts[i];
        if (part->input_count > PIECE_MAX_INPUTS || part->output_count > PIECE_MAX_OUTPUTS) return error_internal("A part with %d inputs", part->input_count);
        p->count++;
        Error *err = piece_init(&p->pieces[i], part, own_kernels);
        if (err) return err;
        for (int j = 0; j < part->input_count; j++) {
            Output in = part->inputs[j];
            if (in.node)
                p->last_use[in.node->id] = i;
            else
                p->input_last_use[in.index] = i;
        }
    }
    p->last_use[p->count - 1] = p->count;
    return NULL;
}

void pieces_clear(Pieces *p) {
    for (int i = 0; i < p->count; i++) {
        if (p->pieces[i].state && p->pieces[i].def->clear) p->pieces[i].def->clear(p->pieces[i].state);
        free(p->pieces[i].state);
    }
    free(p->pieces);
    free(p->last_use);
    free(p->input_last_use);
    *p = (Pieces){0};
}

Tensor *piece_input(const KernelContext *k, const Piece *piece, int input, Tensor *const *values) {
    Output in = piece->node->inputs[input];
    return in.node ? values[in.node->id] : k->in[in.index];
}

Error *piece_run(KernelContext *k, const Pieces *p, int i, bool keep, const OutputTail *tail, Tensor **values) {
    const Piece *piece = &p->pieces[i];
    Tensor *in[PIECE_MAX_INPUTS] = {0}, *out[PIECE_MAX_OUTPUTS] = {NULL};
    Variable *refs[PIECE_MAX_INPUTS] = {0}, *out_refs[PIECE_MAX_OUTPUTS] = {NULL};
    bool held[PIECE_MAX_INPUTS] = {0}; /* who is needed later must not be written on */
    KernelContext sub = {.node = piece->node, .state = piece->state, .input_count = piece->node->input_count,
                         .output_count = piece->node->output_count, .in = in, .ref = refs,
                         .out = out, .out_ref = out_refs, .step = k->step, .device = k->device, .pool = k->pool, .frame_id = k->frame_id,
                         .iteration = k->iteration, .output_limit = k->output_limit, .tail = tail};
    for (int j = 0; j < sub.input_count; j++) {
        Output source = piece->node->inputs[j];
        in[j] = piece_input(k, piece, j, values);
        held[j] = keep || (source.node ? p->last_use[source.node->id] != i : p->input_last_use[source.index] != i);
        if (held[j]) tensor_ref(in[j]);
    }
    Error *err = piece->run(&sub);
    if (err)
        error_free(sub.error);
    else
        err = sub.error;
    for (int j = 0; j < sub.input_count; j++)
        if (held[j]) tensor_unref(in[j]);
    for (int j = 1; j < sub.output_count; j++) tensor_unref(out[j]);
    if (err) {
        k->node = piece->node;
        tensor_unref(out[0]);
        return err;
    }
    values[i] = out[0];
    for (int j = 0; !keep && j < sub.input_count; j++) {
        Output source = piece->node->inputs[j];
        if (!source.node || p->last_use[source.node->id] != i) continue;
        tensor_unref(values[source.node->id]);
        values[source.node->id] = NULL;
    }
    return NULL;
}

Error *pieces_run(KernelContext *k, const Pieces *p, int first, Tensor **values) {
    Error *err = NULL;
    for (int i = first; !err && i < p->count; i++) err = piece_run(k, p, i, false, NULL, values);
    if (err) return err;
    kernel_set_output(k, 0, values[p->count - 1]);
    values[p->count - 1] = NULL;
    return NULL;
}
