/* rule_list.h: the tables of rules, one for each family of ops; each ends with a row without a name. */
#pragma once
#include "shapes/shape_context.h"

extern const ShapeRow array_rules[], constant_rules[], control_rules[], conv_rules[], csr_rules[], data_flow_rules[], dataset_rules[], einsum_rules[], function_rules[],
    image_rules[], linalg_rules[], list_rules[], math_rules[], nn_rules[], parse_rules[], quantized_rules[], ragged_rules[], random_rules[], slice_rules[], sparse_rules[], state_rules[],
    strided_slice_rules[], string_rules[];

extern const ShapeRow *const rule_tables[];
extern const int rule_table_count;

/* For nodes whose op is the name of a function. */
extern const ShapeRow function_call_row;

/* Rules of one family that another has use for. */
ShapeRule rule_avg_pool, rule_bias_add, rule_conv2d, rule_depthwise_conv2d, rule_matmul, rule_max_pool, rule_reshape, rule_resize;
/* Output 0: inputs [first, first + n) joined along the axis that input `axis_input` says. */
void concat_inputs(ShapeContext *c, int first, int n, int axis_input);
