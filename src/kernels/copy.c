/* copy.c: copies of elements between strided arrays: slices, concat, pad, tile, transpose. */
#include "kernels/copy.h"

#include <stdbool.h>
#include <string.h>

#include "kernels/cpu.h"

enum { GRAIN_BYTES = 1 << 17, TILE = 16, PLANE_ROWS = 64 /* of a plane, that one thread takes together */ };

typedef struct Bytes16 {
    uint64_t a, b;
} Bytes16;

void copy_add_dim(StridedCopy *c, int64_t dim, int64_t to_stride, int64_t from_stride) {
    int r = c->rank;
    if (dim == 1) return;
    if (r > 0 && c->to_strides[r - 1] == dim * to_stride && c->from_strides[r - 1] == dim * from_stride) {
        c->dims[r - 1] *= dim;
        c->to_strides[r - 1] = to_stride;
        c->from_strides[r - 1] = from_stride;
        return;
    }
    c->dims[r] = dim;
    c->to_strides[r] = to_stride;
    c->from_strides[r] = from_stride;
    c->rank++;
}

void copy_elements(ElementKind kind, void *to, const void *from, int64_t n) {
    if (n <= 0) return;
    if (kind.copy) {
        kind.copy(kind.type, to, from, n);
    } else {
        memcpy(to, from, (size_t)n * kind.size);
    }
}

#define T uint8_t
#define NAME(x) x##_1
#include "kernels/copy_rows.inc"
#define T uint16_t
#define NAME(x) x##_2
#include "kernels/copy_rows.inc"
#define T uint32_t
#define NAME(x) x##_4
#include "kernels/copy_rows.inc"
#define T uint64_t
#define NAME(x) x##_8
#include "kernels/copy_rows.inc"
#define T Bytes16
#define NAME(x) x##_16
#include "kernels/copy_rows.inc"

static void row_any(ElementKind kind, char *to, int64_t to_stride, const char *from, int64_t from_stride, int64_t n) {
    int64_t size = (int64_t)kind.size;
    for (int64_t i = 0; i < n; i++) copy_elements(kind, to + i * to_stride * size, from + i * from_stride * size, 1);
}

static void copy_row(ElementKind kind, void *to, int64_t to_stride, const void *from, int64_t from_stride, int64_t n) {
    if (to_stride == 1 && from_stride == 1) {
        copy_elements(kind, to, from, n);
    } else if (kind.copy) {
        row_any(kind, to, to_stride, from, from_stride, n);
    } else {
        switch (kind.size) {
            case 1:
                row_1(to, to_stride, from, from_stride, n);
                break;
            case 2:
                row_2(to, to_stride, from, from_stride, n);
                break;
            case 4:
                row_4(to, to_stride, from, from_stride, n);
                break;
            case 8:
                row_8(to, to_stride, from, from_stride, n);
                break;
            case 16:
                row_16(to, to_stride, from, from_stride, n);
                break;
            default:
                row_any(kind, to, to_stride, from, from_stride, n);
        }
    }
}

