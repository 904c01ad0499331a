/* parse_sequence.c: ParseSequenceExample, ParseSequenceExampleV2, ParseSingleSequenceExample. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "ops/elements.h"
#include "ops/op_list.h"
#include "ops/sequence_reader.h"

const OpDef parse_sequence_ops[] = {
    {"ParseSequenceExample",
     "serialized: string, debug_name: string, context_dense_defaults: Tcontext_dense -> context_sparse_indices: "
     "Ncontext_sparse * int64, context_sparse_values: context_sparse_types, context_sparse_shapes: "
     "Ncontext_sparse * int64, context_dense_values: Tcontext_dense, feature_list_sparse_indices: "
     "Nfeature_list_sparse * int64, feature_list_sparse_values: feature_list_sparse_types, "
     "feature_list_sparse_shapes: Nfeature_list_sparse * int64, feature_list_dense_values: "
     "feature_list_dense_types, feature_list_dense_lengths: Nfeature_list_dense * int64",
     "feature_list_dense_missing_assumed_empty: list(string) >= 0; context_sparse_keys: list(string) >= 0; "
     "context_dense_keys: list(string) >= 0; feature_list_sparse_keys: list(string) >= 0; "
     "feature_list_dense_keys: list(string) >= 0; Ncontext_sparse: int >= 0 = 0; Ncontext_dense: int >= 0 = 0; "
     "Nfeature_list_sparse: int >= 0 = 0; Nfeature_list_dense: int >= 0 = 0; context_sparse_types: list({float, "
     "int64, string}) >= 0 = []; Tcontext_dense: list({float, int64, string}) >= 0 = []; "
     "feature_list_dense_types: list({float, int64, string}) >= 0 = []; context_dense_shapes: list(shape) >= 0 = "
     "[]; feature_list_sparse_types: list({float, int64, string}) >= 0 = []; feature_list_dense_shapes: "
     "list(shape) >= 0 = []",
     0},
    {"ParseSequenceExampleV2",
     "serialized: string, debug_name: string, context_sparse_keys: string, context_dense_keys: string, "
     "context_ragged_keys: string, feature_list_sparse_keys: string, feature_list_dense_keys: string, "
     "feature_list_ragged_keys: string, feature_list_dense_missing_assumed_empty: bool, context_dense_defaults: "
     "Tcontext_dense -> context_sparse_indices: Ncontext_sparse * int64, context_sparse_values: "
     "context_sparse_types, context_sparse_shapes: Ncontext_sparse * int64, context_dense_values: Tcontext_dense, "
     "context_ragged_values: context_ragged_value_types, context_ragged_row_splits: context_ragged_split_types, "
     "feature_list_sparse_indices: Nfeature_list_sparse * int64, feature_list_sparse_values: "
     "feature_list_sparse_types, feature_list_sparse_shapes: Nfeature_list_sparse * int64, "
     "feature_list_dense_values: feature_list_dense_types, feature_list_dense_lengths: Nfeature_list_dense * "
     "int64, feature_list_ragged_values: feature_list_ragged_value_types, feature_list_ragged_outer_splits: "
     "feature_list_ragged_split_types, feature_list_ragged_inner_splits: feature_list_ragged_split_types",
     "Ncontext_sparse: int >= 0 = 0; Tcontext_dense: list({float, int64, string}) >= 0 = []; "
     "context_sparse_types: list({float, int64, string}) >= 0 = []; context_ragged_value_types: list({float, "
     "int64, string}) >= 0 = []; context_ragged_split_types: list({int32, int64}) >= 0 = []; "
     "context_dense_shapes: list(shape) >= 0 = []; Nfeature_list_sparse: int >= 0 = 0; Nfeature_list_dense: int "
     ">= 0 = 0; feature_list_dense_types: list({float, int64, string}) >= 0 = []; feature_list_sparse_types: "
     "list({float, int64, string}) >= 0 = []; feature_list_ragged_value_types: list({float, int64, string}) >= 0 "
     "= []; feature_list_ragged_split_types: list({int32, int64}) >= 0 = []; feature_list_dense_shapes: "
     "list(shape) >= 0 = []",
     0},
    {"ParseSingleSequenceExample",
     "serialized: string, feature_list_dense_missing_assumed_empty: string, context_sparse_keys: Ncontext_sparse "
     "* string, context_dense_keys: Ncontext_dense * string, feature_list_sparse_keys: Nfeature_list_sparse * "
     "string, feature_list_dense_keys: Nfeature_list_dense * string, context_dense_defaults: Tcontext_dense, "
     "debug_name: string -> context_sparse_indices: Ncontext_sparse * int64, context_sparse_values: "
     "context_sparse_types, context_sparse_shapes: Ncontext_sparse * int64, context_dense_values: Tcontext_dense, "
     "feature_list_sparse_indices: Nfeature_list_sparse * int64, feature_list_sparse_values: "
     "feature_list_sparse_types, feature_list_sparse_shapes: Nfeature_list_sparse * int64, "
     "feature_list_dense_values: feature_list_dense_types",
     "Ncontext_sparse: int >= 0 = 0; Ncontext_dense: int >= 0 = 0; Nfeature_list_sparse: int >= 0 = 0; "
     "Nfeature_list_dense: int >= 0 = 0; context_sparse_types: list({float, int64, string}) >= 0 = []; "
     "Tcontext_dense: list({float, int64, string}) >= 0 = []; feature_list_dense_types: list({float, int64, "
     "string}) >= 0 = []; context_dense_shapes: list(shape) >= 0 = []; feature_list_sparse_types: list({float, "
     "int64, string}) >= 0 = []; feature_list_dense_shapes: list(shape) >= 0 = []",
     0},
    {0},
};

static void strings_free(Str *items, int n) {
    for (int i = 0; items && i < n; i++) free((char *)items[i].ptr);
    free(items);
}

static void sequence_clear(void *state) {
    SequenceState *s = state;
    for (int g = 0; g < GROUPS; g++) free(s->types[g]);
    free(s->context_splits);
    free(s->list_splits);
    free(s->context_shapes);
    free(s->list_shapes);
    strings_free(s->keys, s->key_count);
    strings_free(s->may_miss, s->may_miss_count);
}

static Error *shapes_init(const Node *node, const char *attr, int want, bool first_may_vary, PartialShape **out) {
    int n = 0;
    Error *err = node_attr_shapes(node, attr, out, &n);
    if (!err && n != want) err = error_invalid("%s must have %d elements, not %d", attr, want, n);
    for (int i = 0; !err && i < n; i++) {
        Shape s = (*out)[i];
        if (s.rank > 0 && s.dims[0] < 0 && first_may_vary) s.dims[0] = 1;
        bool known = s.rank >= 0 && s.rank + 2 < SHAPE_MAX_RANK;
        for (int d = 0; d < s.rank; d++) known = known && s.dims[d] >= 0;
        if (!known) err = error_invalid("%s[%d] is not known", attr, i);
        if (!err) err = shape_check(&s);
    }
    return err;
}

static Error *read_attributes(const Node *node, void *state) {
    SequenceState *s = state;
    s->single = node_is(node, "ParseSingleSequenceExample");
    Error *err = node_attr_types(node, "context_sparse_types", &s->types[CONTEXT_SPARSE], &s->count[CONTEXT_SPARSE]);
    if (!err) err = node_attr_types(node, "Tcontext_dense", &s->types[CONTEXT_DENSE], &s->count[CONTEXT_DENSE]);
    if (!err) err = node_attr_types(node, "feature_list_sparse_types", &s->types[LIST_SPARSE], &s->count[LIST_SPARSE]);
    if (!err) err = node_attr_types(node, "feature_list_dense_types", &s->types[LIST_DENSE], &s->count[LIST_DENSE]);
    if (!err) err = shapes_init(node, "context_dense_shapes", s->count[CONTEXT_DENSE], true, &s->context_shapes);
    if (!err) err = shapes_init(node, "feature_list_dense_shapes", s->count[LIST_DENSE], false, &s->list_shapes);
    return err;
}

static Error *read_v2_attributes(const Node *node, void *state) {
    SequenceState *s = state;
    int splits[2] = {0};
    Error *err = read_attributes(node, state);
    if (!err)
        err = node_attr_types(node, "context_ragged_value_types", &s->types[CONTEXT_RAGGED], &s->count[CONTEXT_RAGGED]);
    if (!err)
        err = node_attr_types(node, "feature_list_ragged_value_types", &s->types[LIST_RAGGED], &s->count[LIST_RAGGED]);
    if (!err) err = node_attr_types(node, "context_ragged_split_types", &s->context_splits, &splits[0]);
    if (!err) err = node_attr_types(node, "feature_list_ragged_split_types", &s->list_splits, &splits[1]);
    if (!err && (splits[0] != s->count[CONTEXT_RAGGED] || splits[1] != s->count[LIST_RAGGED]))
        err = error_invalid("Ragged value types and split types must have the same length");
    return err;
}

/* Appends copies of the strings of an attribute. */
static Error *copy_strings(const Node *node, const char *attr, int want, Str **items, int *count) {
    Str *found = NULL;
    int n = 0;
    Error *err = node_attr_strings(node, attr, &found, &n);
    if (!err && want >= 0 && n != want) err = error_invalid("%s must have %d elements, not %d", attr, want, n);
    if (!err) *items = xrealloc(*items, (size_t)(*count + n + 1) * sizeof **items);
    for (int i = 0; !err && i < n; i++) (*items)[(*count)++] = (Str){str_dup(found[i]), found[i].len};
    free(found);
    return err;
}

