/* example.h: finds features in serialised tf.Example messages without building them. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/hashmap.h"
#include "base/str.h"
#include "tensor/tensor.h"

/* A feature where it lies in the message. */
typedef struct ExampleFeature {
    DataType type; /* DT_STRING, DT_FLOAT, DT_INT64; DT_INVALID: not there, or there without a list */
    Str list;      /* serialised BytesList, FloatList or Int64List */
} ExampleFeature;

/* Fills found[i] for every feature whose name `index` maps to (void *)(i + 1); found must be cleared before. Of a name
 * that comes twice the last one counts. False when the message is malformed. */
bool example_find(Str example, const StrMap *index, ExampleFeature *found);
/* The same for a serialised Features message. */
bool features_find(Str features, const StrMap *index, ExampleFeature *found);
bool feature_decode(Str feature, ExampleFeature *out); /* a serialised Feature */

/* Calls fn with every feature of an Example; false when the message is malformed or fn says so. */
typedef bool FeatureFn(void *arg, Str name, const ExampleFeature *f);
bool example_each(Str example, FeatureFn *fn, void *arg);

int64_t feature_count(const ExampleFeature *f); /* values in it; -1: malformed */
/* Writes feature_count values; the count was not -1. */
void feature_copy(const ExampleFeature *f, void *to);
