/* fastest.c: ChooseFastestDataset, ChooseFastestBranchDataset: several ways to the same elements. Which is faster is
   TensorFlow's question to a running pipeline; here the first is taken. */
#include <stdlib.h>

#include "base/memory.h"
#include "ops/dataset/dataset.h"
#include "ops/op_list.h"

const OpDef dataset_fastest_ops[] = {
    {"ChooseFastestDataset", "input_datasets: N * variant -> handle: variant",
     "N: int >= 2; num_experiments: int; output_types: list(type) >= 1; output_shapes: list(shape) >= 1", 0},
    {"ExperimentalChooseFastestDataset", "input_datasets: N * variant -> handle: variant",
     "N: int >= 2; num_experiments: int; output_types: list(type) >= 1; output_shapes: list(shape) >= 1", 0},
    {"ChooseFastestBranchDataset",
     "input_dataset: variant, ratio_numerator: int64, ratio_denominator: int64, other_arguments: Targuments -> "
     "handle: variant",
     "Targuments: list(type) >= 0; num_elements_per_branch: int >= 1; branches: list(func) >= 1; "
     "other_arguments_lengths: list(int) >= 1; output_types: list(type) >= 1; output_shapes: list(shape) >= 1",
     0},
    {0},
};

static bool same_types(const Dataset *a, const Dataset *b) {
    bool same = a->component_count == b->component_count;
    for (int i = 0; same && i < a->component_count; i++) same = a->types[i] == b->types[i];
    return same;
}

static void add_types(StrBuf *b, const Dataset *d) {
    for (int i = 0; i < d->component_count; i++) strbuf_addf(b, "%s%s", i ? ", " : "", dtype_name(d->types[i]));
}

static Error *other_types(const Dataset *first, const Dataset *other, int input) {
    StrBuf expected = {0}, got = {0};
    add_types(&expected, first);
    add_types(&got, other);
    Error *err = error_invalid(
        "All inputs to ChooseFastestDataset must have the same output types. Input %d has output types: %.*s. "
        "Expected: "
        "%.*s.",
        input, STR_ARG(strbuf_str(&got)), STR_ARG(strbuf_str(&expected)));
    strbuf_clear(&expected);
    strbuf_clear(&got);
    return err;
}

static Error *run_fastest(KernelContext *k) {
    Dataset *first = NULL, *other = NULL;
    int64_t prior = CARDINALITY_UNKNOWN;
    Error *err = kernel_dataset(k, 0, &first);
    for (int i = 1; !err && i < k->input_count; i++) {
        err = kernel_dataset(k, i, &other);
        if (!err && !same_types(first, other)) err = other_types(first, other, i);
        int64_t count = err ? CARDINALITY_UNKNOWN : dataset_cardinality(other);
        if (prior == CARDINALITY_UNKNOWN) prior = err ? prior : dataset_cardinality(first);
        if (prior == CARDINALITY_UNKNOWN) {
            prior = count;
        } else if (!err && count != prior && count != CARDINALITY_UNKNOWN) {
            err = error_invalid(
                "All inputs to ChooseFastestDataset must have compatible cardinalities. Input %d has cardinality: "
                "%lld, "
                "while all prior inputs have cardinality: %lld.",
                i, (long long)count, (long long)prior);
        }
    }
    if (!err) kernel_set_output(k, 0, tensor_ref(k->in[0]));
    return err;
}

/* ---- Branches: functions from a dataset to a dataset ---- */

typedef struct BranchDataset {
    Dataset base;                   /* closure: the first branch */
    int64_t numerator, denominator; /* elements of the input for so many of the output */
} BranchDataset;

static Error *start_branch(DatasetIterator *it, IteratorContext *c) {
    Tensor *arg = NULL, *result = NULL;
    Dataset *made = NULL;
    Error *err = dataset_tensor(it->dataset->inputs[0], &arg);
    if (!err) err = dataset_call(it->dataset->closure, c, &arg, 1, NULL, 1, &result);
    if (!err) err = tensor_dataset(result, &made);
    if (!err && !same_types(made, it->dataset))
        err = error_invalid("A branch returned a dataset of other types than output_types says");
    if (!err) err = dataset_iterate(made, c, &it->input);
    tensor_unref(arg);
    tensor_unref(result);
    return err;
}

static Error *next_of_branch(DatasetIterator *it, IteratorContext *c, Tensor **out, bool *end) {
    return iterator_next(it->input, c, out, end);
}

static Error *save_branch(DatasetIterator *it, IteratorState *s) {
    return iterator_save(it->input, s);
}

static Error *restore_branch(DatasetIterator *it, IteratorContext *c, IteratorState *s) {
    return iterator_restore(it->input, c, s);
}

static int64_t count_branch(const Dataset *d) {
    const BranchDataset *b = (const BranchDataset *)d;
    int64_t n = dataset_cardinality(d->inputs[0]), scaled = 0;
    if (n < 0) return n;
    return __builtin_mul_overflow(n, b->denominator, &scaled) ? CARDINALITY_UNKNOWN : scaled / b->numerator;
}

static const DatasetKind branch_kind = {.name = "ChooseFastestBranch",
                                        .size = sizeof(BranchDataset),
                                        .cardinality = count_branch,
                                        .start = start_branch,
                                        .next = next_of_branch,
                                        .save = save_branch,
                                        .restore = restore_branch};

/* The first of the list attribute `branches`, with what it captures. */
static Error *first_branch(KernelContext *k, Closure **out) {
    int64_t *lengths = NULL;
    int length_count = 0;
    Str value, function;
    Error *err = node_attr_ints(k->node, "other_arguments_lengths", &lengths, &length_count);
    int64_t captured = !err && length_count ? lengths[0] : -1;
    free(lengths);
    if (err) return err;
    if (captured < 0 || captured > k->input_count - 3)
        return error_invalid("other_arguments_lengths has more than there are inputs");
    if (!node_attr(k->node, "branches", &value) || attr_list_funcs(value, &function, 1) < 1)
        return error_invalid("Attribute branches is not a list of functions");
    *out = closure_new(k, function, k->in + 3, (int)captured);
    return NULL;
}

static Error *run_branch(KernelContext *k) {
    Dataset *in = NULL, *d = NULL;
    int64_t numerator = 0, denominator = 0;
    Error *err = kernel_dataset(k, 0, &in);
    if (!err) err = kernel_int64(k, 1, "ratio_numerator", &numerator);
    if (!err) err = kernel_int64(k, 2, "ratio_denominator", &denominator);
    if (!err && numerator <= 0) err = error_invalid("`ratio_numerator` must be greater than zero.");
    if (!err && denominator <= 0) err = error_invalid("`ratio_denominator` must be greater than zero.");
    if (!err) err = dataset_from_attr(k, &branch_kind, "output_types", &in, 1, &d);
    if (err) return err;
    ((BranchDataset *)d)->numerator = numerator;
    ((BranchDataset *)d)->denominator = denominator;
    err = first_branch(k, &d->closure);
    if (err)
        dataset_unref(d);
    else
        kernel_set_dataset(k, 0, d);
    return err;
}

const KernelDef dataset_fastest_cpu[] = {
    {"ChooseFastestDataset", .run = run_fastest},
    {"ExperimentalChooseFastestDataset", .run = run_fastest},
    {"ChooseFastestBranchDataset", .run = run_branch},
    {0},
};
