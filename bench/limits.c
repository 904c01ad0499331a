/* limits.c: what the machine allows: a request answered with N bytes between two processes over TCP and over a Unix socket, and a copy of N bytes; medians as JSON.

   limits tcp BYTES: a contender (contest.py): for each line "SECONDS" on standard input, asks for BYTES over TCP that long and answers with a line of JSON. */
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { SIZES = 4, MOST_RUNS = 2000, CHUNK = 4 << 20 /* more at once, or much less, is slower */ };
static const size_t sizes[SIZES] = {4, 1024, 1000000, 100000000};
static const int run_counts[SIZES] = {MOST_RUNS, MOST_RUNS, 200, 7};

typedef struct Request {
    size_t size; /* of the answer; 0: the end */
} Request;

static void die(const char *what) {
    perror(what);
    exit(1);
}

static double now_us(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static bool read_all(int fd, char *to, size_t size) {
    for (size_t got = 0; got < size;) {
        ssize_t n = read(fd, to + got, size - got < CHUNK ? size - got : CHUNK);
        if (n <= 0) return false;
        got += (size_t)n;
    }
    return true;
}

static bool write_all(int fd, const char *from, size_t size) {
    for (size_t put = 0; put < size;) {
        ssize_t n = write(fd, from + put, size - put < CHUNK ? size - put : CHUNK);
        if (n <= 0) return false;
        put += (size_t)n;
    }
    return true;
}

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values, int count) {
    qsort(values, (size_t)count, sizeof *values, by_value);
    return values[count / 2];
}

/* ---- Sockets ---- */

static void tcp_pair(int ends[2]) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM, 0), one = 1;
    if (listener < 0 || bind(listener, (struct sockaddr *)&address, len) || listen(listener, 1)) die("listen");
    if (getsockname(listener, (struct sockaddr *)&address, &len)) die("getsockname");
    ends[0] = socket(AF_INET, SOCK_STREAM, 0);
    if (ends[0] < 0 || connect(ends[0], (struct sockaddr *)&address, len)) die("connect");
    ends[1] = accept(listener, NULL, NULL);
    if (ends[1] < 0) die("accept");
    close(listener);
    for (int i = 0; i < 2; i++)
        if (setsockopt(ends[i], IPPROTO_TCP, TCP_NODELAY, &one, sizeof one)) die("TCP_NODELAY");
}

static void unix_pair(int ends[2]) {
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends)) die("socketpair");
    for (int i = 0, size = 4 << 20; i < 2; i++) setsockopt(ends[i], SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
}

static void answer(int fd, const char *bytes) {
    Request r;
    while (read_all(fd, (char *)&r, sizeof r) && r.size)
        if (!write_all(fd, bytes, r.size)) break;
}

static void ask(int fd, char *buffer, size_t size) {
    Request r = {size};
    if (!write_all(fd, (char *)&r, sizeof r) || !read_all(fd, buffer, size)) die("socket");
}

/* A process that answers at the other end; its number. */
static pid_t start_peer(void (*make)(int ends[2]), char *buffer, int *fd) {
    int ends[2];
    make(ends);
    pid_t child = fork();
    if (child < 0) die("fork");
    if (child == 0) {
        close(ends[0]);
        answer(ends[1], buffer);
        _exit(0);
    }
    close(ends[1]);
    *fd = ends[0];
    return child;
}

static void measure_sockets(void (*make)(int ends[2]), char *buffer, double *out) {
    static double times[MOST_RUNS];
    int fd;
    pid_t child = start_peer(make, buffer, &fd);
    for (int i = 0; i < SIZES; i++) {
        for (int k = -1; k < run_counts[i]; k++) {
            double began = now_us();
            ask(fd, buffer, sizes[i]);
            if (k >= 0) times[k] = now_us() - began;
        }
        out[i] = median(times, run_counts[i]);
    }
    close(fd);
    waitpid(child, NULL, 0);
}

/* ---- As a contender ---- */

static void contend(size_t size) {
    char line[64], *buffer = calloc(1, size ? size : 1);
    int fd;
    if (!buffer) die("malloc");
    memset(buffer, 1, size);
    pid_t child = start_peer(tcp_pair, buffer, &fd);
    for (int i = 0; i < 3; i++) ask(fd, buffer, size);
    printf("{}\n");
    fflush(stdout);
    while (fgets(line, sizeof line, stdin)) {
        double began = now_us(), until = began + 1e6 * atof(line), now = began;
        long steps = 0;
        for (; now < until; now = now_us(), steps++) ask(fd, buffer, size);
        printf("{\"steps\": %ld, \"seconds\": %f, \"steps_per_s\": %f}\n", steps, (now - began) / 1e6, (double)steps * 1e6 / (now - began));
        fflush(stdout);
    }
    close(fd);
    waitpid(child, NULL, 0);
    free(buffer);
}

/* ---- Memory ---- */

static void measure_copies(const char *from, char *to, double *out) {
    static double times[MOST_RUNS];
    for (int i = 0; i < SIZES; i++) {
        for (int k = -1; k < run_counts[i]; k++) {
            double began = now_us();
            memcpy(to, from, sizes[i]);
            __asm__ volatile("" ::"r"(to) : "memory");
            if (k >= 0) times[k] = now_us() - began;
        }
        out[i] = median(times, run_counts[i]);
    }
}

static void print(const char *name, const double *us, const char *end) {
    printf("\"%s\": [%.3f, %.3f, %.3f, %.3f]%s", name, us[0], us[1], us[2], us[3], end);
}

int main(int argc, char **argv) {
    if (argc == 3 && strcmp(argv[1], "tcp") == 0) {
        contend(strtoul(argv[2], NULL, 10));
        return 0;
    }
    double tcp[SIZES], local[SIZES], copy[SIZES];
    char *a = malloc(sizes[SIZES - 1]), *b = malloc(sizes[SIZES - 1]);
    if (!a || !b) die("malloc");
    memset(a, 1, sizes[SIZES - 1]);
    memset(b, 2, sizes[SIZES - 1]);
    measure_sockets(tcp_pair, a, tcp);
    measure_sockets(unix_pair, a, local);
    measure_copies(a, b, copy);
    printf("{");
    print("tcp", tcp, ", ");
    print("unix", local, ", ");
    print("memcpy", copy, "}\n");
    free(a);
    free(b);
    return 0;
}
