/* branch.h: which branches of Switch nodes a value lives in. */
#pragma once
#include "gradients/backprop.h"

/* A value with a Branch is there only when pred has this value (and the parent's branch is taken). NULL: always, in its
 * loop's iteration. */
typedef struct Branch {
    const struct Branch *parent;
    Output pred;
    bool taken;
    int depth;
} Branch;

typedef struct BranchMap BranchMap;

BranchMap *branch_map_new(Backprop *p); /* in p->scratch, but for what clear frees */
void branch_map_clear(BranchMap *m);    /* NULL is allowed */
const Branch *branch_of(const BranchMap *m, Output x);
/* For nodes added later: they live where `like` does. */
void branch_put(BranchMap *m, const Node *added, const Branch *like);
bool node_is_loop_merge(const Node *n);
bool node_is_loop_switch(const Node *n); /* that ends a loop, not one of a cond */
