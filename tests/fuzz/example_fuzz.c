/* example_fuzz.c: serialised Example and SequenceExample messages, CSV records, JSON, sounds and more strings, through the kernels that parse them. */
#include "direct_run.h"
#include "fuzz_target.h"

static DirectSession *session;

static Tensor *vector(int64_t n) {
    Tensor *t = NULL;
    Shape shape = shape_vector(n);
    error_free(tensor_new(DT_STRING, &shape, &t));
    return t;
}

static Tensor *names(const char *list) {
    Str rest = str_of(list);
    Tensor *t = vector(3);
    for (int i = 0; i < 3; i++) tstring_set(&tensor_str(t)[i], str_next(&rest, ','));
    return t;
}

static void build(GraphBuilder *b) {
    static const DataType three[] = {DT_FLOAT, DT_INT64, DT_STRING}, splits[] = {DT_INT64, DT_INT32, DT_INT64};
    static const Shape shapes[] = {{1, {2}}, {1, {-1}}, {0, {0}}};
    gb_placeholder(b, "in", DT_STRING);
    gb_const(b, "names", vector(0), "");
    gb_const(b, "sparse", names("a,b,c"), "");
    gb_const(b, "dense", names("d,e,f"), "");
    gb_const(b, "ragged", names("a,b,c"), "");
    Tensor *two = NULL, *text = tensor_scalar_str(STR("z"));
    Shape pair = shape_vector(2), none = shape_vector(0);
    error_free(tensor_new(DT_FLOAT, &pair, &two));
    memset(two->data, 0, tensor_bytes(two));
    gb_const(b, "d0", two, "");
    gb_const(b, "d1", tensor_scalar_i64(1), "");
    gb_const(b, "d2", text, "");
    gb_node(b, "example", "ParseExampleV2", "in,names,sparse,dense,ragged,d0,d1,d2");
    gb_types(b, "Tdense", three, 3);
    gb_int(b, "num_sparse", 3);
    gb_types(b, "sparse_types", three, 3);
    gb_types(b, "ragged_value_types", three, 3);
    gb_types(b, "ragged_split_types", splits, 3);
    gb_shapes(b, "dense_shapes", shapes, 3);
    Tensor *missing = NULL;
    Shape three_bools = shape_vector(3);
    error_free(tensor_new(DT_BOOL, &three_bools, &missing));
    memset(missing->data, 1, 3);
    gb_const(b, "missing", missing, "");
    (void)none;
    gb_node(b, "sequence", "ParseSequenceExampleV2", "in,names,sparse,dense,ragged,sparse,dense,ragged,missing,d0,d1,d2");
    gb_int(b, "Ncontext_sparse", 3);
    gb_types(b, "Tcontext_dense", three, 3);
    gb_types(b, "context_sparse_types", three, 3);
    gb_types(b, "context_ragged_value_types", three, 3);
    gb_types(b, "context_ragged_split_types", splits, 3);
    gb_shapes(b, "context_dense_shapes", shapes, 3);
    gb_int(b, "Nfeature_list_sparse", 3);
    gb_int(b, "Nfeature_list_dense", 3);
    gb_types(b, "feature_list_dense_types", three, 3);
    gb_types(b, "feature_list_sparse_types", three, 3);
    gb_types(b, "feature_list_ragged_value_types", three, 3);
    gb_types(b, "feature_list_ragged_split_types", splits, 3);
    gb_shapes(b, "feature_list_dense_shapes", shapes, 3);
    gb_f32(b, "c0", 1);
    gb_i32(b, "c1", 2);
    gb_const(b, "c2", tensor_scalar_str(STR("")), "");
    gb_node(b, "csv", "DecodeCSV", "in,c0,c1,c2");
    gb_types(b, "OUT_TYPE", (const DataType[]){DT_FLOAT, DT_INT32, DT_STRING}, 3);
    gb_node(b, "number", "StringToNumber", "in");
    gb_type(b, "out_type", DT_DOUBLE);
    gb_node(b, "base64", "DecodeBase64", "in");
    gb_node(b, "json", "DecodeJSONExample", "in");
    gb_node(b, "many", "DeserializeManySparse", "in3");
    gb_type(b, "dtype", DT_FLOAT);
    gb_placeholder(b, "in3", DT_STRING);
    gb_node(b, "wav", "DecodeWav", "in");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const char *const targets[] = {"example", "example", "sequence", "sequence", "csv", "number", "base64", "json"};
    if (!session) {
        GraphBuilder b = {0};
        ops_register_all();
        build(&b);
        Error *err = direct_session_new(gb_graph(&b), 1, &session);
        if (err) fprintf(stderr, "%s\n", err->message), abort();
        gb_clear(&b);
    }
    Str input = input_str(data, size);
    unsigned choice = take_choice(&input);
    bool many = choice >> 4 == 15, wav = choice >> 4 == 14;
    Tensor *t = NULL;
    Shape shape = many ? shape_matrix(1, 3) : wav ? SHAPE_SCALAR : shape_vector(choice & 8 ? 2 : 1);
    error_free(tensor_new(DT_STRING, &shape, &t));
    for (int64_t i = 0; i + 1 < t->count; i++) tstring_set(&tensor_str(t)[i], take_piece(&input));
    tstring_set(&tensor_str(t)[t->count - 1], input);
    Str feeds[] = {many ? STR("in3") : STR("in")}, target[] = {many ? STR("many") : wav ? STR("wav") : str_of(targets[choice % 8])};
    RunSignature sig = {.feeds = feeds, .targets = target, .feed_count = 1, .target_count = 1};
    error_free(direct_session_run(session, &sig, &t, NULL, 0));
    tensor_unref(t);
    return 0;
}
