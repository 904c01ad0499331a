/* session.h: CollectiveSession, what the collectives of one session work with: groups and instances that are agreed on, and the way to the others. */
#pragma once
#include "collective/group_table.h"
#include "runtime/rendezvous.h"
#include "runtime/session_state.h"

/* How a session reaches the leader of its groups and the members of them; the cluster provides it. What waits ends when the rendezvous is aborted. */
typedef struct CollectiveLink {
    void *self;
    void (*join_group)(void *self, Rendezvous *r, const GroupJoin *join, GroupDone *done, void *arg);
    void (*join_instance)(void *self, Rendezvous *r, const InstanceJoin *join, InstanceDone *done, void *arg);
    /* The bytes that a member of another task offers under the key, as a tensor of any plain dtype. */
    void (*recv)(void *self, Rendezvous *r, const GroupMember *from, Str to_device, Str key, size_t size_bytes, RecvDone *done, void *arg);
    void (*lose_group)(void *self, int32_t key);       /* a member has gone: the leader begins the group anew */
    char *(*waits_for)(void *self, int32_t group_key); /* what is missing, for people; malloced */
} CollectiveLink;

CollectiveSession *collective_session_new(const CollectiveLink *link);
void collective_session_free(CollectiveSession *s); /* NULL is allowed */
const CollectiveLink *collective_session_link(const CollectiveSession *s);

/* What is known here: a reference, or NULL. */
Group *collective_session_group(CollectiveSession *s, int32_t key);
void collective_session_set_group(CollectiveSession *s, Group *g); /* keeps a reference */

typedef struct KnownInstance {
    CollectiveType type;
    DataType dtype;
    Shape shape;
    int source_rank;
} KnownInstance;
bool collective_session_instance(CollectiveSession *s, int32_t group_key, int32_t instance_key, KnownInstance *out);
void collective_session_set_instance(CollectiveSession *s, int32_t group_key, int32_t instance_key, const KnownInstance *known);
/* A collective of the group failed: all must be agreed on again. */
void collective_session_forget(CollectiveSession *s, int32_t group_key);
