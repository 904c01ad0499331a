/* group_table.h: GroupTable, where a leader brings together the members of groups and what they do in common.

   Devices join a group until it has its size; each is told then. In a complete group members say of every instance (one collective of a program) its
   kind, type and shape, which must agree, and for a broadcast who is the source.

   A server outlives the programs that use it, and each program counts its keys from one. So a group is kept for good only while a session of this task
   has joined it; after that a member that does not fit begins a new group under the same key, where otherwise it would be told that it does not fit.
   What TensorFlow's tasks said of broadcasts is kept as long as the group: they say it once, whatever sessions come and go. */
#pragma once
#include "base/error.h"
#include "collective/group.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"

typedef struct GroupTable GroupTable; /* thread-safe */

GroupTable *group_table_new(void);
void group_table_free(GroupTable *t); /* nobody may wait any more */

typedef struct GroupJoin {
    int32_t key;
    int size;
    Str device_type;
    Str device, task;
    uint64_t incarnation;
    int64_t memory_limit;
    bool asks_again; /* says in every session what it does in a broadcast */
    const void *session; /* (optional) of this task */
} GroupJoin;

/* Owns err and group. May be called before the function that was given it returns; never with a lock held. */
typedef void GroupDone(void *arg, Error *err, Group *group);
void group_table_join(GroupTable *t, const GroupJoin *join, GroupDone *done, void *arg);
/* No longer waits: true when done will not be called. The device leaves the group unless it waits there otherwise. */
bool group_table_withdraw(GroupTable *t, int32_t key, void *arg);
/* Who has come to a group that is not complete and how many are missing, malloced; NULL when there is no such group. */
char *group_table_waits_for(GroupTable *t, int32_t key);
void group_table_session_closed(GroupTable *t, const void *session);
void group_table_forget(GroupTable *t, int32_t key); /* a complete group: a member has gone */

typedef enum CollectiveType { /* numbered as on the wire */
    COLLECTIVE_REDUCE,
    COLLECTIVE_BROADCAST,
    COLLECTIVE_GATHER,
    COLLECTIVE_PERMUTE,
    COLLECTIVE_ALL_TO_ALL,
    COLLECTIVE_REDUCE_SCATTER,
} CollectiveType;

typedef struct InstanceJoin {
    int32_t group_key, instance_key;
    int group_size;
    int64_t step_id;
    CollectiveType type;
    DataType dtype;
    Shape shape;
    Str name, device, device_type;
    bool is_source;
    const int64_t *subdivs; /* of a ring: the leader of TensorFlow's tasks wants to know */
    int subdiv_count;
} InstanceJoin;

typedef void InstanceDone(void *arg, Error *err, int source_rank); /* owns err; source_rank -1: no broadcast */
void group_table_instance(GroupTable *t, const InstanceJoin *join, InstanceDone *done, void *arg);
bool group_table_instance_withdraw(GroupTable *t, const InstanceJoin *join, void *arg);

/* The two complaints of members that do not agree. */
Error *instance_check(const InstanceJoin *join, CollectiveType type, DataType dtype, const Shape *shape) MUST_CHECK;
