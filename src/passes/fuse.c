/* fuse.c: element-wise nodes that only feed each other become one, which makes one pass over memory; a product that only feeds them joins as their head.

   Nodes are looked at from the end of the graph: one joins the group of its consumers when they are all of one group. So every way out of a group goes through
   its last node, whose name the fused node keeps: no cycle can come of it, and nobody misses the values inside. A head waits for what the rest of its group takes:
   it leaves again when that would be made later than its own inputs. */
#include <stdlib.h>

#include "base/memory.h"
#include "passes/pass_internal.h"

enum { MAX_PARTS = 32, NO_GROUP = 0, MANY_GROUPS = -1 };

typedef struct Group {
    Node *last, *head; /* head: NULL when there is none */
    int size;
    Node **parts; /* the head, then in order; when there are several */
    int count;
} Group;

typedef struct Fuser {
    PassContext *c;
    int *of_node;  /* by node id: 1 + its group; NO_GROUP */
    int *level;    /* by node id: the longest way from the beginning of the graph */
    int *of_users; /* by node id: 1 + the group of all its consumers; MANY_GROUPS: there are several, or one is in none */
    Group *groups;
    int group_count;
} Fuser;

/* Plain values in, one plain value out, no references to variables. */
static bool is_plain(const Node *n) {
    if (n->output_count != 1 || n->input_count < 1 || n->input_count > 3 || !n->info || !dtype_is_plain(n->output_types[0])) return false;
    for (int i = 0; i < n->input_count; i++) {
        DataType t = n->input_types[i];
        if (!dtype_is_plain(t) || n->inputs[i].node->output_types[n->inputs[i].index] != t) return false;
    }
    return !node_is_stateful(n);
}

static int choose_group(Fuser *f, Node *n) {
    int wanted = f->of_users[n->id];
    if (wanted > NO_GROUP && !pass_is_root(f->c, n)) {
        const Group *g = &f->groups[wanted - 1];
        if (g->size < MAX_PARTS && g->last->placed == n->placed) return wanted;
    }
    f->groups[f->group_count] = (Group){.last = n};
    return ++f->group_count;
}

/* A head joins a group and never begins one. */
static int choose_as_head(Fuser *f, Node *n) {
    int wanted = f->of_users[n->id];
    Group *g = wanted > NO_GROUP ? &f->groups[wanted - 1] : NULL;
    if (!g || g->head || pass_is_root(f->c, n) || g->size >= MAX_PARTS || g->last->placed != n->placed) return NO_GROUP;
    g->head = n;
    return wanted;
}

static void use(Fuser *f, const Node *source, int group) {
    int *users = &f->of_users[source->id];
    *users = group > NO_GROUP && (*users == NO_GROUP || *users == group) ? group : MANY_GROUPS;
}

static void find_groups(Fuser *f, Node *const *order, int count) {
    for (int i = count - 1; i >= 0; i--) {
        Node *n = order[i];
        FusionRole role = is_plain(n) ? f->c->runtime->fusion_role(f->c->runtime->arg, n) : FUSION_NONE;
        int group = role == FUSION_ELEMENTWISE ? choose_group(f, n) : role == FUSION_HEAD ? choose_as_head(f, n) : NO_GROUP;
        f->of_node[n->id] = group;
        if (group) f->groups[group - 1].size++;
        for (int j = 0; j < n->input_count; j++) use(f, n->inputs[j].node, role == FUSION_HEAD ? NO_GROUP : group);
        for (int j = 0; j < n->control_count; j++) use(f, n->controls[j], NO_GROUP);
    }
}

/* Whether the group takes what is made no earlier than its head: that would have to wait for it. */
static bool waits_for(const Fuser *f, const Node *part, const Node *head) {
    for (int j = 0; j < part->input_count; j++) {
        const Node *source = part->inputs[j].node;
        if (f->of_node[source->id] != f->of_node[part->id] && f->level[source->id] > f->level[head->id]) return true;
    }
    for (int j = 0; j < part->control_count; j++)
        if (f->level[part->controls[j]->id] > f->level[head->id]) return true;
    return false;
}

static void drop_late_heads(Fuser *f, Node *const *order, int count) {
    bool *late = xcalloc((size_t)f->group_count + 1, sizeof *late);
    for (int i = 0; i < count; i++) {
        int group = f->of_node[order[i]->id];
        const Node *head = group ? f->groups[group - 1].head : NULL;
        if (head && head != order[i] && waits_for(f, order[i], head)) late[group] = true;
    }
    for (int i = 0; i < f->group_count; i++) {
        if (!late[i + 1]) continue;
        f->of_node[f->groups[i].head->id] = NO_GROUP;
        f->groups[i].head = NULL;
        f->groups[i].size--;
    }
    free(late);
}

static void collect_parts(Fuser *f, Node *const *order, int count) {
    for (int i = 0; i < count; i++) {
        Group *group = f->of_node[order[i]->id] ? &f->groups[f->of_node[order[i]->id] - 1] : NULL;
        if (!group || group->size < 2) continue;
        if (!group->parts) {
            group->parts = arena_calloc(f->c->graph->arena, (size_t)group->size, sizeof(Node *));
            if (group->head) group->parts[group->count++] = group->head;
        }
        if (order[i] != group->head) group->parts[group->count++] = order[i];
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

static Error *set_attrs(Graph *g, Node *n, const Group *group, DataType type) {
    Str *ops = arena_calloc(g->arena, (size_t)group->count, sizeof *ops);
    DataType *types = arena_calloc(g->arena, (size_t)n->input_count, sizeof *types);
    for (int i = 0; i < group->count; i++) ops[i] = group->parts[i]->op;
    for (int i = 0; i < n->input_count; i++) types[i] = n->inputs[i].node->output_types[n->inputs[i].index];
    Attr *attrs = arena_alloc(g->arena, 3 * sizeof *attrs);
    attrs[0] = (Attr){STR("T"), attr_make_type(g->arena, type)};
    attrs[1] = (Attr){STR("Targs"), attr_make_types(g->arena, types, n->input_count)};
    attrs[2] = (Attr){STR("fused_ops"), attr_make_strings(g->arena, ops, group->count)};
    n->op = group->head ? STR("_FusedProduct") : STR("_FusedElementwise");
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
    Output *args = arena_calloc(g->arena, 3 * (size_t)group->count, sizeof *args);
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
    return set_attrs(g, fused, group, copy->output_types[0]);
}

Error *pass_fuse(PassContext *c) {
    Graph *g = c->graph;
    int count = g->node_count;
    Node **order = graph_order(g);
    if (!order) return NULL;
    Fuser f = {.c = c};
    f.of_node = xcalloc((size_t)count, sizeof *f.of_node);
    f.of_users = xcalloc((size_t)count, sizeof *f.of_users);
    f.level = graph_levels(g, order);
    f.groups = xcalloc((size_t)count, sizeof *f.groups);
    find_groups(&f, order, count);
    drop_late_heads(&f, order, count);
    collect_parts(&f, order, count);
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
    free(f.level);
    free(f.of_users);
    free(f.of_node);
    free(order);
    return err;
}
