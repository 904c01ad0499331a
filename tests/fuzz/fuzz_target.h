/* fuzz_target.h: what every fuzz target needs: its entry point, and pieces of the input. */
#pragma once
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/str.h"

/* libFuzzer calls it with one input after another. Anything but a crash, a leak, an endless loop or undefined behaviour is fine. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static inline Str input_str(const uint8_t *data, size_t size) {
    return (Str){(const char *)data, size};
}

/* The first byte, as a choice; the rest stays. */
static inline unsigned take_choice(Str *input) {
    if (!input->len) return 0;
    unsigned choice = (uint8_t)input->ptr[0];
    *input = str_slice(*input, 1, input->len);
    return choice;
}

/* A piece with its length (2 bytes, little-endian) in front; what there is when it is shorter. */
static inline Str take_piece(Str *input) {
    if (input->len < 2) {
        Str all = *input;
        *input = (Str){"", 0};
        return all;
    }
    size_t len = (size_t)(uint8_t)input->ptr[0] | (size_t)(uint8_t)input->ptr[1] << 8;
    Str piece = str_slice(*input, 2, 2 + len);
    *input = str_slice(*input, 2 + len, input->len);
    return piece;
}
