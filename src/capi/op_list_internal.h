/* op_list_internal.h: op definitions as messages. */
#pragma once
#include "base/str.h"
#include "graph/op_def.h"

void op_def_encode(const OpInfo *op, StrBuf *out); /* a serialised OpDef */
