/* fuse.c: element-wise nodes that only feed each other become one, which makes one pass over memory.

   Nodes are looked at from the end of the graph: one joins the group of its consumers when they are all of one group. So every way out of a group goes through
   its last node, whose name the fused node keeps: no cycle can come of it, and nobody misses the values inside. */
#include <stdlib.h>

#include "base/memory.h"
#include "passes/pass_internal.h"

enum { MAX_PARTS = 32, NO_GROUP = 0, MANY_GROUPS = -1 };

typedef struct Group {
    Node *last;
    int size;
    Node **parts; /* in order, when there are several */
    int count;
} Group;

typedef struct Fuser {
    PassContext *c;
    int *of_node;  /* by node id: 1 + its group; NO_GROUP */
    int *of_users; /* by node id: 1 + the group of all its consumers; MANY_GROUPS: there are several, or one is in none */
    Group *groups;
    int group_count;
} Fuser;

static bool is_fusible(const Fuser *f, const Node *n) {
    if (n->output_count != 1 || n->input_count < 1 || n->input_count > 2 || !n->info) return false;
    DataType t = n->output_types[0];
    if (t != DT_FLOAT && t != DT_DOUBLE && t != DT_HALF && t != DT_BFLOAT16) return false;
    for (int i = 0; i < n->input_count; i++)
        if (n->input_types[i] != t || n->inputs[i].node->output_types[n->inputs[i].index] != t) return false;
    return !node_is_stateful(n) && f->c->runtime->is_elementwise(f->c->runtime->arg, n);
}

static int choose_group(Fuser *f, Node *n) {
    int wanted = f->of_users[n->id];
    if (wanted > NO_GROUP && !pass_is_root(f->c, n)) {
        const Group *g = &f->groups[wanted - 1];
        if (g->size < MAX_PARTS && g->last->placed == n->placed && g->last->output_types[0] == n->output_types[0]) return wanted;
    }
    f->groups[f->group_count] = (Group){.last = n};
    return ++f->group_count;
}

static void use(Fuser *f, const Node *source, int group) {
    int *users = &f->of_users[source->id];
    *users = group > NO_GROUP && (*users == NO_GROUP || *users == group) ? group : MANY_GROUPS;
}

static void find_groups(Fuser *f, Node *const *order, int count) {
    for (int i = count - 1; i >= 0; i--) {
        Node *n = order[i];
        int group = is_fusible(f, n) ? choose_group(f, n) : NO_GROUP;
        f->of_node[n->id] = group;
        if (group) f->groups[group - 1].size++;
        for (int j = 0; j < n->input_count; j++) use(f, n->inputs[j].node, group);
        for (int j = 0; j < n->control_count; j++) use(f, n->controls[j], NO_GROUP);
    }
}

/* ---- One group ---- */

/* Which input of the fused node the value is; added when it is new. */
static int argument(Output *args, int *count, Output o) {
    for (int i = 0; i < *count; i++)
        if (args[i].node == o.node && args[i].index == o.index) return i;
    args[*count] = o;
    return (*count)++;
}

static Error *set_attrs(Graph *g, Node *n, const Group *group, DataType type, int arg_count) {
    Str *ops = arena_calloc(g->arena, (size_t)group->count, sizeof *ops);
    for (int i = 0; i < group->count; i++) ops[i] = group->parts[i]->op;
    Attr *attrs = arena_alloc(g->arena, 3 * sizeof *attrs);
    attrs[0] = (Attr){STR("T"), attr_make_type(g->arena, type)};
    attrs[1] = (Attr){STR("N"), attr_make_int(g->arena, arg_count)};
    attrs[2] = (Attr){STR("fused_ops"), attr_make_strings(g->arena, ops, group->count)};
    n->op = STR("_FusedElementwise");
    n->attrs = attrs;
    n->attr_count = 3;
    return node_resolve(g, n);
}

/* The last node becomes the fused one; a copy of it is the last part. */
static Error *fuse(Fuser *f, const Group *group) {
    Graph *g = f->c->graph;
    Node *fused = group->last, *copy = arena_alloc(g->arena, sizeof *copy);
    int own = f->of_node[fused->id];
    *copy = *fused;
    group->parts[group->count - 1] = copy;
    Output *args = arena_calloc(g->arena, 2 * (size_t)group->count, sizeof *args);
    int arg_count = 0;
    for (int i = 0; i < group->count; i++) {
        Node *part = group->parts[i];
        Output *inputs = arena_calloc(g->arena, (size_t)part->input_count, sizeof *inputs);
        for (int j = 0; j < part->input_count; j++) {
            Output in = part->inputs[j];
            bool inside = in.node->id < f->c->root_count && f->of_node[in.node->id] == own;
            inputs[j] = inside ? in : (Output){NULL, argument(args, &arg_count, in)};
        }
        part->inputs = inputs;
        for (int j = 0; part != copy && j < part->control_count; j++) node_add_control(g, fused, part->controls[j]);
    }
    fused->inputs = args;
    fused->input_count = arg_count;
    fused->parts = group->parts;
    fused->part_count = group->count;
    return set_attrs(g, fused, group, copy->output_types[0], arg_count);
}

Error *pass_fuse(PassContext *c) {
    Graph *g = c->graph;
    int count = g->node_count;
    Node **order = graph_order(g);
    if (!order) return NULL;
    Fuser f = {.c = c};
    f.of_node = xcalloc((size_t)count, sizeof *f.of_node);
    f.of_users = xcalloc((size_t)count, sizeof *f.of_users);
    f.groups = xcalloc((size_t)count, sizeof *f.groups);
    find_groups(&f, order, count);
    for (int i = 0; i < count; i++) {
        Group *group = f.of_node[order[i]->id] ? &f.groups[f.of_node[order[i]->id] - 1] : NULL;
        if (!group || group->size < 2) continue;
        if (!group->parts) group->parts = arena_calloc(g->arena, (size_t)group->size, sizeof(Node *));
        group->parts[group->count++] = order[i];
    }
    Error *err = NULL;
    for (int i = 0; !err && i < f.group_count; i++) {
        if (f.groups[i].size < 2) continue;
        err = fuse(&f, &f.groups[i]);
        c->changed = true;
    }
    if (!err && c->changed) pass_sweep(c);
    c->changed = false;
    for (int i = 0; !err && i < g->node_count; i++) /* parts are numbered when the graph no longer knows them */
        for (int j = 0; j < g->nodes[i]->part_count; j++) g->nodes[i]->parts[j]->id = j;
    free(f.groups);
    free(f.of_users);
    free(f.of_node);
    free(order);
    return err;
}
