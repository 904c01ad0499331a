/* ragged_dense.c: RaggedTensorToTensor, a ragged tensor as a dense one, filled up with a default value.

   Each dimension below the first is told by a partition of the rows below it: their splits, or the row each of them is
   in. */
#include <stdarg.h>
#include <stdlib.h>

#include "base/memory.h"
#include "ops/elements.h"
#include "ops/op_list.h"

const OpDef ragged_dense_ops[] = {
    {"RaggedTensorToTensor",
     "shape: Tshape, values: T, default_value: T, row_partition_tensors: num_row_partition_tensors * Tindex -> "
     "result: T",
     "T: type; Tindex: {int64, int32}; Tshape: {int64, int32}; num_row_partition_tensors: int >= 1; "
     "row_partition_types: list(string)",
     0},
    {0},
};

typedef enum PartitionKind { FIRST_DIM_SIZE, VALUE_ROWIDS, ROW_SPLITS } PartitionKind;

typedef struct DenseState {
    PartitionKind *kinds;
    int count;
} DenseState;

static Error *init_dense(const Node *node, void *state) {
    static const char *const names[] = {"FIRST_DIM_SIZE", "VALUE_ROWIDS", "ROW_SPLITS"};
    DenseState *s = state;
    Str *words = NULL;
    Error *err = node_attr_strings(node, "row_partition_types", &words, &s->count);
    if (!err) s->kinds = xcalloc((size_t)s->count + 1, sizeof *s->kinds);
    for (int i = 0; !err && i < s->count; i++) {
        int kind = 0;
        while (kind < 3 && !str_is(words[i], names[kind])) kind++;
        if (kind == 3) err = error_invalid("Unsupported row partition type: %.*s", STR_ARG(words[i]));
        s->kinds[i] = (PartitionKind)kind;
    }
    free(words);
    return err;
}

static void clear_dense(void *state) {
    free(((DenseState *)state)->kinds);
}

/* The rows of one dimension; element j of `column` is the place of row j below in its row here, `row` that row. */
typedef struct Level {
    PartitionKind kind;
    const Tensor *tensor;
} Level;

typedef struct Dense {
    int64_t first;                /* rows of the outermost dimension */
    Level levels[SHAPE_MAX_RANK]; /* of the dimensions below it */
    int rank;                     /* number of levels */
    Shape shape;                  /* of the result */
} Dense;

static Error *check_level(const Level *l, int at) {
    if (l->tensor->shape.rank != 1)
        return error_invalid("Row partition %d must be a vector, not of shape %s", at,
                             shape_text(&l->tensor->shape).text);
    if (l->kind == ROW_SPLITS && l->tensor->count == 0) return error_invalid("Invalid first partition input. Tensor requires at least one element.");
    if (l->kind == ROW_SPLITS && index_at(l->tensor, 0) != 0)
        return error_invalid("Invalid row split size.");
    for (int64_t i = 0; i < l->tensor->count; i++) {
        int64_t before = i ? index_at(l->tensor, i - 1) : 0;
        if (index_at(l->tensor, i) < before)
            return l->kind == ROW_SPLITS ? error_invalid("Invalid row split size.") : error_invalid("Row partition %d must not fall, and not be negative", at);
    }
    return NULL;
}

static Error *read_levels(KernelContext *k, Dense *d) {
    const DenseState *s = k->state;
    int count = k->input_count - 3;
    if (s->count != count) return error_invalid("%d row_partition_types do not fit %d row partitions", s->count, count);
    const Tensor *first = k->in[3];
    int from = 0;
    if (s->kinds[0] == FIRST_DIM_SIZE) {
        if (first->count != 1) return error_invalid("The first dimension must be given as one number");
        d->first = index_at(first, 0);
        if (d->first < 0) return error_invalid("Dimension %lld must be >= 0", (long long)d->first);
        from = 1;
    } else if (s->kinds[0] == ROW_SPLITS) {
        d->first = first->count - 1;
    } else {
        return error_invalid("Cannot handle VALUE_ROWIDS in first dimension.");
    }
    d->rank = count - from;
    if (d->rank + k->in[1]->shape.rank > SHAPE_MAX_RANK)
        return error_invalid("The ragged tensor has too many dimensions");
    for (int i = 0; i < d->rank; i++) {
        d->levels[i] = (Level){s->kinds[from + i], k->in[3 + from + i]};
        if (d->levels[i].kind == FIRST_DIM_SIZE) return error_invalid("FIRST_DIM_SIZE can only come first");
        Error *err = check_level(&d->levels[i], i);
        if (err) return err;
    }
    return NULL;
}

