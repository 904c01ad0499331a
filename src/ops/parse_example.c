/* parse_example.c: ParseExample, ParseExampleV2, ParseSingleExample. */
#include "ops/parse_example.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/hashmap.h"
#include "base/memory.h"
#include "io/example.h"
#include "ops/elements.h"
#include "ops/op_list.h"

const OpDef parse_example_ops[] = {
    {"ParseExample",
     "serialized: string, names: string, sparse_keys: Nsparse * string, dense_keys: Ndense * string, "
     "dense_defaults: Tdense -> sparse_indices: Nsparse * int64, sparse_values: sparse_types, sparse_shapes: "
     "Nsparse * int64, dense_values: Tdense",
     "Nsparse: int >= 0; Ndense: int >= 0; sparse_types: list({float, int64, string}) >= 0; Tdense: list({float, "
     "int64, string}) >= 0; dense_shapes: list(shape) >= 0",
     0},
    {"ParseExampleV2",
     "serialized: string, names: string, sparse_keys: string, dense_keys: string, ragged_keys: string, "
     "dense_defaults: Tdense -> sparse_indices: num_sparse * int64, sparse_values: sparse_types, sparse_shapes: "
     "num_sparse * int64, dense_values: Tdense, ragged_values: ragged_value_types, ragged_row_splits: "
     "ragged_split_types",
     "Tdense: list({float, int64, string}) >= 0; num_sparse: int >= 0; sparse_types: list({float, int64, string}) "
     ">= 0; ragged_value_types: list({float, int64, string}) >= 0; ragged_split_types: list({int32, int64}) >= 0; "
     "dense_shapes: list(shape) >= 0",
     0},
    {"ParseSingleExample",
     "serialized: string, dense_defaults: Tdense -> sparse_indices: num_sparse * int64, sparse_values: "
     "sparse_types, sparse_shapes: num_sparse * int64, dense_values: Tdense",
     "num_sparse: int >= 0; sparse_keys: list(string) >= 0; dense_keys: list(string) >= 0; sparse_types: "
     "list({float, int64, string}) >= 0; Tdense: list({float, int64, string}) >= 0; dense_shapes: list(shape) >= 0",
     0},
    {0},
};

void parse_state_clear(void *state) {
    ParseState *s = state;
    for (int i = 0; s->keys && i < s->sparse_count + s->dense_count + s->ragged_count; i++) free((char *)s->keys[i].ptr);
    free(s->keys);
    free(s->sparse_types);
    free(s->dense_types);
    free(s->ragged_types);
    free(s->split_types);
    free(s->shapes);
}

/* The first dimension of a dense feature may be unknown: then it varies from example to example. */
static Error *check_shape(const PartialShape *p) {
    bool known = p->rank >= 0;
    for (int d = 1; d < p->rank; d++) known = known && p->dims[d] >= 0;
    if (!known || p->rank >= SHAPE_MAX_RANK)
        return error_invalid("dense_shapes must be known up to their first dimension");
    Shape rest = *p;
    if (rest.rank && rest.dims[0] < 0) rest.dims[0] = 1;
    return shape_check(&rest);
}

static Error *read_parse(const Node *node, ParseState *s) {
    int64_t sparse = 0;
    Str value;
    Error *err = node_attr_types(node, "sparse_types", &s->sparse_types, &s->sparse_count);
    if (!err && node_attr(node, "num_sparse", &value)) {
        err = node_attr_int(node, "num_sparse", &sparse);
        if (!err && sparse != s->sparse_count) err = error_invalid("len(sparse_keys) != len(sparse_types)");
    }
    if (!err) err = node_attr_types(node, "Tdense", &s->dense_types, &s->dense_count);
    if (!err) err = node_attr_shapes(node, "dense_shapes", &s->shapes, &s->shape_count);
    if (!err && s->shape_count != s->dense_count)
        err = error_invalid("dense_shapes and Tdense must have the same length");
    for (int i = 0; !err && i < s->shape_count; i++) err = check_shape(&s->shapes[i]);
    return err;
}

static Error *init_parse(const Node *node, void *state) {
    return read_parse(node, state);
}

static Error *init_parse_v2(const Node *node, void *state) {
    ParseState *s = state;
    Error *err = read_parse(node, s);
    if (!err) err = node_attr_types(node, "ragged_value_types", &s->ragged_types, &s->ragged_count);
    if (!err) err = node_attr_types(node, "ragged_split_types", &s->split_types, &s->split_count);
    if (!err && s->split_count != s->ragged_count)
        err = error_invalid("ragged_value_types and ragged_split_types must have the same length");
    return err;
}

