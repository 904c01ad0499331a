/* ckpt.h: what the commands on checkpoints share. */
#pragma once
#include "base/error.h"
#include "io/bundle.h"

Error *ckpt_open(const char *path, Bundle **out) MUST_CHECK; /* a prefix, a folder or a file of a checkpoint */
int64_t ckpt_bytes(const BundleEntry *e);                    /* of the tensor's values */
bool ckpt_is_part(Str name);                                 /* the key of a part of a tensor, not a tensor */
