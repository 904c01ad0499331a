/* saved_model.h: SavedModel, the MetaGraphs of a model on disk. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/file.h"
#include "io/meta_graph.h"

typedef enum ModelFormat {
    MODEL_SAVED,      /* a folder with saved_model.pb, variables/ and assets/ */
    MODEL_META_GRAPH, /* PREFIX.meta, as Saver writes it beside a checkpoint */
    MODEL_GRAPH_DEF,  /* a GraphDef alone: one MetaGraph that has only a graph */
} ModelFormat;

typedef struct SavedModel {
    ModelFormat format;
    char *path;             /* as given */
    char *variables;        /* prefix of the checkpoint with the variables; NULL: there is none */
    char *assets;           /* folder of the asset files; NULL: a single file has none */
    int64_t schema_version; /* of a SavedModel */
    MetaGraph **meta_graphs;
    int count;
    uint64_t file_bytes; /* of the file with the graphs */
    Arena *arena;
    char *bytes; /* the file; what the MetaGraphs point into */
} SavedModel;

/* Reads a model; what it is, is told by the path (a folder; NAME.meta) and by the content. NotFound names the path. */
Error *saved_model_open(const FileSystem *fs, const char *path, SavedModel **out) MUST_CHECK;
void saved_model_close(SavedModel *m);                          /* with its MetaGraphs */
bool saved_model_exists(const FileSystem *fs, const char *dir); /* it has a saved_model.pb or saved_model.pbtxt */

/* The MetaGraph with exactly these tags; NotFound lists those there are. */
Error *saved_model_find(const SavedModel *m, const Str *tags, int tag_count, const MetaGraph **out) MUST_CHECK;
