/* c_api_experimental.h: the part of TensorFlow's experimental C API that programs with graphs and sessions use. */
#ifndef TENSORFLOW_C_C_API_EXPERIMENTAL_H_
#define TENSORFLOW_C_C_API_EXPERIMENTAL_H_

#include "tensorflow/c/c_api.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Configurations ---- */

/* Asks the session for compilation by XLA. Rill has none and runs the same graph without; a master of TensorFlow may do
 * it. */
TF_CAPI_EXPORT extern void TF_EnableXLACompilation(TF_SessionOptions *options, unsigned char enable);
/* A serialised ConfigProto, and a serialised RunOptions. */
TF_CAPI_EXPORT extern TF_Buffer *TF_CreateConfig(unsigned char enable_xla_compilation,
                                                 unsigned char gpu_memory_allow_growth, unsigned int num_cpu_devices);
TF_CAPI_EXPORT extern TF_Buffer *TF_CreateRunOptions(unsigned char enable_full_trace);

/* ---- Checkpoints ---- */

typedef struct TF_CheckpointReader TF_CheckpointReader;

/* filename is the prefix of a V2 checkpoint. */
TF_CAPI_EXPORT extern TF_CheckpointReader *TF_NewCheckpointReader(const char *filename, TF_Status *status);
TF_CAPI_EXPORT extern void TF_DeleteCheckpointReader(TF_CheckpointReader *reader);
TF_CAPI_EXPORT extern int TF_CheckpointReaderHasTensor(TF_CheckpointReader *reader, const char *name);
/* The tensors by number, in no particular order. */
TF_CAPI_EXPORT extern int TF_CheckpointReaderSize(TF_CheckpointReader *reader);
TF_CAPI_EXPORT extern const char *TF_CheckpointReaderGetVariable(TF_CheckpointReader *reader, int index);
/* 0 and -1 for one that is not there. */
TF_CAPI_EXPORT extern TF_DataType TF_CheckpointReaderGetVariableDataType(TF_CheckpointReader *reader, const char *name);
TF_CAPI_EXPORT extern int TF_CheckpointReaderGetVariableNumDims(TF_CheckpointReader *reader, const char *name);
TF_CAPI_EXPORT extern void TF_CheckpointReaderGetVariableShape(TF_CheckpointReader *reader, const char *name,
                                                               int64_t *dims, int num_dims, TF_Status *status);
TF_CAPI_EXPORT extern TF_Tensor *TF_CheckpointReaderGetTensor(TF_CheckpointReader *reader, const char *name,
                                                              TF_Status *status);

/* ---- Ops and others ---- */

TF_CAPI_EXPORT extern int TF_OpIsStateful(const char *op_type, TF_Status *status);
/* Does nothing: Rill has no flags of its own to take from the command line. */
TF_CAPI_EXPORT extern void TF_InitMain(const char *usage, int *argc, char ***argv);
/* Does nothing: colocation is checked when a graph is placed. */
TF_CAPI_EXPORT extern void TF_ImportGraphDefOptionsSetValidateColocationConstraints(TF_ImportGraphDefOptions *opts,
                                                                                    unsigned char enable);
TF_CAPI_EXPORT extern void TF_MakeInternalErrorStatus(TF_Status *status, const char *errMsg);

#ifdef __cplusplus
}
#endif

#endif
