/* element_list.h: a dataset of elements that are at hand: what a window or a group holds. */
#pragma once
#include "ops/dataset/dataset.h"

/* Elements of `count` components each. */
typedef struct ElementList {
    Tensor ***items;
    int64_t count;
    size_t capacity;
} ElementList;

void element_list_add(ElementList *l, Tensor **take);
void element_list_drop(ElementList *l, int64_t first, int component_count); /* the first ones */
void element_list_clear(ElementList *l, int component_count);
Error *element_list_save(const ElementList *l, int component_count, IteratorState *s) MUST_CHECK;
Error *element_list_restore(ElementList *l, const DataType *types, int component_count, IteratorState *s) MUST_CHECK;

/* The list of a dataset made by element_list_dataset; NULL for any other dataset. */
const ElementList *element_list_of(const Dataset *d);

/* Of the components [from, from + count) of the list's elements number first, first + stride, ...; keeps references. */
Dataset *element_list_dataset(const ElementList *l, int64_t stride, const DataType *types, int from, int count);
