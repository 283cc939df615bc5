/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Weights from floats to the layouts of files: docs/numerics.md, "Weights from floats". Plain
 * formats are made as kernels/formats.toml describes them; that file names the functions of the
 * others.
 */

#include <math.h>
#include <string.h>

#include "kernels/codes.h"
#include "kernels/facts.h"
#include "kernels/half.h"
#include "kernels/quantize_important.h"
#include "kernels/quantize_search.h"
#include "kernels/quantize_super.h"
#include "kernels/ternary.h"
#include "tern/kernels.h"

enum { CHUNK = 256 }; /* elements that are encoded and compared at a time: whole blocks */

/*
 * How a format is made: block by block, or from the whole matrix at once, which then says whether
 * that was lossless. `weighed` also takes how much the error of each column counts, or NULL where
 * there is no `block`.
 */
typedef struct quantizer {
    void (*block)(const float *x, uint8_t *out);
    void (*weighed)(const float *x, const float *w, uint8_t *out);
    bool (*matrix)(const float *x, size_t rows, size_t cols, uint8_t *out);
} quantizer;

/* 1/d, or 0 for a d so small that its f16 is 0 and its inverse may be infinite. */
static float inverse(float d) {
    return d < 0x1p-126f && d > -0x1p-126f ? 0.0f : 1.0f / d;
}

/* ---- floats -------------------------------------------------------------------------------- */

static void encode_f32(const float *x, uint8_t *out) {
    memcpy(out, x, sizeof *x);
}

static void encode_f16(const float *x, uint8_t *out) {
    tern_f16_store(out, *x);
}

static void encode_bf16(const float *x, uint8_t *out) {
    const uint16_t brain = tern_f32_to_bf16(*x);
    memcpy(out, &brain, sizeof brain);
}

/* ---- blocks of 32 -------------------------------------------------------------------------- */

/* v cut to an integer of 0 .. max; max too for the NaN of an overflow. */
static unsigned cut(float v, unsigned max) {
    return v < (float)max ? (v > 0.0f ? (unsigned)v : 0) : max;
}

/* Codes of (x - base) * id + offset, as a plain block keeps them. */
static void put_codes(const tern_plain *p, const float *x, float base, float id, float offset,
                      uint8_t *out) {
    const unsigned max = (1u << p->bits) - 1;
    uint8_t *nibbles = out + p->codes_at;
    uint8_t codes[TERN_BLOCK];

    for (int j = 0; j < TERN_BLOCK; j++)
        codes[j] = (uint8_t)cut((x[j] - base) * id + offset, max);
    for (int j = 0; j < TERN_BLOCK / 2; j++)
        nibbles[j] = (uint8_t)((codes[j] & 15u) | (unsigned)codes[j + TERN_BLOCK / 2] << 4);
    if (p->bits == 4)
        return;
    memset(nibbles - 4, 0, 4);
    for (int j = 0; j < TERN_BLOCK; j++)
        nibbles[j / 8 - 4] = (uint8_t)(nibbles[j / 8 - 4] | codes[j] >> 4 << j % 8);
}

/* The first element of largest magnitude, with its sign. */
static float largest_of(const float *x) {
    float largest = 0.0f;

    for (int j = 0; j < TERN_BLOCK; j++)
        if (fabsf(x[j]) > fabsf(largest))
            largest = x[j];
    return largest;
}

/* The largest element becomes code 0: -8 * d, with five bits -16 * d. */
static void encode_biased(const tern_plain *p, const float *x, uint8_t *out) {
    const float d = largest_of(x) / -(float)p->bias;

    tern_f16_store(out, d);
    put_codes(p, x, 0.0f, inverse(d), (float)p->bias + 0.5f, out);
}

static void weigh_biased(const tern_plain *p, const float *x, const float *w, uint8_t *out) {
    const tern_search_run run = {.x = x, .w = w, .n = TERN_BLOCK, .levels = 1 << p->bits};
    const float d = tern_search_scale(&run, p->bias, out);

    put_codes(p, x, 0.0f, inverse(d), (float)p->bias + 0.5f, out);
}

/* *least and *greatest, moved to where they enclose the block's elements. */
static void widen_range(const float *x, float *least, float *greatest) {
    for (int j = 0; j < TERN_BLOCK; j++) {
        *least = x[j] < *least ? x[j] : *least;
        *greatest = x[j] > *greatest ? x[j] : *greatest;
    }
}

