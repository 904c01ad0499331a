/* queue_input.c: files, records, examples and batches by queues. */
#include <stdlib.h>

#include "base/memory.h"
#include "rill/input.h"
#include "train/graph_internal.h"

RillTensor rill_file_queue(RillGraph *g, const char *const *files, int count, int epochs, bool shuffle) {
    TF_DataType type = TF_STRING;
    RillShape scalar = {0};
    if (count < 1) rill_graph_fail(g, TF_INVALID_ARGUMENT, "rill_file_queue was given no files");
    if (rill_graph_failed(g)) return NO_TENSOR;
    rill_name_push(g, "file_queue");
    RillTensor names = rill_const_strings(g, files, count);
    if (shuffle) {
        int64_t seed, seed2;
        graph_seeds(g, &seed, &seed2);
        names = rill_op(g, "RandomShuffle", NULL, &names, 1, (RillAttr[]){RILL_INT("seed", seed), RILL_INT("seed2", seed2)}, 2);
    }
    RillAttr attrs[] = {RILL_TYPES("component_types", &type, 1), {"shapes", RILL_ATTR_SHAPES, {0}, &scalar, 1}, RILL_INT("capacity", 32)};
    RillTensor queue = rill_op(g, "FIFOQueueV2", NULL, NULL, 0, attrs, 3);
    TF_Operation *counted = NULL;
    if (epochs > 0) { /* OutOfRange when all are done: the runner closes the queue */
        RillVariable *done = rill_variable(g, "epochs", NULL, 0, &(RillVariableOptions){.type = TF_INT64, .local = true, .init = {.kind = RILL_INIT_ZEROS}});
        RillTensor handle = rill_variable_part(done, 0, NULL, NULL);
        counted = rill_operation(g, "ResourceCountUpTo", NULL, &handle, 1, (RillAttr[]){RILL_INT("limit", epochs), RILL_TYPE("T", TF_INT64)}, 2);
    }
    rill_control_push(g, &counted, 1);
    names = rill_identity(g, names, NULL);
    TF_Operation *enqueue = rill_operation(g, "QueueEnqueueManyV2", NULL, (RillTensor[]){queue, names}, 2, NULL, 0);
    rill_control_pop(g);
    rill_queue_runner(g, queue, &enqueue, 1);
    rill_name_pop(g);
    return queue;
}

RillTensor rill_read_record(RillGraph *g, RillTensor file_queue, const char *compression) {
    RillTensor reader = rill_op(g, "TFRecordReaderV2", NULL, NULL, 0, (RillAttr[]){RILL_STRING("compression_type", compression ? compression : "")}, 1);
    TF_Operation *read = rill_operation(g, "ReaderReadV2", NULL, (RillTensor[]){reader, file_queue}, 2, NULL, 0);
    return read ? (RillTensor){read, 1} : NO_TENSOR;
}

/* The default of a feature that must be there is an empty tensor. */
static RillTensor no_default(RillGraph *g, TF_DataType type) {
    return type == TF_STRING ? rill_const_strings(g, NULL, 0) : rill_const(g, "none", type, (int64_t[]){0}, 1, NULL);
}

void rill_parse_example(RillGraph *g, RillTensor serialized, const RillFeature *features, int count, RillTensor *out) {
    for (int i = 0; i < count; i++) out[i] = NO_TENSOR;
    if (rill_graph_failed(g)) return;
    bool is_one = rill_shape(g, serialized).rank == 0;
    RillTensor *in = xcalloc((size_t)count + 5, sizeof *in);
    const char **keys = xcalloc((size_t)count + 1, sizeof *keys);
    RillShape *shapes = xcalloc((size_t)count + 1, sizeof *shapes);
    TF_DataType *types = xcalloc((size_t)count + 1, sizeof *types);
    for (int i = 0; i < count; i++) {
        keys[i] = features[i].key;
        shapes[i] = features[i].shape;
        types[i] = features[i].type;
    }
    rill_name_push(g, "parse_example");
    int n = 0;
    in[n++] = serialized;
    if (!is_one) {
        in[n++] = rill_const_strings(g, NULL, 0);
        in[n++] = rill_const_strings(g, NULL, 0);
        in[n++] = rill_const_strings(g, keys, count);
        in[n++] = rill_const_strings(g, NULL, 0);
    }
    for (int i = 0; i < count; i++) in[n++] = no_default(g, types[i]);
    RillAttr shared[] = {RILL_INT("num_sparse", 0), RILL_TYPES("sparse_types", NULL, 0), RILL_TYPES("Tdense", types, count), {"dense_shapes", RILL_ATTR_SHAPES, {0}, shapes, count},
                         {"sparse_keys", RILL_ATTR_STRINGS, {0}, NULL, 0}, {"dense_keys", RILL_ATTR_STRINGS, {0}, keys, count}};
    RillAttr ragged[] = {shared[0], shared[1], shared[2], shared[3], RILL_TYPES("ragged_value_types", NULL, 0), RILL_TYPES("ragged_split_types", NULL, 0)};
    TF_Operation *parsed = rill_operation(g, is_one ? "ParseSingleExample" : "ParseExampleV2", NULL, in, n, is_one ? shared : ragged, 6);
    for (int i = 0; parsed && i < count; i++) out[i] = (RillTensor){parsed, i};
    rill_name_pop(g);
    free(types);
    free(shapes);
    free(keys);
    free(in);
}

