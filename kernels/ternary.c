/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ternary files to codes and back. Packing runs over every weight when a model is loaded, so whole
 * units and blocks are decoded eight or sixteen codes at a time.
 */

#include "kernels/ternary.h"

#include <math.h>
#include <string.h>

#include "kernels/half.h"
#include "kernels/pack_bits.h"

/* Bytes of a TQ block: codes, then the scale. */
enum { TQ1_BYTES = 54, TQ1_SCALE = 52, TQ2_BYTES = 66, TQ2_SCALE = 64 };

static uint64_t load64(const uint8_t *p) {
    uint64_t word;
    memcpy(&word, p, sizeof word);
    return word;
}

static void store64(uint8_t *p, uint64_t word) {
    memcpy(p, &word, sizeof word);
}

/* ---- two bits a code ----------------------------------------------------------------------- */

/* 32 bytes hold 128 elements, 32 apart, with the first 32 in the top bits (I2_S). */
static const unsigned i2s_shift[4] = {6, 4, 2, 0};
/* ... or in the bottom bits (TQ2_0). */
static const unsigned tq2_shift[4] = {0, 2, 4, 6};

/* Plane l (elements 32l ..) lies at bit shift[l]. */
static void read_planes(const uint8_t *src, const unsigned shift[4], uint8_t *codes) {
    const tern_words a = tern_load_words(src), b = tern_load_words(src + 16);

    for (size_t l = 0; l < 4; l++, codes += 32) {
        tern_store_words(codes, a >> shift[l] & UINT32_C(0x03030303));
        tern_store_words(codes + 16, b >> shift[l] & UINT32_C(0x03030303));
    }
}

static void write_planes(const uint8_t *codes, const unsigned shift[4], uint8_t *dst) {
    for (size_t i = 0; i < 32; i += 8) {
        uint64_t word = 0;
        for (size_t l = 0; l < 4; l++)
            word |= load64(codes + 32 * l + i) << shift[l];
        store64(dst + i, word);
    }
}

/* ---- five codes a byte --------------------------------------------------------------------- */

/*
 * A byte x stands for the fraction x/256 = 0.t0 t1 t2 t3 t4 in base 3, rounded up: the carry of 3x
 * out of 8 bits is the first trit, and what stays is the fraction of the others. Bytes at even
 * places and at odd ones are tripled apart, in 16 bits: at most 3 * 255.
 */
static uint64_t first_trits(uint64_t *bytes) {
    const uint64_t low = UINT64_C(0x00ff00ff00ff00ff);
    const uint64_t even = (*bytes & low) * 3;
    const uint64_t odd = (*bytes >> 8 & low) * 3;

    *bytes = (even & low) | (odd & low) << 8;
    return (even >> 8 & UINT64_C(0x0003000300030003)) | (odd & UINT64_C(0x0300030003000300));
}

/* `n` bytes (a multiple of 8) of five codes each; codes of trit t go to codes[t * n ..]. */
static void read_trits(const uint8_t *src, size_t n, uint8_t *codes) {
    for (size_t i = 0; i < n; i += 8) {
        uint64_t word = load64(src + i);
        for (size_t t = 0; t < 5; t++)
            store64(codes + t * n + i, first_trits(&word));
    }
}

/* The byte whose trits are the `count` codes at steps of `stride`, then zeros: ceil(256 v / 243).
 */
static uint8_t trits_byte(const uint8_t *codes, size_t stride, size_t count) {
    unsigned v = 0;

    for (size_t t = 0; t < 5; t++)
        v = 3 * v + (t < count ? codes[t * stride] : 0u);
    return (uint8_t)((256 * v + 242) / 243);
}

/* Bytes 0..31: elements m + 32t; bytes 32..47: 160 + m + 16t; bytes 48..51: 240 + m + 4t, t < 4. */
static void read_tq1(const uint8_t *block, uint8_t *codes) {
    uint8_t rest[8] = {0};
    uint64_t word;

    read_trits(block, 32, codes);
    read_trits(block + 32, 16, codes + 160);
    memcpy(rest, block + 48, 4);
    word = load64(rest);
    for (size_t t = 0; t < 4; t++) {
        store64(rest, first_trits(&word));
        memcpy(codes + 240 + 4 * t, rest, 4);
    }
}

