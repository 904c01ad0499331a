/* clock.h: monotonic and wall time. */
#pragma once
#include <stdint.h>

int64_t clock_mono_ns(void);
int64_t clock_wall_us(void); /* since 1970 */
int64_t clock_wall_ns(void);
static inline int64_t clock_mono_ms(void) {
    return clock_mono_ns() / 1000000;
}
