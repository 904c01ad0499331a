/* dataset_shapes.c: rules of tf.data: datasets and iterators are scalars, elements are as output_shapes says. */
#include "shapes/rule_list.h"

/* File names: one, or a vector of them. */
static void from_files(ShapeContext *c) {
    ctx_rank_at_most(c, c->in[0], 1);
    ctx_out(c, 0, SHAPE_SCALAR);
}

static void from_files_at_offsets(ShapeContext *c) {
    ctx_rank_at_most(c, c->in[3], 1);
    from_files(c);
}

/* Each default is a scalar, or a vector of one or none. */
static void csv(ShapeContext *c) {
    int end = c->in_count - node_is(c->node, "CSVDatasetV2");
    for (int i = 8; i < end; i++) {
        PartialShape s = ctx_rank_at_most(c, c->in[i], 1);
        if (s.rank == 1 && s.dims[0] > 1) ctx_fail(c, "Shape of a default must be a length-0 or length-1 vector, or a scalar.");
    }
    if (end < c->in_count) ctx_in_rank(c, end, 1);
    from_files(c);
}

/* Rows of the arguments in, as many rows of the results out. */
static void map_rows(ShapeContext *c) {
    int first = 0, count = 0;
    int64_t rows = DIM_UNKNOWN;
    ctx_arg(c, "arguments", &first, &count);
    for (int i = first; !ctx_failed(c) && i < first + count; i++) {
        PartialShape s = ctx_rank_at_least(c, c->in[i], 1);
        if (s.rank > 0) rows = ctx_merge_dim(c, rows, s.dims[0]);
    }
    if (ctx_failed(c)) return;
    int n = ctx_attr_shapes(c, "output_shapes", NULL, 0);
    if (n == c->out_count) {
        ctx_attr_shapes(c, "output_shapes", c->out, n);
    } else {
        ctx_fail(c, "`output_shapes` must be the same length as `output_types` (%d vs. %d)", n, c->out_count);
        return;
    }
    PartialShape row = {.rank = 1, .dims = {rows}};
    for (int i = 0; !ctx_failed(c) && i < c->out_count; i++) ctx_out(c, i, ctx_concat(c, row, c->out[i]));
}