RillTensor rill_decode_raw(RillGraph *g, RillTensor bytes, TF_DataType type) {
    return rill_op(g, "DecodeRaw", NULL, &bytes, 1, (RillAttr[]){RILL_TYPE("out_type", type)}, 1);
}

/* A queue's output says nothing of its shape by itself. */
static void set_batch_shape(RillGraph *g, RillTensor t, int64_t size, const RillShape *element) {
    int64_t dims[9] = {size};
    for (int i = 0; i < element->rank; i++) dims[i + 1] = element->dims[i];
    TF_GraphSetTensorShape(g->tf, t, dims, element->rank + 1, g->status);
    graph_take_status(g, "rill_batch");
}

void rill_batch(RillGraph *g, const RillTensor *tensors, int count, const RillBatch *o, RillTensor *out) {
    for (int i = 0; i < count; i++) out[i] = NO_TENSOR;
    if (!rill_graph_failed(g) && o->size < 1) rill_graph_fail(g, TF_INVALID_ARGUMENT, "A batch of %d is none", o->size);
    if (rill_graph_failed(g)) return;
    TF_DataType *types = xcalloc((size_t)count, sizeof *types);
    RillShape *shapes = xcalloc((size_t)count, sizeof *shapes);
    for (int i = 0; i < count; i++) {
        types[i] = rill_type(tensors[i]);
        shapes[i] = rill_shape(g, tensors[i]);
        bool known = shapes[i].rank >= 0;
        for (int j = 0; j < shapes[i].rank; j++) known &= shapes[i].dims[j] >= 0;
        if (!known) rill_graph_fail(g, TF_INVALID_ARGUMENT, "rill_batch: the shape of %s is not known; give it one by rill_reshape", TF_OperationName(tensors[i].oper));
    }
    int threads = o->threads > 0 ? o->threads : 1, capacity = o->capacity ? o->capacity : o->min_after + 32 * o->size;
    int64_t seed, seed2;
    graph_seeds(g, &seed, &seed2);
    rill_name_push(g, "batch");
    RillAttr attrs[] = {RILL_TYPES("component_types", types, count), {"shapes", RILL_ATTR_SHAPES, {0}, shapes, count}, RILL_INT("capacity", capacity),
                        RILL_INT("min_after_dequeue", o->min_after), RILL_INT("seed", seed), RILL_INT("seed2", seed2)};
    RillTensor queue = rill_op(g, o->min_after > 0 ? "RandomShuffleQueueV2" : "FIFOQueueV2", NULL, NULL, 0, attrs, o->min_after > 0 ? 6 : 3);
    RillTensor *in = xcalloc((size_t)count + 1, sizeof *in);
    in[0] = queue;
    for (int i = 0; i < count; i++) in[i + 1] = tensors[i];
    TF_Operation *enqueue = rill_operation(g, "QueueEnqueueV2", NULL, in, count + 1, NULL, 0);
    TF_Operation **same = xcalloc((size_t)threads, sizeof *same);
    for (int i = 0; i < threads; i++) same[i] = enqueue;
    if (enqueue) rill_queue_runner(g, queue, same, threads);
    RillAttr what[] = {RILL_TYPES("component_types", types, count)};
    TF_Operation *taken = rill_operation(g, o->allow_smaller ? "QueueDequeueUpToV2" : "QueueDequeueManyV2", NULL, (RillTensor[]){queue, rill_const_i32(g, o->size)}, 2, what, 1);
    for (int i = 0; taken && i < count; i++) {
        out[i] = (RillTensor){taken, i};
        set_batch_shape(g, out[i], o->allow_smaller ? -1 : o->size, &shapes[i]);
    }
    rill_name_pop(g);
    free(same);
    free(in);
    free(shapes);
    free(types);
}
