/* fused_elementwise.c: _FusedElementwise, several element-wise nodes in one pass over memory; and _UnaryOpsComposition, the like of a TensorFlow master.

   The elements are walked in tiles that stay in the cache; for each tile the pieces' own loops run one after the other, on scratch. So every bit is the one the
   nodes would give alone. A piece with fewer elements than the result (a scalar, a row) runs beforehand; what has to be broadcast is laid out tile by
   tile, unless rows are long: then no tile goes beyond the end of one, and operands are taken from where they are. Shapes that do not fit together are left to the pieces themselves, and to their words. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "kernels/broadcast.h"
#include "ops/op_list.h"
#include "ops/pieces.h"

enum { MAX_PIECES = 32, MAX_EXPANDED = 6, TILE = 2048, LONG_ROW = 128, STACK_BYTES = 24 << 10, WORK_PER_TASK = 65536 };

const OpDef fused_elementwise_ops[] = {
    {"_FusedElementwise", "args: N * T -> output: T", "N: int >= 1; T: {half, bfloat16, float, double}; fused_ops: list(string) = []", 0},
    {"_UnaryOpsComposition", "x: T -> y: T", "T: {float, half, double}; op_names: list(string)", 0},
    {0},
};

typedef struct FusedState {
    Pieces pieces;
    ElementLoop loops[MAX_PIECES];
    int buffers[MAX_PIECES]; /* where each result lies in the scratch */
    int buffer_count;
    struct OwnPart *own_parts; /* of _UnaryOpsComposition */
} FusedState;

/* A result may lie where an input lay that nobody takes later. */
static void assign_buffers(FusedState *st) {
    int held_until[MAX_PIECES] = {0}; /* by buffer */
    for (int i = 0; i < st->pieces.count; i++) {
        int b = 0;
        while (b < st->buffer_count && held_until[b] > i) b++;
        if (b == st->buffer_count) st->buffer_count++;
        st->buffers[i] = b;
        held_until[b] = st->pieces.last_use[i];
    }
}

static Error *ask_loop(const Piece *p, ElementLoop *loop) {
    KernelContext k = {.node = p->node, .state = p->state, .input_count = p->node->input_count, .output_count = 1, .loop = loop};
    Error *err = p->def->flags & KERNEL_ELEMENTWISE ? p->run(&k) : NULL;
    bool fits = p->node->input_count == 1 ? loop->unary != NULL : p->node->input_count == 2 && loop->binary;
    if (!err && !fits) err = error_unimplemented("Fusion of %.*s with %d inputs", STR_ARG(p->node->op), p->node->input_count);
    return err;
}

static Error *fused_init(const Node *node, void *state) {
    FusedState *st = state;
    Error *err = node->part_count > MAX_PIECES ? error_invalid("More than %d fused nodes", MAX_PIECES) : pieces_init(&st->pieces, node);
    for (int i = 0; !err && i < st->pieces.count; i++) err = ask_loop(&st->pieces.pieces[i], &st->loops[i]);
    if (!err) assign_buffers(st);
    return err;
}

static void fused_clear(void *state) {
    FusedState *st = state;
    pieces_clear(&st->pieces);
    free(st->own_parts);
}

typedef struct OwnPart {
    Node node;
    Output input;
} OwnPart;

/* A composition as parts: each op takes the result of the one before it. */
static Error *compose(FusedState *st, const Node *node, const Str *ops, int count) {
    Node *parts[MAX_PIECES], fused = *node;
    if (count < 1 || count > MAX_PIECES) return error_invalid("A composition of %d ops", count);
    st->own_parts = xcalloc((size_t)count, sizeof *st->own_parts);
    for (int i = 0; i < count; i++) {
        OwnPart *part = &st->own_parts[i];
        part->node = *node;
        part->node.id = i;
        part->node.op = ops[i];
        part->node.info = op_find(ops[i]);
        part->node.inputs = &part->input;
        if (i) part->input.node = &st->own_parts[i - 1].node;
        parts[i] = &part->node;
    }
    fused.parts = parts;
    fused.part_count = count;
    return fused_init(&fused, st);
}

