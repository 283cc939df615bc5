/* SPDX-License-Identifier: Apache-2.0 */

#include "runtime/model/load/weight_check.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/facts.h"
#include "kernels/grids.h"
#include "kernels/half.h"
#include "kernels/ternary.h"

/* ---- blocks -------------------------------------------------------------------------------- */

static uint16_t half_at(const uint8_t *p) {
    uint16_t half;
    memcpy(&half, p, sizeof half);
    return half;
}

/* Reports the first wrong field of a row in which add_bits found one. */
static tern_status find_block(const tern_format_facts *f, const uint8_t *row, size_t blocks,
                              size_t stride, size_t r, tern_error *err) {
    for (size_t b = 0; b < blocks; b++, row += stride)
        for (size_t i = 0; i < f->halves; i++) {
            const float value = tern_f16_load(row + f->half_at[i]);
            if (isfinite(value) && !(f->ternary && value < 0.0f))
                continue;
            return tern_fail(err, TERN_ERR_TENSOR_DATA,
                             "row %zu, block %zu: the %s is %g, must be finite%s", r, b,
                             f->half_name[i], (double)value, f->ternary ? " and not negative" : "");
        }
    return TERN_OK; /* the sign was that of a minus zero */
}

/* Bit 15 of the result is set if some field has the exponent of infinities and NaNs, or a sign
 * where there should be none. */
static unsigned add_bits(const uint8_t *row, size_t blocks, size_t stride, unsigned sign) {
    unsigned bits = 0;
    for (size_t b = 0; b < blocks; b++, row += stride) {
        const unsigned half = half_at(row);
        bits |= ((half & 0x7fffu) + 0x400u) | (half & sign);
    }
    return bits;
}

static tern_status check_blocks(const tern_format_facts *f, const tern_format_info *info,
                                const uint8_t *data, size_t cols, size_t r0, size_t r1,
                                tern_error *err) {
    const size_t blocks = cols / info->block_elements, stride = info->block_bytes;
    const unsigned sign = f->ternary ? 0x8000u : 0;
    for (size_t r = r0; r < r1; r++) {
        const uint8_t *row = data + r * blocks * stride;
        unsigned bits = 0;
        for (size_t i = 0; i < f->halves; i++)
            bits |= add_bits(row + f->half_at[i], blocks, stride, sign);
        const tern_status status =
            bits & 0x8000u ? find_block(f, row, blocks, stride, r, err) : TERN_OK;
        if (status != TERN_OK)
            return status;
    }
    return TERN_OK;
}

/* Blocks that begin with a power of two, which can be so large that weights are not finite. */
static tern_status check_powers(const tern_format_info *info, const uint8_t *data, size_t cols,
                                size_t r0, size_t r1, tern_error *err) {
    const size_t blocks = cols / info->block_elements;
    for (size_t i = r0 * blocks; i < r1 * blocks; i++) {
        const unsigned e = data[i * info->block_bytes];
        if (e > TERN_POWER_MAX)
            return tern_fail(err, TERN_ERR_TENSOR_DATA,
                             "row %zu, block %zu: the scale is 2^%d, must be at most 2^%d",
                             i / blocks, i % blocks, (int)e - 128, TERN_POWER_MAX - 128);
    }
    return TERN_OK;
}

/* IQ1_M, whose scale lies in pieces. */
static tern_status check_pieces(tern_format format, const tern_format_info *info,
                                const uint8_t *data, size_t cols, size_t r0, size_t r1,
                                tern_error *err) {
    const size_t blocks = cols / info->block_elements;
    const uint8_t *block = data + r0 * blocks * info->block_bytes;
    for (size_t i = r0 * blocks; i < r1 * blocks; i++, block += info->block_bytes) {
        const float scale = tern_f16_to_f32(tern_grid_d(format, block));
        if (!isfinite(scale))
            return tern_fail(err, TERN_ERR_TENSOR_DATA,
                             "row %zu, block %zu: the scale is %g, must be finite", i / blocks,
                             i % blocks, (double)scale);
    }
    return TERN_OK;
}

/* ---- floats -------------------------------------------------------------------------------- */

/* Numbers in words of 64 bits: `rest` masks a number without its sign, `one` is the last bit of its
 * exponent. An exponent of all ones carries into the sign, and nothing carries further. */
typedef struct lanes {
    uint64_t rest, one;
} lanes;

static lanes lanes_of(tern_format format) {
    if (format == TERN_FORMAT_F32)
        return (lanes){UINT64_C(0x7fffffff7fffffff), UINT64_C(0x0080000000800000)};
    if (format == TERN_FORMAT_F16)
        return (lanes){UINT64_C(0x7fff7fff7fff7fff), UINT64_C(0x0400040004000400)};
    return (lanes){UINT64_C(0x7fff7fff7fff7fff), UINT64_C(0x0080008000800080)};
}

