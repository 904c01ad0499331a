/* group_by.c: GroupByWindowDataset, GroupByReducerDataset: elements sorted by a key that a function gives. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "ops/dataset/element_list.h"
#include "ops/op_list.h"

const OpDef dataset_group_ops[] = {
    {"GroupByWindowDataset",
     "input_dataset: variant, key_func_other_arguments: Tkey_func_other_arguments, reduce_func_other_arguments: "
     "Treduce_func_other_arguments, window_size_func_other_arguments: Twindow_size_func_other_arguments -> handle: "
     "variant",
     "key_func: func; reduce_func: func; window_size_func: func; Tkey_func_other_arguments: list(type) >= 0; "
     "Treduce_func_other_arguments: list(type) >= 0; Twindow_size_func_other_arguments: list(type) >= 0; "
     "output_types: list(type) >= 1; output_shapes: list(shape) >= 1; metadata: string = ''",
     0},
    {"ExperimentalGroupByWindowDataset",
     "input_dataset: variant, key_func_other_arguments: Tkey_func_other_arguments, reduce_func_other_arguments: "
     "Treduce_func_other_arguments, window_size_func_other_arguments: Twindow_size_func_other_arguments -> handle: "
     "variant",
     "key_func: func; reduce_func: func; window_size_func: func; Tkey_func_other_arguments: list(type) >= 0; "
     "Treduce_func_other_arguments: list(type) >= 0; Twindow_size_func_other_arguments: list(type) >= 0; "
     "output_types: list(type) >= 1; output_shapes: list(shape) >= 1",
     0},
    {"GroupByReducerDataset",
     "input_dataset: variant, key_func_other_arguments: Tkey_func_other_arguments, init_func_other_arguments: "
     "Tinit_func_other_arguments, reduce_func_other_arguments: Treduce_func_other_arguments, "
     "finalize_func_other_arguments: Tfinalize_func_other_arguments -> handle: variant",
     "key_func: func; init_func: func; reduce_func: func; finalize_func: func; Tkey_func_other_arguments: list(type)"
     " >= 0; Tinit_func_other_arguments: list(type) >= 0; Treduce_func_other_arguments: list(type) >= 0; "
     "Tfinalize_func_other_arguments: list(type) >= 0; output_types: list(type) >= 1; output_shapes: list(shape) >= "
     "1",
     OP_STATEFUL},
    {"ExperimentalGroupByReducerDataset",
     "input_dataset: variant, key_func_other_arguments: Tkey_func_other_arguments, init_func_other_arguments: "
     "Tinit_func_other_arguments, reduce_func_other_arguments: Treduce_func_other_arguments, "
     "finalize_func_other_arguments: Tfinalize_func_other_arguments -> handle: variant",
     "key_func: func; init_func: func; reduce_func: func; finalize_func: func; Tkey_func_other_arguments: list(type)"
     " >= 0; Tinit_func_other_arguments: list(type) >= 0; Treduce_func_other_arguments: list(type) >= 0; "
     "Tfinalize_func_other_arguments: list(type) >= 0; output_types: list(type) >= 1; output_shapes: list(shape) >= "
     "1",
     OP_STATEFUL},
    {0},
};

enum { FUNCTION_MAX = 4 };

typedef struct GroupDataset {
    Dataset base;
    Closure *f[FUNCTION_MAX]; /* key, reduce, size; or key, init, reduce, finalize */
} GroupDataset;

static void destroy_group(Dataset *d) {
    for (int i = 0; i < FUNCTION_MAX; i++) closure_unref(((GroupDataset *)d)->f[i]);
}

static Closure *function_of(const DatasetIterator *it, int i) {
    return ((const GroupDataset *)it->dataset)->f[i];
}

