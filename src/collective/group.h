/* group.h: Group, the devices that take part in a collective, in the order of their ranks. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/refcount.h"
#include "base/str.h"

typedef struct GroupMember {
    char *device, *task; /* "/job:worker/replica:0/task:1/device:CPU:0" and its task */
    uint64_t incarnation;
    int64_t memory_limit;
    bool asks_again; /* in every session (Rill's tasks), not once for all (TensorFlow's) */
} GroupMember;

/* Complete and immutable; shared by reference. */
typedef struct Group {
    RefCount refs;
    int32_t key;
    int size, task_count;
    char *device_type;
    GroupMember *members; /* by rank; those of one task are neighbours */
} Group;

/* Members are borrowed and come in any order: the ranks are by job, replica, task, type and number of the device, as TensorFlow gives them. */
Group *group_new(int32_t key, Str device_type, const GroupMember *members, int count);
Group *group_ref(Group *g);
void group_unref(Group *g); /* NULL is allowed */
int group_rank(const Group *g, Str device); /* -1: not a member */
GroupMember group_member_copy(const GroupMember *m);
void group_member_clear(GroupMember *m);
