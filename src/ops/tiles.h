/* tiles.h: TileProgram, element-wise loops that run one after the other on each tile of their elements, with results in between on scratch that stays in the cache.

   What has to be broadcast is laid out tile by tile, or once where every tile needs the same; unless rows are long: then no tile goes beyond the end of one, and
   operands are taken from where they are. */
#pragma once
#include "kernels/broadcast.h"
#include "runtime/kernel.h"

enum { TILE_MAX_PIECES = 32, TILE_MAX_INPUTS = 3, TILE_MAX_EXPANDED = 6 };

/* Where the elements of an operand are: in a tile of the scratch, or in memory. */
typedef struct TileOperand {
    int tile; /* -1: in memory */
    const char *at;
    int64_t step; /* 0: one element throughout, or 1 */
    size_t size;  /* of an element */
} TileOperand;

typedef struct TiledPiece {
    const ElementLoop *loop;
    const void *param;
    TileOperand in[TILE_MAX_INPUTS];
    int tile; /* of the result; -1: the output */
} TiledPiece;

typedef struct ExpandedOperand {
    const Tensor *from;
    BroadcastPlan plan;
} ExpandedOperand;

/* Filled in this order: begin, each piece with its operands, end. Large: not cleared as a whole. */
typedef struct TileProgram {
    TiledPiece pieces[TILE_MAX_PIECES];
    int piece_count;
    ExpandedOperand expanded[TILE_MAX_EXPANDED];
    int expanded_count, first_expanded; /* their tiles come after those of results */
    int64_t row;                        /* elements of a row of all expanded operands; 0: they are laid out */
    int64_t period;                     /* elements after which all laid out operands repeat; 0: they do not */
    size_t tile_bytes, scratch_bytes;
    const Tensor *out;
} TileProgram;

void tile_program_begin(TileProgram *p, const Tensor *out, int result_tiles);
TiledPiece *tile_program_add(TileProgram *p, const ElementLoop *loop, const void *param, int tile);
/* An operand that is a whole tensor; false when too much would have to be expanded. */
bool tile_program_memory(TileProgram *p, const Tensor *t, TileOperand *o);
void tile_program_end(TileProgram *p, size_t largest_element);

void tile_program_range(void *program, int64_t begin, int64_t end); /* a RangeFn over elements of the output */
void tile_program_run(const TileProgram *p, ThreadPool *pool);      /* all of them */
