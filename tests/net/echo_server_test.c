/* echo_server_test.c: a server and a client for tests with other gRPC implementations, and a measurement.

     serve              serves on a free port, prints its address, ends with standard input
     call ADDRESS METHOD SIZE COUNT TIMEOUT_MS
                        COUNT calls at once of SIZE bytes; prints "ok" or the error of the first that failed
     cancel ADDRESS METHOD
                        starts a call, cancels it when standard input ends, prints the error
     bench              unary latency and throughput of both transports

   Without arguments it tests itself. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/thread.h"
#include "net/transport.h"

/* ---- Server ---- */

static void echo(void *arg, ServerCall *call) {
    (void)arg;
    Message m = message_move(server_call_request(call));
    server_call_reply(call, &m);
}

static void cancelled(void *arg) {
    puts("cancelled");
    fflush(stdout);
    server_call_fail(arg, error_new(CODE_CANCELLED, "told so"));
}

static void park(void *arg, ServerCall *call) {
    (void)arg;
    puts("parked");
    fflush(stdout);
    server_call_watch(call, cancelled, call);
}

static void lose(void *arg, ServerCall *call) {
    (void)arg;
    Error *err = error_new(CODE_ABORTED, "lost: 100%% \xc3\xa4\n");
    err->derived = err->restarted = true;
    server_call_fail(call, err);
}

static const Method methods[] = {
    {"/test.Echo/Echo", echo, ON_POOL, NULL},
    {"/test.Echo/EchoInline", echo, ON_READER, NULL},
    {"/test.Echo/Park", park, ON_READER, NULL},
    {"/test.Echo/Lose", lose, ON_READER, NULL},
    {0},
};

static void die(Error *err) {
    if (!err) return;
    fprintf(stderr, "%s: %s\n", error_code_name(err->code), err->message);
    exit(1);
}

static int serve(void) {
    Transport *t = NULL;
    char *address = NULL;
    ThreadPool *pool = threadpool_new("serve", 4);
    ServerOptions options = {.methods = methods, .pool = pool, .max_message_bytes = 100 << 20};
    die(transport_grpc_new(NULL, &t));
    die(transport_serve(t, STR("localhost:0"), &options, &address));
    puts(address);
    fflush(stdout);
    while (getchar() != EOF) continue;
    transport_stop_serving(t, 1000);
    transport_free(t);
    threadpool_free(pool);
    free(address);
    return 0;
}

/* ---- Client ---- */

typedef struct Outcome {
    Latch done;
    pthread_mutex_t mutex; /* guards err */
    Error *err;            /* the first */
    size_t size;
} Outcome;

static void note(void *arg, Error *err, Message *reply) {
    Outcome *o = arg;
    if (!err && reply->len != o->size) err = error_internal("%zu bytes came back", reply->len);
    if (!err && reply->len) {
        Str bytes = message_flatten(reply);
        if (bytes.ptr[0] != 'x' || bytes.ptr[bytes.len - 1] != 'x') err = error_internal("other bytes came back");
    }
    if (reply) message_clear(reply);
    pthread_mutex_lock(&o->mutex);
    if (o->err)
        error_free(err);
    else
        o->err = err;
    pthread_mutex_unlock(&o->mutex);
    latch_done(&o->done);
}

static Call *start(Channel *c, const char *method, int64_t timeout_ms, Outcome *o) {
    Message m = {0};
    char *data = xmalloc(o->size);
    memset(data, 'x', o->size);
    message_add_take(&m, data, o->size);
    return channel_call(c, method, &m, (CallOptions){.timeout_ms = timeout_ms}, note, o);
}

static void outcome_init(Outcome *o, size_t size, int count) {
    *o = (Outcome){.size = size};
    latch_init(&o->done, count);
    pthread_mutex_init(&o->mutex, NULL);
}

static int outcome_print(Outcome *o) {
    Error *err = o->err;
    if (err)
        printf("%s%s%s: %s\n", error_code_name(err->code), err->derived ? " derived" : "",
               err->restarted ? " restarted" : "", err->message);
    else
        puts("ok");
    error_free(err);
    latch_clear(&o->done);
    pthread_mutex_destroy(&o->mutex);
    return 0;
}

static int call(const char *address, const char *method, size_t size, int count, int64_t timeout_ms) {
    Transport *t = NULL;
    Outcome o;
    outcome_init(&o, size, count);
    die(transport_grpc_new(NULL, &t));
    Channel *c = transport_channel(t, str_of(address));
    for (int i = 0; i < count; i++) call_unref(start(c, method, timeout_ms, &o));
    latch_wait(&o.done);
    channel_unref(c);
    transport_free(t);
    return outcome_print(&o);
}

static int cancel(const char *address, const char *method) {
    Transport *t = NULL;
    Outcome o;
    outcome_init(&o, 1, 1);
    die(transport_grpc_new(NULL, &t));
    Channel *c = transport_channel(t, str_of(address));
    Call *started = start(c, method, 0, &o);
    while (getchar() != EOF) continue;
    call_cancel(started);
    latch_wait(&o.done);
    call_unref(started);
    channel_unref(c);
    transport_free(t);
    return outcome_print(&o);
}

