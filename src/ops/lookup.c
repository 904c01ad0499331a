/* lookup.c: HashTable, MutableHashTable, MutableDenseHashTable and the ops on tables. */
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "io/record.h"
#include "ops/elements.h"
#include "ops/lookup_table.h"
#include "ops/op_list.h"

const OpDef lookup_ops[] = {
    {"HashTable", "-> table_handle: Ref(string)",
     "container: string = ''; shared_name: string = ''; use_node_name_sharing: bool = false; key_dtype: type; "
     "value_dtype: type",
     OP_STATEFUL},
    {"HashTableV2", "-> table_handle: resource",
     "container: string = ''; shared_name: string = ''; use_node_name_sharing: bool = false; key_dtype: type; "
     "value_dtype: type",
     OP_STATEFUL},
    {"MutableHashTable", "-> table_handle: Ref(string)",
     "container: string = ''; shared_name: string = ''; use_node_name_sharing: bool = false; key_dtype: type; "
     "value_dtype: type",
     OP_STATEFUL},
    {"MutableHashTableV2", "-> table_handle: resource",
     "container: string = ''; shared_name: string = ''; use_node_name_sharing: bool = false; key_dtype: type; "
     "value_dtype: type",
     OP_STATEFUL},
    {"MutableHashTableOfTensors", "-> table_handle: Ref(string)",
     "container: string = ''; shared_name: string = ''; use_node_name_sharing: bool = false; key_dtype: type; "
     "value_dtype: type; value_shape: shape = []",
     OP_STATEFUL},
    {"MutableHashTableOfTensorsV2", "-> table_handle: resource",
     "container: string = ''; shared_name: string = ''; use_node_name_sharing: bool = false; key_dtype: type; "
     "value_dtype: type; value_shape: shape = []",
     OP_STATEFUL},
    {"MutableDenseHashTable", "empty_key: key_dtype -> table_handle: Ref(string)",
     "container: string = ''; shared_name: string = ''; use_node_name_sharing: bool = false; key_dtype: type; "
     "value_dtype: type; value_shape: shape = []; initial_num_buckets: int = 131072; max_load_factor: float = "
     "0.800000011921",
     OP_STATEFUL},
    {"MutableDenseHashTableV2", "empty_key: key_dtype, deleted_key: key_dtype -> table_handle: resource",
     "container: string = ''; shared_name: string = ''; use_node_name_sharing: bool = false; key_dtype: type; "
     "value_dtype: type; value_shape: shape = []; initial_num_buckets: int = 131072; max_load_factor: float = "
     "0.800000011921",
     OP_STATEFUL},
    {"AnonymousHashTable", "-> table_handle: resource", "key_dtype: type; value_dtype: type", OP_STATEFUL},
    {"AnonymousMutableHashTable", "-> table_handle: resource", "key_dtype: type; value_dtype: type", OP_STATEFUL},
    {"AnonymousMutableHashTableOfTensors", "-> table_handle: resource",
     "key_dtype: type; value_dtype: type; value_shape: shape = []", OP_STATEFUL},
    {"AnonymousMutableDenseHashTable", "empty_key: key_dtype, deleted_key: key_dtype -> table_handle: resource",
     "key_dtype: type; value_dtype: type; value_shape: shape = []; initial_num_buckets: int = 131072; max_load_factor: "
     "float = 0.800000011921",
     OP_STATEFUL},
    {"LookupTableFind", "table_handle: Ref(string), keys: Tin, default_value: Tout -> values: Tout",
     "Tin: type; Tout: type", 0},
    {"LookupTableFindV2", "table_handle: resource, keys: Tin, default_value: Tout -> values: Tout",
     "Tin: type; Tout: type", OP_STATEFUL},
    {"LookupTableInsert", "table_handle: Ref(string), keys: Tin, values: Tout ->", "Tin: type; Tout: type", 0},
    {"LookupTableInsertV2", "table_handle: resource, keys: Tin, values: Tout ->", "Tin: type; Tout: type", OP_STATEFUL},
    {"LookupTableRemoveV2", "table_handle: resource, keys: Tin ->", "Tin: type", OP_STATEFUL},
    {"LookupTableImport", "table_handle: Ref(string), keys: Tin, values: Tout ->", "Tin: type; Tout: type", 0},
    {"LookupTableImportV2", "table_handle: resource, keys: Tin, values: Tout ->", "Tin: type; Tout: type", OP_STATEFUL},
    {"LookupTableExport", "table_handle: Ref(string) -> keys: Tkeys, values: Tvalues", "Tkeys: type; Tvalues: type", 0},
    {"LookupTableExportV2", "table_handle: resource -> keys: Tkeys, values: Tvalues", "Tkeys: type; Tvalues: type",
     OP_STATEFUL},
    {"LookupTableSize", "table_handle: Ref(string) -> size: int64", "", 0},
    {"LookupTableSizeV2", "table_handle: resource -> size: int64", "", OP_STATEFUL},
    {"InitializeTable", "table_handle: Ref(string), keys: Tkey, values: Tval ->", "Tkey: type; Tval: type", 0},
    {"InitializeTableV2", "table_handle: resource, keys: Tkey, values: Tval ->", "Tkey: type; Tval: type", OP_STATEFUL},
    {"InitializeTableFromTextFile", "table_handle: Ref(string), filename: string ->",
     "key_index: int >= -2; value_index: int >= -2; vocab_size: int >= -1 = -1; delimiter: string = '\t'; offset: int "
     "= 0",
     0},
    {"InitializeTableFromTextFileV2", "table_handle: resource, filename: string ->",
     "key_index: int >= -2; value_index: int >= -2; vocab_size: int >= -1 = -1; delimiter: string = '\t'; offset: int "
     "= 0",
     OP_STATEFUL},
    {0},
};

