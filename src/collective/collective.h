/* collective.h: one collective, from the request of a kernel to its end: agreed on with the other members, then carried out. */
#pragma once
#include "collective/algorithm.h"
#include "runtime/device.h"
#include "runtime/step_context.h"

typedef enum MergeOp { MERGE_ADD, MERGE_MUL, MERGE_MIN, MERGE_MAX } MergeOp;

typedef struct CollectiveRequest {
    CollectiveType type;
    Str name; /* of the node */
    int32_t group_key, instance_key;
    int group_size;
    MergeOp merge;
    bool divides;     /* a merged value by the size of the group */
    RingSubdivs subdivs;
    bool is_source;   /* of a broadcast */
    bool agrees_once; /* later steps may have other shapes: they are not compared */
    float timeout_s;  /* 0: none */
    uint64_t frame_id;
    int64_t iteration;
    Tensor *in; /* NULL at the receivers of a broadcast */
    Tensor *out; /* made already; may be `in` itself where the ops of TensorFlow allow it */
    Device *device;
    StepContext *step;
} CollectiveRequest;

typedef void CollectiveDone(void *arg, Error *err); /* owns err */

/* What the request points to must live until done, which may run before this returns. A failure also aborts the step's rendezvous. */
void collective_start(const CollectiveRequest *request, CollectiveDone *done, void *arg);

/* Only joins the group; for what a program sets up beforehand. */
void collective_join(const CollectiveRequest *request, CollectiveDone *done, void *arg);