/* The longest row of a level. */
static int64_t width_of(const Level *l) {
    int64_t most = 0, n = 0;
    for (int64_t i = 0; i < l->tensor->count; i++) {
        if (l->kind == ROW_SPLITS)
            n = i ? index_at(l->tensor, i) - index_at(l->tensor, i - 1) : 0;
        else
            n = i && index_at(l->tensor, i) == index_at(l->tensor, i - 1) ? n + 1 : 1;
        most = n > most ? n : most;
    }
    return most;
}

/* The shape input as errors show it: ? where a dimension is open. */
static Error *incompatible_shape(const Tensor *given, const char *why, ...) __attribute__((format(printf, 2, 3)));
static Error *incompatible_shape(const Tensor *given, const char *why, ...) {
    StrBuf text = {0};
    for (int64_t i = 0; i < given->count; i++) {
        if (i) strbuf_addc(&text, ',');
        if (index_at(given, i) < 0)
            strbuf_addc(&text, '?');
        else
            strbuf_addf(&text, "%lld", (long long)index_at(given, i));
    }
    va_list args;
    va_start(args, why);
    Error *err = error_newv(CODE_INVALID_ARGUMENT, why, args);
    va_end(args);
    err = error_wrap(err, "rt_input.shape and shape=[%.*s] are incompatible", STR_ARG(strbuf_str(&text)));
    strbuf_clear(&text);
    return err;
}

/* The default value is one element of the values, or can be repeated to one. */
static Error *check_default(const Shape *value, const Shape *values) {
    Error *err = NULL;
    if (value->rank >= values->rank)
        err = error_invalid("default_value.rank = %d  must be less than rt_input.flat_values.rank = %d", value->rank, values->rank);
    for (int i = -value->rank; !err && i < 0; i++) {
        int64_t has = value->dims[value->rank + i], want = values->dims[values->rank + i];
        if (has != want && has != 1)
            err = error_invalid("default_value.shape[%d] = %lld but rt_input.flat_values.shape[%d] = %lld", i, (long long)has, i, (long long)want);
    }
    return error_wrap(err, "default_value.shape=%s and rt_input.flat_values.shape=%s are incompatible", shape_text(value).text, shape_text(values).text);
}

/* What the shape input says, -1 where it leaves a dimension open, filled up with what the rows and values need. */
static Error *result_shape(KernelContext *k, Dense *d) {
    const Tensor *given = k->in[0];
    const Shape *values = &k->in[1]->shape;
    if (values->rank < 1) return error_invalid("values must be a vector at least");
    if (given->shape.rank > 1) return error_invalid("Shape must be at most rank 1 but is rank %d", given->shape.rank);
    bool open = given->shape.rank == 0;
    if (open && index_at(given, 0) != -1)
        return error_invalid("The only valid scalar shape tensor is the fully unknown shape specified as -1.");
    for (int64_t i = 0; i < given->count; i++) {
        if (index_at(given, i) < -1) return error_invalid("Dimension %lld must be >= -1", (long long)index_at(given, i));
    }
    Error *err = check_default(&k->in[2]->shape, values);
    if (err) return err;
    d->shape.rank = d->rank + values->rank;
    if (!open && given->count != d->shape.rank)
        return incompatible_shape(given, "rt_input.rank = %d but shape.rank = %lld", d->shape.rank, (long long)given->count);
    for (int i = 0; i < d->shape.rank; i++) {
        int64_t want = open ? -1 : index_at(given, i);
        if (i > d->rank) { /* of the values */
            int64_t has = values->dims[i - d->rank];
            if (want >= 0 && want != has)
                return incompatible_shape(given, "rt_input.shape[%d] = %lld but shape[%d] = %lld", i, (long long)has, i, (long long)want);
            want = has;
        }
        if (want < 0) want = i == 0 ? d->first : width_of(&d->levels[i - 1]);
        d->shape.dims[i] = want;
    }
    return shape_check(&d->shape);
}

