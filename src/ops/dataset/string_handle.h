/* string_handle.h: handles of resources as strings, by which one step names to another what it shall use. */
#pragma once
#include "base/error.h"
#include "runtime/kernel.h"
#include "runtime/resource.h"

/* Output 0 is the handle in input 0 as a serialised ResourceHandleProto. */
Error *kernel_handle_to_string(KernelContext *k) MUST_CHECK;
/* What the string in input 0 names, a reference, and a handle to it. */
Error *kernel_handle_from_string(KernelContext *k, const ResourceType *type, Resource **out,
                                 Tensor **handle) MUST_CHECK;
