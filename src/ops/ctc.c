/* ctc.c: connectionist temporal classification: loss, greedy and beam search decoders. */
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/memory.h"
#include "kernels/ctc.h"
#include "ops/op_list.h"
#include "ops/sparse_tensor.h"

const OpDef ctc_ops[] = {
    {"CTCLoss",
     "inputs: T, labels_indices: int64, labels_values: int32, sequence_length: int32 -> loss: T, gradient: T",
     "preprocess_collapse_repeated: bool = false; ctc_merge_repeated: bool = true; "
     "ignore_longer_outputs_than_inputs: bool = false; T: {float, double} = float",
     0},
    {"CTCLossV2",
     "inputs: float, labels_indices: int64, labels_values: int32, sequence_length: int32 -> loss: float, "
     "gradient: float",
     "preprocess_collapse_repeated: bool = false; ctc_merge_repeated: bool = true; "
     "ignore_longer_outputs_than_inputs: bool = false",
     0},
    {"CTCGreedyDecoder",
     "inputs: T, sequence_length: int32 -> decoded_indices: int64, decoded_values: int64, decoded_shape: int64, "
     "log_probability: T",
     "merge_repeated: bool = false; blank_index: int = -1; T: {float, double} = float", 0},
    {"CTCBeamSearchDecoder",
     "inputs: T, sequence_length: int32 -> decoded_indices: top_paths * int64, decoded_values: top_paths * int64, "
     "decoded_shape: top_paths * int64, log_probability: T",
     "beam_width: int >= 1; top_paths: int >= 1; merge_repeated: bool = true; T: {float, double} = float", 0},
    {0},
};

static double score_at(const Tensor *t, int64_t i) {
    return t->dtype == DT_DOUBLE ? tensor_f64(t)[i] : (double)tensor_f32(t)[i];
}

static void score_put(Tensor *t, int64_t i, double v) {
    if (t->dtype == DT_DOUBLE) {
        tensor_f64(t)[i] = v;
    } else {
        tensor_f32(t)[i] = (float)v;
    }
}

/* inputs: time x batch x classes */
typedef struct CtcShape {
    int64_t time, batch, classes;
} CtcShape;

static Error *ctc_shape(const Tensor *inputs, const Tensor *lengths, ErrorCode code, CtcShape *s) {
    if (inputs->shape.rank != 3) return error_invalid("inputs is not a 3-Tensor");
    *s = (CtcShape){inputs->shape.dims[0], inputs->shape.dims[1], inputs->shape.dims[2]};
    if (inputs->count == 0 && code == CODE_FAILED_PRECONDITION) return error_invalid("inputs must not be empty");
    if (s->time == 0) return error_invalid("Max time or first dimension of input cannot be 0.");
    if (s->batch == 0) return error_invalid("batch_size must not be 0");
    if (s->classes == 0) return error_invalid("num_classes must not be 0");
    if (s->classes > INT32_MAX) return error_invalid("num_classes cannot exceed max int");
    if (lengths->shape.rank != 1) return error_invalid("sequence_length is not a vector");
    if (lengths->count != s->batch)
        return error_new(code, "len(sequence_length) != batch_size.  len(sequence_length):  %lld batch_size: %lld",
                         (long long)lengths->count, (long long)s->batch);
    for (int64_t b = 0; b < s->batch; b++) {
        if (tensor_i32(lengths)[b] < 0 && code == CODE_INVALID_ARGUMENT) return error_invalid("seq_len(%lld) < 0", (long long)b);
        if (tensor_i32(lengths)[b] > s->time)
            return error_new(code, "sequence_length(%lld) <= %lld", (long long)b, (long long)s->time);
    }
    return NULL;
}

/* The scores of one sequence, malloced; NULL when memory is out. */
static double *sequence_scores(const Tensor *inputs, const CtcShape *s, int64_t b, int64_t time) {
    double *scores = try_alloc((size_t)(time * s->classes + 1) * sizeof *scores);
    for (int64_t t = 0; scores && t < time; t++) {
        double *row = scores + t * s->classes;
        for (int64_t c = 0; c < s->classes; c++) row[c] = score_at(inputs, (t * s->batch + b) * s->classes + c);
        ctc_log_softmax(row, s->classes, row);
    }
    return scores;
}

/* ---- CTCLoss ---- */

typedef struct LossState {
    bool collapse, merge, ignore_longer;
    bool blank_first; /* CTCLossV2; else the blank is the last class */
} LossState;

