/* nms.c: NonMaxSuppressionWithOverlaps, and CombinedNonMaxSuppression of several classes at once. */
#include <math.h>
#include <stdlib.h>

#include "base/memory.h"
#include "ops/elements.h"
#include "ops/op_list.h"

const OpDef nms_ops[] = {
    {"NonMaxSuppressionWithOverlaps",
     "overlaps: float, scores: float, max_output_size: int32, overlap_threshold: float, score_threshold: float -> "
     "selected_indices: int32",
     "", 0},
    {"CombinedNonMaxSuppression",
     "boxes: float, scores: float, max_output_size_per_class: int32, max_total_size: int32, iou_threshold: float, "
     "score_threshold: float -> nmsed_boxes: float, nmsed_scores: float, nmsed_classes: float, valid_detections: "
     "int32",
     "pad_per_class: bool = false; clip_boxes: bool = true", 0},
    {0},
};

typedef struct NmsState {
    bool pad, clip; /* Combined: no more outputs than classes can give; boxes to [0, 1] */
} NmsState;

static Error *combined_init(const Node *node, void *state) {
    NmsState *s = state;
    Error *err = node_attr_bool(node, "pad_per_class", &s->pad);
    return err ? err : node_attr_bool(node, "clip_boxes", &s->clip);
}

/* ---- The search ---- */

