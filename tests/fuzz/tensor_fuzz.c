/* tensor_fuzz.c: TensorProto and .npy files: decoded, printed, encoded again. */
#include "fuzz_target.h"
#include "io/npy.h"
#include "ops/op_list.h"
#include "tensor/print.h"
#include "tensor/tensor_proto.h"

static void use(Tensor *t) {
    StrBuf text = {0}, bytes = {0};
    print_values(&text, t, 20);
    print_nested(&text, t, 3);
    tensor_proto_encode(t, &bytes);
    Tensor *again = NULL;
    error_free(tensor_proto_decode(strbuf_str(&bytes), &again));
    tensor_unref(again);
    strbuf_clear(&text);
    strbuf_clear(&bytes);
    tensor_unref(t);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static bool ready;
    if (!ready) ops_register_all(); /* variants know their types */
    ready = true;
    Str input = input_str(data, size);
    Tensor *t = NULL;
    Error *err = take_choice(&input) % 4 ? tensor_proto_decode(input, &t) : npy_parse(input, "fuzz", &t);
    if (!err) use(t);
    error_free(err);
    return 0;
}
