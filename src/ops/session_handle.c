/* session_handle.c: tensors that stay in the session between runs: GetSessionHandle, GetSessionTensor. */
#include <pthread.h>
#include <stdlib.h>

#include "base/hashmap.h"
#include "base/memory.h"
#include "ops/elements.h"
#include "ops/op_list.h"
#include "ops/session_handle.h"
#include "runtime/device.h"
#include "runtime/step_context.h"

const OpDef session_handle_ops[] = {
    {"GetSessionHandle", "value: T -> handle: string", "T: type", OP_STATEFUL},
    {"GetSessionHandleV2", "value: T -> handle: resource", "T: type", OP_STATEFUL},
    {"GetSessionTensor", "handle: string -> value: dtype", "dtype: type", OP_STATEFUL},
    {"DeleteSessionTensor", "handle: string ->", "", OP_STATEFUL},
    {0},
};

/* The tensors of one session on one device, by handle: "node;number;device". */
typedef struct SessionTensors {
    Resource base;
    pthread_mutex_t mutex; /* guards what follows */
    StrMap tensors;        /* to Kept */
    int64_t next;
} SessionTensors;

typedef struct Kept {
    char *handle;
    Tensor *value;
} Kept;

static void kept_free(Kept *kept) {
    if (!kept) return;
    tensor_unref(kept->value);
    free(kept->handle);
    free(kept);
}

static void tensors_destroy(Resource *r) {
    SessionTensors *s = (SessionTensors *)r;
    size_t at = 0;
    Str key;
    void *value;
    while (strmap_next(&s->tensors, &at, &key, &value)) kept_free(value);
    strmap_clear(&s->tensors);
    pthread_mutex_destroy(&s->mutex);
    free(s);
}

static const ResourceType session_tensors_type = {"TensorHandle", "session tensors", tensors_destroy, NULL};

static Error *tensors_create(void *arg, Resource **out) {
    SessionTensors *s = xcalloc(1, sizeof *s);
    (void)arg;
    resource_init(&s->base, &session_tensors_type);
    pthread_mutex_init(&s->mutex, NULL);
    *out = &s->base;
    return NULL;
}

/* Private to the session: it goes when the session is closed. */
static Error *session_tensors(KernelContext *k, SessionTensors **out) {
    char *key = xasprintf("session_tensors of %s", k->device->name); /* no node's name has blanks */
    Str name = session_private_name(k->step->session, k->device, str_of(key), &session_tensors_type);
    free(key);
    Resource *r = NULL;
    Error *err =
        resource_find_or_create(kernel_resources(k), STR(""), name, &session_tensors_type, tensors_create, NULL, &r);
    *out = (SessionTensors *)r;
    return err;
}

static Error *keep(KernelContext *k, char **handle) {
    SessionTensors *s = NULL;
    Error *err = session_tensors(k, &s);
    if (err) return err;
    Kept *kept = xcalloc(1, sizeof *kept);
    kept->value = tensor_ref(k->in[0]);
    pthread_mutex_lock(&s->mutex);
    kept->handle = xasprintf("%.*s;%lld;%s", STR_ARG(k->node->name), (long long)s->next++, k->device->name);
    *handle = xstrdup(kept->handle);
    strmap_put(&s->tensors, str_of(kept->handle), kept);
    pthread_mutex_unlock(&s->mutex);
    resource_unref(&s->base);
    return NULL;
}

static Error *run_handle(KernelContext *k) {
    char *handle = NULL;
    Error *err = keep(k, &handle);
    if (!err) kernel_set_output(k, 0, tensor_scalar_str(str_of(handle)));
    free(handle);
    return err;
}

static Error *run_handle_v2(KernelContext *k) {
    char *handle = NULL;
    Error *err = keep(k, &handle);
    if (!err) kernel_set_output(k, 0, kernel_make_handle(k, STR(""), str_of(handle), &session_tensors_type));
    free(handle);
    return err;
}

static Error *handle_input(KernelContext *k, Str *out) {
    if (k->in[0]->count != 1)
        return error_invalid("handle must be a scalar, got shape %s", shape_text(&k->in[0]->shape).text);
    *out = tstring_str(tensor_str(k->in[0]));
    return NULL;
}

static Error *not_kept(Str handle) {
    return error_invalid("The tensor with handle '%.*s' is not in the session store.", STR_ARG(handle));
}

static Error *find(KernelContext *k, Str handle, Tensor **out) {
    SessionTensors *s = NULL;
    Error *err = session_tensors(k, &s);
    if (err) return err;
    pthread_mutex_lock(&s->mutex);
    const Kept *kept = strmap_get(&s->tensors, handle);
    if (kept) *out = tensor_ref(kept->value);
    pthread_mutex_unlock(&s->mutex);
    resource_unref(&s->base);
    return kept ? NULL : not_kept(handle);
}

/* A client feeds a handle as a resource whose container says what it is. */
Error *session_handle_value(KernelContext *k, const Tensor *handle, Tensor **out) {
    *out = NULL;
    if (handle->dtype != DT_RESOURCE || handle->count != 1) return NULL;
    const ResourceHandle *h = tensor_handles(handle)[0];
    return h && str_is(str_of(h->container), session_tensors_type.type_name) ? find(k, str_of(h->name), out) : NULL;
}

static Error *run_tensor(KernelContext *k) {
    Str handle = STR("");
    Tensor *value = NULL;
    Error *err = handle_input(k, &handle);
    if (!err) err = find(k, handle, &value);
    if (err) return err;
    if (value->dtype != kernel_output_type(k, 0)) {
        err = error_internal("Output 0 of type %s does not match declared output type %s for node {{node %.*s}}", dtype_name(value->dtype),
                             dtype_name(kernel_output_type(k, 0)), STR_ARG(k->node->name));
        tensor_unref(value);
        return err;
    }
    kernel_set_output(k, 0, value);
    return NULL;
}

static Error *run_delete(KernelContext *k) {
    SessionTensors *s = NULL;
    Str handle = STR("");
    Error *err = handle_input(k, &handle);
    if (!err) err = session_tensors(k, &s);
    if (err) return err;
    pthread_mutex_lock(&s->mutex);
    Kept *kept = strmap_remove(&s->tensors, handle);
    pthread_mutex_unlock(&s->mutex);
    resource_unref(&s->base);
    kept_free(kept);
    return kept ? NULL : error_invalid("Failed to delete a tensor with handle '%.*s' in the session store.", STR_ARG(handle));
}

const KernelDef session_handle_cpu[] = {
    {"GetSessionHandle", .run = run_handle},
    {"GetSessionHandleV2", .run = run_handle_v2},
    {"GetSessionTensor", .run = run_tensor},
    {"DeleteSessionTensor", .run = run_delete},
    {0},
};
