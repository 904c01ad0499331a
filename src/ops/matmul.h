/* matmul.h: the matrix product of each element type. */
#pragma once
#include "kernels/gemm.h"
#include "tensor/dtype.h"

GemmFn *gemm_of(DataType t); /* NULL: none */
