/* npy.h: NumPy's .npy files: one array with its dtype and shape. */
#pragma once
#include "base/error.h"
#include "base/file.h"
#include "tensor/tensor.h"

bool npy_is(Str bytes); /* it begins as such a file does */
/* Reads one; `path` is for messages. Numbers, bool, complex, bytes (S, trailing zeros dropped) and text (U, as UTF-8);
 * in either byte order, rows or columns first. Pickled objects and records are Unimplemented. */
Error *npy_parse(Str bytes, const char *path, Tensor **out) MUST_CHECK;

/* Writes one. Types NumPy has no name for are written as it does: bfloat16 and 8-bit floats as raw bytes (V2, V1).
 * Strings that end in a 0 byte cannot be kept: InvalidArgument; nor can handles and variants. */
Error *npy_write(const FileSystem *fs, const char *path, const Tensor *t) MUST_CHECK;
