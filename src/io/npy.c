/* npy.c: the .npy format: magic, version, length of the header, a Python literal
 * {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }, spaces up to a multiple of 64 bytes, the elements. */
#include "io/npy.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

static const char MAGIC[] = "\x93NUMPY";

bool npy_is(Str bytes) {
    return bytes.len >= 10 && memcmp(bytes.ptr, MAGIC, 6) == 0;
}

typedef struct Kind {
    char letter;
    int size;
    DataType dtype;
} Kind;

static const Kind kinds[] = {
    {'f', 4, DT_FLOAT},  {'f', 8, DT_DOUBLE}, {'f', 2, DT_HALF},      {'i', 1, DT_INT8},        {'i', 2, DT_INT16},
    {'i', 4, DT_INT32},  {'i', 8, DT_INT64},  {'u', 1, DT_UINT8},     {'u', 2, DT_UINT16},      {'u', 4, DT_UINT32},
    {'u', 8, DT_UINT64}, {'b', 1, DT_BOOL},   {'c', 8, DT_COMPLEX64}, {'c', 16, DT_COMPLEX128}, {'V', 2, DT_BFLOAT16},
};

typedef struct Header {
    char order, letter; /* of descr: '<', '>', '|' and 'f' */
    int64_t size;
    bool columns_first;
    Shape shape;
} Header;

/* What follows 'name': in the header; NULL when it is not there. */
static const char *value_of(const char *header, const char *name) {
    char *quoted = xasprintf("'%s'", name);
    const char *found = strstr(header, quoted);
    found = found ? strchr(found + strlen(quoted), ':') : NULL;
    free(quoted);
    if (!found) return NULL;
    for (found++; *found == ' '; found++) {
    }
    return found;
}

static bool parse_shape(const char *at, Shape *out) {
    if (*at++ != '(') return false;
    out->rank = 0;
    while (true) {
        while (*at == ' ' || *at == ',') at++;
        if (*at == ')') return true;
        if (!isdigit((unsigned char)*at) || out->rank == SHAPE_MAX_RANK) return false;
        char *end;
        out->dims[out->rank++] = strtoll(at, &end, 10);
        at = *end == 'L' ? end + 1 : end;
    }
}

static bool parse_header(const char *text, Header *out) {
    const char *descr = value_of(text, "descr"), *order = value_of(text, "fortran_order"),
               *shape = value_of(text, "shape");
    if (!descr || !order || !shape || *descr++ != '\'' || !parse_shape(shape, &out->shape)) return false;
    out->order = strchr("<>|=", *descr) && *descr ? *descr++ : '|';
    out->letter = *descr ? *descr++ : 0;
    char *end;
    out->size = strtoll(descr, &end, 10);
    out->columns_first = strncmp(order, "True", 4) == 0;
    return *end == '\'';
}

static void swap_bytes(char *at, size_t size) {
    for (size_t i = 0; i < size / 2; i++) {
        char c = at[i];
        at[i] = at[size - 1 - i];
        at[size - 1 - i] = c;
    }
}

/* Position in the file of element i of the tensor. */
static int64_t file_index(const Header *h, int64_t i) {
    if (!h->columns_first) return i;
    int64_t at = 0, stride = shape_prod(&h->shape, 0, h->shape.rank);
    for (int d = h->shape.rank - 1; d >= 0; d--) {
        stride = h->shape.dims[d] ? stride / h->shape.dims[d] : 0;
        at += i % h->shape.dims[d] * stride;
        i /= h->shape.dims[d];
    }
    return at;
}

/* One element of S or U: up to the zeros at its end. */
static void read_text(const Header *h, const char *from, size_t size, TString *to) {
    StrBuf text = {0};
    if (h->letter == 'S') {
        while (size && !from[size - 1]) size--;
        strbuf_add(&text, (Str){from, size});
    } else {
        for (size_t i = 0; i + 4 <= size; i += 4) {
            uint32_t c;
            memcpy(&c, from + i, 4);
            if (h->order == '>') c = __builtin_bswap32(c);
            if (c && c < 0x110000) strbuf_add_utf8(&text, c);
        }
    }
    size_t len = text.len;
    tstring_take(to, strbuf_detach(&text), len);
}

static DataType dtype_of(const Header *h) {
    if (h->letter == 'S' || h->letter == 'U') return DT_STRING;
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (kinds[i].letter == h->letter && kinds[i].size == h->size) return kinds[i].dtype;
    return DT_INVALID;
}

static void read_elements(const Header *h, const char *data, size_t item, Tensor *t) {
    bool swap = h->order == '>' && t->dtype != DT_STRING;
    if (!swap && !h->columns_first && t->dtype != DT_STRING) {
        if (t->count) memcpy(t->data, data, (size_t)t->count * item);
        tensor_normalize_bools(t);
        return;
    }
    bool complex = t->dtype == DT_COMPLEX64 || t->dtype == DT_COMPLEX128;
    size_t part = complex ? item / 2 : item;
    for (int64_t i = 0; i < t->count; i++) {
        const char *from = data + (size_t)file_index(h, i) * item;
        char *to = (char *)t->data + (size_t)i * item;
        if (t->dtype == DT_STRING) {
            read_text(h, from, item, &tensor_str(t)[i]);
            continue;
        }
        memcpy(to, from, item);
        for (size_t at = 0; swap && at < item; at += part) swap_bytes(to + at, part);
    }
    tensor_normalize_bools(t);
}

