/* unbatch.c: Unbatch, which gives steps their rows of a batched result, and UnbatchGrad, which puts their gradients together.

   Steps meet by the ids that Batch gave them. */
#include <stdlib.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/thread.h"
#include "ops/batch_scheduler.h"
#include "ops/op_list.h"
#include "ops/elements.h"

const OpDef unbatch_ops[] = {
    {"Unbatch", "batched_tensor: T, batch_index: int64, id: int64 -> unbatched_tensor: T",
     "timeout_micros: int; container: string = ''; shared_name: string = ''; T: type", 0},
    {"UnbatchGrad", "original_input: T, batch_index: int64, grad: T, id: int64 -> batched_grad: T",
     "container: string = ''; shared_name: string = ''; T: type", 0},
    {0},
};

/* ---- The room where steps and rows wait for each other ---- */

typedef struct WaitingStep {
    int64_t id, deadline_ns;
    KernelContext *k;
    struct UnbatchRoom *room; /* a reference */
    CancelWatch watch;
    bool watching;
} WaitingStep;

typedef struct WaitingRows {
    int64_t id, deadline_ns;
    Tensor *rows;
} WaitingRows;

typedef struct UnbatchRoom {
    Resource base;
    pthread_mutex_t mutex; /* guards all below */
    pthread_cond_t changed;
    WaitingStep **steps;
    WaitingRows *rows;
    size_t step_count, step_capacity, row_count, row_capacity;
    bool stopping, watched;
    pthread_t watcher;
    ThreadPool *blocking;
} UnbatchRoom;

static void destroy_room(Resource *r) {
    UnbatchRoom *room = (UnbatchRoom *)r;
    pthread_mutex_lock(&room->mutex);
    room->stopping = true;
    pthread_cond_broadcast(&room->changed);
    pthread_mutex_unlock(&room->mutex);
    if (room->watched) pthread_join(room->watcher, NULL);
    for (size_t i = 0; i < room->row_count; i++) tensor_unref(room->rows[i].rows);
    free(room->rows);
    free(room->steps);
    pthread_mutex_destroy(&room->mutex);
    pthread_cond_destroy(&room->changed);
    free(room);
}

static const ResourceType unbatch_type = {
    .type_name = "N10tensorflow15UnbatchResourceE", .what = "unbatch", .destroy = destroy_room};
static const ResourceType unbatch_grad_type = {
    .type_name = "N10tensorflow19UnbatchGradResourceE", .what = "unbatch gradient", .destroy = destroy_room};

typedef struct RoomPlan {
    const ResourceType *type;
    ThreadPool *blocking;
} RoomPlan;

static Error *create_room(void *arg, Resource **out) {
    const RoomPlan *plan = arg;
    UnbatchRoom *room = xcalloc(1, sizeof *room);
    resource_init(&room->base, plan->type);
    room->blocking = plan->blocking;
    pthread_mutex_init(&room->mutex, NULL);
    cond_init(&room->changed);
    *out = &room->base;
    return NULL;
}

static Error *find_room(KernelContext *k, const ResourceType *type, UnbatchRoom **out) {
    Str container = STR(""), name = STR("");
    Resource *r = NULL;
    Error *err = node_attr_string(k->node, "container", &container);
    if (!err) err = node_attr_string(k->node, "shared_name", &name);
    RoomPlan plan = {type, kernel_blocking_pool(k)};
    if (!err)
        err = resource_find_or_create(kernel_resources(k), container, name.len ? name : k->node->name, type,
                                      create_room, &plan, &r);
    if (!err) *out = (UnbatchRoom *)r;
    return err;
}

static ptrdiff_t find_step(const UnbatchRoom *room, int64_t id) {
    for (size_t i = 0; i < room->step_count; i++)
        if (room->steps[i]->id == id) return (ptrdiff_t)i;
    return -1;
}

static ptrdiff_t find_rows(const UnbatchRoom *room, int64_t id) {
    for (size_t i = 0; i < room->row_count; i++)
        if (room->rows[i].id == id) return (ptrdiff_t)i;
    return -1;
}

static WaitingStep *take_step_locked(UnbatchRoom *room, ptrdiff_t i) {
    WaitingStep *w = room->steps[i];
    room->steps[i] = room->steps[--room->step_count];
    return w;
}

