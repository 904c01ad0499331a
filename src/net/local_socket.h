/* local_socket.h: the way between two tasks of one host and one user: a socket of the kernel beside each TCP port, faster than TCP's.

   Its name is that of the TCP address, in the abstract namespace, which like the port belongs to one network namespace: whoever holds the name there can
   only be who listens on the port, or somebody of the same host who got it first. So each side asks the kernel for the other's user and takes no other. */
#pragma once
#include <stdbool.h>
#include <sys/socket.h>

int local_socket_listen(const struct sockaddr *bound, int backlog); /* beside a TCP socket bound there; -1: not possible */
int local_socket_connect(const struct sockaddr *to);                /* to who listens on that TCP address; -1: use TCP */
bool local_socket_is_own(int fd);                                   /* is the peer of this user? */
