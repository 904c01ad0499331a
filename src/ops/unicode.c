/* unicode.c: UnicodeDecode, UnicodeEncode, UnicodeTranscode, UnicodeScript: strings of any encoding as code points and back.

   ICU reads the encodings, as it does in TensorFlow; what is written is UTF-8, or UTF-16 or UTF-32 with the large byte first. */
#include <stdlib.h>
#include <unicode/uchar.h>
#include <unicode/ucnv.h>
#include <unicode/uscript.h>

#include "base/memory.h"
#include "ops/elements.h"
#include "ops/op_list.h"

const OpDef unicode_ops[] = {
    {"UnicodeDecode", "input: string -> row_splits: Tsplits, char_values: int32",
     "input_encoding: string; errors: {'strict', 'replace', 'ignore'} = 'replace'; replacement_char: int = 65533; "
     "replace_control_characters: bool = false; Tsplits: {int32, int64} = int64",
     0},
    {"UnicodeDecodeWithOffsets", "input: string -> row_splits: Tsplits, char_values: int32, char_to_byte_starts: int64",
     "input_encoding: string; errors: {'strict', 'replace', 'ignore'} = 'replace'; replacement_char: int = 65533; "
     "replace_control_characters: bool = false; Tsplits: {int32, int64} = int64",
     0},
    {"UnicodeEncode", "input_values: int32, input_splits: Tsplits -> output: string",
     "errors: {'ignore', 'replace', 'strict'} = 'replace'; output_encoding: {'UTF-8', 'UTF-16-BE', 'UTF-32-BE'}; "
     "replacement_char: int = 65533; Tsplits: {int32, int64} = int64",
     0},
    {"UnicodeTranscode", "input: string -> output: string",
     "input_encoding: string; output_encoding: {'UTF-8', 'UTF-16-BE', 'UTF-32-BE'}; errors: {'strict', 'replace', 'ignore'} = "
     "'replace'; replacement_char: int = 65533; replace_control_characters: bool = false",
     0},
    {"UnicodeScript", "input: int32 -> output: int32", "", 0},
    {0},
};

typedef enum OutputEncoding { OUTPUT_UTF8, OUTPUT_UTF16, OUTPUT_UTF32 } OutputEncoding;

typedef struct UnicodeState {
    char *input_encoding; /* NULL: code points are the input */
    OutputEncoding output;
    int32_t replacement;
    bool strict, ignore, replace_control;
} UnicodeState;

/* ---- Attributes ---- */

static Error *open_converter(const char *encoding, UConverter **out) {
    UErrorCode status = U_ZERO_ERROR;
    UConverter *converter = !*encoding || strpbrk(encoding, "/\\") ? NULL : ucnv_open(encoding, &status);
    if (U_FAILURE(status) && converter) ucnv_close(converter);
    if (U_FAILURE(status) || !converter)
        return error_invalid("Could not create converter for input encoding: %s", encoding);
    *out = converter;
    return NULL;
}

static Error *init_errors(const Node *node, UnicodeState *s) {
    Str policy = STR("");
    int64_t replacement = 0;
    Error *err = node_attr_string(node, "errors", &policy);
    if (!err) err = node_attr_int(node, "replacement_char", &replacement);
    if (err) return err;
    if (replacement < 0 || replacement > UCHAR_MAX_VALUE)
        return error_invalid("replacement_char out of unicode codepoint range");
    s->replacement = (int32_t)replacement;
    s->strict = str_is(policy, "strict");
    s->ignore = str_is(policy, "ignore");
    return NULL;
}

static Error *init_input(const Node *node, UnicodeState *s) {
    Str encoding = STR("");
    UConverter *converter = NULL;
    Error *err = init_errors(node, s);
    if (!err) err = node_attr_bool(node, "replace_control_characters", &s->replace_control);
    if (!err) err = node_attr_string(node, "input_encoding", &encoding);
    if (err) return err;
    s->input_encoding = str_dup(encoding);
    err = open_converter(s->input_encoding, &converter);
    if (converter) ucnv_close(converter);
    return err;
}

static Error *init_output(const Node *node, UnicodeState *s) {
    Str encoding = STR("");
    Error *err = node_attr_string(node, "output_encoding", &encoding);
    s->output = str_is(encoding, "UTF-16-BE") ? OUTPUT_UTF16 : str_is(encoding, "UTF-32-BE") ? OUTPUT_UTF32 : OUTPUT_UTF8;
    return err;
}

static Error *init_decode(const Node *node, void *state) {
    return init_input(node, state);
}

static Error *init_encode(const Node *node, void *state) {
    Error *err = init_errors(node, state);
    return err ? err : init_output(node, state);
}