/* ---- Making tables ---- */

typedef struct MakeState {
    LookupSpec spec;
    bool node_name_shared;
} MakeState;

static Error *make_init(const Node *node, MakeState *s, LookupKind kind, bool has_shape) {
    s->spec.kind = kind;
    Str value;
    if (node_attr(node, "use_node_name_sharing", &value)) attr_bool(value, &s->node_name_shared);
    Error *err = node_attr_type(node, "key_dtype", &s->spec.key_type);
    if (!err) err = node_attr_type(node, "value_dtype", &s->spec.value_type);
    if (!err && has_shape) {
        err = node_attr_shape(node, "value_shape", &s->spec.value_shape);
        if (!err && s->spec.value_shape.rank < 0) err = error_invalid("value_shape must be known");
        if (!err) err = shape_check(&s->spec.value_shape);
    }
    if (!err && s->spec.key_type != DT_STRING && !dtype_is_plain(s->spec.key_type))
        err = error_unimplemented("Table with keys of type %s", dtype_name(s->spec.key_type));
    return err;
}

/* The pairs that TensorFlow has: programs count on the others being refused. */
static bool is_fixed_pair(DataType key, DataType value) {
    bool number = value == DT_FLOAT || value == DT_DOUBLE || value == DT_INT32;
    return (key == DT_STRING && (number || value == DT_BOOL || value == DT_INT64 || value == DT_STRING)) ||
           (key == DT_INT64 && (number || value == DT_INT64 || value == DT_STRING)) || (key == DT_INT32 && (number || value == DT_STRING));
}

static Error *init_fixed(const Node *node, void *state) {
    Error *err = make_init(node, state, LOOKUP_FIXED, false);
    const LookupSpec *spec = &((MakeState *)state)->spec;
    if (!err && !is_fixed_pair(spec->key_type, spec->value_type))
        err = error_invalid("No OpKernel was registered to support Op '%.*s' used by {{node %.*s}} with these attrs: [key_dtype=%s, value_dtype=%s]",
                            STR_ARG(node->op), STR_ARG(node->name), dtype_name(spec->key_type), dtype_name(spec->value_type));
    return err;
}
static Error *init_mutable(const Node *node, void *state) {
    return make_init(node, state, LOOKUP_MUTABLE, false);
}
static Error *init_of_tensors(const Node *node, void *state) {
    Error *err = make_init(node, state, LOOKUP_MUTABLE, true);
    const Shape *shape = &((MakeState *)state)->spec.value_shape;
    if (!err && shape->rank != 1) err = error_invalid("Default value must be a vector, got shape %s", shape_text(shape).text);
    return err;
}
static Error *init_dense(const Node *node, void *state) {
    int64_t buckets = 0;
    Error *err = make_init(node, state, LOOKUP_DENSE, true);
    if (!err) err = node_attr_int(node, "initial_num_buckets", &buckets);
    if (!err && (buckets < 4 || (buckets & (buckets - 1))))
        err = error_invalid("Number of buckets must be at least 4 and a power of 2, got: %lld", (long long)buckets);
    float max_load = 0;
    if (!err) err = node_attr_float(node, "max_load_factor", &max_load);
    if (!err && !(max_load > 0 && max_load < 1)) err = error_invalid("max_load_factor must be between 0 and 1, got: %g", (double)max_load);
    LookupSpec *spec = &((MakeState *)state)->spec;
    if (!err && spec->value_shape.rank > 1) err = error_invalid("Empty value must be a scalar or a vector, got shape %s", shape_text(&spec->value_shape).text);
    spec->bucket_count = buckets;
    spec->max_load = max_load;
    return err;
}

