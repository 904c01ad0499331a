/* update.h: one step of an optimizer on arrays. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

/* Changes n elements of the variable v[0] and of its slots v[1..] by the gradient g. `s` are the scalars in the order
 * of the op's inputs; `flag` is the op's option (Nesterov, update_slots, multiply_linear_by_lr). */
typedef void UpdateFn(void *const *v, const void *g, const double *s, bool flag, int64_t n);

enum { UPDATE_MAX_SLOTS = 4, UPDATE_MAX_SCALARS = 8 };

/* The optimizers, each for one element type; half and bfloat16 are computed in float. */
typedef struct UpdateFns {
    UpdateFn *gradient_descent, *momentum, *keras_momentum, *adagrad, *adagrad_v2, *adam, *amsgrad, *adamax, *rmsprop;
    UpdateFn *centered_rmsprop, *ftrl, *ftrl_v2, *adadelta, *adagrad_da, *proximal_gradient_descent, *proximal_adagrad;
    UpdateFn *power_sign, *add_sign;
} UpdateFns;

typedef enum UpdateType {
    UPDATE_FLOAT,
    UPDATE_DOUBLE,
    UPDATE_HALF,
    UPDATE_BFLOAT16,
    UPDATE_COMPLEX64, /* complex numbers: NULL where the optimizer compares numbers */
    UPDATE_COMPLEX128,
} UpdateType;

const UpdateFns *update_fns(UpdateType type); /* for the processor at hand */