/* Candidates still to be looked at: the best score first, of equal ones the first box. */
typedef struct Candidate {
    float score;
    int box;
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
    const float *boxes; /* box i at boxes + i * stride: y, x of two corners; NULL: overlaps are given */
    int64_t stride;
    const float *overlaps; /* n x n */
    const float *scores;
    int64_t score_stride;
    int64_t n, limit;
    float iou, least;
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

/* Selected boxes and their scores, at most s->limit; returns how many. */
static int64_t select_boxes(const Search *s, int *selected, float *scores) {
    CandidateHeap heap = {xmalloc((size_t)(s->n + 1) * sizeof *heap.items), 0};
    int64_t count = 0;
    for (int64_t i = 0; i < s->n; i++) {
        float score = s->scores[i * s->score_stride];
        if (score > s->least) heap_push(&heap, (Candidate){score, (int)i});
    }
    while (count < s->limit && heap.count > 0) {
        Candidate next = heap_pop(&heap);
        bool dropped = false;
        for (int64_t j = count - 1; j >= 0 && !dropped; j--) dropped = overlap(s, next.box, selected[j]) > s->iou;
        if (dropped) continue;
        selected[count] = next.box;
        scores[count++] = next.score;
    }
    free(heap.items);
    return count;
}

/* ---- NonMaxSuppressionWithOverlaps ---- */

static Error *check_overlaps(KernelContext *k) {
    const Shape *overlaps = &k->in[0]->shape, *scores = &k->in[1]->shape;
    if (overlaps->rank != 2) return error_invalid("overlaps must be 2-D%s", shape_text(overlaps).text);
    if (overlaps->dims[0] != overlaps->dims[1])
        return error_invalid("overlaps must be square%s", shape_text(overlaps).text);
    if (scores->rank != 1)
        return error_invalid("scores must be 1-D%s (Shape must be rank 1 but is rank %d)", shape_text(scores).text, scores->rank);
    if (scores->dims[0] != overlaps->dims[0])
        return error_invalid("scores has incompatible shape (Dimensions must be equal, but are %lld and %lld)",
                             (long long)overlaps->dims[0], (long long)scores->dims[0]);
    static const char *const names[] = {"max_output_size", "overlap_threshold", "score_threshold"};
    for (int i = 0; i < 3; i++)
        if (k->in[2 + i]->shape.rank != 0)
            return error_invalid("%s must be 0-D, got shape %s", names[i], shape_text(&k->in[2 + i]->shape).text);
    if (tensor_i32(k->in[2])[0] < 0) return error_invalid("output size must be non-negative");
    return overlaps->dims[0] > INT32_MAX ? error_invalid("overlaps has too many rows") : NULL;
}

static Error *run_with_overlaps(KernelContext *k) {
    Error *err = check_overlaps(k);
    if (err) return err;
    Search s = {.overlaps = tensor_f32(k->in[0]),
                .scores = tensor_f32(k->in[1]),
                .score_stride = 1,
                .n = k->in[1]->count,
                .limit = tensor_i32(k->in[2])[0],
                .iou = tensor_f32(k->in[3])[0],
                .least = tensor_f32(k->in[4])[0]};
    if (s.limit > s.n) s.limit = s.n;
    int *selected = xmalloc((size_t)(s.limit + 1) * sizeof *selected);
    float *scores = xmalloc((size_t)(s.limit + 1) * sizeof *scores);
    Shape vector = shape_vector(select_boxes(&s, selected, scores));
    Tensor *out = kernel_output(k, 0, &vector);
    if (out) memcpy(out->data, selected, tensor_bytes(out));
    free(selected);
    free(scores);
    return NULL;
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
    return !c->clip ? v : v < 0 ? 0 : v > 1 ? 1 : v; /* NaN stays */
}

static void combined_item(const Combined *c, int64_t b) {
    Detection *found = xmalloc((size_t)(c->per_class * c->classes + 1) * sizeof *found);
    int *selected = xmalloc((size_t)(c->per_class + 1) * sizeof *selected);
    float *kept = xmalloc((size_t)(c->per_class + 1) * sizeof *kept);
    int64_t count = 0;
    for (int64_t k = 0; k < c->classes; k++) {
        Search s = {.boxes = tensor_f32(c->boxes) + (b * c->n * c->q + (c->q > 1 ? k : 0)) * 4,
                    .stride = c->q * 4,
                    .scores = tensor_f32(c->scores) + b * c->n * c->classes + k,
                    .score_stride = c->classes,
                    .n = c->n,
                    .limit = c->per_class,
                    .iou = c->iou,
                    .least = c->least};
        int64_t n = select_boxes(&s, selected, kept);
        for (int64_t i = 0; i < n; i++) found[count++] = (Detection){kept[i], selected[i], (int)k};
    }
    qsort(found, (size_t)count, sizeof *found, by_score);
    int64_t n = count < c->total ? count : c->total;
    for (int64_t i = 0; i < c->total; i++) {
        int64_t at = b * c->total + i;
        const float *box =
            i < n ? tensor_f32(c->boxes) + ((b * c->n + found[i].box) * c->q + (c->q > 1 ? found[i].class_id : 0)) * 4
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
    if (c->boxes->shape.rank != 4)
        return error_invalid("boxes must be 4-D%s", shape_text(&c->boxes->shape).text);
    if (c->scores->shape.rank != 3)
        return error_invalid("scores must be 3-D%s", shape_text(&c->scores->shape).text);
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
    static const char *const names[] = {"max_size_per_class", "max_total_size", "iou_threshold", "score_threshold"};
    for (int i = 0; i < 4; i++)
        if (k->in[2 + i]->shape.rank != 0)
            return error_invalid("%s must be 0-D, got shape %s", names[i], shape_text(&k->in[2 + i]->shape).text);
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
    Shape boxes = {.rank = 3, .dims = {c.batch, c.total, 4}}, matrix = shape_matrix(c.batch, c.total),
          vector = shape_vector(c.batch);
    const Shape *shapes[4] = {&boxes, &matrix, &matrix, &vector};
    for (int i = 0; i < 4; i++) {
        c.out[i] = kernel_output(k, i, shapes[i]);
        if (!c.out[i]) return NULL;
    }
    threadpool_parallel_for(k->pool, c.batch, 1, combined_range, &c);
    return NULL;
}

const KernelDef nms_cpu[] = {
    {"NonMaxSuppressionWithOverlaps", .run = run_with_overlaps, .flags = KERNEL_EXPENSIVE},
    {"CombinedNonMaxSuppression", .run = run_combined, .state_size = sizeof(NmsState), .init = combined_init,
     .flags = KERNEL_EXPENSIVE},
    {0},
};
