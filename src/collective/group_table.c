/* group_table.c: groups by key, each with its members, those who wait for it, and its instances. */
#include "collective/group_table.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/hashmap.h"
#include "base/memory.h"

typedef struct GroupWaiter {
    struct GroupWaiter *next;
    char *device;
    GroupDone *done;
    void *arg;
} GroupWaiter;

typedef struct InstanceWaiter {
    struct InstanceWaiter *next;
    InstanceDone *done;
    void *arg;
} InstanceWaiter;

typedef struct Instance {
    struct Instance *next;
    int32_t key;
    int64_t step_id;
    CollectiveType type;
    DataType dtype;
    Shape shape;
    int source_rank, known_count;
    bool *known; /* by rank: who has said what he does in a broadcast */
    InstanceWaiter *waiters;
} Instance;

typedef struct GroupEntry {
    int32_t key;
    int size, count;
    char *device_type;
    GroupMember *members; /* in the order they came */
    Group *group;         /* once complete */
    GroupWaiter *waiters;
    const void **sessions; /* of this task that have joined */
    int session_count;
    Instance *instances;
} GroupEntry;

struct GroupTable {
    pthread_mutex_t mutex; /* guards groups and all that is in them */
    IntMap groups;
};

GroupTable *group_table_new(void) {
    GroupTable *t = xcalloc(1, sizeof *t);
    pthread_mutex_init(&t->mutex, NULL);
    return t;
}

static uint64_t map_key(int32_t key) {
    return (uint32_t)key;
}

static GroupEntry *find_locked(GroupTable *t, int32_t key) {
    return intmap_get(&t->groups, map_key(key));
}

/* ---- Telling, outside of the lock ---- */

static void tell_group(GroupWaiter *w, const Error *err, Group *group) {
    while (w) {
        GroupWaiter *next = w->next;
        w->done(w->arg, error_copy(err), err ? NULL : group_ref(group));
        free(w->device);
        free(w);
        w = next;
    }
}

static void tell_instance(InstanceWaiter *w, const Error *err, int source_rank) {
    while (w) {
        InstanceWaiter *next = w->next;
        w->done(w->arg, error_copy(err), source_rank);
        free(w);
        w = next;
    }
}

static void free_instances(Instance *i) {
    while (i) {
        Instance *next = i->next;
        Error *gone = i->waiters ? error_new(CODE_ABORTED, "The group of collective instance %d has ended", i->key) : NULL;
        tell_instance(i->waiters, gone, -1);
        error_free(gone);
        free(i->known);
        free(i);
        i = next;
    }
}

static void free_entry(GroupEntry *e) {
    if (!e) return;
    free_instances(e->instances);
    for (int i = 0; i < e->count; i++) group_member_clear(&e->members[i]);
    free(e->members);
    free(e->device_type);
    free(e->sessions);
    group_unref(e->group);
    free(e);
}

void group_table_free(GroupTable *t) {
    if (!t) return;
    size_t at = 0;
    void *value;
    while (intmap_next(&t->groups, &at, NULL, &value)) free_entry(value);
    intmap_clear(&t->groups);
    pthread_mutex_destroy(&t->mutex);
    free(t);
}

/* ---- Joining ---- */

static int member_index(const GroupEntry *e, Str device) {
    for (int i = 0; i < e->count; i++)
        if (str_is(device, e->members[i].device)) return i;
    return -1;
}

/* Why the device cannot be a member of this group; the words are TensorFlow's. */
static Error *misfit(const GroupEntry *e, const GroupJoin *j) {
    if (!str_is(j->device_type, e->device_type))
        return error_internal("Device %.*s is joining a group with incompatible device type%s (group_key=%d)", STR_ARG(j->device), e->device_type, e->key);
    if (j->size != e->size)
        return error_internal("Device %.*s is joining a group with size%d, but that group has size %d (group_key=%d)", STR_ARG(j->device), j->size, e->size, e->key);
    if (e->count == e->size && member_index(e, j->device) < 0)
        return error_internal("Device %.*s is joining a group that is already full (group_key=%d)", STR_ARG(j->device), e->key);
    return NULL;
}

