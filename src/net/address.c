/* address.c: taking addresses apart and printing them. */
#include "net/address.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>

#include "base/memory.h"

Error *address_split(Str address, char **host, char **port) {
    ptrdiff_t colon = (ptrdiff_t)address.len - 1;
    while (colon >= 0 && address.ptr[colon] != ':') colon--;
    Str name = str_slice(address, 0, colon < 0 ? 0 : (size_t)colon);
    Str number = str_slice(address, (size_t)(colon + 1), address.len);
    int64_t value;
    if (colon < 0 || !str_to_int64(number, &value) || value < 0 || value > 65535)
        return error_invalid("address \"%.*s\" is not of the form host:port", STR_ARG(address));
    if (name.len >= 2 && name.ptr[0] == '[' && name.ptr[name.len - 1] == ']') name = str_slice(name, 1, name.len - 1);
    *host = str_dup(name);
    *port = str_dup(number);
    return NULL;
}

Error *address_resolve(const char *host, const char *port, struct addrinfo **out) {
    struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE};
    int failed = getaddrinfo(*host ? host : NULL, port, &hints, out);
    if (failed)
        return error_new(CODE_UNAVAILABLE, "DNS resolution failed for %s:%s: %s", host, port, gai_strerror(failed));
    return NULL;
}

void address_print(const struct sockaddr *a, char out[ADDRESS_SIZE]) {
    char host[INET6_ADDRSTRLEN] = "?";
    if (a->sa_family == AF_INET6)
        inet_ntop(AF_INET6, &((const struct sockaddr_in6 *)a)->sin6_addr, host, sizeof host);
    else
        inet_ntop(AF_INET, &((const struct sockaddr_in *)a)->sin_addr, host, sizeof host);
    snprintf(out, ADDRESS_SIZE, a->sa_family == AF_INET6 ? "[%s]:%d" : "%s:%d", host, address_port(a));
}

const char *address_family(const struct sockaddr *a) {
    return a->sa_family == AF_INET6 ? "ipv6" : "ipv4";
}

int address_port(const struct sockaddr *a) {
    return ntohs(a->sa_family == AF_INET6 ? ((const struct sockaddr_in6 *)a)->sin6_port
                                          : ((const struct sockaddr_in *)a)->sin_port);
}

void address_set_port(struct sockaddr *a, int port) {
    if (a->sa_family == AF_INET6)
        ((struct sockaddr_in6 *)a)->sin6_port = htons((uint16_t)port);
    else
        ((struct sockaddr_in *)a)->sin_port = htons((uint16_t)port);
}
