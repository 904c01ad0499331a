/* callable.c: signatures that a client runs by number. */
#include <stdlib.h>

#include "base/memory.h"
#include "cluster/master_session_internal.h"

void callable_free(Callable *c) {
    arena_free(c->arena);
    free(c);
}

static void copy_names(Arena *a, char **names, size_t count, const Str **out, int *out_count) {
    Str *copy = arena_calloc(a, count, sizeof *copy);
    for (size_t i = 0; i < count; i++) copy[i] = arena_str(a, str_of(names[i]));
    *out = copy;
    *out_count = (int)count;
}

enum { MOST_CONNECTIONS = 1000 }; /* each is followed through the graph, and some through each other */

static void copy_connections(Callable *c, const Pb__CallableOptions *options) {
    Connection *copy = arena_calloc(c->arena, options->n_tensor_connection, sizeof *copy);
    for (size_t i = 0; i < options->n_tensor_connection; i++)
        copy[i] = (Connection){arena_str(c->arena, str_of(options->tensor_connection[i]->from_tensor)), arena_str(c->arena, str_of(options->tensor_connection[i]->to_tensor))};
    c->signature.connections = copy;
    c->signature.connection_count = (int)options->n_tensor_connection;
}

Error *master_session_make_callable(MasterSession *s, const Pb__CallableOptions *options, int64_t *handle) {
    if (options->n_feed_devices || options->n_fetch_devices)
        return error_unimplemented("CallableOptions::feed_devices and CallableOptions::fetch_devices to configure feeding/fetching tensors to/from device memory is not yet supported when using a remote session.");
    if (options->n_tensor_connection > MOST_CONNECTIONS)
        return error_invalid("A callable has %zu tensor connections, more than %d", options->n_tensor_connection, MOST_CONNECTIONS);
    Callable *c = xcalloc(1, sizeof *c);
    c->arena = arena_new();
    copy_names(c->arena, options->feed, options->n_feed, &c->signature.feeds, &c->signature.feed_count);
    copy_names(c->arena, options->fetch, options->n_fetch, &c->signature.fetches, &c->signature.fetch_count);
    copy_names(c->arena, options->target, options->n_target, &c->signature.targets, &c->signature.target_count);
    copy_connections(c, options);
    if (options->run_options) {
        c->trace = options->run_options->trace_level > 0;
        c->partition_graphs = options->run_options->output_partition_graphs;
        c->timeout_ms = options->run_options->timeout_in_ms;
        if (options->run_options->experimental) c->collective_graph_key = options->run_options->experimental->collective_graph_key;
    }
    ClientGraph *g;
    Error *err = session_graph_for(s, &c->signature, false, &g);
    if (err) {
        callable_free(c);
        return err;
    }
    client_graph_unref(g);
    pthread_mutex_lock(&s->mutex);
    *handle = s->next_callable++;
    intmap_put(&s->callables, (uint64_t)*handle + 1, c);
    pthread_mutex_unlock(&s->mutex);
    return NULL;
}

Error *master_session_run_callable(MasterSession *s, int64_t handle, Tensor *const *feeds, int feed_count, ServerCall *call, RunReply *reply) {
    RunRequest request = {.feeds = feeds};
    Arena *arena = arena_new();
    pthread_mutex_lock(&s->mutex);
    Callable *c = intmap_get(&s->callables, (uint64_t)handle + 1);
    if (c) {
        signature_copy(arena, &c->signature, &request.signature);
        request.trace = c->trace;
        request.partition_graphs = c->partition_graphs;
        request.timeout_ms = c->timeout_ms;
        request.collective_graph_key = c->collective_graph_key;
    }
    pthread_mutex_unlock(&s->mutex);
    Error *err = c ? NULL : error_invalid("No such callable handle: %lld", (long long)handle);
    if (!err && request.signature.feed_count != feed_count)
        err = error_invalid("Expected %d feed tensors, but got %d", request.signature.feed_count, feed_count);
    if (!err) err = master_session_run(s, &request, call, reply);
    arena_free(arena);
    return err;
}

Error *master_session_release_callable(MasterSession *s, int64_t handle) {
    pthread_mutex_lock(&s->mutex);
    Callable *c = intmap_remove(&s->callables, (uint64_t)handle + 1);
    pthread_mutex_unlock(&s->mutex);
    if (!c) return error_invalid("No such callable handle: %lld", (long long)handle);
    callable_free(c);
    return NULL;
}
