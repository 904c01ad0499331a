/* input.h: data from files into a graph: queues filled by threads, and datasets. Both end with OutOfRange, which ends a RillTraining well. */
#ifndef RILL_INPUT_H_
#define RILL_INPUT_H_

#include "rill/coordinator.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Queues: threads of RillTraining or RillSupervisor (or rill_start_queue_runners) fill them ---- */
/* A queue of file names, each `epochs` times (0: for ever), in a new order every time with shuffle. Its handle. */
RILL_API RillTensor rill_file_queue(RillGraph *g, const char *const *files, int count, int epochs, bool shuffle);
/* The next record of the files in the queue: a string. */
RILL_API RillTensor rill_read_record(RillGraph *g, RillTensor file_queue, const char *compression); /* "", "GZIP", "ZLIB" */

/* A feature of a tf.train.Example with a value in every example: TF_FLOAT, TF_INT64 or TF_STRING. */
typedef struct RillFeature {
    const char *key;
    TF_DataType type;
    RillShape shape; /* of the value */
} RillFeature;
RILL_API void rill_parse_example(RillGraph *g, RillTensor serialized, const RillFeature *features, int count, RillTensor *out); /* of one, or of a vector of them */
RILL_API RillTensor rill_decode_raw(RillGraph *g, RillTensor bytes, TF_DataType type); /* a vector of the numbers in a string */

typedef struct RillBatch {
    int size;
    int threads;       /* that read, parse and put in; 0: 1 */
    int capacity;      /* of the queue; 0: 32 batches */
    int min_after;     /* > 0: shuffled; that many stay in the queue to be mixed with */
    bool allow_smaller; /* the last one */
} RillBatch;
/* Tensors of one example become tensors of a batch, from a queue of their own. Their shapes must be known. */
RILL_API void rill_batch(RillGraph *g, const RillTensor *tensors, int count, const RillBatch *o, RillTensor *out);

/* ---- Writing TFRecord files ---- */
typedef struct RillRecordWriter RillRecordWriter;
RILL_API RillRecordWriter *rill_record_writer_open(const char *path, const char *compression, TF_Status *status); /* "", "GZIP", "ZLIB" */
typedef struct RillExampleBytes {
    const char *key;
    const void *data;
    size_t size;
} RillExampleBytes;
RILL_API TF_Code rill_record_write(RillRecordWriter *w, const void *data, size_t size, TF_Status *status);
/* A tf.train.Example whose features are one string each. */
RILL_API TF_Code rill_record_write_example(RillRecordWriter *w, const RillExampleBytes *features, int count, TF_Status *status);
RILL_API TF_Code rill_record_writer_close(RillRecordWriter *w, TF_Status *status); /* frees it in any case */

/* ---- Datasets: read ahead by the runtime; nothing to start but the local init op ---- */
typedef struct RillDataset RillDataset; /* kept by the graph */
RILL_API RillDataset *rill_dataset_records(RillGraph *g, const char *const *files, int count, const char *compression); /* strings */
RILL_API RillDataset *rill_dataset_slices(RillGraph *g, const RillTensor *tensors, int count); /* along the first dimension, which all share */
RILL_API RillDataset *rill_dataset_shuffle(RillDataset *d, int64_t buffer);
RILL_API RillDataset *rill_dataset_repeat(RillDataset *d, int64_t times); /* -1: for ever */
RILL_API RillDataset *rill_dataset_batch(RillDataset *d, int64_t size, bool drop_smaller);
RILL_API RillDataset *rill_dataset_take(RillDataset *d, int64_t count);
RILL_API RillDataset *rill_dataset_skip(RillDataset *d, int64_t count);
RILL_API RillDataset *rill_dataset_shard(RillDataset *d, int64_t shards, int64_t index); /* every shards-th element: one worker's share */
RILL_API RillDataset *rill_dataset_prefetch(RillDataset *d, int64_t buffer);
/* The next element in each step. Its iterator is made by the local init op. */
RILL_API void rill_dataset_next(RillDataset *d, RillTensor *out, int count);

#ifdef __cplusplus
}
#endif
#endif