static bool has_restarted(const GroupEntry *e, const GroupJoin *j) {
    int i = member_index(e, j->device);
    return i >= 0 && e->members[i].incarnation != j->incarnation;
}

static GroupEntry *entry_new(const GroupJoin *j) {
    GroupEntry *e = xcalloc(1, sizeof *e);
    e->key = j->key;
    e->size = j->size;
    e->device_type = str_dup(j->device_type);
    return e;
}

static void add_member(GroupEntry *e, const GroupJoin *j) {
    int i = member_index(e, j->device);
    if (i >= 0) {
        e->members[i].incarnation = j->incarnation;
        return;
    }
    e->members = xrealloc(e->members, sizeof *e->members * (size_t)(e->count + 1));
    e->members[e->count++] = (GroupMember){str_dup(j->device), str_dup(j->task), j->incarnation, j->memory_limit, j->asks_again};
}

static void add_session(GroupEntry *e, const void *session) {
    for (int i = 0; i < e->session_count; i++)
        if (e->sessions[i] == session) return;
    e->sessions = xrealloc(e->sessions, sizeof *e->sessions * (size_t)(e->session_count + 1));
    e->sessions[e->session_count++] = session;
}

static GroupEntry *remove_locked(GroupTable *t, int32_t key) {
    return intmap_remove(&t->groups, map_key(key));
}

void group_table_join(GroupTable *t, const GroupJoin *j, GroupDone *done, void *arg) {
    GroupEntry *gone = NULL;
    GroupWaiter *told = NULL;
    Group *group = NULL;
    pthread_mutex_lock(&t->mutex);
    GroupEntry *e = find_locked(t, j->key);
    Error *err = e ? misfit(e, j) : NULL;
    bool is_over = e && e->group && (has_restarted(e, j) || (err && e->session_count == 0));
    if (is_over || (err && !e->group)) { /* a group of the past; or one that can never be complete */
        gone = remove_locked(t, j->key);
        told = gone->waiters;
        gone->waiters = NULL;
        e = NULL;
    }
    if (is_over) {
        error_free(err);
        err = NULL;
    }
    if (!err) {
        if (!e) {
            e = entry_new(j);
            intmap_put(&t->groups, map_key(j->key), e);
        }
        add_member(e, j);
        if (j->session) add_session(e, j->session);
        bool is_complete = e->count == e->size;
        if (is_complete && !e->group) {
            e->group = group_new(e->key, str_of(e->device_type), e->members, e->count);
            told = e->waiters;
            e->waiters = NULL;
        }
        if (is_complete) {
            group = group_ref(e->group);
        } else {
            GroupWaiter *w = xcalloc(1, sizeof *w);
            *w = (GroupWaiter){e->waiters, str_dup(j->device), done, arg};
            e->waiters = w;
            done = NULL;
        }
    }
    pthread_mutex_unlock(&t->mutex);
    tell_group(told, err, group);
    if (done) done(arg, err, group ? group_ref(group) : NULL);
    if (!done) error_free(err);
    group_unref(group);
    free_entry(gone);
}

static void remove_member(GroupEntry *e, int i) {
    group_member_clear(&e->members[i]);
    e->members[i] = e->members[--e->count];
}

bool group_table_withdraw(GroupTable *t, int32_t key, void *arg) {
    GroupEntry *gone = NULL;
    GroupWaiter *found = NULL;
    pthread_mutex_lock(&t->mutex);
    GroupEntry *e = find_locked(t, key);
    GroupWaiter **link = e ? &e->waiters : &found;
    while (*link && (*link)->arg != arg) link = &(*link)->next;
    found = *link;
    if (found) {
        *link = found->next;
        bool waits_still = false;
        for (GroupWaiter *w = e->waiters; w; w = w->next) waits_still |= str_is(str_of(w->device), found->device);
        int i = member_index(e, str_of(found->device));
        if (!waits_still && i >= 0) remove_member(e, i);
        if (!e->count) gone = remove_locked(t, key);
    }
    pthread_mutex_unlock(&t->mutex);
    free_entry(gone);
    if (!found) return false;
    free(found->device);
    free(found);
    return true;
}

