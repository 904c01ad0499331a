/* session_handle.h: values that a session keeps, as those who feed their handles need them. */
#pragma once
#include "runtime/kernel.h"

/* The value that a fed handle stands for, which another reference is returned of; NULL when the tensor is no such handle. */
Error *session_handle_value(KernelContext *k, const Tensor *handle, Tensor **out) MUST_CHECK;
