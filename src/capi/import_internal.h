/* import_internal.h: what a GraphDef is imported with. */
#pragma once
#include "capi/graph_internal.h"
#include "graph/graph_def.h"

enum { CONTROL_INDEX = -1 }; /* of a mapping of control edges */

typedef struct InputMapping {
    char *name; /* in the GraphDef */
    int index;  /* CONTROL_INDEX: control edges from that node */
    TF_Output to;
} InputMapping;

typedef struct NamedOutput {
    char *name; /* in the GraphDef */
    int index;
} NamedOutput;

struct TF_ImportGraphDefOptions {
    char *prefix, *default_device;
    bool uniquify_names, uniquify_prefix;
    bool skip_mapped; /* nodes whose output 0 is mapped are not imported */
    InputMapping *mappings;
    int mapping_count;
    size_t mapping_capacity;
    TF_Operation **controls;
    int control_count;
    size_t control_capacity;
    NamedOutput *return_outputs;
    int return_output_count;
    size_t return_output_capacity;
    char **return_opers;
    int return_oper_count;
    size_t return_oper_capacity;
};

/* A GraphDef under way into a graph. */
typedef struct Import {
    TF_Graph *graph;
    const TF_ImportGraphDefOptions *options;
    bool *mapping_used; /* by options->mappings */
    Arena *arena;
    Str prefix; /* with its slash, or "" */
    NodeDefView *nodes;
    int node_count;
    StrMap names; /* of the GraphDef: Str *, what the node is called in the graph */
    Str library;  /* FunctionDefLibrary */
    int producer, min_consumer;
} Import;

/* The whole import; on error the graph is as before. outputs (optional) are filled by options->return_outputs. */
Error *graph_import_locked(TF_Graph *g, Str graph_def, const TF_ImportGraphDefOptions *options, TF_Output *outputs) MUST_CHECK;

/* Reads the GraphDef and chooses the names that its nodes will have. */
Error *import_read(Import *im, Str graph_def) MUST_CHECK;
/* The GraphDef with these names, its inputs mapped: ready to be added. */
Error *import_rewrite(Import *im, StrBuf *out) MUST_CHECK;
const InputMapping *import_mapping(const Import *im, Str name, int index); /* NULL when there is none */
void import_clear(Import *im);
