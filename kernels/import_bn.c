/* SPDX-License-Identifier: Apache-2.0 */
/*
 * IQ1_BN, IQ2_BN and IQ2_BN_R4 of ik_llama.cpp: ternary rows, each with a scale before its blocks
 * of 64 columns. docs/formats.md has the pictures.
 */

#include <math.h>
#include <string.h>

#include "kernels/half.h"
#include "kernels/import.h"

enum { BLOCK = 64, RUNS = BLOCK / 16, IQ1_BYTES = 13, IQ2_BYTES = 16 };

/* Bytes of the scale before a row. */
static size_t scale_bytes(tern_bn_kind kind) {
    return kind == TERN_IQ1_BN ? sizeof(uint16_t) : sizeof(float);
}

/* Bytes of a block of one row. */
static size_t block_bytes(tern_bn_kind kind) {
    return kind == TERN_IQ1_BN ? IQ1_BYTES : IQ2_BYTES;
}

size_t tern_bn_row_bytes(tern_bn_kind kind, size_t cols) {
    return scale_bytes(kind) + cols / BLOCK * block_bytes(kind);
}

tern_status tern_bn_check(tern_bn_kind kind, size_t rows, size_t cols, tern_error *err) {
    const bool whole = cols % BLOCK == 0 && (kind != TERN_IQ2_BN_R4 || rows % 4 == 0);
    return whole ? TERN_OK
                 : tern_fail(err, TERN_ERR_TENSOR_SHAPE,
                             "a matrix of %zu x %zu is not rows of 64 columns%s", rows, cols,
                             kind == TERN_IQ2_BN_R4 ? ", four rows at a time" : "");
}

/* The scale of a row. Four rows of IQ2_BN_R4 begin with their four scales. */
static float scale_of(tern_bn_kind kind, const uint8_t *file, size_t cols, size_t row) {
    float scale;

    if (kind == TERN_IQ1_BN)
        return tern_f16_load(file + row * tern_bn_row_bytes(kind, cols));
    file += kind == TERN_IQ2_BN_R4
                ? row / 4 * 4 * tern_bn_row_bytes(kind, cols) + row % 4 * sizeof scale
                : row * tern_bn_row_bytes(kind, cols);
    memcpy(&scale, file, sizeof scale);
    return scale;
}

/* ---- codes ----------------------------------------------------------------------------------- */

/* The n lowest of five digits of a byte, which is the number of the digits times 256/243, rounded
 * up: 3^4 times it, less whole numbers, begins with the lowest digit. */
static void read_digits(uint8_t byte, size_t n, size_t step, uint8_t *codes) {
    static const uint8_t powers[5] = {81, 27, 9, 3, 1};

    for (size_t i = 0; i < n; i++)
        codes[i * step] = (uint8_t)((uint8_t)(byte * powers[i]) * 3u >> 8);
}

/* Three bytes for 15 of 16 columns, and a byte after all for the last of each 16. */
static void read_iq1_bn(const uint8_t *block, uint8_t codes[BLOCK]) {
    for (size_t run = 0; run < RUNS; run++)
        for (size_t i = 0; i < 3; i++)
            read_digits(block[3 * run + i], 5, 1, codes + 16 * run + 5 * i);
    read_digits(block[3 * RUNS], RUNS, 16, codes + 15);
}

/* Byte j has columns j, j + 16, j + 32 and j + 48, the first in its lowest bits. */
static void read_iq2_bn(const uint8_t *block, uint8_t codes[BLOCK]) {
    for (size_t j = 0; j < BLOCK; j++)
        codes[j] = block[j % 16] >> 2 * (j / 16) & 3;
}

/* 64 bytes for four rows: byte 16 run + 4 row + i has columns 16 run + i, + 4, + 8 and + 12. */
static void read_of_four(const uint8_t *four, size_t row, uint8_t codes[BLOCK]) {
    for (size_t j = 0; j < BLOCK; j++)
        codes[j] = four[j / 16 * 16 + 4 * row + j % 4] >> 2 * (j % 16 / 4) & 3;
}

