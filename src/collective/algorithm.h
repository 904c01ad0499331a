/* algorithm.h: the algorithms of collectives: each writes down the moves of one member. Keys and ranges are those of TensorFlow's tasks, which may be
   the other members. */
#pragma once
#include "collective/moves.h"

/* How a ring cuts the tensor further, so that several rings run at once. */
typedef struct RingSubdivs {
    const int64_t *offsets; /* one ring for each; negative: the devices of a task in reverse */
    int count;              /* 0: as max_per_device and the size say */
    int64_t max_per_device; /* -1: one ring; 0: a default */
} RingSubdivs;

/* Sum (or other merge) of all inputs at every member; 2(n-1) messages of an n-th of the tensor. */
Error *ring_reduce(Moves *m, const MovesContext *c, const char *exec_key, const RingSubdivs *subdivs) MUST_CHECK;
/* The inputs of all members one after the other, by rank. */
void ring_gather(Moves *m, const MovesContext *c, const char *exec_key);
/* The n-th part of the merged inputs that belongs to this rank, at its place in an output as large as the input; the rest of the output is scratch. */
void ring_reduce_scatter(Moves *m, const MovesContext *c, const char *exec_key);
/* The tensor of one member at all: between tasks along a binary tree, then inside each task. */
void tree_broadcast(Moves *m, const MovesContext *c, const char *exec_key, int source_rank);
/* Row j of the input goes to rank j, row i of the output comes from rank i. */
void all_to_all(Moves *m, const MovesContext *c, const char *exec_key);
