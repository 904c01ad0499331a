/* warm_start.c: GenerateVocabRemapping and LoadAndRemapMatrix: a model goes on with weights of another one whose vocabulary differs. */
#include <stdlib.h>

#include "base/arena.h"
#include "base/hashmap.h"
#include "base/memory.h"
#include "io/bundle.h"
#include "io/record.h"
#include "ops/elements.h"
#include "ops/op_list.h"

const OpDef warm_start_ops[] = {
    {"GenerateVocabRemapping", "new_vocab_file: string, old_vocab_file: string -> remapping: int64, num_present: int32",
     "new_vocab_offset: int >= 0; num_new_vocab: int >= 0; old_vocab_size: int >= -1 = -1", 0},
    {"LoadAndRemapMatrix",
     "ckpt_path: string, old_tensor_name: string, row_remapping: int64, col_remapping: int64, initializing_values: float "
     "-> output_matrix: float",
     "num_rows: int >= 0; num_cols: int >= 1; max_rows_in_memory: int = -1", OP_STATEFUL},
    {0},
};

/* ---- Vocabularies ---- */

typedef struct VocabState {
    int64_t offset, count, old_size;
} VocabState;

static Error *vocab_init(const Node *node, void *state) {
    VocabState *s = state;
    Error *err = node_attr_int(node, "new_vocab_offset", &s->offset);
    if (!err) err = node_attr_int(node, "num_new_vocab", &s->count);
    if (!err) err = node_attr_int(node, "old_vocab_size", &s->old_size);
    if (!err && (s->offset < 0 || s->count < 0 || s->offset > INT32_MAX || s->count > INT32_MAX || s->old_size > INT32_MAX))
        err = error_invalid("new_vocab_offset %lld, num_new_vocab %lld and old_vocab_size %lld must be numbers of lines",
                            (long long)s->offset, (long long)s->count, (long long)s->old_size);
    return err;
}

/* The lines of a file, one word each. */
typedef struct Words {
    Arena *arena;
    Str *items;
    size_t count, room;
} Words;

static void words_clear(Words *w) {
    arena_free(w->arena);
    free(w->items);
}

/* At most `limit` lines; -1: all. */
static Error *words_read(const Tensor *file, const char *name, int64_t limit, Words *w) {
    InputStream *in = NULL;
    bool more = true;
    if (file->shape.rank != 0) return error_invalid("%s should be a single string, but got %s", name, shape_text(&file->shape).text);
    if (tstring_str(tensor_str(file)).len == 0) return error_invalid("new vocab filename cannot be empty.");
    char *path = str_dup(tstring_str(tensor_str(file)));
    w->arena = arena_new();
    Error *err = input_stream_open(&file_system_local, path, COMPRESSION_NONE, &in);
    while (!err && more && (limit < 0 || (int64_t)w->count < limit)) {
        StrBuf line = {0};
        err = input_stream_line(in, &line, &more);
        if (!err && more) {
            w->items = vec_reserve(w->items, &w->room, w->count + 1, sizeof *w->items);
            w->items[w->count++] = arena_str(w->arena, strbuf_str(&line));
        }
        strbuf_clear(&line);
    }
    if (!err && w->count == 0 && limit != 0) err = error_new(CODE_OUT_OF_RANGE, "Read less bytes than requested");
    if (!err && limit >= 0 && (int64_t)w->count < limit)
        err = error_invalid("Invalid vocab_size in %s: expected %lld but got %zu", path, (long long)limit, w->count);
    if (in) input_stream_close(in);
    free(path);
    return err;
}

/* Where each word is; one that comes twice cannot be said. */
static Error *words_index(const Words *w, StrMap *index) {
    for (size_t i = 0; i < w->count; i++) {
        const Str *before = strmap_put(index, w->items[i], w->items + i);
        if (before)
            return error_new(CODE_FAILED_PRECONDITION, "HashTable has different value for same key. Key %.*s has %td and trying to add value %zu",
                             STR_ARG(w->items[i]), before - w->items, i);
    }
    return NULL;
}

