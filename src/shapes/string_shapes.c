/* string_shapes.c: rules of strings, files and summaries. */
#include <stdlib.h>

#include "shapes/rule_list.h"

static void substr(ShapeContext *c) {
    PartialShape s = c->in[0], pos = c->in[1], len = c->in[2];
    PartialShape out = ctx_broadcast(c, s, pos);
    /* Both must be known alike: TensorFlow refuses [?] and [6]. */
    if (pos.rank >= 0 && len.rank >= 0 && pos.rank != len.rank) ctx_fail(c, "pos and len must have the same rank: %d vs. %d", pos.rank, len.rank);
    for (int i = 0; i < pos.rank && !c->err; i++) {
        if (pos.dims[i] == shape_dim(len, i)) continue;
        char *a = shape_str(&pos), *b = shape_str(&len);
        ctx_fail(c, "pos and len shapes must match: %s vs. %s", a, b);
        free(a);
        free(b);
    }
    ctx_out(c, 0, out);
}

/* Scalars go with everything; the rest must agree. */
static void string_join(ShapeContext *c) {
    bool all_scalar = true;
    PartialShape out = SHAPE_UNKNOWN;
    for (int i = 0; i < c->in_count; i++) all_scalar &= c->in[i].rank == 0;
    if (all_scalar) {
        ctx_out(c, 0, SHAPE_SCALAR);
        return;
    }
    for (int i = 0; i < c->in_count; i++)
        if (c->in[i].rank > 0) out = ctx_merge(c, out, c->in[i]);
    ctx_out(c, 0, out);
}

static void reduce_join(ShapeContext *c) {
    const Tensor *axes = ctx_value(c, 1);
    PartialShape s = c->in[0];
    bool keep = ctx_attr_bool(c, "keep_dims"), drop[SHAPE_MAX_RANK] = {0};
    ctx_rank_at_most(c, c->in[1], 1);
    if (s.rank < 0 || !axes) {
        ctx_out(c, 0, keep ? shape_unknown_dims(s.rank) : SHAPE_UNKNOWN);
        return;
    }
    for (int64_t i = 0; i < axes->count; i++) {
        int64_t axis = tensor_index(axes, i);
        if (axis < -s.rank || axis >= s.rank) {
            ctx_fail(c, "Invalid reduction dimension %lld for input with %d dimensions.", (long long)axis, s.rank);
            return;
        }
        drop[axis < 0 ? axis + s.rank : axis] = true;
    }
    PartialShape out = SHAPE_SCALAR;
    for (int i = 0; i < s.rank; i++)
        if (!drop[i] || keep) out.dims[out.rank++] = drop[i] ? 1 : s.dims[i];
    ctx_out(c, 0, out);
}

/* The template has a placeholder for each input. */
static void string_format(ShapeContext *c) {
    Str template = ctx_attr_str(c, "template"), mark = ctx_attr_str(c, "placeholder");
    int found = 0;
    for (size_t i = 0; mark.len && i + mark.len <= template.len; i++) {
        if (memcmp(template.ptr + i, mark.ptr, mark.len) != 0) continue;
        found++;
        i += mark.len - 1;
    }
    if (found != c->in_count) ctx_fail(c, "num placeholders in template and num inputs must match: %d vs. %d", found, c->in_count);
    ctx_out(c, 0, SHAPE_SCALAR);
}

static void ngrams(ShapeContext *c) {
    ctx_in_rank(c, 0, 1);
    ctx_out(c, 0, shape_vector(DIM_UNKNOWN));
    ctx_out(c, 1, ctx_in_rank(c, 1, 1));
}

static void decode_raw(ShapeContext *c) {
    ctx_out(c, 0, ctx_concat(c, c->in[0], shape_vector(DIM_UNKNOWN)));
}

