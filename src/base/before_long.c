/* before_long.c: one function for each thread. */
#include "base/before_long.h"

#include <stddef.h>

static _Thread_local BeforeLong *own;

void before_long_set(BeforeLong *fn) {
    own = fn;
}

void before_long(void) {
    if (own) own();
}
