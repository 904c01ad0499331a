/* device_name.c: parsing, matching and merging device names. */
#include "placement/device_name.h"

#include <stdlib.h>
#include <strings.h>

static bool parse_number(Str text, int *value, bool *has) {
    if (str_is(text, "*")) {
        *has = false;
        return true;
    }
    int64_t number;
    if (!text.len || !str_to_int64(text, &number) || number < 0 || number > 1 << 30) return false;
    *value = (int)number;
    *has = true;
    return true;
}

static bool valid_word(Str text) {
    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];
        bool ok = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (i && ((c >= '0' && c <= '9') || c == '_'));
        if (!ok) return false;
    }
    return text.len > 0;
}

/* "CPU:0", "CPU:*" or "CPU". */
static bool parse_type(Str text, DeviceName *out) {
    Str rest = text;
    Str type = str_next(&rest, ':');
    if (str_is(type, "*")) {
        out->has_type = false;
    } else {
        if (!valid_word(type)) return false;
        out->type = type;
        out->has_type = true;
    }
    return rest.len == 0 || parse_number(rest, &out->id, &out->has_id);
}

static bool parse_part(Str part, DeviceName *out) {
    Str rest = part;
    Str key = str_next(&rest, ':');
    if (str_is(key, "job")) {
        out->has_job = !str_is(rest, "*");
        out->job = rest;
        return !out->has_job || valid_word(rest);
    }
    if (str_is(key, "replica")) return parse_number(rest, &out->replica, &out->has_replica);
    if (str_is(key, "task")) return parse_number(rest, &out->task, &out->has_task);
    if (str_is(key, "device")) return parse_type(rest, out);
    static const char *const short_forms[] = {"cpu", "gpu", "CPU", "GPU", "TPU", "tpu"};
    for (size_t i = 0; i < sizeof short_forms / sizeof short_forms[0]; i++)
        if (str_is(key, short_forms[i])) return rest.len && parse_type(part, out);
    return false;
}

Error *device_name_parse(Str text, DeviceName *out) {
    *out = (DeviceName){0};
    Str rest = text;
    if (text.len && !str_is(text, "/")) {
        if (text.ptr[0] != '/') return error_invalid("Malformed device specification '%.*s'", STR_ARG(text));
        rest = str_slice(text, 1, text.len);
        while (rest.len)
            if (!parse_part(str_next(&rest, '/'), out)) return error_invalid("Malformed device specification '%.*s'", STR_ARG(text));
    }
    return NULL;
}

static bool type_eq(Str a, Str b) {
    return a.len == b.len && strncasecmp(a.ptr, b.ptr, a.len) == 0;
}

bool device_name_matches(const DeviceName *p, const DeviceName *d) {
    return (!p->has_job || (d->has_job && str_eq(p->job, d->job))) && (!p->has_replica || (d->has_replica && p->replica == d->replica)) &&
           (!p->has_task || (d->has_task && p->task == d->task)) && (!p->has_type || (d->has_type && type_eq(p->type, d->type))) &&
           (!p->has_id || (d->has_id && p->id == d->id));
}

bool device_name_eq(const DeviceName *a, const DeviceName *b) {
    return device_name_matches(a, b) && device_name_matches(b, a);
}

bool device_name_merge(DeviceName *into, const DeviceName *from, bool soft) {
    DeviceName merged = *into;
    if (merged.has_job && from->has_job && !str_eq(merged.job, from->job)) return false;
    if (merged.has_replica && from->has_replica && merged.replica != from->replica) return false;
    if (merged.has_task && from->has_task && merged.task != from->task) return false;
    bool type_clash = merged.has_type && from->has_type && !type_eq(merged.type, from->type);
    bool id_clash = merged.has_id && from->has_id && merged.id != from->id;
    if ((type_clash || id_clash) && !soft) return false;
    device_name_fill(&merged, from);
    if (type_clash) merged.has_type = merged.has_id = false;
    if (id_clash) merged.has_id = false;
    *into = merged;
    return true;
}

void device_name_fill(DeviceName *into, const DeviceName *from) {
    if (!into->has_job && from->has_job) {
        into->job = from->job;
        into->has_job = true;
    }
    if (!into->has_replica && from->has_replica) {
        into->replica = from->replica;
        into->has_replica = true;
    }
    if (!into->has_task && from->has_task) {
        into->task = from->task;
        into->has_task = true;
    }
    if (!into->has_type && from->has_type) {
        into->type = from->type;
        into->has_type = true;
    }
    if (!into->has_id && from->has_id) {
        into->id = from->id;
        into->has_id = true;
    }
}

Str device_name_text(Arena *arena, const DeviceName *d) {
    StrBuf b = {0};
    if (d->has_job) strbuf_addf(&b, "/job:%.*s", STR_ARG(d->job));
    if (d->has_replica) strbuf_addf(&b, "/replica:%d", d->replica);
    if (d->has_task) strbuf_addf(&b, "/task:%d", d->task);
    if (d->has_type || d->has_id) {
        strbuf_add(&b, STR("/device:"));
        if (d->has_type)
            for (size_t i = 0; i < d->type.len; i++) {
                char c = d->type.ptr[i];
                strbuf_addc(&b, c >= 'a' && c <= 'z' ? (char)(c - 'a' + 'A') : c);
            }
        else
            strbuf_addc(&b, '*');
        if (d->has_id)
            strbuf_addf(&b, ":%d", d->id);
        else
            strbuf_add(&b, STR(":*"));
    }
    Str text = arena_str(arena, strbuf_str(&b));
    strbuf_clear(&b);
    return text;
}

Str device_task_text(Str full_name) {
    for (size_t i = full_name.len; i > 0; i--)
        if (full_name.ptr[i - 1] == '/') return str_slice(full_name, 0, i - 1);
    return full_name;
}
