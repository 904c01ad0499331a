/* compressed_element.c: CompressElement, UncompressElement.

   A compressed element is the message CompressedElement: the bytes of all components one after the other, compressed by
   snappy as one block, and for each component its type, its shape and the lengths of its parts. A part is all of a
   plain tensor, one string of a tensor of strings, or a TensorProto of anything else. */
#include "ops/dataset/compressed_element.h"

#include <snappy-c.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "ops/dataset/dataset.h"
#include "ops/op_list.h"
#include "proto/wire.h"

const OpDef dataset_compress_ops[] = {
    {"CompressElement", "components: input_types -> compressed: variant", "input_types: list(type) >= 1", 0},
    {"UncompressElement", "compressed: variant -> components: output_types",
     "output_types: list(type) >= 1; output_shapes: list(shape) >= 1", 0},
    {0},
};

enum { ELEMENT_DATA = 1, ELEMENT_COMPONENT = 2, ELEMENT_VERSION = 3 };
enum { COMPONENT_TYPE = 1, COMPONENT_SHAPE = 2, COMPONENT_BYTES = 4 };
enum { SHAPE_DIM = 2, DIM_SIZE = 1 };
enum { VERSION = 0 };

/* ---- The variant ---- */

typedef struct Compressed {
    RefCount refs;
    char *message;
    size_t len;
} Compressed;

static void ref_compressed(void *object) {
    refcount_inc(&((Compressed *)object)->refs);
}

static void unref_compressed(void *object) {
    Compressed *c = object;
    if (!refcount_dec(&c->refs)) return;
    free(c->message);
    free(c);
}

static Error *encode_compressed(const void *object, StrBuf *metadata, StrBuf *tensors) {
    const Compressed *c = object;
    (void)tensors;
    strbuf_add(metadata, (Str){c->message, c->len});
    return NULL;
}

static const VariantType compressed_type = {.type_name = "tensorflow.data.CompressedElement",
                                            .ref = ref_compressed,
                                            .unref = unref_compressed,
                                            .encode = encode_compressed};

static Compressed *compressed_new(Str message) {
    Compressed *c = xcalloc(1, sizeof *c);
    refcount_init(&c->refs);
    c->message = str_dup(message);
    c->len = message.len;
    return c;
}

static Error *decode_compressed(Str metadata, Tensor **tensors, int tensor_count, Variant *out) {
    (void)tensors;
    (void)tensor_count;
    *out = (Variant){&compressed_type, compressed_new(metadata)};
    return NULL;
}

const VariantDecoder compressed_element_decoder = {"tensorflow.data.CompressedElement", decode_compressed};

/* ---- Compressing ---- */

static void add_lengths(StrBuf *component, const uint64_t *lengths, int64_t count) {
    StrBuf packed = {0};
    for (int64_t i = 0; i < count; i++) wire_put_varint(&packed, lengths[i]);
    if (count) wire_put_bytes(component, COMPONENT_BYTES, strbuf_str(&packed));
    strbuf_clear(&packed);
}

static void add_part(StrBuf *plain, StrBuf *component, Str part) {
    uint64_t len = part.len;
    strbuf_add(plain, part);
    add_lengths(component, &len, 1);
}

static Error *add_strings(const Tensor *t, StrBuf *plain, StrBuf *component) {
    uint64_t *lengths = try_alloc(((size_t)t->count + 1) * sizeof *lengths);
    if (!lengths)
        return error_new(CODE_RESOURCE_EXHAUSTED, "No memory for the lengths of %lld strings", (long long)t->count);
    for (int64_t i = 0; i < t->count; i++) {
        Str s = tstring_str(&tensor_str(t)[i]);
        lengths[i] = s.len;
        strbuf_add(plain, s);
    }
    add_lengths(component, lengths, t->count);
    free(lengths);
    return NULL;
}

static Error *add_component(const Tensor *t, StrBuf *plain, StrBuf *message) {
    StrBuf component = {0}, shape = {0};
    Error *err = NULL;
    wire_put_uint(&component, COMPONENT_TYPE, (uint64_t)t->dtype);
    for (int i = 0; i < t->shape.rank; i++) {
        StrBuf dim = {0};
        if (t->shape.dims[i]) wire_put_uint(&dim, DIM_SIZE, (uint64_t)t->shape.dims[i]);
        wire_put_bytes(&shape, SHAPE_DIM, strbuf_str(&dim));
        strbuf_clear(&dim);
    }
    wire_put_bytes(&component, COMPONENT_SHAPE, strbuf_str(&shape));
    if (dtype_is_plain(t->dtype)) {
        add_part(plain, &component, (Str){t->data, tensor_bytes(t)});
    } else if (t->dtype == DT_STRING) {
        err = add_strings(t, plain, &component);
    } else {
        StrBuf proto = {0};
        tensor_proto_encode(t, &proto);
        add_part(plain, &component, strbuf_str(&proto));
        strbuf_clear(&proto);
    }
    wire_put_bytes(message, ELEMENT_COMPONENT, strbuf_str(&component));
    strbuf_clear(&component);
    strbuf_clear(&shape);
    return err;
}