char *group_table_waits_for(GroupTable *t, int32_t key) {
    StrBuf text = {0};
    pthread_mutex_lock(&t->mutex);
    GroupEntry *e = find_locked(t, key);
    if (e && !e->group) {
        strbuf_addf(&text, "%d of %d members have not come; here are", e->size - e->count, e->size);
        for (int i = 0; i < e->count; i++) strbuf_addf(&text, "%s %s", i ? "," : "", e->members[i].device);
    }
    pthread_mutex_unlock(&t->mutex);
    return text.len ? strbuf_detach(&text) : NULL;
}

/* What members said that will say it again; false when nobody else has said anything. */
static bool forget_words(const Group *g, Instance *i) {
    for (int rank = 0; rank < g->size; rank++) {
        if (!i->known[rank] || !g->members[rank].asks_again) continue;
        i->known[rank] = false;
        i->known_count--;
        if (i->source_rank == rank) i->source_rank = -1;
    }
    return i->known_count > 0;
}

/* The instances that end with the last session: those that somebody waits for, and those of which nothing is left to know. */
static Instance *take_ended(GroupEntry *e) {
    Instance *ended = NULL;
    for (Instance **link = &e->instances; *link;) {
        Instance *i = *link;
        if (!i->waiters && e->group && forget_words(e->group, i)) {
            link = &i->next;
            continue;
        }
        *link = i->next;
        i->next = ended;
        ended = i;
    }
    return ended;
}

void group_table_session_closed(GroupTable *t, const void *session) {
    Instance *gone = NULL;
    size_t at = 0;
    void *value;
    pthread_mutex_lock(&t->mutex);
    while (intmap_next(&t->groups, &at, NULL, &value)) {
        GroupEntry *e = value;
        for (int i = 0; i < e->session_count; i++) {
            if (e->sessions[i] != session) continue;
            e->sessions[i] = e->sessions[--e->session_count];
            if (e->session_count) break;
            Instance *ended = take_ended(e), **end = &ended;
            while (*end) end = &(*end)->next;
            *end = gone;
            gone = ended;
            break;
        }
    }
    pthread_mutex_unlock(&t->mutex);
    free_instances(gone);
}

void group_table_forget(GroupTable *t, int32_t key) {
    pthread_mutex_lock(&t->mutex);
    GroupEntry *e = find_locked(t, key);
    bool is_complete = e && e->group;
    if (is_complete) remove_locked(t, key);
    pthread_mutex_unlock(&t->mutex);
    if (is_complete) free_entry(e);
}

/* ---- Instances ---- */

Error *instance_check(const InstanceJoin *j, CollectiveType type, DataType dtype, const Shape *shape) {
    if (j->type != type || j->dtype != dtype)
        return error_internal("Collective instance %d expected type %d and data_type %d but got type %d and data_type %d", j->instance_key, type, dtype, j->type, j->dtype);
    if (shape_eq(&j->shape, shape)) return NULL;
    char *own = shape_str(&j->shape), *other = shape_str(shape);
    Error *err = error_invalid("Shape mismatch in the collective instance %d. Op at device %.*s expected shape %s but another member in the group expected shape "
                               "%s. This is likely due to different input shapes at different members of the collective op.",
                               j->instance_key, STR_ARG(j->device), own, other);
    free(own);
    free(other);
    return err;
}

static Instance **instance_link(GroupEntry *e, const InstanceJoin *j) {
    Instance **link = &e->instances;
    while (*link && !((*link)->key == j->instance_key && (*link)->step_id == j->step_id)) link = &(*link)->next;
    return link;
}

static Instance *instance_new(const GroupEntry *e, const InstanceJoin *j) {
    Instance *i = xcalloc(1, sizeof *i);
    i->key = j->instance_key;
    i->step_id = j->step_id;
    i->type = j->type;
    i->dtype = j->dtype;
    i->shape = j->shape;
    i->source_rank = -1;
    i->known = xcalloc((size_t)e->size, sizeof *i->known);
    return i;
}

