/* meta_graph.h: MetaGraph, a graph with what is said about it: tags, signatures, collections, how to restore it. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/str.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"

typedef enum TensorInfoKind { TENSOR_DENSE, TENSOR_SPARSE, TENSOR_COMPOSITE } TensorInfoKind;

/* A tensor of the graph that a signature names. */
typedef struct TensorInfo TensorInfo;
struct TensorInfo {
    Str key; /* in the signature; of a part its part: "values", "indices", "dense_shape", "0", ... */
    TensorInfoKind kind;
    Str name; /* "node:0"; empty unless dense */
    DataType dtype;
    PartialShape shape;
    TensorInfo *parts; /* unless dense */
    int part_count;
    Str default_value; /* of an input: serialised TensorProto to use when it is not given; ptr NULL: none */
};

typedef struct Signature {
    Str key, method_name;
    TensorInfo *inputs, *outputs; /* by key, in order */
    int input_count, output_count;
} Signature;

typedef enum CollectionKind {
    COLLECTION_EMPTY,
    COLLECTION_NODES, /* names of nodes or tensors */
    COLLECTION_BYTES, /* serialised messages */
    COLLECTION_INTS,
    COLLECTION_FLOATS,
    COLLECTION_ANY, /* serialised google.protobuf.Any */
} CollectionKind;

typedef struct Collection {
    Str key;
    CollectionKind kind;
    Str *items; /* of nodes, bytes and any */
    int64_t *ints;
    float *floats;
    int count;
} Collection;

typedef struct SaverDef {
    bool present;
    Str filename_tensor, save_tensor, restore_op; /* "save/Const:0", "save/control_dependency:0", "save/restore_all" */
    int64_t max_to_keep;
    bool sharded;
    int version; /* 2: V2 checkpoints */
} SaverDef;

/* A file that came with the model: its path is fed to `tensor` before anything is initialised. */
typedef struct AssetFile {
    Str tensor, filename; /* "node:0"; relative to the folder of assets */
} AssetFile;

/* Everything points into the bytes it was parsed from, or into the arena. */
typedef struct MetaGraph {
    Str bytes;     /* the whole message */
    Str graph_def; /* serialised; empty when there is none */
    Str *tags;
    int tag_count;
    Str version, producer; /* meta_graph_version; the TensorFlow that wrote it */
    SaverDef saver;
    Signature *signatures; /* by key, in order */
    int signature_count;
    Collection *collections; /* by key, in order */
    int collection_count;
    AssetFile *assets;
    int asset_count;
    Str init_op;      /* name of the node to run once after restoring; empty when there is none */
    bool has_objects; /* written by tf.saved_model.save: it has an object graph */
} MetaGraph;

/* Reads a serialised MetaGraphDef; it lives in the arena, its strings in `bytes`. */
Error *meta_graph_parse(Arena *arena, Str bytes, MetaGraph **out) MUST_CHECK;

const Signature *meta_graph_signature(const MetaGraph *m, Str key);       /* NULL when there is none */
const Collection *meta_graph_collection(const MetaGraph *m, Str key);     /* NULL when there is none */
bool meta_graph_has_tags(const MetaGraph *m, const Str *tags, int count); /* these, and no others */
/* The tags as "serve,gpu" (sorted as they stand), malloced. */
char *meta_graph_tags_text(const MetaGraph *m);
