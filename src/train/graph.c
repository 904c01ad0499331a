/* graph.c: RillGraph: its life, its mistakes, its scopes of names, devices and control. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "placement/device_name.h"
#include "train/graph_internal.h"

RillGraph *rill_graph_new(void) {
    RillGraph *g = xcalloc(1, sizeof *g);
    g->tf = TF_NewGraph();
    g->status = TF_NewStatus();
    return g;
}

static void device_scope_clear(DeviceScope *d) {
    free(d->device);
    free(d->ps_device);
    free(d->worker_device);
    free(d->ps_bytes);
}

void rill_graph_free(RillGraph *g) {
    if (!g) return;
    while (g->name_count) rill_name_pop(g);
    while (g->device_count) rill_device_pop(g);
    while (g->control_count) rill_control_pop(g);
    for (int i = 0; i < g->variable_count; i++) variable_free(g->variables[i]);
    for (int l = 0; l < LIST_COUNT; l++) {
        for (int i = 0; g->lists[l].free_object && i < g->lists[l].count; i++) g->lists[l].free_object(g->lists[l].items[i].object);
        free(g->lists[l].items);
    }
    size_t at = 0;
    Str key;
    while (strmap_next(&g->scope_uses, &at, &key, NULL)) free((char *)key.ptr);
    strmap_clear(&g->scope_uses);
    strmap_clear(&g->variables_by_name);
    free(g->variables);
    free(g->names);
    free(g->devices);
    free(g->controls);
    free(g->message);
    TF_DeleteStatus(g->status);
    TF_DeleteGraph(g->tf);
    free(g);
}

TF_Graph *rill_graph_tf(RillGraph *g) {
    return g->tf;
}

/* ---- Mistakes ---- */

bool rill_graph_failed(const RillGraph *g) {
    return g->code != TF_OK;
}

TF_Code rill_graph_code(const RillGraph *g) {
    return g->code;
}

const char *rill_graph_message(const RillGraph *g) {
    return g->message ? g->message : "";
}

void rill_graph_fail(RillGraph *g, TF_Code code, const char *format, ...) {
    if (g->code != TF_OK) return;
    char text[4096];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    g->code = code == TF_OK ? TF_UNKNOWN : code;
    g->message = xstrdup(text);
}

void graph_take_status(RillGraph *g, const char *doing) {
    if (TF_GetCode(g->status) != TF_OK) rill_graph_fail(g, TF_GetCode(g->status), "%s: %s", doing, TF_Message(g->status));
}

void graph_list_add(RillGraph *g, RillList list, RillListItem item) {
    g->lists[list].items = vec_reserve(g->lists[list].items, &g->lists[list].capacity, (size_t)g->lists[list].count + 1, sizeof item);
    g->lists[list].items[g->lists[list].count++] = item;
}

/* ---- Names ---- */

static const NameScope *top_name(const RillGraph *g) {
    static const NameScope none = {"", ""};
    return g->name_count ? &g->names[g->name_count - 1] : &none;
}

static void push_name(RillGraph *g, char *ops, char *variables) {
    g->names = vec_reserve(g->names, &g->name_capacity, (size_t)g->name_count + 1, sizeof *g->names);
    g->names[g->name_count++] = (NameScope){ops, variables};
}

void rill_name_push(RillGraph *g, const char *name) {
    char *ops = xasprintf("%s%s", top_name(g)->ops, name), *variables = xasprintf("%s%s/", top_name(g)->variables, name);
    intptr_t used = (intptr_t)strmap_get(&g->scope_uses, str_of(ops));
    if (used)
        strmap_put(&g->scope_uses, str_of(ops), (void *)(used + 1));
    else
        strmap_put(&g->scope_uses, str_of(xstrdup(ops)), (void *)1);
    char *full = used ? xasprintf("%s_%d/", ops, (int)used) : xasprintf("%s/", ops);
    free(ops);
    push_name(g, full, variables);
}

void graph_push_absolute(RillGraph *g, const char *scope) {
    push_name(g, xstrdup(scope), xstrdup(scope));
}

void rill_name_pop(RillGraph *g) {
    if (!g->name_count) {
        rill_graph_fail(g, TF_FAILED_PRECONDITION, "rill_name_pop without rill_name_push");
        return;
    }
    NameScope *n = &g->names[--g->name_count];
    free(n->ops);
    free(n->variables);
}

char *graph_op_name(RillGraph *g, const char *name) {
    char *full = xasprintf("%s%s", top_name(g)->ops, name);
    if (!TF_GraphOperationByName(g->tf, full)) return full;
    for (int i = 1;; i++) {
        char *next = xasprintf("%s_%d", full, i);
        if (!TF_GraphOperationByName(g->tf, next)) {
            free(full);
            return next;
        }
        free(next);
    }
}

