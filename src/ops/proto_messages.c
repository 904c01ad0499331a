/* proto_messages.c: TensorFlow's messages that hold data: examples, tensors, shapes, attributes, summaries. They are
 * what "local://" has. */
#include "ops/proto_source.h"
#include "proto/wire.h"

typedef struct MessageRow {
    const char *name, *fields; /* as in a .proto file, with commas between */
} MessageRow;

static const MessageRow messages[] = {
    {"Example", "Features features = 1"},
    {"Features", "repeated Features.FeatureEntry feature = 1"},
    {"Features.FeatureEntry", "string key = 1, Feature value = 2"},
    {"Feature", "BytesList bytes_list = 1, FloatList float_list = 2, Int64List int64_list = 3"},
    {"BytesList", "repeated bytes value = 1"},
    {"FloatList", "repeated float value = 1"},
    {"Int64List", "repeated int64 value = 1"},
    {"SequenceExample", "Features context = 1, FeatureLists feature_lists = 2"},
    {"FeatureLists", "repeated FeatureLists.FeatureListEntry feature_list = 1"},
    {"FeatureLists.FeatureListEntry", "string key = 1, FeatureList value = 2"},
    {"FeatureList", "repeated Feature feature = 1"},
    {"TensorShapeProto", "repeated TensorShapeProto.Dim dim = 2, bool unknown_rank = 3"},
    {"TensorShapeProto.Dim", "int64 size = 1, string name = 2"},
    {"TensorProto",
     "DataType dtype = 1, TensorShapeProto tensor_shape = 2, int32 version_number = 3, bytes tensor_content = 4, "
     "repeated int32 half_val = 13, repeated float float_val = 5, repeated double double_val = 6, repeated int32 "
     "int_val = 7, repeated bytes string_val = 8, repeated float scomplex_val = 9, repeated int64 int64_val = 10, "
     "repeated bool bool_val = 11, repeated double dcomplex_val = 12, repeated ResourceHandleProto resource_handle_val "
     "= 14, repeated VariantTensorDataProto variant_val = 15, repeated uint32 uint32_val = 16, repeated uint64 "
     "uint64_val = 17, bytes float8_val = 18"},
    {"ResourceHandleProto",
     "string device = 1, string container = 2, string name = 3, uint64 hash_code = 4, string maybe_type_name = 5, "
     "repeated ResourceHandleProto.DtypeAndShape dtypes_and_shapes = 6"},
    {"ResourceHandleProto.DtypeAndShape", "DataType dtype = 1, TensorShapeProto shape = 2"},
    {"VariantTensorDataProto", "string type_name = 1, bytes metadata = 2, repeated TensorProto tensors = 3"},
    {"TensorSliceProto", "repeated TensorSliceProto.Extent extent = 1"},
    {"TensorSliceProto.Extent", "int64 start = 1, int64 length = 2"},
    {"SerializedDType", "DataType datatype = 1"},
    {"VariableDef",
     "string variable_name = 1, string initial_value_name = 6, string initializer_name = 2, string snapshot_name = 3, "
     "SaveSliceInfoDef save_slice_info_def = 4, bool is_resource = 5, bool trainable = 7, VariableSynchronization "
     "synchronization = 8, VariableAggregation aggregation = 9"},
    {"SaveSliceInfoDef",
     "string full_name = 1, repeated int64 full_shape = 2, repeated int64 var_offset = 3, repeated int64 var_shape = "
     "4"},
    {"VersionDef", "int32 producer = 1, int32 min_consumer = 2, repeated int32 bad_consumers = 3"},
    {"SummaryDescription", "string type_hint = 1"},
    {"SummaryMetadata",
     "SummaryMetadata.PluginData plugin_data = 1, string display_name = 2, string summary_description = 3, DataClass "
     "data_class = 4"},
    {"SummaryMetadata.PluginData", "string plugin_name = 1, bytes content = 2"},
    {"Summary", "repeated Summary.Value value = 1"},
    {"Summary.Image", "int32 height = 1, int32 width = 2, int32 colorspace = 3, bytes encoded_image_string = 4"},
    {"Summary.Audio",
     "float sample_rate = 1, int64 num_channels = 2, int64 length_frames = 3, bytes encoded_audio_string = 4, string "
     "content_type = 5"},
    {"Summary.Value",
     "string node_name = 7, string tag = 1, SummaryMetadata metadata = 9, float simple_value = 2, bytes "
     "obsolete_old_style_histogram = 3, Summary.Image image = 4, HistogramProto histo = 5, Summary.Audio audio = 6, "
     "TensorProto tensor = 8"},
    {"HistogramProto",
     "double min = 1, double max = 2, double num = 3, double sum = 4, double sum_squares = 5, repeated double "
     "bucket_limit = 6, repeated double bucket = 7"},
    {"AttrValue",
     "bytes s = 2, int64 i = 3, float f = 4, bool b = 5, DataType type = 6, TensorShapeProto shape = 7, TensorProto "
     "tensor = 8, AttrValue.ListValue list = 1, NameAttrList func = 10, string placeholder = 9"},
    {"AttrValue.ListValue",
     "repeated bytes s = 2, repeated int64 i = 3, repeated float f = 4, repeated bool b = 5, repeated DataType type = "
     "6, repeated TensorShapeProto shape = 7, repeated TensorProto tensor = 8, repeated NameAttrList func = 9"},
    {"NameAttrList", "string name = 1, repeated NameAttrList.AttrEntry attr = 2"},
    {"NameAttrList.AttrEntry", "string key = 1, AttrValue value = 2"},
};