static Tensor *take_rows_locked(UnbatchRoom *room, ptrdiff_t i) {
    Tensor *t = room->rows[i].rows;
    room->rows[i] = room->rows[--room->row_count];
    return t;
}

static void add_rows_locked(UnbatchRoom *room, int64_t id, int64_t deadline_ns, Tensor *take) {
    room->rows = vec_reserve(room->rows, &room->row_capacity, room->row_count + 1, sizeof *room->rows);
    room->rows[room->row_count++] = (WaitingRows){id, deadline_ns, take};
}

/* A step that was taken out of the room goes on; takes rows and err. */
static void end_step(WaitingStep *w, Tensor *rows, Error *err) {
    KernelContext *k = w->k;
    UnbatchRoom *room = w->room;
    if (w->watching) cancel_unwatch(kernel_cancel(k), &w->watch);
    if (!err) kernel_set_output(k, 0, rows);
    free(w);
    resource_unref(&room->base);
    kernel_done(k, err);
}

/* The step was cancelled while it waited: the watcher looks. */
static void leave(void *arg) {
    WaitingStep *w = arg;
    pthread_mutex_lock(&w->room->mutex);
    pthread_cond_broadcast(&w->room->changed);
    pthread_mutex_unlock(&w->room->mutex);
}

/* On another thread than the watcher's, which waits for nobody: with the step may go the last reference to the room. */
static void end_late(void *arg) {
    WaitingStep *w = arg;
    Error *reason = cancel_reason(kernel_cancel(w->k));
    if (!reason)
        reason = error_new(CODE_DEADLINE_EXCEEDED, "Batched data did not arrive within timeout window.");
    end_step(w, NULL, reason);
}

/* Takes out one step whose time is over, and all such rows. */
static WaitingStep *evict_locked(UnbatchRoom *room, int64_t *next) {
    int64_t now = clock_mono_ns();
    *next = INT64_MAX;
    for (size_t i = 0; i < room->row_count;) {
        if (room->rows[i].deadline_ns <= now) {
            tensor_unref(take_rows_locked(room, (ptrdiff_t)i));
            continue;
        }
        if (room->rows[i].deadline_ns < *next) *next = room->rows[i].deadline_ns;
        i++;
    }
    for (size_t i = 0; i < room->step_count; i++) {
        if (room->steps[i]->deadline_ns <= now || cancel_is_set(kernel_cancel(room->steps[i]->k)))
            return take_step_locked(room, (ptrdiff_t)i);
        if (room->steps[i]->deadline_ns < *next) *next = room->steps[i]->deadline_ns;
    }
    return NULL;
}

static void *watch_time(void *arg) {
    UnbatchRoom *room = arg;
    pthread_mutex_lock(&room->mutex);
    while (!room->stopping) {
        int64_t next = INT64_MAX;
        WaitingStep *late = evict_locked(room, &next);
        if (late) {
            threadpool_post(room->blocking, end_late, late);
            continue;
        }
        if (next == INT64_MAX)
            pthread_cond_wait(&room->changed, &room->mutex);
        else
            cond_wait_until(&room->changed, &room->mutex, next);
    }
    pthread_mutex_unlock(&room->mutex);
    return NULL;
}

/* The step waits from now on. */
static Error *enter_locked(UnbatchRoom *room, KernelContext *k, int64_t id, int64_t deadline_ns) {
    if (!room->watched) {
        room->watched = pthread_create(&room->watcher, NULL, watch_time, room) == 0;
        if (!room->watched) return error_new(CODE_RESOURCE_EXHAUSTED, "No thread for the time of steps that wait");
    }
    WaitingStep *w = xcalloc(1, sizeof *w);
    *w = (WaitingStep){.id = id, .deadline_ns = deadline_ns, .k = kernel_defer(k), .room = room};
    resource_ref(&room->base);
    room->steps = vec_reserve(room->steps, &room->step_capacity, room->step_count + 1, sizeof *room->steps);
    room->steps[room->step_count++] = w;
    w->watching = cancel_watch(kernel_cancel(w->k), &w->watch, leave, w);
    pthread_cond_broadcast(&room->changed);
    return NULL;
}

/* ---- Unbatch ---- */

