/* hello.c: y = x W + 1 with TensorFlow's C API, here or at a master: cc hello.c -o hello -lrill && ./hello [grpc://host:port]. */
#include <stdio.h>
#include <stdlib.h>

#include "tensorflow/c/c_api.h"

static TF_Status *status;

static void check(const char *what) {
    if (TF_GetCode(status) == TF_OK) return;
    fprintf(stderr, "%s: %s\n", what, TF_Message(status));
    exit(1);
}

static TF_Tensor *matrix(int64_t rows, int64_t cols, const float *values) {
    TF_Tensor *t = TF_AllocateTensor(TF_FLOAT, (int64_t[]){rows, cols}, 2, sizeof(float) * (size_t)(rows * cols));
    float *to = TF_TensorData(t);
    for (int64_t i = 0; i < rows * cols; i++) to[i] = values[i];
    return t;
}

static TF_Output constant(TF_Graph *g, const char *name, TF_Tensor *value) {
    TF_OperationDescription *d = TF_NewOperation(g, "Const", name);
    TF_SetAttrTensor(d, "value", value, status);
    check(name);
    TF_SetAttrType(d, "dtype", TF_TensorType(value));
    TF_DeleteTensor(value);
    TF_Operation *op = TF_FinishOperation(d, status);
    check(name);
    return (TF_Output){op, 0};
}

static TF_Output binary(TF_Graph *g, const char *op, const char *name, TF_Output a, TF_Output b) {
    TF_OperationDescription *d = TF_NewOperation(g, op, name);
    TF_AddInput(d, a);
    TF_AddInput(d, b);
    TF_Operation *made = TF_FinishOperation(d, status);
    check(name);
    return (TF_Output){made, 0};
}

int main(int argc, char **argv) {
    status = TF_NewStatus();
    TF_Graph *g = TF_NewGraph();
    TF_OperationDescription *d = TF_NewOperation(g, "Placeholder", "x");
    TF_SetAttrType(d, "dtype", TF_FLOAT);
    TF_Output x = {TF_FinishOperation(d, status), 0};
    check("x");
    TF_Output w = constant(g, "w", matrix(2, 2, (float[]){1, 2, 3, 4}));
    TF_Output one = constant(g, "one", matrix(1, 1, (float[]){1}));
    TF_Output y = binary(g, "AddV2", "y", binary(g, "MatMul", "product", x, w), one);

    TF_SessionOptions *options = TF_NewSessionOptions();
    if (argc > 1) TF_SetTarget(options, argv[1]);
    TF_Session *session = TF_NewSession(g, options, status);
    check("session");
    TF_Tensor *feed = matrix(1, 2, (float[]){10, 20}), *result = NULL;
    TF_SessionRun(session, NULL, &x, &feed, 1, &y, &result, 1, NULL, 0, NULL, status);
    check("run");
    const float *values = TF_TensorData(result);
    printf("Hello from TensorFlow's C API %s: y = [%g %g]\n", TF_Version(), values[0], values[1]);

    TF_DeleteTensor(feed);
    TF_DeleteTensor(result);
    TF_DeleteSession(session, status);
    TF_DeleteSessionOptions(options);
    TF_DeleteGraph(g);
    TF_DeleteStatus(status);
    return 0;
}
