/* orphan_guard.c: numbers of process groups through a socket, killed at its end. */
#include "tools/orphan_guard.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MAX_GROUPS = 1024 }; /* rill up starts 500 tasks at most */

/* In the child: never returns, allocates nothing. Nothing of the parent's stays open, or who waits for its end would wait for us. */
static void watch(int told_here) {
    static pid_t groups[MAX_GROUPS];
    pid_t told;
    setsid();
    prctl(PR_SET_NAME, "rill-guard");
    dup2(told_here, 0);
    close_range(1, ~0U, 0);
    for (;;) {
        ssize_t n = read(0, &told, sizeof told);
        if (n < 0 && errno == EINTR) continue;
        if (n != (ssize_t)sizeof told) break;
        pid_t wanted = told > 0 ? 0 : -told, put = told > 0 ? told : 0;
        for (int i = 0; i < MAX_GROUPS; i++) {
            if (groups[i] != wanted) continue;
            groups[i] = put;
            break;
        }
    }
    for (int i = 0; i < MAX_GROUPS; i++)
        if (groups[i]) kill(-groups[i], SIGKILL);
    _exit(0);
}

Error *orphan_guard_start(OrphanGuard *g) {
    int ends[2];
    *g = (OrphanGuard){.socket = -1};
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return error_internal("no pair of sockets: %s", strerror(errno));
    g->pid = fork();
    if (g->pid == 0) watch(ends[0]);
    close(ends[0]);
    if (g->pid < 0) {
        close(ends[1]);
        return error_internal("no process can be started: %s", strerror(errno));
    }
    g->socket = ends[1];
    return NULL;
}

static void tell(OrphanGuard *g, pid_t number) {
    ssize_t n = -1;
    while (g->socket >= 0 && (n = send(g->socket, &number, sizeof number, MSG_NOSIGNAL)) < 0 && errno == EINTR) continue;
    if (n >= 0 || g->socket < 0) return;
    close(g->socket); /* somebody has killed it: the tasks run on without */
    g->socket = -1;
}

void orphan_guard_add(OrphanGuard *g, pid_t group) {
    tell(g, group);
}

void orphan_guard_remove(OrphanGuard *g, pid_t group) {
    tell(g, -group);
}

void orphan_guard_stop(OrphanGuard *g) {
    if (g->socket >= 0) close(g->socket);
    if (g->pid > 0) waitpid(g->pid, NULL, 0);
    *g = (OrphanGuard){.socket = -1};
}
