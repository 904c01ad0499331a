/* function.c: TF_Function: made of a graph or read from a FunctionDef, and given to graphs. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "capi/function_internal.h"
#include "capi/status_internal.h"
#include "proto/wire.h"

static TF_Function *function_new(char *take_name, StrBuf *take_def) {
    TF_Function *f = xcalloc(1, sizeof *f);
    f->name = take_name;
    f->def = *take_def;
    return f;
}

void TF_DeleteFunction(TF_Function *f) {
    if (!f) return;
    free(f->name);
    strbuf_clear(&f->def);
    free(f);
}

TF_Function *TF_GraphToFunctionWithControlOutputs(const TF_Graph *fn_body, const char *fn_name, unsigned char append_hash_to_fn_name, int num_opers,
                                                  const TF_Operation *const *opers, int ninputs, const TF_Output *inputs, int noutputs, const TF_Output *outputs,
                                                  const char *const *output_names, int ncontrol_outputs, const TF_Operation *const *control_outputs,
                                                  const char *const *control_output_names, const TF_FunctionOptions *opts, const char *description, TF_Status *status) {
    (void)opts; /* there are none */
    FunctionSpec spec = {
        .graph = fn_body,
        .name = str_of(fn_name),
        .description = str_of(description),
        .append_hash = append_hash_to_fn_name != 0,
        .opers = num_opers < 0 ? NULL : opers ? opers : (const TF_Operation *const[1]){NULL},
        .oper_count = num_opers,
        .inputs = inputs,
        .outputs = outputs,
        .input_count = ninputs,
        .output_count = noutputs,
        .output_names = output_names,
        .control_outputs = control_outputs,
        .control_output_count = ncontrol_outputs,
        .control_output_names = control_output_names,
    };
    StrBuf def = {0};
    char *name = NULL;
    pthread_mutex_t *mutex = &((TF_Graph *)fn_body)->mutex;
    pthread_mutex_lock(mutex);
    Error *err = function_def_of_graph(&spec, &def, &name);
    pthread_mutex_unlock(mutex);
    if (status_take(status, err)) return function_new(name, &def);
    strbuf_clear(&def);
    return NULL;
}

TF_Function *TF_GraphToFunction(const TF_Graph *fn_body, const char *fn_name, unsigned char append_hash_to_fn_name, int num_opers, const TF_Operation *const *opers, int ninputs,
                                const TF_Output *inputs, int noutputs, const TF_Output *outputs, const char *const *output_names, const TF_FunctionOptions *opts,
                                const char *description, TF_Status *status) {
    return TF_GraphToFunctionWithControlOutputs(fn_body, fn_name, append_hash_to_fn_name, num_opers, opers, ninputs, inputs, noutputs, outputs, output_names, 0, NULL, NULL, opts,
                                                description, status);
}

const char *TF_FunctionName(TF_Function *f) {
    return f->name;
}

void TF_FunctionToFunctionDef(TF_Function *f, TF_Buffer *output_func_def, TF_Status *status) {
    StrBuf copy = {0};
    strbuf_add(&copy, strbuf_str(&f->def));
    status_take(status, buffer_fill(output_func_def, &copy));
}

/* FunctionDef: signature=1 (OpDef: name=1). */
static Str name_of(Str def, bool *is_valid) {
    Str name = STR("");
    WireReader r = wire_reader(def);
    while (wire_next(&r)) {
        if (r.field != 1 || r.type != WIRE_BYTES) continue;
        WireReader signature = wire_reader(r.bytes);
        while (wire_next(&signature))
            if (signature.field == 1 && signature.type == WIRE_BYTES) name = signature.bytes;
    }
    *is_valid = !r.failed;
    return name;
}

TF_Function *TF_FunctionImportFunctionDef(const void *proto, size_t proto_len, TF_Status *status) {
    Str bytes = {proto, proto_len};
    bool is_valid;
    Str name = name_of(bytes, &is_valid);
    if (!is_valid) {
        status_take(status, error_invalid("Invalid FunctionDef given to TF_FunctionImportFunctionDef"));
        return NULL;
    }
    StrBuf def = {0};
    strbuf_add(&def, bytes);
    status_take(status, NULL);
    return function_new(str_dup(name), &def);
}