/* A function that gives one int64. */
static Error *call_int64(Closure *f, IteratorContext *c, Tensor *const *args, int arg_count, const char *what,
                         int64_t *out) {
    Tensor *t = NULL;
    Error *err = dataset_call(f, c, args, arg_count, NULL, 1, &t);
    if (err) return err;
    if (t->dtype != DT_INT64 || t->shape.rank != 0)
        err = error_invalid("`%s` must return a scalar int64.", what);
    else
        *out = *tensor_i64(t);
    tensor_unref(t);
    return err;
}

static Error *make_group(KernelContext *k, const DatasetKind *kind, const char *const *names, const char *const *types,
                         int count) {
    Dataset *in = NULL, *d = NULL;
    int next = 1;
    Error *err = kernel_dataset(k, 0, &in);
    if (!err) err = dataset_from_attr(k, kind, "output_types", &in, 1, &d);
    if (err) return err;
    for (int i = 0; !err && i < count; i++)
        err = kernel_closure(k, names[i], types[i], next, &((GroupDataset *)d)->f[i], &next);
    if (err)
        dataset_unref(d);
    else
        kernel_set_dataset(k, 0, d);
    return err;
}

/* ---- Windows of equal keys ---- */

typedef struct Group {
    int64_t key, window; /* window: elements it waits for */
    ElementList list;
} Group;

typedef struct GroupIterator {
    DatasetIterator base;
    Group *groups; /* by key */
    int64_t count;
    size_t capacity;
    DatasetIterator *current; /* of the dataset that a full group was reduced to */
    Group reduced;            /* that group, while there is a current one */
} GroupIterator;

static int in_count(const DatasetIterator *it) {
    return it->dataset->inputs[0]->component_count;
}

static Group *find_group(GroupIterator *g, int64_t key, bool *is_new) {
    int64_t lo = 0, hi = g->count;
    while (lo < hi) {
        int64_t mid = lo + (hi - lo) / 2;
        if (g->groups[mid].key < key)
            lo = mid + 1;
        else
            hi = mid;
    }
    *is_new = lo == g->count || g->groups[lo].key != key;
    if (*is_new) {
        g->groups = vec_reserve(g->groups, &g->capacity, (size_t)g->count + 1, sizeof *g->groups);
        memmove(g->groups + lo + 1, g->groups + lo, (size_t)(g->count++ - lo) * sizeof *g->groups);
        g->groups[lo] = (Group){.key = key};
    }
    return &g->groups[lo];
}

static void remove_group(GroupIterator *g, Group *group) {
    element_list_clear(&group->list, in_count(&g->base));
    int64_t at = group - g->groups;
    memmove(group, group + 1, (size_t)(--g->count - at) * sizeof *group);
}

static void close_current(GroupIterator *g) {
    iterator_free(g->current);
    g->current = NULL;
    element_list_clear(&g->reduced.list, in_count(&g->base));
}

static Error *reduce_error(const DatasetIterator *it, Error *take) {
    if (!take || take->code == CODE_CANCELLED) return take;
    Error *err = error_internal("Got error code %s and message: {\n%s\n} \nfrom running user-defined function %.*s: ",
                                error_code_name(take->code), take->message, STR_ARG(closure_name(function_of(it, 1))));
    error_free(take);
    return err;
}

/* Begins to walk the dataset that a group is reduced to. */
static Error *open_group(GroupIterator *g, IteratorContext *c, const Group *group) {
    DatasetIterator *it = &g->base;
    Dataset *in = it->dataset->inputs[0],
            *window = element_list_dataset(&group->list, 1, in->types, 0, in->component_count), *made = NULL;
    Tensor *args[2] = {tensor_scalar_i64(group->key), NULL}, *result = NULL;
    Error *err = dataset_tensor(window, &args[1]);
    dataset_unref(window);
    if (!err) err = reduce_error(it, dataset_call(function_of(it, 1), c, args, 2, NULL, 1, &result));
    if (!err) err = tensor_dataset(result, &made);
    bool same = !err && made->component_count == it->dataset->component_count;
    for (int i = 0; same && i < made->component_count; i++) same = made->types[i] == it->dataset->types[i];
    if (!err && !same) err = error_invalid("`reduce_func` returned a dataset of other types than output_types says");
    if (!err) err = dataset_iterate(made, c, &g->current);
    tensor_unref(result);
    tensor_unref(args[0]);
    tensor_unref(args[1]);
    return err;
}