const ShapeRow dataset_rules[] = {
    {"AnonymousIterator", rule_scalar, 0},
    {"AnonymousIteratorV2", rule_scalar, 0},
    {"AnonymousIteratorV3", rule_scalar, 0},
    {"AnonymousMemoryCache", rule_scalar, 0},
    {"AnonymousRandomSeedGenerator", rule_scalar, 0},
    {"AnonymousSeedGenerator", rule_scalar, 0},
    {"AssertCardinalityDataset", rule_scalar, "* []"},
    {"AssertNextDataset", rule_scalar, "* [?]"},
    {"AssertPrevDataset", rule_scalar, "* [?]"},
    {"BatchDataset", rule_scalar, "* []"},
    {"BatchDatasetV2", rule_scalar, "* [] []"},
    {"BytesProducedStatsDataset", rule_scalar, "* []"},
    {"CacheDataset", rule_scalar, "* []"},
    {"CacheDatasetV2", rule_scalar, "* [] []"},
    {"AnonymousMultiDeviceIterator", rule_scalar, 0},
    {"AnonymousMultiDeviceIteratorV3", rule_scalar, 0},
    {"ChooseFastestBranchDataset", rule_scalar, 0},
    {"ChooseFastestDataset", rule_scalar, 0},
    {"CompressElement", rule_scalar, 0},
    {"DeleteMultiDeviceIterator", rule_unknown, 0},
    {"ExperimentalChooseFastestDataset", rule_scalar, 0},
    {"ExperimentalSqlDataset", rule_scalar, "[] [] []"},
    {"MapDefun", map_rows, 0},
    {"MultiDeviceIterator", rule_scalar, 0},
    {"MultiDeviceIteratorFromStringHandle", rule_scalar, 0},
    {"MultiDeviceIteratorGetNextFromShard", 0, "[] * * -> @output_shapes"},
    {"MultiDeviceIteratorInit", rule_scalar, 0},
    {"MultiDeviceIteratorToStringHandle", rule_scalar, 0},
    {"SqlDataset", rule_scalar, "[] [] []"},
    {"UncompressElement", 0, "[] -> @output_shapes"},
    {"ConcatenateDataset", rule_scalar, 0},
    {"DatasetCardinality", rule_scalar, 0},
    {"DatasetToSingleElement", 0, "[] -> @output_shapes"},
    {"DatasetToTFRecord", rule_unknown, 0},
    {"DeleteIterator", rule_unknown, 0},
    {"DeleteMemoryCache", rule_unknown, 0},
    {"DeleteRandomSeedGenerator", rule_unknown, 0},
    {"DeleteSeedGenerator", rule_unknown, 0},
    {"DeserializeIterator", rule_unknown, 0},
    {"DirectedInterleaveDataset", rule_scalar, 0},
    {"DummyMemoryCache", rule_scalar, 0},
    {"DummySeedGenerator", rule_scalar, 0},
    {"DummyIterationCounter", rule_scalar, 0},
    {"AutoShardDataset", rule_scalar, 0},
    {"ExperimentalAutoShardDataset", rule_scalar, 0},
    {"ComputeBatchSize", rule_scalar, 0},
    {"DatasetFingerprint", rule_scalar, 0},
    {"DatasetFromGraph", rule_scalar, 0},
    {"GetOptions", rule_scalar, 0},
    {"DatasetToGraph", rule_scalar, 0},
    {"DatasetToGraphV2", rule_scalar, 0},
    {"ExperimentalRebatchDataset", rule_scalar, 0},
    {"ExperimentalSetStatsAggregatorDataset", rule_scalar, 0},
    {"ExperimentalStatsAggregatorHandle", rule_scalar, 0},
    {"ExperimentalStatsAggregatorSummary", rule_scalar, 0},
    {"GlobalShuffleDataset", rule_scalar, "* [] [] []"},
    {"RebatchDataset", rule_scalar, 0},
    {"SetStatsAggregatorDataset", rule_scalar, 0},
    {"StatsAggregatorHandle", rule_scalar, 0},
    {"StatsAggregatorHandleV2", rule_scalar, 0},
    {"StatsAggregatorSetSummaryWriter", rule_unknown, 0},
    {"StatsAggregatorSummary", rule_scalar, 0},
    {"WeightedFlatMapDataset", rule_scalar, 0},
    {"SnapshotDataset", rule_scalar, "* []"},
    {"IndexFlatMapDataset", rule_scalar, 0},
    {"ExperimentalAssertNextDataset", rule_scalar, "* [?]"},
    {"ExperimentalBytesProducedStatsDataset", rule_scalar, "* []"},
    {"ExperimentalDatasetCardinality", rule_scalar, 0},
    {"ExperimentalDatasetToTFRecord", rule_unknown, 0},
    {"ExperimentalDirectedInterleaveDataset", rule_scalar, 0},
    {"ExperimentalGroupByReducerDataset", rule_scalar, 0},
    {"ExperimentalGroupByWindowDataset", rule_scalar, 0},
    {"ExperimentalIgnoreErrorsDataset", rule_scalar, 0},
    {"ExperimentalIteratorGetDevice", rule_scalar, 0},
    {"ExperimentalLatencyStatsDataset", rule_scalar, "* []"},
    {"ExperimentalMapAndBatchDataset", rule_scalar, "* * [] [] []"},
    {"ExperimentalMapDataset", rule_scalar, 0},
    {"ExperimentalMaxIntraOpParallelismDataset", rule_scalar, 0},
    {"ExperimentalNonSerializableDataset", rule_scalar, 0},
    {"ExperimentalParallelInterleaveDataset", rule_scalar, 0},
    {"ExperimentalPrivateThreadPoolDataset", rule_scalar, 0},
    {"ExperimentalRandomDataset", rule_scalar, "[] []"},
    {"ExperimentalScanDataset", rule_scalar, 0},
    {"ExperimentalTakeWhileDataset", rule_scalar, 0},
    {"ExperimentalUnbatchDataset", rule_scalar, 0},
    {"ExperimentalUniqueDataset", rule_scalar, 0},
    {"FilterDataset", rule_scalar, 0},
    {"FinalizeDataset", rule_scalar, 0},
    {"FixedLengthRecordDataset", from_files, "* [] [] [] []"},
    {"FixedLengthRecordDatasetV2", from_files, "* [] [] [] []"},
    {"FlatMapDataset", rule_scalar, 0},
    {"GeneratorDataset", rule_scalar, 0},
    {"GetElementAtIndex", 0, "[] * -> @output_shapes"},
    {"GroupByReducerDataset", rule_scalar, 0},
    {"GroupByWindowDataset", rule_scalar, 0},
    {"IgnoreErrorsDataset", rule_scalar, 0},
    {"InterleaveDataset", rule_scalar, 0},
    {"Iterator", rule_scalar, 0},
    {"IteratorFromStringHandle", rule_scalar, 0},
    {"IteratorFromStringHandleV2", rule_scalar, 0},
    {"IteratorGetDevice", rule_scalar, 0},
    {"IteratorGetNext", 0, "[] -> @output_shapes"},
    {"IteratorGetNextAsOptional", rule_scalar, 0},
    {"IteratorGetNextSync", 0, "[] -> @output_shapes"},
    {"IteratorToStringHandle", rule_scalar, 0},
    {"IteratorV2", rule_scalar, 0},
    {"LatencyStatsDataset", rule_scalar, "* []"},
    {"LegacyParallelInterleaveDatasetV2", rule_scalar, 0},
    {"ListDataset", rule_scalar, 0},
    {"MakeIterator", rule_unknown, 0},
    {"MapAndBatchDataset", rule_scalar, "* * [] [] []"},
    {"MapDataset", rule_scalar, 0},
    {"MaxIntraOpParallelismDataset", rule_scalar, 0},
    {"ModelDataset", rule_scalar, 0},
    {"NonSerializableDataset", rule_scalar, 0},
    {"OneShotIterator", rule_scalar, 0},
    {"OptimizeDataset", rule_scalar, 0},
    {"OptimizeDatasetV2", rule_scalar, 0},
    {"OptionalFromValue", rule_scalar, 0},
    {"OptionalGetValue", 0, "[] -> @output_shapes"},
    {"OptionalHasValue", rule_scalar, 0},
    {"OptionalNone", rule_scalar, 0},
    {"OptionsDataset", rule_scalar, 0},
    {"PaddedBatchDataset", rule_scalar, "* []"},
    {"PaddedBatchDatasetV2", rule_scalar, "* [] * * []"},
    {"ParallelBatchDataset", rule_scalar, "* [] [] []"},
    {"ParallelFilterDataset", rule_scalar, 0},
    {"ParallelInterleaveDataset", rule_scalar, 0},
    {"ParallelInterleaveDatasetV2", rule_scalar, 0},
    {"ParallelInterleaveDatasetV3", rule_scalar, 0},
    {"ParallelInterleaveDatasetV4", rule_scalar, 0},
    {"ParallelMapDataset", rule_scalar, 0},
    {"ParallelMapDatasetV2", rule_scalar, 0},
    {"PrefetchDataset", rule_scalar, "* []"},
    {"PrivateThreadPoolDataset", rule_scalar, 0},
    {"RandomDataset", rule_scalar, "[] []"},
    {"RandomDatasetV2", rule_scalar, "[] [] []"},
    {"RangeDataset", rule_scalar, "[] [] []"},
    {"RebatchDatasetV2", rule_scalar, 0},
    {"ReduceDataset", 0, "[] -> @output_shapes"},
    {"RepeatDataset", rule_scalar, "* []"},
    {"RewriteDataset", rule_scalar, 0},
    {"ScanDataset", rule_scalar, 0},
    {"SerializeIterator", 0, "-> [?]"},
    {"ShardDataset", rule_scalar, "* [] []"},
    {"ShuffleAndRepeatDataset", rule_scalar, "* [] [] [] []"},
    {"ShuffleAndRepeatDatasetV2", rule_scalar, "* [] [] [] [] []"},
    {"ShuffleDataset", rule_scalar, "* [] [] []"},
    {"ShuffleDatasetV2", rule_scalar, "* [] []"},
    {"ShuffleDatasetV3", rule_scalar, "* [] [] [] []"},
    {"SkipDataset", rule_scalar, "* []"},
    {"SparseTensorSliceDataset", rule_scalar, 0},
    {"TFRecordDataset", from_files, "* [] []"},
    {"TFRecordDatasetV2", from_files_at_offsets, "* [] []"},
    {"TakeDataset", rule_scalar, "* []"},
    {"TakeWhileDataset", rule_scalar, 0},
    {"TensorDataset", rule_scalar, 0},
    {"TensorSliceDataset", rule_scalar, 0},
    {"CSVDataset", csv, "* [] [] [] [] [] [] [?]"},
    {"CSVDatasetV2", csv, "* [] [] [] [] [] [] [?]"},
    {"ExperimentalCSVDataset", csv, "* [] [] [] [] [] [] [?]"},
    {"DenseToSparseBatchDataset", rule_scalar, "* [] [?]"},
    {"ExperimentalDenseToSparseBatchDataset", rule_scalar, "* [] [?]"},
    {"ExperimentalParseExampleDataset", rule_scalar, 0},
    {"ParseExampleDataset", rule_scalar, 0},
    {"ParseExampleDatasetV2", rule_scalar, 0},
    {"ExperimentalMatchingFilesDataset", from_files, 0},
    {"ExperimentalSleepDataset", rule_scalar, "[] []"},
    {"ExperimentalSlidingWindowDataset", rule_scalar, "* [] [] []"},
    {"ExperimentalThreadPoolDataset", rule_scalar, 0},
    {"ExperimentalThreadPoolHandle", rule_scalar, 0},
    {"MatchingFilesDataset", from_files, 0},
    {"SamplingDataset", rule_scalar, "* [] [] []"},
    {"SleepDataset", rule_scalar, "[] []"},
    {"SlidingWindowDataset", rule_scalar, "* [] [] []"},
    {"ThreadPoolDataset", rule_scalar, 0},
    {"ThreadPoolHandle", rule_scalar, 0},
    {"LoadDataset", rule_scalar, "[]"},
    {"SaveDataset", rule_unknown, "* []"},
    {"SaveDatasetV2", rule_scalar, "* []"},
    {"SnapshotChunkDataset", rule_scalar, "[]"},
    {"SnapshotDatasetReader", rule_scalar, "[] []"},
    {"SnapshotDatasetV2", rule_scalar, "* []"},
    {"SnapshotNestedDatasetReader", rule_scalar, 0},
    {"TextLineDataset", from_files, "* [] []"},
    {"UnbatchDataset", rule_scalar, 0},
    {"UniqueDataset", rule_scalar, 0},
    {"UnwrapDatasetVariant", rule_scalar, 0},
    {"WindowDataset", rule_scalar, "* [] [] [] []"},
    {"WindowOp", rule_scalar, 0},
    {"WrapDatasetVariant", rule_scalar, 0},
    {"ZipDataset", rule_scalar, 0},
    {0},
};
