/* tensor_proto.c: TensorProto by hand: one copy from the wire to the tensor, none where only a header is asked for. */
#include "tensor/tensor_proto.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "proto/wire.h"

enum { DTYPE = 1, SHAPE = 2, CONTENT = 4, FLOAT_VAL = 5, DOUBLE_VAL, INT_VAL, STRING_VAL, SCOMPLEX_VAL, INT64_VAL, BOOL_VAL,
       DCOMPLEX_VAL, HALF_VAL, RESOURCE_VAL, VARIANT_VAL, UINT32_VAL, UINT64_VAL, FLOAT8_VAL };

enum { MAX_DEPTH = 64 }; /* of tensors inside variants */

static const VariantDecoder *variant_decoders;
static Error *decode_tensor(Str bytes, int depth, Tensor **out);

void variant_registry_init(const VariantDecoder *rows) {
    variant_decoders = rows;
}

/* Which typed field holds the values of a dtype. */
static uint32_t value_field(DataType t) {
    switch (t) {
        case DT_FLOAT: return FLOAT_VAL;
        case DT_DOUBLE: return DOUBLE_VAL;
        case DT_STRING: return STRING_VAL;
        case DT_COMPLEX64: return SCOMPLEX_VAL;
        case DT_COMPLEX128: return DCOMPLEX_VAL;
        case DT_INT64: return INT64_VAL;
        case DT_BOOL: return BOOL_VAL;
        case DT_HALF:
        case DT_BFLOAT16: return HALF_VAL;
        case DT_RESOURCE: return RESOURCE_VAL;
        case DT_VARIANT: return VARIANT_VAL;
        case DT_UINT32: return UINT32_VAL;
        case DT_UINT64: return UINT64_VAL;
        case DT_FLOAT8_E5M2:
        case DT_FLOAT8_E4M3FN:
        case DT_FLOAT8_E4M3FNUZ:
        case DT_FLOAT8_E4M3B11FNUZ:
        case DT_FLOAT8_E5M2FNUZ:
        case DT_FLOAT4_E2M1FN: return FLOAT8_VAL;
        default: return INT_VAL;
    }
}

/* ---- Elements that are not plain ---- */

static Error *decode_handle(Str bytes, ResourceHandle **out) {
    ResourceHandle *h = resource_handle_new(STR(""), STR(""), STR(""), STR(""));
    char **texts[] = {NULL, &h->device, &h->container, &h->name, NULL, &h->type_name};
    WireReader r = wire_reader(bytes);
    while (wire_next(&r)) {
        if (r.field < 6 && texts[r.field] && r.type == WIRE_BYTES) {
            free(*texts[r.field]);
            *texts[r.field] = str_dup(r.bytes);
        } else if (r.field == 4 && r.type == WIRE_VARINT) {
            h->hash_code = r.number;
        } else if (r.field == 6 && r.type == WIRE_BYTES) {
            WireReader d = wire_reader(r.bytes);
            while (wire_next(&d)) {
                if (d.field == 1 && d.type == WIRE_VARINT && dtype_is_valid((int)d.number)) h->dtype = (DataType)d.number;
                if (d.field == 2 && d.type == WIRE_BYTES) error_free(shape_decode(d.bytes, &h->shape));
            }
        }
    }
    if (r.failed) {
        resource_handle_unref(h);
        return error_invalid("Malformed ResourceHandleProto");
    }
    *out = h;
    return NULL;
}

static void encode_handle(const ResourceHandle *h, StrBuf *out) {
    if (!h) return;
    wire_put_bytes(out, 1, str_of(h->device));
    wire_put_bytes(out, 2, str_of(h->container));
    wire_put_bytes(out, 3, str_of(h->name));
    wire_put_uint(out, 4, h->hash_code);
    wire_put_bytes(out, 5, str_of(h->type_name));
    if (h->dtype == DT_INVALID) return;
    StrBuf info = {0}, shape = {0};
    wire_put_uint(&info, 1, (uint64_t)h->dtype);
    shape_encode(&h->shape, &shape);
    wire_put_bytes(&info, 2, strbuf_str(&shape));
    wire_put_bytes(out, 6, strbuf_str(&info));
    strbuf_clear(&shape);
    strbuf_clear(&info);
}

