/* graph.h: graphs built from C, on top of TensorFlow's C API.

   A RillGraph is a TF_Graph with what a program needs to build one in comfort: names that nest, devices, and one place for mistakes. A value in the graph is a
   TF_Output, so everything here goes together with the functions of tensorflow/c/c_api.h.

   Mistakes: the first one (a wrong shape, an unknown op) is kept in the graph, with the names of the nodes and their shapes; from then on every function
   that builds returns a tensor without an operation and does nothing. So a program checks once, when the graph is complete: a session refuses a graph that failed.

   A RillGraph is built by one thread. */
#ifndef RILL_GRAPH_H_
#define RILL_GRAPH_H_

#include <stdbool.h>
#include <stdint.h>

#include "tensorflow/c/c_api.h"

#ifdef __cplusplus
extern "C" {
#endif

#define RILL_API __attribute__((visibility("default")))

typedef TF_Output RillTensor;
typedef struct RillGraph RillGraph;

RILL_API RillGraph *rill_graph_new(void);
RILL_API void rill_graph_free(RillGraph *g); /* sessions on it must be closed; NULL is allowed */
RILL_API TF_Graph *rill_graph_tf(RillGraph *g); /* borrowed */

/* ---- Mistakes ---- */
RILL_API bool rill_graph_failed(const RillGraph *g);
RILL_API TF_Code rill_graph_code(const RillGraph *g);        /* TF_OK while there is none */
RILL_API const char *rill_graph_message(const RillGraph *g); /* "" while there is none; lives as long as the graph */
/* Records a mistake, for layers of your own; the first one stays. */
RILL_API void rill_graph_fail(RillGraph *g, TF_Code code, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* ---- Scopes ---- */
/* Names of what follows begin with "name/"; a name that was used becomes "name_1". */
RILL_API void rill_name_push(RillGraph *g, const char *name);
RILL_API void rill_name_pop(RillGraph *g);
/* What follows asks for this device ("/job:worker/task:1", "/cpu:0", "" for none); inside another, parts it does not name are taken from that one. */
RILL_API void rill_device_push(RillGraph *g, const char *device);
RILL_API void rill_device_pop(RillGraph *g);
/* What follows runs after these operations. */
RILL_API void rill_control_push(RillGraph *g, TF_Operation *const *after, int count);
RILL_API void rill_control_pop(RillGraph *g);

/* ---- Ops ---- */
typedef enum RillAttrKind {
    RILL_ATTR_TYPE, RILL_ATTR_INT, RILL_ATTR_FLOAT, RILL_ATTR_BOOL, RILL_ATTR_STRING, RILL_ATTR_SHAPE, RILL_ATTR_INTS, RILL_ATTR_TYPES, RILL_ATTR_SHAPES, RILL_ATTR_STRINGS
} RillAttrKind;

/* An attribute of an op. RillAttr attrs[] = {{"T", RILL_ATTR_TYPE, .type = TF_FLOAT}, ...}; the macros below write it shorter. */
typedef struct RillAttr {
    const char *name;
    RillAttrKind kind;
    union {
        TF_DataType type;
        int64_t number;
        float real;
        bool flag;
        const char *text;
    };
    const void *list; /* int64_t of SHAPE (-1: unknown) and INTS, TF_DataType of TYPES, const char * of STRINGS, RillShape of SHAPES */
    int count;        /* of the list; of SHAPE its rank, -1: unknown */
} RillAttr;
typedef struct RillShape {
    int rank; /* -1: unknown */
    int64_t dims[8]; /* -1: unknown */
} RillShape;

#define RILL_TYPE(name, v) {name, RILL_ATTR_TYPE, {.type = v}, NULL, 0}
#define RILL_INT(name, v) {name, RILL_ATTR_INT, {.number = v}, NULL, 0}
#define RILL_FLOAT(name, v) {name, RILL_ATTR_FLOAT, {.real = v}, NULL, 0}
#define RILL_BOOL(name, v) {name, RILL_ATTR_BOOL, {.flag = v}, NULL, 0}
#define RILL_STRING(name, v) {name, RILL_ATTR_STRING, {.text = v}, NULL, 0}
#define RILL_DIMS(name, dims, rank) {name, RILL_ATTR_SHAPE, {0}, dims, rank}
#define RILL_INTS(name, items, n) {name, RILL_ATTR_INTS, {0}, items, n}
#define RILL_TYPES(name, items, n) {name, RILL_ATTR_TYPES, {0}, items, n}

/* Any op of TensorFlow. name: NULL for the op's own. Inputs in order; those of a list argument ("N * T") just follow each other. Attributes that follow from the
 * inputs' types, or have a default, may be left out. NULL after a mistake. */
RILL_API TF_Operation *rill_operation(RillGraph *g, const char *op, const char *name, const RillTensor *inputs, int input_count, const RillAttr *attrs, int attr_count);
/* The same, for its first output. */
RILL_API RillTensor rill_op(RillGraph *g, const char *op, const char *name, const RillTensor *inputs, int input_count, const RillAttr *attrs, int attr_count);
/* Ops without attributes. */
RILL_API RillTensor rill_unary(RillGraph *g, const char *op, RillTensor x);
RILL_API RillTensor rill_binary(RillGraph *g, const char *op, RillTensor x, RillTensor y);
/* A NoOp that has run when all of these have; NULL elements are passed over. */
RILL_API TF_Operation *rill_group(RillGraph *g, const char *name, TF_Operation *const *ops, int count);

/* ---- Values ---- */
RILL_API RillTensor rill_const_f32(RillGraph *g, float v);
RILL_API RillTensor rill_const_i32(RillGraph *g, int32_t v);
RILL_API RillTensor rill_const_i64(RillGraph *g, int64_t v);
RILL_API RillTensor rill_const_bool(RillGraph *g, bool v);
RILL_API RillTensor rill_const_string(RillGraph *g, const char *v);
RILL_API RillTensor rill_const_i32s(RillGraph *g, const int32_t *v, int count);
RILL_API RillTensor rill_const_strings(RillGraph *g, const char *const *v, int count);
/* Of any type and shape; data is copied, in the order of C. Not for strings. */
RILL_API RillTensor rill_const(RillGraph *g, const char *name, TF_DataType type, const int64_t *dims, int rank, const void *data);
/* Copies x, a number of any float or integer type, to a scalar of `type`. */
RILL_API RillTensor rill_const_as(RillGraph *g, TF_DataType type, double x);
RILL_API RillTensor rill_placeholder(RillGraph *g, const char *name, TF_DataType type, const int64_t *dims, int rank); /* dims -1: any */

RILL_API TF_DataType rill_type(RillTensor t); /* 0 after a mistake */
/* What is known of its shape; rank -1 when nothing is. */
RILL_API RillShape rill_shape(RillGraph *g, RillTensor t);

/* ---- Arithmetic ---- */
RILL_API RillTensor rill_add(RillGraph *g, RillTensor x, RillTensor y);
RILL_API RillTensor rill_sub(RillGraph *g, RillTensor x, RillTensor y);
RILL_API RillTensor rill_mul(RillGraph *g, RillTensor x, RillTensor y);
RILL_API RillTensor rill_div(RillGraph *g, RillTensor x, RillTensor y); /* RealDiv; integers are divided as whole numbers */
RILL_API RillTensor rill_scale(RillGraph *g, RillTensor x, double factor);
RILL_API RillTensor rill_add_n(RillGraph *g, const RillTensor *x, int count);
RILL_API RillTensor rill_matmul(RillGraph *g, RillTensor x, RillTensor y, bool transpose_x, bool transpose_y);
RILL_API RillTensor rill_cast(RillGraph *g, RillTensor x, TF_DataType type); /* x itself when it has that type */
RILL_API RillTensor rill_identity(RillGraph *g, RillTensor x, const char *name);
RILL_API RillTensor rill_reshape(RillGraph *g, RillTensor x, const int64_t *dims, int rank); /* one -1: what is left */
RILL_API RillTensor rill_transpose(RillGraph *g, RillTensor x, const int32_t *order, int rank);
RILL_API RillTensor rill_concat(RillGraph *g, const RillTensor *x, int count, int axis);
RILL_API RillTensor rill_stack(RillGraph *g, const RillTensor *x, int count, int axis);
/* Over these axes, or over all with count 0. */
RILL_API RillTensor rill_reduce_sum(RillGraph *g, RillTensor x, const int32_t *axes, int count, bool keep_dims);
RILL_API RillTensor rill_reduce_mean(RillGraph *g, RillTensor x, const int32_t *axes, int count, bool keep_dims);
RILL_API RillTensor rill_argmax(RillGraph *g, RillTensor x, int axis); /* int64 */
RILL_API RillTensor rill_equal(RillGraph *g, RillTensor x, RillTensor y);
RILL_API RillTensor rill_one_hot(RillGraph *g, RillTensor indices, int depth);

/* Derivatives of the sum of ys by each x; a tensor without operation where nothing depends on it. */
RILL_API void rill_gradients(RillGraph *g, const RillTensor *ys, int y_count, const RillTensor *xs, int x_count, RillTensor *out);

#ifdef __cplusplus
}
#endif
#endif