/* ---- Attributes: attr=5, a map from name to AttrValue; the last entry of a name counts ---- */

static bool read_entry(Str bytes, Str *key, Str *value) {
    *key = *value = STR("");
    WireReader r = wire_reader(bytes);
    while (wire_next(&r)) {
        if (r.field == 1 && r.type == WIRE_BYTES) *key = r.bytes;
        if (r.field == 2 && r.type == WIRE_BYTES) *value = r.bytes;
    }
    return !r.failed;
}

void TF_FunctionSetAttrValueProto(TF_Function *f, const char *attr_name, const void *proto, size_t proto_len, TF_Status *status) {
    Str value = {proto, proto_len};
    WireReader r = wire_reader(value);
    while (wire_next(&r)) continue;
    if (r.failed) {
        status_take(status, error_invalid("Unparseable AttrValue proto passed to TF_FunctionSetAttrValueProto"));
        return;
    }
    StrBuf entry = {0};
    wire_put_bytes(&entry, 1, str_of(attr_name));
    wire_put_bytes(&entry, 2, value);
    wire_put_bytes(&f->def, 5, strbuf_str(&entry));
    strbuf_clear(&entry);
    status_take(status, NULL);
}

void TF_FunctionGetAttrValueProto(TF_Function *f, const char *attr_name, TF_Buffer *output_attr_value, TF_Status *status) {
    StrBuf found = {0};
    bool is_found = false;
    WireReader r = wire_reader(strbuf_str(&f->def));
    while (wire_next(&r)) {
        Str key, value;
        if (r.field != 5 || r.type != WIRE_BYTES || !read_entry(r.bytes, &key, &value) || !str_is(key, attr_name)) continue;
        found.len = 0;
        strbuf_add(&found, value);
        is_found = true;
    }
    if (is_found)
        status_take(status, buffer_fill(output_attr_value, &found));
    else
        status_take(status, error_invalid("Function '%s' has no attr named '%s'.", f->name, attr_name));
}

/* ---- Functions of a graph ---- */

static Error *add_function(TF_Graph *g, const TF_Function *f) {
    StrBuf library = {0};
    wire_put_bytes(&library, 1, strbuf_str(&f->def));
    Error *err = function_library_add(g->functions, strbuf_str(&library));
    strbuf_clear(&library);
    return err;
}

void TF_GraphCopyFunction(TF_Graph *g, const TF_Function *func, const TF_Function *grad, TF_Status *status) {
    if (!func) {
        status_take(status, error_invalid("'func' argument to TF_GraphCopyFunction cannot be null"));
        return;
    }
    pthread_mutex_lock(&g->mutex);
    Error *err = grad ? function_set_gradient(g->functions, str_of(func->name), str_of(grad->name)) : NULL;
    if (!err) err = add_function(g, func);
    if (!err && grad) err = add_function(g, grad);
    pthread_mutex_unlock(&g->mutex);
    status_take(status, err);
}

int TF_GraphNumFunctions(TF_Graph *g) {
    pthread_mutex_lock(&g->mutex);
    int count = function_count(g->functions);
    pthread_mutex_unlock(&g->mutex);
    return count;
}

int TF_GraphGetFunctions(TF_Graph *g, TF_Function **funcs, int max_func, TF_Status *status) {
    pthread_mutex_lock(&g->mutex);
    int count = function_count(g->functions);
    if (count > max_func) count = max_func;
    for (int i = 0; i < count; i++) {
        const Function *f = function_at(g->functions, i);
        StrBuf def = {0};
        strbuf_add(&def, f->def);
        funcs[i] = function_new(str_dup(f->name), &def);
    }
    pthread_mutex_unlock(&g->mutex);
    status_take(status, NULL);
    return count;
}
