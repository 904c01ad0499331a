/* nms.c: non-maximum suppression: the best boxes that do not overlap one another too much. */
#include <math.h>
#include <stdlib.h>

#include "base/float16.h"
#include "base/memory.h"
#include "ops/elements.h"
#include "ops/op_list.h"

const OpDef nms_ops[] = {
    {"NonMaxSuppression",
     "boxes: float, scores: float, max_output_size: int32 -> selected_indices: int32",
     "iou_threshold: float = 0.5",
     0},
    {"NonMaxSuppressionV2",
     "boxes: T, scores: T, max_output_size: int32, iou_threshold: T_threshold -> selected_indices: int32",
     "T: {half, float} = float; T_threshold: {half, float} = float",
     0},
    {"NonMaxSuppressionV3",
     "boxes: T, scores: T, max_output_size: int32, iou_threshold: T_threshold, score_threshold: T_threshold -> "
     "selected_indices: int32",
     "T: {half, float} = float; T_threshold: {half, float} = float",
     0},
    {"NonMaxSuppressionV4",
     "boxes: T, scores: T, max_output_size: int32, iou_threshold: T_threshold, score_threshold: T_threshold -> "
     "selected_indices: int32, valid_outputs: int32",
     "T: {half, float} = float; T_threshold: {half, float} = float; pad_to_max_output_size: bool = false",
     0},
    {"NonMaxSuppressionV5",
     "boxes: T, scores: T, max_output_size: int32, iou_threshold: T, score_threshold: T, soft_nms_sigma: T -> "
     "selected_indices: int32, selected_scores: T, valid_outputs: int32",
     "T: {half, float} = float; pad_to_max_output_size: bool = false",
     0},
    {"NonMaxSuppressionWithOverlaps",
     "overlaps: float, scores: float, max_output_size: int32, overlap_threshold: float, score_threshold: float -> "
     "selected_indices: int32",
     "",
     0},
    {"CombinedNonMaxSuppression",
     "boxes: float, scores: float, max_output_size_per_class: int32, max_total_size: int32, iou_threshold: float, "
     "score_threshold: float -> nmsed_boxes: float, nmsed_scores: float, nmsed_classes: float, valid_detections: "
     "int32",
     "pad_per_class: bool = false; clip_boxes: bool = true",
     0},
    {0},
};

typedef struct NmsState {
    int version; /* 1 to 5 of NonMaxSuppression; 0: WithOverlaps */
    float iou;   /* of version 1 */
    bool pad;
    bool clip; /* Combined: boxes to [0, 1] */
} NmsState;

static Error *nms_init(const Node *node, void *state) {
    NmsState *s = state;
    Str value;
    char last = node->op.ptr[node->op.len - 1];
    s->version = node_is(node, "NonMaxSuppression") ? 1 : last >= '2' && last <= '5' ? last - '0' : 0;
    if (node_attr(node, "iou_threshold", &value)) attr_float(value, &s->iou);
    if (node_attr(node, "pad_to_max_output_size", &value)) attr_bool(value, &s->pad);
    if (node_attr(node, "pad_per_class", &value)) attr_bool(value, &s->pad);
    if (node_attr(node, "clip_boxes", &value)) attr_bool(value, &s->clip);
    return NULL;
}

static float float_at(const Tensor *t, int64_t i) {
    return t->dtype == DT_HALF ? half_to_float(((const uint16_t *)t->data)[i]) : tensor_f32(t)[i];
}

/* ---- The search ---- */

/* Candidates still to be looked at: the best score first, of equal ones the first box. */
typedef struct Candidate {
    float score;
    int box;
    int seen; /* how many of the selected ones it was compared with */
} Candidate;

typedef struct CandidateHeap {
    Candidate *items;
    int64_t count;
} CandidateHeap;

static bool is_better(const Candidate *a, const Candidate *b) {
    return a->score > b->score || (a->score == b->score && a->box < b->box);
}

static void heap_push(CandidateHeap *h, Candidate c) {
    int64_t at = h->count++;
    for (; at > 0 && is_better(&c, &h->items[(at - 1) / 2]); at = (at - 1) / 2) h->items[at] = h->items[(at - 1) / 2];
    h->items[at] = c;
}

static Candidate heap_pop(CandidateHeap *h) {
    Candidate top = h->items[0], last = h->items[--h->count];
    int64_t at = 0;
    for (int64_t child = 1; child < h->count; child = 2 * at + 1) {
        if (child + 1 < h->count && is_better(&h->items[child + 1], &h->items[child])) child++;
        if (!is_better(&h->items[child], &last)) break;
        h->items[at] = h->items[child];
        at = child;
    }
    if (h->count > 0) h->items[at] = last;
    return top;
}