static Error *create(KernelContext *k, Str name, Resource **out) {
    LookupSpec spec = ((MakeState *)k->state)->spec;
    if (spec.kind == LOOKUP_DENSE && k->input_count < 2) return error_invalid("MutableDenseHashTable has no deleted_key; MutableDenseHashTableV2 has one");
    if (spec.kind == LOOKUP_DENSE) {
        spec.empty_key = k->in[0];
        spec.deleted_key = k->in[1];
        spec.key_shape = k->in[0]->shape;
        if (!shape_eq(&k->in[0]->shape, &k->in[1]->shape))
            return error_invalid("Empty and deleted keys must have same shape, got shapes: %s and %s", shape_text(&k->in[0]->shape).text,
                                 shape_text(&k->in[1]->shape).text);
        if (spec.key_shape.rank > 1) return error_invalid("Empty key must be a scalar or a vector");
        if (spec.key_type == DT_STRING && k->in[0]->count != 1) return error_invalid("Keys of strings must be scalars");
        bool same = spec.key_type == DT_STRING ? str_eq(tstring_str(tensor_str(k->in[0])), tstring_str(tensor_str(k->in[1])))
                                               : memcmp(k->in[0]->data, k->in[1]->data, tensor_bytes(k->in[0])) == 0;
        if (same) return error_invalid("Empty and deleted keys cannot be equal");
    }
    *out = (Resource *)lookup_table_new(name, &spec);
    return NULL;
}

static Error *run_make(KernelContext *k) {
    const MakeState *s = k->state;
    Resource *r = NULL;
    Error *err = kernel_own_resource(k, &lookup_table_type, s->node_name_shared, create, &r);
    if (!err) err = lookup_check_types((LookupTable *)r, s->spec.key_type, s->spec.value_type);
    resource_unref(r);
    return err;
}

static void release(void *table) {
    resource_unref(table);
}

/* Without a name: it goes with its last handle. */
static Error *run_anonymous(KernelContext *k) {
    Resource *r = NULL;
    Error *err = create(k, k->node->name, &r);
    if (err) return err;
    Tensor *t = kernel_make_handle(k, STR(""), k->node->name, &lookup_table_type);
    if (!t) {
        resource_unref(r);
        return NULL;
    }
    tensor_handles(t)[0]->direct = r;
    tensor_handles(t)[0]->release_direct = release;
    kernel_set_output(k, 0, t);
    return NULL;
}

/* ---- Using tables ---- */

static Error *find_table(KernelContext *k, LookupTable **out) {
    Resource *r;
    Error *err = kernel_resource(k, 0, &lookup_table_type, &r);
    if (!err) *out = (LookupTable *)r;
    return err;
}

/* Whether keys and values, given or asked for, are of the table's types. */
static Error *check_signature(KernelContext *k, const LookupTable *t) {
    DataType key = lookup_key_type(t), value = lookup_value_type(t);
    const Node *n = k->node;
    bool values = n->input_count == 3, found = n->output_count == 1;
    if (k->in[1]->dtype == key && (!values || k->in[2]->dtype == value) && (!found || kernel_output_type(k, 0) == value)) return NULL;
    const char *handle = dtype_name(n->input_types[0]), *comma = values ? ", " : "";
    return error_invalid("Signature mismatch, have: %s, %s%s%s->%s expected: %s, %s%s%s->%s", handle, dtype_name(k->in[1]->dtype), comma,
                         values ? dtype_name(k->in[2]->dtype) : "", found ? dtype_name(kernel_output_type(k, 0)) : "", handle, dtype_name(key), comma,
                         values ? dtype_name(value) : "", found ? dtype_name(value) : "");
}

