/* sequence_reader.c: finds the columns that are asked for in a serialised SequenceExample. */
#include "ops/sequence_reader.h"

#include <stdio.h>
#include <stdlib.h>

int sequence_first_column(const SequenceState *s, int group) {
    int n = 0;
    for (int g = 0; g < group; g++) n += s->count[g];
    return n;
}

static DataType column_type(const SequenceState *s, int c) {
    for (int g = 0; g < GROUPS; g++) {
        if (c < s->count[g]) return s->types[g][c];
        c -= s->count[g];
    }
    return DT_INVALID;
}

Cell *sequence_cell(const Sequence *q, int64_t e, int c) {
    return &q->cells[e * q->columns + c];
}

static const char *name_of(const Sequence *q, int64_t e, char **owned) {
    *owned = q->names && q->names->count > e ? str_dup(tstring_str(&tensor_str(q->names)[e])) : NULL;
    return *owned && **owned ? *owned : "<unknown>";
}

/* What is wrong, and in which column of which example. */
static Error *place_error(const Sequence *q, int64_t e, int c, const char *what) {
    char *owned;
    const char *name = name_of(q, e, &owned);
    Error *err = error_invalid("Name: %s, %s: %.*s%s", name, c < q->context ? "Context feature" : "Feature list", STR_ARG(q->keys[c]), what);
    free(owned);
    return err;
}

Error *sequence_column_error(const Sequence *q, int64_t e, int c, const char *what) {
    return error_append(place_error(q, e, c, what), " (data type: %s)", dtype_name(column_type(q->s, c)));
}

Error *sequence_list_missing(const Sequence *q, int64_t e, int c) {
    char *owned;
    Error *err = error_invalid("Name: %s, Feature list '%.*s' is required but could not be found.  Did you mean to include it in feature_list_dense_missing_assumed_empty or "
                               "feature_list_dense_defaults?",
                               name_of(q, e, &owned), STR_ARG(q->keys[c]));
    free(owned);
    return err;
}

/* TensorFlow looks at the steps one by one only when the sum of their values is one of whole steps. */
Error *sequence_step_error(const Sequence *q, int64_t e, int c, int64_t step, int64_t count, const Shape *shape) {
    int64_t n = shape_count(shape), all = sequence_cell(q, e, c)->values;
    if (n == 0 || all % n) {
        Shape steps = *shape;
        shape_insert_dim(&steps, 0, -1);
        return error_invalid("Feature list '%.*s' has an unexpected number of values.  Total values size: %lld is not consistent with output shape: %s",
                             STR_ARG(q->keys[c]), (long long)all, shape_text(&steps).text);
    }
    char *owned;
    Error *err = error_invalid("Name: %s, Key: %.*s, Index: %lld.  Number of values != expected.  values size: %lld but output shape: %s",
                               name_of(q, e, &owned), STR_ARG(q->keys[c]), (long long)step, (long long)count, shape_text(shape).text);
    free(owned);
    return err;
}

bool sequence_next_step(WireReader *r, ExampleFeature *f) {
    while (wire_next(r)) {
        if (r->field != 1 || r->type != WIRE_BYTES) continue;
        *f = (ExampleFeature){0};
        if (!feature_decode(r->bytes, f)) r->failed = true;
        return !r->failed;
    }
    return false;
}

static Error *measure_list(const Sequence *q, int64_t e, int c) {
    Cell *cell = sequence_cell(q, e, c);
    WireReader r = wire_reader(cell->list);
    ExampleFeature f;
    while (sequence_next_step(&r, &f)) {
        if (f.type != DT_INVALID && f.type != column_type(q->s, c)) {
            char what[160];
            const char *want = dtype_name(column_type(q->s, c));
            if (str_starts(q->k->node->op, STR("ParseSequence"))) {
                snprintf(what, sizeof what, ", Index: %lld.  Data types don't match. Expected type: %s", (long long)cell->steps, want);
                return place_error(q, e, c, what);
            }
            snprintf(what, sizeof what, ", Index: %lld.  Data types don't match. Expected type: %s, Feature is: %s",
                     (long long)cell->steps, want, dtype_name(f.type));
            return sequence_column_error(q, e, c, what);
        }
        int64_t n = f.type == DT_INVALID ? 0 : feature_count(&f);
        if (n < 0) return sequence_column_error(q, e, c, " cannot be parsed");
        cell->steps++;
        cell->values += n;
        cell->most = n > cell->most ? n : cell->most;
    }
    return r.failed ? sequence_column_error(q, e, c, " cannot be parsed") : NULL;
}

static bool find_lists(const Sequence *q, int64_t e, Str lists) {
    WireReader r = wire_reader(lists);
    while (wire_next(&r)) {
        if (r.field != 1 || r.type != WIRE_BYTES) continue;
        WireReader entry = wire_reader(r.bytes);
        Str key = STR(""), value = STR("");
        while (wire_next(&entry)) {
            if (entry.type != WIRE_BYTES) continue;
            if (entry.field == 1) key = entry.bytes;
            if (entry.field == 2) value = entry.bytes;
        }
        uintptr_t c = (uintptr_t)strmap_get(&q->list_index, key);
        if (entry.failed) return false;
        if (c) sequence_cell(q, e, (int)c - 1)->list = value;
    }
    return !r.failed;
}

Error *sequence_read_example(const Sequence *q, int64_t e, ExampleFeature *found) {
    Str bytes = tstring_str(&tensor_str(q->serialized)[e]);
    WireReader r = wire_reader(bytes);
    bool ok = true;
    memset(found, 0, (size_t)q->context * sizeof *found);
    while (ok && wire_next(&r)) {
        if (r.type != WIRE_BYTES) continue;
        if (r.field == 1) ok = features_find(r.bytes, &q->context_index, found);
        if (r.field == 2) ok = find_lists(q, e, r.bytes);
    }
    if (!ok || r.failed) {
        char *owned;
        Error *err = error_invalid("Name: %s, Could not parse SequenceExample", name_of(q, e, &owned));
        free(owned);
        return err;
    }
    for (int c = 0; c < q->columns; c++) {
        Cell *cell = sequence_cell(q, e, c);
        if (c >= q->context) {
            Error *err = cell->list.ptr ? measure_list(q, e, c) : NULL;
            if (err) return err;
            continue;
        }
        cell->feature = found[c];
        if (found[c].type == DT_INVALID) continue;
        if (found[c].type != column_type(q->s, c)) {
            char what[80];
            snprintf(what, sizeof what, ".  Data types don't match. Expected type: %s", dtype_name(column_type(q->s, c)));
            return place_error(q, e, c, what);
        }
        cell->values = feature_count(&found[c]);
        if (cell->values < 0) return sequence_column_error(q, e, c, " cannot be parsed");
    }
    return NULL;
}
