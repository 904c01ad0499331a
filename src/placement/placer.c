/* placer.c: groups of nodes that must stay together, and a device for each group.

   Nodes joined by a reference or resource edge, or by a "loc:@name" class, form a group (union-find). A group has a strong wish, from the
   nodes that own resources (variables, queues), and a weak one, from all others; where they clash the strong one wins, so an op on a variable
   goes to the variable whatever its own device says. Of the devices that fit, those are taken that say they can run the whole group. */
#include "placement/placer.h"

#include <stdlib.h>
#include <strings.h>

#include "base/memory.h"

typedef struct Group {
    int parent; /* union-find */
    int size;
    DeviceName strong, weak;
    int fixed; /* 1 + device, 0 when free */
    uint64_t kinds; /* bits of the kinds of device that can run all of it */
} Group;

enum { MAX_KINDS = 64 };

typedef struct Placer {
    Graph *g;
    const PlacerOptions *o;
    Group *groups;  /* by node id */
    StrMap classes; /* "name" of loc:@name -> 1 + node id, for names that are no node */
    StrMap specs;   /* device text -> DeviceName, parsed once */
    Arena *arena;
    int *rank; /* device indexes, best first */
    int *kind; /* by device: devices with the same can_run are of one kind */
    bool (*can_run[MAX_KINDS])(const Node *node);
    int kind_count;
} Placer;

static int find_root(Placer *p, int i) {
    while (p->groups[i].parent != i) {
        p->groups[i].parent = p->groups[p->groups[i].parent].parent;
        i = p->groups[i].parent;
    }
    return i;
}

static Error *parse_spec(Placer *p, const Node *n, const DeviceName **out) {
    DeviceName *spec = strmap_get(&p->specs, n->device);
    if (!spec) {
        spec = arena_calloc(p->arena, 1, sizeof *spec);
        Error *err = device_name_parse(n->device, spec);
        if (err) return error_append(err, " in node {{node %.*s}}", STR_ARG(n->name));
        strmap_put(&p->specs, n->device, spec);
    }
    *out = spec;
    return NULL;
}

/* A node without inputs whose only output is a reference or a resource owns what it names. */
static bool owns_resource(const Node *n) {
    return n->info && n->input_count == 0 && n->output_count == 1 && (dtype_is_ref(n->output_types[0]) || n->output_types[0] == DT_RESOURCE);
}

static const char *what_differs(const DeviceName *a, const DeviceName *b) {
    if (a->has_job && b->has_job && !str_eq(a->job, b->job)) return "jobs";
    if (a->has_replica && b->has_replica && a->replica != b->replica) return "replicas";
    if (a->has_task && b->has_task && a->task != b->task) return "tasks";
    return a->has_id && b->has_id && a->id != b->id ? "ids" : "types";
}

/* `a` asked for it. */
static Error *clash(const Node *a, const Node *b, const DeviceName *da, const DeviceName *db) {
    Arena *scratch = arena_new();
    Error *err = error_invalid("Cannot colocate nodes {{colocation_node %.*s}} and {{colocation_node %.*s}}: Cannot merge devices with incompatible %s: '%.*s' and '%.*s'\n\t [[{{node %.*s}}]]",
                               STR_ARG(a->name), STR_ARG(b->name), what_differs(da, db), STR_ARG(device_name_text(scratch, da)),
                               STR_ARG(device_name_text(scratch, db)), STR_ARG(a->name));
    arena_free(scratch);
    return err;
}