Error *npy_parse(Str bytes, const char *path, Tensor **out) {
    if (!npy_is(bytes)) return error_invalid("%s is no .npy file", path);
    int version = (unsigned char)bytes.ptr[6];
    size_t start = version == 1 ? 10 : 12, length = 0;
    if (bytes.len < start) return error_new(CODE_DATA_LOSS, "%s ends inside its header", path);
    for (size_t i = 8; i < start; i++) length |= (size_t)(unsigned char)bytes.ptr[i] << (8 * (i - 8));
    if (length > bytes.len - start) return error_new(CODE_DATA_LOSS, "%s ends inside its header", path);
    char *text = xstrndup(bytes.ptr + start, length);
    Header h = {0};
    bool known = parse_header(text, &h);
    free(text);
    if (!known) return error_unimplemented("%s: not a plain array", path);
    DataType dtype = dtype_of(&h);
    if (dtype == DT_INVALID || h.size < 0 || h.size > 1 << 28)
        return error_unimplemented("%s: elements of type %c%lld are not supported", path, h.letter, (long long)h.size);
    Error *err = shape_check(&h.shape);
    if (err) return error_wrap(err, "%s", path);
    size_t item = (size_t)h.size * (h.letter == 'U' ? 4 : 1);
    size_t have = bytes.len - start - length;
    int64_t count = shape_count(&h.shape);
    if (!item && count > 0) return error_unimplemented("%s: %lld elements of no bytes", path, (long long)count); /* else a short file could ask for any memory */
    if (item && (size_t)count > have / item)
        return error_new(CODE_DATA_LOSS, "%s has fewer than the %lld elements it says", path, (long long)count);
    Tensor *t = NULL;
    err = tensor_new(dtype, &h.shape, &t);
    if (err) return error_wrap(err, "%s", path);
    read_elements(&h, bytes.ptr + start + length, item, t);
    *out = t;
    return NULL;
}

/* ---- Writing ---- */

/* The descr of the tensor's elements; *item is their size in the file. */
static Error *describe(const Tensor *t, char *descr, size_t size, size_t *item) {
    if (t->dtype == DT_STRING) {
        *item = 1;
        for (int64_t i = 0; i < t->count; i++) {
            Str s = tstring_str(&tensor_str(t)[i]);
            if (s.len && !s.ptr[s.len - 1])
                return error_invalid("element %lld ends in a 0 byte, which a .npy file cannot keep", (long long)i);
            if (s.len > *item) *item = s.len;
        }
        snprintf(descr, size, "|S%zu", *item);
        return NULL;
    }
    if (!dtype_is_plain(t->dtype)) return error_invalid("a %s cannot be kept in a .npy file", dtype_name(t->dtype));
    *item = dtype_size(t->dtype);
    static const DataType same[DT_COUNT] = {
        [DT_QINT8] = DT_INT8,     [DT_QUINT8] = DT_UINT8, [DT_QINT16] = DT_INT16,
        [DT_QUINT16] = DT_UINT16, [DT_QINT32] = DT_INT32, [DT_INT4] = DT_INT8,
        [DT_UINT4] = DT_UINT8,    [DT_INT2] = DT_INT8,    [DT_UINT2] = DT_UINT8,
    };
    DataType dtype = same[t->dtype] ? same[t->dtype] : t->dtype;
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        if (kinds[i].dtype != dtype) continue;
        snprintf(descr, size, "%c%c%d", kinds[i].size == 1 ? '|' : '<', kinds[i].letter, kinds[i].size);
        return NULL;
    }
    snprintf(descr, size, "|V%zu", *item);
    return NULL;
}

static void put_header(StrBuf *out, const char *descr, const Shape *shape) {
    StrBuf text = {0};
    strbuf_addf(&text, "{'descr': '%s', 'fortran_order': False, 'shape': (", descr);
    for (int d = 0; d < shape->rank; d++)
        strbuf_addf(&text, "%lld%s", (long long)shape->dims[d],
                    shape->rank == 1      ? ","
                    : d + 1 < shape->rank ? ", "
                                          : "");
    strbuf_add(&text, STR("), }"));
    while ((10 + text.len + 1) % 64) strbuf_addc(&text, ' ');
    strbuf_addc(&text, '\n');
    strbuf_add(out, (Str){MAGIC, 6});
    strbuf_add(out, STR("\1\0"));
    strbuf_addc(out, (char)(text.len & 255));
    strbuf_addc(out, (char)(text.len >> 8));
    strbuf_add(out, strbuf_str(&text));
    strbuf_clear(&text);
}

Error *npy_write(const FileSystem *fs, const char *path, const Tensor *t) {
    char descr[32];
    size_t item = 0;
    Error *err = describe(t, descr, sizeof descr, &item);
    if (err) return error_wrap(err, "%s", path);
    StrBuf head = {0}, strings = {0};
    put_header(&head, descr, &t->shape);
    Str body = {t->data, tensor_bytes(t)};
    if (t->dtype == DT_STRING) {
        for (int64_t i = 0; i < t->count; i++) {
            Str s = tstring_str(&tensor_str(t)[i]);
            strbuf_add(&strings, s);
            for (size_t k = s.len; k < item; k++) strbuf_addc(&strings, 0);
        }
        body = strbuf_str(&strings);
    }
    File *f = NULL;
    err = fs->open(path, FILE_WRITE, &f);
    if (!err) {
        err = fs->write(f, head.ptr, head.len);
        if (!err && body.len) err = fs->write(f, body.ptr, body.len);
        fs->close(f);
    }
    strbuf_clear(&head);
    strbuf_clear(&strings);
    return err;
}
