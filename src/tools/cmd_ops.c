/* cmd_ops.c: rill ops: every op of this build and the types of its kernel. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "ops/op_list.h"
#include "tools/command.h"
#include "tools/report.h"

static int by_name(const void *a, const void *b) {
    return strcmp((*(const KernelDef *const *)a)->op, (*(const KernelDef *const *)b)->op);
}

static void add_row(cJSON *list, const KernelDef *k) {
    cJSON *row = report_object(list, NULL);
    report_str(row, "op", str_of(k->op));
    if (k->run) {
        cJSON_AddNullToObject(row, "types");
        return;
    }
    cJSON *types = report_array(row, "types");
    for (int t = 1; t < DT_COUNT; t++)
        if (k->by_type[t]) report_str(types, NULL, str_of(dtype_name((DataType)t)));
}

int cmd_ops(int argc, char **argv) {
    bool as_json = false, help = false;
    const Flag flags[] = {
        {"json", FLAG_BOOL, &as_json, NULL, "for programs: op, and types, a list or null for ops of any type"},
        {"help", FLAG_BOOL, &help, NULL, "print this"},
        {0},
    };
    int words, code;
    if (!command_parse(flags, "ops [--json]\n\nLists the ops this build can run, with the types of each; * for any.\n", argc, argv, NULL, 0, 0, &words, &code)) return code;
    ops_register_all();
    int count = kernel_count();
    const KernelDef **rows = xcalloc((size_t)count, sizeof *rows);
    for (int i = 0; i < count; i++) rows[i] = kernel_at(i);
    qsort(rows, (size_t)count, sizeof *rows, by_name);
    if (as_json) {
        cJSON *list = cJSON_CreateArray();
        for (int i = 0; i < count; i++) add_row(list, rows[i]);
        report_print(list);
    }
    for (int i = 0; i < count && !as_json; i++) {
        printf("%s", rows[i]->op);
        if (rows[i]->run) {
            puts(" *");
            continue;
        }
        for (int t = 1; t < DT_COUNT; t++)
            if (rows[i]->by_type[t]) printf(" %s", dtype_name((DataType)t));
        putchar('\n');
    }
    free(rows);
    return 0;
}