static Error *decode_variant(Str bytes, int depth, Variant *out) {
    Str type_name = {"", 0}, metadata = {"", 0};
    Tensor **tensors = NULL;
    size_t count = 0, capacity = 0;
    Error *err = NULL;
    WireReader r = wire_reader(bytes);
    while (!err && wire_next(&r)) {
        if (r.type != WIRE_BYTES) continue;
        if (r.field == 1) type_name = r.bytes;
        if (r.field == 2) metadata = r.bytes;
        if (r.field != 3) continue;
        tensors = vec_reserve(tensors, &capacity, count + 1, sizeof *tensors);
        err = decode_tensor(r.bytes, depth + 1, &tensors[count]);
        if (!err) count++;
    }
    if (!err && r.failed) err = error_invalid("Malformed VariantTensorDataProto");
    if (!err && type_name.len) {
        const VariantDecoder *d = variant_decoders;
        while (d && d->type_name && !str_is(type_name, d->type_name)) d++;
        if (d && d->type_name)
            err = d->decode(metadata, tensors, (int)count, out);
        else
            err = error_unimplemented("Variant of type %.*s cannot be received", STR_ARG(type_name));
    }
    for (size_t i = 0; i < count; i++) tensor_unref(tensors[i]);
    free(tensors);
    return err;
}

static void encode_variant(const Variant *v, StrBuf *out) {
    if (!v->type || !v->type->encode) return;
    StrBuf metadata = {0}, tensors = {0};
    Error *err = v->type->encode(v->object, &metadata, &tensors);
    wire_put_bytes(out, 1, str_of(v->type->type_name));
    wire_put_bytes(out, 2, strbuf_str(&metadata));
    strbuf_add(out, strbuf_str(&tensors)); /* already fields with number 3 */
    error_free(err);
    strbuf_clear(&metadata);
    strbuf_clear(&tensors);
}

Error *variant_encode(const Variant *v, StrBuf *out) {
    if (v->type && !v->type->encode) return error_unimplemented("A variant of type %s has no serialised form", v->type->type_name);
    encode_variant(v, out);
    return NULL;
}

Error *variant_decode(Str bytes, Variant *out) {
    return decode_variant(bytes, 0, out);
}

static Error *set_element(Tensor *t, int64_t i, Str bytes, int depth) {
    if (t->dtype == DT_STRING) {
        tstring_set(&tensor_str(t)[i], bytes);
        return NULL;
    }
    if (t->dtype == DT_RESOURCE) return decode_handle(bytes, &tensor_handles(t)[i]);
    return decode_variant(bytes, depth, &tensor_variants(t)[i]);
}

static void element_bytes(const Tensor *t, int64_t i, StrBuf *out) {
    if (t->dtype == DT_STRING) strbuf_add(out, tstring_str(&tensor_str(t)[i]));
    if (t->dtype == DT_RESOURCE) encode_handle(tensor_handles(t)[i], out);
    if (t->dtype == DT_VARIANT) encode_variant(&tensor_variants(t)[i], out);
}

/* ---- Decoding ---- */

static Error *decode_content(Tensor *t, Str content, int depth) {
    if (dtype_is_plain(t->dtype)) {
        if (content.len != tensor_bytes(t))
            return error_invalid("Cannot parse tensor from proto: %zu bytes of content for %lld elements of %s", content.len,
                                 (long long)t->count, dtype_name(t->dtype));
        memcpy(t->data, content.ptr, content.len);
        tensor_normalize_bools(t);
        return NULL;
    }
    /* n varint lengths, then all bytes. */
    WireReader lengths = wire_reader(content);
    WireReader bytes = wire_reader(content);
    uint64_t len;
    for (int64_t i = 0; i < t->count; i++)
        if (!wire_varint(&bytes, &len)) return error_invalid("Cannot parse tensor from proto: lengths of %s are cut off", dtype_name(t->dtype));
    for (int64_t i = 0; i < t->count; i++) {
        if (!wire_varint(&lengths, &len) || len > (uint64_t)(bytes.end - bytes.at))
            return error_invalid("Cannot parse tensor from proto: element %lld is cut off", (long long)i);
        Error *err = set_element(t, i, (Str){(const char *)bytes.at, (size_t)len}, depth);
        if (err) return err;
        bytes.at += len;
    }
    return NULL;
}

/* Stores one number of a typed field at position i (of a complex part for complex types). */
static void store_number(DataType dtype, void *data, int64_t i, uint64_t bits) {
    switch (dtype) {
        case DT_FLOAT:
        case DT_COMPLEX64: memcpy((char *)data + i * 4, &bits, 4); break;
        case DT_BOOL: ((bool *)data)[i] = bits != 0; break;
        default:
            switch (dtype_size(dtype)) {
                case 1: memcpy((char *)data + i, &bits, 1); break;
                case 2: memcpy((char *)data + i * 2, &bits, 2); break;
                case 4: memcpy((char *)data + i * 4, &bits, 4); break;
                default: memcpy((char *)data + i * 8, &bits, 8); break;
            }
    }
}