static const MessageRow enums[] = {
    {"DataType",
     "DT_INVALID = 0, DT_FLOAT = 1, DT_DOUBLE = 2, DT_INT32 = 3, DT_UINT8 = 4, DT_INT16 = 5, DT_INT8 = 6, DT_STRING = "
     "7, DT_COMPLEX64 = 8, DT_INT64 = 9, DT_BOOL = 10, DT_QINT8 = 11, DT_QUINT8 = 12, DT_QINT32 = 13, DT_BFLOAT16 = "
     "14, DT_QINT16 = 15, DT_QUINT16 = 16, DT_UINT16 = 17, DT_COMPLEX128 = 18, DT_HALF = 19, DT_RESOURCE = 20, "
     "DT_VARIANT = 21, DT_UINT32 = 22, DT_UINT64 = 23, DT_FLOAT8_E5M2 = 24, DT_FLOAT8_E4M3FN = 25, DT_FLOAT8_E4M3FNUZ "
     "= 26, DT_FLOAT8_E4M3B11FNUZ = 27, DT_FLOAT8_E5M2FNUZ = 28, DT_INT4 = 29, DT_UINT4 = 30, DT_INT2 = 31, DT_UINT2 = "
     "32, DT_FLOAT4_E2M1FN = 33, DT_FLOAT_REF = 101, DT_DOUBLE_REF = 102, DT_INT32_REF = 103, DT_UINT8_REF = 104, "
     "DT_INT16_REF = 105, DT_INT8_REF = 106, DT_STRING_REF = 107, DT_COMPLEX64_REF = 108, DT_INT64_REF = 109, "
     "DT_BOOL_REF = 110, DT_QINT8_REF = 111, DT_QUINT8_REF = 112, DT_QINT32_REF = 113, DT_BFLOAT16_REF = 114, "
     "DT_QINT16_REF = 115, DT_QUINT16_REF = 116, DT_UINT16_REF = 117, DT_COMPLEX128_REF = 118, DT_HALF_REF = 119, "
     "DT_RESOURCE_REF = 120, DT_VARIANT_REF = 121, DT_UINT32_REF = 122, DT_UINT64_REF = 123, DT_FLOAT8_E5M2_REF = 124, "
     "DT_FLOAT8_E4M3FN_REF = 125, DT_FLOAT8_E4M3FNUZ_REF = 126, DT_FLOAT8_E4M3B11FNUZ_REF = 127, "
     "DT_FLOAT8_E5M2FNUZ_REF = 128, DT_INT4_REF = 129, DT_UINT4_REF = 130, DT_INT2_REF = 131, DT_UINT2_REF = 132, "
     "DT_FLOAT4_E2M1FN_REF = 133"},
    {"VariableSynchronization",
     "VARIABLE_SYNCHRONIZATION_AUTO = 0, VARIABLE_SYNCHRONIZATION_NONE = 1, VARIABLE_SYNCHRONIZATION_ON_WRITE = 2, "
     "VARIABLE_SYNCHRONIZATION_ON_READ = 3"},
    {"VariableAggregation",
     "VARIABLE_AGGREGATION_NONE = 0, VARIABLE_AGGREGATION_SUM = 1, VARIABLE_AGGREGATION_MEAN = 2, "
     "VARIABLE_AGGREGATION_ONLY_FIRST_REPLICA = 3"},
    {"DataClass", "DATA_CLASS_UNKNOWN = 0, DATA_CLASS_SCALAR = 1, DATA_CLASS_TENSOR = 2, DATA_CLASS_BLOB_SEQUENCE = 3"},
};

