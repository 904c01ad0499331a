/* spin.h: looks at something again and again for a short time, before one goes to sleep over it. */
#pragma once
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"

typedef struct Spin {
    int64_t until_ns;
    unsigned looks;
} Spin;

static inline Spin spin_for(int64_t ns) {
    return (Spin){clock_mono_ns() + ns, 0};
}

/* To be called after each look in vain; false when the time is over. Whoever else wants this core gets it. */
static inline bool spin_on(Spin *s) {
    enum { LOOKS = 32 }; /* about a microsecond */
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
    if (++s->looks % LOOKS) return true;
    sched_yield();
    return clock_mono_ns() < s->until_ns;
}
