/* op_list.c: which ops and kernels the library has, as OpList and KernelList. */
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/memory.h"
#include "capi/graph_internal.h"
#include "capi/op_list_internal.h"
#include "capi/status_internal.h"
#include "proto/wire.h"
#include "runtime/kernel.h"

static void put_nested(StrBuf *out, uint32_t field, StrBuf *nested) {
    wire_put_bytes(out, field, strbuf_str(nested));
    strbuf_clear(nested);
}

/* ---- OpDef: name=1 input_arg=2 output_arg=3 attr=4 is_aggregate=16 is_stateful=17 is_commutative=18 allows_uninitialized_input=19 ---- */

static void put_arg(StrBuf *out, uint32_t field, const ArgInfo *arg) {
    StrBuf b = {0};
    wire_put_bytes(&b, 1, arg->name);
    if (arg->type != DT_INVALID) wire_put_uint(&b, 3, (uint64_t)arg->type);
    if (arg->type_attr.len) wire_put_bytes(&b, 4, arg->type_attr);
    if (arg->number_attr.len) wire_put_bytes(&b, 5, arg->number_attr);
    if (arg->type_list_attr.len) wire_put_bytes(&b, 6, arg->type_list_attr);
    if (arg->is_ref) wire_put_uint(&b, 16, 1);
    put_nested(out, field, &b);
}

/* AttrValue with a list of what is allowed: s=2 and type=6 of list=1. */
static void put_allowed(StrBuf *out, const AttrInfo *attr) {
    StrBuf list = {0}, value = {0};
    Str rest = attr->allowed_strings;
    while (rest.len) {
        Str item = str_trim(str_next(&rest, ','));
        if (item.len >= 2) wire_put_bytes(&list, 2, str_slice(item, 1, item.len - 1));
    }
    for (int t = 1; t < DT_COUNT; t++)
        if (attr->allowed_types >> t & 1) wire_put_uint(&list, 6, (uint64_t)t);
    put_nested(&value, 1, &list);
    put_nested(out, 7, &value);
}

static void put_attr(StrBuf *out, const AttrInfo *attr) {
    StrBuf b = {0};
    wire_put_bytes(&b, 1, attr->name);
    wire_put_bytes(&b, 2, attr->type);
    if (attr->default_value.ptr) wire_put_bytes(&b, 3, attr->default_value);
    if (attr->has_minimum) wire_put_uint(&b, 5, 1);
    if (attr->has_minimum && attr->minimum) wire_put_uint(&b, 6, (uint64_t)attr->minimum);
    if (attr->allowed_types || attr->allowed_strings.len) put_allowed(&b, attr);
    put_nested(out, 4, &b);
}

void op_def_encode(const OpInfo *op, StrBuf *out) {
    wire_put_bytes(out, 1, op->name);
    for (int i = 0; i < op->input_count; i++) put_arg(out, 2, &op->inputs[i]);
    for (int i = 0; i < op->output_count; i++) put_arg(out, 3, &op->outputs[i]);
    for (int i = 0; i < op->attr_count; i++) put_attr(out, &op->attrs[i]);
    if (op->flags & OP_AGGREGATE) wire_put_uint(out, 16, 1);
    if (op->flags & OP_STATEFUL) wire_put_uint(out, 17, 1);
    if (op->flags & OP_COMMUTATIVE) wire_put_uint(out, 18, 1);
    if (op->flags & OP_UNINITIALIZED_INPUT) wire_put_uint(out, 19, 1);
}

static TF_Buffer *buffer_of(StrBuf *take) {
    TF_Buffer *b = TF_NewBuffer();
    error_free(buffer_fill(b, take)); /* it is empty: cannot fail */
    return b;
}

TF_Buffer *TF_GetAllOpList(void) {
    capi_init();
    StrBuf list = {0};
    for (int i = 0; i < op_count(); i++) {
        StrBuf op = {0};
        op_def_encode(op_at(i), &op);
        put_nested(&list, 1, &op);
    }
    return buffer_of(&list);
}

/* ---- KernelDef: op=1 device_type=2 constraint=3 (AttrConstraint: name=1 allowed_values=2) ---- */

static void put_kernel(StrBuf *out, const KernelDef *kernel) {
    StrBuf b = {0}, types = {0};
    wire_put_bytes(&b, 1, str_of(kernel->op));
    wire_put_bytes(&b, 2, STR("CPU"));
    for (int t = 1; !kernel->run && t < DT_COUNT; t++)
        if (kernel->by_type[t]) wire_put_uint(&types, 6, (uint64_t)t);
    if (types.len) {
        StrBuf value = {0}, constraint = {0};
        put_nested(&value, 1, &types);
        wire_put_bytes(&constraint, 1, str_of(kernel->type_attr ? kernel->type_attr : "T"));
        put_nested(&constraint, 2, &value);
        put_nested(&b, 3, &constraint);
    }
    put_nested(out, 1, &b);
}

static TF_Buffer *kernels_of(const char *op, TF_Status *status) {
    capi_init();
    StrBuf list = {0};
    for (int i = 0; i < kernel_count(); i++)
        if (!op || strcmp(kernel_at(i)->op, op) == 0) put_kernel(&list, kernel_at(i));
    status_take(status, NULL);
    return buffer_of(&list);
}

TF_Buffer *TF_GetAllRegisteredKernels(TF_Status *status) {
    return kernels_of(NULL, status);
}

TF_Buffer *TF_GetRegisteredKernelsForOp(const char *name, TF_Status *status) {
    return kernels_of(name, status);
}

/* ---- Libraries of ops: none ---- */

TF_Library *TF_LoadLibrary(const char *library_filename, TF_Status *status) {
    status_take(status, error_unimplemented("%s is not loaded: all ops of Rill are part of it, none loads code", library_filename));
    return NULL;
}

TF_Buffer TF_GetOpList(TF_Library *lib_handle) {
    (void)lib_handle;
    return (TF_Buffer){NULL, 0, NULL};
}

void TF_DeleteLibraryHandle(TF_Library *lib_handle) {
    (void)lib_handle;
}

void TF_RegisterFilesystemPlugin(const char *plugin_filename, TF_Status *status) {
    status_take(status, error_unimplemented("%s is not loaded: all file systems of Rill are part of it", plugin_filename));
}

void TF_RegisterLogListener(void (*listener)(const char *)) {
    log_set_listener(listener);
}
