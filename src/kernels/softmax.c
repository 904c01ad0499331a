/* softmax.c: softmax, log-softmax and cross entropy, row by row. */
#include "kernels/softmax.h"

#include <tgmath.h>

#include "base/float16.h"

#define BODY "kernels/softmax.inc"
#include "kernels/each_float.inc"
