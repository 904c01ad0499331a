/* matrix_diag.c: diagonals: Diag, DiagPart, MatrixDiag*, MatrixDiagPart*, MatrixSetDiag*, MatrixBandPart. */
#include "ops/elements.h"
#include "ops/op_list.h"

const OpDef matrix_diag_ops[] = {
    {"Diag", "diagonal: T -> output: T", "T: {bfloat16, half, float, double, int32, int64, complex64, complex128}", 0},
    {"DiagPart", "input: T -> diagonal: T", "T: {bfloat16, half, float, double, int32, int64, complex64, complex128}",
     0},
    {"BatchMatrixDiag", "diagonal: T -> output: T", "T: type", 0},
    {"BatchMatrixDiagPart", "input: T -> diagonal: T", "T: type", 0},
    {"BatchMatrixSetDiag", "input: T, diagonal: T -> output: T", "T: type", 0},
    {"BatchMatrixBandPart", "input: T, num_lower: int64, num_upper: int64 -> band: T", "T: type", 0},
    {"MatrixDiag", "diagonal: T -> output: T", "T: type", 0},
    {"MatrixDiagV2", "diagonal: T, k: int32, num_rows: int32, num_cols: int32, padding_value: T -> output: T",
     "T: type", 0},
    {"MatrixDiagV3", "diagonal: T, k: int32, num_rows: int32, num_cols: int32, padding_value: T -> output: T",
     "T: type; align: {'LEFT_RIGHT', 'RIGHT_LEFT', 'LEFT_LEFT', 'RIGHT_RIGHT'} = 'RIGHT_LEFT'", 0},
    {"MatrixDiagPart", "input: T -> diagonal: T", "T: type", 0},
    {"MatrixDiagPartV2", "input: T, k: int32, padding_value: T -> diagonal: T", "T: type", 0},
    {"MatrixDiagPartV3", "input: T, k: int32, padding_value: T -> diagonal: T",
     "T: type; align: {'LEFT_RIGHT', 'RIGHT_LEFT', 'LEFT_LEFT', 'RIGHT_RIGHT'} = 'RIGHT_LEFT'", 0},
    {"MatrixSetDiag", "input: T, diagonal: T -> output: T", "T: type", 0},
    {"MatrixSetDiagV2", "input: T, diagonal: T, k: int32 -> output: T", "T: type", 0},
    {"MatrixSetDiagV3", "input: T, diagonal: T, k: int32 -> output: T",
     "T: type; align: {'LEFT_RIGHT', 'RIGHT_LEFT', 'LEFT_LEFT', 'RIGHT_RIGHT'} = 'RIGHT_LEFT'", 0},
    {"MatrixBandPart", "input: T, num_lower: Tindex, num_upper: Tindex -> band: T",
     "T: type; Tindex: {int32, int64} = int64", 0},
    {0},
};

static Error *run_diag(KernelContext *k) {
    const Tensor *in = k->in[0];
    int rank = in->shape.rank;
    if (rank < 1) return error_invalid("Input must be at least rank 1, got 0");
    if (rank * 2 > SHAPE_MAX_RANK) return error_invalid("Diag of more than %d dimensions", SHAPE_MAX_RANK / 2);
    Shape shape = {.rank = rank * 2};
    for (int d = 0; d < rank; d++) shape.dims[d] = shape.dims[d + rank] = in->shape.dims[d];
    Tensor *out = kernel_output(k, 0, &shape);
    if (!out || out->count == 0) return NULL;
    ElementKind kind = element_kind(in->dtype);
    copy_fill(k->pool, kind, out->data, element_zero(in->dtype), out->count);
    StridedCopy c = {0};
    copy_add_dim(&c, in->count, in->count + 1, 1);
    copy_strided(k->pool, kind, &c, out->data, in->data);
    return NULL;
}

static Error *run_diag_part(KernelContext *k) {
    const Tensor *in = k->in[0];
    int half = in->shape.rank / 2;
    if (in->shape.rank < 2 || in->shape.rank % 2)
        return error_invalid("The rank of the tensor should be                                          even and positive, got shape %s",
                             shape_text(&in->shape).text);
    for (int d = 0; d < half; d++) {
        if (in->shape.dims[d] != in->shape.dims[d + half])
            return error_invalid("Invalid shape %s: dimensions %d and %d do not match.", shape_text(&in->shape).text, d,
                                 d + half);
    }
    Shape shape = shape_of(half, in->shape.dims);
    Tensor *out = kernel_output(k, 0, &shape);
    if (!out || out->count == 0) return NULL;
    StridedCopy c = {0};
    copy_add_dim(&c, out->count, 1, out->count + 1);
    copy_strided(k->pool, element_kind(in->dtype), &c, out->data, in->data);
    return NULL;
}

