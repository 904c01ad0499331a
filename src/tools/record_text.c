/* record_text.c: decodes records that are examples. */
#include "tools/record_text.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/hashmap.h"
#include "base/memory.h"
#include "io/example.h"
#include "proto/wire.h"
#include "tensor/json.h"
#include "tensor/print.h"
#include "tools/report.h"

enum { MAX_SHOWN = 32, MAX_TEXT = 60 };

typedef enum RecordKind { RECORD_BYTES, RECORD_EXAMPLE, RECORD_SEQUENCE } RecordKind;

/* ---- What it is ---- */

static bool count_feature(void *arg, Str name, const ExampleFeature *f) {
    (void)name;
    if (feature_count(f) < 0) return false;
    ++*(int *)arg;
    return true;
}

/* An Example has features in field 1; a SequenceExample has lists of features in field 2, each with a name. */
static RecordKind kind_of(Str record) {
    WireReader r = wire_reader(record);
    bool lists = false;
    int count = 0;
    while (wire_next(&r)) {
        if (r.type != WIRE_BYTES || r.field < 1 || r.field > 2) return RECORD_BYTES;
        lists = lists || r.field == 2;
    }
    if (r.failed || !record.len || !example_each(record, count_feature, &count)) return RECORD_BYTES;
    if (!lists) return count ? RECORD_EXAMPLE : RECORD_BYTES;
    r = wire_reader(record);
    while (wire_next(&r)) {
        if (r.field != 2) continue;
        WireReader map = wire_reader(r.bytes);
        while (wire_next(&map))
            if (map.field != 1 || map.type != WIRE_BYTES) return RECORD_BYTES;
        if (map.failed) return RECORD_BYTES;
    }
    return RECORD_SEQUENCE;
}

/* The values as a tensor; NULL when there are too many. */
static Tensor *values_of(const ExampleFeature *f) {
    int64_t n = feature_count(f);
    Shape shape = shape_vector(n < 0 ? 0 : n);
    Tensor *t = NULL;
    Error *err = tensor_new(f->type ? f->type : DT_FLOAT, &shape, &t);
    if (err) {
        error_free(err);
        return NULL;
    }
    if (n > 0) feature_copy(f, t->data);
    return t;
}

/* ---- As text ---- */

static void print_strings(const Tensor *t) {
    for (int64_t i = 0; i < t->count && i < MAX_SHOWN; i++) {
        Str s = tstring_str(&tensor_str(t)[i]);
        StrBuf text = {0};
        json_print_bytes(&text, s);
        if (s.len <= MAX_TEXT)
            printf(" %s", text.ptr);
        else
            printf(" %.*s... (%zu bytes)", MAX_TEXT, text.ptr, s.len);
        strbuf_clear(&text);
    }
}

static void print_values_of(const ExampleFeature *f) {
    Tensor *t = values_of(f);
    if (!t) return;
    if (t->dtype == DT_STRING) {
        print_strings(t);
    } else {
        for (int64_t i = 0; i < t->count && i < MAX_SHOWN; i++) {
            StrBuf text = {0};
            json_print_element(&text, t, i);
            printf(" %s", text.ptr);
            strbuf_clear(&text);
        }
    }
    if (t->count > MAX_SHOWN) printf(" ... (%lld values)", (long long)t->count);
    tensor_unref(t);
}

static const char *type_name(const ExampleFeature *f) {
    return f->type == DT_STRING ? "bytes" : f->type ? dtype_name(f->type) : "none";
}

static bool print_feature(void *arg, Str name, const ExampleFeature *f) {
    (void)arg;
    printf("  %.*s: %s", STR_ARG(name), type_name(f));
    print_values_of(f);
    putchar('\n');
    return true;
}

/* The lists of a SequenceExample: map<string, FeatureList { repeated Feature feature = 1 }>. */
typedef void ListFn(void *arg, Str name, Str feature_list);

static void each_list(Str record, ListFn *fn, void *arg) {
    WireReader r = wire_reader(record);
    while (wire_next(&r)) {
        if (r.field != 2 || r.type != WIRE_BYTES) continue;
        WireReader map = wire_reader(r.bytes);
        while (wire_next(&map)) {
            Str name = STR(""), list = STR("");
            WireReader entry = wire_reader(map.bytes);
            while (wire_next(&entry)) {
                if (entry.field == 1 && entry.type == WIRE_BYTES) name = entry.bytes;
                if (entry.field == 2 && entry.type == WIRE_BYTES) list = entry.bytes;
            }
            fn(arg, name, list);
        }
    }
}

static void print_list(void *arg, Str name, Str feature_list) {
    (void)arg;
    printf("  %.*s: sequence\n", STR_ARG(name));
    WireReader r = wire_reader(feature_list);
    for (int i = 0; wire_next(&r); i++) {
        ExampleFeature f;
        if (r.field != 1 || r.type != WIRE_BYTES || !feature_decode(r.bytes, &f) || feature_count(&f) < 0) continue;
        printf("    %d: %s", i, type_name(&f));
        print_values_of(&f);
        putchar('\n');
    }
}

void record_print(Str record) {
    RecordKind kind = kind_of(record);
    if (kind == RECORD_BYTES) {
        StrBuf text = {0};
        Str some = str_slice(record, 0, 200);
        json_print_bytes(&text, some);
        printf("  %s%s\n", text.ptr, record.len > some.len ? " ..." : "");
        strbuf_clear(&text);
        return;
    }
    example_each(record, print_feature, NULL);
    if (kind == RECORD_SEQUENCE) each_list(record, print_list, NULL);
}

