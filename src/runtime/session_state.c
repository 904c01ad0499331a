/* session_state.c: kernel states and private resources of a session. */
#include "runtime/session_state.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/hashmap.h"
#include "base/block_cache.h"
#include "base/memory.h"

typedef struct KernelState {
    char *name;
    const KernelDef *def;
    void *state;
} KernelState;

typedef struct PrivateName {
    char *node_name, *name;
    Device *device;
    const ResourceType *type;
} PrivateName;

struct SessionState {
    RefCount refs;
    CollectiveSession *collectives;
    pthread_mutex_t mutex; /* guards all below */
    StrMap kernels;        /* node name -> KernelState */
    StrMap names;          /* node name -> PrivateName */
    DeviceSet devices;
    Device *renamed; /* own copies of the devices, under other names; NULL: the process's own */
    ResourceManager **isolated; /* one for each device; NULL: the devices' own */
    bool closed;
};

static void copy_devices(SessionState *s, const DeviceSet *devices, Str task_name) {
    bool rename = task_name.len && !str_starts(str_of(devices->devices[0]->name), task_name);
    s->devices = (DeviceSet){xcalloc((size_t)devices->count, sizeof(Device *)), devices->count};
    if (rename) s->renamed = xcalloc((size_t)devices->count, sizeof *s->renamed);
    for (int i = 0; i < devices->count; i++) {
        s->devices.devices[i] = devices->devices[i];
        if (!rename) continue;
        s->renamed[i] = *devices->devices[i];
        s->renamed[i].name = xasprintf("%.*s/device:%s:%d", STR_ARG(task_name), devices->devices[i]->kind->type, i);
        s->devices.devices[i] = &s->renamed[i];
    }
}

SessionState *session_state_new(const DeviceSet *devices, Str task_name, bool isolate) {
    SessionState *s = xcalloc(1, sizeof *s);
    refcount_init(&s->refs);
    pthread_mutex_init(&s->mutex, NULL);
    copy_devices(s, devices, task_name);
    if (!isolate) return s;
    s->isolated = xcalloc((size_t)devices->count, sizeof(ResourceManager *));
    for (int i = 0; i < devices->count; i++)
        s->isolated[i] = resource_manager_new(resource_default_container(devices->devices[i]->resources));
    return s;
}

const DeviceSet *session_devices(const SessionState *s) {
    return &s->devices;
}

SessionState *session_state_ref(SessionState *s) {
    refcount_inc(&s->refs);
    return s;
}

void session_set_collectives(SessionState *s, CollectiveSession *c) {
    s->collectives = c;
}

CollectiveSession *session_collectives(const SessionState *s) {
    return s->collectives;
}

ResourceManager *session_resources(SessionState *s, Device *d) {
    for (int i = 0; s->isolated && i < s->devices.count; i++)
        if (s->devices.devices[i] == d) return s->isolated[i];
    return d->resources;
}

/* Names only come to the map and stay as long as the session, so those seen under the lock may be used without it. */
static void delete_private(SessionState *s) {
    pthread_mutex_lock(&s->mutex);
    size_t at = 0, count = 0;
    PrivateName **names = xcalloc(s->names.count, sizeof *names);
    void *value;
    while (strmap_next(&s->names, &at, NULL, &value)) names[count++] = value;
    pthread_mutex_unlock(&s->mutex);
    for (size_t i = 0; i < count; i++) error_free(resource_delete(session_resources(s, names[i]->device), STR(""), str_of(names[i]->name), names[i]->type));
    free(names);
}

void session_state_close(SessionState *s) {
    pthread_mutex_lock(&s->mutex);
    bool first = !s->closed;
    s->closed = true;
    pthread_mutex_unlock(&s->mutex);
    if (first) delete_private(s);
    if (first) block_cache_trim(); /* the next session may need other sizes */
    for (int i = 0; first && s->isolated && i < s->devices.count; i++) resource_clear_container(s->isolated[i], STR(""));
}

void session_state_unref(SessionState *s) {
    if (!s || !refcount_dec(&s->refs)) return;
    delete_private(s);
    size_t at = 0;
    void *value;
    while (strmap_next(&s->kernels, &at, NULL, &value)) {
        KernelState *k = value;
        if (k->def->clear) k->def->clear(k->state);
        free(k->state);
        free(k->name);
        free(k);
    }
    at = 0;
    while (strmap_next(&s->names, &at, NULL, &value)) {
        PrivateName *p = value;
        free(p->node_name);
        free(p->name);
        free(p);
    }
    strmap_clear(&s->kernels);
    strmap_clear(&s->names);
    for (int i = 0; s->isolated && i < s->devices.count; i++) resource_manager_free(s->isolated[i]);
    free(s->isolated);
    for (int i = 0; s->renamed && i < s->devices.count; i++) free(s->renamed[i].name);
    free(s->renamed);
    free(s->devices.devices);
    pthread_mutex_destroy(&s->mutex);
    free(s);
}

Error *session_kernel_state(SessionState *s, const Node *node, const KernelDef *def, void **out) {
    pthread_mutex_lock(&s->mutex);
    KernelState *k = strmap_get(&s->kernels, node->name);
    Error *err = NULL;
    if (!k || k->def != def) {
        void *state = xcalloc(1, def->state_size);
        err = def->init ? def->init(node, state) : NULL;
        if (!err && k) /* the name now stands for another op: the old state stays until the session ends, under no name */
            err = error_invalid("Node %.*s was a %s before and is now a %s in the same session", STR_ARG(node->name), k->def->op, def->op);
        if (err) {
            if (def->clear) def->clear(state);
            free(state);
        } else {
            k = xcalloc(1, sizeof *k);
            *k = (KernelState){str_dup(node->name), def, state};
            strmap_put(&s->kernels, str_of(k->name), k);
        }
    }
    if (!err) *out = k->state;
    pthread_mutex_unlock(&s->mutex);
    return err;
}

Str session_private_name(SessionState *s, Device *d, Str node_name, const ResourceType *type) {
    static _Atomic int64_t counter; /* of the process, so that names never meet */
    pthread_mutex_lock(&s->mutex);
    PrivateName *p = strmap_get(&s->names, node_name);
    if (!p) {
        p = xcalloc(1, sizeof *p);
        *p = (PrivateName){str_dup(node_name), xasprintf("_%lld_%.*s", (long long)atomic_fetch_add(&counter, 1), STR_ARG(node_name)), d, type};
        strmap_put(&s->names, str_of(p->node_name), p);
    }
    Str name = str_of(p->name);
    pthread_mutex_unlock(&s->mutex);
    return name;
}