static Error *remap_words(KernelContext *k, const Words *words, const Words *old) {
    const VocabState *s = k->state;
    StrMap index = {0};
    int32_t present = 0;
    Shape shape = shape_vector(s->count);
    Error *err = words_index(old, &index);
    Tensor *out = err ? NULL : kernel_output(k, 0, &shape);
    for (int64_t i = 0; out && i < s->count; i++) {
        const Str *found = strmap_get(&index, words->items[s->offset + i]);
        tensor_i64(out)[i] = found ? found - old->items : -1;
        present += found != NULL;
    }
    strmap_clear(&index);
    if (out) kernel_set_output(k, 1, tensor_scalar_i32(present));
    return err;
}

static Error *run_vocab(KernelContext *k) {
    const VocabState *s = k->state;
    Words words = {0}, old = {0};
    Error *err = words_read(k->in[0], "new_vocab_file", -1, &words);
    if (!err && s->offset + s->count > (int64_t)words.count)
        err = error_invalid("lookup table size must be larger than last new vocab entry's line");
    if (!err) err = words_read(k->in[1], "old_vocab_file", s->old_size, &old);
    if (!err) err = remap_words(k, &words, &old);
    words_clear(&words);
    words_clear(&old);
    return err;
}

/* ---- Matrices ---- */

typedef struct MatrixState {
    int64_t rows, columns, at_once;
} MatrixState;

static Error *matrix_init(const Node *node, void *state) {
    MatrixState *s = state;
    Error *err = node_attr_int(node, "num_rows", &s->rows);
    if (!err) err = node_attr_int(node, "num_cols", &s->columns);
    if (!err) err = node_attr_int(node, "max_rows_in_memory", &s->at_once);
    if (!err && (s->rows < 0 || s->columns < 1)) err = error_invalid("num_rows must be at least 0 and num_cols at least 1");
    return err;
}

static Error *check_remapping(const Tensor *t, bool is_rows, int64_t size) {
    if (t->shape.rank != 1) return error_invalid("The `%s` tensor must be 1-D, got a tensor of shape %s", is_rows ? "row_remapping" : "col_remapping", shape_text(&t->shape).text);
    if (t->count != size) return error_invalid(is_rows ? "Size of row_remapping is %lld instead of being equal to num_rows=%lld"
                                     : "Provided col_remapping, but its size is %lld instead of being equal to num_cols=%lld",
                             (long long)t->count, (long long)size);
    IntMap seen = {0};
    Error *err = NULL;
    for (int64_t i = 0; !err && i < t->count; i++) {
        int64_t old = tensor_i64(t)[i];
        if (old < 0) continue;
        const int64_t *before = intmap_put(&seen, (uint64_t)old, tensor_i64(t) + i);
        if (before)
            err = error_unimplemented("Old ID %lld is mapped to both new ID %td and %lld, which is not supported.", (long long)old,
                                      before - tensor_i64(t), (long long)i);
    }
    intmap_clear(&seen);
    return err;
}

static Error *check_matrix(const KernelContext *k) {
    const MatrixState *s = k->state;
    Error *err = check_remapping(k->in[2], true, s->rows);
    if (!err && (k->in[3]->shape.rank != 1 || k->in[3]->count > 0)) err = check_remapping(k->in[3], false, s->columns);
    if (err) return err;
    if (k->in[0]->count != 1) return error_invalid("The `ckpt_path` tensor must have exactly one element, got tensor of shape %s", shape_text(&k->in[0]->shape).text);
    if (k->in[1]->count != 1) return error_invalid("The `old_tensor_name` tensor must have exactly one element, got tensor of shape %s", shape_text(&k->in[1]->shape).text);
    return NULL;
}

/* TensorFlow reads all rows from the first to the last that is asked for, max_rows_in_memory at a time; the error tells its slice. */
static Error *check_extent(const KernelContext *k, const Shape *shape) {
    const MatrixState *s = k->state;
    int64_t first = INT64_MAX, last = -1, have = shape->dims[0];
    for (int64_t i = 0; i < s->rows; i++) {
        int64_t row = tensor_i64(k->in[2])[i];
        if (row >= 0 && row < first) first = row;
        if (row > last) last = row;
    }
    if (last < have) return NULL;
    if (s->at_once > 0 && first < have) first += (have - first) / s->at_once * s->at_once;
    int64_t length = s->at_once > 0 && s->at_once < last - first + 1 ? s->at_once : last - first + 1;
    return error_internal("Extent in dimension 0 out of bounds: shape = %s, slice = %lld,%lld:-", shape_text(shape).text, (long long)first, (long long)length);
}