/* Reduces a group to a dataset, which becomes the current one. One that cannot be reduced stays, unless nobody would
 * learn of it. */
static Error *reduce_group(GroupIterator *g, IteratorContext *c, Group *group) {
    Error *err = open_group(g, c, group);
    if (err && !c->drops_errors) return err;
    if (!err) {
        g->reduced = *group;
        group->list = (ElementList){0};
    }
    remove_group(g, group);
    return err;
}

static Error *add_to_group(GroupIterator *g, IteratorContext *c, Tensor **take) {
    DatasetIterator *it = &g->base;
    int64_t key = 0;
    bool is_new = false;
    Error *err = call_int64(function_of(it, 0), c, take, in_count(it), "key_func", &key);
    if (err) {
        tuple_free(take, in_count(it));
        return err;
    }
    Group *group = find_group(g, key, &is_new);
    element_list_add(&group->list, take);
    if (is_new) {
        Tensor *arg = tensor_scalar_i64(key);
        err = call_int64(function_of(it, 2), c, &arg, 1, "window_size_func", &group->window);
        tensor_unref(arg);
        if (!err && group->window <= 0)
            err = error_invalid("Window size must be greater than zero, but got %lld.", (long long)group->window);
        if (err) {
            remove_group(g, group);
            return err;
        }
    }
    return group->list.count == group->window ? reduce_group(g, c, group) : NULL;
}

static Error *next_of_groups(DatasetIterator *it, IteratorContext *c, Tensor **out, bool *end) {
    GroupIterator *g = (GroupIterator *)it;
    Error *err = NULL;
    while (!err) {
        if (g->current) {
            err = iterator_next(g->current, c, out, end);
            if (err || !*end) return err;
            close_current(g);
        } else if (it->input) {
            Tensor **element = tuple_new(in_count(it));
            err = iterator_next(it->input, c, element, end);
            if (!err && !*end) {
                err = add_to_group(g, c, element);
                continue;
            }
            tuple_free(element, in_count(it));
            if (err) break;
            iterator_free(it->input);
            it->input = NULL;
        } else if (g->count) {
            err = reduce_group(g, c, &g->groups[0]);
        } else {
            *end = true;
            return NULL;
        }
    }
    return err;
}

static void stop_groups(DatasetIterator *it) {
    GroupIterator *g = (GroupIterator *)it;
    close_current(g);
    while (g->count) remove_group(g, &g->groups[g->count - 1]);
    free(g->groups);
}

static Error *save_group(const Group *group, int components, IteratorState *s) {
    state_put_int(s, group->key);
    state_put_int(s, group->window);
    return element_list_save(&group->list, components, s);
}

static Error *restore_group_head(IteratorState *s, int64_t *key, int64_t *window) {
    Error *err = state_get_int(s, key);
    return err ? err : state_get_range(s, 1, INT64_MAX, window);
}

/* The group in the middle of which it was saved. */
static Error *restore_current(GroupIterator *g, IteratorContext *c, IteratorState *s) {
    const Dataset *in = g->base.dataset->inputs[0];
    int64_t present = 0;
    Error *err = state_get_range(s, 0, 1, &present);
    if (err || !present) return err;
    err = restore_group_head(s, &g->reduced.key, &g->reduced.window);
    if (!err) err = element_list_restore(&g->reduced.list, in->types, in->component_count, s);
    if (!err) err = open_group(g, c, &g->reduced);
    return err ? err : iterator_restore(g->current, c, s);
}

static Error *save_groups(DatasetIterator *it, IteratorState *s) {
    GroupIterator *g = (GroupIterator *)it;
    state_put_int(s, g->count);
    Error *err = NULL;
    for (int64_t i = 0; !err && i < g->count; i++) err = save_group(&g->groups[i], in_count(it), s);
    state_put_int(s, g->current != NULL);
    if (!err && g->current) err = save_group(&g->reduced, in_count(it), s);
    if (!err && g->current) err = iterator_save(g->current, s);
    return err ? err : iterator_save_input(it, s);
}

