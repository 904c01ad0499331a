/* crowd.c: how long a process takes to touch the memory of one step of a worker when N processes do so in turn, on every core; JSON, by N.

   crowd TEXT_LINES TEXT_PAGES DATA_LINES DATA_PAGES N...: so many cache lines in so many pages, of memory that all processes share and only read (as they do a
   program), and of their own, which they write. Pages lie apart as they do in a process, so that each has its own line of the page table. Three
   figures, in µs: the shared lines, each read when the one before is there; the own lines, in any order; the own lines, one after the other. */
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { LINE = 64, PAGE = 4096, APART = 16 * PAGE, PARTS = 3, RUN_MS = 1500 };

typedef struct Lines {
    char *memory;
    uint32_t *places; /* in no order; each line says where the next one is */
    int count;
} Lines;

typedef struct Result {
    double us[PARTS];
    double turns;
} Result;

static void die(const char *what) {
    perror(what);
    exit(1);
}

static double now_us(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static Lines lines_new(int count, int pages, int flags, unsigned seed) {
    Lines l = {.count = count, .places = malloc((size_t)count * sizeof *l.places)};
    l.memory = mmap(NULL, (size_t)pages * APART, PROT_READ | PROT_WRITE, flags | MAP_ANONYMOUS, -1, 0);
    if (l.memory == MAP_FAILED || !l.places) die("memory");
    for (int i = 0; i < count; i++) l.places[i] = (uint32_t)(i % pages * APART + (i / pages * 7 + i % pages * 3) % (PAGE / LINE) * LINE);
    for (int i = count - 1; i > 0; i--) {
        int j = (int)((seed = seed * 1103515245 + 12345) >> 8) % (i + 1);
        uint32_t other = l.places[i];
        l.places[i] = l.places[j];
        l.places[j] = other;
    }
    for (int i = 0; i < count; i++) memcpy(l.memory + l.places[i], &l.places[(i + 1) % count], sizeof *l.places);
    return l;
}

static void touch_in_turn(const Lines *l) {
    uint32_t at = l->places[0];
    for (int i = 0; i < l->count; i++) at = *(volatile uint32_t *)(l->memory + at);
}

static void touch_in_any_order(const Lines *l) {
    for (int i = 0; i < l->count; i++) ++*(volatile uint32_t *)(l->memory + l->places[i] + sizeof *l->places);
}

static double since(double *mark) {
    double before = *mark;
    *mark = now_us();
    return *mark - before;
}

/* Turns of one process until it is told, or finds as the first one, that it is over. */
static void take_turns(const Lines *text, const Lines *data, int from, int to, double until_us, Result *out) {
    char word;
    while (read(from, &word, 1) == 1 && word == 'g') {
        double mark = now_us();
        touch_in_turn(text);
        out->us[0] += since(&mark);
        if ((int)out->turns % 2) {
            touch_in_any_order(data);
            out->us[1] += since(&mark);
        } else {
            touch_in_turn(data);
            out->us[2] += since(&mark);
        }
        out->turns++;
        if (until_us && mark > until_us) break;
        if (write(to, "g", 1) != 1) die("write");
    }
    if (write(to, "q", 1) != 1) die("write");
}

/* A ring of processes on one core. */
static void run_core(int core, int count, const Lines *text, const int *data, Result *results) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(core, &set);
    if (sched_setaffinity(0, sizeof set, &set) != 0) die("sched_setaffinity");
    int (*ring)[2] = calloc((size_t)count, sizeof *ring);
    for (int i = 0; i < count; i++)
        if (socketpair(AF_UNIX, SOCK_STREAM, 0, ring[i]) != 0) die("socketpair");
    double until_us = now_us() + RUN_MS * 1e3;
    for (int i = 0; i < count; i++) {
        if (fork() != 0) continue;
        Lines own = lines_new(data[0], data[1], MAP_PRIVATE, (unsigned)(core * count + i));
        take_turns(text, &own, ring[i][0], ring[(i + 1) % count][1], i ? 0 : until_us, &results[i]);
        _exit(0);
    }
    if (write(ring[0][1], "g", 1) != 1) die("write");
    while (wait(NULL) > 0) continue;
    _exit(0);
}

static Result run(int processes, const int *numbers) {
    int cores = (int)sysconf(_SC_NPROCESSORS_ONLN), each = processes / cores > 0 ? processes / cores : 1;
    Lines text = lines_new(numbers[0], numbers[1], MAP_SHARED, 1);
    size_t bytes = (size_t)(cores * each) * sizeof(Result);
    Result *results = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0), sum = {.turns = 0};
    if (results == MAP_FAILED) die("mmap");
    for (int core = 0; core < cores; core++)
        if (fork() == 0) run_core(core, each, &text, numbers + 2, results + core * each);
    while (wait(NULL) > 0) continue;
    for (int i = 0; i < cores * each; i++) {
        for (int k = 0; k < PARTS; k++) sum.us[k] += results[i].us[k];
        sum.turns += results[i].turns;
    }
    return sum;
}

int main(int argc, char **argv) {
    int numbers[4];
    if (argc < 6) {
        fprintf(stderr, "usage: crowd TEXT_LINES TEXT_PAGES DATA_LINES DATA_PAGES N...\n");
        return 2;
    }
    for (int i = 0; i < 4; i++) numbers[i] = atoi(argv[i + 1]);
    for (int i = 5; i < argc; i++) {
        Result r = run(atoi(argv[i]), numbers);
        double half = r.turns / 2;
        printf("%s\"%s\": [%.2f, %.2f, %.2f]", i == 5 ? "{" : ", ", argv[i], r.us[0] / r.turns, r.us[1] / half, r.us[2] / half);
        fflush(stdout);
    }
    printf("}\n");
    return 0;
}
