/* decode.c: DecodeRaw, DecodePaddedRaw, DecodeCSV, ParseTensor, SerializeTensor, DecodeCompressed, DecodeJSONExample. */
#include <stdlib.h>
#include <string.h>

#include "base/base64.h"
#include "base/decimal.h"
#include "io/csv.h"
#include "io/example_json.h"
#include "io/record.h"
#include "ops/csv_field.h"
#include "ops/elements.h"
#include "ops/op_list.h"
#include "tensor/tensor_proto.h"

const OpDef decode_ops[] = {
    {"DecodeRaw", "bytes: string -> output: out_type",
     "out_type: {half, float, double, int32, uint16, uint8, int16, int8, int64, complex64, complex128, bool, "
     "bfloat16}; little_endian: bool = true",
     0},
    {"DecodePaddedRaw", "input_bytes: string, fixed_length: int32 -> output: out_type",
     "out_type: {half, float, double, int32, uint16, uint8, int16, int8, int64, bfloat16}; little_endian: bool = "
     "true",
     0},
    {"DecodeCSV", "records: string, record_defaults: OUT_TYPE -> output: OUT_TYPE",
     "OUT_TYPE: list({float, double, int32, int64, string}) >= 1; field_delim: string = ','; use_quote_delim: bool "
     "= true; na_value: string = ''; select_cols: list(int) = []",
     0},
    {"ParseTensor", "serialized: string -> output: out_type", "out_type: type", 0},
    {"SerializeTensor", "tensor: T -> serialized: string", "T: type", 0},
    {"DecodeCompressed", "bytes: string -> output: string", "compression_type: string = ''", 0},
    {"DecodeJSONExample", "json_examples: string -> binary_examples: string", "", 0},
    {0},
};

/* ---- Raw bytes ---- */

static Error *init_raw(const Node *node, void *state) {
    return node_attr_bool(node, "little_endian", state);
}

/* A complex number is two numbers. */
static size_t number_size(DataType t) {
    return t == DT_COMPLEX64 || t == DT_COMPLEX128 ? dtype_size(t) / 2 : dtype_size(t);
}

static void swap_bytes(Tensor *t) {
    size_t size = number_size(t->dtype);
    uint8_t *p = t->data;
    for (size_t n = tensor_bytes(t) / size; n && size > 1; n--, p += size)
        for (size_t i = 0; i < size / 2; i++) {
            uint8_t b = p[i];
            p[i] = p[size - 1 - i];
            p[size - 1 - i] = b;
        }
}

static Error *raw_output(KernelContext *k, size_t bytes, Tensor **out) {
    Shape shape = k->in[0]->shape;
    if (shape.rank == SHAPE_MAX_RANK) return error_invalid("Input has too many dimensions");
    shape_insert_dim(&shape, shape.rank, (int64_t)(bytes / dtype_size(kernel_output_type(k, 0))));
    *out = kernel_output(k, 0, &shape);
    return NULL;
}

static Error *run_raw(KernelContext *k) {
    const Tensor *in = k->in[0];
    size_t size = dtype_size(kernel_output_type(k, 0)), bytes = in->count ? tstring_str(tensor_str(in)).len : 0;
    for (int64_t i = 1; i < in->count; i++)
        if (tstring_str(&tensor_str(in)[i]).len != bytes)
            return error_invalid(
                "DecodeRaw requires input strings to all be the same size, but element %lld has size %zu != %zu",
                (long long)i, bytes, tstring_str(&tensor_str(in)[i]).len); /* in TensorFlow's order */
    if (bytes % size)
        return error_invalid("Input to DecodeRaw has length %zu that is not a multiple of %zu, the size of %s", bytes,
                             size, dtype_name(kernel_output_type(k, 0)));
    Tensor *out;
    Error *err = raw_output(k, bytes, &out);
    if (err || !out) return err;
    for (int64_t i = 0; i < in->count; i++)
        if (bytes) memcpy((char *)out->data + (size_t)i * bytes, tstring_str(&tensor_str(in)[i]).ptr, bytes);
    if (!*(bool *)k->state) swap_bytes(out);
    tensor_normalize_bools(out);
    return NULL;
}