static Error *restore_groups(DatasetIterator *it, IteratorContext *c, IteratorState *s) {
    GroupIterator *g = (GroupIterator *)it;
    const Dataset *in = it->dataset->inputs[0];
    int64_t count = 0, key = 0, window = 0;
    bool is_new;
    Error *err = state_get_range(s, 0, INT64_MAX, &count);
    for (int64_t i = 0; !err && i < count; i++) {
        err = restore_group_head(s, &key, &window);
        if (err) break;
        Group *group = find_group(g, key, &is_new);
        group->window = window;
        err = element_list_restore(&group->list, in->types, in->component_count, s);
    }
    if (!err) err = restore_current(g, c, s);
    return err ? err : iterator_restore_input(it, c, s);
}

static const DatasetKind group_by_window_kind = {.name = "GroupByWindow",
                                                 .size = sizeof(GroupDataset),
                                                 .iterator_size = sizeof(GroupIterator),
                                                 .destroy = destroy_group,
                                                 .start = iterator_start_input,
                                                 .next = next_of_groups,
                                                 .save = save_groups,
                                                 .restore = restore_groups,
                                                 .stop = stop_groups};

static Error *run_group_by_window(KernelContext *k) {
    static const char *const names[] = {"key_func", "reduce_func", "window_size_func"};
    static const char *const types[] = {"Tkey_func_other_arguments", "Treduce_func_other_arguments",
                                        "Twindow_size_func_other_arguments"};
    return make_group(k, &group_by_window_kind, names, types, 3);
}

/* ---- One result for each key ---- */

typedef struct Reduction {
    int64_t key;
    Tensor **state;
} Reduction;

typedef struct ReducerIterator {
    DatasetIterator base;
    Reduction *items; /* by key */
    int64_t count, at;
    size_t capacity;
    int state_count; /* known after the first init */
} ReducerIterator;

static Error *find_reduction(ReducerIterator *r, IteratorContext *c, int64_t key, Reduction **out) {
    int64_t at = 0;
    while (at < r->count && r->items[at].key < key) at++;
    if (at < r->count && r->items[at].key == key) {
        *out = &r->items[at];
        return NULL;
    }
    Tensor *arg = tensor_scalar_i64(key), **rets = NULL;
    int ret_count = 0;
    Error *err = closure_call(function_of(&r->base, 1), c->scope, c->cancel, &arg, 1, &rets, &ret_count);
    tensor_unref(arg);
    if (!err && r->count && ret_count != r->state_count) {
        tuple_free(rets, ret_count);
        err = error_invalid("`init_func` returned %d values, before it was %d", ret_count, r->state_count);
    }
    if (err) return err;
    r->state_count = ret_count;
    r->items = vec_reserve(r->items, &r->capacity, (size_t)r->count + 1, sizeof *r->items);
    memmove(r->items + at + 1, r->items + at, (size_t)(r->count++ - at) * sizeof *r->items);
    r->items[at] = (Reduction){key, rets};
    *out = &r->items[at];
    return NULL;
}

static Error *reduce_one(ReducerIterator *r, IteratorContext *c, Tensor *const *element) {
    DatasetIterator *it = &r->base;
    int n = in_count(it);
    int64_t key = 0;
    Reduction *to = NULL;
    Error *err = call_int64(function_of(it, 0), c, element, n, "key_func", &key);
    if (!err) err = find_reduction(r, c, key, &to);
    if (err) return err;
    Tensor **args = tuple_new(r->state_count + n), **rets = tuple_new(r->state_count);
    tuple_copy(args, to->state, r->state_count);
    tuple_copy(args + r->state_count, element, n);
    err = dataset_call(function_of(it, 2), c, args, r->state_count + n, NULL, r->state_count, rets);
    if (!err) {
        tuple_clear(to->state, r->state_count);
        tuple_move(to->state, rets, r->state_count);
    }
    tuple_free(args, r->state_count + n);
    tuple_free(rets, r->state_count);
    return err;
}

