/* cmd_run.c: rill run script.py: a TensorFlow 1-style script, unchanged, with Rill's servers in place of TensorFlow's. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/str.h"
#include "tools/command.h"

/* The folder that holds the Python package, malloced: of a checkout, of a wheel, or installed; NULL when there is none. */
static char *package_folder(void) {
    char *self = program_folder();
    static const char *const places[] = {"../../python", "../..", "../share/rill/python"};
    char *folder = NULL;
    for (size_t i = 0; !folder && i < sizeof places / sizeof places[0]; i++) {
        folder = xasprintf("%s/%s", self, places[i]);
        char *file = xasprintf("%s/rill/run.py", folder);
        if (access(file, R_OK) != 0) {
            free(folder);
            folder = NULL;
        }
        free(file);
    }
    free(self);
    return folder;
}

static const char *python(void) {
    static char path[PATH_MAX];
    const char *given = getenv("RILL_PYTHON"), *venv = getenv("VIRTUAL_ENV");
    if (given && *given) return given;
    if (venv && snprintf(path, sizeof path, "%s/bin/python", venv) < (int)sizeof path && access(path, X_OK) == 0) return path;
    return "python3";
}

int cmd_run(int argc, char **argv) {
    if (argc < 2 || strcmp(argv[1], "--help") == 0) {
        puts("usage: rill run SCRIPT.py [ARGUMENTS]\n\n"
             "Runs a TensorFlow 1-style script as it is: import tensorflow gives the version 1 interface, and tf.train.Server starts a Rill server in the process.\n"
             "The installed TensorFlow builds the graph. Python is $RILL_PYTHON, the one of the virtual environment, or python3.\n"
             "A ps that waits in server.join() ends when all workers are done, or by rill stop.\n\n"
             "Exit code: the script's; 2 when it is not there.");
        return argc < 2 ? EXIT_USAGE : 0;
    }
    if (argv[1][0] == '-') {
        fprintf(stderr, "rill run: unknown flag %s; the script comes first, then its own flags\n", argv[1]);
        return EXIT_USAGE;
    }
    char *folder = package_folder();
    if (!folder) {
        fprintf(stderr, "rill run: the Python package rill is not beside this program; install it with pip\n");
        return EXIT_FAILURE;
    }
    const char *before = getenv("PYTHONPATH");
    char *search = before && *before ? xasprintf("%s:%s", folder, before) : xstrdup(folder);
    setenv("PYTHONPATH", search, 1);
    char **words = xcalloc((size_t)argc + 3, sizeof *words);
    words[0] = (char *)python();
    words[1] = "-m";
    words[2] = "rill.run";
    for (int i = 1; i < argc; i++) words[i + 2] = argv[i];
    execvp(words[0], words);
    fprintf(stderr, "rill run: %s cannot be run: %s\n", words[0], strerror(errno));
    free(words);
    free(search);
    free(folder);
    return EXIT_FAILURE;
}
