/* fused_elementwise.c: _FusedElementwise, several element-wise nodes in one pass over memory; _FusedProduct, the same done to a product as it comes.

   For each tile of elements the pieces' own loops run one after the other, so every bit is the one the nodes would give alone. A piece with fewer elements than
   the result (a scalar, a row) runs beforehand. Shapes that do not fit together are left to the pieces themselves, and to their words. */
#include "ops/fused_elementwise.h"

#include <stdlib.h>

#include "ops/op_list.h"

const OpDef fused_elementwise_ops[] = {
    {"_FusedElementwise", "args: Targs -> output: T", "Targs: list(type) >= 1; T: type; fused_ops: list(string) = []", 0},
    {"_FusedProduct", "args: Targs -> output: T", "Targs: list(type) >= 1; T: type; fused_ops: list(string) = []", 0},
    {0},
};

/* ---- The state ---- */

static size_t element_size(const Piece *p) {
    return dtype_size(p->node->output_types[0]);
}

/* A result may lie where an input of the same size lay that nobody takes later. */
static void assign_tiles(FusedState *st) {
    int held_until[TILE_MAX_PIECES] = {0}; /* by tile */
    size_t size[TILE_MAX_PIECES] = {0};
    for (int i = st->has_head; i < st->pieces.count; i++) {
        size_t own = element_size(&st->pieces.pieces[i]);
        int t = 0;
        while (t < st->tile_count && (held_until[t] > i || (held_until[t] == i && size[t] != own))) t++;
        if (t == st->tile_count) st->tile_count++;
        st->tiles[i] = t;
        held_until[t] = st->pieces.last_use[i];
        size[t] = own;
        if (own > st->largest_element) st->largest_element = own;
    }
}

static Error *ask_loop(const Piece *p, ElementLoop *loop) {
    int inputs = p->node->input_count;
    KernelContext k = {.node = p->node, .state = p->state, .input_count = inputs, .output_count = 1, .loop = loop};
    Error *err = p->def->flags & KERNEL_ELEMENTWISE ? p->run(&k) : NULL;
    bool fits = inputs == 1 ? loop->unary != NULL : inputs == 2 ? loop->binary != NULL : inputs == 3 && loop->ternary;
    if (!err && !fits) err = error_unimplemented("Fusion of %.*s with %d inputs", STR_ARG(p->node->op), inputs);
    return err;
}

Error *fused_init_parts(FusedState *st, const Node *node, const KernelDef *own_kernels, bool may_run_one_by_one) {
    if (node->part_count > TILE_MAX_PIECES) return error_invalid("More than %d fused nodes", TILE_MAX_PIECES);
    Error *err = pieces_init(&st->pieces, node, own_kernels);
    if (err) return err;
    st->has_head = st->pieces.pieces[0].def->flags & KERNEL_TAIL;
    st->one_by_one = st->has_head && st->pieces.count == 1; /* nothing follows it */
    for (int i = st->has_head; !err && i < st->pieces.count; i++) err = ask_loop(&st->pieces.pieces[i], &st->loops[i]);
    if (err && may_run_one_by_one && err->code == CODE_UNIMPLEMENTED) {
        error_free(err);
        st->one_by_one = true;
        return NULL;
    }
    if (!err) assign_tiles(st);
    return err;
}

static Error *fused_init(const Node *node, void *state) {
    return fused_init_parts(state, node, NULL, false);
}

void fused_clear(void *state) {
    FusedState *st = state;
    pieces_clear(&st->pieces);
    free(st->own);
}

/* ---- Shapes ---- */

/* One run. Large: only what is needed is set. */
typedef struct FusedRun {
    KernelContext *k;
    const FusedState *st;
    Tensor *values[TILE_MAX_PIECES];      /* of pieces that have run by themselves */
    const Shape *shape[TILE_MAX_PIECES];  /* of each result */
    Shape room[TILE_MAX_PIECES];
    int64_t count; /* elements of the result */
    TileProgram program;
    bool tail_runs; /* the head was given the program */
    Error *tail_error;
} FusedRun;

