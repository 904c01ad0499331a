/* kernel.c: the registry of kernels, and what kernels ask of their context. */
#include "runtime/kernel.h"

#include <ctype.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/hashmap.h"
#include "base/log.h"
#include "base/memory.h"
#include "runtime/device.h"
#include "runtime/session_state.h"
#include "runtime/step_context.h"

/* Filled once by kernel_registry_init and constant afterwards. */
static struct {
    StrMap by_op;
    const KernelDef **kernels;
    int count;
    size_t capacity;
} registry;

void kernel_registry_init(const KernelDef *const *tables, int table_count) {
    for (int i = 0; i < table_count; i++) {
        for (const KernelDef *def = tables[i]; def->op; def++) {
            if (strmap_put(&registry.by_op, str_of(def->op), (void *)def)) log_error("kernel of %s is registered twice", def->op);
            registry.kernels = vec_reserve(registry.kernels, &registry.capacity, (size_t)registry.count + 1, sizeof *registry.kernels);
            registry.kernels[registry.count++] = def;
        }
    }
}

const KernelDef *kernel_of(Str op) {
    return strmap_get(&registry.by_op, op);
}

bool kernel_exists(Str op) {
    return kernel_of(op) != NULL;
}

bool kernel_has(const Node *node) {
    const KernelDef *found = strmap_get(&registry.by_op, node->op);
    if (!found || found->run) return found != NULL;
    Str value;
    DataType type = DT_INVALID;
    return node_attr(node, found->type_attr ? found->type_attr : "T", &value) && attr_type(value, &type) && found->by_type[dtype_base(type)];
}

int kernel_count(void) {
    return registry.count;
}

const KernelDef *kernel_at(int i) {
    return registry.kernels[i];
}

/* "float" is DT_FLOAT in messages. */
static void add_type(StrBuf *b, DataType type) {
    strbuf_add(b, STR("DT_"));
    for (const char *c = dtype_name(type); *c; c++) strbuf_addc(b, (char)toupper((unsigned char)*c));
}

static Error *no_kernel(const Node *node, const KernelDef *def, DataType type) {
    StrBuf known = {0};
    Str value;
    const char *attr = def && def->type_attr ? def->type_attr : node_attr(node, "T", &value) ? "T" : "dtype";
    strbuf_addf(&known, "[%s=", attr);
    add_type(&known, type);
    strbuf_add(&known, STR("]\nRegistered devices: [CPU]\n"));
    if (def && !def->run) strbuf_add(&known, STR("Registered kernels:\n"));
    for (int t = 1; def && t < DT_COUNT; t++) {
        if (!def->by_type[t]) continue;
        strbuf_addf(&known, "  device='CPU'; %s in [", attr);
        add_type(&known, (DataType)t);
        strbuf_add(&known, STR("]\n"));
    }
    Error *err =
        def ? error_invalid("No OpKernel was registered to support Op '%.*s' used by {{node %.*s}} with these attrs: %s", STR_ARG(node->op),
                            STR_ARG(node->name), strbuf_str(&known).ptr)
            : error_invalid("No OpKernel was registered to support Op '%.*s' used by {{node %.*s}}; the most similar op here is '%.*s'", STR_ARG(node->op),
                            STR_ARG(node->name), STR_ARG(op_nearest(node->op)));
    strbuf_clear(&known);
    return err;
}

Error *kernel_lacks_type(const Node *node, DataType type) {
    return no_kernel(node, kernel_of(node->op), dtype_base(type));
}

Error *kernel_find(const Node *node, const KernelDef **def, KernelFn **run) {
    const KernelDef *found = strmap_get(&registry.by_op, node->op);
    if (!found) return no_kernel(node, NULL, DT_INVALID);
    *def = found;
    *run = found->run;
    if (found->run) return NULL;
    DataType type;
    Error *err = node_attr_type(node, found->type_attr ? found->type_attr : "T", &type);
    if (err) return err;
    *run = found->by_type[dtype_base(type)];
    return *run ? NULL : no_kernel(node, found, type);
}

/* ---- Outputs ---- */

DataType kernel_output_type(const KernelContext *k, int i) {
    return dtype_base(k->node->output_types[i]);
}

void step_context_clear(StepContext *c) {
    ResourceManager *made = atomic_load(&c->step_resources);
    if (made) resource_manager_free(made);
}

static void keep_error(KernelContext *k, Error *err) {
    if (k->error)
        error_free(err);
    else
        k->error = err;
}