static Error *add_keys(const Node *node, const char *attr, ParseState *s, int want, int *n) {
    Str *names = NULL;
    int count = 0;
    Error *err = node_attr_strings(node, attr, &names, &count);
    if (!err && count != want) err = error_invalid("%s must have %d elements, not %d", attr, want, count);
    for (int i = 0; !err && i < count; i++) s->keys[(*n)++] = (Str){str_dup(names[i]), names[i].len};
    free(names);
    return err;
}

Error *parse_state_init(const Node *node, ParseState *s) {
    int n = 0;
    Str value;
    bool ragged = node_attr(node, "ragged_keys", &value);
    Error *err = ragged ? init_parse_v2(node, s) : read_parse(node, s);
    if (!err) s->keys = xcalloc((size_t)(s->sparse_count + s->dense_count + s->ragged_count) + 1, sizeof *s->keys);
    if (!err) err = add_keys(node, "sparse_keys", s, s->sparse_count, &n);
    if (!err) err = add_keys(node, "dense_keys", s, s->dense_count, &n);
    if (!err && ragged) err = add_keys(node, "ragged_keys", s, s->ragged_count, &n);
    return err;
}

static Error *init_parse_single(const Node *node, void *state) {
    return parse_state_init(node, state);
}

/* ---- Parsing ---- */

typedef struct Column {
    Str name;
    DataType type;
} Column;

typedef struct Parse {
    const ParseState *s;
    const Tensor *serialized, *names; /* names: (optional) */
    Tensor *const *defaults;
    Column *columns; /* sparse, dense, ragged */
    int column_count;
    int64_t batch;
    bool single; /* the input is one example, not a batch */
    StrMap index;
    ExampleFeature *found;  /* [batch][column_count] */
    int64_t *counts;        /* values in found; 0 where there is none */
    _Atomic int64_t broken; /* an example that cannot be read, -1: none */
    Tensor **out;           /* the results, in the order of the op's */
    Error *error;           /* of result() */
} Parse;

/* Result i, new; NULL when there is no memory. */
static Tensor *result(Parse *p, int i, DataType type, const Shape *shape) {
    if (p->error) return NULL;
    p->error = tensor_new(type, shape, &p->out[i]);
    return p->error ? NULL : p->out[i];
}

static void find_range(void *arg, int64_t begin, int64_t end) {
    Parse *p = arg;
    for (int64_t e = begin; e < end; e++) {
        ExampleFeature *row = p->found + e * p->column_count;
        bool ok = example_find(tstring_str(&tensor_str(p->serialized)[e]), &p->index, row);
        for (int c = 0; ok && c < p->column_count; c++) {
            int64_t n = row[c].type == DT_INVALID ? 0 : feature_count(&row[c]);
            p->counts[e * p->column_count + c] = n;
            ok = n >= 0;
        }
        if (!ok) atomic_store(&p->broken, e);
    }
}

static const char *example_name(const Parse *p, int64_t e, char **to_free) {
    *to_free = p->names && p->names->count > e ? str_dup(tstring_str(&tensor_str(p->names)[e])) : NULL;
    return *to_free && **to_free ? *to_free : "<unknown>";
}

static Error *bad_type(const Parse *p, int64_t e, int c, DataType got) {
    char *owned;
    const char *name = example_name(p, e, &owned);
    StrBuf where = {0};
    if (!p->single) strbuf_addf(&where, "Name: %s, ", name);
    strbuf_addf(&where, "Key: %.*s", STR_ARG(p->columns[c].name));
    if (!p->single) strbuf_addf(&where, ", Index: %lld", (long long)e);
    const char *want = dtype_name(p->columns[c].type);
    bool sparse = c < p->s->sparse_count;
    Error *err = sparse ? error_invalid("%s.  Data types don't match. Expected type: %s, Actual type: %s", where.ptr, want, dtype_name(got))
                        : error_invalid("%s.  Data types don't match. Data type: %s but expected type: %s", where.ptr, dtype_name(got), want);
    strbuf_clear(&where);
    free(owned);
    return err;
}

static Error *find_features(Parse *p, ThreadPool *pool) {
    atomic_store(&p->broken, -1);
    threadpool_parallel_for(pool, p->batch, 64, find_range, p);
    int64_t broken = atomic_load(&p->broken);
    if (broken >= 0) {
        Str s = tstring_str(&tensor_str(p->serialized)[broken]);
        return error_invalid("Could not parse example input, value: '%.*s'", (int)(s.len < 200 ? s.len : 200), s.ptr);
    }
    for (int64_t i = 0; i < p->batch * p->column_count; i++) {
        int c = (int)(i % p->column_count);
        if (p->found[i].type != DT_INVALID && p->found[i].type != p->columns[c].type)
            return bad_type(p, i / p->column_count, c, p->found[i].type);
    }
    return NULL;
}