static Error *run_padded_raw(KernelContext *k) {
    const Tensor *in = k->in[0];
    int64_t length;
    size_t size = dtype_size(kernel_output_type(k, 0));
    if (k->in[1]->shape.rank != 0) return error_invalid("k must be scalar, got shape %s", shape_text(&k->in[1]->shape).text);
    length = tensor_i32(k->in[1])[0];
    if (length <= 0) return error_invalid("fixed_length (%lld) must be greater than zero.", (long long)length);
    if ((size_t)length % size)
        return error_invalid("fixed_length (%lld) must be a multiple of the size of out_type (%zu)", (long long)length, size);
    Tensor *out = NULL;
    Error *err = raw_output(k, (size_t)length, &out);
    if (err || !out) return err;
    memset(out->data, 0, tensor_bytes(out));
    for (int64_t i = 0; i < in->count; i++) {
        Str s = tstring_str(&tensor_str(in)[i]);
        memcpy((char *)out->data + (size_t)i * (size_t)length, s.ptr, s.len < (size_t)length ? s.len : (size_t)length);
    }
    if (!*(bool *)k->state) swap_bytes(out);
    tensor_normalize_bools(out);
    return NULL;
}

/* ---- CSV ---- */

typedef struct CsvState {
    char delimiter;
    bool quotes;
    char *na_value;
    int64_t *columns; /* to take, increasing; none: all */
    int column_count;
} CsvState;

static Error *init_csv(const Node *node, void *state) {
    CsvState *s = state;
    Str delimiter, na;
    Error *err = node_attr_string(node, "field_delim", &delimiter);
    if (!err) err = node_attr_bool(node, "use_quote_delim", &s->quotes);
    if (!err) err = node_attr_string(node, "na_value", &na);
    if (!err) s->na_value = str_dup(na);
    if (!err) err = node_attr_ints(node, "select_cols", &s->columns, &s->column_count);
    if (!err && delimiter.len != 1) err = error_invalid("field_delim should be only 1 char");
    if (err) return err;
    s->delimiter = delimiter.ptr[0];
    if (s->column_count && s->column_count != node->output_count)
        return error_invalid("select_cols should match output size");
    for (int i = 0; i < s->column_count; i++)
        if (i && s->columns[i] <= s->columns[i - 1])
            return error_invalid("select_cols should be strictly increasing indices");
    if (s->column_count && s->columns[0] < 0) return error_invalid("select_cols should be non-negative indices");
    return NULL;
}

static void clear_csv(void *state) {
    CsvState *s = state;
    free(s->na_value);
    free(s->columns);
}

bool csv_field_number(Str field, Tensor *t, int64_t i) {
    if (t->dtype == DT_FLOAT && decimal_to_float(str_trim(field), &tensor_f32(t)[i])) return true;
    if (t->dtype == DT_DOUBLE && decimal_to_double(str_trim(field), &tensor_f64(t)[i])) return true;
    char *text = str_dup(str_trim(field)), *end = text;
    int64_t integer = 0;
    bool ok = *text != 0;
    switch (t->dtype) {
        case DT_FLOAT:
            tensor_f32(t)[i] = strtof(text, &end);
            break;
        case DT_DOUBLE:
            tensor_f64(t)[i] = strtod(text, &end);
            break;
        default:
            ok = ok && str_to_int64(str_trim(field), &integer);
            end = text + strlen(text);
    }
    ok = ok && *end == 0;
    if (t->dtype == DT_INT64) tensor_i64(t)[i] = integer;
    if (t->dtype == DT_INT32) {
        ok = ok && integer >= INT32_MIN && integer <= INT32_MAX;
        tensor_i32(t)[i] = (int32_t)integer;
    }
    free(text);
    return ok;
}

static Error *set_field(KernelContext *k, int f, int64_t record, Str field, const char *na, Tensor *out) {
    const Tensor *fallback = k->in[1 + f];
    if (!field.len || str_is(field, na)) {
        if (!fallback->count)
            return error_invalid("Field %d is required but missing in record %lld!", f, (long long)record);
        elements_copy(out->dtype, (char *)out->data + (size_t)record * dtype_size(out->dtype), fallback->data, 1);
        return NULL;
    }
    if (out->dtype == DT_STRING) {
        tstring_set(&tensor_str(out)[record], field);
        return NULL;
    }
    if (csv_field_number(field, out, record)) return NULL;
    return error_invalid("Field %d in record %lld is not a valid %s: %.*s", f, (long long)record,
                         dtype_name(out->dtype), STR_ARG(field));
}

static Error *set_record(KernelContext *k, int64_t record, const CsvFields *fields) {
    const CsvState *s = k->state;
    int64_t have = (int64_t)fields->count, selected = 0;
    while (selected < s->column_count && s->columns[selected] < have) selected++;
    if (s->column_count) have = selected;
    if (have != k->output_count)
        return error_invalid("Expect %d fields but have %lld in record %lld", k->output_count, (long long)have,
                             (long long)record);
    Error *err = NULL;
    for (int f = 0; !err && f < k->output_count; f++)
        err = set_field(k, f, record, fields->items[s->column_count ? s->columns[f] : f], s->na_value, k->out[f]);
    return err;
}