/* Places of the rows of one level, from those of the level above; -1 for rows that the result has no place for. */
static Error *place_rows(const Level *l, const int64_t *above, int64_t above_count, int64_t width, int64_t step,
                         int64_t **out, int64_t *count) {
    const Tensor *t = l->tensor;
    bool splits = l->kind == ROW_SPLITS;
    if (splits && t->count - 1 != above_count)
        return error_invalid("row splits of %lld rows for %lld rows", (long long)(t->count - 1),
                             (long long)above_count);
    *count = splits ? index_at(t, t->count - 1) : t->count;
    if (!splits && *count && index_at(t, *count - 1) >= above_count)
        return error_invalid("Got next_value_rowid=%lld which is not less than %lld",
                             (long long)index_at(t, *count - 1), (long long)above_count);
    int64_t *places = *count < INT64_MAX / 16 ? try_alloc((size_t)*count * sizeof *places + 1) : NULL;
    if (!places) return error_new(CODE_RESOURCE_EXHAUSTED, "No memory for %lld rows", (long long)*count);
    int64_t row = 0, column = 0;
    for (int64_t i = 0; i < *count; i++, column++) {
        int64_t before = row;
        if (splits)
            while (index_at(t, row + 1) <= i) row++;
        else
            row = index_at(t, i);
        if (row != before) column = 0;
        places[i] = above[row] >= 0 && column < width ? above[row] + column * step : -1;
    }
    *out = places;
    return NULL;
}

/* The default value in every place; it may be smaller than a value and is then repeated. */
static Error *fill_result(KernelContext *k, const Dense *d, Tensor *out) {
    const Tensor *value = k->in[2];
    int inner = k->in[1]->shape.rank - 1, extra = inner - value->shape.rank;
    bool fits = extra >= 0;
    StridedCopy c = {0};
    int64_t from[SHAPE_MAX_RANK], to[SHAPE_MAX_RANK];
    strides_of(&value->shape, from);
    strides_of(&out->shape, to);
    for (int i = 0; fits && i < out->shape.rank; i++) {
        int at = i - (d->rank + 1) - extra; /* of the default value */
        bool repeat = at < 0 || value->shape.dims[at] == 1;
        fits = repeat || value->shape.dims[at] == out->shape.dims[i];
        copy_add_dim(&c, out->shape.dims[i], to[i], repeat ? 0 : from[at]);
    }
    if (!fits)
        return error_invalid("default_value.shape=%s and rt_input.flat_values.shape=%s are incompatible",
                             shape_text(&value->shape).text, shape_text(&k->in[1]->shape).text);
    if (out->count) copy_strided(k->pool, element_kind(out->dtype), &c, out->data, value->data);
    return NULL;
}

static Error *put_values(KernelContext *k, const Dense *d, Tensor *out) {
    int64_t step = shape_prod(&d->shape, 1, d->shape.rank), count = d->first, *places = NULL;
    Error *err = NULL;
    int64_t *first = count < INT64_MAX / 16 ? try_alloc((size_t)count * sizeof *first + 1) : NULL;
    if (!first) return error_new(CODE_RESOURCE_EXHAUSTED, "No memory for %lld rows", (long long)count);
    for (int64_t i = 0; i < count; i++) first[i] = i < d->shape.dims[0] ? i * step : -1;
    for (int i = 0; !err && i < d->rank; i++) {
        int64_t width = d->shape.dims[i + 1];
        step = shape_prod(&d->shape, i + 2, d->shape.rank);
        err = place_rows(&d->levels[i], first, count, width, step, &places, &count);
        if (err) break;
        free(first);
        first = places;
    }
    const Tensor *values = k->in[1];
    if (!err && count != values->shape.dims[0])
        err = error_invalid("The row partitions have %lld rows, the values %lld", (long long)count,
                            (long long)values->shape.dims[0]);
    ElementKind kind = element_kind(out->dtype);
    int64_t size = shape_prod(&values->shape, 1, values->shape.rank);
    for (int64_t i = 0; !err && i < count; i++)
        if (first[i] >= 0)
            copy_elements(kind, (char *)out->data + (size_t)first[i] * kind.size,
                          (const char *)values->data + (size_t)(i * size) * kind.size, size);
    free(first);
    return err;
}

static Error *run_dense(KernelContext *k) {
    Dense d = {0};
    Error *err = read_levels(k, &d);
    if (!err) err = result_shape(k, &d);
    if (err) return err;
    Tensor *out = kernel_output(k, 0, &d.shape);
    if (!out) return NULL;
    err = fill_result(k, &d, out);
    return err ? err : put_values(k, &d, out);
}

const KernelDef ragged_dense_cpu[] = {
    {"RaggedTensorToTensor", .run = run_dense, .state_size = sizeof(DenseState), .init = init_dense,
     .clear = clear_dense},
    {0},
};