static int64_t count_at(const Parse *p, int64_t e, int c) {
    return p->counts[e * p->column_count + c];
}

/* All values of column c, one after another. */
static void copy_column(const Parse *p, int c, Tensor *to) {
    int64_t at = 0;
    for (int64_t e = 0; e < p->batch; e++) {
        const ExampleFeature *f = &p->found[e * p->column_count + c];
        if (f->type != DT_INVALID) feature_copy(f, (char *)to->data + (size_t)at * dtype_size(to->dtype));
        at += count_at(p, e, c);
    }
}

static int64_t total_of(const Parse *p, int c, int64_t *most) {
    int64_t total = 0;
    *most = 0;
    for (int64_t e = 0; e < p->batch; e++) {
        total += count_at(p, e, c);
        *most = count_at(p, e, c) > *most ? count_at(p, e, c) : *most;
    }
    return total;
}

static void put_sparse(Parse *p, int i) {
    int n = p->s->sparse_count, rank = p->single ? 1 : 2;
    int64_t most, total = total_of(p, i, &most), at = 0;
    Shape matrix = shape_matrix(total, rank), vector = shape_vector(total), dims = shape_vector(rank);
    Tensor *indices = result(p, i, DT_INT64, &matrix), *values = result(p, n + i, p->columns[i].type, &vector),
           *shape = result(p, 2 * n + i, DT_INT64, &dims);
    if (!indices || !values || !shape) return;
    for (int64_t e = 0; e < p->batch; e++)
        for (int64_t j = 0; j < count_at(p, e, i); j++) {
            if (!p->single) tensor_i64(indices)[at++] = e;
            tensor_i64(indices)[at++] = j;
        }
    copy_column(p, i, values);
    if (!p->single) tensor_i64(shape)[0] = p->batch;
    tensor_i64(shape)[rank - 1] = most;
}

static Error *missing(const Parse *p, int64_t e, int c) {
    if (p->single)
        return error_invalid("Feature: %.*s (data type: %s) is required but could not be found.",
                             STR_ARG(p->columns[c].name), dtype_name(p->columns[c].type));
    char *owned;
    const char *name = example_name(p, e, &owned);
    Error *err = error_invalid("Name: %s, Feature: %.*s (data type: %s) is required but could not be found.", name,
                               STR_ARG(p->columns[c].name), dtype_name(p->columns[c].type));
    free(owned);
    return err;
}

static Error *bad_count(const Parse *p, int64_t e, int c, const Shape *shape) {
    char *owned, *text = shape_str(shape);
    const char *name = example_name(p, e, &owned),
               *type = p->columns[c].type == DT_STRING ? "bytes" : dtype_name(p->columns[c].type);
    Str key = p->columns[c].name;
    long long count = count_at(p, e, c);
    bool varies = shape->rank > 0 && shape->dims[0] < 0;
    Error *err;
    if (p->single && varies)
        err = error_invalid("Error while parsing feature with key %.*s: number of elements should be divisible by %lld, found %lld instead", STR_ARG(key),
                            (long long)shape_prod(shape, 1, shape->rank), count);
    else if (p->single)
        err = error_invalid("Key: %.*s.  Can't parse serialized Example: Some %s_list slice was not parsed.", STR_ARG(key), type);
    else if (varies)
        err = error_invalid("Name: %s, Key: %.*s, Index: %lld.  Number of %s values is not a multiple of stride length. Saw %lld values but output shape is: %s", name, STR_ARG(key),
                            (long long)e, type, count, text);
    else
        err = error_invalid("Name: %s, Key: %.*s, Index: %lld.  Number of %s values != expected.  Values size: %lld but output shape: %s", name, STR_ARG(key), (long long)e, type, count,
                            text);
    free(owned);
    free(text);
    return err;
}

