/* SPDX-License-Identifier: Apache-2.0 */
/* The oracle's INT8 and INT4: weights by their definition, products by docs/numerics.md. */

#include "kernels/reference_lanes.h"

/* ---- codes: what enters the integer product ------------------------------------------------ */

static int int4_code(const uint8_t *block, size_t k) {
    const uint8_t byte = block[4 + k % 16];
    return (k < 16 ? byte % 16 : byte / 16) - block[2];
}

/* A block of the format's, its element k, and the scale of both. */
static int code_of(tern_format format, const uint8_t *block, size_t k) {
    if (format == TERN_FORMAT_INT4)
        return int4_code(block, k);
    return block[k] < 128 ? block[k] : block[k] - 256;
}

static float scale_of(tern_format format, const uint8_t *block) {
    return format == TERN_FORMAT_INT4 ? tern_ref_half(tern_ref_read16(block)) : 1.0f;
}

/* ---- entry points -------------------------------------------------------------------------- */

float tern_ref_int_value(tern_format format, const void *file, size_t index) {
    const tern_format_info *info = tern_format_describe(format);
    const uint8_t *block = (const uint8_t *)file + index / info->block_elements * info->block_bytes;

    return (float)code_of(format, block, index % info->block_elements) * scale_of(format, block);
}

float tern_ref_int_dot(const tern_ref_matrix *w, size_t row, const tern_activations *x, size_t t) {
    const tern_format_info *info = tern_format_describe(w->format);
    const int8_t *q = x->q + t * x->q_stride;
    float acc = 0.0f;

    for (size_t first = 0; first < w->cols; first += TERN_BLOCK) {
        const size_t left = w->cols - first;
        const size_t at = row * w->cols + first;
        const uint8_t *block =
            (const uint8_t *)w->file + at / info->block_elements * info->block_bytes;
        const float d = x->d[t * x->d_stride + first / TERN_BLOCK];
        int64_t dot = 0;

        for (size_t j = 0; j < left && j < TERN_BLOCK; j++)
            dot += code_of(w->format, block, at % info->block_elements + j) * q[first + j];
        acc += (float)dot * (scale_of(w->format, block) * d);
    }
    if (w->format != TERN_FORMAT_INT8)
        return acc;
    return acc * (w->row_scale != NULL ? w->row_scale[row] : w->scale);
}
