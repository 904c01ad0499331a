/* iterator_resource.h: IteratorResource, an iterator that steps share: set to a dataset, pulled one element at a time.
 */
#pragma once
#include "ops/dataset/dataset.h"
#include "runtime/resource.h"

typedef struct IteratorResource IteratorResource;
extern const ResourceType iterator_resource_type;

/* Types and shapes of the elements; count 0: any. */
IteratorResource *iterator_resource_new(const DataType *types, const PartialShape *shapes, int count);
bool iterator_is_set(IteratorResource *r);

/* The rest only on threads that may block. */
/* Begins at the start of a dataset; whoever is pulling the old one goes on with that. */
Error *iterator_resource_set(IteratorResource *r, KernelContext *k, Dataset *d) MUST_CHECK;
/* The next element, malloced; *element is NULL at the end. */
Error *iterator_resource_next(IteratorResource *r, KernelContext *k, Tensor ***element, int *count) MUST_CHECK;
/* refuses_state: FailedPrecondition when functions of the pipeline keep something that the state cannot hold. */
Error *iterator_resource_save(IteratorResource *r, KernelContext *k, bool refuses_state, IteratorState *s) MUST_CHECK;
Error *iterator_resource_restore(IteratorResource *r, KernelContext *k, IteratorState *s) MUST_CHECK;
/* Sets it to what a function without arguments returns, unless it is set. */
Error *iterator_resource_set_once(IteratorResource *r, KernelContext *k, Closure *factory) MUST_CHECK;
/* The handle becomes its owner (takes the reference). Whoever drops the last handle may be a thread that must not wait:
 * `blocking` ends the walk. */
void iterator_resource_own(IteratorResource *take, ResourceHandle *handle, ThreadPool *blocking);

/* They must be the same, unless one of the counts is 0. */
Error *iterator_check_types(const IteratorResource *r, const DataType *types, int count) MUST_CHECK;
/* The same, where it is the iterator that differs from what a step expects; shapes must be compatible. */
Error *iterator_check_expected(const IteratorResource *r, const DataType *types, const PartialShape *shapes,
                               int count) MUST_CHECK;
