/* data_flow_shapes.c: rules of queues, barriers, accumulators, readers, lookup tables, stages and session handles. */
#include "shapes/rule_list.h"

/* What is found depends on the table's values, of which nothing is known. */
static void lookup_find(ShapeContext *c) {
    ctx_rank_at_most(c, c->in[2], 1);
}

/* Tables that can be changed say of what shape their values are, when keys are scalars. */
static void give_table(ShapeContext *c, PartialShape value) {
    ctx_out(c, 0, SHAPE_SCALAR);
    c->out_handles[0] = (HandleShape){true, ctx_attr_type(c, "value_dtype"), value};
}

static void mutable_table(ShapeContext *c) {
    give_table(c, SHAPE_SCALAR);
}

static void table_of_tensors(ShapeContext *c) {
    give_table(c, ctx_attr_shape(c, "value_shape"));
}

static void dense_table(ShapeContext *c) {
    PartialShape key = ctx_rank_at_most(c, c->in[0], 1);
    ctx_out(c, 0, SHAPE_SCALAR);
    if (key.rank == 0) give_table(c, ctx_attr_shape(c, "value_shape"));
}

static void lookup_find_v2(ShapeContext *c) {
    const HandleShape *h = &c->in_handles[0];
    if (!h->is_known) return;
    if (h->dtype != ctx_attr_type(c, "Tout")) ctx_fail(c, "The table holds values of type %s", dtype_name(h->dtype));
    ctx_out(c, 0, ctx_concat(c, c->in[1], h->shape));
}

/* What a queue holds is not known; how many are wanted must not be negative. */
static void dequeue_many(ShapeContext *c) {
    ctx_dim_of(c, 1);
}

static void gather_collective(ShapeContext *c) {
    PartialShape s = ctx_rank_at_least(c, c->in[0], 1);
    if (ctx_failed(c)) return;
    bool is_known = s.rank > 0 && s.dims[0] >= 0; /* a group of no members times an unknown size stays unknown */
    ctx_out(c, 0, is_known ? ctx_replace(c, s, 0, ctx_dim_mul(c, s.dims[0], ctx_attr_int(c, "group_size"))) : s);
}

static void broadcast_received(ShapeContext *c) {
    ctx_out(c, 0, ctx_shape_of(c, 3));
}

/* The same but for the number of rows. */
static PartialShape any_rows(ShapeContext *c, PartialShape s) {
    if (s.rank == 0) ctx_fail(c, "A tensor to be batched has at least one dimension");
    if (s.rank > 0) s.dims[0] = -1;
    return s;
}

static void batch(ShapeContext *c) {
    for (int i = 0; i < c->in_count; i++) ctx_out(c, i, any_rows(c, c->in[i]));
    ctx_out(c, c->in_count, shape_matrix(-1, 3));
    ctx_out(c, c->in_count + 1, SHAPE_SCALAR);
}

static void unbatch(ShapeContext *c) {
    ctx_out(c, 0, any_rows(c, c->in[0]));
}

static void unbatch_grad(ShapeContext *c) {
    PartialShape s = c->in[2];
    for (int i = 0; i < s.rank; i++) s.dims[i] = -1;
    ctx_out(c, 0, s);
}

