/* loop.h: one loop of Enter, Merge, Switch, NextIteration and Exit: its variables, and what its gradient adds to it. */
#pragma once
#include "gradients/backprop.h"
#include "gradients/branch.h"

/* A variable of a loop that exists. */
typedef struct LoopVariable {
    Node *enter, *merge, *head, *next,
        *exit; /* head is its Switch: output 1 is the value in the body; exit may be NULL */
} LoopVariable;

/* A loop of the graph. */
typedef struct ForwardLoop {
    int frame;
    Node *cond; /* its LoopCond */
    LoopVariable *variables;
    int variable_count;
    Node **constants; /* its Enter nodes with is_constant */
    int constant_count;
    Node *outer_pivot; /* runs whenever the loop does, outside of it: constants that enter it wait for this one */
    Node *pivot;       /* runs once an iteration, in the body */
    Output trips;      /* how many iterations there were, outside of the loop */
    IntMap lists;      /* by forward output: struct Saved, the list of its values in all iterations */
} ForwardLoop;

/* The loop that undoes it, last iteration first. */
struct LoopGradient {
    ForwardLoop *forward;
    Scope *outer;
    Str frame_name;
    int64_t parallel_iterations;
    Node *cond, *pivot;
    IntMap values; /* by forward output: struct Saved, what it is in the iteration being undone */
};

typedef struct Saved {
    Output value;
} Saved;

/* What is known of a loop; made once, with a count of its iterations added to it. NULL after an error. */
ForwardLoop *forward_loop(Backprop *p, int frame);
/* The list of a value of the body, one element for each iteration, as it is after the loop. */
Output forward_loop_list(Backprop *p, ForwardLoop *f, Output x);
/* The value of a variable after the loop. */
Output forward_loop_exit(Backprop *p, ForwardLoop *f, LoopVariable *v);
/* op(x) computed in the body of the loop that x belongs to. */
Output forward_loop_unary(Backprop *p, ForwardLoop *f, const char *op, Output x);

/* A variable under construction: what it is in the body, until loop_close says what it is in the next iteration. */
typedef struct NewVariable {
    Node *merge, *head;
} NewVariable;
NewVariable loop_open(Builder *b, Str frame_name, int64_t parallel_iterations, Output start,
                      Node *cond); /* cond NULL: head is made later */
void loop_close(Builder *b, NewVariable v, Output next);
Output loop_enter(Builder *b, Str frame_name, int64_t parallel_iterations, Output x, bool is_constant);