static void write_tq1(const uint8_t *codes, uint8_t *block) {
    for (size_t m = 0; m < 32; m++)
        block[m] = trits_byte(codes + m, 32, 5);
    for (size_t m = 0; m < 16; m++)
        block[32 + m] = trits_byte(codes + 160 + m, 16, 5);
    for (size_t m = 0; m < 4; m++)
        block[48 + m] = trits_byte(codes + 240 + m, 4, 4);
}

/* ---- runs of elements ---------------------------------------------------------------------- */

static size_t unit_of(tern_format format) {
    return format == TERN_FORMAT_I2_S ? TERN_I2S_UNIT : TERN_TQ_BLOCK;
}

static void read_unit(tern_format format, const uint8_t *file, size_t unit, uint8_t *codes) {
    if (format == TERN_FORMAT_I2_S) {
        read_planes(file + unit * TERN_I2S_UNIT_BYTES, i2s_shift, codes);
    } else if (format == TERN_FORMAT_TQ2_0) {
        read_planes(file + unit * TQ2_BYTES, tq2_shift, codes);
        read_planes(file + unit * TQ2_BYTES + 32, tq2_shift, codes + 128);
    } else {
        read_tq1(file + unit * TQ1_BYTES, codes);
    }
}

void tern_ternary_read(tern_format format, const uint8_t *file, size_t first, size_t n,
                       uint8_t *codes) {
    const size_t unit = unit_of(format);

    while (n > 0) {
        uint8_t all[TERN_TQ_BLOCK];
        const size_t skip = first % unit;
        const size_t take = n < unit - skip ? n : unit - skip;
        if (take == unit) {
            read_unit(format, file, first / unit, codes);
        } else { /* a part of a unit, at the ends of a run */
            read_unit(format, file, first / unit, all);
            memcpy(codes, all + skip, take);
        }
        first += take;
        codes += take;
        n -= take;
    }
}

/* An I2_S unit may hold the ends of two rows: the new codes are added to what is there. */
static void add_i2s(const uint8_t *codes, size_t first, size_t n, uint8_t *file) {
    for (size_t i = 0; i < n; i++) {
        const size_t e = first + i;
        uint8_t *byte = file + e / TERN_I2S_UNIT * TERN_I2S_UNIT_BYTES + e % TERN_I2S_UNIT_BYTES;
        *byte = (uint8_t)(*byte | codes[i] << i2s_shift[e % TERN_I2S_UNIT / TERN_I2S_UNIT_BYTES]);
    }
}

static void write_i2s(const uint8_t *codes, size_t first, size_t n, uint8_t *file) {
    const size_t before = (TERN_I2S_UNIT - first % TERN_I2S_UNIT) % TERN_I2S_UNIT;
    size_t i = before < n ? before : n;

    add_i2s(codes, first, i, file);
    for (; i + TERN_I2S_UNIT <= n; i += TERN_I2S_UNIT)
        write_planes(codes + i, i2s_shift,
                     file + (first + i) / TERN_I2S_UNIT * TERN_I2S_UNIT_BYTES);
    add_i2s(codes + i, first + i, n - i, file);
}

void tern_ternary_write(tern_format format, const uint8_t *codes, size_t first, size_t n,
                        uint8_t *file) {
    if (format == TERN_FORMAT_I2_S) {
        write_i2s(codes, first, n, file);
        return;
    }
    for (size_t i = 0; i < n; i += TERN_TQ_BLOCK) {
        const size_t block = (first + i) / TERN_TQ_BLOCK;
        if (format == TERN_FORMAT_TQ1_0) {
            write_tq1(codes + i, file + block * TQ1_BYTES);
        } else {
            write_planes(codes + i, tq2_shift, file + block * TQ2_BYTES);
            write_planes(codes + i + 128, tq2_shift, file + block * TQ2_BYTES + 32);
        }
    }
}

/* ---- facts --------------------------------------------------------------------------------- */