char *graph_variable_name(const RillGraph *g, const char *name) {
    return xasprintf("%s%s", top_name(g)->variables, name);
}

/* ---- Devices ---- */

static DeviceScope *push_device(RillGraph *g) {
    g->devices = vec_reserve(g->devices, &g->device_capacity, (size_t)g->device_count + 1, sizeof *g->devices);
    DeviceScope *d = &g->devices[g->device_count++];
    *d = (DeviceScope){0};
    return d;
}

void rill_device_push(RillGraph *g, const char *device) {
    DeviceName parsed;
    Error *err = device_name_parse(str_of(device), &parsed);
    if (err) rill_graph_fail(g, (TF_Code)err->code, "%s", err->message);
    error_free(err);
    push_device(g)->device = xstrdup(device);
}

void rill_device_setter_push(RillGraph *g, const RillDeviceSetter *setter) {
    DeviceScope *d = push_device(g);
    d->setter = *setter;
    d->ps_device = xstrdup(setter->ps_device ? setter->ps_device : "/job:ps");
    d->worker_device = xstrdup(setter->worker_device ? setter->worker_device : "/job:worker");
    if (!d->setter.max_part_bytes) d->setter.max_part_bytes = 16 << 20;
    d->ps_bytes = xcalloc((size_t)(setter->ps_tasks > 0 ? setter->ps_tasks : 1), sizeof *d->ps_bytes);
}

void rill_device_pop(RillGraph *g) {
    if (g->device_count)
        device_scope_clear(&g->devices[--g->device_count]);
    else
        rill_graph_fail(g, TF_FAILED_PRECONDITION, "rill_device_pop without rill_device_push");
}

/* The task of the next variable. */
static int choose_ps(DeviceScope *d, int64_t bytes) {
    int task = d->next_ps;
    if (d->setter.round_robin)
        d->next_ps = (d->next_ps + 1) % d->setter.ps_tasks;
    else
        for (int i = task = 0; i < d->setter.ps_tasks; i++)
            if (d->ps_bytes[i] < d->ps_bytes[task]) task = i;
    d->ps_bytes[task] += bytes;
    return task;
}

/* Outer scopes give what inner ones do not say; variable_bytes < 0: not a variable. */
static char *merged_device(RillGraph *g, int64_t variable_bytes) {
    DeviceName merged = {0};
    Arena *arena = arena_new(); /* parsed names point into their texts */
    for (int i = 0; i < g->device_count; i++) {
        DeviceScope *d = &g->devices[i];
        Str own = str_of(d->device ? d->device : d->worker_device);
        if (!d->device && variable_bytes >= 0 && d->setter.ps_tasks > 0) own = arena_printf(arena, "%s/task:%d", d->ps_device, choose_ps(d, variable_bytes));
        DeviceName inner = {0};
        Error *err = device_name_parse(own, &inner);
        if (err) rill_graph_fail(g, (TF_Code)err->code, "%s", err->message);
        error_free(err);
        device_name_fill(&inner, &merged);
        merged = inner;
    }
    char *text = str_dup(device_name_text(arena, &merged));
    arena_free(arena);
    return text;
}

char *graph_op_device(RillGraph *g) {
    return merged_device(g, -1);
}

char *graph_variable_device(RillGraph *g, int64_t bytes, bool is_local) {
    return merged_device(g, is_local ? -1 : bytes);
}

int graph_variable_partitions(const RillGraph *g, int64_t bytes, int64_t rows) {
    for (int i = g->device_count - 1; i >= 0; i--) {
        const DeviceScope *d = &g->devices[i];
        if (d->device) continue;
        if (d->setter.max_part_bytes < 0 || d->setter.ps_tasks < 2 || bytes <= d->setter.max_part_bytes || rows < 2) return 1;
        int64_t parts = (bytes + d->setter.max_part_bytes - 1) / d->setter.max_part_bytes;
        if (parts < d->setter.ps_tasks) parts = d->setter.ps_tasks; /* all of them share the work */
        return (int)(parts < rows ? parts : rows);
    }
    return 1;
}

/* ---- Control ---- */

void rill_control_push(RillGraph *g, TF_Operation *const *after, int count) {
    g->controls = vec_reserve(g->controls, &g->control_capacity, (size_t)g->control_count + 1, sizeof *g->controls);
    ControlScope *c = &g->controls[g->control_count++];
    *c = (ControlScope){.ops = xcalloc((size_t)count + 1, sizeof *c->ops)};
    for (int i = 0; i < count; i++)
        if (after[i]) c->ops[c->count++] = after[i];
}

void rill_control_pop(RillGraph *g) {
    if (g->control_count)
        free(g->controls[--g->control_count].ops);
    else
        rill_graph_fail(g, TF_FAILED_PRECONDITION, "rill_control_pop without rill_control_push");
}
