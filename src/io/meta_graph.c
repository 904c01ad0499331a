/* meta_graph.c: reads MetaGraphDef where it lies. The numbers of fields are those of meta_graph.proto. */
#include "io/meta_graph.h"

#include <stdlib.h>
#include <string.h>

#include "proto/wire.h"

enum { MAX_PART_DEPTH = 8 };

static Error *malformed(const char *what) {
    return error_new(CODE_DATA_LOSS, "malformed MetaGraphDef: %s", what);
}

/* How many fields of this number with bytes a message has; -1 when it is malformed. */
static int count_fields(Str message, uint32_t field) {
    WireReader r = wire_reader(message);
    int n = 0;
    while (wire_next(&r)) n += r.field == field && r.type == WIRE_BYTES;
    return r.failed ? -1 : n;
}

/* An entry of a map<string, message>. */
static bool map_entry(Str entry, Str *key, Str *value) {
    WireReader r = wire_reader(entry);
    *key = *value = STR("");
    while (wire_next(&r)) {
        if (r.field == 1 && r.type == WIRE_BYTES) *key = r.bytes;
        if (r.field == 2 && r.type == WIRE_BYTES) *value = r.bytes;
    }
    return !r.failed;
}

static void *array(Arena *arena, int count, size_t size) {
    return arena_calloc(arena, (size_t)count + 1, size);
}

/* ---- Signatures ---- */

static Error *parse_tensor_info(Arena *arena, Str bytes, int depth, TensorInfo *out);

static Error *parse_sparse(Arena *arena, Str bytes, TensorInfo *out) {
    static const char *const keys[] = {"values", "indices", "dense_shape"};
    out->kind = TENSOR_SPARSE;
    out->parts = array(arena, 3, sizeof *out->parts);
    out->part_count = 3;
    for (int i = 0; i < 3; i++)
        out->parts[i] = (TensorInfo){.key = str_of(keys[i]), .dtype = DT_INT64, .shape = {.rank = i == 1 ? 2 : 1}};
    out->parts[0].shape.dims[0] = out->parts[1].shape.dims[0] = out->parts[1].shape.dims[1] = -1;
    out->parts[2].shape.dims[0] = -1;
    WireReader r = wire_reader(bytes);
    while (wire_next(&r))
        if (r.field >= 1 && r.field <= 3 && r.type == WIRE_BYTES) out->parts[r.field - 1].name = r.bytes;
    return r.failed ? malformed("a sparse TensorInfo") : NULL;
}

static Error *parse_composite(Arena *arena, Str bytes, int depth, TensorInfo *out) {
    int count = count_fields(bytes, 2), n = 0;
    if (count < 0 || depth >= MAX_PART_DEPTH) return malformed("a composite TensorInfo");
    out->kind = TENSOR_COMPOSITE;
    out->parts = array(arena, count, sizeof *out->parts);
    WireReader r = wire_reader(bytes);
    while (wire_next(&r)) {
        if (r.field != 2 || r.type != WIRE_BYTES) continue;
        Error *err = parse_tensor_info(arena, r.bytes, depth + 1, &out->parts[n]);
        if (err) return err;
        out->parts[n].key = arena_printf(arena, "%d", n);
        n++;
    }
    out->part_count = n;
    return NULL;
}

static Error *parse_tensor_info(Arena *arena, Str bytes, int depth, TensorInfo *out) {
    WireReader r = wire_reader(bytes);
    Error *err = NULL;
    out->shape.rank = -1;
    while (!err && wire_next(&r)) {
        if (r.field == 1 && r.type == WIRE_BYTES) out->name = r.bytes;
        if (r.field == 2 && r.type == WIRE_VARINT && dtype_is_valid((int)r.number)) out->dtype = (DataType)r.number;
        if (r.field == 3 && r.type == WIRE_BYTES) err = shape_decode(r.bytes, &out->shape);
        if (r.field == 4 && r.type == WIRE_BYTES) err = parse_sparse(arena, r.bytes, out);
        if (r.field == 5 && r.type == WIRE_BYTES) err = parse_composite(arena, r.bytes, depth, out);
    }
    if (out->kind == TENSOR_SPARSE) out->parts[0].dtype = out->dtype;
    return err ? err : r.failed ? malformed("a TensorInfo") : NULL;
}