/* What one member says of a broadcast. */
static Error *note_part(Instance *i, const GroupEntry *e, const InstanceJoin *j, int rank) {
    if (!i->known[rank]) {
        i->known[rank] = true;
        i->known_count++;
        if (j->is_source && i->source_rank >= 0)
            return error_internal("Instance %d already has source %d, received second claim from %d", i->key, i->source_rank, rank);
        if (j->is_source) i->source_rank = rank;
    }
    if (i->known_count == e->size && i->source_rank < 0)
        return error_internal("Instance %d found no source for broadcast.  This could mean that there were group_size=%d BcastRecvs but no BcastSend.", i->key,
                              e->size);
    return NULL;
}

/* An instance of another program: this member now has another part in it. */
static bool is_of_the_past(const GroupEntry *e, const Instance *i, const InstanceJoin *j, int rank) {
    if (i->waiters) return false;
    bool has_other_part = i->known_count == e->size && i->type == COLLECTIVE_BROADCAST && j->is_source != (i->source_rank == rank);
    Error *err = e->session_count ? NULL : instance_check(j, i->type, i->dtype, &i->shape);
    bool differs = err != NULL;
    error_free(err);
    return has_other_part || differs;
}

void group_table_instance(GroupTable *t, const InstanceJoin *j, InstanceDone *done, void *arg) {
    Instance *gone = NULL;
    InstanceWaiter *told = NULL;
    int source_rank = -1;
    pthread_mutex_lock(&t->mutex);
    GroupEntry *e = find_locked(t, j->group_key);
    Error *err = e && e->group ? NULL : error_new(CODE_FAILED_PRECONDITION, "group %d not found. This normally means the server has restarted", j->group_key);
    int rank = err ? -1 : group_rank(e->group, j->device);
    if (!err && rank < 0) err = error_new(CODE_FAILED_PRECONDITION, "Device %.*s is not in group %d", STR_ARG(j->device), j->group_key);
    if (!err) {
        Instance **link = instance_link(e, j);
        if (*link && is_of_the_past(e, *link, j, rank)) {
            gone = *link;
            *link = gone->next;
            gone->next = NULL;
            link = instance_link(e, j);
        }
        Instance *i = *link;
        if (!i) *link = i = instance_new(e, j);
        err = instance_check(j, i->type, i->dtype, &i->shape);
        bool is_broadcast = !err && i->type == COLLECTIVE_BROADCAST;
        if (is_broadcast) err = note_part(i, e, j, rank);
        if (is_broadcast && !err && i->known_count < e->size) {
            InstanceWaiter *w = xcalloc(1, sizeof *w);
            *w = (InstanceWaiter){i->waiters, done, arg};
            i->waiters = w;
            done = NULL;
        } else if (is_broadcast) {
            told = i->waiters;
            i->waiters = NULL;
            source_rank = i->source_rank;
        }
        if (is_broadcast && err) { /* the next attempt begins anew */
            *link = i->next;
            i->next = gone;
            gone = i;
        }
    }
    pthread_mutex_unlock(&t->mutex);
    tell_instance(told, err, source_rank);
    if (done) done(arg, err, source_rank);
    free_instances(gone);
}

bool group_table_instance_withdraw(GroupTable *t, const InstanceJoin *j, void *arg) {
    InstanceWaiter *found = NULL;
    pthread_mutex_lock(&t->mutex);
    GroupEntry *e = find_locked(t, j->group_key);
    Instance *i = e ? *instance_link(e, j) : NULL;
    InstanceWaiter **link = i ? &i->waiters : &found;
    while (*link && (*link)->arg != arg) link = &(*link)->next;
    found = *link;
    if (found) *link = found->next;
    int rank = found && e->group ? group_rank(e->group, j->device) : -1;
    if (rank >= 0 && i->known[rank]) {
        i->known[rank] = false;
        i->known_count--;
        if (i->source_rank == rank) i->source_rank = -1;
    }
    pthread_mutex_unlock(&t->mutex);
    free(found);
    return found != NULL;
}