static Error *read_v1_attributes(const Node *node, void *state) {
    SequenceState *s = state;
    Error *err = read_attributes(node, state);
    if (!err) err = copy_strings(node, "context_sparse_keys", s->count[CONTEXT_SPARSE], &s->keys, &s->key_count);
    if (!err) err = copy_strings(node, "context_dense_keys", s->count[CONTEXT_DENSE], &s->keys, &s->key_count);
    if (!err) err = copy_strings(node, "feature_list_sparse_keys", s->count[LIST_SPARSE], &s->keys, &s->key_count);
    if (!err) err = copy_strings(node, "feature_list_dense_keys", s->count[LIST_DENSE], &s->keys, &s->key_count);
    if (!err)
        err = copy_strings(node, "feature_list_dense_missing_assumed_empty", -1, &s->may_miss, &s->may_miss_count);
    return err;
}

static Error *sequence_init(const Node *node, void *state) {
    return read_attributes(node, state);
}
static Error *sequence_v1_init(const Node *node, void *state) {
    return read_v1_attributes(node, state);
}
static Error *sequence_v2_init(const Node *node, void *state) {
    return read_v2_attributes(node, state);
}

/* ---- Outputs ---- */

static char *at_element(Tensor *t, int64_t i) {
    return (char *)t->data + (size_t)i * dtype_size(t->dtype);
}