void tern_bn_read_row(tern_bn_kind kind, const uint8_t *file, size_t cols, size_t row,
                      uint8_t *codes) {
    const bool of_four = kind == TERN_IQ2_BN_R4;
    const uint8_t *first = file + (of_four ? row / 4 * 4 : row) * tern_bn_row_bytes(kind, cols);
    const uint8_t *blocks = first + (of_four ? 4 : 1) * scale_bytes(kind);

    if (scale_of(kind, file, cols, row) == 0.0f) { /* whatever the codes say */
        memset(codes, 1, cols);
        return;
    }
    for (size_t b = 0; b < cols / BLOCK; b++, codes += BLOCK) {
        if (kind == TERN_IQ1_BN)
            read_iq1_bn(blocks + b * IQ1_BYTES, codes);
        else if (of_four)
            read_of_four(blocks + b * 4 * IQ2_BYTES, row % 4, codes);
        else
            read_iq2_bn(blocks + b * IQ2_BYTES, codes);
    }
}

/* The inverse of read_digits. */
static uint8_t byte_of_digits(const uint8_t *codes, size_t n, size_t step) {
    unsigned number = 0;

    for (size_t i = n; i-- > 0;)
        number = 3 * number + codes[i * step];
    return (uint8_t)((256 * number + 242) / 243);
}

static void write_block(tern_bn_kind kind, const uint8_t codes[BLOCK], uint8_t *block) {
    if (kind == TERN_IQ1_BN) {
        for (size_t run = 0; run < RUNS; run++)
            for (size_t i = 0; i < 3; i++)
                block[3 * run + i] = byte_of_digits(codes + 16 * run + 5 * i, 5, 1);
        block[3 * RUNS] = byte_of_digits(codes + 15, RUNS, 16);
        return;
    }
    for (size_t j = 0; j < IQ2_BYTES; j++)
        block[j] =
            (uint8_t)(codes[j] | codes[j + 16] << 2 | codes[j + 32] << 4 | codes[j + 48] << 6);
}

/* ---- scales ---------------------------------------------------------------------------------- */

tern_status tern_bn_scales(tern_bn_kind kind, const uint8_t *file, size_t rows, size_t cols,
                           float *scales, tern_error *err) {
    float shared = 0.0f;

    for (size_t r = 0; r < rows; r++) {
        scales[r] = scale_of(kind, file, cols, r);
        if (!isfinite(scales[r]) || scales[r] < 0.0f)
            return tern_fail(err, TERN_ERR_TENSOR_DATA,
                             "row %zu has scale %g, must be finite and not negative", r,
                             (double)scales[r]);
        shared = shared == 0.0f ? scales[r] : shared;
    }
    for (size_t r = 0; r < rows; r++)
        scales[r] = scales[r] == 0.0f ? shared : scales[r];
    return TERN_OK;
}

/* ---- floats ---------------------------------------------------------------------------------- */

bool tern_bn_write_row(tern_bn_kind kind, const float *x, size_t cols, uint8_t *row) {
    float largest = 0.0f;

    for (size_t k = 0; k < cols; k++)
        largest = fmaxf(largest, fabsf(x[k]));
    if (kind == TERN_IQ1_BN)
        tern_f16_store(row, largest);
    else
        memcpy(row, &largest, sizeof largest);
    uint8_t *block = row + scale_bytes(kind);
    for (size_t first = 0; first < cols; first += BLOCK, block += block_bytes(kind)) {
        uint8_t codes[BLOCK];
        for (size_t j = 0; j < BLOCK; j++) {
            const bool zero = fabsf(x[first + j]) < 0.5f * largest || largest == 0.0f;
            codes[j] = zero ? 1 : x[first + j] < 0.0f ? 0 : 2;
        }
        write_block(kind, codes, block);
    }
    return isfinite(scale_of(kind, row, cols, 0));
}

void tern_bn_floats(tern_bn_kind kind, const uint8_t *row, size_t cols, float *x) {
    const float scale = scale_of(kind, row, cols, 0);
    const uint8_t *block = row + scale_bytes(kind);
    uint8_t codes[BLOCK];

    for (size_t first = 0; first < cols; first += BLOCK, block += block_bytes(kind)) {
        (kind == TERN_IQ1_BN ? read_iq1_bn : read_iq2_bn)(block, codes);
        for (size_t j = 0; j < BLOCK; j++)
            x[first + j] = (float)((int)codes[j] - 1) * scale;
    }
}
