/* dataset.c: datasets as variants, iterators in general, and what kernels of datasets share. */
#include "ops/dataset/dataset.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/memory.h"
#include "ops/dataset/dataset_origin.h"
#include "ops/dataset/iterator_path.h"

/* ---- Datasets ---- */

Dataset *dataset_new(const DatasetKind *kind, const DataType *types, int count, Dataset *const *inputs,
                     int input_count) {
    Dataset *d = xcalloc(1, kind->size ? kind->size : sizeof *d);
    refcount_init(&d->refs);
    d->kind = kind;
    d->types = xcalloc((size_t)count + 1, sizeof *d->types);
    d->component_count = count;
    for (int i = 0; i < count; i++) d->types[i] = types[i];
    d->inputs = xcalloc((size_t)input_count + 1, sizeof(Dataset *));
    for (; d->input_count < input_count; d->input_count++)
        d->inputs[d->input_count] = dataset_ref(inputs[d->input_count]);
    return d;
}

Dataset *dataset_like(const DatasetKind *kind, Dataset *input) {
    return dataset_new(kind, input->types, input->component_count, &input, 1);
}

Error *dataset_from_attr(KernelContext *k, const DatasetKind *kind, const char *types_attr, Dataset *const *inputs,
                         int input_count, Dataset **out) {
    DataType *types = NULL;
    int count = 0;
    Error *err = node_attr_types(k->node, types_attr, &types, &count);
    if (!err) *out = dataset_new(kind, types, count, inputs, input_count);
    free(types);
    return err;
}

Dataset *dataset_ref(Dataset *d) {
    refcount_inc(&d->refs);
    return d;
}

void dataset_unref(Dataset *d) {
    if (!d || !refcount_dec(&d->refs)) return;
    if (d->kind->destroy) d->kind->destroy(d);
    for (int i = 0; i < d->input_count; i++) dataset_unref(d->inputs[i]);
    closure_unref(d->closure);
    dataset_origin_free(d->origin);
    free(d->inputs);
    free(d->types);
    free(d);
}

int64_t dataset_cardinality(const Dataset *d) {
    return d->kind->cardinality ? d->kind->cardinality(d) : CARDINALITY_UNKNOWN;
}

static void ref_dataset(void *object) {
    dataset_ref(object);
}

static void unref_dataset(void *object) {
    dataset_unref(object);
}

const VariantType dataset_variant_type = {
    .type_name = "tensorflow::DatasetVariantWrapper", .ref = ref_dataset, .unref = unref_dataset};

Error *tensor_dataset_wrapped(const Tensor *t, Dataset **out) {
    if (t->dtype != DT_VARIANT || t->shape.rank != 0)
        return error_invalid("Dataset tensor must be a scalar of dtype DT_VARIANT.");
    const Variant *v = tensor_variants(t);
    if (v->type != &dataset_variant_type) return error_invalid("Tensor must be a Dataset object.");
    *out = v->object;
    return NULL;
}

Error *tensor_dataset(const Tensor *t, Dataset **out) {
    Error *err = tensor_dataset_wrapped(t, out);
    while (!err && (*out)->kind->is_wrapper) *out = (*out)->inputs[0];
    return err;
}

Error *kernel_dataset(KernelContext *k, int i, Dataset **out) {
    return tensor_dataset(k->in[i], out);
}

Error *dataset_tensor(Dataset *d, Tensor **out) {
    Error *err = tensor_new(DT_VARIANT, &SHAPE_SCALAR, out);
    if (!err) variant_set(tensor_variants(*out), (Variant){&dataset_variant_type, d});
    return err;
}

void kernel_set_dataset(KernelContext *k, int o, Dataset *take) {
    Tensor *t = kernel_output(k, o, &SHAPE_SCALAR);
    if (!take->origin) take->origin = dataset_origin_new(k);
    if (t) variant_set(tensor_variants(t), (Variant){&dataset_variant_type, take});
    dataset_unref(take);
}

/* ---- What kernels read ---- */