/* What is searched. */
typedef struct Search {
    const float *boxes;    /* box i at boxes + i * stride: y, x of two corners; NULL: overlaps are given */
    int64_t stride;
    const float *overlaps; /* n x n */
    const float *scores;
    int64_t score_stride;
    int64_t n, limit;
    float iou, least, sigma;
} Search;

static float overlap(const Search *s, int i, int j) {
    if (s->overlaps) return s->overlaps[i * s->n + j];
    const float *a = s->boxes + i * s->stride, *b = s->boxes + j * s->stride;
    float ay0 = fminf(a[0], a[2]), ay1 = fmaxf(a[0], a[2]), ax0 = fminf(a[1], a[3]), ax1 = fmaxf(a[1], a[3]);
    float by0 = fminf(b[0], b[2]), by1 = fmaxf(b[0], b[2]), bx0 = fminf(b[1], b[3]), bx1 = fmaxf(b[1], b[3]);
    float area_a = (ay1 - ay0) * (ax1 - ax0), area_b = (by1 - by0) * (bx1 - bx0);
    if (area_a <= 0 || area_b <= 0) return 0;
    float height = fmaxf(fminf(ay1, by1) - fmaxf(ay0, by0), 0), width = fmaxf(fminf(ax1, bx1) - fmaxf(ax0, bx0), 0);
    float common = height * width;
    return common / (area_a + area_b - common);
}

/* Selected boxes and their scores, at most s->limit; returns how many. With sigma > 0 overlapping boxes lose score
 * (soft suppression) and are tried again later. */
static int64_t select_boxes(const Search *s, int *selected, float *scores) {
    CandidateHeap heap = {xmalloc((size_t)(s->n + 1) * sizeof *heap.items), 0};
    int64_t count = 0;
    bool soft = s->sigma > 0;
    float scale = soft ? -0.5f / s->sigma : 0;
    for (int64_t i = 0; i < s->n; i++) {
        float score = s->scores[i * s->score_stride];
        if (score > s->least) heap_push(&heap, (Candidate){score, (int)i, 0});
    }
    while (count < s->limit && heap.count > 0) {
        Candidate next = heap_pop(&heap);
        float before = next.score;
        bool dropped = false;
        for (int64_t j = count - 1; j >= next.seen && !dropped; j--) {
            float common = overlap(s, next.box, selected[j]);
            if (soft) next.score *= common <= s->iou ? expf(scale * common * common) : 0;
            dropped = soft ? next.score <= s->least : common > s->iou;
        }
        next.seen = (int)count;
        if (dropped) continue;
        if (next.score == before) {
            selected[count] = next.box;
            scores[count++] = next.score;
        } else if (next.score > s->least) {
            heap_push(&heap, next);
        }
    }
    free(heap.items);
    return count;
}

/* ---- NonMaxSuppression ---- */

static Error *scalar_of(const Tensor *t, const char *what, float *out) {
    if (t->shape.rank != 0) return error_invalid("%s must be 0-D, got shape %s", what, shape_text(&t->shape).text);
    *out = float_at(t, 0);
    return NULL;
}

static Error *size_of(KernelContext *k, int i, int64_t *out) {
    if (k->in[i]->shape.rank != 0)
        return error_invalid("max_output_size must be 0-D, got shape %s", shape_text(&k->in[i]->shape).text);
    *out = tensor_i32(k->in[i])[0];
    return *out < 0 ? error_invalid("output size must be non-negative") : NULL;
}

static Error *check_boxes(const NmsState *s, const Tensor *boxes, const Tensor *scores) {
    if (boxes->shape.rank != 2) return error_invalid("%s must be 2-D, got shape %s", s->version ? "boxes" : "overlaps", shape_text(&boxes->shape).text);
    if (s->version && boxes->shape.dims[1] != 4)
        return error_invalid("boxes must have 4 columns (Dimension must be 4 but is %lld)", (long long)boxes->shape.dims[1]);
    if (!s->version && boxes->shape.dims[1] != boxes->shape.dims[0]) return error_invalid("overlaps must be square");
    if (scores->shape.rank != 1) return error_invalid("scores must be 1-D, got shape %s", shape_text(&scores->shape).text);
    if (scores->count != boxes->shape.dims[0])
        return error_invalid("scores has incompatible shape (Dimensions must be equal, but are %lld and %lld)",
                             (long long)boxes->shape.dims[0], (long long)scores->count);
    return boxes->shape.dims[0] > INT32_MAX ? error_invalid("boxes has too many rows") : NULL;
}