static Error *next_reduced(DatasetIterator *it, IteratorContext *c, Tensor **out, bool *end) {
    ReducerIterator *r = (ReducerIterator *)it;
    Tensor **element = tuple_new(in_count(it));
    Error *err = NULL;
    while (!err && it->input) {
        bool ended = false;
        err = iterator_next(it->input, c, element, &ended);
        if (!err && !ended) err = reduce_one(r, c, element);
        tuple_clear(element, in_count(it));
        if (err || !ended) continue;
        iterator_free(it->input);
        it->input = NULL;
    }
    free(element);
    *end = r->at >= r->count;
    if (err || *end) return err;
    return dataset_call(function_of(it, 3), c, r->items[r->at++].state, r->state_count, it->dataset->types,
                        it->dataset->component_count, out);
}

static void stop_reducer(DatasetIterator *it) {
    ReducerIterator *r = (ReducerIterator *)it;
    for (int64_t i = 0; i < r->count; i++) tuple_free(r->items[i].state, r->state_count);
    free(r->items);
}

static Error *save_reducer(DatasetIterator *it, IteratorState *s) {
    ReducerIterator *r = (ReducerIterator *)it;
    int64_t numbers[] = {r->count, r->at, r->state_count};
    Error *err = NULL;
    for (int i = 0; i < 3; i++) state_put_int(s, numbers[i]);
    for (int64_t i = 0; !err && i < r->count; i++) {
        state_put_int(s, r->items[i].key);
        err = state_put_element(s, r->items[i].state, r->state_count);
    }
    return err ? err : iterator_save_input(it, s);
}

static Error *restore_reducer(DatasetIterator *it, IteratorContext *c, IteratorState *s) {
    ReducerIterator *r = (ReducerIterator *)it;
    int64_t count = 0, state_count = 0;
    Error *err = state_get_range(s, 0, INT64_MAX, &count);
    if (!err) err = state_get_range(s, 0, count, &r->at);
    if (!err) err = state_get_range(s, 0, 1 << 20, &state_count);
    r->state_count = (int)state_count;
    for (int64_t i = 0; !err && i < count; i++) {
        Reduction one = {.state = tuple_new(r->state_count)};
        err = state_get_int(s, &one.key);
        for (int j = 0; !err && j < r->state_count; j++) err = state_get_tensor(s, &one.state[j]);
        r->items = vec_reserve(r->items, &r->capacity, (size_t)r->count + 1, sizeof *r->items);
        r->items[r->count++] = one;
    }
    return err ? err : iterator_restore_input(it, c, s);
}

static const DatasetKind reducer_kind = {.name = "GroupByReducer",
                                         .size = sizeof(GroupDataset),
                                         .iterator_size = sizeof(ReducerIterator),
                                         .destroy = destroy_group,
                                         .start = iterator_start_input,
                                         .next = next_reduced,
                                         .save = save_reducer,
                                         .restore = restore_reducer,
                                         .stop = stop_reducer};

static Error *run_group_by_reducer(KernelContext *k) {
    static const char *const names[] = {"key_func", "init_func", "reduce_func", "finalize_func"};
    static const char *const types[] = {"Tkey_func_other_arguments", "Tinit_func_other_arguments",
                                        "Treduce_func_other_arguments", "Tfinalize_func_other_arguments"};
    return make_group(k, &reducer_kind, names, types, 4);
}

const KernelDef dataset_group_cpu[] = {
    {"GroupByWindowDataset", .run = run_group_by_window},
    {"ExperimentalGroupByWindowDataset", .run = run_group_by_window},
    {"GroupByReducerDataset", .run = run_group_by_reducer},
    {"ExperimentalGroupByReducerDataset", .run = run_group_by_reducer},
    {0},
};
