/* element_store.c: a ring, a bag and a heap of tuples; stacking tuples into batches. */
#include "ops/element_store.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

static Element *element_alloc(int n) {
    Element *e = xcalloc(1, sizeof *e + (size_t)n * sizeof(Tensor *));
    e->n = n;
    return e;
}

static void take_priority(Element *e, bool by_priority) {
    const Tensor *t = e->n ? e->components[0] : NULL;
    if (by_priority && t && t->dtype == DT_INT64 && t->count) e->priority = tensor_i64(t)[0];
}

Element *element_new(Tensor *const *components, int n, bool by_priority) {
    Element *e = element_alloc(n);
    for (int i = 0; i < n; i++) e->components[i] = tensor_ref(components[i]);
    take_priority(e, by_priority);
    return e;
}

/* Copies: a view would keep the whole batch alive and start at an address that is not aligned. */
Error *element_of_row(Tensor *const *components, int n, int64_t row, bool by_priority, Element **out) {
    Element *e = element_alloc(n);
    for (int i = 0; i < n; i++) {
        Shape shape = components[i]->shape;
        shape_remove_dim(&shape, 0);
        Error *err = tensor_new(components[i]->dtype, &shape, &e->components[i]);
        if (err) {
            element_free(e);
            return err;
        }
        int64_t count = e->components[i]->count;
        elements_copy(components[i]->dtype, e->components[i]->data,
                      (const char *)components[i]->data + (size_t)(row * count) * dtype_size(components[i]->dtype),
                      count);
    }
    take_priority(e, by_priority);
    *out = e;
    return NULL;
}

void element_free(Element *e) {
    if (!e) return;
    for (int i = 0; i < e->n; i++) tensor_unref(e->components[i]);
    free(e);
}

/* Copies t into the corner of a row of the (larger) shape `to`. */
static void copy_padded(const Tensor *t, const Shape *to, char *row) {
    int rank = to->rank;
    size_t size = dtype_size(t->dtype);
    if (!t->count) return;
    int64_t run = rank ? t->shape.dims[rank - 1] : 1;
    int64_t at[SHAPE_MAX_RANK] = {0};
    for (int64_t from = 0; from < t->count; from += run) {
        int64_t offset = 0;
        for (int d = 0; d < rank; d++) offset = offset * to->dims[d] + at[d];
        elements_copy(t->dtype, row + (size_t)offset * size, (const char *)t->data + (size_t)from * size, run);
        for (int d = rank - 2; d >= 0 && ++at[d] == t->shape.dims[d]; d--) at[d] = 0;
    }
}

static Error *stack_component(Element *const *elements, int64_t count, int i, DataType dtype, const PartialShape *want,
                              Tensor **out) {
    Shape shape = *want;
    if (shape.rank < 0) {
        if (!count) return error_invalid("Component %d has no known shape to make an empty batch of", i);
        shape = elements[0]->components[i]->shape;
    }
    for (int d = 0; d < shape.rank; d++) {
        if (shape.dims[d] >= 0) continue;
        shape.dims[d] = 0;
        for (int64_t r = 0; r < count; r++) {
            int64_t size = elements[r]->components[i]->shape.dims[d];
            if (size > shape.dims[d]) shape.dims[d] = size;
        }
    }
    for (int64_t r = 0; r < count; r++)
        if (elements[r]->components[i]->shape.rank != shape.rank)
            return error_invalid("Component %d has elements of different ranks", i);
    if (shape.rank >= SHAPE_MAX_RANK) return error_invalid("Component %d has too many dimensions to be batched", i);
    Error *err = shape_check(&shape);
    if (err) return err;
    Shape batch = shape;
    shape_insert_dim(&batch, 0, count);
    Tensor *t;
    err = tensor_new(dtype, &batch, &t);
    if (err) return err;
    size_t row_size = (size_t)shape_count(&shape) * dtype_size(dtype);
    for (int64_t r = 0; r < count; r++) {
        const Tensor *c = elements[r]->components[i];
        char *row = (char *)t->data + (size_t)r * row_size;
        if (shape_eq(&c->shape, &shape)) {
            elements_copy(dtype, row, c->data, c->count);
        } else {
            if (dtype_is_plain(dtype)) memset(row, 0, row_size);
            copy_padded(c, &shape, row);
        }
    }
    *out = t;
    return NULL;
}

