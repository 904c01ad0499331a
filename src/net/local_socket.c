/* local_socket.c: AF_UNIX sockets named after TCP addresses. */
#include "net/local_socket.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

#include "net/address.h"

/* "\0rill/1 127.0.0.1:2222"; its length as the kernel counts it. */
static socklen_t make_name(const struct sockaddr *tcp, struct sockaddr_un *out) {
    char text[ADDRESS_SIZE];
    address_print(tcp, text);
    *out = (struct sockaddr_un){.sun_family = AF_UNIX};
    int len = snprintf(out->sun_path + 1, sizeof out->sun_path - 1, "rill/1 %s", text);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)len);
}

static int open_socket(void) {
    return socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
}

int local_socket_listen(const struct sockaddr *bound, int backlog) {
    struct sockaddr_un name;
    socklen_t len = make_name(bound, &name);
    int fd = open_socket();
    if (fd >= 0 && bind(fd, (struct sockaddr *)&name, len) == 0 && listen(fd, backlog) == 0) return fd;
    if (fd >= 0) close(fd);
    return -1;
}

bool local_socket_is_own(int fd) {
    struct ucred peer;
    socklen_t len = sizeof peer;
    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) == 0 && peer.uid == geteuid();
}

static bool same_host(const struct sockaddr *a, const struct sockaddr *b) {
    if (!b || a->sa_family != b->sa_family) return false;
    if (a->sa_family == AF_INET) return ((const struct sockaddr_in *)a)->sin_addr.s_addr == ((const struct sockaddr_in *)b)->sin_addr.s_addr;
    return memcmp(&((const struct sockaddr_in6 *)a)->sin6_addr, &((const struct sockaddr_in6 *)b)->sin6_addr, sizeof(struct in6_addr)) == 0;
}

/* Is it an address of this host? */
static bool is_here(const struct sockaddr *to) {
    if (to->sa_family != AF_INET && to->sa_family != AF_INET6) return false;
    if (to->sa_family == AF_INET && ntohl(((const struct sockaddr_in *)to)->sin_addr.s_addr) >> 24 == 127) return true;
    if (to->sa_family == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)to)->sin6_addr)) return true;
    struct ifaddrs *all = NULL;
    bool found = false;
    if (getifaddrs(&all) != 0) return false;
    for (const struct ifaddrs *i = all; i && !found; i = i->ifa_next) found = same_host(to, i->ifa_addr);
    freeifaddrs(all);
    return found;
}

static int connect_to(const struct sockaddr *tcp) {
    struct sockaddr_un name;
    socklen_t len = make_name(tcp, &name);
    int fd = open_socket();
    if (fd >= 0 && connect(fd, (struct sockaddr *)&name, len) == 0 && local_socket_is_own(fd)) return fd;
    if (fd >= 0) close(fd);
    return -1;
}

/* A task listens on an address of its own or on all of them; the kernel lets nobody do both on one port. */
int local_socket_connect(const struct sockaddr *to) {
    if (!is_here(to)) return -1;
    struct sockaddr_in any = {.sin_family = AF_INET};
    struct sockaddr_in6 any6 = {.sin6_family = AF_INET6};
    address_set_port((struct sockaddr *)&any, address_port(to));
    address_set_port((struct sockaddr *)&any6, address_port(to));
    int fd = connect_to(to);
    if (fd < 0) fd = connect_to((struct sockaddr *)&any6);
    if (fd < 0 && to->sa_family == AF_INET) fd = connect_to((struct sockaddr *)&any);
    return fd;
}
