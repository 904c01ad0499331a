/* as_float.c: conversion of real numbers to float and back. */
#include "ops/as_float.h"

#include <string.h>

#include "base/float16.h"
#include "kernels/half_rows.h"

void floats_load(const Tensor *t, int64_t at, int64_t n, float *to) {
    const void *from = (const char *)t->data + (size_t)at * dtype_size(t->dtype);
    switch ((int)t->dtype) {
        case DT_FLOAT:
            memcpy(to, from, (size_t)n * sizeof *to);
            break;
        case DT_DOUBLE:
            for (int64_t i = 0; i < n; i++) to[i] = (float)((const double *)from)[i];
            break;
        case DT_HALF:
            half_widen(to, from, n);
            break;
        case DT_BFLOAT16:
            for (int64_t i = 0; i < n; i++) to[i] = bfloat16_to_float(((const uint16_t *)from)[i]);
            break;
        case DT_INT8:
        case DT_QINT8:
            for (int64_t i = 0; i < n; i++) to[i] = (float)((const int8_t *)from)[i];
            break;
        case DT_UINT8:
            for (int64_t i = 0; i < n; i++) to[i] = (float)((const uint8_t *)from)[i];
            break;
        case DT_INT16:
            for (int64_t i = 0; i < n; i++) to[i] = (float)((const int16_t *)from)[i];
            break;
        case DT_UINT16:
            for (int64_t i = 0; i < n; i++) to[i] = (float)((const uint16_t *)from)[i];
            break;
        case DT_INT32:
            for (int64_t i = 0; i < n; i++) to[i] = (float)((const int32_t *)from)[i];
            break;
        case DT_UINT32:
            for (int64_t i = 0; i < n; i++) to[i] = (float)((const uint32_t *)from)[i];
            break;
        case DT_INT64:
            for (int64_t i = 0; i < n; i++) to[i] = (float)((const int64_t *)from)[i];
            break;
        case DT_UINT64:
            for (int64_t i = 0; i < n; i++) to[i] = (float)((const uint64_t *)from)[i];
            break;
        default:
            memset(to, 0, (size_t)n * sizeof *to);
    }
}

void floats_store(const float *from, Tensor *t, int64_t at, int64_t n) {
    void *to = (char *)t->data + (size_t)at * dtype_size(t->dtype);
    switch ((int)t->dtype) {
        case DT_FLOAT:
            memmove(to, from, (size_t)n * sizeof *from);
            break;
        case DT_DOUBLE:
            for (int64_t i = 0; i < n; i++) ((double *)to)[i] = (double)from[i];
            break;
        case DT_HALF:
            half_narrow(to, from, n);
            break;
        case DT_BFLOAT16:
            for (int64_t i = 0; i < n; i++) ((uint16_t *)to)[i] = float_to_bfloat16(from[i]);
            break;
        default:
            break;
    }
}

typedef struct LoadJob {
    const Tensor *from;
    float *to;
} LoadJob;
static void load_range(void *arg, int64_t begin, int64_t end) {
    LoadJob *job = arg;
    floats_load(job->from, begin, end - begin, job->to + begin);
}

Tensor *kernel_floats(KernelContext *k, Tensor *t) {
    if (t->dtype == DT_FLOAT) return tensor_ref(t);
    Tensor *wide = kernel_scratch(k, DT_FLOAT, &t->shape);
    if (!wide) return NULL;
    LoadJob job = {t, wide->data};
    threadpool_parallel_for(k->pool, t->count, 65536, load_range, &job);
    return wide;
}