Error *kernel_closure(KernelContext *k, const char *attr, const char *types_attr, int first, Closure **out, int *next) {
    Str value, function;
    DataType *types = NULL;
    int count = 0;
    if (!node_attr(k->node, attr, &value) || !attr_func(value, &function))
        return error_invalid("Attribute %s is not a function", attr);
    Error *err = node_attr_types(k->node, types_attr, &types, &count);
    free(types);
    if (!err && first + count > k->input_count)
        err = error_invalid("%s has more types than there are inputs", types_attr);
    if (err) return err;
    *out = closure_new(k, function, k->in + first, count);
    if (next) *next = first + count;
    return NULL;
}

static Error *check_one(KernelContext *k, int i, const char *what) {
    return k->in[i]->shape.rank == 0 ? NULL : error_invalid("%s must be a scalar", what);
}

Error *kernel_int64(KernelContext *k, int i, const char *what, int64_t *out) {
    Error *err = check_one(k, i, what);
    if (!err) *out = tensor_index(k->in[i], 0);
    return err;
}

Error *kernel_bool(KernelContext *k, int i, const char *what, bool *out) {
    Error *err = check_one(k, i, what);
    if (!err) *out = tensor_bool(k->in[i])[0];
    return err;
}

Error *kernel_string(KernelContext *k, int i, const char *what, Str *out) {
    Error *err = check_one(k, i, what);
    if (!err) *out = tstring_str(tensor_str(k->in[i]));
    return err;
}

/* ---- Iterators ---- */

static IteratorContext within(const IteratorContext *c, const DatasetIterator *it) {
    IteratorContext inner = *c;
    inner.parent = it;
    return inner;
}

Error *dataset_iterate(Dataset *d, IteratorContext *c, DatasetIterator **out) {
    DatasetIterator *it = xcalloc(1, d->kind->iterator_size ? d->kind->iterator_size : sizeof *it);
    it->kind = d->kind;
    it->dataset = dataset_ref(d);
    it->parent = c->parent;
    it->root = c->root;
    IteratorContext inner = within(c, it);
    Error *err = d->kind->start ? d->kind->start(it, &inner) : NULL;
    if (err)
        iterator_free(it);
    else
        *out = it;
    return err;
}

Error *iterator_start_input(DatasetIterator *it, IteratorContext *c) {
    return dataset_iterate(it->dataset->inputs[0], c, &it->input);
}

void iterator_free(DatasetIterator *it) {
    if (!it) return;
    if (it->kind->stop) it->kind->stop(it);
    iterator_free(it->input);
    dataset_unref(it->dataset);
    free(it);
}

Error *iterator_next(DatasetIterator *it, IteratorContext *c, Tensor **out, bool *end) {
    *end = false;
    for (int i = 0; i < it->dataset->component_count; i++) out[i] = NULL;
    Error *err = iterator_cancelled(c);
    IteratorContext inner = within(c, it);
    if (!err) err = it->kind->next(it, &inner, out, end);
    if (err && err->code == CODE_OUT_OF_RANGE) err = iterator_out_of_range(it, err);
    if (err) *end = false; /* there may be more behind it */
    if (err || *end) tuple_clear(out, it->dataset->component_count);
    return err;
}

Error *iterator_save_input(DatasetIterator *it, IteratorState *s) {
    state_put_int(s, it->input != NULL);
    return it->input ? iterator_save(it->input, s) : NULL;
}

Error *iterator_restore_input(DatasetIterator *it, IteratorContext *c, IteratorState *s) {
    int64_t present = 0;
    Error *err = state_get_range(s, 0, 1, &present);
    if (err) return err;
    if (!present || it->input) iterator_free(it->input);
    it->input = NULL;
    if (!present) return NULL;
    if (it->dataset->input_count < 1)
        return error_new(CODE_DATA_LOSS, "The saved state of the iterator belongs to another pipeline");
    err = iterator_start_input(it, c);
    return err ? err : iterator_restore(it->input, c, s);
}

Error *iterator_save(DatasetIterator *it, IteratorState *s) {
    state_put_text(s, str_of(it->kind->name));
    return it->kind->save ? it->kind->save(it, s) : iterator_save_input(it, s);
}