static Error *check_index(const Tensor *data, const Tensor *index, const Tensor *id) {
    if (data->shape.rank < 1) return error_invalid("The batched tensor must have at least one dimension");
    if (index->shape.rank != 2 || index->shape.dims[0] > data->shape.dims[0])
        return error_invalid(
            "Wrong shape for index tensor. Expected 0th dimension size to be no greater than %lld; Got: %s.",
            (long long)data->shape.dims[0], shape_text(&index->shape).text);
    if (index->shape.dims[1] != 3)
        return error_invalid("Wrong shape for index tensor. Expected 1st dimension size to be 3 ; Got: %lld.",
                             (long long)index->shape.dims[1]);
    if (id->shape.rank != 0) return error_invalid("Input id should be scalar; Got: %s.", shape_text(&id->shape).text);
    int64_t left = data->shape.dims[0];
    for (int64_t i = 0; i < index->shape.dims[0]; i++) {
        const int64_t *row = tensor_i64(index) + 3 * i;
        int64_t size = 0;
        if (__builtin_sub_overflow(row[2], row[1], &size) || size < 0 || size > left)
            return error_invalid("Row %lld of the index tensor names rows that the batch does not have", (long long)i);
        left -= size;
    }
    return NULL;
}

/* A step that can go on with these rows, once the lock is given back. */
typedef struct Ending {
    WaitingStep *step;
    Tensor *rows;
} Ending;

static Error *hand_out_locked(UnbatchRoom *room, const Tensor *data, const Tensor *index, int64_t deadline_ns,
                              Ending *endings, int64_t *count) {
    int64_t at = 0;
    for (int64_t i = 0; i < index->shape.dims[0]; i++) {
        const int64_t *row = tensor_i64(index) + 3 * i;
        Tensor *rows = tensor_rows(data, at, at + row[2] - row[1]);
        at += row[2] - row[1];
        ptrdiff_t found = find_step(room, row[0]);
        if (found >= 0) {
            endings[(*count)++] = (Ending){take_step_locked(room, found), rows};
        } else if (find_rows(room, row[0]) >= 0) {
            tensor_unref(rows);
            return error_new(CODE_ALREADY_EXISTS, "Multiple tensors returned for same batch key.");
        } else {
            add_rows_locked(room, row[0], deadline_ns, rows);
        }
    }
    pthread_cond_broadcast(&room->changed);
    return NULL;
}

static int64_t deadline_after(int64_t timeout_us) {
    int64_t wait, deadline;
    bool over = __builtin_mul_overflow(timeout_us, 1000, &wait) ||
                __builtin_add_overflow(wait, clock_mono_ns(), &deadline);
    return over ? INT64_MAX - 1 : deadline;
}

static Error *run_unbatch(KernelContext *k) {
    Tensor *data = k->in[0], *index = k->in[1];
    int64_t timeout_us = 0;
    UnbatchRoom *room = NULL;
    Error *err = check_index(data, index, k->in[2]);
    if (!err) err = node_attr_int(k->node, "timeout_micros", &timeout_us);
    if (!err) err = find_room(k, &unbatch_type, &room);
    if (err) return err;
    int64_t id = *tensor_i64(k->in[2]), deadline_ns = deadline_after(timeout_us), ending_count = 0;
    WaitingStep *mine = NULL;
    Error *failed = NULL;
    Ending *endings = xcalloc((size_t)index->shape.dims[0] + 1, sizeof *endings);
    tensor_ref(data); /* the step may end before all rows are handed out */
    tensor_ref(index);
    pthread_mutex_lock(&room->mutex);
    ptrdiff_t there = find_rows(room, id);
    if (there >= 0) {
        kernel_set_output(k, 0, take_rows_locked(room, there));
    } else {
        err = find_step(room, id) >= 0
                  ? error_new(CODE_ALREADY_EXISTS, "Multiple session runs with the same batch key.")
                  : NULL;
        if (!err) err = enter_locked(room, k, id, deadline_ns);
        Error *late = err ? NULL : hand_out_locked(room, data, index, deadline_ns, endings, &ending_count);
        ptrdiff_t self = late ? find_step(room, id) : -1;
        if (self >= 0) {
            failed = late;
            mine = take_step_locked(room, self);
        } else {
            error_free(late);
        }
    }
    pthread_mutex_unlock(&room->mutex);
    if (mine) end_step(mine, NULL, failed);
    for (int64_t i = 0; i < ending_count; i++) end_step(endings[i].step, endings[i].rows, NULL);
    free(endings);
    tensor_unref(data);
    tensor_unref(index);
    resource_unref(&room->base);
    return err;
}

