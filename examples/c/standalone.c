/* standalone.c: a server in this process and a session on it; then two ps and two workers, by address.

     standalone                                        all on this machine
     standalone --ps_hosts=a:2222,b:2222 --worker_hosts=c:2222,d:2222 --target=grpc://c:2222       on a cluster that runs elsewhere */
#include <stdio.h>
#include <stdlib.h>

#include "rill/train.h"

/* 1 + 2 + ... + 100, each half on its device. */
static int add_up(const char *target, const char *here, const char *there) {
    RillGraph *g = rill_graph_new();
    TF_Status *status = TF_NewStatus();
    float low[50], high[50];
    for (int i = 0; i < 50; i++) {
        low[i] = (float)i + 1;
        high[i] = (float)i + 51;
    }
    rill_device_push(g, here);
    RillTensor a = rill_reduce_sum(g, rill_const(g, "low", TF_FLOAT, (int64_t[]){50}, 1, low), NULL, 0, false);
    rill_device_pop(g);
    rill_device_push(g, there);
    RillTensor b = rill_reduce_sum(g, rill_const(g, "high", TF_FLOAT, (int64_t[]){50}, 1, high), NULL, 0, false);
    rill_device_pop(g);
    RillTensor sum = rill_add(g, a, b);
    RillSession *s = rill_session_open_target(g, target, NULL, status);
    double value = s ? rill_session_number(s, sum, status) : 0;
    if (TF_GetCode(status) == TF_OK)
        printf("%s: %s + %s = %g\n", target, *here ? here : "low", *there ? there : "high", value);
    else
        fprintf(stderr, "%s: %s\n", target, TF_Message(status));
    int code = TF_GetCode(status) != TF_OK;
    rill_session_close(s);
    TF_DeleteStatus(status);
    rill_graph_free(g);
    return code;
}

static int program(RillTask *task, void *arg) {
    (void)arg;
    TF_Status *status = TF_NewStatus();
    RillServer *server = rill_server_start("{\"local\": [\"localhost:0\"]}", "local", 0, status);
    int code = server ? add_up(rill_server_target(server), "", "/cpu:0") : 1;
    if (!server) fprintf(stderr, "%s\n", TF_Message(status));
    rill_server_stop(server);
    const char *target = rill_flag(task, "target", NULL);
    if (code == 0 && target) code = add_up(target, "/job:ps/task:1", "/job:worker/task:1");
    TF_DeleteStatus(status);
    return code;
}

int main(int argc, char **argv) {
    return rill_main(argc, argv, program, NULL);
}