/* Reads the typed field of a plain dtype; `parts` numbers make the tensor (two for each complex element). */
static Error *decode_numbers(Tensor *t, Str proto, int64_t parts, int64_t *found) {
    uint32_t field = value_field(t->dtype);
    int type = field == FLOAT_VAL || field == SCOMPLEX_VAL     ? WIRE_FIXED32
               : field == DOUBLE_VAL || field == DCOMPLEX_VAL ? WIRE_FIXED64
                                                              : WIRE_VARINT;
    int64_t n = 0;
    WireReader r = wire_reader(proto);
    while (wire_next(&r)) {
        if (r.field != field) continue;
        if (field == FLOAT8_VAL && r.type == WIRE_BYTES) {
            for (size_t i = 0; i < r.bytes.len; i++, n++)
                if (n < parts) ((uint8_t *)t->data)[n] = (uint8_t)r.bytes.ptr[i];
        } else if (r.type == type) {
            if (n < parts) store_number(t->dtype, t->data, n, r.number);
            n++;
        } else if (r.type == WIRE_BYTES) {
            WireReader packed = wire_reader(r.bytes);
            while (packed.at < packed.end) {
                uint64_t bits = 0;
                size_t size = type == WIRE_FIXED32 ? 4 : 8;
                if (type == WIRE_VARINT) {
                    if (!wire_varint(&packed, &bits)) return error_invalid("Cannot parse tensor from proto: malformed values");
                } else {
                    if ((size_t)(packed.end - packed.at) < size) return error_invalid("Cannot parse tensor from proto: malformed values");
                    memcpy(&bits, packed.at, size);
                    packed.at += size;
                }
                if (n < parts) store_number(t->dtype, t->data, n, bits);
                n++;
            }
        }
    }
    *found = n;
    return NULL;
}

static Error *decode_plain(Tensor *t, Str proto) {
    bool is_complex = t->dtype == DT_COMPLEX64 || t->dtype == DT_COMPLEX128;
    int64_t found = 0;
    Error *err = decode_numbers(t, proto, t->count * (is_complex ? 2 : 1), &found);
    if (err) return err;
    if (is_complex) found /= 2;
    size_t size = dtype_size(t->dtype);
    if (found == 0) memset(t->data, 0, tensor_bytes(t));
    for (int64_t i = found; found > 0 && i < t->count; i++)
        memcpy((char *)t->data + (size_t)i * size, (char *)t->data + (size_t)(found - 1) * size, size);
    return NULL;
}

static Error *decode_elements(Tensor *t, Str proto, int depth) {
    int64_t n = 0;
    WireReader r = wire_reader(proto);
    while (wire_next(&r)) {
        if (r.field != value_field(t->dtype) || r.type != WIRE_BYTES) continue;
        if (n < t->count) {
            Error *err = set_element(t, n, r.bytes, depth);
            if (err) return err;
        }
        n++;
    }
    for (int64_t i = n; n > 0 && i < t->count; i++)
        elements_copy(t->dtype, (char *)t->data + (size_t)i * dtype_size(t->dtype),
                      (char *)t->data + (size_t)(n - 1) * dtype_size(t->dtype), 1);
    return NULL;
}

static Error *read_header(Str bytes, DataType *dtype, PartialShape *shape, Str *content) {
    Error *err = NULL;
    *dtype = DT_INVALID;
    *shape = SHAPE_SCALAR;
    *content = (Str){NULL, 0};
    WireReader r = wire_reader(bytes);
    while (!err && wire_next(&r)) {
        if (r.field == DTYPE && r.type == WIRE_VARINT) *dtype = r.number < DT_COUNT ? (DataType)r.number : DT_INVALID;
        if (r.field == SHAPE && r.type == WIRE_BYTES) err = shape_decode(r.bytes, shape);
        if (r.field == CONTENT && r.type == WIRE_BYTES) *content = r.bytes;
    }
    if (err) return err;
    if (r.failed) return error_invalid("Cannot parse tensor from proto: malformed TensorProto");
    if (*dtype == DT_INVALID) return error_invalid("Cannot parse tensor from proto: no valid dtype");
    if (shape->rank < 0) return error_invalid("Cannot parse tensor from proto: unknown rank");
    return NULL;
}