/* Every example gives as many values as the shape says, or the default. */
static Error *put_fixed(Parse *p, int i, int out) {
    int c = p->s->sparse_count + i;
    const Tensor *fallback = p->defaults[i];
    Shape row = p->s->shapes[i], shape = row;
    int64_t n = shape_count(&row);
    if (!p->single) shape_insert_dim(&shape, 0, p->batch);
    if (fallback->count && fallback->count != n && !(fallback->count == 1))
        return error_invalid("dense_defaults[%d] has %lld elements, expected %lld", i, (long long)fallback->count,
                             (long long)n);
    Tensor *t = result(p, out, p->columns[c].type, &shape);
    size_t size = dtype_size(p->columns[c].type);
    for (int64_t e = 0; t && e < p->batch; e++) {
        const ExampleFeature *f = &p->found[e * p->column_count + c];
        char *to = (char *)t->data + (size_t)(e * n) * size;
        if (f->type == DT_INVALID) {
            if (!fallback->count && n) return missing(p, e, c);
            for (int64_t j = 0; j < n; j++)
                elements_copy(t->dtype, to + (size_t)j * size,
                              (const char *)fallback->data + (fallback->count == n ? (size_t)j * size : 0), 1);
        } else if (count_at(p, e, c) != n) {
            return bad_count(p, e, c, &row);
        } else {
            feature_copy(f, to);
        }
    }
    return NULL;
}

/* The first dimension is that of the longest example; the others are filled up with the default. */
static Error *put_variable(Parse *p, int i, int out) {
    int c = p->s->sparse_count + i;
    const Tensor *fallback = p->defaults[i];
    Shape shape = p->s->shapes[i];
    int64_t step = shape_prod(&shape, 1, shape.rank), most;
    total_of(p, c, &most);
    for (int64_t e = 0; e < p->batch; e++)
        if (step ? count_at(p, e, c) % step : count_at(p, e, c)) return bad_count(p, e, c, &shape);
    shape.dims[0] = step ? most / step : 0;
    if (!p->single) shape_insert_dim(&shape, 0, p->batch);
    Tensor *t = result(p, out, p->columns[c].type, &shape);
    size_t size = dtype_size(p->columns[c].type);
    for (int64_t e = 0; t && e < p->batch; e++) {
        const ExampleFeature *f = &p->found[e * p->column_count + c];
        char *to = (char *)t->data + (size_t)(e * most) * size;
        if (f->type != DT_INVALID) feature_copy(f, to);
        for (int64_t j = count_at(p, e, c); j < most; j++) {
            if (fallback->count)
                elements_copy(t->dtype, to + (size_t)j * size, fallback->data, 1);
            else if (dtype_is_plain(t->dtype))
                memset(to + (size_t)j * size, 0, size);
        }
    }
    return NULL;
}

static void put_ragged(Parse *p, int i) {
    const ParseState *s = p->s;
    int c = s->sparse_count + s->dense_count + i, first = 3 * s->sparse_count + s->dense_count;
    int64_t most, total = total_of(p, c, &most), sum = 0;
    Shape vector = shape_vector(total), splits_shape = shape_vector(p->single ? 0 : p->batch + 1);
    Tensor *values = result(p, first + i, p->columns[c].type, &vector),
           *splits = result(p, first + s->ragged_count + i, s->split_types[i], &splits_shape);
    if (!values || !splits) return;
    copy_column(p, c, values);
    for (int64_t e = 0; e < splits->count; e++) {
        if (splits->dtype == DT_INT64)
            tensor_i64(splits)[e] = sum;
        else
            tensor_i32(splits)[e] = (int32_t)sum;
        if (e < p->batch) sum += count_at(p, e, c);
    }
}

int parse_result_count(const ParseState *s) {
    return 3 * s->sparse_count + s->dense_count + 2 * s->ragged_count;
}

Error *parse_examples(const ParseState *s, ThreadPool *pool, const Tensor *serialized, const Tensor *names, const Str *keys,
                      Tensor *const *defaults, Tensor **out) {
    Parse p = {.s = s, .serialized = serialized, .names = names, .defaults = defaults, .out = out};
    Error *err = NULL;
    p.batch = serialized->count;
    p.single = serialized->shape.rank == 0;
    p.column_count = s->sparse_count + s->dense_count + s->ragged_count;
    if (serialized->shape.rank > 1) return error_invalid("Expected serialized to be a scalar or a vector");
    if (names && names->count && names->count != p.batch)
        return error_invalid("Expected names have the same shape as serialized: name.shape=%s, serialized.shape=%s",
                             shape_text(&names->shape).text, shape_text(&serialized->shape).text);
    p.columns = xcalloc((size_t)p.column_count + 1, sizeof *p.columns);
    for (int c = 0; c < p.column_count; c++) {
        int d = c - s->sparse_count, r = d - s->dense_count;
        p.columns[c] = (Column){keys[c], d < 0 ? s->sparse_types[c] : r < 0 ? s->dense_types[d] : s->ragged_types[r]};
        if (strmap_put(&p.index, keys[c], (void *)(uintptr_t)(c + 1)) && !err)
            err = error_invalid("Feature %.*s is asked for twice", STR_ARG(keys[c]));
    }
    size_t cells = (size_t)p.batch * (size_t)p.column_count;
    p.found = calloc(cells + 1, sizeof *p.found);
    p.counts = calloc(cells + 1, sizeof *p.counts);
    if (!err && (!p.found || !p.counts)) err = error_new(CODE_RESOURCE_EXHAUSTED, "Too many examples at once");
    for (int i = 0; !err && i < s->dense_count; i++) {
        const Shape *row = &s->shapes[i], *given = &defaults[i]->shape;
        bool varies = row->rank > 0 && row->dims[0] < 0;
        if (!varies && defaults[i]->count > 0 && !shape_eq(row, given))
            err = error_invalid("def_value[%d].shape() == %s is not compatible with dense_shapes_[%d] == %s", i, shape_text(given).text, i,
                                shape_text(row).text);
    }
    if (!err) err = find_features(&p, pool);
    for (int i = 0; !err && i < s->sparse_count; i++) put_sparse(&p, i);
    for (int i = 0; !err && i < s->dense_count; i++) {
        bool varies = s->shapes[i].rank > 0 && s->shapes[i].dims[0] < 0;
        err = (varies ? put_variable : put_fixed)(&p, i, 3 * s->sparse_count + i);
    }
    for (int i = 0; !err && i < s->ragged_count; i++) put_ragged(&p, i);
    free(p.columns);
    free(p.found);
    free(p.counts);
    strmap_clear(&p.index);
    if (!err) return p.error;
    error_free(p.error);
    return err;
}