/* All values of column c, one after another. */
static void copy_values(const Sequence *q, int c, Tensor *to) {
    int64_t at = 0;
    for (int64_t e = 0; e < q->batch; e++) {
        const Cell *cell = sequence_cell(q, e, c);
        if (c < q->context) {
            if (cell->feature.type != DT_INVALID) feature_copy(&cell->feature, at_element(to, at));
            at += cell->values;
            continue;
        }
        WireReader r = wire_reader(cell->list);
        ExampleFeature f;
        while (cell->list.ptr && sequence_next_step(&r, &f)) {
            if (f.type == DT_INVALID) continue;
            feature_copy(&f, at_element(to, at));
            at += feature_count(&f);
        }
    }
}

typedef struct Sums {
    int64_t values, steps, most_values, most_steps; /* of a column; the most in one example, or in one step of a list */
} Sums;

static Sums sums_of(const Sequence *q, int c) {
    Sums s = {0};
    for (int64_t e = 0; e < q->batch; e++) {
        const Cell *cell = sequence_cell(q, e, c);
        int64_t most = c < q->context ? cell->values : cell->most;
        s.values += cell->values;
        s.steps += cell->steps;
        s.most_values = most > s.most_values ? most : s.most_values;
        s.most_steps = cell->steps > s.most_steps ? cell->steps : s.most_steps;
    }
    return s;
}

