/* branch.c: a walk over the graph, producers first: Switch opens branches, Merge joins them, every loop starts anew. */
#include "gradients/branch.h"

#include <stdlib.h>

#include "base/memory.h"

struct BranchMap {
    Backprop *p;
    const Branch **of_node; /* by id, of the nodes there were at the start */
    IntMap added;           /* node id + 1 to struct Added */
};

typedef struct Added {
    const Branch *branch;
} Added;

bool node_is_loop_merge(const Node *n) {
    if (!node_is(n, "Merge") && !node_is(n, "RefMerge")) return false;
    for (int i = 0; i < n->input_count; i++)
        if (node_is_next_iteration(n->inputs[i].node)) return true;
    return false;
}

static bool is_switch(const Node *n) {
    return (node_is(n, "Switch") || node_is(n, "RefSwitch")) && n->input_count == 2;
}

bool node_is_loop_switch(const Node *n) {
    return is_switch(n) && node_is(n->inputs[1].node, "LoopCond");
}

static const Branch *of_node(const BranchMap *m, const Node *n) {
    if (n->id < m->p->node_count) return m->of_node[n->id];
    const Added *added = intmap_get(&m->added, (uint64_t)n->id + 1);
    return added ? added->branch : NULL;
}

void branch_put(BranchMap *m, const Node *added, const Branch *like) {
    Added *a = arena_calloc(m->p->scratch, 1, sizeof *a);
    a->branch = like;
    intmap_put(&m->added, (uint64_t)added->id + 1, a);
}

const Branch *branch_of(const BranchMap *m, Output x) {
    const Branch *own = of_node(m, x.node);
    if (!is_switch(x.node) || node_is_loop_switch(x.node)) return own;
    Branch *inner = arena_calloc(m->p->scratch, 1, sizeof *inner);
    *inner = (Branch){own, x.node->inputs[1], x.index == 1, own ? own->depth + 1 : 1};
    return inner;
}

static bool same_branch(const Branch *a, const Branch *b) {
    for (; a != b; a = a->parent, b = b->parent)
        if (!a || !b || a->depth != b->depth || a->taken != b->taken || !same_output(a->pred, b->pred)) return false;
    return true;
}

/* What two branches have in common. */
static const Branch *common(const Branch *a, const Branch *b) {
    while (!same_branch(a, b)) {
        if (!a || !b) return NULL;
        bool a_deeper = a->depth > b->depth, b_deeper = b->depth > a->depth;
        if (!b_deeper) a = a->parent;
        if (!a_deeper) b = b->parent;
    }
    return a;
}

static int depth_of(const Branch *b) {
    return b ? b->depth : 0;
}

/* The Enter of the variable that an Exit gives; as a whole the loop lives where it is entered. */
static const Node *loop_entrance(const Node *exit) {
    const Node *merge = exit->inputs[0].node->input_count ? exit->inputs[0].node->inputs[0].node : exit;
    for (int i = 0; i < merge->input_count; i++)
        if (node_is_enter(merge->inputs[i].node)) return merge->inputs[i].node;
    return exit;
}

static const Branch *find_branch(const BranchMap *m, const Node *n) {
    if (node_is_enter(n)) return branch_of(m, n->inputs[0]);
    if (node_is_exit(n)) return of_node(m, loop_entrance(n));
    if (node_is_loop_merge(n)) return NULL;
    bool is_merge = node_is(n, "Merge") || node_is(n, "RefMerge");
    const Branch *found = NULL;
    for (int i = 0; i < n->input_count + n->control_count; i++) {
        Output input = i < n->input_count ? n->inputs[i] : (Output){n->controls[i - n->input_count], 0};
        /* A control edge from a Switch says nothing of its branches; what comes from an Enter is everywhere in its
         * loop. */
        bool from_enter = node_is_enter(input.node);
        const Branch *b = from_enter ? NULL : i < n->input_count ? branch_of(m, input) : of_node(m, input.node);
        if (is_merge)
            found = i ? common(found, b) : b;
        else if (depth_of(b) > depth_of(found))
            found = b;
    }
    return found;
}

typedef struct Visit {
    const Node *node;
    int next; /* input to look at */
} Visit;

/* Every node after its inputs; edges that close a loop are left out. */
static void visit_from(BranchMap *m, const Node *start, bool *seen, Visit *stack) {
    int depth = 0;
    seen[start->id] = true;
    stack[depth++] = (Visit){start, 0};
    while (depth) {
        Visit *top = &stack[depth - 1];
        const Node *n = top->node;
        int i = top->next++;
        if (i >= n->input_count + n->control_count) {
            m->of_node[n->id] = find_branch(m, n);
            depth--;
            continue;
        }
        const Node *input = i < n->input_count ? n->inputs[i].node : n->controls[i - n->input_count];
        if (input->id >= m->p->node_count || seen[input->id] || node_is_next_iteration(input)) continue;
        seen[input->id] = true;
        stack[depth++] = (Visit){input, 0};
    }
}

BranchMap *branch_map_new(Backprop *p) {
    BranchMap *m = arena_calloc(p->scratch, 1, sizeof *m);
    size_t count = (size_t)p->node_count;
    m->p = p;
    m->of_node = arena_calloc(p->scratch, count, sizeof *m->of_node);
    bool *seen = xcalloc(count, sizeof *seen);
    Visit *stack = xcalloc(count, sizeof *stack);
    for (int i = 0; i < p->node_count; i++)
        if (!seen[i]) visit_from(m, p->g->nodes[i], seen, stack);
    free(seen);
    free(stack);
    return m;
}

void branch_map_clear(BranchMap *m) {
    if (m) intmap_clear(&m->added);
}
