/* element_store.h: Element, a tuple of tensors; ElementStore, tuples kept in the order in which they are to leave. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/rng.h"
#include "tensor/tensor.h"

typedef struct Element {
    int64_t priority; /* the lowest leaves first; equal ones in order of arrival */
    uint64_t arrival;
    int n; /* components */
    Tensor *components[];
} Element;

/* by_priority: component 0 is an int64 scalar, the priority. */
Element *element_new(Tensor *const *components, int n, bool by_priority);
Error *element_of_row(Tensor *const *components, int n, int64_t row, bool by_priority, Element **out) MUST_CHECK;
void element_free(Element *e);

/* Stacks the components of `count` elements, each into out[i] of shape [count, ...]. Unknown dimensions of shapes[i]
 * become the largest of the elements', the rest is filled with zeros or empty strings. On failure nothing is set. */
Error *elements_stack(Element *const *elements, int64_t count, int n, const DataType *types, const PartialShape *shapes,
                      Tensor **out) MUST_CHECK;

typedef enum StoreOrder { STORE_FIFO, STORE_SHUFFLED, STORE_BY_PRIORITY } StoreOrder;

/* Not thread-safe. */
typedef struct ElementStore {
    StoreOrder order;
    Element **slots; /* FIFO: a ring from `first`; by priority: a heap */
    int64_t first, count, capacity;
    uint64_t arrivals;
    PhiloxStream random; /* shuffled: which one leaves next */
} ElementStore;

void element_store_init(ElementStore *s, StoreOrder order, int64_t seed, int64_t seed2); /* both 0: random */
void element_store_clear(ElementStore *s);                                               /* frees the elements */
void element_store_push(ElementStore *s, Element *e);
void element_store_push_front(ElementStore *s, Element *e); /* back where it was popped from */
Element *element_store_pop(ElementStore *s);                /* count > 0 */