/* ---- Measurement ---- */

static int compare(const void *a, const void *b) {
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static void measure_latency(Channel *c, const char *name, const char *method) {
    enum { CALLS = 5000 };
    static int64_t times[CALLS];
    for (int i = -500; i < CALLS; i++) {
        Message m = {0}, reply = {0};
        message_add_copy(&m, STR("12345678"));
        int64_t begin = clock_mono_ns();
        die(channel_call_wait(c, method, &m, (CallOptions){0}, &reply));
        if (i >= 0) times[i] = clock_mono_ns() - begin;
        message_clear(&reply);
    }
    qsort(times, CALLS, sizeof *times, compare);
    printf("%-9s %-22s median %6.1f us, 99 %% %6.1f us\n", name, method, times[CALLS / 2] / 1e3,
           times[CALLS * 99 / 100] / 1e3);
}

static void measure_throughput(Channel *c, const char *name, size_t size, int times) {
    char *data = xcalloc(1, size);
    double best = 1e9;
    for (int i = 0; i < times; i++) {
        Message m = {0}, reply = {0};
        message_add_slice(&m, (Slice){data, size, NULL, NULL});
        int64_t begin = clock_mono_ns();
        die(channel_call_wait(c, "/test.Echo/Echo", &m, (CallOptions){0}, &reply));
        double s = (double)(clock_mono_ns() - begin) / 1e9;
        if (s < best) best = s;
        message_clear(&reply);
    }
    printf("%-9s %zu bytes there and back: %.2f ms, %.2f GB/s\n", name, size, best * 1e3,
           2 * (double)size / best / 1e9);
    free(data);
}

static void measure_rate(Channel *c, const char *name) {
    enum { CALLS = 100000, AT_ONCE = 100 };
    Outcome o;
    int64_t begin = clock_mono_ns();
    for (int i = 0; i < CALLS / AT_ONCE; i++) {
        outcome_init(&o, 8, AT_ONCE);
        for (int k = 0; k < AT_ONCE; k++) call_unref(start(c, "/test.Echo/EchoInline", 0, &o));
        latch_wait(&o.done);
        die(o.err);
        latch_clear(&o.done);
        pthread_mutex_destroy(&o.mutex);
    }
    printf("%-9s %d at once: %.0f calls/s\n", name, AT_ONCE, CALLS / ((double)(clock_mono_ns() - begin) / 1e9));
}

static void measure(const char *name, Transport *server, Transport *client) {
    char *address = NULL;
    ThreadPool *pool = threadpool_new("serve", 4);
    ServerOptions options = {.methods = methods, .pool = pool};
    die(transport_serve(server, STR("127.0.0.1:0"), &options, &address));
    Channel *c = transport_channel(client, str_of(address));
    measure_latency(c, name, "/test.Echo/EchoInline");
    measure_latency(c, name, "/test.Echo/Echo");
    measure_rate(c, name);
    measure_throughput(c, name, 64 << 10, 200);
    measure_throughput(c, name, 4 << 20, 30);
    measure_throughput(c, name, 100 << 20, 8);
    channel_unref(c);
    transport_free(client);
    transport_free(server);
    threadpool_free(pool);
    free(address);
}

static int bench(void) {
    Transport *server = NULL, *client = NULL;
    die(transport_grpc_new(NULL, &server));
    die(transport_grpc_new(NULL, &client));
    measure("grpc", server, client);
    LoopbackNetwork *n = loopback_network_new();
    measure("loopback", transport_loopback_new(n), transport_loopback_new(n));
    loopback_network_free(n);
    return 0;
}

/* ---- Self test: a server that also is its own client ---- */

static int test(void) {
    Transport *t = NULL;
    char *address = NULL;
    Message m = {0}, reply = {0};
    ThreadPool *pool = threadpool_new("serve", 2);
    ServerOptions options = {.methods = methods, .pool = pool};
    die(transport_grpc_new(NULL, &t));
    die(transport_serve(t, STR("localhost:0"), &options, &address));
    Channel *c = transport_channel(t, str_of(address));
    message_add_copy(&m, STR("to myself"));
    die(channel_call_wait(c, "/test.Echo/Echo", &m, (CallOptions){0}, &reply));
    bool ok = str_is(message_flatten(&reply), "to myself");
    message_clear(&reply);
    channel_unref(c);
    transport_free(t);
    threadpool_free(pool);
    free(address);
    return ok ? 0 : 1;
}

int main(int argc, char **argv) {
    if (argc == 2 && strcmp(argv[1], "serve") == 0) return serve();
    if (argc == 2 && strcmp(argv[1], "bench") == 0) return bench();
    if (argc == 7 && strcmp(argv[1], "call") == 0)
        return call(argv[2], argv[3], (size_t)atoll(argv[4]), atoi(argv[5]), atoll(argv[6]));
    if (argc == 4 && strcmp(argv[1], "cancel") == 0) return cancel(argv[2], argv[3]);
    return test();
}
