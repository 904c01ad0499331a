/* random_id.h: ids nobody else has. */
#pragma once
#include <stdint.h>

int64_t random_id(void);      /* non-zero */
int64_t random_step_id(void); /* the top 7 bits are zero */