/* The least element becomes code 0, the greatest the largest one. */
static void encode_with_minimum(const tern_plain *p, const float *x, uint8_t *out) {
    float least = x[0];
    float greatest = x[0];

    widen_range(x, &least, &greatest);
    const float d = (greatest - least) / (float)((1 << p->bits) - 1);
    tern_f16_store(out, d);
    tern_f16_store(out + 2, least);
    put_codes(p, x, least, inverse(d), 0.5f, out);
}

/* The range with 0 in it: 0 is a code, so that a weight of 0 stays 0. */
static void encode_int4(const float *x, uint8_t *out) {
    static const tern_plain nibbles = {.bits = 4, .codes_at = 4};
    float least = 0.0f;
    float greatest = 0.0f;

    widen_range(x, &least, &greatest);
    const float d = (greatest - least) / 15.0f;
    const float id = inverse(d);
    const unsigned zero = cut(0.5f - least * id, 15);
    tern_f16_store(out, d);
    out[2] = (uint8_t)zero;
    out[3] = 0;
    put_codes(&nibbles, x, 0.0f, id, (float)zero + 0.5f, out);
}

static float largest_magnitude(const float *x, size_t n) {
    float largest = 0.0f;

    for (size_t i = 0; i < n; i++)
        largest = fabsf(x[i]) > largest ? fabsf(x[i]) : largest;
    return largest;
}

/* The scale of a run of elements, which it replaces by codes. */
static float encode_int8(const float *x, size_t n, int8_t *codes) {
    const float scale = largest_magnitude(x, n) / 127.0f;
    const float inverted = inverse(scale);

    for (size_t i = 0; i < n; i++)
        codes[i] = (int8_t)roundf(x[i] * inverted);
    return scale;
}

/* Nibbles by the list of levels that they stand for; w as in weigh_block, or NULL. */
static void encode_levels(const tern_plain *p, const float *x, const float *w, uint8_t *out) {
    const tern_level_list list = tern_sort_levels(p->levels);
    const tern_search_run run = {.x = x, .w = w, .n = TERN_BLOCK, .list = &list};
    const float id = inverse(tern_search_levels(&run, out));

    tern_put_levels(&list, x, (double)id, out + p->codes_at);
}

/* The code whose level is nearest, the first of equals. */
static unsigned nearest_of(const int8_t levels[16], float d, float x) {
    unsigned best = 0;

    for (unsigned code = 1; code < 16; code++)
        if (fabsf(d * (float)levels[code] - x) < fabsf(d * (float)levels[best] - x))
            best = code;
    return best;
}

/*
 * A power of two and levels: the largest element becomes one of the two largest levels or, where it
 * is farther out, the largest. The logarithm is that of a float, as in other tools.
 */
static void encode_power(const tern_plain *p, const float *x, uint8_t *out) {
    const float largest = largest_magnitude(x, TERN_BLOCK);
    const float e = largest > 0.0f ? floorf((float)log2((double)largest)) + 125.0f : 0.0f;
    uint8_t *nibbles = out + p->codes_at;

    out[0] = (uint8_t)cut(e, TERN_POWER_MAX);
    const float d = tern_power(out[0]);
    for (int j = 0; j < TERN_BLOCK / 2; j++)
        nibbles[j] = (uint8_t)(nearest_of(p->levels, d, x[j]) |
                               nearest_of(p->levels, d, x[j + TERN_BLOCK / 2]) << 4);
}

/* The bits of v as E4M3, nearest, halves up; at most 448. */
static uint8_t to_e4m3(float v) {
    const uint32_t bits = tern_f32_to_bits(v);
    const int exponent = (int)(bits >> 23) - 120;

    if (exponent <= 0)
        return (uint8_t)cut(v * 512.0f + 0.5f, 7);
    const uint32_t rounded = (uint32_t)exponent * 8 + (bits >> 20 & 7) + (bits >> 19 & 1);
    return (uint8_t)(rounded < 0x78 ? rounded : 0x7e);
}

/* Runs of 16 columns: the largest element becomes the largest level. */
static void encode_nvfp4(const float *x, uint8_t *out) {
    const int8_t *levels = tern_format_facts_of(TERN_FORMAT_NVFP4)->levels;

    for (size_t r = 0; r < 4; r++, x += TERN_NVFP4_RUN) {
        uint8_t *nibbles = out + TERN_NVFP4_NIBBLES + 8 * r;
        out[r] = to_e4m3(largest_magnitude(x, TERN_NVFP4_RUN) / 6.0f);
        const float d = tern_e4m3(out[r]);
        for (size_t j = 0; j < 8; j++)
            nibbles[j] =
                (uint8_t)(nearest_of(levels, d, x[j]) | nearest_of(levels, d, x[j + 8]) << 4);
    }
}