void kernel_set_output(KernelContext *k, int i, Tensor *take) {
    tensor_unref(k->out[i]);
    k->out[i] = take;
}

Tensor *kernel_scratch(KernelContext *k, DataType dtype, const Shape *shape) {
    if (k->error) return NULL;
    Tensor *t = NULL;
    bool too_large = k->output_limit && shape_count(shape) > (int64_t)(k->output_limit / dtype_size(dtype));
    Error *err = too_large ? error_new(CODE_RESOURCE_EXHAUSTED, "The result of {{node %.*s}} is larger than %zu bytes", STR_ARG(k->node->name), k->output_limit)
                           : k->device->kind->allocate(k->device, dtype, shape, &t);
    if (err) keep_error(k, err);
    return t;
}

Tensor *kernel_output(KernelContext *k, int i, const Shape *shape) {
    Tensor *t = kernel_scratch(k, kernel_output_type(k, i), shape);
    if (t) kernel_set_output(k, i, t);
    return t;
}

Tensor *kernel_output_from(KernelContext *k, int i, int in, const Shape *shape) {
    Tensor *t = k->in[in];
    DataType type = kernel_output_type(k, i);
    if (k->error || !t || k->ref[in] || !tensor_is_unique(t) || !dtype_is_plain(type) || !dtype_is_plain(t->dtype) ||
        dtype_size(type) != dtype_size(t->dtype) || t->count != shape_count(shape))
        return kernel_output(k, i, shape);
    if (k->step && k->step->stats) step_stats_add_forwarded(k->step->stats);
    if (t->dtype == type && (&t->shape == shape || shape_eq(&t->shape, shape))) {
        kernel_set_output(k, i, tensor_ref(t));
        return t;
    }
    Tensor *alias = tensor_alias(t, type, shape);
    kernel_set_output(k, i, alias);
    return alias;
}

void kernel_set_output_ref(KernelContext *k, int i, Variable *v) {
    resource_ref(&v->base);
    if (k->out_ref[i]) resource_unref(&k->out_ref[i]->base);
    k->out_ref[i] = v;
}

/* ---- Small integers ---- */

Error *kernel_shape_input(KernelContext *k, int i, Shape *out) {
    const Tensor *t = k->in[i];
    if (t->shape.rank != 1) {
        char *text = shape_str(&t->shape);
        Error *err = error_invalid("shape must be a vector of {int32,int64}, got shape %s", text);
        free(text);
        return err;
    }
    if (t->count > SHAPE_MAX_RANK) return error_invalid("Shapes of %lld dimensions are not supported", (long long)t->count);
    Shape s = {.rank = (int)t->count};
    for (int d = 0; d < s.rank; d++) s.dims[d] = tensor_index(t, d);
    Error *err = shape_check(&s);
    if (!err) *out = s;
    return err;
}

Error *kernel_scalar_int(KernelContext *k, int i, int64_t *out) {
    const Tensor *t = k->in[i];
    if (t->count != 1 || (t->dtype != DT_INT32 && t->dtype != DT_INT64)) {
        char *text = shape_str(&t->shape);
        Error *err = error_invalid("Input %d must be a scalar integer, got %s of shape %s", i, dtype_name(t->dtype), text);
        free(text);
        return err;
    }
    *out = tensor_index(t, 0);
    return NULL;
}

Error *kernel_axis(int64_t axis, int rank, int *out) {
    if (axis < -rank || axis >= rank)
        return error_invalid("Expected dimension in the range [%d, %d), but got %lld", -rank, rank, (long long)axis);
    *out = (int)(axis < 0 ? axis + rank : axis);
    return NULL;
}

/* ---- Resources ---- */

ResourceManager *kernel_resources(KernelContext *k) {
    return session_resources(k->step->session, k->device);
}

ResourceManager *kernel_step_resources(KernelContext *k) {
    ResourceManager *made = atomic_load(&k->step->step_resources), *none = NULL;
    if (made) return made;
    made = resource_manager_new(STR("__per_step"));
    if (atomic_compare_exchange_strong(&k->step->step_resources, &none, made)) return made;
    resource_manager_free(made); /* another kernel was faster */
    return none;
}

Cancel *kernel_cancel(KernelContext *k) {
    return k->step->cancel;
}

int64_t kernel_step_id(const KernelContext *k) {
    return k->step->step_id;
}