static void decode_padded_raw(ShapeContext *c) {
    int64_t width = (int64_t)dtype_size(ctx_attr_type(c, "out_type")), length = ctx_dim_of(c, 1);
    int64_t size = DIM_UNKNOWN;
    if (length >= 0) {
        if (width == 0) ctx_fail(c, "size of out_type is unknown");
        else if (length % width) ctx_fail(c, "fixed_length (%lld) must be a multiple of the size of out_type (%lld)", (long long)length, (long long)width);
        else size = length / width;
    }
    ctx_out(c, 0, ctx_concat(c, c->in[0], shape_vector(size)));
}

static void decode_csv(ShapeContext *c) {
    for (int i = 1; i < c->in_count; i++) {
        PartialShape s = ctx_rank_at_most(c, c->in[i], 1);
        if (s.rank == 1 && s.dims[0] > 1) ctx_fail(c, "Shape of a default must be a length-0 or length-1 vector, or a scalar.");
    }
    ctx_out_all(c, c->in[0]);
}

/* "4 5 0,2:-" is a slice of a tensor [4,5]: its last word says how much of each dimension. */
static PartialShape slice_spec_shape(Str rest) {
    Str word = STR("");
    PartialShape s = SHAPE_SCALAR, whole = SHAPE_SCALAR;
    while (rest.len) {
        word = str_next(&rest, ' ');
        int64_t size;
        if (rest.len && str_to_int64(word, &size) && whole.rank < SHAPE_MAX_RANK) whole.dims[whole.rank++] = size;
    }
    while (word.len && s.rank < whole.rank) {
        Str part = str_next(&word, ':');
        int64_t size = DIM_UNKNOWN;
        ptrdiff_t comma = str_find(part, ',');
        if (comma < 0)
            size = whole.dims[s.rank];
        else
            str_to_int64(str_slice(part, (size_t)comma + 1, part.len), &size);
        s.dims[s.rank++] = size;
    }
    return s;
}

static void restore(ShapeContext *c) {
    ctx_want_scalar(c, 0);
    PartialShape names = ctx_in_rank(c, 1, 1), slices = ctx_in_rank(c, 2, 1);
    ctx_merge(c, names, slices);
    const Tensor *t = ctx_value(c, 2);
    if (!t || t->dtype != DT_STRING || t->count != c->out_count) return;
    for (int i = 0; i < c->out_count; i++) {
        Str spec = tstring_str(&tensor_str(t)[i]);
        if (spec.len) ctx_out(c, i, slice_spec_shape(spec));
    }
}

static void restore_slice(ShapeContext *c) {
    for (int i = 0; i < 3; i++) ctx_want_scalar(c, i);
    const Tensor *t = ctx_value(c, 2);
    Str spec = t && t->dtype == DT_STRING && t->count == 1 ? tstring_str(tensor_str(t)) : STR("");
    if (spec.len) ctx_out(c, 0, slice_spec_shape(spec));
}

static void unicode_decode(ShapeContext *c) {
    ctx_out(c, 0, shape_vector(ctx_dim_add(c, shape_elements(c->in[0]), 1)));
    for (int i = 1; i < c->out_count; i++) ctx_out(c, i, shape_vector(DIM_UNKNOWN));
}

static void unicode_encode(ShapeContext *c) {
    ctx_in_rank(c, 0, 1);
    ctx_out(c, 0, shape_vector(ctx_dim_sub(c, ctx_in_rank(c, 1, 1).dims[0], 1)));
}

static void matching_files(ShapeContext *c) {
    ctx_rank_at_most(c, c->in[0], 1);
    ctx_out(c, 0, shape_vector(DIM_UNKNOWN));
}

static void save_v1(ShapeContext *c) {
    ctx_want_scalar(c, 0);
    ctx_dim_is(c, ctx_in_rank(c, 1, 1).dims[0], c->in_count - 2);
}

static void save(ShapeContext *c) {
    ctx_want_scalar(c, 0);
    PartialShape names = ctx_in_rank(c, 1, 1), slices = ctx_in_rank(c, 2, 1);
    ctx_dim_is(c, names.dims[0], c->in_count - 3);
    ctx_dim_is(c, slices.dims[0], c->in_count - 3);
}

