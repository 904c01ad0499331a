/* tree.c: broadcast along binary trees.

   With several tasks the first tree joins one device of each (the source in its task, the first device in the others); then each task has a tree of its
   own devices. In a tree rank r sends to 2r+1 and 2r+2. Where the source is not rank 0 it stands before all ranks as well as at its own place: ranks
   count one more, and the source sends to 0 and 1 besides. */
#include <stdlib.h>

#include "base/memory.h"
#include "collective/algorithm.h"

/* One tree: places, ranks of the group, who begins and where we stand. */
typedef struct Tree {
    int *order; /* place -> rank */
    int size, source, place; /* place -1: not in it */
} Tree;

static int task_end(const Group *g, int first) {
    int end = first + 1;
    while (end < g->size && str_is(str_of(g->members[first].task), g->members[end].task)) end++;
    return end;
}

static Tree tree_between_tasks(const Group *g, int rank, int source_rank) {
    Tree t = {.order = xcalloc((size_t)g->task_count, sizeof(int)), .place = -1};
    for (int first = 0, end; first < g->size; first = end) {
        end = task_end(g, first);
        bool has_source = first <= source_rank && source_rank < end;
        if (has_source) t.source = t.size;
        t.order[t.size] = has_source ? source_rank : first;
        if (t.order[t.size] == rank) t.place = t.size;
        t.size++;
    }
    return t;
}

static Tree tree_in_task(const Group *g, int rank, int source_rank, int first) {
    int end = task_end(g, first);
    Tree t = {.order = xcalloc((size_t)(end - first), sizeof(int)), .place = -1};
    for (int i = first; i < end; i++) {
        if (i == source_rank) t.source = t.size;
        if (i == rank) t.place = t.size;
        t.order[t.size++] = i;
    }
    return t;
}

static int parent(const Tree *t) {
    if (t->source == 0) return (t->place - 1) / 2;
    int up = t->place / 2 - 1;
    return up < 0 ? t->source : up;
}

/* "group:instance:frame:iteration:tree:place of the sender:place of the receiver" */
static char *tree_key(const char *exec_key, int tree, int from, int to) {
    return xasprintf("%s:%d:%d:%d", exec_key, tree, from, to);
}

static void send(Moves *m, const MovesContext *c, int lane, char *key) {
    if (c->in)
        moves_send_input(m, lane, key, 0, c->out->count);
    else
        moves_send_output(m, lane, key, 0, c->out->count);
}

static void add_tree(Moves *m, const MovesContext *c, int lane, const Tree *t, int number, const char *exec_key, bool is_source) {
    if (t->place < 0) return;
    if (t->place != t->source) moves_receive(m, lane, t->order[parent(t)], tree_key(exec_key, number, parent(t), t->place), 0, c->out->count);
    if (is_source && t->source != 0) {
        if (t->size > 1) send(m, c, lane, tree_key(exec_key, number, t->place, 0));
        if (t->size > 2 && t->source != 1) send(m, c, lane, tree_key(exec_key, number, t->place, 1));
    }
    int child = t->source == 0 ? 2 * t->place + 1 : 2 * (t->place + 1);
    for (int i = 0; i < 2; i++, child++)
        if (child < t->size && child != t->source) send(m, c, lane, tree_key(exec_key, number, t->place, child));
}

void tree_broadcast(Moves *m, const MovesContext *c, const char *exec_key, int source_rank) {
    const Group *g = c->group;
    int lane = moves_lane(m), number = 0;
    bool is_source = c->rank == source_rank;
    if (!c->out->count) return;
    if (is_source && c->in) moves_copy_input(m, lane, 0, 0, c->out->count);
    if (g->task_count > 1) {
        Tree t = tree_between_tasks(g, c->rank, source_rank);
        add_tree(m, c, lane, &t, number++, exec_key, is_source);
        free(t.order);
    }
    for (int first = 0; first < g->size; first = task_end(g, first)) {
        Tree t = tree_in_task(g, c->rank, source_rank, first);
        add_tree(m, c, lane, &t, number++, exec_key, is_source);
        free(t.order);
    }
}