/* Indices of the values: [example,] [step,] position. */
static void put_sparse(const Sequence *q, int c, int out, int n) {
    bool list = c >= q->context;
    int rank = (list ? 2 : 1) + !q->scalar;
    Sums s = sums_of(q, c);
    Shape matrix = shape_matrix(s.values, rank), vector = shape_vector(s.values), dims = shape_vector(rank);
    Tensor *indices = kernel_output(q->k, out, &matrix),
           *values = indices ? kernel_output(q->k, out + n, &vector) : NULL;
    Tensor *shape = values ? kernel_output(q->k, out + 2 * n, &dims) : NULL;
    if (!shape) return;
    int64_t *to = tensor_i64(indices);
    for (int64_t e = 0; e < q->batch; e++) {
        const Cell *cell = sequence_cell(q, e, c);
        WireReader r = wire_reader(cell->list);
        ExampleFeature f;
        for (int64_t step = 0; step < (list ? cell->steps : 1); step++) {
            int64_t count = list ? 0 : cell->values;
            if (list && sequence_next_step(&r, &f) && f.type != DT_INVALID) count = feature_count(&f);
            for (int64_t j = 0; j < count; j++) {
                if (!q->scalar) *to++ = e;
                if (list) *to++ = step;
                *to++ = j;
            }
        }
    }
    copy_values(q, c, values);
    to = tensor_i64(shape);
    if (!q->scalar) *to++ = q->batch;
    if (list) *to++ = s.most_steps;
    *to = s.most_values;
}

static Error *put_context_dense(const Sequence *q, int i, int out) {
    int c = sequence_first_column(q->s, CONTEXT_DENSE) + i;
    const Tensor *fallback = q->defaults[i];
    Shape row = q->s->context_shapes[i];
    bool varies = row.rank > 0 && row.dims[0] < 0;
    if (varies) {
        int64_t step = shape_prod(&row, 1, row.rank), most = sums_of(q, c).most_values;
        for (int64_t e = 0; e < q->batch; e++)
            if (step ? sequence_cell(q, e, c)->values % step : sequence_cell(q, e, c)->values)
                return sequence_column_error(q, e, c, ".  Number of values is not a multiple of the stride length.");
        row.dims[0] = step ? most / step : 0;
    }
    int64_t n = shape_count(&row);
    Shape shape = row;
    if (!q->scalar) shape_insert_dim(&shape, 0, q->batch);
    Tensor *t = kernel_output(q->k, out, &shape);
    for (int64_t e = 0; t && e < q->batch; e++) {
        const Cell *cell = sequence_cell(q, e, c);
        bool there = cell->feature.type != DT_INVALID;
        if (!there && !varies && fallback->count != n && n)
            return str_starts(q->k->node->op, STR("ParseSequence"))
                       ? error_invalid("Inconsistent max number of elements for feature %.*s: expected %lld, but found 0", STR_ARG(q->keys[c]), (long long)n)
                       : sequence_column_error(q, e, c, " is required but could not be found.");
        if (there && !varies && cell->values != n)
            return error_invalid("Inconsistent max number of elements for feature %.*s: expected %lld, but found %lld",
                                 STR_ARG(q->keys[c]), (long long)n, (long long)cell->values);
        if (there) feature_copy(&cell->feature, at_element(t, e * n));
        for (int64_t j = there ? cell->values : 0; j < n; j++) {
            if (fallback->count)
                elements_copy(t->dtype, at_element(t, e * n + j),
                              (const char *)fallback->data + (varies ? 0 : (size_t)j * dtype_size(t->dtype)), 1);
            else if (dtype_is_plain(t->dtype))
                memset(at_element(t, e * n + j), 0, dtype_size(t->dtype));
        }
    }
    return NULL;
}