static int by_tensor_key(const void *a, const void *b) {
    return str_compare(((const TensorInfo *)a)->key, ((const TensorInfo *)b)->key);
}

static Error *parse_tensors(Arena *arena, Str bytes, uint32_t field, TensorInfo **items, int *count) {
    int capacity = count_fields(bytes, field);
    if (capacity < 0) return malformed("a SignatureDef");
    *items = array(arena, capacity, sizeof **items);
    WireReader r = wire_reader(bytes);
    while (wire_next(&r)) {
        if (r.field != field || r.type != WIRE_BYTES) continue;
        TensorInfo *info = &(*items)[(*count)++];
        Str value;
        if (!map_entry(r.bytes, &info->key, &value)) return malformed("a SignatureDef");
        Error *err = parse_tensor_info(arena, value, 0, info);
        if (err) return error_wrap(err, "tensor '%.*s'", STR_ARG(info->key));
    }
    qsort(*items, (size_t)*count, sizeof **items, by_tensor_key);
    return NULL;
}

static TensorInfo *find_tensor(TensorInfo *items, int count, Str key) {
    for (int i = 0; i < count; i++)
        if (str_eq(items[i].key, key)) return &items[i];
    return NULL;
}

static Error *parse_signature(Arena *arena, Str bytes, Signature *out) {
    Error *err = parse_tensors(arena, bytes, 1, &out->inputs, &out->input_count);
    if (!err) err = parse_tensors(arena, bytes, 2, &out->outputs, &out->output_count);
    WireReader r = wire_reader(bytes);
    while (!err && wire_next(&r)) {
        Str key, value;
        if (r.field == 3 && r.type == WIRE_BYTES) out->method_name = r.bytes;
        if (r.field != 4 || r.type != WIRE_BYTES) continue;
        if (!map_entry(r.bytes, &key, &value)) err = malformed("the default of an input");
        TensorInfo *input = err ? NULL : find_tensor(out->inputs, out->input_count, key);
        if (input) input->default_value = value;
    }
    return err;
}

static int by_signature_key(const void *a, const void *b) {
    return str_compare(((const Signature *)a)->key, ((const Signature *)b)->key);
}

/* ---- Collections ---- */

static Error *parse_items(Arena *arena, Str list, Collection *out) {
    out->count = count_fields(list, 1);
    if (out->count < 0) return malformed("a collection");
    out->items = array(arena, out->count, sizeof *out->items);
    WireReader r = wire_reader(list);
    for (int n = 0; wire_next(&r);)
        if (r.field == 1 && r.type == WIRE_BYTES) out->items[n++] = r.bytes;
    return NULL;
}

/* Packed or not; every number is at least one byte. */
static Error *parse_numbers(Arena *arena, Str list, Collection *out) {
    bool ints = out->kind == COLLECTION_INTS;
    out->ints = ints ? array(arena, (int)list.len, sizeof *out->ints) : NULL;
    out->floats = ints ? NULL : array(arena, (int)list.len, sizeof *out->floats);
    WireReader r = wire_reader(list);
    while (wire_next(&r)) {
        if (r.field != 1) continue;
        if (ints && r.type == WIRE_VARINT) out->ints[out->count++] = (int64_t)r.number;
        if (!ints && r.type == WIRE_FIXED32) {
            uint32_t bits = (uint32_t)r.number;
            memcpy(&out->floats[out->count++], &bits, 4);
        }
        if (r.type != WIRE_BYTES) continue;
        if (!ints) {
            memcpy(out->floats + out->count, r.bytes.ptr, r.bytes.len / 4 * 4);
            out->count += (int)(r.bytes.len / 4);
            continue;
        }
        WireReader packed = wire_reader(r.bytes);
        uint64_t v;
        while (packed.at < packed.end && wire_varint(&packed, &v)) out->ints[out->count++] = (int64_t)v;
    }
    return r.failed ? malformed("a collection") : NULL;
}

