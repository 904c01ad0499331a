/* placer.h: a device for every node of a graph. */
#pragma once
#include "base/error.h"
#include "base/hashmap.h"
#include "graph/graph.h"
#include "placement/device_name.h"

typedef struct PlacerDevice {
    Str name; /* full */
    DeviceName parsed;
    bool is_local; /* of the master's own task */
    int priority;  /* of its type */
    bool (*can_run)(const Node *node); /* NULL: not known, so it is taken to */
} PlacerDevice;

typedef struct PlacerOptions {
    const PlacerDevice *devices;
    int device_count;
    bool soft;           /* allow_soft_placement */
    const StrMap *fixed; /* (optional) node name -> 1 + device index: stateful nodes placed before keep their place */
} PlacerOptions;

/* Sets Node.placed of every node. Errors say which node wanted what and what there is. */
Error *graph_place(Graph *g, const PlacerOptions *options) MUST_CHECK;