#if CPU_HAS_VECTORS
/* Blocks of 8 x 8 words turned in vectors; what does not fill one is left to plane_4. */
typedef uint32_t Words __attribute__((vector_size(32), aligned(4), may_alias));
#define TURN(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
CPU_TARGET_AVX2 static void turn_block(uint32_t *to, int64_t ts, const uint32_t *from, int64_t fc) {
    Words v[8], t[8];
    for (int i = 0; i < 8; i++) v[i] = *(const Words *)(from + i * fc);
    for (int i = 0; i < 8; i += 2) {
        t[i] = TURN(v[i], v[i + 1], 0, 8, 1, 9, 4, 12, 5, 13);
        t[i + 1] = TURN(v[i], v[i + 1], 2, 10, 3, 11, 6, 14, 7, 15);
    }
    for (int i = 0; i < 8; i += 4) {
        v[i] = TURN(t[i], t[i + 2], 0, 1, 8, 9, 4, 5, 12, 13);
        v[i + 1] = TURN(t[i], t[i + 2], 2, 3, 10, 11, 6, 7, 14, 15);
        v[i + 2] = TURN(t[i + 1], t[i + 3], 0, 1, 8, 9, 4, 5, 12, 13);
        v[i + 3] = TURN(t[i + 1], t[i + 3], 2, 3, 10, 11, 6, 7, 14, 15);
    }
    for (int i = 0; i < 4; i++) {
        *(Words *)(to + i * ts) = TURN(v[i], v[i + 4], 0, 1, 2, 3, 8, 9, 10, 11);
        *(Words *)(to + (i + 4) * ts) = TURN(v[i], v[i + 4], 4, 5, 6, 7, 12, 13, 14, 15);
    }
}
CPU_TARGET_AVX2 static void turn_blocks(uint32_t *to, int64_t ts, const uint32_t *from, int64_t fc, int64_t rows, int64_t cols) {
    for (int64_t r = 0; r < rows; r += 8)
        for (int64_t c = 0; c < cols; c += 8) turn_block(to + r * ts + c, ts, from + r + c * fc, fc);
}
static void turn_4(uint32_t *to, int64_t ts, const uint32_t *from, int64_t fc, int64_t rows, int64_t cols) {
    int64_t whole_rows = cpu_level() == CPU_PLAIN ? 0 : rows / 8 * 8, whole_cols = cols / 8 * 8;
    turn_blocks(to, ts, from, fc, whole_rows, whole_cols);
    plane_4(to + whole_cols, ts, 1, from + whole_cols * fc, fc, whole_rows, cols - whole_cols);
    plane_4(to + whole_rows * ts, ts, 1, from + whole_rows, fc, rows - whole_rows, cols);
}
#else
static void turn_4(uint32_t *to, int64_t ts, const uint32_t *from, int64_t fc, int64_t rows, int64_t cols) {
    plane_4(to, ts, 1, from, fc, rows, cols);
}
#endif

/* The two innermost dimensions at once, in tiles, so that neither side jumps for every element. */
static void copy_plane(ElementKind kind, const StridedCopy *c, int64_t rows, void *to, const void *from) {
    int r = c->rank;
    int64_t cols = c->dims[r - 1], ts = c->to_strides[r - 2], tc = c->to_strides[r - 1];
    int64_t fc = c->from_strides[r - 1];
    switch (kind.size) {
        case 1:
            plane_1(to, ts, tc, from, fc, rows, cols);
            break;
        case 2:
            plane_2(to, ts, tc, from, fc, rows, cols);
            break;
        case 4:
            if (tc == 1)
                turn_4(to, ts, from, fc, rows, cols);
            else
                plane_4(to, ts, tc, from, fc, rows, cols);
            break;
        case 8:
            plane_8(to, ts, tc, from, fc, rows, cols);
            break;
        case 16:
            plane_16(to, ts, tc, from, fc, rows, cols);
            break;
    }
}

typedef struct Job {
    ElementKind kind;
    const StridedCopy *c;
    char *to;
    const char *from;
    const void *value;
    int outer_rank;
} Job;

/* Positions [begin, end) of the outer dimensions, counted row-major. */
static void copy_range(void *arg, int64_t begin, int64_t end) {
    const Job *job = arg;
    const StridedCopy *c = job->c;
    int64_t index[COPY_MAX_RANK], rest = begin, to = 0, from = 0, size = (int64_t)job->kind.size;
    for (int d = job->outer_rank - 1; d >= 0; d--) {
        index[d] = rest % c->dims[d];
        rest /= c->dims[d];
        to += index[d] * c->to_strides[d];
        from += index[d] * c->from_strides[d];
    }
    int last = c->rank - 1;
    for (int64_t i = begin; i < end; i++) {
        copy_row(job->kind, job->to + to * size, c->to_strides[last], job->from + from * size, c->from_strides[last], c->dims[last]);
        for (int d = job->outer_rank - 1; d >= 0; d--) {
            to += c->to_strides[d];
            from += c->from_strides[d];
            if (++index[d] < c->dims[d]) break;
            to -= c->dims[d] * c->to_strides[d];
            from -= c->dims[d] * c->from_strides[d];
            index[d] = 0;
        }
    }
}

static int64_t plane_blocks(const StridedCopy *c) {
    return (c->dims[c->rank - 2] + PLANE_ROWS - 1) / PLANE_ROWS;
}

/* Blocks [begin, end) of rows of the planes, which follow each other as the outer dimensions do. */
static void copy_planes(void *arg, int64_t begin, int64_t end) {
    const Job *job = arg;
    const StridedCopy *c = job->c;
    const int64_t blocks = plane_blocks(c), all = c->dims[c->rank - 2], size = (int64_t)job->kind.size;
    for (int64_t i = begin; i < end; i++) {
        int64_t rest = i / blocks, row = i % blocks * PLANE_ROWS, to = row * c->to_strides[c->rank - 2], from = row;
        for (int d = job->outer_rank - 1; d >= 0; d--) {
            to += rest % c->dims[d] * c->to_strides[d];
            from += rest % c->dims[d] * c->from_strides[d];
            rest /= c->dims[d];
        }
        copy_plane(job->kind, c, all - row < PLANE_ROWS ? all - row : PLANE_ROWS, job->to + to * size, job->from + from * size);
    }
}

