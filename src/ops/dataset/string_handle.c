/* string_handle.c: ResourceHandleProto, written and read. */
#include "ops/dataset/string_handle.h"

#include "ops/dataset/dataset.h"
#include "proto/wire.h"
#include "runtime/device.h"

enum { HANDLE_DEVICE = 1, HANDLE_CONTAINER = 2, HANDLE_NAME = 3, HANDLE_HASH = 4, HANDLE_TYPE = 5 };

Error *kernel_handle_to_string(KernelContext *k) {
    const ResourceHandle *h = tensor_handles(k->in[0])[0];
    if (h->direct) return error_invalid("An anonymous iterator has no string handle");
    StrBuf b = {0};
    wire_put_bytes(&b, HANDLE_DEVICE, str_of(h->device));
    wire_put_bytes(&b, HANDLE_CONTAINER, str_of(h->container));
    wire_put_bytes(&b, HANDLE_NAME, str_of(h->name));
    wire_put_uint(&b, HANDLE_HASH, h->hash_code);
    wire_put_bytes(&b, HANDLE_TYPE, str_of(h->type_name));
    kernel_set_output(k, 0, tensor_scalar_str(strbuf_str(&b)));
    strbuf_clear(&b);
    return NULL;
}

Error *kernel_handle_from_string(KernelContext *k, const ResourceType *type, Resource **out, Tensor **handle) {
    Str text = STR(""), device = STR(""), container = STR(""), name = STR("");
    Error *err = kernel_string(k, 0, "string_handle", &text);
    if (err) return err;
    WireReader w = wire_reader(text);
    while (wire_next(&w)) {
        if (w.type != WIRE_BYTES) continue;
        if (w.field == HANDLE_DEVICE) device = w.bytes;
        if (w.field == HANDLE_CONTAINER) container = w.bytes;
        if (w.field == HANDLE_NAME) name = w.bytes;
    }
    if (w.failed) return error_invalid("Could not parse string_handle as a valid ResourceHandle");
    if (!str_is(device, k->device->name))
        return error_invalid("Attempted create an iterator on device \"%s\" from handle defined on device \"%.*s\"",
                             k->device->name, STR_ARG(device));
    err = resource_find(kernel_resources(k), container, name, type, out);
    if (!err) *handle = kernel_make_handle(k, container, name, type);
    return err;
}