static void encode_plain(const tern_plain *p, const float *x, uint8_t *out) {
    if (p->power)
        encode_power(p, x, out);
    else if (p->levels != NULL)
        encode_levels(p, x, NULL, out);
    else if (p->bits == 8)
        tern_f16_store(out, encode_int8(x, TERN_BLOCK, (int8_t *)out + p->codes_at));
    else if (p->minimum)
        encode_with_minimum(p, x, out);
    else
        encode_biased(p, x, out);
}

/* ---- ternary ------------------------------------------------------------------------------- */

/* The one magnitude that a matrix has besides 0 (1 if it has none); 0 when there are several. */
static float only_magnitude(const float *x, size_t n) {
    float found = 0.0f;

    for (size_t i = 0; i < n; i++) {
        const float magnitude = fabsf(x[i]);
        if (magnitude == 0.0f || magnitude == found)
            continue;
        if (found != 0.0f)
            return 0.0f;
        found = magnitude;
    }
    return found != 0.0f ? found : 1.0f;
}

static float mean_magnitude(const float *x, size_t n) {
    double sum = 0.0;

    for (size_t i = 0; i < n; i++)
        sum += fabs((double)x[i]);
    return (float)(sum / (double)n);
}

/* rne(x / scale), clipped: one half rounds to 0. */
static uint8_t ternary_code(float x, float scale) {
    return fabsf(x) <= 0.5f * scale ? 1 : x > 0.0f ? 2 : 0;
}

static bool quantize_i2_s(const float *x, size_t rows, size_t cols, uint8_t *out) {
    const size_t n = rows * cols;
    const float exact = only_magnitude(x, n);
    const float scale = exact != 0.0f ? exact : mean_magnitude(x, n);

    memset(out, 0, n / 4 + TERN_I2S_TRAILER_BYTES);
    for (size_t e = 0; e < n; e += TERN_I2S_UNIT) {
        uint8_t codes[TERN_I2S_UNIT];
        for (size_t i = 0; i < TERN_I2S_UNIT; i++)
            codes[i] = ternary_code(x[e + i], scale);
        tern_ternary_write(TERN_FORMAT_I2_S, codes, e, TERN_I2S_UNIT, out);
    }
    memcpy(out + n / 4, &scale, sizeof scale);
    return exact != 0.0f;
}

/* Blocks of 256: the largest magnitude is the scale, halves and more become +1 or -1. */
static void encode_tq(tern_format format, const float *x, uint8_t *out) {
    uint8_t codes[TERN_TQ_BLOCK];
    const float d = largest_magnitude(x, TERN_TQ_BLOCK);
    const float id = inverse(d);

    for (size_t j = 0; j < TERN_TQ_BLOCK; j++)
        codes[j] = (uint8_t)((int)roundf(x[j] * id) + 1);
    tern_ternary_write(format, codes, 0, TERN_TQ_BLOCK, out);
    tern_f16_store(out + tern_ternary_scale_at(format, 0), d);
}

static void encode_tq1_0(const float *x, uint8_t *out) {
    encode_tq(TERN_FORMAT_TQ1_0, x, out);
}

static void encode_tq2_0(const float *x, uint8_t *out) {
    encode_tq(TERN_FORMAT_TQ2_0, x, out);
}

/* ---- blocks of 64 or 128 with one scale -------------------------------------------------------
 */

/* The mean magnitude is the scale, summed in the order of the columns; 0 becomes + scale. */
static void encode_q1_0(const float *x, uint8_t *out) {
    float sum = 0.0f;

    memset(out, 0, 18);
    for (size_t j = 0; j < 128; j++) {
        sum += fabsf(x[j]);
        out[2 + j / 8] = (uint8_t)(out[2 + j / 8] | (x[j] >= 0.0f ? 1 : 0) << j % 8);
    }
    tern_f16_store(out, sum / 128.0f);
}

/* Like TQ2_0, in blocks of n: codes 0 .. 2. */
static float codes_of_group(const float *x, size_t n, uint8_t *codes) {
    const float d = largest_magnitude(x, n);
    const float id = inverse(d);

    for (size_t j = 0; j < n; j++)
        codes[j] = (uint8_t)((int)roundf(x[j] * id) + 1);
    return d;
}

static void encode_fours(const float *x, size_t n, uint8_t *out) {
    uint8_t codes[128];

    tern_f16_store(out, codes_of_group(x, n, codes));
    for (size_t j = 0; j < n; j += 4)
        out[2 + j / 4] =
            (uint8_t)(codes[j] | codes[j + 1] << 2 | codes[j + 2] << 4 | codes[j + 3] << 6);
}