static Error *run_find(KernelContext *k) {
    LookupTable *t;
    Tensor *values;
    Error *err = find_table(k, &t);
    if (err) return err;
    err = check_signature(k, t);
    if (!err) err = lookup_find(t, k->in[1], k->in[2], &values);
    if (!err) kernel_set_output(k, 0, values);
    resource_unref((Resource *)t);
    return err;
}

typedef Error *PairsFn(LookupTable *t, const Tensor *keys, const Tensor *values);

static Error *with_pairs(KernelContext *k, PairsFn *fn) {
    LookupTable *t;
    Error *err = find_table(k, &t);
    if (err) return err;
    err = check_signature(k, t);
    if (!err) err = fn(t, k->in[1], k->in[2]);
    resource_unref((Resource *)t);
    return err;
}

static Error *run_insert(KernelContext *k) {
    return with_pairs(k, lookup_insert);
}
static Error *run_import(KernelContext *k) {
    return with_pairs(k, lookup_import);
}

/* Finds a table that takes its content once. */
static Error *find_fixed(KernelContext *k, LookupTable **out) {
    Error *err = find_table(k, out);
    if (err || lookup_kind(*out) == LOOKUP_FIXED) return err;
    resource_unref((Resource *)*out);
    if (k->in[0]->dtype == DT_RESOURCE) {
        const ResourceHandle *h = tensor_handles(k->in[0])[0];
        return error_invalid("Table %s %s is not initializable", h->container, h->name);
    }
    const TString *parts = tensor_str(k->in[0]);
    return error_invalid("Table %.*s %.*s is not initializable", STR_ARG(tstring_str(&parts[0])), STR_ARG(tstring_str(&parts[1])));
}

static Error *check_vectors(const Tensor *keys, const Tensor *values) {
    if (keys->shape.rank != 1) return error_invalid("Keys must be a vector, but received shape%s", shape_text(&keys->shape).text);
    if (values->shape.rank != 1) return error_invalid("Values must be a vector, but received shape%s", shape_text(&values->shape).text);
    if (keys->count == values->count) return NULL;
    return error_invalid("Keys and values must have the same size %lld vs %lld", (long long)keys->count, (long long)values->count);
}

static Error *run_initialise(KernelContext *k) {
    LookupTable *t;
    Error *err = find_fixed(k, &t);
    if (err) return err;
    err = check_signature(k, t);
    if (!err) err = check_vectors(k->in[1], k->in[2]);
    if (!err) err = lookup_import(t, k->in[1], k->in[2]);
    resource_unref((Resource *)t);
    return err;
}

static Error *run_remove(KernelContext *k) {
    LookupTable *t;
    Error *err = find_table(k, &t);
    if (err) return err;
    err = check_signature(k, t);
    if (!err) err = lookup_remove(t, k->in[1]);
    resource_unref((Resource *)t);
    return err;
}

static Error *run_export(KernelContext *k) {
    LookupTable *t;
    Tensor *keys, *values;
    Error *err = find_table(k, &t);
    if (err) return err;
    err = lookup_check_types(t, kernel_output_type(k, 0), kernel_output_type(k, 1));
    if (!err) err = lookup_export(t, &keys, &values);
    if (!err) {
        kernel_set_output(k, 0, keys);
        kernel_set_output(k, 1, values);
    }
    resource_unref((Resource *)t);
    return err;
}

static Error *run_size(KernelContext *k) {
    LookupTable *t;
    Error *err = find_table(k, &t);
    if (err) return err;
    kernel_set_output(k, 0, tensor_scalar_i64(lookup_size(t)));
    resource_unref((Resource *)t);
    return NULL;
}

/* ---- From text files ---- */

enum { WHOLE_LINE = -2, LINE_NUMBER = -1 };

typedef struct FileState {
    int64_t key_index, value_index, vocab_size, offset;
    char delimiter;
} FileState;