/* Joins the groups of two nodes. With `first_wins` a clash of weak wishes is settled for the first. */
static Error *join(Placer *p, const Node *a, const Node *b, bool first_wins) {
    int ra = find_root(p, a->id), rb = find_root(p, b->id);
    if (ra == rb) return NULL;
    Group *ga = &p->groups[ra], *gb = &p->groups[rb];
    DeviceName strong = ga->strong, weak = ga->weak;
    if (!device_name_merge(&strong, &gb->strong, p->o->soft)) {
        if (p->o->soft) return NULL;
        return clash(b, p->g->nodes[ra], &gb->strong, &ga->strong);
    }
    if (!device_name_merge(&weak, &gb->weak, p->o->soft)) {
        bool strong_decides = ga->strong.has_job || gb->strong.has_job || ga->strong.has_task || gb->strong.has_task;
        if (!first_wins && !strong_decides) {
            if (p->o->soft) return NULL;
            return clash(b, p->g->nodes[ra], &gb->weak, &ga->weak);
        }
    }
    if (ga->fixed && gb->fixed && ga->fixed != gb->fixed) return NULL; /* both already live somewhere: neither can move */
    if (ga->size < gb->size) {
        int swap = ra;
        ra = rb;
        rb = swap;
    }
    Group *root = &p->groups[ra], *child = &p->groups[rb];
    child->parent = ra;
    root->size += child->size;
    root->strong = strong;
    root->weak = weak;
    root->kinds &= child->kinds;
    if (child->fixed) root->fixed = child->fixed;
    return NULL;
}

/* Ops that take resources from anywhere: they only hand them on to functions, or forward a list. */
static bool is_exempt(const Node *n) {
    static const char *const ops[] = {"IdentityN", "PartitionedCall", "StatefulPartitionedCall", "If", "StatelessIf", "While", "StatelessWhile", "Case",
                                      "StatelessCase", "RemoteCall", "For", "MapDataset", "ParallelMapDataset", "ParallelMapDatasetV2", "FilterDataset",
                                      "FlatMapDataset", "InterleaveDataset", "ParallelInterleaveDatasetV2", "ReduceDataset", "MapDefun"};
    for (size_t i = 0; i < sizeof ops / sizeof ops[0]; i++)
        if (node_is(n, ops[i])) return true;
    return false;
}

static Error *join_by_edges(Placer *p, Node *n) {
    if (!n->info || is_exempt(n)) return NULL;
    for (int i = 0; i < n->input_count; i++) {
        DataType type = n->input_types[i];
        if (!dtype_is_ref(type) && type != DT_RESOURCE) continue;
        Error *err = join(p, n->inputs[i].node, n, true);
        if (err) return err;
    }
    return NULL;
}

static Error *join_by_class(Placer *p, Node *n) {
    Str value;
    if (!node_attr(n, "_class", &value)) return NULL;
    int count = attr_list_strings(value, NULL, 0);
    if (count <= 0) return NULL;
    Str *names = xcalloc((size_t)count, sizeof *names);
    attr_list_strings(value, names, count);
    Error *err = NULL;
    for (int i = 0; !err && i < count; i++) {
        if (!str_starts(names[i], STR("loc:@"))) continue;
        Str name = str_slice(names[i], 5, names[i].len);
        Node *anchor = graph_find(p->g, name);
        if (!anchor) {
            intptr_t seen = (intptr_t)strmap_get(&p->classes, name);
            if (!seen)
                strmap_put(&p->classes, arena_str(p->arena, name), (void *)(intptr_t)(n->id + 1));
            else
                anchor = p->g->nodes[seen - 1];
        }
        if (anchor) err = join(p, anchor, n, false);
    }
    free(names);
    return err;
}

static uint64_t kinds_that_run(const Placer *p, const Node *n) {
    uint64_t kinds = 0;
    for (int i = 0; i < p->kind_count; i++)
        if (!p->can_run[i] || p->can_run[i](n)) kinds |= 1ull << i;
    return kinds;
}

static Error *start_groups(Placer *p) {
    for (int i = 0; i < p->g->node_count; i++) {
        Node *n = p->g->nodes[i];
        const DeviceName *spec = NULL;
        Error *err = parse_spec(p, n, &spec);
        if (err) return err;
        Group *group = &p->groups[i];
        *group = (Group){.parent = i, .size = 1, .kinds = kinds_that_run(p, n)};
        if (owns_resource(n))
            group->strong = *spec;
        else
            group->weak = *spec;
        if (p->o->fixed && node_is_stateful(n)) group->fixed = (int)(intptr_t)strmap_get(p->o->fixed, n->name);
    }
    Error *err = NULL;
    for (int i = 0; !err && i < p->g->node_count; i++) err = join_by_edges(p, p->g->nodes[i]);
    for (int i = 0; !err && i < p->g->node_count; i++) err = join_by_class(p, p->g->nodes[i]);
    return err;
}

