/* prune.c: walks back from fetches and targets, stops at feeds. */
#include "graph/prune.h"

#include <stdlib.h>

#include "base/memory.h"

bool tensor_name_parse(Str text, Str *node, int *index) {
    ptrdiff_t colon = str_find(text, ':');
    int64_t position = 0;
    *node = colon < 0 ? text : str_slice(text, 0, (size_t)colon);
    if (colon >= 0 && (!str_to_int64(str_slice(text, (size_t)colon + 1, text.len), &position) || position < 0 || position > 1 << 24)) return false;
    *index = (int)position;
    return node->len > 0;
}

char *client_key(const ClientDevice *client, Str tensor_name) {
    return xasprintf("%.*s;%016llx;%.*s;%.*s;0:0", STR_ARG(client->name), (unsigned long long)client->incarnation, STR_ARG(client->name), STR_ARG(tensor_name));
}

typedef struct Pruner {
    const Graph *g;
    const RunSignature *signature;
    const ClientDevice *client;
    Graph *out;
    Output *feeds;     /* what each feed replaces */
    Node **feed_nodes; /* its _Recv, made when used */
    int *fed;          /* by node id: 1 + a feed of that node, 0 when none (others are found by search) */
    Node **copies;     /* by node id */
    const Node **stack;
    int depth;
} Pruner;

static Error *find_tensor(const Graph *g, Str name, const char *what, Output *out) {
    Str node;
    int index;
    if (!tensor_name_parse(name, &node, &index)) return error_invalid("%s '%.*s' is not a tensor name", what, STR_ARG(name));
    out->node = graph_find(g, node);
    out->index = index;
    if (!out->node) return error_not_found("%s %.*s: not found", what, STR_ARG(name));
    if (out->node->info && out->node->output_count && index >= out->node->output_count)
        return error_invalid("%s %.*s: output index too large, must be < %d", what, STR_ARG(name), out->node->output_count);
    return NULL;
}

static int feed_of(const Pruner *p, Output o) {
    if (!p->fed[o.node->id]) return -1;
    for (int i = 0; i < p->signature->feed_count; i++)
        if (p->feeds[i].node == o.node && p->feeds[i].index == o.index) return i;
    return -1;
}

static Error *find_feeds(Pruner *p) {
    for (int i = 0; i < p->signature->feed_count; i++) {
        Str name = p->signature->feeds[i];
        Output o;
        Error *err = find_tensor(p->g, name, "FeedInputs: unable to find feed output", &o);
        if (!err && !o.node->info) err = error_not_found("Op type not registered '%.*s', so %.*s cannot be fed", STR_ARG(o.node->op), STR_ARG(name));
        if (!err && !o.node->output_count) err = error_invalid("FeedInputs: %.*s produces no output that could be fed", STR_ARG(name));
        if (err) return err;
        if (feed_of(p, o) >= 0) return error_invalid("Endpoint \"%.*s\" fed more than once.", STR_ARG(name));
        p->feeds[i] = o;
        p->fed[o.node->id] = 1 + i;
    }
    return NULL;
}

static void add_key_attrs(Pruner *p, Node *n, Str tensor_name) {
    Arena *a = p->out->arena;
    node_add_attr(p->out, n, STR("tensor_name"), attr_make_string(a, tensor_name));
    node_add_attr(p->out, n, STR("send_device"), attr_make_string(a, p->client->name));
    node_add_attr(p->out, n, STR("recv_device"), attr_make_string(a, p->client->name));
    node_add_attr(p->out, n, STR("send_device_incarnation"), attr_make_int(a, (int64_t)p->client->incarnation));
    node_add_attr(p->out, n, STR("client_terminated"), attr_make_bool(a, true));
    n->placed = p->client->placed;
}

static Error *feed_node(Pruner *p, int feed, Node **out) {
    if (p->feed_nodes[feed]) {
        *out = p->feed_nodes[feed];
        return NULL;
    }
    Output o = p->feeds[feed];
    Graph *g = p->out;
    Str name = graph_unique_name(g, arena_printf(g->arena, "_recv_%.*s_%d", STR_ARG(o.node->name), o.index));
    Node *n;
    Error *err = graph_add_node(g, name, STR("_Recv"), p->client->name, &n);
    if (err) return err;
    node_add_attr(g, n, STR("tensor_type"), attr_make_type(g->arena, dtype_base(o.node->output_types[o.index])));
    add_key_attrs(p, n, p->signature->feeds[feed]);
    *out = p->feed_nodes[feed] = n;
    return node_resolve(g, n);
}

