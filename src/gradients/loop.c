/* loop.c: gradients of while loops made of Enter, Merge, Switch, NextIteration and Exit. */
#include "gradients/backprop.h"

Output scope_value(Scope *s, Output forward) {
    (void)s;
    return forward;
}

void loop_backprop(Scope *s, int frame) {
    b_fail(&s->p->b, error_unimplemented("Gradients of the loop %.*s", STR_ARG(s->p->frames.frames[frame].name)));
}

Output rule_in_shape(Rule *r, int i) {
    return b_shape(&r->scope->p->b, rule_in(r, i));
}