const ShapeRow data_flow_rules[] = {
    {"AccumulatorApplyGradient", 0, "* []"},
    {"AccumulatorNumAccumulated", rule_scalar, 0},
    {"AccumulatorSetGlobalStep", 0, "* []"},
    {"AccumulatorTakeGradient", rule_unknown, "* []"},
    {"Barrier", 0, "-> [2]"},
    {"Batch", batch, 0},
    {"BatchFunction", rule_unknown, 0},
    {"Unbatch", unbatch, 0},
    {"UnbatchGrad", unbatch_grad, 0},
    {"BarrierClose", 0, "[2]"},
    {"BarrierIncompleteSize", rule_scalar, "[2]"},
    {"BarrierInsertMany", 0, "[2] [n] [n,...]"},
    {"BarrierReadySize", rule_scalar, "[2]"},
    {"BarrierTakeMany", rule_unknown, 0},
    {"CollectiveAllToAllV2", rule_same, 0},
    {"CollectiveAllToAllV3", rule_same, 0},
    {"CollectiveAssignGroupV2", rule_scalar, 0},
    {"CollectiveBcastRecv", 0, "-> @shape"},
    {"CollectiveBcastRecvV2", broadcast_received, 0},
    {"CollectiveBcastSend", 0, "* -> @shape"},
    {"CollectiveBcastSendV2", rule_same, 0},
    {"CollectiveGather", gather_collective, 0},
    {"CollectiveGatherV2", 0, "[?,S...] -> [?,S...]"},
    {"CollectiveInitializeCommunicator", rule_scalar, 0},
    {"CollectiveReduce", rule_same, 0},
    {"CollectiveReduceScatterV2", 0, "[?,S...] -> [?,S...]"},
    {"CollectiveReduceV2", rule_same, 0},
    {"CollectiveReduceV3", rule_same, 0},
    {"ConditionalAccumulator", 0, "-> [2]"},
    {"DeleteSessionTensor", 0, "[]"},
    {"FIFOQueue", 0, "-> [2]"},
    {"FIFOQueueV2", rule_scalar, 0},
    {"FixedLengthRecordReader", 0, "-> [2]"},
    {"FixedLengthRecordReaderV2", rule_scalar, 0},
    {"GetSessionHandle", rule_scalar, 0},
    {"GetSessionHandleV2", rule_scalar, 0},
    {"GetSessionTensor", rule_unknown, "[]"},
    {"AnonymousHashTable", rule_scalar, 0},
    {"AnonymousMutableDenseHashTable", dense_table, 0},
    {"AnonymousMutableHashTable", mutable_table, 0},
    {"AnonymousMutableHashTableOfTensors", table_of_tensors, 0},
    {"HashTable", 0, "-> [2]"},
    {"HashTableV2", rule_scalar, 0},
    {"IdentityReader", 0, "-> [2]"},
    {"IdentityReaderV2", rule_scalar, 0},
    {"InitializeTable", 0, "[2] [n] [n]"},
    {"InitializeTableFromDataset", 0, "[] []"},
    {"InitializeTableFromTextFile", 0, "[2] []"},
    {"InitializeTableFromTextFileV2", 0, "[] []"},
    {"InitializeTableV2", 0, "[] [n] [n]"},
    {"LookupTableExport", 0, "[2] -> [?] *"},
    {"LookupTableExportV2", rule_unknown, "[]"},
    {"LookupTableFind", lookup_find, "[2]"},
    {"LookupTableFindV2", lookup_find_v2, "[]"},
    {"LookupTableImport", 0, "[2]"},
    {"LookupTableImportV2", 0, "[] [n] [n,...]"},
    {"LookupTableInsert", 0, "[2]"},
    {"LookupTableInsertV2", 0, "[]"},
    {"LookupTableRemoveV2", 0, "[] [?,...]"},
    {"LookupTableSize", rule_scalar, "[2]"},
    {"LookupTableSizeV2", rule_scalar, "[]"},
    {"MapClear", rule_unknown, 0},
    {"MapIncompleteSize", rule_scalar, 0},
    {"MapPeek", rule_unknown, 0},
    {"MapSize", rule_scalar, 0},
    {"MapStage", rule_unknown, 0},
    {"MapUnstage", rule_unknown, 0},
    {"MapUnstageNoKey", rule_unknown, 0},
    {"MutableDenseHashTable", 0, "-> [2]"},
    {"MutableDenseHashTableV2", dense_table, 0},
    {"MutableHashTable", 0, "-> [2]"},
    {"MutableHashTableOfTensors", 0, "-> [2]"},
    {"MutableHashTableOfTensorsV2", table_of_tensors, 0},
    {"MutableHashTableV2", mutable_table, 0},
    {"OrderedMapClear", rule_unknown, 0},
    {"OrderedMapIncompleteSize", rule_scalar, 0},
    {"OrderedMapPeek", rule_unknown, 0},
    {"OrderedMapSize", rule_scalar, 0},
    {"OrderedMapStage", rule_unknown, 0},
    {"OrderedMapUnstage", rule_unknown, 0},
    {"OrderedMapUnstageNoKey", rule_unknown, 0},
    {"PaddingFIFOQueue", 0, "-> [2]"},
    {"PaddingFIFOQueueV2", rule_scalar, 0},
    {"PriorityQueue", 0, "-> [2]"},
    {"PriorityQueueV2", rule_scalar, 0},
    {"QueueClose", 0, "[2]"},
    {"QueueCloseV2", rule_unknown, 0},
    {"QueueDequeue", rule_unknown, 0},
    {"QueueDequeueMany", rule_unknown, 0},
    {"QueueDequeueManyV2", dequeue_many, 0},
    {"QueueDequeueUpTo", rule_unknown, 0},
    {"QueueDequeueUpToV2", rule_unknown, 0},
    {"QueueDequeueV2", rule_unknown, 0},
    {"QueueEnqueue", rule_unknown, 0},
    {"QueueEnqueueMany", rule_unknown, 0},
    {"QueueEnqueueManyV2", rule_unknown, 0},
    {"QueueEnqueueV2", rule_unknown, 0},
    {"QueueIsClosed", rule_scalar, 0},
    {"QueueIsClosedV2", rule_scalar, 0},
    {"QueueSize", rule_scalar, "[2]"},
    {"QueueSizeV2", rule_same, 0},
    {"RandomShuffleQueue", 0, "-> [2]"},
    {"RandomShuffleQueueV2", rule_scalar, 0},
    {"ReaderNumRecordsProduced", rule_scalar, "[2]"},
    {"ReaderNumRecordsProducedV2", rule_scalar, "[]"},
    {"ReaderNumWorkUnitsCompleted", rule_scalar, "[2]"},
    {"ReaderNumWorkUnitsCompletedV2", rule_scalar, "[]"},
    {"ReaderRead", rule_scalar, "[2] [2]"},
    {"ReaderReadUpTo", 0, "[?] [?] [] -> [?] [?]"},
    {"ReaderReadUpToV2", 0, "[] [] [] -> [?] [?]"},
    {"ReaderReadV2", rule_scalar, "[] []"},
    {"ReaderReset", 0, "[2]"},
    {"ReaderResetV2", 0, "[]"},
    {"ReaderRestoreState", 0, "[2] []"},
    {"ReaderRestoreStateV2", 0, "[] []"},
    {"ReaderSerializeState", rule_scalar, "[2]"},
    {"ReaderSerializeStateV2", rule_scalar, "[]"},
    {"RecordInput", rule_unknown, 0},
    {"ResourceAccumulatorApplyGradient", 0, "* []"},
    {"ResourceAccumulatorNumAccumulated", rule_scalar, 0},
    {"ResourceAccumulatorSetGlobalStep", 0, "* []"},
    {"ResourceAccumulatorTakeGradient", rule_unknown, "* []"},
    {"ResourceConditionalAccumulator", 0, "-> [2]"},
    {"SparseAccumulatorApplyGradient", 0, "* []"},
    {"SparseAccumulatorTakeGradient", rule_unknown, "* []"},
    {"SparseConditionalAccumulator", 0, "-> [2]"},
    {"Stack", 0, "-> [2]"},
    {"StackClose", 0, "[2]"},
    {"StackPop", rule_unknown, 0},
    {"StackPush", 0, "* S -> S"},
    {"StackCloseV2", 0, "[2]"},
    {"StackPopV2", rule_unknown, 0},
    {"StackPushV2", 0, "* S -> S"},
    {"StackV2", 0, "-> [2]"},
    {"Stage", rule_unknown, 0},
    {"StageClear", rule_unknown, 0},
    {"StagePeek", rule_unknown, 0},
    {"StageSize", rule_scalar, 0},
    {"MutexV2", rule_scalar, 0},
    {"MutexLock", rule_scalar, 0},
    {"ConsumeMutexLock", rule_unknown, 0},
    {"TFRecordReader", 0, "-> [2]"},
    {"TFRecordReaderV2", rule_scalar, 0},
    {"TextLineReader", 0, "-> [2]"},
    {"TextLineReaderV2", rule_scalar, 0},
    {"Unstage", rule_unknown, 0},
    {"WholeFileReader", 0, "-> [2]"},
    {"WholeFileReaderV2", rule_scalar, 0},
    {0},
};