static Error *check_entry(const KernelContext *k, Str name, const BundleEntry *e) {
    const MatrixState *s = k->state;
    if (e->dtype != DT_FLOAT)
        return error_invalid("Tensor %.*s has invalid type %s instead of expected type float", STR_ARG(name), dtype_name(e->dtype));
    if (e->shape.rank != 2)
        return error_invalid("Tensor %.*s has shape %s of invalid rank %d instead of expected shape of rank 2.", STR_ARG(name),
                             shape_text(&e->shape).text, e->shape.rank);
    if (k->in[3]->count == 0 && e->shape.dims[1] != s->columns)
        return error_invalid("Tensor %.*s has shape %s, where the size of its 2nd dimension is %lld instead of being equal to num_cols=%lld",
                             STR_ARG(name), shape_text(&e->shape).text, (long long)e->shape.dims[1], (long long)s->columns);
    return check_extent(k, &e->shape);
}

/* Takes what the old matrix has; the rest comes from the initializing values, in order. */
static Error *fill_matrix(const KernelContext *k, const Tensor *old, Tensor *out) {
    const MatrixState *s = k->state;
    const Tensor *values = k->in[4];
    const int64_t *rows = tensor_i64(k->in[2]), *columns = k->in[3]->count ? tensor_i64(k->in[3]) : NULL, width = old->shape.dims[1];
    int64_t used = 0;
    for (int64_t r = 0; r < s->rows; r++)
        for (int64_t c = 0; c < s->columns; c++) {
            int64_t from = columns ? columns[c] : c;
            float *to = tensor_f32(out) + r * s->columns + c;
            if (rows[r] >= 0 && from >= 0) {
                *to = from < width ? tensor_f32(old)[rows[r] * width + from] : 0;
                continue;
            }
            if (used == values->count)
                return error_invalid("initializing_values contained %lld elements, but more missing values remain.", (long long)values->count);
            *to = tensor_f32(values)[used++];
        }
    if (used == values->count) return NULL;
    return error_invalid("initializing_values contained %lld elements, but only %lld elements were used to fill in missing values.",
                         (long long)values->count, (long long)used);
}

static Error *run_matrix(KernelContext *k) {
    const MatrixState *s = k->state;
    Error *err = check_matrix(k);
    if (err) return err;
    char *path = str_dup(tstring_str(tensor_str(k->in[0])));
    const Str name = tstring_str(tensor_str(k->in[1]));
    Bundle *bundle = NULL;
    BundleEntry entry = {0};
    Tensor *old = NULL, *out = NULL;
    Shape shape = shape_matrix(s->rows, s->columns);
    err = bundle_open(&file_system_local, path, &bundle);
    if (err && err->code == CODE_NOT_FOUND) {
        error_free(err);
        err = error_not_found("%s.index; No such file or directory", path);
    }
    if (!err) err = bundle_find(bundle, name, &entry);
    if (!err) err = check_entry(k, name, &entry);
    if (!err) out = kernel_output(k, 0, &shape);
    if (!err && out) err = bundle_read(bundle, name, &old);
    if (!err && out) err = fill_matrix(k, old, out);
    tensor_unref(old);
    bundle_entry_clear(&entry);
    bundle_close(bundle);
    free(path);
    return err;
}

const KernelDef warm_start_cpu[] = {
    {"GenerateVocabRemapping", .run = run_vocab, .state_size = sizeof(VocabState), .init = vocab_init, .flags = KERNEL_EXPENSIVE},
    {"LoadAndRemapMatrix", .run = run_matrix, .state_size = sizeof(MatrixState), .init = matrix_init, .flags = KERNEL_EXPENSIVE},
    {0},
};