static Error *loss_init(const Node *node, void *state) {
    LossState *s = state;
    s->blank_first = node_is(node, "CTCLossV2");
    Error *err = node_attr_bool(node, "preprocess_collapse_repeated", &s->collapse);
    if (!err) err = node_attr_bool(node, "ctc_merge_repeated", &s->merge);
    return err ? err : node_attr_bool(node, "ignore_longer_outputs_than_inputs", &s->ignore_longer);
}

typedef struct LossJob {
    const LossState *s;
    CtcShape shape;
    const Tensor *inputs, *lengths;
    int32_t *labels; /* of all sequences */
    int64_t *starts; /* of each sequence in labels, and the end */
    Tensor *loss, *gradient;
    atomic_bool failed;
} LossJob;

static void append_labels(StrBuf *text, const int32_t *labels, int64_t n) {
    for (int64_t i = 0; i < n; i++) strbuf_addf(text, "%s%d", i ? "," : "", labels[i]);
}

/* labels[from, to) of sequence b, checked and shortened, to `out`; *n is how many. */
static Error *clean_labels(const LossJob *job, int64_t b, const int32_t *labels, int64_t count, int32_t *out,
                           int64_t *n) {
    int64_t classes = job->shape.classes;
    bool ended = false;
    Error *err = NULL;
    StrBuf all = {0}, seen = {0};
    *n = 0;
    append_labels(&all, labels, count);
    for (int64_t i = 0; i < count && !err; i++) {
        if (i > 0 && job->s->collapse && labels[i] == labels[i - 1]) continue;
        if (!job->s->blank_first && labels[i] >= classes - 1) {
            ended = true;
        } else if (ended) {
            append_labels(&seen, out, *n);
            err = error_invalid(
                "Saw a non-null label (index >= num_classes - 1) following a null label, batch: %lld "
                "num_classes: %lld labels: %.*s labels seen so far: %.*s",
                (long long)b, (long long)classes, STR_ARG(strbuf_str(&all)), STR_ARG(strbuf_str(&seen)));
        } else if (labels[i] < 0) {
            err = error_invalid("All labels must be nonnegative integers, batch: %lld labels: %.*s", (long long)b,
                                STR_ARG(strbuf_str(&all)));
        } else if (labels[i] >= classes) {
            err = error_invalid("No label may be greater than num_classes. num_classes: %lld, batch: %lld labels: %.*s",
                                (long long)classes, (long long)b, STR_ARG(strbuf_str(&all)));
        } else {
            out[(*n)++] = labels[i];
        }
    }
    strbuf_clear(&all);
    strbuf_clear(&seen);
    return err;
}

/* Sorts the labels by sequence. */
static Error *collect_labels(LossJob *job, const Tensor *indices, const Tensor *values) {
    int64_t batch = job->shape.batch, at = 0;
    Shape shape = shape_matrix(batch, 0);
    if (indices->shape.rank != 2) return error_invalid("labels_indices is not a matrix");
    if (values->shape.rank != 1) return error_invalid("labels_values is not a vector");
    if (indices->shape.dims[1] != 2) return error_invalid("labels_indices must have 2 columns");
    if (indices->shape.dims[0] != values->count)
        return error_invalid(
            "labels_indices and labels_values must contain the same number of rows, but saw shapes: %s vs. %s",
            shape_text(&indices->shape).text, shape_text(&values->shape).text);
    for (int64_t i = 0; i < values->count; i++) {
        int64_t column = tensor_i64(indices)[2 * i + 1];
        if (column >= shape.dims[1]) shape.dims[1] = column < INT64_MAX ? column + 1 : column;
    }
    SparseView v = {.indices_tensor = indices, .nnz = values->count, .shape = shape};
    Error *err = sparse_check_indices(&v, true);
    if (err) return error_wrap(err, "label SparseTensor is not valid");
    job->labels = xmalloc((size_t)(values->count + 1) * sizeof *job->labels);
    job->starts = xcalloc((size_t)batch + 2, sizeof *job->starts);
    for (int64_t b = 0; b < batch; b++) {
        int64_t end = at, n = 0;
        while (end < values->count && tensor_i64(indices)[2 * end] == b) end++;
        err = clean_labels(job, b, tensor_i32(values) + at, end - at, job->labels + job->starts[b], &n);
        if (err) return err;
        int32_t time = tensor_i32(job->lengths)[b];
        if (end == at && !(job->s->blank_first && job->s->ignore_longer))
            return error_invalid("Labels length is zero in batch %lld", (long long)b);
        if (end - at > time) n = end - at; /* longer than its input as it was given, although shorter now: no loss */
        if (n > time && !job->s->ignore_longer)
            return error_invalid(
                "Not enough time for target transition sequence (required: %lld, available: %d)%lldYou can turn "
                "this error into a warning by using the flag ignore_longer_outputs_than_inputs",
                (long long)n, time, (long long)b);
        at = end;
        job->starts[b + 1] = job->starts[b] + n;
    }
    return NULL;
}