static void encode_q2_0(const float *x, uint8_t *out) {
    encode_fours(x, 64, out);
}

static void encode_pq2_0(const float *x, uint8_t *out) {
    encode_fours(x, 128, out);
}

static void encode_ptq1_0(const float *x, uint8_t *out) {
    uint8_t codes[128];

    memset(out, 0, TERN_PTQ1_0_D);
    tern_f16_store(out + TERN_PTQ1_0_D, codes_of_group(x, 128, codes));
    for (size_t j = 0; j < 128; j++)
        tern_ptq1_0_add(out, j, codes[j]);
    tern_ptq1_0_round(out);
}

/* ---- quads, of which one weight is 0 -----------------------------------------------------------
 */

enum { QUAD_STEP = 16 }; /* columns from a weight of a quad to the next */

/* The lane of least magnitude, the first of equals: the best to be 0, whatever the scale is. */
static size_t least_of_quad(const float *x) {
    size_t least = 0;

    for (size_t lane = 1; lane < 4; lane++)
        if (fabsf(x[QUAD_STEP * lane]) < fabsf(x[QUAD_STEP * least]))
            least = lane;
    return least;
}

/* The pattern of kernels/quads.h; the sum of the magnitudes that are kept grows by its three. */
static unsigned pattern_of_quad(const float *x, double *sum) {
    const size_t zero = least_of_quad(x);
    const bool negative = x[zero == 0 ? QUAD_STEP : 0] < 0.0f;
    unsigned slot = (unsigned)zero << 2, differs = 0; /* bit n: the n-th that is kept */

    for (size_t lane = 0, n = 0; lane < 4; lane++) {
        if (lane == zero)
            continue;
        *sum += fabs((double)x[QUAD_STEP * lane]);
        differs |= (unsigned)((x[QUAD_STEP * lane] < 0.0f) != negative) << n++;
    }
    slot |= differs >> 1;
    return slot | (unsigned)negative << 4;
}

/* The mean of the magnitudes that are kept is the scale of least squares. */
static void encode_stq1_0(const float *x, uint8_t *out) {
    double sum = 0.0;

    memset(out, 0, TERN_STQ1_0_D);
    for (size_t q = 0; q < 64; q++) {
        const unsigned pattern = pattern_of_quad(x + q / 16 * 64 + q % 16, &sum);
        uint8_t *slots = out + q / 2, *signs = out + TERN_STQ1_0_SIGNS + q / 8;
        *slots = (uint8_t)(*slots | (pattern & 15u) << 4 * (q % 2));
        *signs = (uint8_t)(*signs | pattern >> 4 << q % 8);
    }
    tern_f16_store(out + TERN_STQ1_0_D, (float)(sum / 192.0));
}

/* ---- entry --------------------------------------------------------------------------------- */

static const quantizer quantizers[TERN_FORMAT_COUNT] = {
#include "gen/quantizers.inc"
};

static const tern_plain *plain_of(tern_format format) {
    return &tern_format_facts_of(format)->plain;
}

/* Plain blocks whose codes have a bias or levels: a search can choose their scale by importance. */
static bool weighs_plain(tern_format format) {
    return !plain_of(format)->power &&
           (plain_of(format)->bias > 0 || plain_of(format)->levels != NULL);
}

static tern_status check_finite(const float *x, size_t rows, size_t cols, tern_error *err) {
    for (size_t i = 0; i < rows * cols; i++)
        if (!isfinite(x[i]))
            return tern_fail(err, TERN_ERR_TENSOR_DATA, "weight at row %zu, column %zu is %g",
                             i / cols, i % cols, (double)x[i]);
    return TERN_OK;
}

static bool by_blocks(tern_format format) {
    return quantizers[format].block != NULL || quantizers[format].weighed != NULL ||
           plain_of(format)->bits > 0;
}

static void encode_block(tern_format format, const float *x, uint8_t *out) {
    const quantizer *q = &quantizers[format];

    if (plain_of(format)->bits > 0)
        encode_plain(plain_of(format), x, out);
    else if (q->block != NULL)
        q->block(x, out);
    else
        q->weighed(x, NULL, out);
}

static void weigh_block(tern_format format, const float *x, const float *w, uint8_t *out) {
    if (plain_of(format)->levels != NULL)
        encode_levels(plain_of(format), x, w, out);
    else if (weighs_plain(format))
        weigh_biased(plain_of(format), x, w, out);
    else
        quantizers[format].weighed(x, w, out);
}