/* ---- Devices ---- */

/* By type, then the master's own task, then name. */
static bool is_better(const PlacerDevice *a, const PlacerDevice *b) {
    if (a->priority != b->priority) return a->priority > b->priority;
    if (a->is_local != b->is_local) return a->is_local;
    return str_compare(a->name, b->name) < 0;
}

static DeviceName group_spec(const Group *group) {
    DeviceName spec = group->strong;
    device_name_fill(&spec, &group->weak);
    return spec;
}

static int first_match(const Placer *p, const DeviceName *spec, uint64_t kinds) {
    for (int i = 0; i < p->o->device_count; i++) {
        int device = p->rank[i];
        if ((kinds >> p->kind[device] & 1) && device_name_matches(spec, &p->o->devices[device].parsed)) return device;
    }
    return -1;
}

static int soft_match(const Placer *p, DeviceName spec, uint64_t kinds) {
    int device = first_match(p, &spec, kinds);
    if (device >= 0 || !p->o->soft) return device;
    spec.has_type = spec.has_id = false;
    return first_match(p, &spec, kinds);
}

static int compare_names(const void *a, const void *b) {
    return str_compare(*(const Str *)a, *(const Str *)b);
}

static Error *no_device(const Placer *p, const Node *n, const DeviceName *spec) {
    StrBuf list = {0};
    Str *names = xcalloc((size_t)p->o->device_count, sizeof *names);
    for (int i = 0; i < p->o->device_count; i++) names[i] = p->o->devices[i].name;
    qsort(names, (size_t)p->o->device_count, sizeof *names, compare_names);
    for (int i = 0; i < p->o->device_count && list.len < 1500; i++) strbuf_addf(&list, "%s%.*s", i ? ", " : "", STR_ARG(names[i]));
    free(names);
    Arena *scratch = arena_new();
    bool wants_gpu = spec->has_type && strncasecmp(spec->type.ptr, "GPU", spec->type.len) == 0;
    Error *err = error_invalid("Cannot assign a device for operation %.*s: {{node %.*s}} was explicitly assigned to %.*s but available devices are [ %s ]. "
                               "Make sure the device specification refers to a valid device.%s\n\t [[%.*s]]",
                               STR_ARG(n->name), STR_ARG(n->name), STR_ARG(n->device.len ? n->device : device_name_text(scratch, spec)), list.len ? list.ptr : "",
                               wants_gpu ? " The requested device appears to be a GPU, but CUDA is not enabled." : "", STR_ARG(n->name));
    arena_free(scratch);
    strbuf_clear(&list);
    return err;
}

static Error *choose(Placer *p, const Node *n, int root, int *device) {
    const Group *group = &p->groups[root];
    if (group->fixed) {
        *device = group->fixed - 1;
        return NULL;
    }
    DeviceName spec = group_spec(group);
    *device = soft_match(p, spec, group->kinds);
    if (*device < 0) *device = soft_match(p, spec, UINT64_MAX); /* it will say why it cannot run the node */
    return *device < 0 ? no_device(p, n, &spec) : NULL;
}

/* ---- Small nodes that go where their neighbours are ---- */

static bool is_source(const Node *n) {
    return n->info && n->input_count == 0 && n->output_count == 1 && !dtype_is_ref(n->output_types[0]);
}

static bool is_generator(const Node *n) {
    return is_source(n) && n->output_types[0] != DT_RESOURCE;
}

static bool is_metadata(const Node *n) {
    return node_is(n, "Shape") || node_is(n, "Size") || node_is(n, "Rank");
}

