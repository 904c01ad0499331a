/* report.c: JSON and text for the tools that look into files. */
#include "tools/report.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "tensor/json.h"

static void put(cJSON *to, const char *name, cJSON *item) {
    if (name)
        cJSON_AddItemToObject(to, name, item);
    else
        cJSON_AddItemToArray(to, item);
}

static void put_raw(cJSON *to, const char *name, StrBuf *text) {
    put(to, name, cJSON_CreateRaw(text->ptr ? text->ptr : "null"));
    strbuf_clear(text);
}

void report_int(cJSON *to, const char *name, int64_t v) {
    StrBuf text = {0};
    strbuf_addf(&text, "%lld", (long long)v);
    put_raw(to, name, &text);
}

void report_double(cJSON *to, const char *name, double v) {
    StrBuf text = {0};
    json_print_double(&text, v);
    put_raw(to, name, &text);
}

void report_str(cJSON *to, const char *name, Str v) {
    StrBuf text = {0};
    json_print_str(&text, v);
    put_raw(to, name, &text);
}

void report_bytes(cJSON *to, const char *name, Str v) {
    StrBuf text = {0};
    json_print_bytes(&text, v);
    put_raw(to, name, &text);
}

void report_shape(cJSON *to, const char *name, const PartialShape *v) {
    StrBuf text = {0};
    if (v->rank < 0) {
        strbuf_add(&text, STR("null"));
    } else {
        strbuf_addc(&text, '[');
        for (int d = 0; d < v->rank; d++) strbuf_addf(&text, "%s%lld", d ? ", " : "", (long long)v->dims[d]);
        strbuf_addc(&text, ']');
    }
    put_raw(to, name, &text);
}

void report_values(cJSON *to, const char *name, const Tensor *v) {
    StrBuf text = {0};
    json_print_tensor(&text, v);
    put_raw(to, name, &text);
}

cJSON *report_object(cJSON *to, const char *name) {
    cJSON *item = cJSON_CreateObject();
    put(to, name, item);
    return item;
}

cJSON *report_array(cJSON *to, const char *name) {
    cJSON *item = cJSON_CreateArray();
    put(to, name, item);
    return item;
}

void report_print(cJSON *take) {
    char *text = cJSON_Print(take);
    puts(text);
    cJSON_free(text);
    cJSON_Delete(take);
}

void report_print_line(cJSON *take) {
    char *text = cJSON_PrintUnformatted(take);
    puts(text);
    fflush(stdout);
    cJSON_free(text);
    cJSON_Delete(take);
}

char *report_size(uint64_t bytes) {
    static const char *const units[] = {"KiB", "MiB", "GiB", "TiB", "PiB"};
    if (bytes < 1024) return xasprintf("%llu B", (unsigned long long)bytes);
    double v = (double)bytes / 1024;
    int unit = 0;
    for (; v >= 1024 && unit < 4; unit++) v /= 1024;
    return xasprintf("%.1f %s", v, units[unit]);
}

char *report_type(DataType dtype, const PartialShape *shape) {
    char *text = shape_str(shape), *whole = xasprintf("%s%s", dtype ? dtype_name(dtype) : "?", text);
    free(text);
    return whole;
}

int64_t report_ends(const Tensor *t, bool all) {
    return all || t->count <= 1000 ? -1 : 3;
}
