/* cmd_version.c: rill version. */
#include <stdio.h>

#include "tools/command.h"

int cmd_version(int argc, char **argv) {
    (void)argc;
    (void)argv;
    puts("rill 0.1.0 (TensorFlow 2.21 protocol)");
    return 0;
}