/* The results become the outputs. */
static Error *parse(KernelContext *k, const Tensor *serialized, const Tensor *names, const Str *keys,
                    Tensor *const *defaults) {
    int n = parse_result_count(k->state);
    if (n != k->output_count) return error_invalid("The op has %d outputs, but its attributes make %d", k->output_count, n);
    Tensor **out = xcalloc((size_t)n + 1, sizeof *out);
    Error *err = parse_examples(k->state, k->pool, serialized, names, keys, defaults, out);
    for (int i = 0; i < n; i++) {
        if (err)
            tensor_unref(out[i]);
        else
            kernel_set_output(k, i, out[i]);
    }
    free(out);
    return err;
}

static Error *run_v1(KernelContext *k) {
    const ParseState *s = k->state;
    int n = s->sparse_count + s->dense_count;
    if (k->in[0]->shape.rank != 1) return error_invalid("Expected serialized to be a vector");
    if (k->input_count != 2 + n + s->dense_count) return error_invalid("sparse_types and Nsparse do not agree");
    Str *keys = xcalloc((size_t)n + 1, sizeof *keys);
    Error *err = NULL;
    for (int i = 0; i < n && !err; i++) {
        if (k->in[2 + i]->count != 1)
            err = error_invalid("Expected key %d to be a scalar", i);
        else
            keys[i] = tstring_str(tensor_str(k->in[2 + i]));
    }
    if (!err) err = parse(k, k->in[0], k->in[1], keys, k->in + 2 + n);
    free(keys);
    return err;
}

static Error *run_v2(KernelContext *k) {
    const ParseState *s = k->state;
    const int counts[3] = {s->sparse_count, s->dense_count, s->ragged_count};
    int n = 0;
    Str *keys = xcalloc((size_t)(counts[0] + counts[1] + counts[2]) + 1, sizeof *keys);
    Error *err = NULL;
    for (int g = 0; g < 3 && !err; g++) {
        const Tensor *t = k->in[2 + g];
        if (t->count != counts[g]) err = error_invalid("Expected %d keys, got %lld", counts[g], (long long)t->count);
        for (int64_t i = 0; !err && i < t->count; i++) keys[n++] = tstring_str(&tensor_str(t)[i]);
    }
    if (!err) err = parse(k, k->in[0], k->in[1], keys, k->in + 5);
    free(keys);
    return err;
}

static Error *run_single(KernelContext *k) {
    const ParseState *s = k->state;
    if (k->in[0]->shape.rank != 0) return error_invalid("Expected serialized to be a scalar");
    return parse(k, k->in[0], NULL, s->keys, k->in + 1);
}

#define PARSE(op_name, run_fn, init_fn)                                                                  \
    {                                                                                                    \
        op_name, .run = run_fn, .state_size = sizeof(ParseState), .init = init_fn, .clear = parse_state_clear, \
                 .flags = KERNEL_EXPENSIVE                                                               \
    }

const KernelDef parse_example_cpu[] = {
    PARSE("ParseExample", run_v1, init_parse),
    PARSE("ParseExampleV2", run_v2, init_parse_v2),
    PARSE("ParseSingleExample", run_single, init_parse_single),
    {0},
};
