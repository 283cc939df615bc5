/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/files/gguf/i2s_detect.h"

#include "kernels/ternary.h"

enum { SCALE_BYTES = 4 /* the scale after the codes of ONE_SCALE */ };

static uint64_t round_up(uint64_t bytes, uint64_t unit) {
    return (bytes + unit - 1) / unit * unit;
}

bool tern_i2s_takes(const tern_i2s_place *p, uint64_t bytes) {
    return p->extent == round_up(bytes, p->alignment) || (p->last && p->extent == bytes);
}

/* rows * cols is below 2^62 (checked where the file is parsed), so that nothing here overflows. */
tern_i2s_kind tern_i2s_detect(const tern_i2s_place *p) {
    const uint64_t n = p->rows * p->cols;
    const uint64_t codes = n / 4;

    if (n % 4 == 0 && (tern_i2s_takes(p, codes + TERN_I2S_TRAILER_BYTES) ||
                       (p->last && p->extent == codes + SCALE_BYTES)))
        return TERN_I2S_ONE_SCALE;
    if (tern_i2s_takes(p, p->rows * round_up(p->cols, 256) / 4))
        return TERN_I2S_NO_SCALE;
    if (n % 32 == 0 && tern_i2s_takes(p, n / 32 * 10))
        return TERN_I2S_SCALE_32;
    if (n % 256 == 0 && tern_i2s_takes(p, n / 256 * 66))
        return TERN_I2S_SCALE_256;
    return TERN_I2S_UNKNOWN;
}

const char *tern_i2s_kind_text(tern_i2s_kind kind) {
    switch (kind) {
    case TERN_I2S_ONE_SCALE:
        return "codes with one scale";
    case TERN_I2S_NO_SCALE:
        return "codes without a scale";
    case TERN_I2S_SCALE_32:
        return "blocks of 32 weights with a scale each";
    case TERN_I2S_SCALE_256:
        return "blocks of 256 weights with a scale each";
    default:
        return "no known kind of I2_S";
    }
}