static Error *parse_collection(Arena *arena, Str bytes, Collection *out) {
    WireReader r = wire_reader(bytes);
    Error *err = NULL;
    while (!err && wire_next(&r)) {
        if (r.field < 1 || r.field > 5 || r.type != WIRE_BYTES) continue;
        if (r.bytes.len > INT32_MAX / 16) return malformed("a collection is too long");
        out->kind = (CollectionKind)r.field;
        out->count = 0;
        bool numbers = out->kind == COLLECTION_INTS || out->kind == COLLECTION_FLOATS;
        err = numbers ? parse_numbers(arena, r.bytes, out) : parse_items(arena, r.bytes, out);
    }
    return err ? err : r.failed ? malformed("a collection") : NULL;
}

static int by_collection_key(const void *a, const void *b) {
    return str_compare(((const Collection *)a)->key, ((const Collection *)b)->key);
}

/* ---- The rest ---- */

static Error *parse_meta_info(Arena *arena, Str bytes, MetaGraph *m) {
    int count = count_fields(bytes, 4);
    if (count < 0) return malformed("MetaInfoDef");
    m->tags = array(arena, count, sizeof *m->tags);
    m->tag_count = 0;
    WireReader r = wire_reader(bytes);
    while (wire_next(&r)) {
        if (r.type != WIRE_BYTES) continue;
        if (r.field == 1) m->version = r.bytes;
        if (r.field == 4) m->tags[m->tag_count++] = r.bytes;
        if (r.field == 5) m->producer = r.bytes;
    }
    return NULL;
}

static Error *parse_saver(Str bytes, SaverDef *out) {
    WireReader r = wire_reader(bytes);
    while (wire_next(&r)) {
        if (r.field == 1 && r.type == WIRE_BYTES) out->filename_tensor = r.bytes;
        if (r.field == 2 && r.type == WIRE_BYTES) out->save_tensor = r.bytes;
        if (r.field == 3 && r.type == WIRE_BYTES) out->restore_op = r.bytes;
        if (r.field == 4 && r.type == WIRE_VARINT) out->max_to_keep = (int32_t)r.number;
        if (r.field == 5 && r.type == WIRE_VARINT) out->sharded = r.number != 0;
        if (r.field == 7 && r.type == WIRE_VARINT) out->version = (int)r.number;
    }
    out->present = true;
    return r.failed ? malformed("SaverDef") : NULL;
}

static Error *parse_asset(Arena *arena, Str bytes, AssetFile *out) {
    WireReader r = wire_reader(bytes);
    TensorInfo info = {0};
    Error *err = NULL;
    while (!err && wire_next(&r)) {
        if (r.field == 1 && r.type == WIRE_BYTES) err = parse_tensor_info(arena, r.bytes, 0, &info);
        if (r.field == 2 && r.type == WIRE_BYTES) out->filename = r.bytes;
    }
    out->tensor = info.name;
    return err ? err : r.failed ? malformed("an asset") : NULL;
}

/* Older models list their assets in a collection of Any messages. */
static Error *assets_of_collection(Arena *arena, MetaGraph *m) {
    const Collection *c = meta_graph_collection(m, STR("saved_model_assets"));
    if (m->asset_count || !c || c->kind != COLLECTION_ANY) return NULL;
    m->assets = array(arena, c->count, sizeof *m->assets);
    for (int i = 0; i < c->count; i++) {
        Str type, message;
        if (!map_entry(c->items[i], &type, &message)) return malformed("an asset"); /* Any: type_url = 1, value = 2 */
        Error *err = parse_asset(arena, message, &m->assets[m->asset_count++]);
        if (err) return err;
    }
    return NULL;
}

/* "node:0" as the name of the node. */
static Str node_of(Str name) {
    ptrdiff_t colon = str_find(name, ':');
    return colon < 0 ? name : str_slice(name, 0, (size_t)colon);
}

