/* moves.c: lanes of moves, each gone on with by whoever brings what it waits for. */
#include "collective/moves.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

enum {
    INLINE_BYTES = 65536, /* more than that is merged or copied on the pool, not by the thread that brought it */
    BLOCK = 8192,         /* elements copied and merged while they are in the cache */
};

typedef enum MoveKind { SEND_INPUT, SEND_OUTPUT, COPY_INPUT, RECEIVE, MERGE } MoveKind;

typedef struct Move {
    MoveKind kind;
    bool is_last, has_come;
    int peer;
    int64_t at, count, in_at;
    char *key;
    Tensor *value; /* that came */
    Moves *moves;
    int lane;
} Move;

typedef struct Lane {
    Moves *moves;
    Move **items;
    int count, next;
    bool is_running, has_ended;
} Lane;

struct Moves {
    MovesContext c;
    Tensor *flat_in, *flat_out;
    MovesDone *done;
    void *arg;
    Lane **lanes;
    int lane_count;
    pthread_mutex_t mutex; /* guards all below, and the states of lanes and moves */
    int pending; /* the starter, lanes, receives and offers that have not ended, tasks of the pool */
    Error *error;
};

static Tensor *flat(const Tensor *t) {
    if (!t) return NULL;
    Shape vector = shape_vector(t->count);
    return tensor_alias(t, t->dtype, &vector);
}

Moves *moves_new(const MovesContext *c) {
    Moves *m = xcalloc(1, sizeof *m);
    pthread_mutex_init(&m->mutex, NULL);
    m->c = *c;
    m->flat_in = flat(c->in);
    m->flat_out = flat(c->out);
    return m;
}

int moves_lane(Moves *m) {
    m->lanes = xrealloc(m->lanes, sizeof *m->lanes * (size_t)(m->lane_count + 1));
    Lane *l = xcalloc(1, sizeof *l);
    l->moves = m;
    m->lanes[m->lane_count] = l;
    return m->lane_count++;
}

static void add(Moves *m, int lane, Move move) {
    Lane *l = m->lanes[lane];
    Move *item = xcalloc(1, sizeof *item);
    *item = move;
    item->moves = m;
    item->lane = lane;
    l->items = xrealloc(l->items, sizeof *l->items * (size_t)(l->count + 1));
    l->items[l->count++] = item;
}

void moves_send_input(Moves *m, int lane, char *key, int64_t at, int64_t count) {
    add(m, lane, (Move){.kind = SEND_INPUT, .key = key, .at = at, .count = count});
}

void moves_send_output(Moves *m, int lane, char *key, int64_t at, int64_t count) {
    add(m, lane, (Move){.kind = SEND_OUTPUT, .key = key, .at = at, .count = count});
}

void moves_copy_input(Moves *m, int lane, int64_t in_at, int64_t out_at, int64_t count) {
    add(m, lane, (Move){.kind = COPY_INPUT, .in_at = in_at, .at = out_at, .count = count});
}

void moves_receive(Moves *m, int lane, int from_rank, char *key, int64_t at, int64_t count) {
    add(m, lane, (Move){.kind = RECEIVE, .peer = from_rank, .key = key, .at = at, .count = count});
}

void moves_merge(Moves *m, int lane, int from_rank, char *key, int64_t at, int64_t count, bool is_last) {
    add(m, lane, (Move){.kind = MERGE, .peer = from_rank, .key = key, .at = at, .in_at = at, .count = count, .is_last = is_last});
}

/* ---- Ending ---- */

void moves_free(Moves *m) {
    for (int i = 0; i < m->lane_count; i++) {
        Lane *l = m->lanes[i];
        for (int j = 0; j < l->count; j++) {
            tensor_unref(l->items[j]->value);
            free(l->items[j]->key);
            free(l->items[j]);
        }
        free(l->items);
        free(l);
    }
    free(m->lanes);
    tensor_unref(m->flat_in);
    tensor_unref(m->flat_out);
    pthread_mutex_destroy(&m->mutex);
    free(m);
}

static void count_down(Moves *m) {
    pthread_mutex_lock(&m->mutex);
    bool is_last = --m->pending == 0;
    pthread_mutex_unlock(&m->mutex);
    if (!is_last) return;
    MovesDone *done = m->done;
    void *arg = m->arg;
    Error *err = m->error;
    moves_free(m);
    done(arg, err);
}

static void count_up(Moves *m) {
    pthread_mutex_lock(&m->mutex);
    m->pending++;
    pthread_mutex_unlock(&m->mutex);
}

/* Takes err. Everything of the step that waits hears of it, so that all moves end. */
static void fail(Moves *m, Error *err) {
    pthread_mutex_lock(&m->mutex);
    bool is_first = !m->error;
    if (is_first) m->error = err;
    Error *reason = is_first ? error_derived(error_copy(err)) : NULL;
    pthread_mutex_unlock(&m->mutex);
    if (is_first)
        rendezvous_abort(m->c.rendezvous, reason);
    else
        error_free(err);
    error_free(reason);
}

/* ---- Moving ---- */

static char *element(const Tensor *t, int64_t at) {
    return (char *)t->data + (size_t)at * dtype_size(t->dtype);
}