static const Shape *input_shape(const FusedRun *r, const Node *n, int i) {
    Output in = n->inputs[i];
    return in.node ? r->shape[in.node->id] : &r->k->in[in.index]->shape;
}

static bool broadcast_shape(const Shape *x, const Shape *y, Shape *room, const Shape **out) {
    if (y->rank == 0 || shape_eq(x, y)) {
        *out = x;
        return true;
    }
    *out = y;
    if (x->rank == 0) return true;
    BroadcastPlan plan;
    BroadcastInput inputs[2] = {{x->rank, x->dims}, {y->rank, y->dims}};
    if (!broadcast_plan_init(&plan, inputs, 2)) return false;
    *room = shape_of(plan.out_rank, plan.out_dims);
    *out = room;
    return true;
}

static bool broadcast_all(FusedRun *r, const Node *n, int piece) {
    for (int j = 1; j < n->input_count; j++) {
        Shape room;
        const Shape *both;
        if (!broadcast_shape(r->shape[piece], input_shape(r, n, j), &room, &both)) return false;
        if (both == &room) r->room[piece] = room;
        r->shape[piece] = both == &room ? &r->room[piece] : both;
    }
    return true;
}

/* False when the piece would refuse its inputs. */
static bool find_shape(FusedRun *r, int piece) {
    const Node *n = r->st->pieces.pieces[piece].node;
    const ElementLoop *loop = &r->st->loops[piece];
    const Shape *x = input_shape(r, n, 0), *y = n->input_count > 1 ? input_shape(r, n, 1) : x;
    r->shape[piece] = x;
    if (loop->unary) return true;
    switch (loop->shapes) {
        case ELEMENTS_BROADCAST: return broadcast_all(r, n, piece);
        case ELEMENTS_SAME_SHAPE: return shape_eq(x, y) && (n->input_count == 2 || shape_eq(x, input_shape(r, n, 2)));
        case ELEMENTS_SAME_COUNT: return shape_count(x) == shape_count(y);
        case ELEMENTS_BIAS: return x->rank >= 2 && y->rank == 1 && y->dims[0] == x->dims[x->rank - 1];
        case ELEMENTS_LIMITS:
            for (int j = 1; j < n->input_count; j++)
                if (input_shape(r, n, j)->rank && !shape_eq(x, input_shape(r, n, j))) return false;
            return true;
    }
    return false;
}

/* head: the shape of the first result, when it has a head. */
static bool find_shapes(FusedRun *r, const Shape *head) {
    if (r->st->one_by_one) return false;
    r->shape[0] = head;
    for (int i = r->st->has_head; i < r->st->pieces.count; i++)
        if (!find_shape(r, i)) return false;
    r->count = shape_count(r->shape[r->st->pieces.count - 1]);
    return true;
}

/* ---- Running ---- */

static bool is_tiled(const FusedRun *r, int piece) {
    return piece >= r->st->has_head && shape_count(r->shape[piece]) == r->count;
}

/* Runs what is smaller than the result. */
static Error *run_beforehand(FusedRun *r) {
    Error *err = NULL;
    for (int i = r->st->has_head; !err && i < r->st->pieces.count; i++)
        if (!is_tiled(r, i)) err = piece_run(r->k, &r->st->pieces, i, true, NULL, r->values);
    return err;
}

static bool build_program(FusedRun *r, const Tensor *out) {
    const FusedState *st = r->st;
    tile_program_begin(&r->program, out, st->tile_count);
    for (int i = st->has_head; i < st->pieces.count; i++) {
        if (!is_tiled(r, i)) continue;
        const Piece *piece = &st->pieces.pieces[i];
        TiledPiece *t = tile_program_add(&r->program, &st->loops[i], piece->state, i + 1 < st->pieces.count ? st->tiles[i] : -1);
        for (int j = 0; j < piece->node->input_count; j++) {
            const Node *source = piece->node->inputs[j].node;
            if (source && is_tiled(r, source->id))
                t->in[j] = (TileOperand){.tile = st->tiles[source->id], .step = 1};
            else if (!tile_program_memory(&r->program, piece_input(r->k, piece, j, r->values), &t->in[j]))
                return false;
        }
    }
    tile_program_end(&r->program, st->largest_element);
    return true;
}