static Error *composition_init(const Node *node, void *state) {
    Str *names = NULL;
    int count = 0;
    Error *err = node_attr_strings(node, "op_names", &names, &count);
    if (!err) err = compose(state, node, names, count);
    free(names);
    return err;
}

/* ---- Shapes ---- */

/* The shape of each piece's result. */
typedef struct PieceShapes {
    const Shape *shape[MAX_PIECES];
    Shape room[MAX_PIECES];
} PieceShapes;

static const Shape *input_shape(const KernelContext *k, const PieceShapes *s, Output in) {
    return in.node ? s->shape[in.node->id] : &k->in[in.index]->shape;
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

/* The shape of the result; NULL when a piece would refuse its inputs. */
static const Shape *find_shapes(const KernelContext *k, const FusedState *st, PieceShapes *s) {
    const Shape *last = NULL;
    for (int i = 0; i < st->pieces.count; i++) {
        const Node *n = st->pieces.pieces[i].node;
        const Shape *x = input_shape(k, s, n->inputs[0]);
        s->shape[i] = last = x;
        if (st->loops[i].unary) continue;
        const Shape *y = input_shape(k, s, n->inputs[1]);
        bool fits = true;
        switch (st->loops[i].shapes) {
            case ELEMENTS_BROADCAST: fits = broadcast_shape(x, y, &s->room[i], &s->shape[i]); break;
            case ELEMENTS_SAME_SHAPE: fits = shape_eq(x, y); break;
            case ELEMENTS_SAME_COUNT: fits = shape_count(x) == shape_count(y); break;
            case ELEMENTS_BIAS: fits = x->rank >= 2 && y->rank == 1 && y->dims[0] == x->dims[x->rank - 1]; break;
        }
        if (!fits) return NULL;
        last = s->shape[i];
    }
    return last;
}

/* ---- Tiles ---- */

/* Where the elements of an operand are: in a tile of the scratch, or in memory, advancing by step bytes an element. */
typedef struct Operand {
    int tile; /* -1: in memory */
    const char *at;
    int64_t step; /* 0 or 1 elements */
} Operand;

typedef struct TiledPiece {
    const ElementLoop *loop;
    const void *param;
    Operand in[2];
    int tile; /* of the result; -1: the output */
} TiledPiece;

typedef struct Expanded {
    const Tensor *from;
    BroadcastPlan plan;
} Expanded;

typedef struct Program {
    TiledPiece pieces[MAX_PIECES];
    int piece_count, tile_count; /* tiles of the scratch: of results, then of expanded operands */
    Expanded expanded[MAX_EXPANDED];
    int expanded_count, first_expanded;
    int64_t row; /* elements of a row of all expanded operands; 0: they are laid out */
    size_t size; /* of an element */
    char *out;
} Program;

typedef struct CopyRow {
    const Expanded *e;
    char *tile;
    int64_t begin;
    size_t size;
} CopyRow;

static void copy_row(void *arg, int64_t out_at, const int64_t *in_at, const int64_t *step, int64_t n) {
    const CopyRow *c = arg;
    char *to = c->tile + (size_t)(out_at - c->begin) * c->size;
    const char *from = (const char *)c->e->from->data + (size_t)in_at[0] * c->size;
    if (step[0]) {
        memcpy(to, from, (size_t)n * c->size);
    } else if (c->size == 4) {
        uint32_t v = *(const uint32_t *)from;
        for (int64_t i = 0; i < n; i++) ((uint32_t *)to)[i] = v;
    } else {
        for (int64_t i = 0; i < n; i++) memcpy(to + (size_t)i * c->size, from, c->size);
    }
}

/* An operand in one tile. */
typedef struct Place {
    const void *at;
    int64_t step;
} Place;

typedef struct FindRow {
    const Expanded *e;
    size_t size;
    Place place;
} FindRow;

static void find_row(void *arg, int64_t out_at, const int64_t *in_at, const int64_t *step, int64_t n) {
    (void)out_at;
    (void)n;
    FindRow *f = arg;
    f->place = (Place){(const char *)f->e->from->data + (size_t)in_at[0] * f->size, step[0]};
}

/* Brings the expanded operands of a tile: laid out in the scratch, or where they are when it is within a row. */
static void place_expanded(const Program *p, char *scratch, int64_t at, int64_t n, Place *places) {
    for (int i = 0; i < p->expanded_count; i++) {
        const Expanded *e = &p->expanded[i];
        if (p->row) {
            FindRow f = {.e = e, .size = p->size};
            broadcast_walk(&e->plan, at, at + n, find_row, &f);
            places[i] = f.place;
            continue;
        }
        CopyRow c = {e, scratch + (size_t)(p->first_expanded + i) * TILE * p->size, at, p->size};
        broadcast_walk(&e->plan, at, at + n, copy_row, &c);
        places[i] = (Place){c.tile, 1};
    }
}

static Place place_of(const Program *p, const Operand *o, char *scratch, int64_t at, const Place *expanded) {
    if (o->tile < 0) return (Place){o->at + (size_t)(o->step * at) * p->size, o->step};
    if (o->tile >= p->first_expanded) return expanded[o->tile - p->first_expanded];
    return (Place){scratch + (size_t)o->tile * TILE * p->size, 1};
}

static void run_tile(const Program *p, char *scratch, int64_t at, int64_t n) {
    Place expanded[MAX_EXPANDED];
    place_expanded(p, scratch, at, n, expanded);
    for (int i = 0; i < p->piece_count; i++) {
        const TiledPiece *t = &p->pieces[i];
        void *z = t->tile >= 0 ? scratch + (size_t)t->tile * TILE * p->size : p->out + (size_t)at * p->size;
        Place x = place_of(p, &t->in[0], scratch, at, expanded);
        if (t->loop->unary) {
            t->loop->unary(t->param, z, x.at, n);
            continue;
        }
        Place y = place_of(p, &t->in[1], scratch, at, expanded);
        t->loop->binary(t->param, z, x.at, y.at, x.step, y.step, n);
    }
}

static void run_range(void *arg, int64_t begin, int64_t end) {
    const Program *p = arg;
    _Alignas(64) char room[STACK_BYTES];
    size_t bytes = (size_t)p->tile_count * TILE * p->size;
    char *scratch = bytes > sizeof room ? xmalloc(bytes) : room;
    for (int64_t at = begin, n; at < end; at += n) {
        n = end - at < TILE ? end - at : TILE;
        if (p->row && p->row - at % p->row < n) n = p->row - at % p->row;
        run_tile(p, scratch, at, n);
    }
    if (scratch != room) free(scratch);
}

/* ---- Putting it together ---- */

/* False when too much would have to be expanded. */
static bool find_operand(Program *p, const Tensor *t, const Tensor *out, Operand *o) {
    *o = (Operand){.tile = -1, .at = t->data, .step = t->count == out->count};
    if (o->step || t->count == 1) return true;
    o->step = 1;
    for (int i = 0; i < p->expanded_count; i++) {
        if (p->expanded[i].from != t) continue;
        o->tile = p->first_expanded + i;
        return true;
    }
    if (p->expanded_count == MAX_EXPANDED) return false;
    Expanded *e = &p->expanded[p->expanded_count];
    BroadcastInput inputs[2] = {{t->shape.rank, t->shape.dims}, {out->shape.rank, out->shape.dims}};
    if (!broadcast_plan_init(&e->plan, inputs, 2) || e->plan.count != out->count) return false;
    e->from = t;
    o->tile = p->first_expanded + p->expanded_count++;
    return true;
}

static bool is_tiled(const PieceShapes *s, int i, int64_t count) {
    return shape_count(s->shape[i]) == count;
}

static int64_t common_row(const Program *p) {
    int64_t row = 0;
    for (int i = 0; i < p->expanded_count; i++) {
        const BroadcastPlan *plan = &p->expanded[i].plan;
        int64_t own = plan->dims[plan->rank - 1];
        if (own < LONG_ROW || (row && own != row)) return 0;
        row = own;
    }
    return row;
}

static bool build_program(KernelContext *k, const FusedState *st, const PieceShapes *s, Tensor *const *values, const Tensor *out, Program *p) {
    p->size = dtype_size(out->dtype);
    p->out = out->data;
    p->first_expanded = st->buffer_count;
    p->piece_count = p->expanded_count = 0;
    for (int i = 0; i < st->pieces.count; i++) {
        if (!is_tiled(s, i, out->count)) continue;
        const Piece *piece = &st->pieces.pieces[i];
        TiledPiece *t = &p->pieces[p->piece_count++];
        t->loop = &st->loops[i];
        t->param = piece->state;
        t->tile = i + 1 < st->pieces.count ? st->buffers[i] : -1;
        for (int j = 0; j < piece->node->input_count; j++) {
            const Node *source = piece->node->inputs[j].node;
            if (source && is_tiled(s, source->id, out->count))
                t->in[j] = (Operand){.tile = st->buffers[source->id], .step = 1};
            else if (!find_operand(p, piece_input(k, piece, j, values), out, &t->in[j]))
                return false;
        }
    }
    p->row = common_row(p);
    p->tile_count = st->buffer_count + (p->row ? 0 : p->expanded_count);
    return true;
}

/* An input of the result's shape that nobody needs any more: tile by tile, it has been read before it is written. */
static Tensor *output_of(KernelContext *k, const Shape *shape) {
    for (int i = 0; i < k->input_count; i++)
        if (tensor_is_unique(k->in[i]) && shape_eq(&k->in[i]->shape, shape)) return kernel_output_from(k, 0, i, shape);
    return kernel_output(k, 0, shape);
}

static Error *run_together(KernelContext *k, const FusedState *st, const PieceShapes *s, Shape shape, Tensor **values) {
    int count = st->pieces.count;
    int64_t elements = shape_count(&shape);
    Error *err = NULL;
    for (int i = 0; !err && i < count; i++)
        if (!is_tiled(s, i, elements)) err = piece_run(k, &st->pieces, i, true, values);
    Tensor *out = err ? NULL : output_of(k, &shape);
    if (!out || elements == 0) return err;
    Program p; /* large, and filled piece by piece */
    if (!build_program(k, st, s, values, out, &p)) {
        kernel_set_output(k, 0, NULL);
        return pieces_run(k, &st->pieces);
    }
    threadpool_parallel_for(k->pool, elements, WORK_PER_TASK / p.piece_count + TILE, run_range, &p);
    return NULL;
}

static Error *fused_run(KernelContext *k) {
    const FusedState *st = k->state;
    PieceShapes shapes;
    const Shape *shape = find_shapes(k, st, &shapes);
    if (!shape) return pieces_run(k, &st->pieces);
    Tensor *values[MAX_PIECES] = {0}; /* of pieces that run beforehand */
    Error *err = run_together(k, st, &shapes, *shape, values);
    for (int i = 0; i < st->pieces.count; i++) tensor_unref(values[i]);
    return err;
}

#define STATE(init_of) .state_size = sizeof(FusedState), .init = init_of, .clear = fused_clear

const KernelDef fused_elementwise_cpu[] = {
    {"_FusedElementwise", .run = fused_run, STATE(fused_init)},
    {"_UnaryOpsComposition", .run = fused_run, STATE(composition_init)},
    {0},
};