void copy_strided(ThreadPool *pool, ElementKind kind, const StridedCopy *given, void *to, const void *from) {
    StridedCopy c = *given;
    int64_t count = 1;
    for (int d = 0; d < c.rank; d++) count *= c.dims[d];
    if (count == 0) return;
    if (c.rank == 0) {
        copy_elements(kind, to, from, 1);
        return;
    }
    /* One long row is split so that threads can share it. */
    if (c.rank == 1 && c.dims[0] > GRAIN_BYTES && c.dims[0] % 64 == 0) {
        int64_t n = c.dims[0] / 64;
        c = (StridedCopy){
            2, {64, n}, {c.to_strides[0] * n, c.to_strides[0]}, {c.from_strides[0] * n, c.from_strides[0]}};
    }
    Job job = {.kind = kind, .c = &c, .to = to, .from = from, .outer_rank = c.rank - 1};
    int r = c.rank;
    bool planes = r >= 2 && !kind.copy && c.from_strides[r - 1] != 1 && c.from_strides[r - 2] == 1 && kind.size <= 16 &&
                 (kind.size & (kind.size - 1)) == 0;
    if (planes) job.outer_rank = r - 2;
    int64_t outer = 1;
    for (int d = 0; d < job.outer_rank; d++) outer *= c.dims[d];
    if (planes) outer *= plane_blocks(&c);
    int64_t inner_bytes = count / outer * (int64_t)kind.size;
    threadpool_parallel_for(kind.copy ? NULL : pool, outer, GRAIN_BYTES / (inner_bytes + 1) + 1, planes ? copy_planes : copy_range, &job);
}

static void fill_range(void *arg, int64_t begin, int64_t end) {
    const Job *job = arg;
    copy_row(job->kind, job->to + begin * (int64_t)job->kind.size, 1, job->value, 0, end - begin);
}

void copy_fill(ThreadPool *pool, ElementKind kind, void *to, const void *value, int64_t n) {
    static const char zeros[32];
    if (n <= 0) return;
    if (!kind.copy && kind.size <= sizeof zeros && memcmp(value, zeros, kind.size) == 0) {
        memset(to, 0, (size_t)n * kind.size);
        return;
    }
    Job job = {.kind = kind, .to = to, .value = value};
    threadpool_parallel_for(kind.copy ? NULL : pool, n, GRAIN_BYTES, fill_range, &job);
}

void copy_transpose(ThreadPool *pool, ElementKind kind, int rank, const int64_t *from_dims, const int *perm, void *to,
                    const void *from) {
    int64_t from_strides[COPY_MAX_RANK], to_strides[COPY_MAX_RANK], stride = 1;
    for (int d = rank - 1; d >= 0; d--) {
        from_strides[d] = stride;
        stride *= from_dims[d];
    }
    stride = 1;
    for (int d = rank - 1; d >= 0; d--) {
        to_strides[d] = stride;
        stride *= from_dims[perm[d]];
    }
    StridedCopy c = {0};
    for (int d = 0; d < rank; d++) copy_add_dim(&c, from_dims[perm[d]], to_strides[d], from_strides[perm[d]]);
    /* Tiles want the dimension that is contiguous in `from` next to the last; order does not matter to the result. */
    int fast = -1;
    for (int d = 0; d < c.rank - 1; d++) {
        if (c.from_strides[d] == 1) fast = d;
    }
    if (fast >= 0 && fast < c.rank - 2) {
        int64_t dim = c.dims[fast], ts = c.to_strides[fast], fs = c.from_strides[fast];
        for (int d = fast; d < c.rank - 2; d++) {
            c.dims[d] = c.dims[d + 1];
            c.to_strides[d] = c.to_strides[d + 1];
            c.from_strides[d] = c.from_strides[d + 1];
        }
        c.dims[c.rank - 2] = dim;
        c.to_strides[c.rank - 2] = ts;
        c.from_strides[c.rank - 2] = fs;
    }
    copy_strided(pool, kind, &c, to, from);
}