enum { LABEL_OPTIONAL = 1, LABEL_REPEATED = 3 };

/* "NAME = NUMBER" */
static Str split_number(Str text, int64_t *number) {
    Str name = str_trim(str_next(&text, '='));
    if (!str_to_int64(str_trim(text), number)) *number = 0;
    return name;
}

static uint64_t type_of(Str word) {
    for (int t = 1; t < FIELD_TYPE_COUNT; t++)
        if (str_is(word, field_type_name((FieldType)t))) return (uint64_t)t;
    return 0;
}

/* "repeated int64 dims = 1" as a FieldDescriptorProto; the type of messages and enums is left to their names. */
static void put_field(StrBuf *message, Str text) {
    StrBuf field = {0}, type_name = {0};
    int64_t number;
    Str left = split_number(text, &number), word = str_next(&left, ' ');
    bool repeated = str_is(word, "repeated");
    if (repeated) word = str_next(&left, ' ');
    uint64_t type = type_of(word);
    wire_put_bytes(&field, 1, left);
    wire_put_uint(&field, 3, (uint64_t)number);
    wire_put_uint(&field, 4, repeated ? LABEL_REPEATED : LABEL_OPTIONAL);
    strbuf_addf(&type_name, ".tensorflow.%.*s", STR_ARG(word));
    if (type)
        wire_put_uint(&field, 5, type);
    else
        wire_put_bytes(&field, 6, strbuf_str(&type_name));
    wire_put_bytes(message, 2, strbuf_str(&field));
    strbuf_clear(&field);
    strbuf_clear(&type_name);
}

/* An EnumValueDescriptorProto. */
static void put_enum_value(StrBuf *list, Str text) {
    StrBuf value = {0};
    int64_t number;
    wire_put_bytes(&value, 1, split_number(text, &number));
    wire_put_uint(&value, 2, (uint64_t)number);
    wire_put_bytes(list, 2, strbuf_str(&value));
    strbuf_clear(&value);
}

static void put_rows(StrBuf *file, uint32_t kind, const MessageRow *rows, size_t count, void (*put)(StrBuf *, Str)) {
    for (size_t i = 0; i < count; i++) {
        StrBuf one = {0};
        wire_put_bytes(&one, 1, str_of(rows[i].name));
        for (Str rest = str_of(rows[i].fields); rest.len;) put(&one, str_trim(str_next(&rest, ',')));
        wire_put_bytes(file, kind, strbuf_str(&one));
        strbuf_clear(&one);
    }
}

Error *proto_local_schema(Schema *out) {
    StrBuf file = {0}, set = {0};
    wire_put_bytes(&file, 2, STR("tensorflow"));
    put_rows(&file, 4, messages, sizeof messages / sizeof *messages, put_field);
    put_rows(&file, 5, enums, sizeof enums / sizeof *enums, put_enum_value);
    wire_put_bytes(&file, 12, STR("proto3"));
    wire_put_bytes(&set, 1, strbuf_str(&file));
    Error *err = schema_read(strbuf_str(&set), out);
    strbuf_clear(&file);
    strbuf_clear(&set);
    return err;
}
