/* mpi.c: a contender of two OpenMPI processes. mpirun -n 2 mpi barrier|transfer|reduce BYTES: the first prints a line when it is ready, then one for each line "SECONDS [STEPS]" it reads,
   as rill bench --lines does. Between windows the second sleeps and looks: a process that waits in MPI polls, and would take a core from the others. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef struct Work {
    const char *what;
    int floats;
    float *from, *to;
} Work;

static double now_s(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static double cpu_s(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* The work of one step: of the first process (rank 0) or of the second. A transfer is a request that is answered with the bytes. */
static void step(const Work *w, int rank) {
    char request = 1;
    if (!strcmp(w->what, "barrier")) {
        MPI_Barrier(MPI_COMM_WORLD);
    } else if (!strcmp(w->what, "reduce")) {
        MPI_Allreduce(w->from, w->to, w->floats, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    } else if (rank == 0) {
        MPI_Send(&request, 1, MPI_CHAR, 1, 1, MPI_COMM_WORLD);
        MPI_Recv(w->to, w->floats, MPI_FLOAT, 1, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else {
        MPI_Recv(&request, 1, MPI_CHAR, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Send(w->from, w->floats, MPI_FLOAT, 0, 2, MPI_COMM_WORLD);
    }
}

/* Tells the second process how many steps come; 0: none any more. */
static void announce(int steps) {
    MPI_Send(&steps, 1, MPI_INT, 1, 0, MPI_COMM_WORLD);
}

static int await_steps(void) {
    int steps, is_there = 0;
    while (!is_there) {
        MPI_Iprobe(0, 0, MPI_COMM_WORLD, &is_there, MPI_STATUS_IGNORE);
        if (!is_there) nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    MPI_Recv(&steps, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return steps;
}

static void follow(const Work *w) {
    for (int steps; (steps = await_steps());)
        for (int i = 0; i < steps; i++) step(w, 1);
}

/* Runs some steps; returns the seconds of one. */
static double run(const Work *w, int steps) {
    announce(steps);
    step(w, 0); /* the other may have slept */
    double began = now_s();
    for (int i = 1; i < steps; i++) step(w, 0);
    return (now_s() - began) / (steps - 1);
}

static void lead(const Work *w) {
    double each = run(w, 20), seconds;
    char line[256];
    printf("{\"first_ms\": 0}\n");
    fflush(stdout);
    while (fgets(line, sizeof line, stdin) && sscanf(line, "%lf", &seconds) == 1) {
        int steps = 2 + (int)(seconds / each);
        double cpu = cpu_s();
        each = run(w, steps);
        printf("{\"steps\": %d, \"seconds\": %.9f, \"steps_per_s\": %.3f, \"median_us\": %.3f, \"client_cpu_us\": %.3f, \"server_cpu_us\": []}\n", steps - 1, each * (steps - 1), 1 / each, each * 1e6,
               (cpu_s() - cpu) / steps * 1e6);
        fflush(stdout);
    }
    announce(0);
}

int main(int argc, char **argv) {
    int rank, count;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &count);
    if (argc != 3 || count != 2) {
        fprintf(stderr, "usage: mpirun -n 2 mpi barrier|transfer|reduce BYTES\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    Work w = {.what = argv[1], .floats = atoi(argv[2]) / 4};
    w.from = calloc((size_t)w.floats + 1, sizeof *w.from);
    w.to = calloc((size_t)w.floats + 1, sizeof *w.to);
    if (!w.from || !w.to) MPI_Abort(MPI_COMM_WORLD, 1);
    if (rank == 0)
        lead(&w);
    else
        follow(&w);
    free(w.from);
    free(w.to);
    MPI_Finalize();
    return 0;
}
