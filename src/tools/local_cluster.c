/* local_cluster.c: free ports, and the same cluster said in all the ways programs read it. */
#include "tools/local_cluster.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/str.h"
#include "tools/command.h"

/* Below the range of outgoing connections: a client that retries a dead port of that range may connect to itself. */
enum { FIRST_PORT = 12000, LAST_PORT = 31999, MAX_TRIES = 2000 };

static bool is_free(int port) {
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) return false;
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr = {htonl(INADDR_LOOPBACK)}};
    bool ok = bind(fd, (struct sockaddr *)&a, sizeof a) == 0;
    close(fd);
    return ok;
}

static bool is_taken(const LocalCluster *c, int port) {
    for (int i = 0; i < c->count; i++)
        if (c->tasks[i].port == port) return true;
    return false;
}

static Error *add_job(LocalCluster *c, const char *job, int count) {
    static unsigned seed;
    if (!seed) seed = (unsigned)getpid() * 2654435761u;
    for (int i = 0; i < count; i++) {
        int port = 0;
        for (int tries = 0; !port && tries < MAX_TRIES; tries++) {
            int candidate = FIRST_PORT + rand_r(&seed) % (LAST_PORT - FIRST_PORT + 1);
            if (!is_taken(c, candidate) && is_free(candidate)) port = candidate;
        }
        if (!port) return error_internal("no free port on 127.0.0.1 for %s/%d", job, i);
        c->tasks[c->count++] = (LocalTask){job, i, port};
    }
    return NULL;
}

static void put_job(const LocalCluster *c, const char *job, StrBuf *out) {
    const char *before = "";
    for (int i = 0; i < c->count; i++) {
        if (strcmp(c->tasks[i].job, job) != 0) continue;
        if (!*before) strbuf_addf(out, "%s\"%s\": [", out->len > 1 ? ", " : "", job);
        strbuf_addf(out, "%s\"127.0.0.1:%d\"", before, c->tasks[i].port);
        before = ", ";
    }
    if (*before) strbuf_addf(out, "]");
}

Error *local_cluster_init(LocalCluster *c, const LocalJobs *jobs) {
    *c = (LocalCluster){0};
    c->tasks = xcalloc((size_t)(jobs->chiefs + jobs->workers + jobs->ps + jobs->evaluators), sizeof *c->tasks);
    Error *err = add_job(c, "chief", jobs->chiefs);
    if (!err) err = add_job(c, "worker", jobs->workers);
    if (!err) err = add_job(c, "ps", jobs->ps);
    if (!err) err = add_job(c, "evaluator", jobs->evaluators);
    StrBuf b = {0};
    strbuf_addf(&b, "{");
    static const char *const names[] = {"chief", "worker", "ps", "evaluator"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) put_job(c, names[i], &b);
    strbuf_addf(&b, "}");
    c->json = strbuf_detach(&b);
    return err;
}

void local_cluster_clear(LocalCluster *c) {
    free(c->tasks);
    free(c->json);
    *c = (LocalCluster){0};
}

char **local_cluster_serve(const LocalCluster *c, const LocalTask *t, int64_t threads) {
    char **words = xcalloc(11, sizeof *words);
    int n = 0;
    words[n++] = program_path();
    words[n++] = xstrdup("serve");
    words[n++] = xstrdup("--cluster");
    words[n++] = xstrdup(c->json);
    words[n++] = xstrdup("--job");
    words[n++] = xstrdup(t->job);
    words[n++] = xstrdup("--task");
    words[n++] = xasprintf("%d", t->index);
    words[n++] = xstrdup("--threads");
    words[n] = xasprintf("%lld", (long long)threads);
    return words;
}

char *local_cluster_tf_config(const LocalCluster *c, const LocalTask *t) {
    if (!t) return xasprintf("{\"cluster\": %s}", c->json);
    return xasprintf("{\"cluster\": %s, \"task\": {\"type\": \"%s\", \"index\": %d}}", c->json, t->job, t->index);
}

char *local_cluster_hosts(const LocalCluster *c, const char *job) {
    StrBuf b = {0};
    for (int i = 0; i < c->count; i++)
        if (strcmp(c->tasks[i].job, job) == 0) strbuf_addf(&b, "%s127.0.0.1:%d", b.len ? "," : "", c->tasks[i].port);
    return b.len ? strbuf_detach(&b) : xstrdup("");
}

/* The value of a name in braces, malloced; NULL when it is none of ours. */
static char *value_of(const LocalCluster *c, const LocalTask *t, Str name) {
    if (str_is(name, "cluster")) return xstrdup(c->json);
    if (str_is(name, "ps_hosts")) return local_cluster_hosts(c, "ps");
    if (str_is(name, "worker_hosts")) return local_cluster_hosts(c, "worker");
    if (str_is(name, "chief_hosts")) return local_cluster_hosts(c, "chief");
    if (str_is(name, "job")) return xstrdup(t ? t->job : "client");
    if (str_is(name, "task")) return xasprintf("%d", t ? t->index : 0);
    if (str_is(name, "target")) return xasprintf("grpc://127.0.0.1:%d", t ? t->port : c->tasks[0].port);
    return NULL;
}

char *local_cluster_fill(const LocalCluster *c, const LocalTask *t, const char *word) {
    StrBuf b = {0};
    for (const char *p = word; *p;) {
        const char *end = *p == '{' ? strchr(p, '}') : NULL;
        char *value = end ? value_of(c, t, (Str){p + 1, (size_t)(end - p - 1)}) : NULL;
        if (value) {
            strbuf_addf(&b, "%s", value);
            free(value);
            p = end + 1;
        } else {
            strbuf_add(&b, (Str){p++, 1});
        }
    }
    return b.len ? strbuf_detach(&b) : xstrdup("");
}