static void loss_range(void *arg, int64_t begin, int64_t end) {
    LossJob *job = arg;
    const CtcShape *s = &job->shape;
    for (int64_t b = begin; b < end; b++) {
        int64_t time = tensor_i32(job->lengths)[b], n = job->starts[b + 1] - job->starts[b];
        score_put(job->loss, b, 0);
        if (time == 0 || n > time) continue;
        double *scores = sequence_scores(job->inputs, s, b, time), loss = 0,
               *gradient = try_alloc((size_t)(time * s->classes + 1) * sizeof *gradient);
        CtcInput in = {scores, time, s->classes, job->s->blank_first ? 0 : (int)s->classes - 1};
        bool ok = scores && gradient && ctc_loss(&in, job->labels + job->starts[b], n, job->s->merge, &loss, gradient);
        if (ok) score_put(job->loss, b, loss);
        for (int64_t t = 0; ok && t < time; t++)
            for (int64_t c = 0; c < s->classes; c++)
                score_put(job->gradient, (t * s->batch + b) * s->classes + c, gradient[t * s->classes + c]);
        if (!ok) atomic_store(&job->failed, true);
        free(scores);
        free(gradient);
    }
}

static Error *run_loss(KernelContext *k) {
    LossJob job = {.s = k->state, .inputs = k->in[0], .lengths = k->in[3]};
    Error *err = ctc_shape(job.inputs, job.lengths, CODE_INVALID_ARGUMENT, &job.shape);
    if (!err) err = collect_labels(&job, k->in[1], k->in[2]);
    Shape vector = shape_vector(job.shape.batch);
    if (!err) job.loss = kernel_output(k, 0, &vector);
    if (job.loss) job.gradient = kernel_output(k, 1, &job.inputs->shape);
    if (job.gradient) {
        memset(job.gradient->data, 0, tensor_bytes(job.gradient));
        threadpool_parallel_for(k->pool, job.shape.batch, 1, loss_range, &job);
        if (atomic_load(&job.failed)) err = error_new(CODE_RESOURCE_EXHAUSTED, "No memory for the loss of a sequence");
    }
    free(job.labels);
    free(job.starts);
    return err;
}

/* ---- Decoders ---- */

/* One sparse output: a row of labels for each sequence; outputs i, i + step, i + 2 * step. */
static void put_decoded(KernelContext *k, const CtcPath *const *rows, int64_t batch, int i, int step) {
    int64_t total = 0, most = 0, n = 0;
    for (int64_t b = 0; b < batch; b++) {
        total += rows[b]->count;
        most = rows[b]->count > most ? rows[b]->count : most;
    }
    Shape matrix = shape_matrix(total, 2), vector = shape_vector(total), two = shape_vector(2);
    Tensor *indices = kernel_output(k, i, &matrix), *values = indices ? kernel_output(k, i + step, &vector) : NULL;
    Tensor *shape = values ? kernel_output(k, i + 2 * step, &two) : NULL;
    if (!shape) return;
    for (int64_t b = 0; b < batch; b++)
        for (int64_t j = 0; j < rows[b]->count; j++, n++) {
            tensor_i64(indices)[2 * n] = b;
            tensor_i64(indices)[2 * n + 1] = j;
            tensor_i64(values)[n] = rows[b]->labels[j];
        }
    tensor_i64(shape)[0] = batch;
    tensor_i64(shape)[1] = most;
}

typedef struct DecodeState {
    bool merge;
    int64_t blank, width, paths;
} DecodeState;

static Error *greedy_init(const Node *node, void *state) {
    DecodeState *s = state;
    s->paths = 1;
    Error *err = node_attr_bool(node, "merge_repeated", &s->merge);
    return err ? err : node_attr_int(node, "blank_index", &s->blank);
}

static Error *beam_init(const Node *node, void *state) {
    DecodeState *s = state;
    Error *err = node_attr_bool(node, "merge_repeated", &s->merge);
    if (!err) err = node_attr_int(node, "beam_width", &s->width);
    if (!err) err = node_attr_int(node, "top_paths", &s->paths);
    if (!err && s->width > 1 << 20) err = error_invalid("beam_width %lld is too large", (long long)s->width);
    return err;
}

typedef struct DecodeJob {
    const DecodeState *s;
    CtcShape shape;
    const Tensor *inputs, *lengths;
    int64_t blank;
    CtcPath *paths;    /* [batch][s->paths] */
    atomic_int failed; /* 1: no memory, 2: too few paths */
} DecodeJob;