static Error *init_file(const Node *node, void *state) {
    FileState *s = state;
    Str delimiter;
    Error *err = node_attr_int(node, "key_index", &s->key_index);
    if (!err) err = node_attr_int(node, "value_index", &s->value_index);
    if (!err) err = node_attr_int(node, "vocab_size", &s->vocab_size);
    if (!err) err = node_attr_int(node, "offset", &s->offset);
    if (!err) err = node_attr_string(node, "delimiter", &delimiter);
    if (!err && delimiter.len != 1) err = error_invalid("delimiter should be only 1 char");
    if (!err) s->delimiter = delimiter.ptr[0];
    return err;
}

/* One field of a line into element i. */
static Error *set_field(Tensor *t, int64_t i, int64_t index, Str line, int64_t number, char delimiter,
                        const char *path) {
    Str field = line, rest = line;
    if (index == LINE_NUMBER) {
        tensor_i64(t)[i] = number;
        return NULL;
    }
    for (int64_t c = 0; index != WHOLE_LINE && c <= index; c++) {
        if (c && !rest.len && rest.ptr == line.ptr + line.len && field.ptr + field.len == line.ptr + line.len)
            return error_invalid("Invalid number of columns in %s line %lld (%.*s) : expected at least %lld got %lld",
                                 path, (long long)number, STR_ARG(line), (long long)index + 1, (long long)c);
        field = str_next(&rest, delimiter);
    }
    if (t->dtype == DT_STRING) {
        tstring_set(&tensor_str(t)[i], field);
        return NULL;
    }
    char *text = str_dup(field), *end = text;
    int64_t integer = 0;
    bool ok = true;
    if (t->dtype == DT_FLOAT)
        tensor_f32(t)[i] = strtof(text, &end);
    else if (t->dtype == DT_DOUBLE)
        tensor_f64(t)[i] = strtod(text, &end);
    else
        ok = str_to_int64(field, &integer), end = text + field.len;
    ok = ok && field.len && *end == 0;
    if (t->dtype == DT_INT64) tensor_i64(t)[i] = integer;
    if (t->dtype == DT_INT32) tensor_i32(t)[i] = (int32_t)integer;
    free(text);
    if (t->dtype != DT_INT64 && t->dtype != DT_INT32 && t->dtype != DT_FLOAT && t->dtype != DT_DOUBLE)
        return error_invalid("Data type %s not supported.", dtype_name(t->dtype));
    return ok ? NULL
              : error_invalid("Field %.*s in line %lld is not a valid %s.", STR_ARG(field), (long long)number, dtype_name(t->dtype));
}

static Error *count_lines(const char *path, int64_t limit, int64_t *count) {
    InputStream *in;
    bool more = true;
    Error *err = input_stream_open(&file_system_local, path, COMPRESSION_NONE, &in);
    if (err) return err;
    int64_t at = 0;
    for (*count = 0; !err && more && (limit < 0 || *count < limit);) {
        StrBuf line = {0};
        err = input_stream_line(in, &line, &more);
        at += (int64_t)line.len + 1;
        if (!err && more && line.len == 0) err = error_invalid("Invalid content in %s: empty line found at position %lld.", path, (long long)at);
        *count += more;
        strbuf_clear(&line);
    }
    if (!err && limit == 0) err = error_new(CODE_OUT_OF_RANGE, "Finished reading 0 of lines from %s", path);
    if (!err && *count == 0 && limit < 0) err = error_new(CODE_OUT_OF_RANGE, "Read less bytes than requested");
    input_stream_close(in);
    return err;
}

static Error *load_file(const FileState *s, const char *path, Tensor *keys, Tensor *values) {
    InputStream *in;
    bool more = true;
    Error *err = input_stream_open(&file_system_local, path, COMPRESSION_NONE, &in);
    if (err) return err;
    for (int64_t i = 0; !err && more && i < keys->count; i++) {
        StrBuf line = {0};
        err = input_stream_line(in, &line, &more);
        if (!err) err = set_field(keys, i, s->key_index, strbuf_str(&line), i + s->offset, s->delimiter, path);
        if (!err) err = set_field(values, i, s->value_index, strbuf_str(&line), i + s->offset, s->delimiter, path);
        strbuf_clear(&line);
    }
    input_stream_close(in);
    return err;
}

