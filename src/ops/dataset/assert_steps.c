/* assert_steps.c: AssertNextDataset, AssertPrevDataset: their input, if the pipeline has the transformations it is said
   to have.

   TensorFlow's optimiser puts transformations together, leaves some out and adds others; Rill runs what it was given.
   So one that another is found for is no error, but one that there is not at all. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "ops/dataset/dataset.h"
#include "ops/dataset/dataset_origin.h"
#include "ops/dataset/iterator_path.h"
#include "ops/op_list.h"

const OpDef dataset_assert_steps_ops[] = {
    {"AssertNextDataset", "input_dataset: variant, transformations: string -> handle: variant",
     "output_types: list(type) >= 1; output_shapes: list(shape) >= 1", 0},
    {"ExperimentalAssertNextDataset", "input_dataset: variant, transformations: string -> handle: variant",
     "output_types: list(type) >= 1; output_shapes: list(shape) >= 1", 0},
    {"AssertPrevDataset", "input_dataset: variant, transformations: string -> handle: variant",
     "output_types: list(type) >= 1; output_shapes: list(shape) >= 1", 0},
    {0},
};

typedef struct StepsDataset {
    Dataset base;
    Tensor *names; /* a reference */
} StepsDataset;

static void destroy_steps(Dataset *d) {
    tensor_unref(((StepsDataset *)d)->names);
}

static int64_t count_input(const Dataset *d) {
    return dataset_cardinality(d->inputs[0]);
}

static Error *next_of_input(DatasetIterator *it, IteratorContext *c, Tensor **out, bool *end) {
    return iterator_next(it->input, c, out, end);
}

/* An op of that name and suffix, in any version. */
static bool is_op(Str name, const char *suffix) {
    static const char *const versions[] = {"", "V2", "V3", "V4"};
    bool is = false;
    for (size_t i = 0; !is && i < sizeof versions / sizeof *versions; i++) {
        StrBuf op = {0};
        strbuf_addf(&op, "%.*s%s%s", STR_ARG(name), suffix, versions[i]);
        is = kernel_exists(strbuf_str(&op));
        strbuf_clear(&op);
    }
    return is;
}

/* Iterators that TensorFlow calls otherwise than their ops. */
static bool is_step(Str name) {
    static const char *const parts[] = {"Root", "Model", "Take", "Skip", "Repeat", "Cache", "Reader", "Writer"};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (memmem(name.ptr, name.len, parts[i], strlen(parts[i]))) return true;
    return is_op(name, "Dataset") || is_op(name, "");
}

/* ---- Next: those that pull it ---- */

static Error *start_next(DatasetIterator *it, IteratorContext *c) {
    const Tensor *names = ((StepsDataset *)it->dataset)->names;
    int64_t above = 1; /* the root */
    for (const DatasetIterator *p = it->parent; p; p = p->parent) above++;
    if (names->count > above)
        return error_invalid("Asserted next %lld transformations but encountered only %lld.", (long long)names->count,
                             (long long)above);
    const DatasetIterator *parent = it->parent;
    for (int64_t i = 0; i < names->count; i++) {
        Str name = tstring_str(&tensor_str(names)[i]);
        if (!is_step(name)) {
            StrBuf found = {0};
            if (parent)
                iterator_step_name(parent, &found);
            else
                strbuf_add(&found, STR("Root"));
            Error *err = error_invalid(
                "Asserted transformation matching %.*s at offset %lld but encountered %.*s transformation instead.",
                STR_ARG(name), (long long)i, STR_ARG(strbuf_str(&found)));
            strbuf_clear(&found);
            return err;
        }
        if (parent) parent = parent->parent;
    }
    return iterator_start_input(it, c);
}

/* ---- Prev: those that it pulls; each is a NameAttrList as text ---- */

/* The next string behind `field: "`, none when there is no more; *rest moves behind it. */
static Str next_string(Str *rest, const char *field) {
    const char *at = memmem(rest->ptr, rest->len, field, strlen(field));
    if (!at) return STR("");
    Str after = str_slice(*rest, (size_t)(at - rest->ptr) + strlen(field), rest->len);
    const char *end = memchr(after.ptr, '"', after.len);
    if (!end) return STR("");
    Str found = str_slice(after, 0, (size_t)(end - after.ptr));
    *rest = str_slice(after, found.len, after.len);
    return found;
}

static bool has_attr(const Dataset *d, Str wanted) {
    Str name, value;
    for (int i = 0; dataset_origin_attr(d, i, &name, &value); i++)
        if (str_eq(name, wanted)) return true;
    return false;
}

static Error *check_previous(const Dataset *d, Str asserted) {
    Str op = dataset_origin_op(d), rest = asserted, name = next_string(&rest, "name: \"");
    if (!is_op(name, ""))
        return error_invalid("Asserted transformation matching '%.*s', but found '%.*s'.", STR_ARG(name), STR_ARG(op));
    if (!str_starts(op, name)) return NULL;
    rest = asserted;
    for (Str key = next_string(&rest, "key: \""); key.len; key = next_string(&rest, "key: \""))
        if (!has_attr(d, key))
            return error_invalid("Asserted attribute '%.*s', but found no such attribute defined.", STR_ARG(key));
    return NULL;
}

static Error *start_previous(DatasetIterator *it, IteratorContext *c) {
    const Tensor *names = ((StepsDataset *)it->dataset)->names;
    const Dataset *d = it->dataset;
    for (int64_t i = 0; i < names->count; i++) {
        if (!d->input_count)
            return error_invalid("Asserted previous %lld transformations but encountered only %lld.",
                                 (long long)names->count, (long long)i);
        d = d->inputs[0];
        Error *err = check_previous(d, tstring_str(&tensor_str(names)[i]));
        if (!err) continue;
        Error *told = error_invalid("Failure checking transformations at offset %lld: %s", (long long)i, err->message);
        error_free(err);
        return told;
    }
    return iterator_start_input(it, c);
}

static const DatasetKind next_kind = {.name = "AssertNext",
                                      .size = sizeof(StepsDataset),
                                      .destroy = destroy_steps,
                                      .cardinality = count_input,
                                      .start = start_next,
                                      .next = next_of_input};
static const DatasetKind previous_kind = {.name = "AssertPrev",
                                          .size = sizeof(StepsDataset),
                                          .destroy = destroy_steps,
                                          .cardinality = count_input,
                                          .start = start_previous,
                                          .next = next_of_input};

static Error *make(KernelContext *k, const DatasetKind *kind) {
    Dataset *in = NULL;
    Error *err = kernel_dataset(k, 0, &in);
    if (!err && k->in[1]->shape.rank != 1) err = error_invalid("`transformations` must be a vector.");
    if (err) return err;
    Dataset *d = dataset_like(kind, in);
    ((StepsDataset *)d)->names = tensor_ref(k->in[1]);
    kernel_set_dataset(k, 0, d);
    return NULL;
}

static Error *run_next(KernelContext *k) {
    return make(k, &next_kind);
}

static Error *run_previous(KernelContext *k) {
    return make(k, &previous_kind);
}

const KernelDef dataset_assert_steps_cpu[] = {
    {"AssertNextDataset", .run = run_next},
    {"ExperimentalAssertNextDataset", .run = run_next},
    {"AssertPrevDataset", .run = run_previous},
    {0},
};
