/* description_internal.h: TF_OperationDescription, an operation that is being described. */
#pragma once
#include "capi/graph_internal.h"

/* The outputs given for one argument of the op. */
typedef struct GivenInput {
    TF_Output *outputs;
    int count;
    bool is_list;
} GivenInput;

struct TF_OperationDescription {
    TF_Graph *graph;
    Arena *arena;
    Str op, name, device;
    Attr *attrs;
    int attr_count;
    size_t attr_capacity;
    GivenInput *inputs;
    int input_count;
    size_t input_capacity;
    TF_Operation **controls;
    int control_count;
    size_t control_capacity;
    Str *colocations; /* "loc:@node" */
    int colocation_count;
    size_t colocation_capacity;
};

void description_set_attr(TF_OperationDescription *desc, const char *name, Str value); /* value is in the description's arena */

/* Attributes that follow from the inputs are added to the node; the inputs are linked. */
Error *description_link_inputs(const TF_OperationDescription *desc, Node *n) MUST_CHECK;
