/* onednn.c: oneDNN called alone: a product of matrices, or a convolution with its backward passes, with weights in the layout oneDNN likes best.

     onednn gemm M K N        onednn conv BATCH SIZE IN OUT WINDOW forward|backward_data|backward_weights [blocked]

   Images are height x width x channels, or with "blocked" in the layout that oneDNN likes best.
   A contender of bench/contest.py: a line of JSON when ready, then one for each line "SECONDS [STEPS]" read. */
#include <dnnl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static dnnl_engine_t engine;
static dnnl_stream_t stream;

static void check(dnnl_status_t status, const char *what) {
    if (status == dnnl_success) return;
    fprintf(stderr, "onednn: %s failed (%d)\n", what, (int)status);
    exit(1);
}

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* ---- What is run ---- */

typedef struct Work {
    dnnl_primitive_t primitive;
    dnnl_exec_arg_t args[3];
    long m, k, n; /* of a product; primitive is NULL */
    float *a, *b, *c;
} Work;

static float *numbers(size_t count) {
    float *p = aligned_alloc(64, (count * sizeof *p + 63) / 64 * 64);
    for (size_t i = 0; p && i < count; i++) p[i] = (float)(i % 7) * 0.1f;
    return p;
}

static void run(Work *w) {
    if (w->primitive) {
        check(dnnl_primitive_execute(w->primitive, stream, 3, w->args), "execute");
        check(dnnl_stream_wait(stream), "wait");
    } else {
        check(dnnl_sgemm('N', 'N', w->m, w->n, w->k, 1, w->a, w->k, w->b, w->n, 0, w->c, w->n), "sgemm");
    }
}

static Work gemm(char **argv) {
    Work w = {.m = atol(argv[0]), .k = atol(argv[1]), .n = atol(argv[2])};
    w.a = numbers((size_t)(w.m * w.k));
    w.b = numbers((size_t)(w.k * w.n));
    w.c = numbers((size_t)(w.m * w.n));
    return w;
}

static dnnl_memory_t memory_of(const dnnl_memory_desc_t *desc) {
    dnnl_memory_t memory;
    check(dnnl_memory_create(&memory, desc, engine, numbers(dnnl_memory_desc_get_size(desc) / sizeof(float) + 1)), "memory");
    return memory;
}

static Work conv(char **argv, bool is_blocked) {
    long batch = atol(argv[0]), size = atol(argv[1]), in = atol(argv[2]), out = atol(argv[3]), window = atol(argv[4]);
    const char *pass = argv[5];
    dnnl_dims_t strides = {1, 1}, pad = {window / 2, window / 2};
    dnnl_format_tag_t images = is_blocked ? dnnl_format_tag_any : dnnl_nhwc;
    dnnl_memory_desc_t x, weights, y;
    check(dnnl_memory_desc_init_by_tag(&x, 4, (dnnl_dims_t){batch, in, size, size}, dnnl_f32, images), "desc");
    check(dnnl_memory_desc_init_by_tag(&y, 4, (dnnl_dims_t){batch, out, size, size}, dnnl_f32, images), "desc");
    check(dnnl_memory_desc_init_by_tag(&weights, 4, (dnnl_dims_t){out, in, window, window}, dnnl_f32, dnnl_format_tag_any), "desc");
    dnnl_convolution_desc_t forward, desc;
    dnnl_primitive_desc_t hint = NULL, chosen;
    check(dnnl_convolution_forward_desc_init(&forward, dnnl_forward_training, dnnl_convolution_direct, &x, &weights, NULL, &y, strides, pad, pad), "forward");
    check(dnnl_primitive_desc_create(&hint, &forward, NULL, engine, NULL), "forward");
    chosen = hint;
    bool is_data = !strcmp(pass, "backward_data"), is_weights = !strcmp(pass, "backward_weights");
    if (is_data) check(dnnl_convolution_backward_data_desc_init(&desc, dnnl_convolution_direct, &x, &weights, &y, strides, pad, pad), "backward");
    if (is_weights) check(dnnl_convolution_backward_weights_desc_init(&desc, dnnl_convolution_direct, &x, &weights, NULL, &y, strides, pad, pad), "backward");
    if (is_data || is_weights) check(dnnl_primitive_desc_create(&chosen, &desc, NULL, engine, hint), "backward");
    dnnl_memory_t mx = memory_of(dnnl_primitive_desc_query_md(chosen, is_data ? dnnl_query_diff_src_md : dnnl_query_src_md, 0));
    dnnl_memory_t mw = memory_of(dnnl_primitive_desc_query_md(chosen, is_weights ? dnnl_query_diff_weights_md : dnnl_query_weights_md, 0));
    dnnl_memory_t my = memory_of(dnnl_primitive_desc_query_md(chosen, is_data || is_weights ? dnnl_query_diff_dst_md : dnnl_query_dst_md, 0));
    Work w = {0};
    check(dnnl_primitive_create(&w.primitive, chosen), "primitive");
    w.args[0] = (dnnl_exec_arg_t){is_data ? DNNL_ARG_DIFF_SRC : DNNL_ARG_SRC, mx};
    w.args[1] = (dnnl_exec_arg_t){is_weights ? DNNL_ARG_DIFF_WEIGHTS : DNNL_ARG_WEIGHTS, mw};
    w.args[2] = (dnnl_exec_arg_t){is_data || is_weights ? DNNL_ARG_DIFF_DST : DNNL_ARG_DST, my};
    return w;
}

/* ---- Windows ---- */

static void window(Work *w, double seconds, long max) {
    long steps = 0;
    double began = now(), ended = began;
    while (ended - began < seconds && (!max || steps < max)) {
        run(w);
        ended = now();
        steps++;
    }
    double each = (ended - began) / (double)steps * 1e6;
    printf("{\"steps\": %ld, \"seconds\": %.9f, \"steps_per_s\": %.3f, \"median_us\": %.3f}\n", steps, ended - began, 1e6 / each, each);
    fflush(stdout);
}

int main(int argc, char **argv) {
    bool is_gemm = argc == 5 && !strcmp(argv[1], "gemm"), is_conv = argc >= 8 && !strcmp(argv[1], "conv");
    bool is_blocked = argc == 9 && !strcmp(argv[8], "blocked");
    if ((!is_gemm && !is_conv) || (argc > 8 && !is_blocked)) {
        fprintf(stderr, "usage: onednn gemm M K N | onednn conv BATCH SIZE IN OUT WINDOW forward|backward_data|backward_weights [blocked]\n");
        return 2;
    }
    check(dnnl_engine_create(&engine, dnnl_cpu, 0), "engine");
    check(dnnl_stream_create(&stream, engine, dnnl_stream_default_flags), "stream");
    Work w = is_gemm ? gemm(argv + 2) : conv(argv + 2, is_blocked);
    for (int i = 0; i < 5; i++) run(&w);
    printf("{\"version\": \"%d.%d.%d\"}\n", dnnl_version()->major, dnnl_version()->minor, dnnl_version()->patch);
    fflush(stdout);
    char line[256];
    double seconds;
    while (fgets(line, sizeof line, stdin)) {
        long steps = 0;
        if (sscanf(line, "%lf %ld", &seconds, &steps) < 1) return 2;
        window(&w, seconds, steps);
    }
    return 0;
}
