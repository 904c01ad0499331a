/* api_def.c: TF_ApiDefMap: what is said about ops for people and for generators of wrappers.

   ApiDef: graph_op_name=1 visibility=2 endpoint=3 in_arg=4 out_arg=5 attr=6 summary=7 description=8 description_prefix=9 description_suffix=10 arg_order=11
   deprecation_message=12 deprecation_version=13. Texts come as ApiDefs (op=1) in protobuf's text form. */
#include <pthread.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/hashmap.h"
#include "base/memory.h"
#include "capi/status_internal.h"
#include "capi/text_message_internal.h"
#include "proto/wire.h"
#include "tensorflow/c/c_api.h"

enum { NAME = 1, ENDPOINT = 3, IN_ARG = 4, OUT_ARG = 5, ATTR = 6, ARG_ORDER = 11 };

static const TextEnum visibilities[] = {{"DEFAULT_VISIBILITY", 0}, {"VISIBLE", 1}, {"SKIP", 2}, {"HIDDEN", 3}, {0}};
static const TextField list_fields[] = {{"s", 2, .kind = TEXT_STRING}, {"i", 3, .kind = TEXT_INT}, {"f", 4, .kind = TEXT_FLOAT}, {"b", 5, .kind = TEXT_BOOL}, {"type", 6, .kind = TEXT_INT}, {0}};
static const TextField value_fields[] = {{"list", 1, .kind = TEXT_MESSAGE, .fields = list_fields}, {"s", 2, .kind = TEXT_STRING}, {"i", 3, .kind = TEXT_INT}, {"f", 4, .kind = TEXT_FLOAT},
                                         {"b", 5, .kind = TEXT_BOOL}, {"type", 6, .kind = TEXT_INT}, {0}};
static const TextField endpoint_fields[] = {{"name", 1, .kind = TEXT_STRING}, {"deprecated", 3, .kind = TEXT_BOOL}, {"deprecation_version", 4, .kind = TEXT_INT}, {0}};
static const TextField arg_fields[] = {{"name", 1, .kind = TEXT_STRING}, {"rename_to", 2, .kind = TEXT_STRING}, {"description", 3, .kind = TEXT_STRING}, {0}};
static const TextField attr_fields[] = {{"name", 1, .kind = TEXT_STRING}, {"rename_to", 2, .kind = TEXT_STRING}, {"default_value", 3, .kind = TEXT_MESSAGE, .fields = value_fields},
                                        {"description", 4, .kind = TEXT_STRING}, {0}};
static const TextField op_fields[] = {
    {"graph_op_name", 1, .kind = TEXT_STRING}, {"visibility", 2, .kind = TEXT_ENUM, .values = visibilities},
    {"endpoint", ENDPOINT, .kind = TEXT_MESSAGE, .fields = endpoint_fields}, {"in_arg", IN_ARG, .kind = TEXT_MESSAGE, .fields = arg_fields},
    {"out_arg", OUT_ARG, .kind = TEXT_MESSAGE, .fields = arg_fields}, {"attr", ATTR, .kind = TEXT_MESSAGE, .fields = attr_fields},
    {"summary", 7, .kind = TEXT_STRING}, {"description", 8, .kind = TEXT_STRING}, {"description_prefix", 9, .kind = TEXT_STRING}, {"description_suffix", 10, .kind = TEXT_STRING},
    {"arg_order", ARG_ORDER, .kind = TEXT_STRING}, {"deprecation_message", 12, .kind = TEXT_STRING}, {"deprecation_version", 13, .kind = TEXT_INT}, {0},
};
static const TextField defs_fields[] = {{"op", 1, .kind = TEXT_MESSAGE, .fields = op_fields}, {0}};

struct TF_ApiDefMap {
    pthread_mutex_t mutex; /* guards all below */
    Arena *arena;
    StrMap ops; /* by graph_op_name: Str *, a serialised ApiDef */
    bool was_read; /* nothing is put any more */
};

static Str name_of(Str message) {
    Str name = STR("");
    WireReader r = wire_reader(message);
    while (wire_next(&r))
        if (r.field == NAME && r.type == WIRE_BYTES) name = r.bytes;
    return name;
}

static void put_named(StrBuf *out, uint32_t field, Str name) {
    StrBuf b = {0};
    wire_put_bytes(&b, NAME, name);
    wire_put_bytes(out, field, strbuf_str(&b));
    strbuf_clear(&b);
}

/* An ApiDef that says what an OpDef (name=1 input_arg=2 output_arg=3 attr=4 summary=5 description=6) says. */
static void put_base(Str op_def, StrBuf *out) {
    Str name = name_of(op_def);
    wire_put_bytes(out, NAME, name);
    put_named(out, ENDPOINT, name);
    WireReader r = wire_reader(op_def);
    while (wire_next(&r)) {
        if (r.type != WIRE_BYTES) continue;
        if (r.field >= 2 && r.field <= 4) put_named(out, r.field == 2 ? IN_ARG : r.field == 3 ? OUT_ARG : ATTR, name_of(r.bytes));
        if (r.field == 5 || r.field == 6) wire_put_bytes(out, r.field + 2, r.bytes);
    }
}