static Error *run_csv(KernelContext *k) {
    const CsvState *s = k->state;
    for (int f = 0; f < k->output_count; f++) {
        if (k->in[1 + f]->shape.rank > 1) return error_invalid("Each record default should be at most rank 1");
        if (k->in[1 + f]->count > 1)
            return error_invalid("There should only be 1 default per field but field %d has %lld", f,
                                 (long long)k->in[1 + f]->count);
        if (!kernel_output(k, f, &k->in[0]->shape)) return NULL;
    }
    CsvFields fields = {0};
    Error *err = NULL;
    for (int64_t i = 0; !err && i < k->in[0]->count; i++) {
        err = csv_split(tstring_str(&tensor_str(k->in[0])[i]), s->delimiter, s->quotes, &fields);
        if (!err) err = set_record(k, i, &fields);
    }
    csv_fields_clear(&fields);
    return err;
}

/* ---- TensorProto ---- */

static Error *run_parse_tensor(KernelContext *k) {
    Tensor *t;
    if (k->in[0]->shape.rank != 0) {
        char *text = shape_str(&k->in[0]->shape);
        Error *err = error_invalid("Expected `serialized` to be a scalar, got shape: %s", text);
        free(text);
        return err;
    }
    Error *err = tensor_proto_decode(tstring_str(tensor_str(k->in[0])), &t);
    if (err) {
        Str bytes = tstring_str(tensor_str(k->in[0]));
        char *text = base64_encode(bytes);
        error_free(err);
        err = error_invalid("Could not parse `serialized` as TensorProto, base64: %s%s", text, &"=="[bytes.len % 3 == 0 ? 2 : bytes.len % 3 - 1]);
        free(text);
        return err;
    }
    if (t->dtype != kernel_output_type(k, 0)) {
        err = error_invalid("Type mismatch between parsed tensor (%s) and dtype (%s)", dtype_name(t->dtype),
                            dtype_name(kernel_output_type(k, 0)));
        tensor_unref(t);
        return err;
    }
    kernel_set_output(k, 0, t);
    return NULL;
}

static Error *run_serialize_tensor(KernelContext *k) {
    StrBuf b = {0};
    tensor_proto_encode_readable(k->in[0], &b);
    size_t len = b.len;
    Tensor *out = kernel_output(k, 0, &SHAPE_SCALAR);
    if (out)
        tstring_take(tensor_str(out), strbuf_detach(&b), len);
    else
        strbuf_clear(&b);
    return NULL;
}

/* ---- Compressed bytes ---- */

static Error *init_compressed(const Node *node, void *state) {
    Str name;
    Error *err = node_attr_string(node, "compression_type", &name);
    if (err) return err;
    err = compression_from_name(name, state);
    if (err && !str_is(name, "ZSTD")) {
        error_free(err);
        return error_invalid("Only ZLIB, ZSTD, GZIP or NONE are supported compressions");
    }
    return err;
}

static Error *run_compressed(KernelContext *k) {
    Compression compression = *(Compression *)k->state;
    Tensor *out = kernel_output(k, 0, &k->in[0]->shape);
    for (int64_t i = 0; out && i < out->count; i++) {
        Str s = tstring_str(&tensor_str(k->in[0])[i]);
        char *data;
        size_t len;
        if (compression == COMPRESSION_NONE) {
            tstring_set(&tensor_str(out)[i], s);
            continue;
        }
        Error *err = decompress(s, compression, &data, &len);
        if (err) return err;
        tstring_take(&tensor_str(out)[i], data, len);
    }
    return NULL;
}

/* ---- Examples as JSON ---- */

static Error *run_json_example(KernelContext *k) {
    Tensor *out = kernel_output(k, 0, &k->in[0]->shape);
    Error *err = NULL;
    for (int64_t i = 0; out && !err && i < out->count; i++) {
        StrBuf example = {0};
        err = error_wrap(example_from_json(tstring_str(&tensor_str(k->in[0])[i]), &example), "Error while parsing JSON");
        size_t len = example.len;
        if (err) strbuf_clear(&example);
        else tstring_take(&tensor_str(out)[i], strbuf_detach(&example), len);
    }
    return err;
}

const KernelDef decode_cpu[] = {
    {"DecodeRaw", .run = run_raw, .state_size = sizeof(bool), .init = init_raw},
    {"DecodePaddedRaw", .run = run_padded_raw, .state_size = sizeof(bool), .init = init_raw},
    {"DecodeCSV", .run = run_csv, .state_size = sizeof(CsvState), .init = init_csv, .clear = clear_csv},
    {"ParseTensor", .run = run_parse_tensor},
    {"SerializeTensor", .run = run_serialize_tensor},
    {"DecodeJSONExample", .run = run_json_example},
    {"DecodeCompressed", .run = run_compressed, .state_size = sizeof(Compression), .init = init_compressed},
    {0},
};
