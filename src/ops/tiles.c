/* tiles.c: runs the loops of a TileProgram; operands brought to each tile. */
#include "ops/tiles.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

enum { TILE = 2048, LONG_ROW = 128, STACK_BYTES = 24 << 10, WORK_PER_TASK = 65536 };

void tile_program_begin(TileProgram *p, const Tensor *out, int result_tiles) {
    p->piece_count = p->expanded_count = 0;
    p->first_expanded = result_tiles;
    p->out = out;
}

TiledPiece *tile_program_add(TileProgram *p, const ElementLoop *loop, const void *param, int tile) {
    TiledPiece *t = &p->pieces[p->piece_count++];
    t->loop = loop;
    t->param = param;
    t->tile = tile;
    return t;
}

bool tile_program_memory(TileProgram *p, const Tensor *t, TileOperand *o) {
    *o = (TileOperand){.tile = -1, .at = t->data, .step = t->count == p->out->count, .size = dtype_size(t->dtype)};
    if (o->step || t->count == 1) return true;
    o->step = 1;
    for (int i = 0; i < p->expanded_count; i++) {
        if (p->expanded[i].from != t) continue;
        o->tile = p->first_expanded + i;
        return true;
    }
    if (p->expanded_count == TILE_MAX_EXPANDED) return false;
    ExpandedOperand *e = &p->expanded[p->expanded_count];
    BroadcastInput inputs[2] = {{t->shape.rank, t->shape.dims}, {p->out->shape.rank, p->out->shape.dims}};
    if (!broadcast_plan_init(&e->plan, inputs, 2) || e->plan.count != p->out->count) return false;
    e->from = t;
    o->tile = p->first_expanded + p->expanded_count++;
    return true;
}

static int64_t common_row(const TileProgram *p) {
    int64_t row = 0;
    for (int i = 0; i < p->expanded_count; i++) {
        const BroadcastPlan *plan = &p->expanded[i].plan;
        int64_t own = plan->dims[plan->rank - 1];
        if (own < LONG_ROW || (row && own != row)) return 0;
        row = own;
    }
    return row;
}

/* Vectors along the last dimension, all of one length, are the same in all tiles that begin at the same place of a row. */
static int64_t common_period(const TileProgram *p) {
    int64_t period = 0;
    for (int i = 0; i < p->expanded_count; i++) {
        const Tensor *t = p->expanded[i].from;
        int64_t own = t->shape.dims[t->shape.rank - 1];
        if (own != t->count || own > TILE || (period && own != period)) return 0;
        period = own;
    }
    return period;
}

void tile_program_end(TileProgram *p, size_t largest_element) {
    p->row = common_row(p);
    p->period = p->row ? 0 : common_period(p);
    for (int i = 0; i < p->expanded_count; i++) {
        size_t size = dtype_size(p->expanded[i].from->dtype);
        if (size > largest_element) largest_element = size;
    }
    p->tile_bytes = TILE * largest_element;
    p->scratch_bytes = (size_t)(p->first_expanded + (p->row ? 0 : p->expanded_count)) * p->tile_bytes;
}

/* ---- Running ---- */

typedef struct CopyRow {
    const ExpandedOperand *e;
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
    const ExpandedOperand *e;
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
static void place_expanded(const TileProgram *p, char *scratch, int64_t at, int64_t n, Place *places) {
    for (int i = 0; i < p->expanded_count; i++) {
        const ExpandedOperand *e = &p->expanded[i];
        size_t size = dtype_size(e->from->dtype);
        if (p->row) {
            FindRow f = {.e = e, .size = size};
            broadcast_walk(&e->plan, at, at + n, find_row, &f);
            places[i] = f.place;
            continue;
        }
        CopyRow c = {e, scratch + (size_t)(p->first_expanded + i) * p->tile_bytes, at, size};
        broadcast_walk(&e->plan, at, at + n, copy_row, &c);
        places[i] = (Place){c.tile, 1};
    }
}

static Place place_of(const TileProgram *p, const TileOperand *o, char *scratch, int64_t at, const Place *expanded) {
    if (o->tile < 0) return (Place){o->at + (size_t)(o->step * at) * o->size, o->step};
    if (o->tile >= p->first_expanded) return expanded[o->tile - p->first_expanded];
    return (Place){scratch + (size_t)o->tile * p->tile_bytes, 1};
}

static void run_ternary(const TileProgram *p, const TiledPiece *t, void *z, char *scratch, int64_t at, int64_t n, const Place *expanded) {
    const void *from[TILE_MAX_INPUTS];
    int64_t step[TILE_MAX_INPUTS];
    for (int i = 0; i < TILE_MAX_INPUTS; i++) {
        Place x = place_of(p, &t->in[i], scratch, at, expanded);
        from[i] = x.at;
        step[i] = x.step;
    }
    t->loop->ternary(t->param, z, from, step, n);
}

static void run_tile(const TileProgram *p, char *scratch, int64_t at, int64_t n, const Place *expanded) {
    for (int i = 0; i < p->piece_count; i++) {
        const TiledPiece *t = &p->pieces[i];
        void *z = t->tile >= 0 ? scratch + (size_t)t->tile * p->tile_bytes : (char *)p->out->data + (size_t)at * dtype_size(p->out->dtype);
        if (t->loop->ternary) {
            run_ternary(p, t, z, scratch, at, n, expanded);
            continue;
        }
        Place x = place_of(p, &t->in[0], scratch, at, expanded);
        if (t->loop->unary) {
            t->loop->unary(t->param, z, x.at, n);
            continue;
        }
        Place y = place_of(p, &t->in[1], scratch, at, expanded);
        t->loop->binary(t->param, z, x.at, y.at, x.step, y.step, n);
    }
}

void tile_program_range(void *program, int64_t begin, int64_t end) {
    const TileProgram *p = program;
    _Alignas(64) char room[STACK_BYTES];
    char *scratch = p->scratch_bytes > sizeof room ? xmalloc(p->scratch_bytes) : room;
    Place expanded[TILE_MAX_EXPANDED];
    const int64_t tile = p->period ? TILE / p->period * p->period : TILE;
    for (int64_t at = begin, n; at < end; at += n) {
        n = end - at < tile ? end - at : tile;
        if (p->row && p->row - at % p->row < n) n = p->row - at % p->row;
        if (!p->period || at == begin) place_expanded(p, scratch, at, n, expanded); /* the first is the longest */
        run_tile(p, scratch, at, n, expanded);
    }
    if (scratch != room) free(scratch);
}

void tile_program_run(const TileProgram *p, ThreadPool *pool) {
    threadpool_parallel_for(pool, p->out->count, WORK_PER_TASK / p->piece_count + TILE, tile_program_range, (void *)p);
}