static void copy_blocks(void *arg, int64_t begin, int64_t end) {
    const Move *move = arg;
    Moves *m = move->moves;
    const char *from = move->kind == COPY_INPUT ? element(m->flat_in, move->in_at) : move->value->data;
    size_t size = dtype_size(m->flat_out->dtype);
    memcpy(element(m->flat_out, move->at + begin), from + (size_t)begin * size, (size_t)(end - begin) * size);
}

static void merge_blocks(void *arg, int64_t begin, int64_t end) {
    const Move *move = arg;
    Moves *m = move->moves;
    size_t size = dtype_size(m->flat_out->dtype);
    const char *came = move->value->data;
    for (int64_t i = begin; i < end; i += BLOCK) {
        int64_t n = end - i < BLOCK ? end - i : BLOCK;
        char *to = element(m->flat_out, move->at + i);
        const char *own = element(m->flat_in, move->in_at + i);
        if (to != own) memcpy(to, own, (size_t)n * size);
        m->c.merge(to, came + (size_t)i * size, n);
        if (move->is_last && m->c.divide) m->c.divide(to, m->c.group->size, n);
    }
}

static void taken(void *arg, Error *err) {
    Moves *m = arg;
    if (err) fail(m, err);
    count_down(m);
}

static void carry_out(Move *move) {
    Moves *m = move->moves;
    if (move->kind == SEND_INPUT || move->kind == SEND_OUTPUT) {
        Tensor *part = tensor_rows(move->kind == SEND_INPUT ? m->flat_in : m->flat_out, move->at, move->at + move->count);
        count_up(m);
        rendezvous_offer(m->c.rendezvous, str_of(move->key), part, taken, m);
        tensor_unref(part);
        return;
    }
    RangeFn *fn = move->kind == MERGE ? merge_blocks : copy_blocks;
    threadpool_parallel_for(m->c.pool, move->count, 4 * BLOCK, fn, move);
    tensor_unref(move->value);
    move->value = NULL;
}

static bool is_receive(const Move *move) {
    return move->kind == RECEIVE || move->kind == MERGE;
}

static void advance(Lane *l) {
    Moves *m = l->moves;
    pthread_mutex_lock(&m->mutex);
    bool is_mine = !l->is_running && !l->has_ended, ends = false;
    l->is_running |= is_mine;
    while (is_mine) {
        ends = l->next == l->count || m->error;
        Move *move = ends ? NULL : l->items[l->next];
        if (ends || (is_receive(move) && !move->has_come)) break;
        l->next++;
        pthread_mutex_unlock(&m->mutex);
        carry_out(move);
        pthread_mutex_lock(&m->mutex);
    }
    if (is_mine) l->is_running = false;
    if (ends) l->has_ended = true;
    pthread_mutex_unlock(&m->mutex);
    if (ends) count_down(m);
}

static void advance_task(void *arg) {
    Lane *l = arg;
    Moves *m = l->moves;
    advance(l);
    count_down(m);
}

static Error *check_size(const Move *move, const Tensor *value) {
    size_t want = (size_t)move->count * dtype_size(move->moves->flat_out->dtype), size = tensor_bytes(value);
    if (size == want) return NULL;
    return error_internal("RecvBuf of %s from %s gave %zu bytes where %zu were expected", move->key, move->moves->c.group->members[move->peer].device, size, want);
}

static void came(void *arg, Error *err, Tensor *value, bool is_dead) {
    Move *move = arg;
    Moves *m = move->moves;
    Lane *l = m->lanes[move->lane];
    (void)is_dead;
    if (!err) err = check_size(move, value);
    bool is_large = !err && tensor_bytes(value) > INLINE_BYTES;
    if (err) fail(m, err);
    pthread_mutex_lock(&m->mutex);
    move->has_come = true;
    move->value = value;
    if (is_large) m->pending++;
    pthread_mutex_unlock(&m->mutex);
    if (is_large)
        threadpool_post(m->c.pool, advance_task, l);
    else
        advance(l);
    count_down(m);
}

static void ask(Move *move) {
    Moves *m = move->moves;
    const GroupMember *from = &m->c.group->members[move->peer], *self = &m->c.group->members[m->c.rank];
    if (str_is(str_of(from->task), self->task))
        rendezvous_recv(m->c.rendezvous, str_of(move->key), came, move);
    else
        m->c.link->recv(m->c.link->self, m->c.rendezvous, from, str_of(self->device), str_of(move->key), (size_t)move->count * dtype_size(m->flat_out->dtype), came, move);
}

void moves_start(Moves *m, MovesDone *done, void *arg) {
    m->done = done;
    m->arg = arg;
    m->pending = 1 + m->lane_count;
    for (int i = 0; i < m->lane_count; i++)
        for (int j = 0; j < m->lanes[i]->count; j++) m->pending += is_receive(m->lanes[i]->items[j]);
    for (int i = 0; i < m->lane_count; i++) advance(m->lanes[i]); /* what others wait for goes first */
    for (int i = 0; i < m->lane_count; i++)
        for (int j = 0; j < m->lanes[i]->count; j++)
            if (is_receive(m->lanes[i]->items[j])) ask(m->lanes[i]->items[j]);
    count_down(m);
}
