/* bench_case.h: BenchCase, a graph from a file and the step of it that is to be measured.

   A file of cases is JSON; paths in it are beside it. What a case does not say is looked up outside of the cases.

     {"graph": "mlp.pb",                         a GraphDef
      "config": "...",                           a ConfigProto in base64 (optional)
      "cases": {"train": {
        "init":    [["init"], ["start"]],        nodes of steps that are run once, one after the other
        "feeds":   {"x:0": "x.npy"},
        "fetches": ["loss:0"],
        "targets": ["train_op"],                 the step: feeds, fetches, targets
        "rotate":  ["a:0", "b:0"],               every step fetches the next of these instead
        "loops":   [["sync_op"]],                run over and over by a thread each, as queue runners do
        "extend":  "more.pb"                     a GraphDef that the session is extended by before the first step
      }}} */
#pragma once
#include "base/arena.h"
#include "base/error.h"
#include "graph/prune.h"
#include "tensor/tensor.h"

typedef struct TargetList {
    Str *items;
    int count;
} TargetList;

typedef struct BenchCase {
    Arena *arena; /* names and lists */
    char *graph, *extension;
    size_t graph_len, extension_len; /* extension_len 0: none */
    StrBuf config;
    RunSignature step;
    Tensor **feeds; /* by step.feeds */
    TargetList rotation;
    TargetList *init, *loops;
    int init_count, loop_count;
} BenchCase;

/* NotFound tells which cases there are. */
Error *bench_case_read(const char *path, const char *name, BenchCase *out) MUST_CHECK;
void bench_case_clear(BenchCase *c);