typedef struct AlignState {
    bool left_super, left_sub; /* where short diagonals lie in their row */
} AlignState;

static Error *align_init(const Node *node, void *state) {
    AlignState *s = state;
    Str align = STR("LEFT_LEFT"); /* what the older forms do */
    if (op_attr(node->info, STR("align"))) {
        Error *err = node_attr_string(node, "align", &align);
        if (err) return err;
    }
    s->left_super = str_starts(align, STR("LEFT"));
    s->left_sub = str_ends(align, STR("LEFT"));
    return NULL;
}

/* A band of diagonals of matrices rows x cols; its rows in packed form go from the upper diagonal down to the lower. */
typedef struct Band {
    int64_t lower, upper, rows, cols, width; /* width: of the longest diagonal */
} Band;

static int64_t min(int64_t a, int64_t b) {
    return a < b ? a : b;
}

static int64_t diagonal_length(const Band *b, int64_t d) {
    return min(b->rows + min(d, 0), b->cols - (d > 0 ? d : 0));
}

static void set_width(Band *b) {
    b->width = min(b->rows + min(b->upper, 0), b->cols - (b->lower > 0 ? b->lower : 0));
}

static Error *read_band(const Tensor *t, Band *b, bool parts) {
    if (t->shape.rank > 1)
        return error_invalid("diag_index must be a scalar or vector, received shape: %s", shape_text(&t->shape).text);
    if (t->count < 1)
        return error_invalid(parts ? "Expected diag_index to have at least 1 element" : "diag_index must have at least one element");
    if (t->count > 2)
        return error_invalid("diag_index must have only one or two elements, received %lld elements.",
                             (long long)t->count);
    b->lower = index_at(t, 0);
    b->upper = index_at(t, t->count - 1);
    if (b->lower > b->upper)
        return error_invalid("lower_diag_index must not be larger than upper_diag_index: %lld > %lld",
                             (long long)b->lower, (long long)b->upper);
    return NULL;
}

static Error *check_band(const Band *b, const char *stop) {
    const int64_t ends[2] = {b->lower, b->upper};
    for (int i = 0; i < 2; i++) {
        if ((ends[i] > -b->rows && ends[i] < b->cols) || ends[i] == 0) continue;
        return error_invalid("%s_diag_index is out of bound: %lld%s It must be between %lld and %lld",
                             i ? "upper" : "lower", (long long)ends[i], stop, (long long)-b->rows, (long long)b->cols);
    }
    return NULL;
}

/* Between packed diagonals and matrices, for every matrix of a batch. */
static void move_diagonals(KernelContext *k, ElementKind kind, const AlignState *s, const Band *b, int64_t batch,
                           char *matrices, char *packed, bool into_matrices) {
    int64_t lines = b->upper - b->lower + 1;
    for (int64_t d = b->lower; d <= b->upper; d++) {
        int64_t n = diagonal_length(b, d);
        bool left = (d >= 0 && s->left_super) || (d <= 0 && s->left_sub);
        int64_t in_packed = (b->upper - d) * b->width + (left ? 0 : b->width - n);
        int64_t in_matrix = d >= 0 ? d : -d * b->cols;
        int64_t matrix_size = b->rows * b->cols, packed_size = lines * b->width;
        if (n <= 0) continue;
        StridedCopy c = {0};
        copy_add_dim(&c, batch, into_matrices ? matrix_size : packed_size, into_matrices ? packed_size : matrix_size);
        copy_add_dim(&c, n, into_matrices ? b->cols + 1 : 1, into_matrices ? 1 : b->cols + 1);
        char *m = matrices + (size_t)in_matrix * kind.size, *p = packed + (size_t)in_packed * kind.size;
        if (batch > 0) copy_strided(k->pool, kind, &c, into_matrices ? m : p, into_matrices ? p : m);
    }
}

/* The number of rows and columns of a MatrixDiagV2/V3, from what was given and what the band needs. */
static Error *diag_size(KernelContext *k, Band *b) {
    int64_t given[2];
    for (int i = 0; i < 2; i++) {
        if (k->in[2 + i]->shape.rank != 0) return error_invalid("%s must be a scalar", i ? "num_cols" : "num_rows");
        given[i] = index_at(k->in[2 + i], 0);
    }
    int64_t min_rows = b->width - min(b->upper, 0), min_cols = b->width + (b->lower > 0 ? b->lower : 0);
    if (given[0] != -1 && given[0] < min_rows) return error_invalid("The number of rows is too small.");
    if (given[1] != -1 && given[1] < min_cols) return error_invalid("The number of columns is too small.");
    b->rows = given[0];
    b->cols = given[1];
    if (given[0] == -1 && given[1] == -1) {
        b->rows = b->cols = min_rows > min_cols ? min_rows : min_cols;
    } else if (given[0] == -1) {
        b->rows = min_rows;
    } else if (given[1] == -1) {
        b->cols = min_cols;
    }
    if (b->rows != min_rows && b->cols != min_cols)
        return error_invalid(
            "The number of rows or columns is not consistent with the specified d_lower, d_upper, and diagonal.");
    return NULL;
}