/* The steps of a sequence; a decoder takes a negative length for none. */
static int64_t decoded_time(const DecodeJob *job, int64_t b) {
    int64_t time = tensor_i32(job->lengths)[b];
    return time < 0 ? 0 : time;
}

static void greedy_one(const DecodeJob *job, int64_t b) {
    const CtcShape *s = &job->shape;
    int64_t time = decoded_time(job, b), last = -1;
    CtcPath *path = &job->paths[b];
    path->labels = xmalloc((size_t)(time + 1) * sizeof *path->labels);
    for (int64_t t = 0; t < time; t++) {
        int64_t first = (t * s->batch + b) * s->classes, best = 0;
        for (int64_t c = 1; c < s->classes; c++)
            if (score_at(job->inputs, first + c) > score_at(job->inputs, first + best)) best = c;
        path->log_probability -= score_at(job->inputs, first + best);
        if (best != job->blank && !(job->s->merge && best == last)) path->labels[path->count++] = (int32_t)best;
        last = best;
    }
}

static void beam_one(DecodeJob *job, int64_t b) {
    int64_t time = decoded_time(job, b);
    double *scores = sequence_scores(job->inputs, &job->shape, b, time);
    CtcInput in = {scores, time, job->shape.classes, (int)job->shape.classes - 1};
    if (!scores) {
        atomic_store(&job->failed, 1);
    } else if (ctc_beam_search(&in, (int)job->s->width, job->s->merge, job->paths + b * job->s->paths,
                               (int)job->s->paths) < job->s->paths) {
        atomic_store(&job->failed, 2);
    }
    free(scores);
}

static void decode_range(void *arg, int64_t begin, int64_t end) {
    DecodeJob *job = arg;
    for (int64_t b = begin; b < end; b++) {
        if (job->s->width) {
            beam_one(job, b);
        } else {
            greedy_one(job, b);
        }
    }
}

static void put_paths(KernelContext *k, const DecodeJob *job) {
    int64_t batch = job->shape.batch, n = job->s->paths;
    const CtcPath **rows = xcalloc((size_t)batch + 1, sizeof *rows);
    for (int64_t p = 0; p < n && !k->error; p++) {
        for (int64_t b = 0; b < batch; b++) rows[b] = &job->paths[b * n + p];
        put_decoded(k, rows, batch, (int)p, (int)n);
    }
    Shape shape = shape_matrix(batch, n);
    Tensor *chances = k->error ? NULL : kernel_output(k, (int)(3 * n), &shape);
    for (int64_t i = 0; chances && i < chances->count; i++) score_put(chances, i, job->paths[i].log_probability);
    free(rows);
}

static Error *run_decoder(KernelContext *k) {
    DecodeJob job = {.s = k->state, .inputs = k->in[0], .lengths = k->in[1]};
    Error *err = ctc_shape(job.inputs, job.lengths, CODE_FAILED_PRECONDITION, &job.shape);
    if (err) return err;
    int64_t classes = job.shape.classes, count = job.shape.batch * job.s->paths;
    job.blank = job.s->blank < 0 ? classes + job.s->blank : job.s->blank;
    if (!job.s->width && (job.blank < 0 || job.blank >= classes))
        return error_invalid("blank_index expected to be between %lld and %lld but was %lld", (long long)-classes,
                             (long long)classes - 1, (long long)job.s->blank);
    if (job.s->width && job.s->paths > job.s->width) return error_invalid("requested more paths than the beam width.");
    job.paths = xcalloc((size_t)count + 1, sizeof *job.paths);
    threadpool_parallel_for(k->pool, job.shape.batch, 1, decode_range, &job);
    int failed = atomic_load(&job.failed);
    if (failed == 1) err = error_new(CODE_RESOURCE_EXHAUSTED, "No memory to decode a sequence");
    if (failed == 2) err = error_invalid("Less leaves in the beam search than requested.");
    if (!err) put_paths(k, &job);
    for (int64_t i = 0; i < count; i++) free(job.paths[i].labels);
    free(job.paths);
    return err;
}

const KernelDef ctc_cpu[] = {
    {"CTCLoss", .run = run_loss, .state_size = sizeof(LossState), .init = loss_init, .flags = KERNEL_EXPENSIVE},
    {"CTCLossV2", .run = run_loss, .state_size = sizeof(LossState), .init = loss_init, .flags = KERNEL_EXPENSIVE},
    {"CTCGreedyDecoder", .run = run_decoder, .state_size = sizeof(DecodeState), .init = greedy_init,
     .flags = KERNEL_EXPENSIVE},
    {"CTCBeamSearchDecoder", .run = run_decoder, .state_size = sizeof(DecodeState), .init = beam_init,
     .flags = KERNEL_EXPENSIVE},
    {0},
};
