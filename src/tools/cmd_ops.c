/* cmd_ops.c: rill ops: every op of this build and the types of its kernel. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "ops/op_list.h"
#include "tools/command.h"

static int by_name(const void *a, const void *b) {
    return strcmp((*(const KernelDef *const *)a)->op, (*(const KernelDef *const *)b)->op);
}

int cmd_ops(int argc, char **argv) {
    if (argc > 1) {
        bool help = strcmp(argv[1], "--help") == 0;
        fputs("usage: rill ops\nLists the ops this build can run, with the types of each.\n", help ? stdout : stderr);
        return help ? 0 : EXIT_USAGE;
    }
    ops_register_all();
    int count = kernel_count();
    const KernelDef **rows = xcalloc((size_t)count, sizeof *rows);
    for (int i = 0; i < count; i++) rows[i] = kernel_at(i);
    qsort(rows, (size_t)count, sizeof *rows, by_name);
    for (int i = 0; i < count; i++) {
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
