/* rendezvous.c: a table of keys; each key meets one value and one waiter. */
#include "runtime/rendezvous.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/block_cache.h"
#include "base/hashmap.h"
#include "base/memory.h"

typedef struct Meeting {
    bool has_value, is_dead;
    Tensor *value;
    RecvDone *done; /* the waiter, when there is one */
    TakenDone *taken; /* (optional) of whoever offered the value */
    void *arg; /* of either */
    struct Meeting *next; /* values sent again under the same key, in order */
    size_t key_len;
    char key[];
} Meeting;

struct Rendezvous {
    RefCount refs;
    int64_t step_id;
    const RemoteWay *remote;
    void *remote_arg;
    pthread_mutex_t mutex; /* guards all below */
    StrMap meetings;
    Error *aborted;
    bool ended;
};

Rendezvous *rendezvous_new(int64_t step_id, const RemoteWay *remote, void *remote_arg) {
    Rendezvous *r = block_zeroed(sizeof *r);
    refcount_init(&r->refs);
    pthread_mutex_init(&r->mutex, NULL);
    r->step_id = step_id;
    r->remote = remote;
    r->remote_arg = remote_arg;
    return r;
}

Rendezvous *rendezvous_ref(Rendezvous *r) {
    refcount_inc(&r->refs);
    return r;
}

int64_t rendezvous_step_id(const Rendezvous *r) {
    return r->step_id;
}

static void meeting_free(Meeting *m) {
    if (!m) return;
    tensor_unref(m->value);
    block_free(m, sizeof *m + m->key_len);
}

void rendezvous_unref(Rendezvous *r) {
    if (!r || !refcount_dec(&r->refs)) return;
    size_t at = 0;
    void *value;
    while (strmap_next(&r->meetings, &at, NULL, &value)) {
        for (Meeting *m = value; m;) {
            Meeting *next = m->next;
            meeting_free(m);
            m = next;
        }
    }
    strmap_clear(&r->meetings);
    error_free(r->aborted);
    pthread_mutex_destroy(&r->mutex);
    block_free(r, sizeof *r);
}

static Meeting *meeting_new(Str key) {
    Meeting *m = block_zeroed(sizeof *m + key.len);
    if (key.len) memcpy(m->key, key.ptr, key.len);
    m->key_len = key.len;
    return m;
}

static void append_locked(Rendezvous *r, Meeting *m) {
    Str key = {m->key, m->key_len};
    Meeting *first = strmap_get(&r->meetings, key);
    if (!first) {
        strmap_put(&r->meetings, key, m);
        return;
    }
    while (first->next) first = first->next;
    first->next = m;
}

/* Takes the first meeting of a key out of the table. */
static void remove_first_locked(Rendezvous *r, Meeting *first) {
    strmap_remove(&r->meetings, (Str){first->key, first->key_len});
    if (first->next) strmap_put(&r->meetings, (Str){first->next->key, first->next->key_len}, first->next);
    first->next = NULL;
}

static Error *over(const Rendezvous *r) {
    return error_derived(error_new(CODE_ABORTED, "Cleanup %lld", (long long)r->step_id));
}

/* Why it takes nothing any more; NULL when it does. */
static Error *refusal_locked(const Rendezvous *r) {
    return r->ended ? over(r) : error_copy(r->aborted);
}

/* Hands the value to who waits for it, or leaves it in the table; *is_taken says which. */
static Error *send_value(Rendezvous *r, Str key, Tensor *value, bool is_dead, TakenDone *taken, void *arg, bool *is_taken) {
    pthread_mutex_lock(&r->mutex);
    Error *err = refusal_locked(r);
    *is_taken = false;
    if (err) {
        pthread_mutex_unlock(&r->mutex);
        return err;
    }
    Meeting *first = strmap_get(&r->meetings, key);
    if (first && first->done) {
        remove_first_locked(r, first);
        pthread_mutex_unlock(&r->mutex);
        first->done(first->arg, NULL, is_dead ? NULL : tensor_ref(value), is_dead);
        meeting_free(first);
        *is_taken = true;
        return NULL;
    }
    Meeting *m = meeting_new(key);
    m->has_value = true;
    m->is_dead = is_dead;
    m->value = is_dead ? NULL : tensor_ref(value);
    m->taken = taken;
    m->arg = arg;
    append_locked(r, m);
    pthread_mutex_unlock(&r->mutex);
    return NULL;
}

Error *rendezvous_send(Rendezvous *r, Str key, Tensor *value, bool is_dead) {
    bool is_taken;
    return send_value(r, key, value, is_dead, NULL, NULL, &is_taken);
}