/* An input of the result's shape that nobody needs any more: tile by tile, it has been read before it is written. */
static Tensor *output_of(KernelContext *k, const Shape *shape) {
    size_t size = dtype_size(kernel_output_type(k, 0));
    for (int i = 0; i < k->input_count; i++)
        if (tensor_is_unique(k->in[i]) && dtype_size(k->in[i]->dtype) == size && shape_eq(&k->in[i]->shape, shape)) return kernel_output_from(k, 0, i, shape);
    return kernel_output(k, 0, shape);
}

/* Ran: false when there is too much to expand. */
static Error *run_together(FusedRun *r, bool *ran) {
    KernelContext *k = r->k;
    Shape shape = *r->shape[r->st->pieces.count - 1];
    Error *err = run_beforehand(r);
    Tensor *out = err ? NULL : output_of(k, &shape);
    *ran = true;
    if (!out || r->count == 0) return err;
    if (build_program(r, out)) {
        tile_program_run(&r->program, k->pool);
        return NULL;
    }
    kernel_set_output(k, 0, NULL);
    *ran = false;
    return NULL;
}

static Error *run_rest(FusedRun *r) {
    const FusedState *st = r->st;
    bool ran = false;
    Error *err = find_shapes(r, st->has_head ? &r->values[0]->shape : NULL) ? run_together(r, &ran) : NULL;
    if (err || ran) return err;
    for (int i = st->has_head; i < st->pieces.count; i++) {
        tensor_unref(r->values[i]);
        r->values[i] = NULL;
    }
    return pieces_run(r->k, &st->pieces, st->has_head, r->values);
}

/* ---- After a product ---- */

/* The result lies where the product lies, when it has elements of the same size: nobody else sees that. */
static Tensor *output_over(KernelContext *k, Tensor *product, const Shape *shape) {
    DataType type = kernel_output_type(k, 0);
    if (dtype_size(type) != dtype_size(product->dtype)) return kernel_output(k, 0, shape);
    Tensor *out = tensor_alias(product, type, shape);
    kernel_set_output(k, 0, out);
    return out;
}

static RangeCall start_tail(void *arg, Tensor *product) {
    FusedRun *r = arg;
    if (product->count == 0 || !find_shapes(r, &product->shape) || r->count != product->count) return (RangeCall){0};
    r->values[0] = product;
    r->tail_error = run_beforehand(r);
    Tensor *out = r->tail_error ? NULL : output_over(r->k, product, r->shape[r->st->pieces.count - 1]);
    r->tail_runs = out && build_program(r, out);
    if (r->tail_runs) return (RangeCall){tile_program_range, &r->program};
    if (out) kernel_set_output(r->k, 0, NULL);
    return (RangeCall){0};
}

static Error *run_head(FusedRun *r) {
    OutputTail tail = {start_tail, r};
    const Node *node = r->k->node;
    Error *err = piece_run(r->k, &r->st->pieces, 0, true, &tail, r->values);
    if (!err) return r->tail_error;
    error_free(r->tail_error);
    r->values[0] = NULL;
    if (r->tail_error) r->k->node = node;
    return err;
}

Error *fused_run(KernelContext *k) {
    FusedRun r;
    r.k = k;
    r.st = k->state;
    r.tail_runs = false;
    r.tail_error = NULL;
    for (int i = 0; i < r.st->pieces.count; i++) r.values[i] = NULL;
    Error *err = r.st->has_head ? run_head(&r) : NULL;
    if (!err && !r.tail_runs && !k->error) err = run_rest(&r);
    for (int i = 0; i < r.st->pieces.count; i++) tensor_unref(r.values[i]);
    return err;
}

#define STATE .state_size = sizeof(FusedState), .init = fused_init, .clear = fused_clear

const KernelDef fused_elementwise_cpu[] = {
    {"_FusedElementwise", .run = fused_run, STATE},
    {"_FusedProduct", .run = fused_run, STATE, .flags = KERNEL_EXPENSIVE},
    {0},
};