/* The steps of every example, filled up to the longest with zeros; lengths says how many there were. */
static Error *put_list_dense(const Sequence *q, int i, int out, int lengths_out) {
    int c = sequence_first_column(q->s, LIST_DENSE) + i;
    Shape shape = q->s->list_shapes[i], vector = q->scalar ? SHAPE_SCALAR : shape_vector(q->batch);
    int64_t n = shape_count(&shape), most = sums_of(q, c).most_steps;
    shape_insert_dim(&shape, 0, most);
    if (!q->scalar) shape_insert_dim(&shape, 0, q->batch);
    for (int64_t e = 0; e < q->batch; e++)
        if (!sequence_cell(q, e, c)->list.ptr && !q->may_miss[i])
            return sequence_list_missing(q, e, c);
    Tensor *t = kernel_output(q->k, out, &shape),
           *lengths = t && lengths_out >= 0 ? kernel_output(q->k, lengths_out, &vector) : NULL;
    if (!t) return NULL;
    if (dtype_is_plain(t->dtype)) memset(t->data, 0, tensor_bytes(t));
    for (int64_t e = 0; e < q->batch; e++) {
        const Cell *cell = sequence_cell(q, e, c);
        WireReader r = wire_reader(cell->list);
        ExampleFeature f;
        for (int64_t step = 0; step < cell->steps && sequence_next_step(&r, &f); step++) {
            int64_t count = f.type == DT_INVALID ? 0 : feature_count(&f);
            if (count != n) return sequence_step_error(q, e, c, step, count, &q->s->list_shapes[i]);
            if (f.type != DT_INVALID) feature_copy(&f, at_element(t, (e * most + step) * n));
        }
        if (lengths) tensor_i64(lengths)[e] = cell->steps;
    }
    return NULL;
}

/* outer is -1 for the context. */
static void put_ragged(const Sequence *q, int c, int out, int outer_out, int inner_out) {
    bool list = outer_out >= 0;
    Sums s = sums_of(q, c);
    Shape vector = shape_vector(s.values), rows = shape_vector(q->scalar ? 0 : q->batch + 1),
          steps = list ? shape_vector(s.steps + 1) : rows;
    Tensor *values = kernel_output(q->k, out, &vector),
           *outer = values && list ? kernel_output(q->k, outer_out, &rows) : NULL;
    Tensor *inner = values ? kernel_output(q->k, inner_out, &steps) : NULL;
    if (!inner || (list && !outer)) return;
    copy_values(q, c, values);
    int64_t step_sum = 0, sum = 0, at = 0;
    if (inner->count) index_put(inner, at++, 0);
    if (outer && outer->count) index_put(outer, 0, 0);
    for (int64_t e = 0; e < q->batch; e++) {
        const Cell *cell = sequence_cell(q, e, c);
        WireReader r = wire_reader(cell->list);
        ExampleFeature f;
        for (int64_t step = 0; list && step < cell->steps && sequence_next_step(&r, &f); step++) {
            sum += f.type == DT_INVALID ? 0 : feature_count(&f);
            index_put(inner, at++, sum);
        }
        if (!list) sum += cell->values;
        if (!list && at < inner->count) index_put(inner, at++, sum);
        step_sum += cell->steps;
        if (outer && outer->count) index_put(outer, e + 1, step_sum);
    }
}