const ShapeRow string_rules[] = {
    {"AsString", rule_same, 0},
    {"AudioSummary", rule_scalar, 0},
    {"AudioSummaryV2", rule_scalar, 0},
    {"CloseSummaryWriter", rule_unknown, 0},
    {"CreateSummaryFileWriter", rule_unknown, 0},
    {"DecodeBase64", rule_same, 0},
    {"DecodeCSV", decode_csv, 0},
    {"DecodeCompressed", rule_same, 0},
    {"DecodePaddedRaw", decode_padded_raw, 0},
    {"DecodeRaw", decode_raw, 0},
    {"EncodeBase64", rule_same, 0},
    {"FlushSummaryWriter", rule_unknown, 0},
    {"HistogramSummary", rule_scalar, 0},
    {"ImageSummary", rule_scalar, 0},
    {"ImportEvent", rule_unknown, 0},
    {"GenerateVocabRemapping", 0, "[] [] -> [{num_new_vocab}] []"},
    {"LoadAndRemapMatrix", 0, "* [] * * * -> [{num_rows},{num_cols}]"},
    {"MatchingFiles", matching_files, 0},
    {"MergeSummary", rule_scalar, 0},
    {"MergeV2Checkpoints", 0, "[?] []"},
    {"ReadFile", 0, "[] -> []"},
    {"ReduceJoin", reduce_join, 0},
    {"RegexFullMatch", rule_same, "* []"},
    {"RegexReplace", rule_same, "* [] []"},
    {"Restore", 0, "[] [] -> *"},
    {"RestoreSlice", restore_slice, 0},
    {"RestoreV2", restore, 0},
    {"Save", save_v1, 0},
    {"SaveSlices", save, 0},
    {"SaveV2", save, 0},
    {"ScalarSummary", rule_scalar, 0},
    {"ShardedFilename", 0, "[] [] [] -> []"},
    {"ShardedFilespec", 0, "[] [] -> []"},
    {"StaticRegexFullMatch", rule_same, 0},
    {"StaticRegexReplace", rule_same, 0},
    {"StringFormat", string_format, 0},
    {"StringJoin", string_join, 0},
    {"StringLength", rule_same, 0},
    {"StringLower", rule_same, 0},
    {"StringNGrams", ngrams, 0},
    {"StringSplit", 0, "[?] [] -> [?,2] [?] [2]"},
    {"StringSplitV2", 0, "[?] [] -> [?,2] [?] [2]"},
    {"StringStrip", rule_same, 0},
    {"StringToHashBucket", rule_same, 0},
    {"StringToHashBucketFast", rule_same, 0},
    {"_TensorToHashBucketFast", rule_same, 0},
    {"StringToHashBucketStrong", rule_same, 0},
    {"StringToNumber", rule_same, 0},
    {"StringUpper", rule_same, 0},
    {"Substr", substr, 0},
    {"SummaryWriter", rule_scalar, 0},
    {"TensorSummary", rule_scalar, 0},
    {"TensorSummaryV2", rule_scalar, 0},
    {"UnicodeDecode", unicode_decode, 0},
    {"UnicodeDecodeWithOffsets", unicode_decode, 0},
    {"UnicodeEncode", unicode_encode, 0},
    {"UnicodeScript", rule_same, 0},
    {"UnicodeTranscode", rule_same, 0},
    {"WriteAudioSummary", rule_unknown, 0},
    {"WriteFile", 0, "[] []"},
    {"FileSystemSetConfiguration", rule_unknown, 0},
    {"Fact", rule_unknown, 0},
    {"WriteGraphSummary", rule_unknown, 0},
    {"WriteHistogramSummary", rule_unknown, 0},
    {"WriteImageSummary", rule_unknown, 0},
    {"WriteRawProtoSummary", rule_unknown, 0},
    {"WriteScalarSummary", rule_unknown, 0},
    {"WriteSummary", rule_unknown, 0},
    {0},
};