static Error *run_matrix_diag(KernelContext *k) {
    const Tensor *in = k->in[0];
    Band b = {0};
    int rank = in->shape.rank;
    if (rank < 1) return error_invalid("diagonal must be at least 1-dim, received shape: []");
    bool several = false;
    Error *err = NULL;
    if (k->input_count > 1) {
        err = read_band(k->in[1], &b, false);
        if (err) return err;
        several = b.lower != b.upper;
        if (several && (rank < 2 || in->shape.dims[rank - 2] != b.upper - b.lower + 1))
            return error_invalid(
                "The number of diagonals provided in the input does not match the lower_diag_index and "
                "upper_diag_index range.");
    }
    b.width = in->shape.dims[rank - 1];
    if (k->input_count > 1) {
        err = diag_size(k, &b);
        if (err) return err;
        if (k->in[4]->shape.rank != 0) return error_invalid("padding_value must be a scalar");
    } else {
        b.rows = b.cols = b.width;
    }
    int batch_rank = several ? rank - 2 : rank - 1;
    if (batch_rank + 2 > SHAPE_MAX_RANK) return error_invalid("Too many dimensions for MatrixDiag");
    Shape shape = shape_of(batch_rank, in->shape.dims);
    shape.dims[shape.rank++] = b.rows;
    shape.dims[shape.rank++] = b.cols;
    Tensor *out = kernel_output(k, 0, &shape);
    if (!out || out->count == 0) return NULL;
    ElementKind kind = element_kind(in->dtype);
    copy_fill(k->pool, kind, out->data, k->input_count > 1 ? k->in[4]->data : element_zero(in->dtype), out->count);
    move_diagonals(k, kind, k->state, &b, shape_prod(&shape, 0, batch_rank), out->data, in->data, true);
    return NULL;
}

/* The band that a MatrixDiagPart or MatrixSetDiag means for the matrices in input 0; k is at input `at`, or -1. */
static Error *band_of_matrices(KernelContext *k, int at, Band *b) {
    const Shape *s = &k->in[0]->shape;
    *b = (Band){0};
    if (s->rank < 2) return error_invalid("input must be at least 2-dim, received shape: %s", shape_text(s).text);
    b->rows = s->dims[s->rank - 2];
    b->cols = s->dims[s->rank - 1];
    bool sets = str_starts(k->node->op, STR("MatrixSet"));
    Error *err = at >= 0 ? read_band(k->in[at], b, !sets) : NULL;
    if (!err) err = check_band(b, sets ? "" : ".");
    if (!err) set_width(b);
    return err;
}

static Shape packed_shape(const Shape *matrices, const Band *b) {
    Shape shape = shape_of(matrices->rank - 2, matrices->dims);
    if (b->lower != b->upper) shape.dims[shape.rank++] = b->upper - b->lower + 1;
    shape.dims[shape.rank++] = b->width;
    return shape;
}

static Error *run_matrix_diag_part(KernelContext *k) {
    const Tensor *in = k->in[0];
    Band b;
    Error *err = band_of_matrices(k, k->input_count > 1 ? 1 : -1, &b);
    if (err) return err;
    if (k->input_count > 2 && k->in[2]->count != 1) return error_invalid("Padding must be scalar.");
    Shape shape = packed_shape(&in->shape, &b);
    Tensor *out = kernel_output(k, 0, &shape);
    if (!out || out->count == 0) return NULL;
    ElementKind kind = element_kind(in->dtype);
    copy_fill(k->pool, kind, out->data, k->input_count > 2 ? k->in[2]->data : element_zero(in->dtype), out->count);
    move_diagonals(k, kind, k->state, &b, shape_prod(&in->shape, 0, in->shape.rank - 2), in->data, out->data, false);
    return NULL;
}

