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
    int replaced;      /* feeds, then connections */
    Output *feeds;     /* what each of them replaces */
    Output *sources;   /* of connections: what they put there */
    Node **feed_nodes; /* its _Recv or Identity, made when used */
    int *fed;          /* by node id: 1 + one that replaces an output of that node, 0 when none (others are found by search) */
    Node **copies;     /* by node id */
    const Node **stack;
    int depth;
} Pruner;

/* Its node is NULL when there is none of that name. */
static Output find_tensor(const Graph *g, Str name) {
    Output o = {0};
    Str node;
    if (tensor_name_parse(name, &node, &o.index)) o.node = graph_find(g, node);
    return o;
}

static bool has_output(Output o) {
    return o.index < o.node->output_count;
}

static int feed_of(const Pruner *p, Output o) {
    if (!p->fed[o.node->id]) return -1;
    for (int i = 0; i < p->replaced; i++)
        if (p->feeds[i].node == o.node && p->feeds[i].index == o.index) return i;
    return -1;
}

static Error *find_feeds(Pruner *p) {
    const RunSignature *s = p->signature;
    for (int i = 0; i < s->feed_count + s->connection_count; i++) {
        Str name = i < s->feed_count ? s->feeds[i] : s->connections[i - s->feed_count].to;
        Output o = find_tensor(p->g, name);
        if (!o.node) return error_not_found("FeedInputs: unable to find feed output %.*s", STR_ARG(name));
        if (!o.node->info) return error_not_found("Op type not registered '%.*s', so %.*s cannot be fed", STR_ARG(o.node->op), STR_ARG(name));
        if (!has_output(o)) return error_invalid("FeedInputs: %.*s should have output index < %d", STR_ARG(name), o.node->output_count);
        if (feed_of(p, o) >= 0) return error_invalid("Endpoint \"%.*s\" fed more than once.", STR_ARG(name));
        p->feeds[i] = o;
        p->replaced = i + 1;
        p->fed[o.node->id] = 1 + i;
    }
    return NULL;
}

static Error *find_sources(Pruner *p) {
    const RunSignature *s = p->signature;
    for (int i = 0; i < s->connection_count; i++) {
        const Connection *c = &s->connections[i];
        Output o = find_tensor(p->g, c->from);
        if (!o.node) return error_invalid("Requested tensor connection from unknown node: \"%.*s\".", STR_ARG(c->to));
        if (!o.node->info) return node_unknown_op(o.node);
        if (!has_output(o)) return error_invalid("Requested tensor connection from unknown edge: \"%.*s\" (actual number of outputs = %d).", STR_ARG(c->to), o.node->output_count);
        p->sources[s->feed_count + i] = o;
    }
    return NULL;
}

/* The node that a reader of `o` reads when only the replacements between `after` and `before` are made; NULL: a feed. */
static const Node *node_read(const Pruner *p, Output o, int after, int before) {
    for (;;) {
        int i = feed_of(p, o);
        if (i <= after || i >= before) return o.node;
        if (i < p->signature->feed_count) return NULL;
        o = p->sources[i];
        after = i;
    }
}

static bool is_placeholder(const Node *n) {
    return node_is(n, "Placeholder") || node_is(n, "PlaceholderV2");
}

/* Whether what a connection reads is computed from what it replaces, once those before it are made. */
static bool makes_cycle(const Pruner *p, int replacement) {
    bool *seen = xcalloc((size_t)p->g->node_count, sizeof *seen);
    const Node **stack = xcalloc((size_t)p->g->node_count, sizeof *stack);
    int depth = 0;
    stack[depth++] = p->sources[replacement].node;
    seen[stack[0]->id] = true;
    while (depth) {
        const Node *n = stack[--depth];
        for (int i = 0; i < n->input_count + n->control_count; i++) {
            Output in = i < n->input_count ? n->inputs[i] : (Output){n->controls[i - n->input_count], 0};
            bool is_led_elsewhere = i < n->input_count || is_placeholder(in.node);
            const Node *before = is_led_elsewhere ? node_read(p, in, -1, replacement) : in.node;
            if (!before || seen[before->id]) continue;
            seen[before->id] = true;
            stack[depth++] = before;
        }
    }
    bool found = seen[p->feeds[replacement].node->id];
    free(stack);
    free(seen);
    return found;
}

