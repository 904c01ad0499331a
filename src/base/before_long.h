/* before_long.h: what a thread does before it computes for long.

   Whoever lends a thread to others may keep back for a moment what their work gave it to do: messages to write, for one. It is done when the thread is
   about to compute for long or to wait; code that does so says it here first. */
#pragma once

typedef void BeforeLong(void);

void before_long_set(BeforeLong *fn); /* of this thread; NULL: nothing is kept back */
void before_long(void);               /* calls it */
