/* stack.c: Stack and StackV2, a stack of tensors that lives for one step; the memory of v1 loops between forward and backward pass. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/memory.h"
#include "ops/op_list.h"

const OpDef stack_ops[] = {
    {"StackV2", "max_size: int32 -> handle: resource", "elem_type: type; stack_name: string = ''", OP_STATEFUL},
    {"StackPushV2", "handle: resource, elem: T -> output: T", "T: type; swap_memory: bool = false", OP_STATEFUL},
    {"StackPopV2", "handle: resource -> elem: elem_type", "elem_type: type", OP_STATEFUL},
    {"StackCloseV2", "handle: resource ->", "", OP_STATEFUL},
    {"Stack", "-> handle: Ref(string)", "elem_type: type; stack_name: string = ''", OP_STATEFUL},
    {"StackPush", "handle: Ref(string), elem: T -> output: T", "T: type; swap_memory: bool = false", 0},
    {"StackPop", "handle: Ref(string) -> elem: elem_type", "elem_type: type", 0},
    {"StackClose", "handle: Ref(string) ->", "", 0},
    {0},
};

typedef struct Stack {
    Resource base;
    DataType dtype;
    int64_t max_size; /* -1: no limit */
    char *name;
    pthread_mutex_t mutex; /* guards all below */
    Tensor **items;
    size_t count, capacity;
    bool closed;
} Stack;

static void stack_destroy(Resource *r) {
    Stack *s = (Stack *)r;
    for (size_t i = 0; i < s->count; i++) tensor_unref(s->items[i]);
    free(s->items);
    free(s->name);
    pthread_mutex_destroy(&s->mutex);
    free(s);
}

static const ResourceType stack_type = {.type_name = "N10tensorflow5StackE", .what = "stack", .destroy = stack_destroy};

static Error *run_stack(KernelContext *k) {
    static _Atomic int64_t counter; /* every run makes a stack of its own */
    int64_t max_size = -1;
    Str given;
    Error *err = k->input_count ? kernel_scalar_int(k, 0, &max_size) : NULL;
    if (!err) err = node_attr_string(k->node, "stack_name", &given);
    if (err) return err;
    Stack *s = xcalloc(1, sizeof *s);
    resource_init(&s->base, &stack_type);
    pthread_mutex_init(&s->mutex, NULL);
    s->max_size = max_size;
    err = node_attr_type(k->node, "elem_type", &s->dtype);
    s->name = xasprintf("%.*s_%lld", STR_ARG(given.len ? given : k->node->name), (long long)atomic_fetch_add(&counter, 1));
    if (!err) err = resource_add(kernel_step_resources(k), STR(""), str_of(s->name), &s->base);
    if (!err) kernel_set_handle(k, resource_default_container(kernel_step_resources(k)), str_of(s->name), &stack_type);
    resource_unref(&s->base);
    return err;
}

static Error *run_push(KernelContext *k) {
    Resource *r = NULL;
    Error *err = kernel_resource(k, 0, &stack_type, &r);
    if (err) return err;
    Stack *s = (Stack *)r;
    pthread_mutex_lock(&s->mutex);
    if (s->closed)
        err = error_invalid("Stack[%s] has already been closed.", s->name);
    else if (s->dtype != k->in[1]->dtype)
        err = error_invalid("Must have type %s but got %s", dtype_name(s->dtype), dtype_name(k->in[1]->dtype));
    else if (s->max_size >= 0 && (int64_t)s->count >= s->max_size)
        err = error_invalid("Stack[%s] overflowed its max_size (%lld)", s->name, (long long)s->max_size);
    if (!err) {
        s->items = vec_reserve(s->items, &s->capacity, s->count + 1, sizeof *s->items);
        s->items[s->count++] = tensor_ref(k->in[1]);
        kernel_set_output(k, 0, tensor_ref(k->in[1]));
    }
    pthread_mutex_unlock(&s->mutex);
    resource_unref(r);
    return err;
}

static Error *run_pop(KernelContext *k) {
    Resource *r = NULL;
    Error *err = kernel_resource(k, 0, &stack_type, &r);
    if (err) return err;
    Stack *s = (Stack *)r;
    pthread_mutex_lock(&s->mutex);
    if (s->closed)
        err = error_invalid("Stack[%s] has already been closed.", s->name);
    else if (s->count == 0)
        err = error_invalid("Stack[%s] is empty when calling Pop().", s->name);
    else if (s->dtype != kernel_output_type(k, 0))
        err = error_invalid("Must have type %s but got %s", dtype_name(s->dtype), dtype_name(kernel_output_type(k, 0)));
    else
        kernel_set_output(k, 0, s->items[--s->count]);
    pthread_mutex_unlock(&s->mutex);
    resource_unref(r);
    return err;
}

static Error *run_close(KernelContext *k) {
    Resource *r = NULL;
    Error *err = kernel_resource(k, 0, &stack_type, &r);
    if (err) return err;
    Stack *s = (Stack *)r;
    pthread_mutex_lock(&s->mutex);
    s->closed = true;
    pthread_mutex_unlock(&s->mutex);
    resource_unref(r);
    return NULL;
}

const KernelDef stack_cpu[] = {
    {"StackV2", .run = run_stack},
    {"StackPushV2", .run = run_push},
    {"StackPopV2", .run = run_pop},
    {"StackCloseV2", .run = run_close},
    {"Stack", .run = run_stack},
    {"StackPush", .run = run_push},
    {"StackPop", .run = run_pop},
    {"StackClose", .run = run_close},
    {0},
};