/* ---- As JSON ---- */

static void report_feature_in(cJSON *to, const char *name, const ExampleFeature *f) {
    Tensor *t = values_of(f);
    cJSON *item = report_object(to, name);
    report_str(item, "type", str_of(type_name(f)));
    if (t) report_values(item, "values", t);
    tensor_unref(t);
}

static bool report_feature(void *arg, Str name, const ExampleFeature *f) {
    char *key = str_dup(name);
    report_feature_in(arg, key, f);
    free(key);
    return true;
}

static void report_list(void *arg, Str name, Str feature_list) {
    char *key = str_dup(name);
    cJSON *items = report_array(arg, key);
    free(key);
    WireReader r = wire_reader(feature_list);
    while (wire_next(&r)) {
        ExampleFeature f;
        if (r.field == 1 && r.type == WIRE_BYTES && feature_decode(r.bytes, &f) && feature_count(&f) >= 0)
            report_feature_in(items, NULL, &f);
    }
}

void record_report(cJSON *to, Str record) {
    RecordKind kind = kind_of(record);
    if (kind == RECORD_BYTES) {
        report_bytes(to, "data", record);
    } else if (kind == RECORD_EXAMPLE) {
        example_each(record, report_feature, report_object(to, "example"));
    } else {
        cJSON *item = report_object(to, "sequence_example");
        example_each(record, report_feature, report_object(item, "context"));
        each_list(record, report_list, report_object(item, "feature_lists"));
    }
}

/* ---- What records have in common ---- */

typedef struct SchemaFeature {
    Str name;
    const char *type; /* "mixed" when records differ */
    int64_t records, least, most;
} SchemaFeature;

struct RecordSchema {
    Arena *arena;
    StrMap by_name; /* to SchemaFeature */
    int64_t records, examples, sequences;
};

RecordSchema *record_schema_new(void) {
    RecordSchema *s = xcalloc(1, sizeof *s);
    s->arena = arena_new();
    return s;
}

void record_schema_free(RecordSchema *s) {
    strmap_clear(&s->by_name);
    arena_free(s->arena);
    free(s);
}

static void note(RecordSchema *s, Str name, const char *type, int64_t count) {
    SchemaFeature *f = strmap_get(&s->by_name, name);
    if (!f) {
        f = arena_calloc(s->arena, 1, sizeof *f);
        *f = (SchemaFeature){.name = arena_str(s->arena, name), .type = type, .least = count, .most = count};
        strmap_put(&s->by_name, f->name, f);
    }
    if (f->type != type) f->type = "mixed";
    f->records++;
    f->least = count < f->least ? count : f->least;
    f->most = count > f->most ? count : f->most;
}

static bool note_feature(void *arg, Str name, const ExampleFeature *f) {
    note(arg, name, type_name(f), feature_count(f));
    return true;
}

static void note_list(void *arg, Str name, Str feature_list) {
    WireReader r = wire_reader(feature_list);
    int64_t n = 0;
    while (wire_next(&r)) n += r.field == 1;
    note(arg, name, "sequence", n);
}

void record_schema_add(RecordSchema *s, Str record) {
    RecordKind kind = kind_of(record);
    s->records++;
    s->examples += kind == RECORD_EXAMPLE;
    s->sequences += kind == RECORD_SEQUENCE;
    if (kind == RECORD_BYTES) return;
    example_each(record, note_feature, s);
    if (kind == RECORD_SEQUENCE) each_list(record, note_list, s);
}

static int by_name(const void *a, const void *b) {
    return str_compare((*(SchemaFeature *const *)a)->name, (*(SchemaFeature *const *)b)->name);
}

/* In order of names, malloced. */
static SchemaFeature **sorted(const RecordSchema *s, size_t *count) {
    SchemaFeature **all = xcalloc(s->by_name.count + 1, sizeof *all);
    size_t at = 0;
    void *value;
    *count = 0;
    while (strmap_next(&s->by_name, &at, NULL, &value)) all[(*count)++] = value;
    qsort(all, *count, sizeof *all, by_name);
    return all;
}

void record_schema_print(const RecordSchema *s) {
    size_t count;
    SchemaFeature **all = sorted(s, &count);
    if (s->examples) printf("  %lld tf.train.Example\n", (long long)s->examples);
    if (s->sequences) printf("  %lld tf.train.SequenceExample\n", (long long)s->sequences);
    for (size_t i = 0; i < count; i++) {
        const SchemaFeature *f = all[i];
        printf("    %-32.*s %-8s %lld", STR_ARG(f->name), f->type, (long long)f->least);
        if (f->most != f->least) printf(" to %lld", (long long)f->most);
        printf(" values");
        if (f->records != s->records) printf(", in %lld records", (long long)f->records);
        putchar('\n');
    }
    free(all);
}

void record_schema_report(const RecordSchema *s, cJSON *to) {
    size_t count;
    SchemaFeature **all = sorted(s, &count);
    report_int(to, "examples", s->examples);
    report_int(to, "sequence_examples", s->sequences);
    cJSON *features = report_object(to, "features");
    for (size_t i = 0; i < count; i++) {
        char *name = str_dup(all[i]->name);
        cJSON *item = report_object(features, name);
        report_str(item, "type", str_of(all[i]->type));
        report_int(item, "records", all[i]->records);
        report_int(item, "least_values", all[i]->least);
        report_int(item, "most_values", all[i]->most);
        free(name);
    }
    free(all);
}