static void set_op(TF_ApiDefMap *m, Str name, Str def) {
    Str *kept = arena_alloc(m->arena, sizeof *kept);
    *kept = arena_str(m->arena, def);
    strmap_put(&m->ops, arena_str(m->arena, name), kept);
}

void TF_DeleteApiDefMap(TF_ApiDefMap *m) {
    if (!m) return;
    strmap_clear(&m->ops);
    arena_free(m->arena);
    pthread_mutex_destroy(&m->mutex);
    free(m);
}

TF_ApiDefMap *TF_NewApiDefMap(TF_Buffer *op_list_buffer, TF_Status *status) {
    TF_ApiDefMap *m = xcalloc(1, sizeof *m);
    pthread_mutex_init(&m->mutex, NULL);
    m->arena = arena_new();
    WireReader r = wire_reader(buffer_str(op_list_buffer));
    while (wire_next(&r)) {
        if (r.field != 1 || r.type != WIRE_BYTES) continue;
        StrBuf def = {0};
        put_base(r.bytes, &def);
        set_op(m, name_of(r.bytes), strbuf_str(&def));
        strbuf_clear(&def);
    }
    if (status_take(status, r.failed ? error_invalid("Unparseable OpList") : NULL)) return m;
    TF_DeleteApiDefMap(m);
    return NULL;
}

/* ---- Put ---- */

static bool is_argument(uint32_t field) {
    return field == IN_ARG || field == OUT_ARG || field == ATTR;
}

static bool has_field(Str message, uint32_t field) {
    WireReader r = wire_reader(message);
    while (wire_next(&r))
        if (r.field == field) return true;
    return false;
}

/* An argument as it was, followed by what is new about it: the last value of a field counts. */
static void put_merged_argument(StrBuf *out, uint32_t field, Str old, Str more) {
    StrBuf merged = {0};
    strbuf_add(&merged, old);
    WireReader r = wire_reader(more);
    while (wire_next(&r))
        if (r.field == field && r.type == WIRE_BYTES && str_eq(name_of(r.bytes), name_of(old))) strbuf_add(&merged, r.bytes);
    wire_put_bytes(out, field, strbuf_str(&merged));
    strbuf_clear(&merged);
}

/* Arguments are merged by name, endpoints and the order of arguments replaced, everything else overridden. */
static Error *merge(Str old, Str more, StrBuf *out) {
    WireReader r = wire_reader(old);
    while (wire_next(&r)) {
        if (is_argument(r.field) && r.type == WIRE_BYTES)
            put_merged_argument(out, r.field, r.bytes, more);
        else if (!has_field(more, r.field) && r.type == WIRE_BYTES)
            wire_put_bytes(out, r.field, r.bytes);
        else if (!has_field(more, r.field))
            wire_put_uint(out, r.field, r.number);
    }
    r = wire_reader(more);
    while (wire_next(&r)) {
        if (is_argument(r.field)) continue;
        if (r.type == WIRE_BYTES)
            wire_put_bytes(out, r.field, r.bytes);
        else
            wire_put_uint(out, r.field, r.number);
    }
    return NULL;
}

static Error *put_text_locked(TF_ApiDefMap *m, Str text) {
    if (m->was_read) return error_new(CODE_FAILED_PRECONDITION, "Cannot call TF_ApiDefMapPut after TF_ApiDefMapGet has been called.");
    StrBuf defs = {0};
    Error *err = text_message_parse(text, defs_fields, &defs);
    WireReader r = wire_reader(strbuf_str(&defs));
    while (!err && wire_next(&r)) {
        const Str *old = strmap_get(&m->ops, name_of(r.bytes));
        if (!old) continue; /* of an op that the list does not have */
        StrBuf merged = {0};
        err = merge(*old, r.bytes, &merged);
        if (!err) set_op(m, name_of(r.bytes), strbuf_str(&merged));
        strbuf_clear(&merged);
    }
    strbuf_clear(&defs);
    return err;
}

void TF_ApiDefMapPut(TF_ApiDefMap *m, const char *text, size_t text_len, TF_Status *status) {
    pthread_mutex_lock(&m->mutex);
    Error *err = put_text_locked(m, (Str){text, text_len});
    pthread_mutex_unlock(&m->mutex);
    status_take(status, err);
}

TF_Buffer *TF_ApiDefMapGet(TF_ApiDefMap *m, const char *name, size_t name_len, TF_Status *status) {
    pthread_mutex_lock(&m->mutex);
    m->was_read = true;
    const Str *def = strmap_get(&m->ops, (Str){name, name_len});
    TF_Buffer *b = def ? TF_NewBufferFromString(def->ptr, def->len) : NULL;
    pthread_mutex_unlock(&m->mutex);
    status_take(status, NULL);
    return b;
}