/* ---- UnbatchGrad: the rooms' rows are gradients, its steps are those that want all of a batch ---- */

static bool all_there(const UnbatchRoom *room, const Tensor *index) {
    for (int64_t i = 0; i < index->shape.dims[0]; i++)
        if (find_rows(room, tensor_i64(index)[3 * i]) < 0) return false;
    return true;
}

static Error *join_locked(UnbatchRoom *room, const Tensor *index, Tensor **out) {
    int64_t n = index->shape.dims[0], taken = 0;
    Tensor **parts = xcalloc((size_t)n + 1, sizeof *parts);
    Error *err = NULL;
    for (; !err && taken < n; taken++) {
        ptrdiff_t i = find_rows(room, tensor_i64(index)[3 * taken]);
        if (i < 0) {
            err = error_internal("bad bookkeeping of available tensors.");
            break;
        }
        parts[taken] = take_rows_locked(room, i);
        if (parts[taken]->shape.rank < 1) err = error_invalid("A gradient must have at least one dimension");
    }
    if (!err) err = rows_concat(parts, n, out);
    for (int64_t i = 0; i < taken; i++) tensor_unref(parts[i]);
    free(parts);
    return err;
}

static Error *check_grad(KernelContext *k) {
    const Tensor *data = k->in[0], *index = k->in[1], *grad = k->in[2];
    if (k->in[3]->shape.rank != 0)
        return error_invalid("Expected `id` to be scalar. Received %s", shape_text(&k->in[3]->shape).text);
    if (grad->shape.rank < 1) return error_invalid("A gradient must have at least one dimension");
    if (data->count == 0) return NULL;
    if (index->count == 0) return error_invalid("batch_index is empty while the tensor isn't.");
    if (index->shape.rank < 1 || index->count != index->shape.dims[0] * 3)
        return error_invalid("batch_index should contain %lld elements. Received %lld",
                             index->shape.rank < 1 ? 3LL : (long long)index->shape.dims[0] * 3,
                             (long long)index->count);
    return NULL;
}

/* Takes out one step whose batch is complete. */
static bool complete_locked(UnbatchRoom *room, Ending *out, Error **err) {
    for (size_t i = 0; i < room->step_count; i++) {
        const Tensor *index = room->steps[i]->k->in[1];
        if (!all_there(room, index)) continue;
        out->step = take_step_locked(room, (ptrdiff_t)i);
        *err = join_locked(room, index, &out->rows);
        return true;
    }
    return false;
}

static Error *run_unbatch_grad(KernelContext *k) {
    UnbatchRoom *room = NULL;
    Error *err = check_grad(k), *failed = NULL;
    if (!err) err = find_room(k, &unbatch_grad_type, &room);
    if (err) return err;
    int64_t id = *tensor_i64(k->in[3]);
    Ending ending = {0};
    pthread_mutex_lock(&room->mutex);
    if (find_rows(room, id) >= 0) {
        err = error_invalid("Two runs with the same batch key.");
    } else {
        add_rows_locked(room, id, INT64_MAX, tensor_ref(k->in[2]));
        if (k->in[0]->count == 0) {
            Shape none = k->in[2]->shape;
            none.dims[0] = 0;
            kernel_output(k, 0, &none);
        } else if (all_there(room, k->in[1])) {
            Tensor *whole = NULL;
            err = join_locked(room, k->in[1], &whole);
            if (!err) kernel_set_output(k, 0, whole);
        } else {
            err = enter_locked(room, k, id, INT64_MAX);
        }
    }
    bool ends = !err && complete_locked(room, &ending, &failed);
    pthread_mutex_unlock(&room->mutex);
    if (ends) end_step(ending.step, ending.rows, failed);
    resource_unref(&room->base);
    return err;
}

const KernelDef unbatch_cpu[] = {
    {"Unbatch", .run = run_unbatch, .flags = KERNEL_DEFERS},
    {"UnbatchGrad", .run = run_unbatch_grad, .flags = KERNEL_DEFERS},
    {0},
};