static Error *check_handle(KernelContext *k, const ResourceHandle *h, const ResourceType *type) {
    if (*h->device && !str_is(str_of(h->device), k->device->name))
        return error_invalid("Trying to access resource %s located in device %s from device %s", h->name, h->device, k->device->name);
    if (*h->type_name && !str_is(str_of(h->type_name), type->type_name))
        return error_invalid("Trying to access a handle's resource using the wrong type. The handle points to a resource (name '%s') of type "
                             "'%s' but you are trying to access the resource as type '%s'",
                             h->name, h->type_name, type->type_name);
    return NULL;
}

/* Of the session, else of the step. */
static Error *find_named(KernelContext *k, Str container, Str name, const ResourceType *type, Resource **out) {
    Error *err = resource_find(kernel_resources(k), container, name, type, out);
    if (!err || err->code != CODE_NOT_FOUND || !kernel_step_resources(k)) return err;
    Error *again = resource_find(kernel_step_resources(k), container, name, type, out);
    if (!again) {
        error_free(err);
        return NULL;
    }
    error_free(again);
    return err;
}

Error *kernel_resource(KernelContext *k, int i, const ResourceType *type, Resource **out) {
    Tensor *t = k->in[i];
    Tensor *held = NULL;
    if (!t && k->ref[i]) t = held = variable_read(k->ref[i]);
    Error *err = NULL;
    if (!t) {
        err = error_internal("Input %d has no handle", i);
    } else if (t->dtype == DT_STRING && t->count == 2) {
        err = find_named(k, tstring_str(&tensor_str(t)[0]), tstring_str(&tensor_str(t)[1]), type, out);
    } else if (t->dtype != DT_RESOURCE || t->count < 1 || !tensor_handles(t)[0]) {
        err = error_invalid("Input %d is not a handle to a %s", i, type->what);
    } else {
        const ResourceHandle *h = tensor_handles(t)[0];
        err = check_handle(k, h, type);
        if (!err && h->direct) {
            *out = h->direct;
            resource_ref(*out);
        } else if (!err) {
            err = find_named(k, str_of(h->container), str_of(h->name), type, out);
        }
    }
    tensor_unref(held);
    return err;
}

Tensor *kernel_make_handle(KernelContext *k, Str container, Str name, const ResourceType *type) {
    Tensor *t = kernel_scratch(k, DT_RESOURCE, &SHAPE_SCALAR);
    if (!t) return NULL;
    if (!container.len) container = resource_default_container(kernel_resources(k));
    ResourceHandle *h = resource_handle_new(str_of(k->device->name), container, name, str_of(type->type_name));
    h->hash_code = str_hash(str_of(type->type_name));
    tensor_handles(t)[0] = h;
    return t;
}

void kernel_set_handle(KernelContext *k, Str container, Str name, const ResourceType *type) {
    if (kernel_output_type(k, 0) != DT_STRING) {
        kernel_set_output(k, 0, kernel_make_handle(k, container, name, type));
        return;
    }
    Shape pair = shape_vector(2);
    Tensor *t = kernel_output(k, 0, &pair);
    if (!t) return;
    tstring_set(&tensor_str(t)[0], container);
    tstring_set(&tensor_str(t)[1], name);
}

typedef struct CreateArg {
    KernelContext *k;
    Str name;
    OwnResourceCreate *create;
} CreateArg;

static Error *create_own(void *arg, Resource **out) {
    CreateArg *a = arg;
    return a->create(a->k, a->name, out);
}

Error *kernel_own_resource(KernelContext *k, const ResourceType *type, bool node_name_shared, OwnResourceCreate *create, Resource **out) {
    Str container = STR(""), name = STR(""), value;
    if (node_attr(k->node, "container", &value)) attr_string(value, &container);
    if (node_attr(k->node, "shared_name", &value)) attr_string(value, &name);
    if (!name.len && node_name_shared) name = k->node->name;
    if (!name.len) name = session_private_name(k->step->session, k->device, k->node->name, type);
    ResourceManager *m = kernel_resources(k);
    if (!container.len) container = resource_default_container(m);
    CreateArg arg = {k, name, create};
    Resource *r = NULL;
    Error *err = resource_find_or_create(m, container, name, type, create_own, &arg, &r);
    if (err) return err;
    kernel_set_handle(k, container, name, type);
    if (out)
        *out = r;
    else
        resource_unref(r);
    return NULL;
}