static Error *init_transcode(const Node *node, void *state) {
    Error *err = init_input(node, state);
    return err ? err : init_output(node, state);
}

static void clear_unicode(void *state) {
    free(((UnicodeState *)state)->input_encoding);
}

/* ---- Reading ---- */

/* Code points with where in their string they began. */
typedef struct Points {
    int32_t *at;
    int64_t *starts;
    size_t count, capacity;
} Points;

static void points_add(Points *p, int32_t point, int64_t start) {
    if (p->count == p->capacity) {
        p->capacity = p->capacity ? p->capacity * 2 : 64;
        p->at = xrealloc(p->at, p->capacity * sizeof *p->at);
        p->starts = xrealloc(p->starts, p->capacity * sizeof *p->starts);
    }
    p->at[p->count] = point;
    p->starts[p->count++] = start;
}

static void points_clear(Points *p) {
    free(p->at);
    free(p->starts);
}

/* Marks what is malformed; the converter then gives U+FFFD for it. */
static void on_malformed(const void *context, UConverterToUnicodeArgs *args, const char *units, int32_t length,
                         UConverterCallbackReason reason, UErrorCode *status) {
    if (reason == UCNV_UNASSIGNED || reason == UCNV_ILLEGAL || reason == UCNV_IRREGULAR) *(bool *)(uintptr_t)context = true;
    UCNV_TO_U_CALLBACK_SUBSTITUTE(NULL, args, units, length, reason, status);
}

typedef struct Faults {
    bool malformed, control;
} Faults;

/* Adds the code points of one string, what is malformed as the options say, and notes what was. */
static void read_points(const UnicodeState *s, UConverter *converter, Str text, Points *out, Faults *faults) {
    const char *at = text.ptr, *end = text.ptr + text.len;
    bool malformed = false;
    UErrorCode status = U_ZERO_ERROR;
    ucnv_setToUCallBack(converter, on_malformed, &malformed, NULL, NULL, &status);
    while (at < end) {
        const char *start = at;
        malformed = false;
        int32_t point = ucnv_getNextUChar(converter, &at, end, &status);
        if (U_FAILURE(status)) at = end;
        bool control = s->replace_control && point <= 0x1f;
        if (malformed || control) {
            faults->malformed |= malformed;
            faults->control |= control;
            if (s->ignore) continue;
            point = s->replacement;
        }
        points_add(out, point, start - text.ptr);
    }
}

/* ---- Writing ---- */

static void add_unit(StrBuf *b, uint32_t unit) {
    strbuf_addc(b, (char)(unit >> 8));
    strbuf_addc(b, (char)unit);
}

enum { NO_POINT = -1 }; /* nothing is written for it */

/* Half of a pair, which only a replacement can be, cannot be written in UTF-8. */
static void write_points(OutputEncoding encoding, const int32_t *points, size_t n, TString *to) {
    StrBuf b = {0};
    for (size_t i = 0; i < n; i++) {
        uint32_t point = (uint32_t)points[i];
        if (point > UCHAR_MAX_VALUE) continue;
        if (encoding == OUTPUT_UTF8) {
            strbuf_add_utf8(&b, U_IS_SURROGATE(point) ? 0xfffd : point);
        } else if (encoding == OUTPUT_UTF32) {
            add_unit(&b, point >> 16);
            add_unit(&b, point & 0xffff);
        } else if (point > 0xffff) {
            add_unit(&b, U16_LEAD(point));
            add_unit(&b, U16_TRAIL(point));
        } else {
            add_unit(&b, point);
        }
    }
    size_t len = b.len;
    tstring_take(to, strbuf_detach(&b), len);
}

/* ---- Kernels ---- */

static Error *malformed_input(void) {
    return error_invalid("Invalid formatting on input string");
}

/* All strings into one list, and where in it each begins; the converter keeps what it learnt of the byte order. */
static Error *decode_all(const UnicodeState *s, const Tensor *in, Tensor *splits, Points *points) {
    UConverter *converter = NULL;
    Error *err = open_converter(s->input_encoding, &converter);
    if (err) return err;
    Faults faults = {0};
    index_put(splits, 0, 0);
    for (int64_t i = 0; i < in->count; i++) {
        read_points(s, converter, tstring_str(&tensor_str(in)[i]), points, &faults);
        index_put(splits, i + 1, (int64_t)points->count);
    }
    ucnv_close(converter);
    return faults.malformed && s->strict ? malformed_input() : NULL;
}

