/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_KERNELS_I2S_H
#define TERN_KERNELS_I2S_H

/*
 * Addressing of the I2_S stream of a file: element e = row*cols + col lies in unit e / 128 of 32
 * bytes; byte e % 32 of the unit holds elements p, p+32, p+64, p+96, the first in its top bits.
 */

#include <stddef.h>
#include <stdint.h>

enum {
    TERN_I2S_UNIT = 128,
    TERN_I2S_UNIT_BYTES = 32,
    TERN_I2S_TRAILER_BYTES = 32 /* behind the codes: the f32 scale and 28 unspecified bytes */
};

static inline size_t tern_i2s_byte(size_t element) {
    return element / TERN_I2S_UNIT * TERN_I2S_UNIT_BYTES + element % TERN_I2S_UNIT_BYTES;
}

static inline unsigned tern_i2s_shift(size_t element) {
    return 6u - 2u * (unsigned)(element % TERN_I2S_UNIT / TERN_I2S_UNIT_BYTES);
}

/* The code (weight + 1; 3 is invalid) of an element. */
static inline unsigned tern_i2s_code(const uint8_t *codes, size_t element) {
    return (unsigned)codes[tern_i2s_byte(element)] >> tern_i2s_shift(element) & 3u;
}

#endif