static Error *put_outputs(Sequence *q) {
    const SequenceState *s = q->s;
    const int *n = s->count;
    int out = 0;
    Error *err = NULL;
    for (int i = 0; i < n[CONTEXT_SPARSE]; i++) put_sparse(q, i, i, n[CONTEXT_SPARSE]);
    out += 3 * n[CONTEXT_SPARSE];
    for (int i = 0; !err && i < n[CONTEXT_DENSE]; i++) err = put_context_dense(q, i, out + i);
    out += n[CONTEXT_DENSE];
    int column = sequence_first_column(s, CONTEXT_RAGGED), count = n[CONTEXT_RAGGED];
    for (int i = 0; !err && i < count; i++) put_ragged(q, column + i, out + i, -1, out + count + i);
    out += 2 * count;
    column = sequence_first_column(s, LIST_SPARSE);
    for (int i = 0; !err && i < n[LIST_SPARSE]; i++) put_sparse(q, column + i, out + i, n[LIST_SPARSE]);
    out += 3 * n[LIST_SPARSE];
    count = n[LIST_DENSE];
    for (int i = 0; !err && i < count; i++) err = put_list_dense(q, i, out + i, s->single ? -1 : out + count + i);
    out += (s->single ? 1 : 2) * count;
    column = sequence_first_column(s, LIST_RAGGED);
    count = n[LIST_RAGGED];
    for (int i = 0; !err && i < count; i++) put_ragged(q, column + i, out + i, out + count + i, out + 2 * count + i);
    return err;
}

/* q has serialized, names, defaults, keys and may_miss. */
static Error *parse(Sequence *q) {
    const SequenceState *s = q->s;
    Error *err = NULL;
    q->batch = q->serialized->count;
    q->scalar = q->serialized->shape.rank == 0;
    q->columns = sequence_first_column(s, GROUPS);
    q->context = sequence_first_column(s, LIST_SPARSE);
    const int *n = s->count;
    int outputs = 3 * n[CONTEXT_SPARSE] + n[CONTEXT_DENSE] + 2 * n[CONTEXT_RAGGED] + 3 * n[LIST_SPARSE] +
                  (s->single ? 1 : 2) * n[LIST_DENSE] + 3 * n[LIST_RAGGED];
    if (outputs != q->k->output_count) return error_invalid("Numbers of keys and of types do not agree");
    if (q->serialized->shape.rank > 1) return error_invalid("Expected serialized to be a scalar or a vector");
    if (q->names && q->names->count && q->names->count != q->batch)
        return error_invalid("Expected len(debug_name) == len(serialized), but got: %lld vs. %lld",
                             (long long)q->names->count, (long long)q->batch);
    for (int c = 0; c < q->columns && !err; c++) {
        if (strmap_put(c < q->context ? &q->context_index : &q->list_index, q->keys[c], (void *)(uintptr_t)(c + 1)))
            err = error_invalid("Feature %.*s is asked for twice", STR_ARG(q->keys[c]));
    }
    ExampleFeature *found = xcalloc((size_t)q->context + 1, sizeof *found);
    q->cells = calloc((size_t)q->batch * (size_t)q->columns + 1, sizeof *q->cells);
    if (!err && !q->cells) err = error_new(CODE_RESOURCE_EXHAUSTED, "Too many examples at once");
    for (int64_t e = 0; e < q->batch && !err; e++) err = sequence_read_example(q, e, found);
    if (!err) err = put_outputs(q);
    free(found);
    free(q->cells);
    strmap_clear(&q->context_index);
    strmap_clear(&q->list_index);
    return err;
}

static bool is_among(Str key, const Str *items, int n) {
    for (int i = 0; i < n; i++)
        if (str_eq(items[i], key)) return true;
    return false;
}