static Str find_init_op(const MetaGraph *m) {
    static const char *const collections[] = {"saved_model_main_op", "legacy_init_op"};
    Str key = STR("__saved_model_init_op");
    const Signature *s = meta_graph_signature(m, key);
    const TensorInfo *op = s ? find_tensor(s->outputs, s->output_count, key) : NULL;
    if (op) return node_of(op->name);
    for (int i = 0; i < 2; i++) {
        const Collection *c = meta_graph_collection(m, str_of(collections[i]));
        if (c && c->kind == COLLECTION_NODES && c->count == 1) return node_of(c->items[0]);
    }
    return STR("");
}

/* Counts of what repeats, so that the arrays can be made at once. */
typedef struct Counts {
    int collections, signatures, assets;
} Counts;

static Error *parse_field(Arena *arena, const WireReader *r, MetaGraph *m) {
    Str value;
    switch (r->field) {
        case 1:
            return parse_meta_info(arena, r->bytes, m);
        case 2:
            m->graph_def = r->bytes;
            return NULL;
        case 3:
            return parse_saver(r->bytes, &m->saver);
        case 4: {
            Collection *c = &m->collections[m->collection_count++];
            return map_entry(r->bytes, &c->key, &value) ? parse_collection(arena, value, c) : malformed("a collection");
        }
        case 5: {
            Signature *s = &m->signatures[m->signature_count++];
            if (!map_entry(r->bytes, &s->key, &value)) return malformed("a SignatureDef");
            return error_wrap(parse_signature(arena, value, s), "signature '%.*s'", STR_ARG(s->key));
        }
        case 6:
            return parse_asset(arena, r->bytes, &m->assets[m->asset_count++]);
        case 7:
            m->has_objects = true;
            return NULL;
        default:
            return NULL;
    }
}

Error *meta_graph_parse(Arena *arena, Str bytes, MetaGraph **out) {
    MetaGraph *m = arena_calloc(arena, 1, sizeof *m);
    m->bytes = bytes;
    Counts n = {count_fields(bytes, 4), count_fields(bytes, 5), count_fields(bytes, 6)};
    if (n.collections < 0) return malformed("it ends in the middle of a field");
    m->collections = array(arena, n.collections, sizeof *m->collections);
    m->signatures = array(arena, n.signatures, sizeof *m->signatures);
    m->assets = array(arena, n.assets, sizeof *m->assets);
    WireReader r = wire_reader(bytes);
    Error *err = NULL;
    while (!err && wire_next(&r))
        if (r.type == WIRE_BYTES) err = parse_field(arena, &r, m);
    if (err) return err;
    qsort(m->collections, (size_t)m->collection_count, sizeof *m->collections, by_collection_key);
    qsort(m->signatures, (size_t)m->signature_count, sizeof *m->signatures, by_signature_key);
    err = assets_of_collection(arena, m);
    if (err) return err;
    m->init_op = find_init_op(m);
    *out = m;
    return NULL;
}

const Signature *meta_graph_signature(const MetaGraph *m, Str key) {
    for (int i = 0; i < m->signature_count; i++)
        if (str_eq(m->signatures[i].key, key)) return &m->signatures[i];
    return NULL;
}

const Collection *meta_graph_collection(const MetaGraph *m, Str key) {
    for (int i = 0; i < m->collection_count; i++)
        if (str_eq(m->collections[i].key, key)) return &m->collections[i];
    return NULL;
}

static bool has_tag(const Str *tags, int count, Str tag) {
    for (int i = 0; i < count; i++)
        if (str_eq(tags[i], tag)) return true;
    return false;
}

bool meta_graph_has_tags(const MetaGraph *m, const Str *tags, int count) {
    for (int i = 0; i < count; i++)
        if (!has_tag(m->tags, m->tag_count, tags[i])) return false;
    for (int i = 0; i < m->tag_count; i++)
        if (!has_tag(tags, count, m->tags[i])) return false;
    return true;
}

char *meta_graph_tags_text(const MetaGraph *m) {
    StrBuf text = {0};
    for (int i = 0; i < m->tag_count; i++) strbuf_addf(&text, "%s%.*s", i ? "," : "", STR_ARG(m->tags[i]));
    return strbuf_detach(&text);
}