static Error *add_data(Str plain, StrBuf *message) {
    size_t len = snappy_max_compressed_length(plain.len);
    char *data = plain.len <= UINT32_MAX ? try_alloc(len + 1) : NULL;
    if (plain.len > UINT32_MAX)
        return error_new(CODE_OUT_OF_RANGE, "Encountered dataset element of size %zu, exceeding the 4GB Snappy limit.",
                         plain.len);
    Error *err = NULL;
    if (!data || snappy_compress(plain.ptr, plain.len, data, &len) != SNAPPY_OK)
        err = error_new(CODE_RESOURCE_EXHAUSTED, "An element of %zu bytes could not be compressed", plain.len);
    else
        wire_put_bytes(message, ELEMENT_DATA, (Str){data, len});
    free(data);
    return err;
}

static Error *run_compress(KernelContext *k) {
    StrBuf plain = {0}, message = {0};
    Error *err = NULL;
    for (int i = 0; !err && i < k->input_count; i++) err = add_component(k->in[i], &plain, &message);
    if (!err) err = add_data(strbuf_str(&plain), &message);
    Tensor *t = err ? NULL : kernel_output(k, 0, &SHAPE_SCALAR);
    if (t) {
        Compressed *c = compressed_new(strbuf_str(&message));
        variant_set(tensor_variants(t), (Variant){&compressed_type, c});
        unref_compressed(c);
    }
    strbuf_clear(&plain);
    strbuf_clear(&message);
    return err;
}

/* ---- Uncompressing ---- */

static Error *damaged(const char *what) {
    return error_new(CODE_DATA_LOSS, "The compressed element is damaged: %s", what);
}

static Error *uncompress_data(Str message, char **out, size_t *len) {
    Str data = STR("");
    WireReader r = wire_reader(message);
    while (wire_next(&r)) {
        if (r.field == ELEMENT_DATA && r.type == WIRE_BYTES) data = r.bytes;
        if (r.field == ELEMENT_VERSION && r.type == WIRE_VARINT && r.number != VERSION)
            return error_internal("Unsupported compressed element version: %llu", (unsigned long long)r.number);
    }
    if (r.failed) return damaged("its message");
    /* Snappy cannot shrink more than this: no memory is taken for what cannot be there. */
    if (snappy_uncompressed_length(data.ptr, data.len, len) != SNAPPY_OK || *len / 64 > data.len)
        return error_internal("Could not get snappy uncompressed length. Compressed data size: %zu", data.len);
    *out = try_alloc(*len + 1);
    if (!*out) return error_new(CODE_RESOURCE_EXHAUSTED, "No memory for an element of %zu bytes", *len);
    if (snappy_uncompress(data.ptr, data.len, *out, len) == SNAPPY_OK) return NULL;
    free(*out);
    return error_internal("Failed to perform snappy decompression.");
}

typedef struct Component {
    DataType type;
    Shape shape;
    WireReader lengths; /* packed */
    uint64_t one;       /* the only length, when it is not packed */
    bool is_packed;
} Component;

static Error *read_shape(Str bytes, Shape *out) {
    WireReader r = wire_reader(bytes);
    *out = SHAPE_SCALAR;
    while (wire_next(&r)) {
        if (r.field != SHAPE_DIM || r.type != WIRE_BYTES) continue;
        if (out->rank == SHAPE_MAX_RANK) return damaged("a shape of too many dimensions");
        int64_t size = 0;
        WireReader dim = wire_reader(r.bytes);
        while (wire_next(&dim))
            if (dim.field == DIM_SIZE && dim.type == WIRE_VARINT) size = (int64_t)dim.number;
        out->dims[out->rank++] = size;
    }
    return r.failed ? damaged("a shape") : shape_check(out);
}