static Error *run_matrix_set_diag(KernelContext *k) {
    const Tensor *in = k->in[0], *diagonal = k->in[1];
    Band b;
    Error *err = band_of_matrices(k, k->input_count > 2 ? 2 : -1, &b);
    if (err) return err;
    Shape wanted = packed_shape(&in->shape, &b);
    if (diagonal->shape.rank < 1) return error_invalid("diagonal must be at least 1-dim, received shape: []");
    int outer = in->shape.rank - 2;
    if (b.lower != b.upper && outer < diagonal->shape.rank && diagonal->shape.dims[outer] != b.upper - b.lower + 1)
        return error_invalid("The number of diagonals provided in `diag` is not consistent with `lower_diag_index` and `upper_diag_index`");
    if (!shape_eq(&wanted, &diagonal->shape))
        return error_invalid(
            "Either first dimensions of diagonal don't match input.shape[:-2], or diagonal.shape[:-1] is not "
            "equal to the longests diagonal in range [lower_diag_index:upper_diag_index].\nInput shape: "
            "%s\nDiagonal shape: %s\nExpected diagonal shape: %s",
            shape_text(&in->shape).text, shape_text(&diagonal->shape).text, shape_text(&wanted).text);
    Tensor *out = kernel_output_from(k, 0, 0, &in->shape);
    if (!out) return NULL;
    if (out->data != in->data) elements_copy(in->dtype, out->data, in->data, in->count);
    move_diagonals(k, element_kind(in->dtype), k->state, &b, shape_prod(&in->shape, 0, in->shape.rank - 2), out->data,
                   diagonal->data, true);
    return NULL;
}

static Error *run_matrix_band_part(KernelContext *k) {
    const Tensor *in = k->in[0];
    int rank = in->shape.rank;
    int64_t lower, upper;
    if (rank < 2) return error_invalid("input must be at least 2-dim, received shape: %s", shape_text(&in->shape).text);
    for (int i = 1; i < 3; i++) {
        if (k->in[i]->shape.rank != 0)
            return error_invalid("%s must be scalar, got shape %s", i == 1 ? "num_lower" : "num_upper", shape_text(&k->in[i]->shape).text);
    }
    Error *err = element_scalar_int(k, 1, "num_lower", &lower);
    if (!err) err = element_scalar_int(k, 2, "num_upper", &upper);
    if (err) return err;
    int64_t rows = in->shape.dims[rank - 2], cols = in->shape.dims[rank - 1];
    if (lower > rows)
        return error_invalid("num_lower must be negative or less or equal to number of rows (%lld) got: %lld",
                             (long long)rows, (long long)lower);
    if (upper > cols)
        return error_invalid("num_upper must be negative or less or equal to number of columns (%lld) got: %lld",
                             (long long)cols, (long long)upper);
    Tensor *out = kernel_output(k, 0, &in->shape);
    if (!out || out->count == 0) return NULL;
    ElementKind kind = element_kind(in->dtype);
    copy_fill(k->pool, kind, out->data, element_zero(in->dtype), out->count);
    int64_t all_rows = in->count / cols;
    for (int64_t r = 0; r < all_rows; r++) {
        int64_t row = r % rows;
        int64_t from = lower < 0 || row - lower < 0 ? 0 : row - lower;
        int64_t to = upper < 0 || row + upper + 1 > cols ? cols : row + upper + 1;
        size_t at = (size_t)(r * cols + from) * kind.size;
        copy_elements(kind, (char *)out->data + at, (const char *)in->data + at, to - from);
    }
    return NULL;
}

const KernelDef matrix_diag_cpu[] = {
    {"Diag", .run = run_diag},
    {"DiagPart", .run = run_diag_part},
    {"BatchMatrixDiag", .run = run_matrix_diag, .state_size = sizeof(AlignState), .init = align_init},
    {"BatchMatrixDiagPart", .run = run_matrix_diag_part, .state_size = sizeof(AlignState), .init = align_init},
    {"BatchMatrixSetDiag", .run = run_matrix_set_diag, .state_size = sizeof(AlignState), .init = align_init},
    {"BatchMatrixBandPart", .run = run_matrix_band_part},
    {"MatrixDiag", .run = run_matrix_diag, .state_size = sizeof(AlignState), .init = align_init},
    {"MatrixDiagV2", .run = run_matrix_diag, .state_size = sizeof(AlignState), .init = align_init},
    {"MatrixDiagV3", .run = run_matrix_diag, .state_size = sizeof(AlignState), .init = align_init},
    {"MatrixDiagPart", .run = run_matrix_diag_part, .state_size = sizeof(AlignState), .init = align_init},
    {"MatrixDiagPartV2", .run = run_matrix_diag_part, .state_size = sizeof(AlignState), .init = align_init},
    {"MatrixDiagPartV3", .run = run_matrix_diag_part, .state_size = sizeof(AlignState), .init = align_init},
    {"MatrixSetDiag", .run = run_matrix_set_diag, .state_size = sizeof(AlignState), .init = align_init},
    {"MatrixSetDiagV2", .run = run_matrix_set_diag, .state_size = sizeof(AlignState), .init = align_init},
    {"MatrixSetDiagV3", .run = run_matrix_set_diag, .state_size = sizeof(AlignState), .init = align_init},
    {"MatrixBandPart", .run = run_matrix_band_part},
    {0},
};