static Error *run_decode(KernelContext *k) {
    const Tensor *in = k->in[0];
    Shape shape = shape_vector(in->count + 1);
    Tensor *splits = kernel_output(k, 0, &shape);
    if (!splits) return NULL;
    Points points = {0};
    Error *err = decode_all(k->state, in, splits, &points);
    shape = shape_vector((int64_t)points.count);
    Tensor *values = err ? NULL : kernel_output(k, 1, &shape);
    if (values && points.count) memcpy(values->data, points.at, points.count * sizeof *points.at);
    Tensor *starts = values && k->output_count > 2 ? kernel_output(k, 2, &shape) : NULL;
    if (starts && points.count) memcpy(starts->data, points.starts, points.count * sizeof *points.starts);
    points_clear(&points);
    return err;
}

static Error *run_transcode(KernelContext *k) {
    const UnicodeState *s = k->state;
    UConverter *converter = NULL;
    Error *err = open_converter(s->input_encoding, &converter);
    if (err) return err;
    Faults faults = {0};
    Tensor *out = kernel_output(k, 0, &k->in[0]->shape);
    for (int64_t i = 0; out && i < out->count; i++) {
        Points points = {0};
        read_points(s, converter, tstring_str(&tensor_str(k->in[0])[i]), &points, &faults);
        write_points(s->output, points.at, points.count, &tensor_str(out)[i]);
        points_clear(&points);
    }
    ucnv_close(converter);
    return (faults.malformed || faults.control) && s->strict ? malformed_input() : NULL;
}

static Error *check_splits(const Tensor *values, const Tensor *splits) {
    if (splits->shape.rank == 1 && splits->count == 0)
        return error_invalid("Input_splits should contain elements, but given input_values has 0 elements");
    if (values->shape.rank != 1 || splits->shape.rank != 1)
        return error_invalid("Both the input_tensor and input_splits should be of rank 1. ");
    if (index_at(splits, 0) != 0) return error_invalid("First value in input_splits must be zero.");
    if (index_at(splits, splits->count - 1) != values->count)
        return error_invalid("Last value in input_splits must be equal to length of input_tensor.");
    for (int64_t i = 1; i < splits->count; i++)
        if (index_at(splits, i) < index_at(splits, i - 1))
            return error_invalid("Values in input_splits must be equal or in ascending order.");
    return NULL;
}

static Error *run_encode(KernelContext *k) {
    const UnicodeState *s = k->state;
    const Tensor *values = k->in[0], *splits = k->in[1];
    Error *err = check_splits(values, splits);
    if (err) return err;
    int32_t *points = xmalloc((size_t)(values->count + 1) * sizeof *points);
    bool bad = false;
    for (int64_t i = 0; i < values->count; i++) {
        int32_t point = tensor_i32(values)[i];
        bool outside = point < 0 || point > UCHAR_MAX_VALUE || U_IS_SURROGATE(point);
        bad |= outside;
        points[i] = !outside ? point : s->ignore ? NO_POINT : s->replacement;
    }
    Shape shape = shape_vector(splits->count - 1);
    Tensor *out = bad && s->strict ? NULL : kernel_output(k, 0, &shape);
    for (int64_t i = 0; out && i < out->count; i++) {
        int64_t from = index_at(splits, i), to = index_at(splits, i + 1);
        write_points(s->output, points + from, (size_t)(to - from), &tensor_str(out)[i]);
    }
    free(points);
    return bad && s->strict ? error_invalid("Code point is out of range for Unicode, or is a surrogate.") : NULL;
}

/* TensorFlow has the characters of Unicode 13; what came later has no script there. */
static int32_t script_of(int32_t point) {
    UErrorCode status = U_ZERO_ERROR;
    UVersionInfo age;
    int32_t script = (int32_t)uscript_getScript(point, &status);
    if (U_FAILURE(status)) return USCRIPT_INVALID_CODE;
    u_charAge(point, age);
    return age[0] > 13 ? USCRIPT_UNKNOWN : script;
}

static Error *run_script(KernelContext *k) {
    Tensor *out = kernel_output_from(k, 0, 0, &k->in[0]->shape);
    for (int64_t i = 0; out && i < out->count; i++) tensor_i32(out)[i] = script_of(tensor_i32(k->in[0])[i]);
    return NULL;
}

const KernelDef unicode_cpu[] = {
    {"UnicodeDecode", .run = run_decode, .state_size = sizeof(UnicodeState), .init = init_decode, .clear = clear_unicode},
    {"UnicodeDecodeWithOffsets", .run = run_decode, .state_size = sizeof(UnicodeState), .init = init_decode,
     .clear = clear_unicode},
    {"UnicodeEncode", .run = run_encode, .state_size = sizeof(UnicodeState), .init = init_encode, .clear = clear_unicode},
    {"UnicodeTranscode", .run = run_transcode, .state_size = sizeof(UnicodeState), .init = init_transcode,
     .clear = clear_unicode},
    {"UnicodeScript", .run = run_script},
    {0},
};
