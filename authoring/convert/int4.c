/* SPDX-License-Identifier: Apache-2.0 */
#include "authoring/convert/int4.h"

#include <math.h>
#include <string.h>

#include "kernels/half.h"
#include "kernels/quantize_search.h"
#include "tern/kernels.h"

enum { MIDDLE = 8, GREATEST = 15 };

/* The mapping of a group's codes: (code - zero) * scale. */
typedef struct group_scale {
    float scale; /* rounded to f16 */
    unsigned zero;
} group_scale;

static unsigned cut(float code) {
    return code < 0.0f ? 0 : code > (float)GREATEST ? GREATEST : (unsigned)code;
}

static float inverse(float x) {
    return x != 0.0f ? 1.0f / x : 0.0f;
}

/* Affine: the range, extended to contain 0. Symmetric: the first value of the largest magnitude
 * gets code 0. */
static group_scale find_scale(const tern_int4_rows *form, const float *x, size_t n,
                              uint8_t half[2]) {
    float least = 0.0f, greatest = 0.0f, farthest = 0.0f;
    for (size_t i = 0; i < n; i++) {
        least = x[i] < least ? x[i] : least;
        greatest = x[i] > greatest ? x[i] : greatest;
        farthest = fabsf(x[i]) > fabsf(farthest) ? x[i] : farthest;
    }
    tern_f16_store(half, form->zero_points ? (greatest - least) / (float)GREATEST
                                           : farthest / (float)-MIDDLE);
    const float scale = tern_f16_load(half);
    return (group_scale){
        .scale = scale,
        .zero = form->zero_points ? cut(0.5f - least * inverse(scale)) : MIDDLE,
    };
}

/* The same for columns with weights: the scale of least weighted error. */
static group_scale search_scale(const tern_int4_rows *form, const float *x, const float *w,
                                size_t n, uint8_t half[2]) {
    const tern_search_run run = {.x = x, .w = w, .n = n, .levels = GREATEST + 1};
    int zero = MIDDLE;
    const float scale = form->zero_points ? tern_search_affine(&run, &zero, half)
                                          : tern_search_scale(&run, zero, half);
    return (group_scale){.scale = scale, .zero = (unsigned)zero};
}

static bool all_finite(const float *x, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (!isfinite(x[i]))
            return false;
    return true;
}

bool convert_int4_encode(const tern_int4_rows *form, const float *x, const float *w, size_t cols,
                         uint8_t *row) {
    uint8_t *scales = row + cols / 2;
    uint8_t *zeros = scales + 2 * tern_int4_groups(form, cols);
    memset(row, 0, cols / 2);
    if (!all_finite(x, cols))
        return false;
    for (size_t first = 0, g = 0; first < cols; first += form->group, g++) {
        const size_t n = cols - first < form->group ? cols - first : form->group;
        const group_scale s = w != NULL
                                  ? search_scale(form, x + first, w + first, n, scales + 2 * g)
                                  : find_scale(form, x + first, n, scales + 2 * g);
        if (!isfinite(s.scale))
            return false;
        const float id = inverse(s.scale);
        for (size_t k = first; k < first + n; k++)
            row[k / 2] |= (uint8_t)(cut(x[k] * id + (float)s.zero + 0.5f) << (k % 2 * 4));
        if (form->zero_points)
            zeros[g] = (uint8_t)s.zero;
    }
    return true;
}

void convert_int4_decode(const tern_int4_rows *form, const uint8_t *row, size_t cols, float *x) {
    uint8_t block[TERN_INT4_BLOCK_BYTES];
    for (size_t first = 0; first < cols; first += TERN_INT4_BLOCK) {
        tern_int4_block(form, row, cols, first, block);
        tern_dequantize_row(TERN_FORMAT_INT4, block, TERN_INT4_BLOCK, 0, 1.0f, x + first);
    }
}