static Error *read_component(Str bytes, Component *out) {
    *out = (Component){.shape = SHAPE_SCALAR, .lengths = wire_reader(STR(""))};
    Error *err = NULL;
    WireReader r = wire_reader(bytes);
    while (!err && wire_next(&r)) {
        if (r.field == COMPONENT_TYPE && r.type == WIRE_VARINT && r.number < DT_COUNT) out->type = (DataType)r.number;
        if (r.field == COMPONENT_SHAPE && r.type == WIRE_BYTES) err = read_shape(r.bytes, &out->shape);
        if (r.field == COMPONENT_BYTES && r.type == WIRE_BYTES) {
            out->lengths = wire_reader(r.bytes);
            out->is_packed = true;
        }
        if (r.field == COMPONENT_BYTES && r.type == WIRE_VARINT) out->one = r.number;
    }
    return err ? err : r.failed ? damaged("a component") : NULL;
}

/* The next part of the data, and the data after it. */
static Error *next_part(Component *c, Str *data, Str *part) {
    uint64_t len = c->one;
    if (c->is_packed && !wire_varint(&c->lengths, &len)) return damaged("lengths are missing");
    if (len > data->len) return damaged("it is too short");
    *part = (Str){data->ptr, (size_t)len};
    *data = (Str){data->ptr + len, data->len - (size_t)len};
    return NULL;
}

static Error *read_tensor(Component *c, Str *data, Tensor **out) {
    Str part = STR("");
    Error *err = NULL;
    if (dtype_is_plain(c->type)) {
        err = next_part(c, data, &part);
        int64_t count = shape_count(&c->shape);
        if (!err && (count < 0 || (size_t)count > part.len || (size_t)count * dtype_size(c->type) != part.len))
            err = damaged("a tensor of another size than its shape");
        if (!err) err = tensor_new(c->type, &c->shape, out);
        if (!err && part.len) memcpy((*out)->data, part.ptr, part.len);
        if (!err) tensor_normalize_bools(*out);
        return err;
    }
    if (c->type != DT_STRING) {
        err = next_part(c, data, &part);
        return err ? err : tensor_proto_decode(part, out);
    }
    /* Each string has a length: there are not more than bytes of lengths. */
    if ((uint64_t)shape_count(&c->shape) > (uint64_t)(c->lengths.end - c->lengths.at) && shape_count(&c->shape) != 1)
        return damaged("lengths of strings are missing");
    err = tensor_new(DT_STRING, &c->shape, out);
    for (int64_t i = 0; !err && i < (*out)->count; i++) {
        err = next_part(c, data, &part);
        if (!err) tstring_set(&tensor_str(*out)[i], part);
    }
    return err;
}

static int component_count(Str message) {
    int n = 0;
    WireReader r = wire_reader(message);
    while (wire_next(&r)) n += r.field == ELEMENT_COMPONENT && r.type == WIRE_BYTES;
    return n;
}

static Error *uncompress(KernelContext *k, Str message, Str data) {
    int o = 0;
    Error *err = NULL;
    if (component_count(message) != k->output_count)
        return error_new(CODE_FAILED_PRECONDITION, "Expected %d outputs from uncompress, but got %d", k->output_count,
                         component_count(message));
    WireReader r = wire_reader(message);
    while (!err && wire_next(&r)) {
        if (r.field != ELEMENT_COMPONENT || r.type != WIRE_BYTES) continue;
        Component c;
        Tensor *t = NULL;
        err = read_component(r.bytes, &c);
        if (!err) err = read_tensor(&c, &data, &t);
        if (!err && t->dtype != kernel_output_type(k, o))
            err = error_new(CODE_FAILED_PRECONDITION, "Expected a tensor of type %s but got a tensor of type %s",
                            dtype_name(kernel_output_type(k, o)), dtype_name(t->dtype));
        if (err)
            tensor_unref(t);
        else
            kernel_set_output(k, o++, t);
    }
    return err;
}

static Error *run_uncompress(KernelContext *k) {
    const Tensor *t = k->in[0];
    if (t->shape.rank != 0) return error_invalid("The compressed element must be a scalar");
    const Variant *v = tensor_variants(t);
    if (v->type != &compressed_type) return error_invalid("Input does not contain a compressed element");
    const Compressed *c = v->object;
    Str message = {c->message, c->len};
    char *data = NULL;
    size_t len = 0;
    Error *err = uncompress_data(message, &data, &len);
    if (err) return err;
    err = uncompress(k, message, (Str){data, len});
    free(data);
    return err;
}

const KernelDef dataset_compress_cpu[] = {
    {"CompressElement", .run = run_compress},
    {"UncompressElement", .run = run_uncompress},
    {0},
};
