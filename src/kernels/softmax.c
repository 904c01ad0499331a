/* softmax.c: softmax, log-softmax and cross entropy, row by row. */
#include "kernels/softmax.h"

#include <stdbool.h>
#include <tgmath.h>

#include "base/float16.h"
#include "kernels/vector_math.h"

#define BODY "kernels/softmax.inc"
#include "kernels/each_float.inc"
