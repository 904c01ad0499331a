/* implementation.c: which of the functions that implement the same thing is called.

   A FunctionDef may say what it implements (attribute api_implements) and for which kind of device it is meant (api_preferred_device); one that has
   a forward_function_name or backward_function_name is half of a pair and stays what it is. */
#include <strings.h>

#include "graph/function.h"
#include "proto/wire.h"

typedef struct Api {
    Str implements, device;
    bool is_half;
} Api;

static void read_attr(Str bytes, Api *api) {
    Str name = STR(""), value = STR(""), text;
    WireReader r = wire_reader(bytes);
    while (wire_next(&r)) {
        if (r.field == 1 && r.type == WIRE_BYTES) name = r.bytes;
        if (r.field == 2 && r.type == WIRE_BYTES) value = r.bytes;
    }
    if (!attr_string(value, &text)) return;
    if (str_is(name, "api_implements")) api->implements = text;
    if (str_is(name, "api_preferred_device")) api->device = text;
    if (str_is(name, "forward_function_name") || str_is(name, "backward_function_name")) api->is_half = true;
}

static Api read_api(const Function *f) {
    Api api = {0};
    WireReader r = wire_reader(f->def);
    while (wire_next(&r))
        if (r.field == 5 && r.type == WIRE_BYTES) read_attr(r.bytes, &api);
    return api;
}

static bool is_for(const Api *api, Str device_type) {
    return api->device.len == device_type.len && strncasecmp(api->device.ptr, device_type.ptr, device_type.len) == 0;
}

static bool same_args(const ArgInfo *a, int a_count, const ArgInfo *b, int b_count) {
    if (a_count != b_count) return false;
    for (int i = 0; i < a_count; i++)
        if (a[i].type != b[i].type || a[i].is_ref != b[i].is_ref || !str_eq(a[i].type_attr, b[i].type_attr) || !str_eq(a[i].number_attr, b[i].number_attr) ||
            !str_eq(a[i].type_list_attr, b[i].type_list_attr))
            return false;
    return true;
}

const Function *function_implementation(const FunctionLibrary *lib, const Function *f, Str device_type) {
    const Api api = read_api(f);
    if (!api.implements.len || api.is_half || is_for(&api, device_type)) return f;
    for (int i = 0; i < function_count(lib); i++) {
        const Function *other = function_at(lib, i);
        const Api its = read_api(other);
        if (its.is_half || !str_eq(its.implements, api.implements) || !is_for(&its, device_type)) continue;
        if (same_args(f->info->inputs, f->info->input_count, other->info->inputs, other->info->input_count) &&
            same_args(f->info->outputs, f->info->output_count, other->info->outputs, other->info->output_count))
            return other;
    }
    return f;
}