/* A float copy, malloced, of what may be half. */
static float *floats_of(const Tensor *t) {
    float *to = try_alloc((size_t)(t->count + 1) * sizeof *to);
    for (int64_t i = 0; to && i < t->count; i++) to[i] = float_at(t, i);
    return to;
}

static void put_selected(KernelContext *k, const NmsState *s, int64_t n, int64_t limit, const int *selected, const float *scores) {
    int64_t size = s->pad ? limit : n;
    Shape vector = shape_vector(size), scalar = SHAPE_SCALAR;
    Tensor *out = kernel_output(k, 0, &vector), *kept = out && s->version == 5 ? kernel_output(k, 1, &vector) : NULL;
    for (int64_t i = 0; out && i < size; i++) tensor_i32(out)[i] = i < n ? selected[i] : 0;
    for (int64_t i = 0; kept && i < size; i++) {
        float score = i < n ? scores[i] : 0;
        if (kept->dtype == DT_HALF) {
            ((uint16_t *)kept->data)[i] = float_to_half(score);
        } else {
            tensor_f32(kept)[i] = score;
        }
    }
    Tensor *valid = out && s->version >= 4 ? kernel_output(k, s->version - 3, &scalar) : NULL;
    if (valid) tensor_i32(valid)[0] = (int32_t)n;
}

static Error *run_nms(KernelContext *k) {
    const NmsState *s = k->state;
    const Tensor *boxes = k->in[0], *scores = k->in[1];
    int64_t limit = 0;
    Search search = {.stride = 4, .score_stride = 1, .iou = s->iou, .least = -INFINITY};
    Error *err = check_boxes(s, boxes, scores);
    if (!err) err = size_of(k, 2, &limit);
    if (!err && k->input_count > 3) err = scalar_of(k->in[3], "iou_threshold", &search.iou);
    if (!err && k->input_count > 4) err = scalar_of(k->in[4], "score_threshold", &search.least);
    if (!err && k->input_count > 5) err = scalar_of(k->in[5], "soft_nms_sigma", &search.sigma);
    if (!err && s->version && !(search.iou >= 0 && search.iou <= 1)) err = error_invalid("iou_threshold must be in [0, 1]");
    if (!err && !(search.sigma >= 0)) err = error_invalid("soft_nms_sigma_ must be >= 0");
    if (err) return err;
    search.n = scores->count;
    search.limit = limit < search.n ? limit : search.n;
    float *values = floats_of(boxes), *score_values = floats_of(scores),
          *kept = try_alloc((size_t)(search.limit + 1) * sizeof *kept);
    int *selected = try_alloc((size_t)(search.limit + 1) * sizeof *selected);
    if (values && score_values && kept && selected) {
        if (s->version) {
            search.boxes = values;
        } else {
            search.overlaps = values;
        }
        search.scores = score_values;
        put_selected(k, s, select_boxes(&search, selected, kept), limit, selected, kept);
    } else {
        err = error_new(CODE_RESOURCE_EXHAUSTED, "No memory for %lld boxes", (long long)search.n);
    }
    free(values);
    free(score_values);
    free(kept);
    free(selected);
    return err;
}

/* ---- CombinedNonMaxSuppression ---- */

typedef struct Detection {
    float score;
    int box, class_id;
} Detection;

static int by_score(const void *a, const void *b) {
    const Detection *x = a, *y = b;
    if (x->score != y->score) return x->score < y->score ? 1 : -1;
    return x->class_id != y->class_id ? (x->class_id > y->class_id) - (x->class_id < y->class_id)
                                      : (x->box > y->box) - (x->box < y->box);
}

typedef struct Combined {
    const Tensor *boxes, *scores;
    int64_t batch, n, q, classes, per_class, total;
    float iou, least;
    bool clip;
    Tensor *out[4];
} Combined;

static float clipped(const Combined *c, float v) {
    return c->clip ? fminf(fmaxf(v, 0), 1) : v;
}

