/* cmd_version.c: rill version. */
#include <stdio.h>

#include "tools/command.h"
#include "tools/report.h"

static const char version[] = "rill 0.1.0", protocol[] = "TensorFlow 2.21";

int cmd_version(int argc, char **argv) {
    bool as_json = false, help = false;
    const Flag flags[] = {
        {"json", FLAG_BOOL, &as_json, NULL, "for programs"},
        {"help", FLAG_BOOL, &help, NULL, "print this"},
        {0},
    };
    int count, code;
    if (!command_parse(flags, "version [--json]\n\nPrints the version, and which TensorFlow's protocol it speaks.\n", argc, argv, NULL, 0, 0, &count, &code)) return code;
    if (!as_json) {
        printf("%s (%s protocol)\n", version, protocol);
        return 0;
    }
    cJSON *json = cJSON_CreateObject();
    report_str(json, "version", str_of(version + sizeof "rill"));
    report_str(json, "protocol", str_of(protocol));
    report_print(json);
    return 0;
}