size_t tern_ternary_scale_at(tern_format format, size_t element) {
    const size_t block = element / TERN_TQ_BLOCK;
    return format == TERN_FORMAT_TQ1_0 ? block * TQ1_BYTES + TQ1_SCALE
                                       : block * TQ2_BYTES + TQ2_SCALE;
}

bool tern_ternary_invalid(const uint8_t *codes, size_t n) {
    tern_words bad = {0};
    size_t i = 0;

    for (; i + 16 <= n; i += 16) {
        const tern_words words = tern_load_words(codes + i);
        bad |= words & words >> 1;
    }
    for (; i < n; i++)
        bad[0] |= codes[i] & codes[i] >> 1;
    return ((bad[0] | bad[1] | bad[2] | bad[3]) & UINT32_C(0x01010101)) != 0;
}

tern_status tern_ternary_tensor_scale(const uint8_t *file, size_t at, float *scale,
                                      tern_error *err) {
    memcpy(scale, file + at, sizeof *scale);
    if (!isfinite(*scale) || *scale < 0.0f)
        return tern_fail(err, TERN_ERR_TENSOR_DATA, "scale %g at byte %zu", (double)*scale, at);
    return TERN_OK;
}

tern_status tern_ternary_fail(tern_format format, const uint8_t *file, size_t cols, size_t row0,
                              tern_error *err) {
    size_t element = row0 * cols;
    uint8_t code;

    for (tern_ternary_read(format, file, element, 1, &code); code != 3;)
        tern_ternary_read(format, file, ++element, 1, &code);
    return tern_fail(err, TERN_ERR_TENSOR_DATA, "invalid ternary code 3 at row %zu, column %zu",
                     element / cols, element % cols);
}

/* ---- one scale a row ----------------------------------------------------------------------- */

static uint16_t scale_bits(tern_format format, const uint8_t *file, size_t element) {
    uint16_t bits;
    memcpy(&bits, file + tern_ternary_scale_at(format, element), sizeof bits);
    return bits;
}

static bool block_is_zero(tern_format format, const uint8_t *file, size_t element) {
    uint8_t codes[TERN_TQ_BLOCK];

    tern_ternary_read(format, file, element, TERN_TQ_BLOCK, codes);
    for (size_t i = 0; i < TERN_TQ_BLOCK; i++)
        if (codes[i] != 1)
            return false;
    return true;
}

typedef enum row_scales { ROW_ZERO, ROW_UNIFORM, ROW_MIXED } row_scales;

/* The scale that all blocks of a row share; blocks of zero weights share any. */
static row_scales scale_of_row(tern_format format, const uint8_t *file, size_t first, size_t cols,
                               uint16_t *scale) {
    row_scales found = ROW_ZERO;

    for (size_t k = 0; k < cols; k += TERN_TQ_BLOCK) {
        const uint16_t bits = scale_bits(format, file, first + k);
        if ((found == ROW_UNIFORM && bits == *scale) || block_is_zero(format, file, first + k))
            continue;
        if (found == ROW_UNIFORM)
            return ROW_MIXED;
        found = ROW_UNIFORM;
        *scale = bits;
    }
    return found;
}

static void set_scales(float *row_scale, size_t begin, size_t end, float scale) {
    for (size_t r = begin; row_scale != NULL && r < end; r++)
        row_scale[r] = scale;
}

bool tern_ternary_row_scales(tern_format format, const void *file, size_t rows, size_t cols,
                             float *row_scale) {
    float shared = 0.0f; /* of rows of zeros: the scale of the first row that has one */
    bool any = false;

    if (!tern_format_is_ternary(format))
        return false;
    if (format == TERN_FORMAT_I2_S) {
        set_scales(row_scale, 0, rows, tern_format_scale(format, file, rows, cols));
        return true;
    }
    for (size_t r = 0; r < rows; r++) {
        uint16_t bits;
        const row_scales found = scale_of_row(format, file, r * cols, cols, &bits);
        if (found == ROW_MIXED)
            return false;
        if (found == ROW_UNIFORM && !any) {
            any = true;
            shared = tern_f16_to_f32(bits);
            set_scales(row_scale, 0, r, shared);
        }
        set_scales(row_scale, r, r + 1, found == ROW_UNIFORM ? tern_f16_to_f32(bits) : shared);
    }
    return true;
}