static Error *run_v1(KernelContext *k) {
    const SequenceState *s = k->state;
    int dense = s->count[LIST_DENSE], first = sequence_first_column(s, LIST_DENSE);
    if (k->in[0]->shape.rank != 1)
        return error_invalid("Expected serialized to be a vector, got shape: %s", shape_text(&k->in[0]->shape).text);
    bool *may_miss = xcalloc((size_t)dense + 1, sizeof *may_miss);
    for (int i = 0; i < dense; i++) may_miss[i] = is_among(s->keys[first + i], s->may_miss, s->may_miss_count);
    Sequence q = {.s = s,
                  .k = k,
                  .serialized = k->in[0],
                  .names = k->in[1],
                  .defaults = k->in + 2,
                  .keys = s->keys,
                  .may_miss = may_miss};
    Error *err = parse(&q);
    free(may_miss);
    return err;
}

static Error *run_v2(KernelContext *k) {
    const SequenceState *s = k->state;
    int n = 0;
    Error *err = NULL;
    Str *keys = xcalloc((size_t)sequence_first_column(s, GROUPS) + 1, sizeof *keys);
    for (int g = 0; g < GROUPS && !err; g++) {
        const Tensor *t = k->in[2 + g];
        if (t->count != s->count[g])
            err = error_invalid("Expected %d keys, got %lld", s->count[g], (long long)t->count);
        for (int64_t i = 0; !err && i < t->count; i++) keys[n++] = tstring_str(&tensor_str(t)[i]);
    }
    if (!err && k->in[8]->count != s->count[LIST_DENSE])
        err = error_invalid("Expected feature_list_dense_missing_assumed_empty to have %d elements",
                            s->count[LIST_DENSE]);
    Sequence q = {.s = s,
                  .k = k,
                  .serialized = k->in[0],
                  .names = k->in[1],
                  .defaults = k->in + 9,
                  .keys = keys,
                  .may_miss = tensor_bool(k->in[8])};
    if (!err) err = parse(&q);
    free(keys);
    return err;
}

static Error *run_single(KernelContext *k) {
    const SequenceState *s = k->state;
    int n = sequence_first_column(s, GROUPS), dense = s->count[LIST_DENSE];
    const Tensor *missing = k->in[1];
    Error *err = NULL;
    if (k->in[0]->shape.rank != 0)
        return error_invalid("Expected serialized to be a scalar, got shape: %s", shape_text(&k->in[0]->shape).text);
    if (k->input_count != 2 + n + s->count[CONTEXT_DENSE] + 1)
        return error_invalid("Numbers of keys and of types do not agree");
    Str *keys = xcalloc((size_t)n + 1, sizeof *keys);
    bool *may_miss = xcalloc((size_t)dense + 1, sizeof *may_miss);
    for (int i = 0; i < n && !err; i++) {
        if (k->in[2 + i]->count != 1) err = error_invalid("Expected key %d to be a scalar", i);
        if (!err) keys[i] = tstring_str(tensor_str(k->in[2 + i]));
    }
    for (int i = 0; i < dense && !err; i++)
        for (int64_t j = 0; j < missing->count; j++)
            may_miss[i] = may_miss[i] ||
                          str_eq(tstring_str(&tensor_str(missing)[j]), keys[sequence_first_column(s, LIST_DENSE) + i]);
    Sequence q = {.s = s,
                  .k = k,
                  .serialized = k->in[0],
                  .names = k->in[k->input_count - 1],
                  .defaults = k->in + 2 + n,
                  .keys = keys,
                  .may_miss = may_miss};
    if (!err) err = parse(&q);
    free(keys);
    free(may_miss);
    return err;
}

#define PARSE(run_fn, init_fn)                                                                    \
    .run = run_fn, .state_size = sizeof(SequenceState), .init = init_fn, .clear = sequence_clear, \
    .flags = KERNEL_EXPENSIVE

const KernelDef parse_sequence_cpu[] = {
    {"ParseSequenceExample", PARSE(run_v1, sequence_v1_init)},
    {"ParseSequenceExampleV2", PARSE(run_v2, sequence_v2_init)},
    {"ParseSingleSequenceExample", PARSE(run_single, sequence_init)},
    {0},
};
