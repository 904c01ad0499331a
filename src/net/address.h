/* address.h: "host:port" and socket addresses. */
#pragma once
#include <netdb.h>
#include <sys/socket.h>

#include "base/error.h"
#include "base/str.h"

/* "host:port" or "[host]:port"; the parts are malloced. */
Error *address_split(Str address, char **host, char **port) MUST_CHECK;

/* Waits for the name service. Free with freeaddrinfo. */
Error *address_resolve(const char *host, const char *port, struct addrinfo **out) MUST_CHECK;

enum { ADDRESS_SIZE = 72 };
void address_print(const struct sockaddr *a, char out[ADDRESS_SIZE]); /* "127.0.0.1:80", "[::1]:80" */
const char *address_family(const struct sockaddr *a);                 /* "ipv4", "ipv6" */
int address_port(const struct sockaddr *a);
void address_set_port(struct sockaddr *a, int port);