static Error *check_connections(const Pruner *p) {
    for (int i = p->signature->feed_count; i < p->replaced; i++)
        if (makes_cycle(p, i))
            return error_invalid("Requested Tensor connection between nodes \"%.*s\" and \"%.*s\" would create a cycle.", STR_ARG(p->feeds[i].node->name), STR_ARG(p->sources[i].node->name));
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

static Error *visit(Pruner *p, const Node *n, Node **out);
static Error *feed_node(Pruner *p, int feed, Node **out);

/* What stands for a tensor that is connected to another. */
static Error *identity_node(Pruner *p, int connection, Node **out) {
    Output to = p->feeds[connection], from = p->sources[connection];
    Graph *g = p->out;
    Str name = graph_unique_name(g, arena_printf(g->arena, "_identity_%.*s_%d", STR_ARG(to.node->name), to.index));
    Node *n;
    Error *err = graph_add_node(g, name, STR("Identity"), to.node->device, &n);
    if (err) return err;
    n->placed = to.node->placed;
    node_add_attr(g, n, STR("T"), attr_make_type(g->arena, dtype_base(from.node->output_types[from.index])));
    p->feed_nodes[connection] = n;
    int later = feed_of(p, from);
    Output input = {NULL, later > connection ? 0 : from.index};
    err = later > connection ? feed_node(p, later, &input.node) : visit(p, from.node, &input.node);
    if (err) return err;
    node_set_inputs(g, n, &input, 1);
    *out = n;
    return node_resolve(g, n);
}

static Error *feed_node(Pruner *p, int feed, Node **out) {
    if (p->feed_nodes[feed]) {
        *out = p->feed_nodes[feed];
        return NULL;
    }
    if (feed >= p->signature->feed_count) return identity_node(p, feed, out);
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
    Output o = find_tensor(p->g, name);
    if (!o.node) return error_not_found("FetchOutputs node %.*s: not found", STR_ARG(name));
    if (!o.node->info) return node_unknown_op(o.node);
    if (o.node->output_count == 0) return error_invalid("Tried to fetch data for '%.*s', which produces no output. To run to a node but not fetch any data, pass '%.*s' as an argument to the 'target_node_names' argument of the Session::Run API.",
                                                        STR_ARG(name), STR_ARG(o.node->name));
    if (!has_output(o)) return error_invalid("FetchOutputs %.*s: output index too large, must be < %d", STR_ARG(name), o.node->output_count);
    if (feed_of(p, o) >= 0) return error_invalid("%.*s is both fed and fetched.", STR_ARG(name));
    Graph *g = p->out;
    Node *src, *n;
    Error *err = visit(p, o.node, &src);
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
    Error *err = find_sources(p);
    if (!err) err = find_feeds(p);
    for (int i = 0; !err && i < s->fetch_count; i++) err = add_fetch(p, s->fetches[i]);
    for (int i = 0; !err && i < s->target_count; i++) {
        Str name;
        int index;
        Node *n = tensor_name_parse(s->targets[i], &name, &index) ? graph_find(p->g, name) : NULL;
        Node *copy;
        err = n ? visit(p, n, &copy) : error_not_found("PruneForTargets: Some target nodes not found: %.*s", STR_ARG(s->targets[i]));
    }
    if (!err) err = check_connections(p);
    while (!err && p->depth) err = copy_edges(p, p->stack[--p->depth]);
    return err;
}

Error *graph_prune(const Graph *g, const RunSignature *signature, const ClientDevice *client, Graph **out) {
    Pruner p = {.g = g, .signature = signature, .client = client, .out = graph_new()};
    p.out->functions = g->functions;
    p.out->producer = g->producer;
    p.out->min_consumer = g->min_consumer;
    size_t replacements = (size_t)signature->feed_count + (size_t)signature->connection_count;
    p.feeds = xcalloc(replacements, sizeof *p.feeds);
    p.sources = xcalloc(replacements, sizeof *p.sources);
    p.feed_nodes = xcalloc(replacements, sizeof *p.feed_nodes);
    p.fed = xcalloc((size_t)g->node_count, sizeof *p.fed);
    p.copies = xcalloc((size_t)g->node_count, sizeof *p.copies);
    p.stack = xcalloc((size_t)g->node_count, sizeof *p.stack);
    Error *err = prune(&p);
    free(p.feeds);
    free(p.sources);
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