static void combined_item(const Combined *c, int64_t b) {
    Detection *found = xmalloc((size_t)(c->per_class * c->classes + 1) * sizeof *found);
    int *selected = xmalloc((size_t)(c->per_class + 1) * sizeof *selected);
    float *kept = xmalloc((size_t)(c->per_class + 1) * sizeof *kept);
    int64_t count = 0;
    for (int64_t k = 0; k < c->classes; k++) {
        Search s = {.boxes = tensor_f32(c->boxes) + (b * c->n * c->q + (c->q > 1 ? k : 0)) * 4, .stride = c->q * 4,
                    .scores = tensor_f32(c->scores) + b * c->n * c->classes + k, .score_stride = c->classes, .n = c->n,
                    .limit = c->per_class, .iou = c->iou, .least = c->least};
        int64_t n = select_boxes(&s, selected, kept);
        for (int64_t i = 0; i < n; i++) found[count++] = (Detection){kept[i], selected[i], (int)k};
    }
    qsort(found, (size_t)count, sizeof *found, by_score);
    int64_t n = count < c->total ? count : c->total;
    for (int64_t i = 0; i < c->total; i++) {
        int64_t at = b * c->total + i;
        const float *box = i < n ? tensor_f32(c->boxes) + ((b * c->n + found[i].box) * c->q + (c->q > 1 ? found[i].class_id : 0)) * 4
                                 : NULL;
        for (int d = 0; d < 4; d++) tensor_f32(c->out[0])[4 * at + d] = box ? clipped(c, box[d]) : 0;
        tensor_f32(c->out[1])[at] = box ? found[i].score : 0;
        tensor_f32(c->out[2])[at] = box ? (float)found[i].class_id : 0;
    }
    tensor_i32(c->out[3])[b] = (int32_t)n;
    free(found);
    free(selected);
    free(kept);
}

static void combined_range(void *arg, int64_t begin, int64_t end) {
    for (int64_t b = begin; b < end; b++) combined_item(arg, b);
}

static Error *combined_shape(KernelContext *k, Combined *c) {
    if (c->boxes->shape.rank != 4) return error_invalid("boxes must be 4-D, got shape %s", shape_text(&c->boxes->shape).text);
    if (c->scores->shape.rank != 3) return error_invalid("scores must be 3-D, got shape %s", shape_text(&c->scores->shape).text);
    const int64_t *b = c->boxes->shape.dims, *s = c->scores->shape.dims;
    c->batch = b[0];
    c->n = b[1];
    c->q = b[2];
    c->classes = s[2];
    if (b[0] != s[0]) return error_invalid("boxes and scores must have same batch size");
    if (b[1] != s[1]) return error_invalid("scores has incompatible shape");
    if (b[2] != 1 && b[2] != s[2]) return error_invalid("third dimension of boxes must be either 1 or num classes");
    if (b[3] != 4) return error_invalid("boxes must have 4 columns");
    if (c->n > INT32_MAX || c->classes > INT32_MAX) return error_invalid("boxes has too many rows");
    for (int i = 2; i < 6; i++)
        if (k->in[i]->shape.rank != 0) return error_invalid("Input %d of CombinedNonMaxSuppression must be 0-D", i);
    c->per_class = tensor_i32(k->in[2])[0];
    c->total = tensor_i32(k->in[3])[0];
    c->iou = tensor_f32(k->in[4])[0];
    c->least = tensor_f32(k->in[5])[0];
    if (c->per_class <= 0) return error_invalid("max_size_per_class must be positive");
    if (c->total <= 0) return error_invalid("max_total_size must be > 0");
    if (!(c->iou >= 0 && c->iou <= 1)) return error_invalid("iou_threshold must be in [0, 1]");
    return NULL;
}

static Error *run_combined(KernelContext *k) {
    const NmsState *s = k->state;
    Combined c = {.boxes = k->in[0], .scores = k->in[1], .clip = s->clip};
    Error *err = combined_shape(k, &c);
    if (err) return err;
    if (s->pad && c.per_class * c.classes < c.total) c.total = c.per_class * c.classes;
    if (c.per_class > c.n) c.per_class = c.n;
    Shape boxes = {.rank = 3, .dims = {c.batch, c.total, 4}}, matrix = shape_matrix(c.batch, c.total), vector = shape_vector(c.batch);
    const Shape *shapes[4] = {&boxes, &matrix, &matrix, &vector};
    for (int i = 0; i < 4; i++) {
        c.out[i] = kernel_output(k, i, shapes[i]);
        if (!c.out[i]) return NULL;
    }
    threadpool_parallel_for(k->pool, c.batch, 1, combined_range, &c);
    return NULL;
}

#define NMS(run_fn) .run = run_fn, .state_size = sizeof(NmsState), .init = nms_init, .flags = KERNEL_EXPENSIVE

const KernelDef nms_cpu[] = {
    {"NonMaxSuppression", NMS(run_nms)},
    {"NonMaxSuppressionV2", NMS(run_nms)},
    {"NonMaxSuppressionV3", NMS(run_nms)},
    {"NonMaxSuppressionV4", NMS(run_nms)},
    {"NonMaxSuppressionV5", NMS(run_nms)},
    {"NonMaxSuppressionWithOverlaps", NMS(run_nms)},
    {"CombinedNonMaxSuppression", NMS(run_combined)},
    {0},
};