static uint64_t carry_of(lanes l, const uint8_t *p, size_t bytes) {
    uint64_t word = 0;
    memcpy(&word, p, bytes);
    return (word & l.rest) + l.one;
}

static bool is_finite_row(lanes l, const uint8_t *row, size_t bytes) {
    uint64_t a = 0, b = 0;
    size_t i = 0;
    for (; i + 16 <= bytes; i += 16) {
        a |= carry_of(l, row + i, 8);
        b |= carry_of(l, row + i + 8, 8);
    }
    for (; i < bytes; i += 8)
        b |= carry_of(l, row + i, bytes - i < 8 ? bytes - i : 8);
    return !((a | b) & ~l.rest);
}

static float float_at(tern_format format, const uint8_t *row, size_t k) {
    float value;
    if (format == TERN_FORMAT_F16)
        return tern_f16_load(row + 2 * k);
    if (format == TERN_FORMAT_BF16)
        return tern_bf16_load(row + 2 * k);
    memcpy(&value, row + 4 * k, sizeof value);
    return value;
}

static tern_status check_floats(tern_format format, size_t element, const uint8_t *data,
                                size_t cols, size_t r0, size_t r1, tern_error *err) {
    const lanes l = lanes_of(format);
    for (size_t r = r0; r < r1; r++) {
        const uint8_t *row = data + r * cols * element;
        if (is_finite_row(l, row, cols * element))
            continue;
        size_t k = 0;
        while (isfinite(float_at(format, row, k)))
            k++;
        return tern_fail(err, TERN_ERR_TENSOR_DATA, "row %zu, column %zu is %g, must be finite", r,
                         k, (double)float_at(format, row, k));
    }
    return TERN_OK;
}

tern_status tern_weight_check(tern_format format, const void *data, size_t cols, size_t r0,
                              size_t r1, tern_error *err) {
    const tern_format_info *info = tern_format_describe(format);
    const tern_format_facts *facts = tern_format_facts_of(format);
    if (facts->halves > 0)
        return check_blocks(facts, info, data, cols, r0, r1, err);
    if (facts->plain.power)
        return check_powers(info, data, cols, r0, r1, err);
    if (tern_grid_of(format) != NULL)
        return check_pieces(format, info, data, cols, r0, r1, err);
    if (format == TERN_FORMAT_F32 || format == TERN_FORMAT_F16 || format == TERN_FORMAT_BF16)
        return check_floats(format, info->block_bytes, data, cols, r0, r1, err);
    return TERN_OK;
}

/* ---- as a job ------------------------------------------------------------------------------ */

static tern_status check_codes(tern_format format, const uint8_t *data, size_t cols, size_t r0,
                               size_t r1, tern_error *err) {
    uint8_t codes[TERN_TERNARY_COLS];
    for (size_t at = r0 * cols; at < r1 * cols; at += sizeof codes) {
        const size_t left = r1 * cols - at;
        const size_t n = left < sizeof codes ? left : sizeof codes;
        tern_ternary_read(format, data, at, n, codes);
        if (tern_ternary_invalid(codes, n))
            return tern_ternary_fail(format, data, cols, r0, err);
    }
    return TERN_OK;
}

typedef struct checking {
    tern_load_job job;
    size_t first; /* row of the tensor that is the job's row 0 */
} checking;

static tern_status check_rows(tern_load_job *job, tern_worker worker, size_t r0, size_t r1,
                              tern_error *err) {
    const size_t first = ((const checking *)(const void *)job)->first;
    const tern_gguf_tensor *t = job->tensor;
    const tern_format format = tern_gguf_format(t);
    const size_t cols = (size_t)t->ne[0];
    (void)worker;
    const tern_status status =
        tern_weight_check(format, t->data, cols, first + r0, first + r1, err);
    return status == TERN_OK && tern_format_is_ternary(format)
               ? check_codes(format, t->data, cols, first + r0, first + r1, err)
               : status;
}

tern_status tern_weight_note_check(tern_load_jobs *jobs, const tern_gguf *file,
                                   const tern_gguf_tensor *t, tern_part rows, bool drop,
                                   tern_error *err) {
    const size_t row_bytes = (size_t)(t->bytes / tern_gguf_rows_of(t));
    checking *c = malloc(sizeof *c);
    if (c == NULL)
        return tern_fail(err, TERN_ERR_NOMEM, "no memory to check weights");
    *c = (checking){.job = {.make = check_rows,
                            .rows = rows.end - rows.begin,
                            .row_bytes = row_bytes,
                            .source = drop ? t->data + rows.begin * row_bytes : NULL,
                            .file = file,
                            .tensor = t},
                    .first = rows.begin};
    tern_load_jobs_add(jobs, &c->job);
    return TERN_OK;
}
