/* digits_data.h: the handwritten digits of data/digits.csv.gz: 1,797 images of 8x8 pixels. */
#pragma once
#include "rill/train.h"

enum { DIGITS_TRAIN = 1297, DIGITS_VALID = 200, DIGITS_TEST = 300, DIGITS_ALL = 1797, PIXELS = 64 };

typedef struct Digits {
    float images[DIGITS_ALL][PIXELS]; /* 0 to 1, shuffled once: to train, to validate, held out */
    int32_t labels[DIGITS_ALL];
} Digits;

Digits *digits_load(const char *path); /* NULL when it cannot be read, which is told on standard error */

/* `count` rows from `first` on, or drawn from the training images with *seed. */
void digits_rows(const Digits *d, int first, int count, TF_Tensor **images, TF_Tensor **labels);
void digits_batch(const Digits *d, unsigned *seed, int count, TF_Tensor **images, TF_Tensor **labels);

/* The share of `count` rows from `first` on that `accuracy` says are right; 0 when it cannot be computed. */
double digits_accuracy(const Digits *d, int first, int count, RillSession *session, RillTensor images, RillTensor labels, RillTensor accuracy);