static Error *decode_tensor(Str bytes, int depth, Tensor **out) {
    if (depth > MAX_DEPTH) return error_invalid("Cannot parse tensor from proto: variants are nested more than %d deep", MAX_DEPTH);
    DataType dtype;
    PartialShape shape;
    Str content;
    Tensor *t = NULL;
    Error *err = read_header(bytes, &dtype, &shape, &content);
    if (!err) err = tensor_new(dtype, &shape, &t);
    if (!err && content.len)
        err = decode_content(t, content, depth);
    else if (!err && dtype_is_plain(dtype))
        err = decode_plain(t, bytes);
    else if (!err)
        err = decode_elements(t, bytes, depth);
    if (err)
        tensor_unref(t);
    else
        *out = t;
    return err;
}

Error *tensor_proto_decode(Str bytes, Tensor **out) {
    return decode_tensor(bytes, 0, out);
}

enum { IN_PLACE_BYTES = 16384 /* less is cheaper to copy than to keep a message for */ };

Error *tensor_proto_decode_in_place(Str bytes, void (*release)(void *), void *owner, Tensor **out, bool *taken) {
    DataType dtype;
    PartialShape shape;
    Str content;
    *taken = false;
    Error *err = read_header(bytes, &dtype, &shape, &content);
    if (err) return err;
    int64_t size = 0;
    bool fits = content.len >= IN_PLACE_BYTES && (uintptr_t)content.ptr % 64 == 0 && dtype_is_plain(dtype) && !dtype_is_ref(dtype);
    if (fits) err = shape_check(&shape);
    if (err) return err;
    fits = fits && !__builtin_mul_overflow(shape_count(&shape), (int64_t)dtype_size(dtype), &size) && (uint64_t)size == content.len;
    if (!fits) return tensor_proto_decode(bytes, out);
    *out = tensor_wrap(dtype, &shape, (void *)content.ptr, release, owner);
    tensor_normalize_bools(*out);
    *taken = true;
    return NULL;
}

size_t tensor_proto_content_at(Str head) {
    WireReader r = wire_reader(head);
    uint64_t tag = 0, len = 0;
    while (r.at < r.end && wire_varint(&r, &tag)) {
        bool ok = wire_varint(&r, &len); /* the only types in front are numbers and bytes */
        if (!ok || ((tag & 7) != WIRE_VARINT && (tag & 7) != WIRE_BYTES)) return 0;
        if (tag == (CONTENT << 3 | WIRE_BYTES)) return (size_t)(r.at - (const uint8_t *)head.ptr);
        if ((tag & 7) == WIRE_VARINT) continue;
        if (len > (uint64_t)(r.end - r.at)) return 0;
        r.at += len;
    }
    return 0;
}

/* ---- Encoding ---- */

static void put_type_and_shape(const Tensor *t, StrBuf *out) {
    wire_put_uint(out, DTYPE, (uint64_t)t->dtype);
    StrBuf shape = {0};
    shape_encode(&t->shape, &shape);
    wire_put_bytes(out, SHAPE, strbuf_str(&shape));
    strbuf_clear(&shape);
}

void tensor_proto_encode_header(const Tensor *t, StrBuf *out) {
    put_type_and_shape(t, out);
    if (tensor_bytes(t) == 0) return;
    wire_put_tag(out, CONTENT, WIRE_BYTES);
    wire_put_varint(out, tensor_bytes(t));
}

void tensor_proto_encode(const Tensor *t, StrBuf *out) {
    if (dtype_is_plain(t->dtype)) {
        tensor_proto_encode_header(t, out);
        strbuf_add(out, (Str){t->data, tensor_bytes(t)});
        return;
    }
    put_type_and_shape(t, out);
    if (t->count == 0) return;
    StrBuf lengths = {0}, bytes = {0};
    for (int64_t i = 0; i < t->count; i++) {
        size_t before = bytes.len;
        element_bytes(t, i, &bytes);
        wire_put_varint(&lengths, bytes.len - before);
    }
    wire_put_tag(out, CONTENT, WIRE_BYTES);
    wire_put_varint(out, lengths.len + bytes.len);
    strbuf_add(out, strbuf_str(&lengths));
    strbuf_add(out, strbuf_str(&bytes));
    strbuf_clear(&lengths);
    strbuf_clear(&bytes);
}

void tensor_proto_encode_readable(const Tensor *t, StrBuf *out) {
    if (t->dtype != DT_STRING) {
        tensor_proto_encode(t, out);
        return;
    }
    put_type_and_shape(t, out);
    for (int64_t i = 0; i < t->count; i++) wire_put_bytes(out, STRING_VAL, tstring_str(&tensor_str(t)[i]));
}
