/* generator.c: GeneratorDataset, the elements a function gives until it says OutOfRange: what copy_to_device makes of an
   iterator on another device. */
#include <stdlib.h>

#include "base/memory.h"
#include "ops/dataset/dataset.h"
#include "ops/op_list.h"

const OpDef dataset_generator_ops[] = {
    {"GeneratorDataset",
     "init_func_other_args: Tinit_func_args, next_func_other_args: Tnext_func_args, finalize_func_other_args: "
     "Tfinalize_func_args -> handle: variant",
     "init_func: func; next_func: func; finalize_func: func; Tinit_func_args: list(type) >= 0; Tnext_func_args: "
     "list(type) >= 0; Tfinalize_func_args: list(type) >= 0; output_types: list(type) >= 1; output_shapes: "
     "list(shape) >= 1; metadata: string = ''",
     OP_STATEFUL},
    {0},
};

typedef struct GeneratorDataset {
    Dataset base;
    Closure *init, *next, *finalize;
} GeneratorDataset;

typedef struct GeneratorIterator {
    DatasetIterator base;
    bool started, finished;
    ClosureScope *scope; /* of who pulled first; outlives the iterator */
    Tensor **state;      /* what init returned; the arguments of the others */
    int state_count;
} GeneratorIterator;

static void destroy_generator(Dataset *d) {
    GeneratorDataset *g = (GeneratorDataset *)d;
    closure_unref(g->init);
    closure_unref(g->next);
    closure_unref(g->finalize);
}

/* Runs even when the step is cancelled: what init made must not stay. */
static Error *finalize(GeneratorIterator *i) {
    Tensor **rets = NULL;
    int ret_count = 0;
    i->finished = true;
    Error *err = closure_call(((GeneratorDataset *)i->base.dataset)->finalize, i->scope, NULL, i->state,
                              i->state_count, &rets, &ret_count);
    tuple_free(rets, ret_count);
    return err;
}

static Error *next_generated(DatasetIterator *it, IteratorContext *c, Tensor **out, bool *end) {
    GeneratorIterator *i = (GeneratorIterator *)it;
    GeneratorDataset *d = (GeneratorDataset *)it->dataset;
    if (!i->started) {
        Error *err = closure_call(d->init, c->scope, c->cancel, NULL, 0, &i->state, &i->state_count);
        if (err) return err;
        i->scope = c->scope;
        i->started = true;
    }
    *end = i->finished;
    if (*end) return NULL;
    Error *err = dataset_call(d->next, c, i->state, i->state_count, it->dataset->types, it->dataset->component_count, out);
    if (!err || err->code != CODE_OUT_OF_RANGE) return err;
    error_free(err);
    *end = true;
    return finalize(i);
}

static Error *save_generated(DatasetIterator *it, IteratorState *s) {
    (void)it;
    (void)s;
    return error_unimplemented("GeneratorDataset does not support checkpointing.");
}

static Error *restore_generated(DatasetIterator *it, IteratorContext *c, IteratorState *s) {
    (void)c;
    return save_generated(it, s);
}

static void stop_generated(DatasetIterator *it) {
    GeneratorIterator *i = (GeneratorIterator *)it;
    if (i->started && !i->finished) error_free(finalize(i)); /* nobody is left to tell */
    tuple_free(i->state, i->state_count);
}

static const DatasetKind generator_kind = {.name = "Generator",
                                           .size = sizeof(GeneratorDataset),
                                           .iterator_size = sizeof(GeneratorIterator),
                                           .destroy = destroy_generator,
                                           .next = next_generated,
                                           .save = save_generated,
                                           .restore = restore_generated,
                                           .stop = stop_generated};

static Error *run_generator(KernelContext *k) {
    Dataset *base = NULL;
    Error *err = dataset_from_attr(k, &generator_kind, "output_types", NULL, 0, &base);
    if (err) return err;
    GeneratorDataset *d = (GeneratorDataset *)base;
    int at = 0;
    err = kernel_closure(k, "init_func", "Tinit_func_args", at, &d->init, &at);
    if (!err) err = kernel_closure(k, "next_func", "Tnext_func_args", at, &d->next, &at);
    if (!err) err = kernel_closure(k, "finalize_func", "Tfinalize_func_args", at, &d->finalize, &at);
    if (err)
        dataset_unref(base);
    else
        kernel_set_dataset(k, 0, base);
    return err;
}

const KernelDef dataset_generator_cpu[] = {
    {"GeneratorDataset", .run = run_generator},
    {0},
};
