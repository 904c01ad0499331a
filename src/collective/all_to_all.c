/* all_to_all.c: every member sends a row to every other. */
#include "base/memory.h"
#include "collective/algorithm.h"

/* "group:instance:frame:iteration", then sender and receiver without a sign between: TensorFlow's key. */
static char *pair_key(const char *exec_key, int from, int to) {
    return xasprintf("%s%d%d", exec_key, from, to);
}

void all_to_all(Moves *m, const MovesContext *c, const char *exec_key) {
    int n = c->group->size, lane = moves_lane(m);
    int64_t row = c->out->count / n;
    if (!row) return;
    moves_copy_input(m, lane, c->rank * row, c->rank * row, row);
    for (int i = 0; i < n; i++)
        if (i != c->rank) moves_send_input(m, lane, pair_key(exec_key, c->rank, i), i * row, row);
    for (int i = 0; i < n; i++)
        if (i != c->rank) moves_receive(m, lane, i, pair_key(exec_key, i, c->rank), i * row, row);
}