/* May this single node go to that device? */
static bool may_move(Placer *p, const Node *n, int device) {
    int root = find_root(p, n->id);
    if (p->groups[root].size != 1 || p->groups[root].fixed) return false;
    DeviceName spec = group_spec(&p->groups[root]);
    return (p->groups[root].kinds >> p->kind[device] & 1) && device_name_matches(&spec, &p->o->devices[device].parsed);
}

static void follow_neighbours(Placer *p) {
    /* Where all consumers of a node are: -1 none yet, -2 several places. */
    int *place = xcalloc((size_t)p->g->node_count, sizeof *place);
    for (int i = 0; i < p->g->node_count; i++) place[i] = -1;
    for (int i = 0; i < p->g->node_count; i++) {
        const Node *n = p->g->nodes[i];
        for (int j = 0; j < n->input_count + n->control_count; j++) {
            int src = j < n->input_count ? n->inputs[j].node->id : n->controls[j - n->input_count]->id;
            place[src] = place[src] == -1 || place[src] == n->placed ? n->placed : -2;
        }
    }
    for (int i = 0; i < p->g->node_count; i++) {
        Node *n = p->g->nodes[i];
        if (is_generator(n) && place[i] >= 0 && may_move(p, n, place[i]))
            n->placed = place[i];
        else if (is_metadata(n) && n->input_count == 1 && may_move(p, n, n->inputs[0].node->placed))
            n->placed = n->inputs[0].node->placed;
    }
    free(place);
}

/* What only gives a value comes last, so that an error is told of who takes it. */
static Error *choose_all(Placer *p, bool sources, int *chosen) {
    Error *err = NULL;
    for (int i = 0; !err && i < p->g->node_count; i++) {
        Node *n = p->g->nodes[i];
        if (is_source(n) != sources) continue;
        int root = find_root(p, i);
        if (!chosen[root]) {
            int device;
            err = choose(p, n, root, &device);
            if (!err) chosen[root] = device + 1;
        }
        n->placed = chosen[root] - 1;
    }
    return err;
}

static Error *place(Placer *p) {
    Error *err = start_groups(p);
    int *chosen = xcalloc((size_t)p->g->node_count, sizeof *chosen); /* 1 + device, by root */
    err = err ? err : choose_all(p, false, chosen);
    err = err ? err : choose_all(p, true, chosen);
    free(chosen);
    if (!err) follow_neighbours(p);
    return err;
}

/* More kinds than there are bits share the last one, which then is not asked. */
static void sort_kinds(Placer *p) {
    for (int i = 0; i < p->o->device_count; i++) {
        int k = 0;
        while (k < p->kind_count && p->can_run[k] != p->o->devices[i].can_run) k++;
        if (k == MAX_KINDS) p->can_run[--k] = NULL;
        if (k == p->kind_count) p->can_run[p->kind_count++] = p->o->devices[i].can_run;
        p->kind[i] = k;
    }
}

Error *graph_place(Graph *g, const PlacerOptions *options) {
    if (options->device_count == 0) return error_internal("There are no devices to place the graph on");
    Placer p = {.g = g, .o = options, .arena = arena_new()};
    p.groups = xcalloc((size_t)g->node_count, sizeof *p.groups);
    p.rank = xcalloc((size_t)options->device_count, sizeof *p.rank);
    p.kind = xcalloc((size_t)options->device_count, sizeof *p.kind);
    sort_kinds(&p);
    for (int i = 0; i < options->device_count; i++) p.rank[i] = i;
    for (int i = 1; i < options->device_count; i++) { /* insertion sort: there are few */
        int device = p.rank[i], at = i;
        for (; at > 0 && is_better(&options->devices[device], &options->devices[p.rank[at - 1]]); at--) p.rank[at] = p.rank[at - 1];
        p.rank[at] = device;
    }
    Error *err = place(&p);
    strmap_clear(&p.classes);
    strmap_clear(&p.specs);
    arena_free(p.arena);
    free(p.groups);
    free(p.rank);
    free(p.kind);
    return err;
}