static Error *check_line_numbers(const FileState *s, const LookupTable *t) {
    if (s->key_index == LINE_NUMBER && lookup_key_type(t) != DT_INT64)
        return error_invalid("Key index for line number requires table key dtype of int64, got %s", dtype_name(lookup_key_type(t)));
    if (s->value_index == LINE_NUMBER && lookup_value_type(t) != DT_INT64)
        return error_invalid("Value index for line number requires table value dtype of int64, got %s", dtype_name(lookup_value_type(t)));
    return NULL;
}

static Error *run_file(KernelContext *k) {
    const FileState *s = k->state;
    LookupTable *t;
    Tensor *keys = NULL, *values = NULL;
    int64_t count;
    if (k->in[1]->shape.rank != 0) return error_invalid("filename should be a single string, but got %s", shape_text(&k->in[1]->shape).text);
    char *path = str_dup(tstring_str(tensor_str(k->in[1])));
    Error *err = find_fixed(k, &t);
    if (err) {
        free(path);
        return err;
    }
    bool had_content = lookup_is_initialised(t);
    if (!*path) err = error_invalid("filename cannot be empty.");
    if (!err) err = check_line_numbers(s, t);
    if (!err) err = count_lines(path, s->vocab_size, &count);
    if (!err && s->vocab_size >= 0 && count < s->vocab_size)
        err = error_invalid("Invalid vocab_size in %s: expected %lld but got %lld", path, (long long)s->vocab_size,
                            (long long)count);
    Shape shape = shape_vector(err ? 0 : count);
    if (!err) err = tensor_new(lookup_key_type(t), &shape, &keys);
    if (!err) err = tensor_new(lookup_value_type(t), &shape, &values);
    if (!err) err = load_file(s, path, keys, values);
    if (!err) err = lookup_import(t, keys, values);
    if (err && err->code == CODE_FAILED_PRECONDITION && had_content) { /* whatever the file says: the table has been made by another */
        error_free(err);
        err = NULL;
    }
    tensor_unref(keys);
    tensor_unref(values);
    resource_unref((Resource *)t);
    free(path);
    return err;
}

#define MAKE(op_name, init_fn) \
    { op_name, .run = run_make, .state_size = sizeof(MakeState), .init = init_fn, .flags = KERNEL_PER_SESSION }
#define MAKE_ANONYMOUS(op_name, init_fn) \
    { op_name, .run = run_anonymous, .state_size = sizeof(MakeState), .init = init_fn }
#define FILE_INIT(op_name) \
    { op_name, .run = run_file, .state_size = sizeof(FileState), .init = init_file, .flags = KERNEL_EXPENSIVE }

const KernelDef lookup_cpu[] = {
    MAKE("HashTable", init_fixed),
    MAKE("HashTableV2", init_fixed),
    MAKE("MutableHashTable", init_mutable),
    MAKE("MutableHashTableV2", init_mutable),
    MAKE("MutableHashTableOfTensors", init_of_tensors),
    MAKE("MutableHashTableOfTensorsV2", init_of_tensors),
    MAKE("MutableDenseHashTable", init_dense),
    MAKE("MutableDenseHashTableV2", init_dense),
    MAKE_ANONYMOUS("AnonymousHashTable", init_fixed),
    MAKE_ANONYMOUS("AnonymousMutableHashTable", init_mutable),
    MAKE_ANONYMOUS("AnonymousMutableHashTableOfTensors", init_of_tensors),
    MAKE_ANONYMOUS("AnonymousMutableDenseHashTable", init_dense),
    {"LookupTableFind", .run = run_find},
    {"LookupTableFindV2", .run = run_find},
    {"LookupTableInsert", .run = run_insert},
    {"LookupTableInsertV2", .run = run_insert},
    {"LookupTableRemoveV2", .run = run_remove},
    {"LookupTableImport", .run = run_import},
    {"LookupTableImportV2", .run = run_import},
    {"LookupTableExport", .run = run_export},
    {"LookupTableExportV2", .run = run_export},
    {"LookupTableSize", .run = run_size},
    {"LookupTableSizeV2", .run = run_size},
    {"InitializeTable", .run = run_initialise},
    {"InitializeTableV2", .run = run_initialise},
    FILE_INIT("InitializeTableFromTextFile"),
    FILE_INIT("InitializeTableFromTextFileV2"),
    {0},
};