/* Copies a node without its edges and queues it for them. */
static Error *visit(Pruner *p, const Node *n, Node **out) {
    if (!p->copies[n->id]) {
        Error *err = graph_copy_node(p->out, n, &p->copies[n->id]);
        if (err) return err;
        p->stack[p->depth++] = n;
    }
    *out = p->copies[n->id];
    return NULL;
}

static bool is_placeholder(const Node *n) {
    return node_is(n, "Placeholder") || node_is(n, "PlaceholderV2");
}

static Error *copy_edges(Pruner *p, const Node *n) {
    Node *copy = p->copies[n->id];
    copy->inputs = arena_alloc(p->out->arena, sizeof *copy->inputs * (size_t)(n->input_count + 1));
    for (int i = 0; i < n->input_count; i++) {
        int feed = feed_of(p, n->inputs[i]);
        Output *input = &copy->inputs[i];
        Error *err = feed >= 0 ? feed_node(p, feed, &input->node) : visit(p, n->inputs[i].node, &input->node);
        if (err) return err;
        input->index = feed >= 0 ? 0 : n->inputs[i].index;
    }
    copy->input_count = n->input_count;
    for (int i = 0; i < n->control_count; i++) {
        Node *before;
        const Node *src = n->controls[i];
        Error *err = p->fed[src->id] && is_placeholder(src) ? feed_node(p, p->fed[src->id] - 1, &before) : visit(p, src, &before);
        if (err) return err;
        node_add_control(p->out, copy, before);
    }
    return NULL;
}

static Error *add_fetch(Pruner *p, Str name) {
    Output o;
    Error *err = find_tensor(p->g, name, "FetchOutputs node", &o);
    if (err) return err;
    if (!o.node->info)
        return node_unknown_op(o.node);
    if (o.node->output_count == 0) return error_invalid("Tried to fetch data for '%.*s', which produces no output. To run to a node but not fetch any data, pass '%.*s' as an argument to the 'target_node_names' argument of the Session::Run API.",
                                                        STR_ARG(name), STR_ARG(o.node->name));
    if (feed_of(p, o) >= 0) return error_invalid("%.*s is both fed and fetched.", STR_ARG(name));
    Graph *g = p->out;
    Node *src, *n;
    err = visit(p, o.node, &src);
    if (err) return err;
    Str send_name = graph_unique_name(g, arena_printf(g->arena, "_send_%.*s_%d", STR_ARG(o.node->name), o.index));
    err = graph_add_node(g, send_name, STR("_Send"), p->client->name, &n);
    if (err) return err;
    node_add_attr(g, n, STR("T"), attr_make_type(g->arena, dtype_base(o.node->output_types[o.index])));
    add_key_attrs(p, n, name);
    node_set_inputs(g, n, &(Output){src, o.index}, 1);
    return node_resolve(g, n);
}

static Error *prune(Pruner *p) {
    const RunSignature *s = p->signature;
    if (s->fetch_count == 0 && s->target_count == 0) return error_invalid("Must specify at least one target to fetch or execute.");
    Error *err = find_feeds(p);
    for (int i = 0; !err && i < s->fetch_count; i++) err = add_fetch(p, s->fetches[i]);
    for (int i = 0; !err && i < s->target_count; i++) {
        Str name;
        int index;
        Node *n = tensor_name_parse(s->targets[i], &name, &index) ? graph_find(p->g, name) : NULL;
        Node *copy;
        err = n ? visit(p, n, &copy) : error_not_found("PruneForTargets: Some target nodes not found: %.*s", STR_ARG(s->targets[i]));
    }
    while (!err && p->depth) err = copy_edges(p, p->stack[--p->depth]);
    return err;
}

Error *graph_prune(const Graph *g, const RunSignature *signature, const ClientDevice *client, Graph **out) {
    Pruner p = {.g = g, .signature = signature, .client = client, .out = graph_new()};
    p.out->functions = g->functions;
    p.out->producer = g->producer;
    p.out->min_consumer = g->min_consumer;
    p.feeds = xcalloc((size_t)signature->feed_count, sizeof *p.feeds);
    p.feed_nodes = xcalloc((size_t)signature->feed_count, sizeof *p.feed_nodes);
    p.fed = xcalloc((size_t)g->node_count, sizeof *p.fed);
    p.copies = xcalloc((size_t)g->node_count, sizeof *p.copies);
    p.stack = xcalloc((size_t)g->node_count, sizeof *p.stack);
    Error *err = prune(&p);
    free(p.feeds);
    free(p.feed_nodes);
    free(p.fed);
    free(p.copies);
    free(p.stack);
    if (err)
        graph_free(p.out);
    else
        *out = p.out;
    return err;
}
