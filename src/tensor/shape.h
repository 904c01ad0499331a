/* shape.h: Shape, the dimensions of a tensor; PartialShape, what is known of them. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/str.h"

enum { SHAPE_MAX_RANK = 16 };

/* A value: copied freely. In a partial shape a dimension of -1 is unknown, and a rank of -1 means nothing is known. */
typedef struct Shape {
    int rank;
    int64_t dims[SHAPE_MAX_RANK];
} Shape;
typedef Shape PartialShape;

#define SHAPE_SCALAR ((Shape){.rank = 0})
Shape shape_vector(int64_t n);
Shape shape_matrix(int64_t rows, int64_t cols);
Shape shape_of(int rank, const int64_t *dims); /* rank <= SHAPE_MAX_RANK */

int64_t shape_count(const Shape *s); /* number of elements; the shape must have passed shape_check */
bool shape_eq(const Shape *a, const Shape *b);
Error *shape_check(const Shape *s) MUST_CHECK; /* no negative dimension, the number of elements fits */
Error *shape_check_grown(const Shape *s) MUST_CHECK; /* the same of a shape made dimension by dimension, in the words for that */
int64_t shape_prod(const Shape *s, int from, int to); /* product of dims[from..to) */
void shape_remove_dim(Shape *s, int axis);
void shape_insert_dim(Shape *s, int axis, int64_t size);
char *shape_str(const Shape *s); /* "[2,3]", malloced; "[2,?]" and "<unknown>" for partial ones */

bool partial_shape_matches(const PartialShape *p, const Shape *s); /* compatible: equal where known */

/* Serialised TensorShapeProto, both ways. */
Error *shape_decode(Str proto, PartialShape *out) MUST_CHECK;
void shape_encode(const PartialShape *s, StrBuf *out);
