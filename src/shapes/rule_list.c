/* rule_list.c: all tables of rules. */
#include "shapes/rule_list.h"

const ShapeRow *const rule_tables[] = {
    constant_rules,
    function_rules,
    math_rules,
};
const int rule_table_count = sizeof rule_tables / sizeof *rule_tables;
