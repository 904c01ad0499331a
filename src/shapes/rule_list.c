/* rule_list.c: all tables of rules. */
#include "shapes/rule_list.h"

const ShapeRow *const rule_tables[] = {
    array_rules, constant_rules, control_rules, conv_rules, data_flow_rules, dataset_rules, einsum_rules,
    function_rules, image_rules, linalg_rules, list_rules, math_rules, nn_rules, parse_rules, ragged_rules,
    random_rules, slice_rules, sparse_rules, ragged_rules, state_rules, quantized_rules, csr_rules, strided_slice_rules, string_rules,
};
const int rule_table_count = sizeof rule_tables / sizeof *rule_tables;