Error *elements_stack(Element *const *elements, int64_t count, int n, const DataType *types, const PartialShape *shapes,
                      Tensor **out) {
    Error *err = NULL;
    int done = 0;
    for (; done < n && !err; done++)
        err = stack_component(elements, count, done, types[done], &shapes[done], &out[done]);
    if (!err) return NULL;
    for (int i = 0; i < done - 1; i++) {
        tensor_unref(out[i]);
        out[i] = NULL;
    }
    return err;
}

/* ---- The store ---- */

void element_store_init(ElementStore *s, StoreOrder order, int64_t seed, int64_t seed2) {
    bool seeded = seed || seed2;
    *s = (ElementStore){.order = order};
    s->random = philox_stream(seeded ? philox_from_seeds((uint64_t)seed, (uint64_t)seed2)
                                     : philox_from_seeds(rng_entropy(), rng_entropy()));
}

void element_store_clear(ElementStore *s) {
    for (int64_t i = 0; i < s->count; i++) element_free(s->slots[(s->first + i) % s->capacity]);
    free(s->slots);
    *s = (ElementStore){0};
}

static void make_room(ElementStore *s) {
    if (s->count < s->capacity) return;
    int64_t capacity = s->capacity ? 2 * s->capacity : 16;
    Element **slots = xmalloc((size_t)capacity * sizeof *slots);
    for (int64_t i = 0; i < s->count; i++) slots[i] = s->slots[(s->first + i) % s->capacity];
    free(s->slots);
    s->slots = slots;
    s->first = 0;
    s->capacity = capacity;
}

static bool leaves_before(const Element *a, const Element *b) {
    return a->priority != b->priority ? a->priority < b->priority : a->arrival < b->arrival;
}

static void heap_push(ElementStore *s, Element *e) {
    int64_t i = s->count++;
    for (; i > 0 && leaves_before(e, s->slots[(i - 1) / 2]); i = (i - 1) / 2) s->slots[i] = s->slots[(i - 1) / 2];
    s->slots[i] = e;
}

static Element *heap_pop(ElementStore *s) {
    Element *top = s->slots[0], *last = s->slots[--s->count];
    int64_t i = 0;
    for (;;) {
        int64_t child = 2 * i + 1;
        if (child >= s->count) break;
        if (child + 1 < s->count && leaves_before(s->slots[child + 1], s->slots[child])) child++;
        if (!leaves_before(s->slots[child], last)) break;
        s->slots[i] = s->slots[child];
        i = child;
    }
    if (s->count) s->slots[i] = last;
    return top;
}

void element_store_push(ElementStore *s, Element *e) {
    make_room(s);
    e->arrival = s->arrivals++;
    if (s->order == STORE_BY_PRIORITY)
        heap_push(s, e);
    else
        s->slots[(s->first + s->count++) % s->capacity] = e;
}

void element_store_push_front(ElementStore *s, Element *e) {
    make_room(s);
    if (s->order == STORE_BY_PRIORITY) {
        heap_push(s, e);
        return;
    }
    s->first = (s->first + s->capacity - 1) % s->capacity;
    s->slots[s->first] = e;
    s->count++;
}

Element *element_store_pop(ElementStore *s) {
    if (s->order == STORE_BY_PRIORITY) return heap_pop(s);
    if (s->order == STORE_SHUFFLED) {
        int64_t pick = (s->first + philox_stream_next(&s->random) % s->count) % s->capacity;
        int64_t last = (s->first + --s->count) % s->capacity;
        Element *e = s->slots[pick];
        s->slots[pick] = s->slots[last];
        return e;
    }
    Element *e = s->slots[s->first];
    s->first = (s->first + 1) % s->capacity;
    s->count--;
    return e;
}