Error *iterator_restore(DatasetIterator *it, IteratorContext *c, IteratorState *s) {
    Str name = STR("");
    Error *err = state_get_text(s, &name);
    if (!err && !str_is(name, it->kind->name))
        err = error_invalid("The saved state of the iterator has %.*sDataset where the pipeline has %sDataset",
                            STR_ARG(name), it->kind->name);
    if (err) return err;
    IteratorContext inner = within(c, it);
    return it->kind->restore ? it->kind->restore(it, &inner, s) : iterator_restore_input(it, &inner, s);
}

/* ---- Functions ---- */

Error *dataset_check_results(Tensor *const *rets, int ret_count, const DataType *types, int count) {
    if (ret_count != count)
        return error_invalid("The function of a dataset returned %d values, %d are needed", ret_count, count);
    for (int i = 0; types && i < count; i++)
        if (rets[i]->dtype != types[i])
            return error_invalid("Result %d of the function of a dataset is %s, it should be %s", i,
                                 dtype_name(rets[i]->dtype), dtype_name(types[i]));
    return NULL;
}

Error *dataset_call(Closure *f, IteratorContext *c, Tensor *const *args, int arg_count, const DataType *types,
                    int count, Tensor **out) {
    Tensor **rets = NULL;
    int ret_count = 0;
    Error *err = closure_call(f, c->scope, c->cancel, args, arg_count, &rets, &ret_count);
    if (err) return err;
    err = dataset_check_results(rets, ret_count, types, count);
    if (!err) tuple_move(out, rets, count);
    tuple_free(rets, ret_count);
    return err;
}

/* ---- Elements ---- */

Tensor **tuple_new(int count) {
    return xcalloc((size_t)count + 1, sizeof(Tensor *));
}

void tuple_clear(Tensor **e, int count) {
    for (int i = 0; i < count; i++) {
        tensor_unref(e[i]);
        e[i] = NULL;
    }
}

void tuple_free(Tensor **e, int count) {
    if (!e) return;
    tuple_clear(e, count);
    free(e);
}

void tuple_move(Tensor **to, Tensor **from, int count) {
    for (int i = 0; i < count; i++) {
        to[i] = from[i];
        from[i] = NULL;
    }
}

void tuple_copy(Tensor **to, Tensor *const *from, int count) {
    for (int i = 0; i < count; i++) to[i] = tensor_ref(from[i]);
}

/* ---- Waiting ---- */

typedef struct Waker {
    pthread_mutex_t *mutex;
    pthread_cond_t *cond;
} Waker;

static void wake(void *arg) {
    Waker *w = arg;
    pthread_mutex_lock(w->mutex);
    pthread_cond_broadcast(w->cond);
    pthread_mutex_unlock(w->mutex);
}

bool iterator_wait(IteratorContext *c, pthread_mutex_t *mutex, pthread_cond_t *cond, bool (*ready)(void *arg),
                   void *arg) {
    Waker waker = {mutex, cond};
    CancelWatch watch = {0};
    for (bool watching = true; watching && !ready(arg);) {
        pthread_mutex_unlock(mutex); /* the watch is taken and given back without the lock: its fn needs it */
        watching = cancel_watch(c->cancel, &watch, wake, &waker);
        pthread_mutex_lock(mutex);
        while (watching && !ready(arg) && !cancel_is_set(c->cancel)) pthread_cond_wait(cond, mutex);
        pthread_mutex_unlock(mutex);
        if (watching) cancel_unwatch(c->cancel, &watch);
        pthread_mutex_lock(mutex); /* meanwhile another thread may have taken what was ready: then wait again */
    }
    return ready(arg);
}

Error *iterator_cancelled(IteratorContext *c) {
    return cancel_is_set(c->cancel) ? cancel_reason(c->cancel) : NULL;
}

int dataset_parallelism(int64_t asked) {
    if (asked < 1) {
        long cores = sysconf(_SC_NPROCESSORS_ONLN);
        asked = cores > 0 ? cores : 1;
    }
    return asked > 1024 ? 1024 : (int)asked;
}