void rendezvous_offer(Rendezvous *r, Str key, Tensor *value, TakenDone *taken, void *arg) {
    bool is_taken;
    Error *err = send_value(r, key, value, false, taken, arg, &is_taken);
    if (err || is_taken) taken(arg, err);
}

void rendezvous_recv(Rendezvous *r, Str key, RecvDone *done, void *arg) {
    pthread_mutex_lock(&r->mutex);
    Error *err = refusal_locked(r);
    if (err) {
        pthread_mutex_unlock(&r->mutex);
        done(arg, err, NULL, false);
        return;
    }
    Meeting *first = strmap_get(&r->meetings, key);
    if (first && first->has_value) {
        remove_first_locked(r, first);
        pthread_mutex_unlock(&r->mutex);
        Tensor *value = first->value;
        first->value = NULL;
        done(arg, NULL, value, first->is_dead);
        if (first->taken) first->taken(first->arg, NULL);
        meeting_free(first);
        return;
    }
    Meeting *m = meeting_new(key);
    m->done = done;
    m->arg = arg;
    append_locked(r, m);
    pthread_mutex_unlock(&r->mutex);
}

bool rendezvous_withdraw(Rendezvous *r, Str key, void *arg) {
    pthread_mutex_lock(&r->mutex);
    Meeting *before = NULL, *m = strmap_get(&r->meetings, key);
    while (m && !(m->done && m->arg == arg)) {
        before = m;
        m = m->next;
    }
    if (m && before)
        before->next = m->next;
    else if (m)
        remove_first_locked(r, m);
    pthread_mutex_unlock(&r->mutex);
    meeting_free(m);
    return m != NULL;
}

/* NULL: it may leave the task. */
static Error *check_remote(Rendezvous *r, Str key) {
    pthread_mutex_lock(&r->mutex);
    Error *err = refusal_locked(r);
    pthread_mutex_unlock(&r->mutex);
    if (!err && !r->remote) err = error_internal("Step %lld has no way to other tasks: %.*s", (long long)r->step_id, STR_ARG(key));
    return err;
}

Error *rendezvous_push(Rendezvous *r, Str key, Tensor *value, bool is_dead) {
    Error *err = check_remote(r, key);
    return err ? err : r->remote->push(r->remote_arg, r, key, value, is_dead);
}

void rendezvous_recv_remote(Rendezvous *r, Str key, RecvDone *done, void *arg) {
    Error *err = check_remote(r, key);
    if (err)
        done(arg, err, NULL, false);
    else
        r->remote->recv(r->remote_arg, r, key, done, arg);
}

/* Aborts for the reason, or, when there is none, because the step is over. */
static void stop(Rendezvous *r, const Error *reason) {
    pthread_mutex_lock(&r->mutex);
    StrMap meetings = {0};
    if (!r->aborted && !r->ended) {
        r->aborted = error_copy(reason);
        r->ended = !reason;
        meetings = r->meetings;
        r->meetings = (StrMap){0};
    }
    pthread_mutex_unlock(&r->mutex);
    size_t at = 0;
    void *value;
    while (strmap_next(&meetings, &at, NULL, &value)) {
        for (Meeting *m = value; m;) {
            Meeting *next = m->next;
            Error *err = m->done || m->taken ? reason ? error_copy(reason) : over(r) : NULL;
            if (m->done)
                m->done(m->arg, err, NULL, false);
            else if (m->taken)
                m->taken(m->arg, err);
            meeting_free(m);
            m = next;
        }
    }
    strmap_clear(&meetings);
}

void rendezvous_abort(Rendezvous *r, const Error *reason) {
    stop(r, reason);
}

void rendezvous_end(Rendezvous *r) {
    stop(r, NULL);
}

bool rendezvous_is_empty(Rendezvous *r) {
    pthread_mutex_lock(&r->mutex);
    bool empty = r->meetings.count == 0;
    pthread_mutex_unlock(&r->mutex);
    return empty;
}

bool rendezvous_is_aborted(Rendezvous *r) {
    pthread_mutex_lock(&r->mutex);
    bool aborted = r->aborted || r->ended;
    pthread_mutex_unlock(&r->mutex);
    return aborted;
}

bool rendezvous_key_parse(Str key, RendezvousKey *out) {
    Str rest = key;
    out->src_device = str_next(&rest, ';');
    Str incarnation = str_next(&rest, ';');
    out->dst_device = str_next(&rest, ';');
    out->edge = str_next(&rest, ';');
    if (incarnation.len != 16 || !out->src_device.len || !out->dst_device.len || !out->edge.len || !rest.len) return false;
    out->src_incarnation = 0;
    for (int i = 0; i < 16; i++) {
        char c = incarnation.ptr[i];
        int digit = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
        if (digit < 0) return false;
        out->src_incarnation = out->src_incarnation << 4 | (uint64_t)digit;
    }
    return true;
}
