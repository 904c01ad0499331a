/* group.c: members sorted to ranks. */
#include "collective/group.h"

#include <stdlib.h>

#include "base/error.h"
#include "base/memory.h"
#include "placement/device_name.h"

static int by_number(int a, int b) {
    return (a > b) - (a < b);
}

static int by_device(const void *a, const void *b) {
    Str name_a = str_of(((const GroupMember *)a)->device), name_b = str_of(((const GroupMember *)b)->device);
    DeviceName x = {0}, y = {0};
    Error *err_x = device_name_parse(name_a, &x), *err_y = device_name_parse(name_b, &y);
    bool parsed = !err_x && !err_y;
    error_free(err_x);
    error_free(err_y);
    int order = parsed ? str_compare(x.job, y.job) : 0;
    if (parsed && !order) order = by_number(x.replica, y.replica);
    if (parsed && !order) order = by_number(x.task, y.task);
    if (parsed && !order) order = str_compare(x.type, y.type);
    if (parsed && !order) order = by_number(x.id, y.id);
    return order ? order : str_compare(name_a, name_b);
}

GroupMember group_member_copy(const GroupMember *m) {
    return (GroupMember){xstrdup(m->device), xstrdup(m->task), m->incarnation, m->memory_limit, m->asks_again};
}

void group_member_clear(GroupMember *m) {
    free(m->device);
    free(m->task);
    *m = (GroupMember){0};
}

Group *group_new(int32_t key, Str device_type, const GroupMember *members, int count) {
    Group *g = xcalloc(1, sizeof *g);
    refcount_init(&g->refs);
    g->key = key;
    g->size = count;
    g->device_type = str_dup(device_type);
    g->members = xcalloc((size_t)count, sizeof *g->members);
    for (int i = 0; i < count; i++) g->members[i] = group_member_copy(&members[i]);
    qsort(g->members, (size_t)count, sizeof *g->members, by_device);
    for (int i = 0; i < count; i++)
        if (i == 0 || !str_is(str_of(g->members[i].task), g->members[i - 1].task)) g->task_count++;
    return g;
}

Group *group_ref(Group *g) {
    refcount_inc(&g->refs);
    return g;
}

void group_unref(Group *g) {
    if (!g || !refcount_dec(&g->refs)) return;
    for (int i = 0; i < g->size; i++) group_member_clear(&g->members[i]);
    free(g->members);
    free(g->device_type);
    free(g);
}

int group_rank(const Group *g, Str device) {
    for (int i = 0; i < g->size; i++)
        if (str_is(device, g->members[i].device)) return i;
    return -1;
}