/* Encodes n elements, whole blocks of at most CHUNK. Returns how many came back finite. */
static size_t encode_chunk(tern_format format, const float *x, size_t n, uint8_t *out, bool *same) {
    const tern_format_info *info = tern_format_describe(format);
    float back[CHUNK];

    for (size_t i = 0; i < n; i += info->block_elements)
        encode_block(format, x + i, out + i / info->block_elements * info->block_bytes);
    tern_dequantize_row(format, out, n, 0, 1.0f, back);
    for (size_t i = 0; i < n; i++) {
        if (!isfinite(back[i]))
            return i;
        *same = *same && back[i] == x[i];
    }
    return n;
}

static tern_status encode_blocks(tern_format format, const float *x, size_t rows, size_t cols,
                                 uint8_t *out, bool *same, tern_error *err) {
    const tern_format_info *info = tern_format_describe(format);

    for (size_t first = 0; first < rows * cols; first += CHUNK) {
        const size_t left = rows * cols - first;
        const size_t n = left < CHUNK ? left : CHUNK;
        uint8_t *to = out + first / info->block_elements * info->block_bytes;
        const size_t done = encode_chunk(format, x + first, n, to, same);
        if (done < n)
            return tern_fail(err, TERN_ERR_TENSOR_DATA,
                             "weights at row %zu, column %zu are too large for %s",
                             (first + done) / cols, (first + done) % cols, info->name);
    }
    return TERN_OK;
}

tern_status tern_quantize_weights(tern_format format, const float *x, size_t rows, size_t cols,
                                  void *file, bool *lossless, tern_error *err) {
    const tern_format_info *info = tern_format_describe(format);
    uint64_t bytes;
    bool same = true;

    if (x == NULL || file == NULL)
        return tern_fail(err, TERN_ERR_NULL, "no weights, or no place for them");
    if (info == NULL)
        return tern_fail(err, TERN_ERR_ARG, "format %d is unknown", (int)format);
    if (!by_blocks(format) && quantizers[format].matrix == NULL)
        return tern_fail(err, TERN_ERR_TENSOR_TYPE, "floats cannot be quantized to %s", info->name);
    if (tern_format_bytes(format, rows, cols, &bytes) != TERN_OK)
        return tern_fail(err, TERN_ERR_TENSOR_SHAPE, "a matrix of %zu x %zu cannot be %s", rows,
                         cols, info->name);
    tern_status status = check_finite(x, rows, cols, err);
    if (status == TERN_OK && by_blocks(format))
        status = encode_blocks(format, x, rows, cols, file, &same, err);
    else if (status == TERN_OK)
        same = quantizers[format].matrix(x, rows, cols, file);
    if (status == TERN_OK && lossless != NULL)
        *lossless = same;
    return status;
}

/* ---- by importance -------------------------------------------------------------------------- */

bool tern_format_weighs(tern_format format) {
    return tern_grid_of(format) != NULL || weighs_plain(format) ||
           quantizers[format].weighed != NULL;
}

bool tern_quantize_important(tern_format format, const tern_grid_search *search, const float *x,
                             const float *w, size_t cols, uint8_t *row) {
    const tern_format_info *info = tern_format_describe(format);
    float back[CHUNK];

    for (size_t i = 0; i < cols; i += info->block_elements, row += info->block_bytes) {
        if (tern_grid_of(format) == NULL)
            weigh_block(format, x + i, w + i, row);
        else if (!tern_encode_grid(search, x + i, w + i, row))
            return false;
        tern_dequantize_row(format, row, info->block_elements, 0, 1.0f, back);
        for (size_t j = 0; j < info->block_elements; j++)
            if (!isfinite(back[j]))
                return false;
    }
    return true;
}

tern_status tern_quantize_int8(const float *x, size_t rows, size_t cols, bool by_row, int8_t *codes,
                               float *scales, tern_error *err) {
    uint64_t bytes;

    if (x == NULL || codes == NULL || scales == NULL)
        return tern_fail(err, TERN_ERR_NULL, "no weights, or no place for their codes and scales");
    if (tern_format_bytes(TERN_FORMAT_INT8, rows, cols, &bytes) != TERN_OK)
        return tern_fail(err, TERN_ERR_TENSOR_SHAPE, "a matrix of %zu x %zu cannot be int8", rows,
                         cols);
    const tern_status status = check_finite(x, rows, cols, err);
    if (status != TERN_OK)
        return status;
    if (!by_row)
        scales[0] = encode_int8(x, rows * cols, codes);
    for (size_t row = 0; by_row && row < rows; row++)
        scales[row] = encode_int8(x + row * cols, cols, codes + row * cols);
    return TERN_OK;
}
