/* onednn.h: oneDNN's primitives, one-threaded, run in memory that the caller keeps. */
#pragma once
#include <oneapi/dnnl/dnnl.h>
#include <stdbool.h>
#include <stddef.h>

dnnl_engine_t onednn_engine(void); /* NULL: there is none */
/* The calling thread's calls into oneDNN use no threads of their own; the pool is what shares work. */
void onednn_thread_setup(void);

/* A primitive and the memory it wants to scribble in. Immutable once made; several threads may execute it. */
typedef struct OnednnPrimitive {
    dnnl_primitive_t handle; /* NULL: nothing to do */
    dnnl_memory_desc_t scratch;
} OnednnPrimitive;

/* Attributes for all primitives: scratch memory is the caller's, since oneDNN's own belongs to the thread that made the primitive. */
bool onednn_attributes(dnnl_primitive_attr_t *out);
bool onednn_primitive_init(OnednnPrimitive *p, dnnl_primitive_desc_t take);
void onednn_primitive_clear(OnednnPrimitive *p);

/* What one thread needs to execute primitives one after the other. */
typedef struct OnednnRunner {
    dnnl_stream_t stream;
    void *scratch;
    size_t scratch_size;
} OnednnRunner;
bool onednn_runner_init(OnednnRunner *r);
void onednn_runner_clear(OnednnRunner *r);

typedef struct OnednnArgument {
    int role; /* DNNL_ARG_... */
    const dnnl_memory_desc_t *desc;
    void *data;
} OnednnArgument;

enum { ONEDNN_MOST_ARGUMENTS = 4 };
/* False when oneDNN fails or there is no memory. */
bool onednn_execute(OnednnRunner *r, const OnednnPrimitive *p, const OnednnArgument *args, int count);
