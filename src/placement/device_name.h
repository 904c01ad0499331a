/* device_name.h: "/job:ps/replica:0/task:1/device:CPU:0" and its partial forms. */
#pragma once
#include <stdbool.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/str.h"

/* What is not given is a wildcard. Strings point into the parsed text. */
typedef struct DeviceName {
    Str job, type; /* type is upper case as given: "CPU"; compared without regard to case */
    int replica, task, id;
    bool has_job, has_replica, has_task, has_type, has_id;
} DeviceName;

/* Also the short forms "/cpu:0" and "/gpu:0", and "*" for any. InvalidArgument names the text. */
Error *device_name_parse(Str text, DeviceName *out) MUST_CHECK;
bool device_name_matches(const DeviceName *pattern, const DeviceName *full); /* every given component equal */
bool device_name_eq(const DeviceName *a, const DeviceName *b);

/* Adds the components of `from` that `into` lacks. A component both have must agree: false otherwise, and into is unchanged. With `soft`
 * a clash of type or id drops both of these components instead. */
bool device_name_merge(DeviceName *into, const DeviceName *from, bool soft);
/* The same, but where both have a component the one of `into` stays. */
void device_name_fill(DeviceName *into, const DeviceName *from);

Str device_name_text(Arena *arena, const DeviceName *d);
/* "/job:ps/replica:0/task:0" of a full name. */
Str device_task_text(Str full_name);
