/* onednn.c: oneDNN's primitives, one-threaded, run in memory that the caller keeps. */
#include "kernels/onednn.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/block_cache.h"

void omp_set_num_threads(int count); /* of libgomp, which oneDNN uses; not every compiler brings omp.h */

void onednn_thread_setup(void) {
    static _Thread_local bool done;
    if (!done) omp_set_num_threads(1);
    done = true;
}

static dnnl_engine_t engine;
static void make_engine(void) {
    if (dnnl_engine_create(&engine, dnnl_cpu, 0) != dnnl_success) engine = NULL;
}
dnnl_engine_t onednn_engine(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, make_engine);
    return engine;
}

bool onednn_attributes(dnnl_primitive_attr_t *out) {
    onednn_thread_setup(); /* primitives are made for as many threads as there are now */
    if (!onednn_engine() || dnnl_primitive_attr_create(out) != dnnl_success) return false;
    if (dnnl_primitive_attr_set_scratchpad_mode(*out, dnnl_scratchpad_mode_user) == dnnl_success) return true;
    dnnl_primitive_attr_destroy(*out);
    return false;
}

bool onednn_primitive_init(OnednnPrimitive *p, dnnl_primitive_desc_t take) {
    p->scratch = *dnnl_primitive_desc_query_md(take, dnnl_query_scratchpad_md, 0);
    bool ok = dnnl_primitive_create(&p->handle, take) == dnnl_success;
    dnnl_primitive_desc_destroy(take);
    if (!ok) p->handle = NULL;
    return ok;
}

void onednn_primitive_clear(OnednnPrimitive *p) {
    if (p->handle) dnnl_primitive_destroy(p->handle);
    p->handle = NULL;
}

bool onednn_runner_init(OnednnRunner *r) {
    *r = (OnednnRunner){0};
    onednn_thread_setup();
    return onednn_engine() && dnnl_stream_create(&r->stream, onednn_engine(), dnnl_stream_default_flags) == dnnl_success;
}

void onednn_runner_clear(OnednnRunner *r) {
    if (r->stream) dnnl_stream_destroy(r->stream);
    block_free(r->scratch, r->scratch_size);
    *r = (OnednnRunner){0};
}

static bool make_room(OnednnRunner *r, size_t size) {
    if (size <= r->scratch_size) return true;
    block_free(r->scratch, r->scratch_size);
    r->scratch = block_alloc(size);
    r->scratch_size = r->scratch ? size : 0;
    return r->scratch != NULL;
}

bool onednn_execute(OnednnRunner *r, const OnednnPrimitive *p, const OnednnArgument *args, int count) {
    dnnl_exec_arg_t all[ONEDNN_MOST_ARGUMENTS + 1];
    int made = 0;
    assert(count <= ONEDNN_MOST_ARGUMENTS);
    size_t scratch_size = dnnl_memory_desc_get_size(&p->scratch);
    bool ok = make_room(r, scratch_size);
    for (int i = 0; ok && i < count; i++) {
        all[made].arg = args[i].role;
        ok = dnnl_memory_create(&all[made].memory, args[i].desc, onednn_engine(), args[i].data) == dnnl_success;
        made += ok;
    }
    if (ok && scratch_size > 0) {
        all[made].arg = DNNL_ARG_SCRATCHPAD;
        ok = dnnl_memory_create(&all[made].memory, &p->scratch, onednn_engine(), r->scratch) == dnnl_success;
        made += ok;
    }
    if (ok) ok = dnnl_primitive_execute(p->handle, r->stream, made, all) == dnnl_success && dnnl_stream_wait(r->stream) == dnnl_success;
    for (int i = 0; i < made; i++) dnnl_memory_destroy(all[i].memory);
    return ok;
}
