/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ternary files to layouts T2R16, T5R16 and T5BR16 and back. A strip of four rows is decoded to
 * codes, a byte each, and the codes go four columns at a time to the rows' place in each chunk.
 * pack_planes.c is a shorter way for what most models have.
 */

#include <string.h>

#include "kernels/half.h"
#include "kernels/pack_bits.h"
#include "kernels/ternary.h"
#include "kernels/trits.h"

enum { ROWS = 4 /* that are packed at a time */ };

/* How a strip looks in a packed group. */
typedef struct strip_shape {
    size_t chunk_cols;
    size_t run_chunks; /* that join_run fills */
    /* Codes of a run of chunks, of rows TERN_TERNARY_COLS apart, to the rows' places in them. */
    void (*join_run)(const uint8_t *codes, uint8_t *chunks);
    /* Codes of a chunk to the four bytes of a row, and back. */
    uint32_t (*join)(const uint8_t *codes);
    void (*split)(uint32_t bytes, uint8_t *codes);
} strip_shape;

/* ---- T2R16: four codes a byte, 16 columns a chunk -------------------------------------------- */

static uint32_t join_2bit(const uint8_t *codes) {
    return tern_load32(codes) | tern_load32(codes + 4) << 2 | tern_load32(codes + 8) << 4 |
           tern_load32(codes + 12) << 6;
}

static void split_2bit(uint32_t bytes, uint8_t *codes) {
    for (int p = 0; p < 4; p++)
        tern_store32(codes + 4 * p, bytes >> 2 * p & 0x03030303u);
}

static void join_2bit_run(const uint8_t *codes, uint8_t *chunk) {
    const tern_square s = tern_load_square(codes, TERN_TERNARY_COLS);
    tern_store_words(chunk, s.c0 | s.c1 << 2 | s.c2 << 4 | s.c3 << 6);
}

static const strip_shape t2r16 = {16, 1, join_2bit_run, join_2bit, split_2bit};

/* ---- base 3: five codes a byte, 20 columns a chunk ------------------------------------------- */

/* Numbers v = 81 t0 + 27 t1 + 9 t2 + 3 t3 + t4 <= 242 to the bytes that mean them. */
typedef tern_words (*close_fn)(tern_words v);

/*
 * T5R16: v becomes ceil(256 v / 243), its place on a circle of
 * 256, less 128, so that v = 121 (five zeros) is at 0. In 16 bits: x = 65536 v / 243 = 269 v +
 * 0.69547 v is at most 1.04 more than 269 v + floor(178 v / 256), and where 256 does not divide x,
 * it is 256/243 = 1.053 or more above its last multiple: both have the same ceil(x / 256).
 */
static tern_words close_fraction(tern_words v) {
    const tern_halves low = (tern_halves)(v & UINT32_C(0x00ff00ff));
    const tern_halves high = (tern_halves)(v >> 8 & UINT32_C(0x00ff00ff));
    const tern_halves from_low = (low * 269 + (low * 178 >> 8) + 255) >> 8;
    const tern_halves from_high = (high * 269 + (high * 178 >> 8) + 255) & 0xff00;
    return (tern_words)(from_low | from_high) ^ UINT32_C(0x80808080);
}

/* T5BR16: by a table, the inverse of those in kernels/trits.h. */
static tern_words close_by_table(tern_words v) {
    static const uint8_t table[TERN_TRITS_STATES] = {
        21,  146, 223, 135, 199, 115, 200, 136, 91,  71,  155, 95,  219, 31,  82,  179, 210, 27,
        149, 213, 72,  85,  51,  7,   8,   243, 18,  129, 22,  104, 40,  113, 236, 230, 44,  143,
        232, 65,  207, 1,   15,  166, 177, 102, 193, 214, 168, 108, 49,  86,  79,  172, 38,  241,
        186, 221, 23,  33,  250, 239, 228, 47,  89,  157, 153, 93,  217, 164, 29,  161, 100, 25,
        151, 215, 111, 87,  58,  225, 36,  97,  175, 147, 118, 105, 196, 132, 41,  140, 229, 255,
        233, 68,  204, 165, 12,  83,  101, 211, 127, 246, 169, 191, 4,   54,  76,  37,  19,  182,
        145, 184, 106, 248, 42,  34,  138, 142, 254, 64,  234, 206, 14,  0,   120, 192, 162, 126,
        170, 190, 74,  56,  226, 78,  17,  10,  98,  119, 130, 144, 133, 197, 134, 203, 139, 252,
        69,  70,  66,  80,  60,  2,   208, 194, 124, 188, 247, 75,  5,   6,   55,  183, 16,  11,
        131, 116, 107, 112, 237, 43,  141, 231, 45,  235, 205, 67,  167, 3,   13,  103, 195, 176,
        244, 171, 109, 52,  48,  77,  173, 180, 39,  20,  187, 220, 251, 32,  114, 201, 137, 88,
        156, 152, 92,  216, 28,  123, 24,  178, 160, 212, 148, 73,  224, 84,  50,  96,  242, 9,
        117, 185, 222, 249, 35,  238, 46,  253, 90,  154, 158, 94,  30,  218, 61,  163, 26,  125,
        189, 245, 110, 53,  227, 57,  181, 174, 99};
    uint8_t bytes[sizeof v];

    memcpy(bytes, &v, sizeof v);
    for (size_t i = 0; i < sizeof v; i++)
        bytes[i] = table[bytes[i]];
    memcpy(&v, bytes, sizeof v);
    return v;
}

static inline __attribute__((always_inline)) tern_words join_five(close_fn close, tern_words t0,
                                                                  tern_words t1, tern_words t2,
                                                                  tern_words t3, tern_words t4) {
    return close(3 * (3 * (3 * (3 * t0 + t1) + t2) + t3) + t4);
}

/* Four chunks are five squares: the fifth word of a chunk is the first one of the next square. */
static inline __attribute__((always_inline)) void join_chunks(close_fn close, const uint8_t *codes,
                                                              uint8_t *chunks) {
    const tern_square a = tern_load_square(codes, TERN_TERNARY_COLS);
    const tern_square b = tern_load_square(codes + 16, TERN_TERNARY_COLS);
    tern_store_words(chunks, join_five(close, a.c0, a.c1, a.c2, a.c3, b.c0));
    const tern_square c = tern_load_square(codes + 32, TERN_TERNARY_COLS);
    tern_store_words(chunks + TERN_CHUNK_BYTES, join_five(close, b.c1, b.c2, b.c3, c.c0, c.c1));
    const tern_square d = tern_load_square(codes + 48, TERN_TERNARY_COLS);
    tern_store_words(chunks + 2 * TERN_CHUNK_BYTES, join_five(close, c.c2, c.c3, d.c0, d.c1, d.c2));
    const tern_square e = tern_load_square(codes + 64, TERN_TERNARY_COLS);
    tern_store_words(chunks + 3 * TERN_CHUNK_BYTES, join_five(close, d.c3, e.c0, e.c1, e.c2, e.c3));
}

static inline __attribute__((always_inline)) uint32_t join_bytes(close_fn close,
                                                                 const uint8_t *codes) {
    tern_words v = {0};

    for (size_t n = 0; n < TERN_TRITS; n++)
        v[0] = 3 * v[0] + tern_load32(codes + 4 * n);
    return close(v)[0];
}

static void join_fractions_run(const uint8_t *codes, uint8_t *chunks) {
    join_chunks(close_fraction, codes, chunks);
}

static uint32_t join_fractions(const uint8_t *codes) {
    return join_bytes(close_fraction, codes);
}

static void split_fractions(uint32_t bytes, uint8_t *codes) {
    for (int j = 0; j < 4; j++) {
        unsigned fraction = (bytes >> 8 * j & 255) ^ 128u;
        for (int n = 0; n < TERN_TRITS; n++) {
            codes[4 * n + j] = (uint8_t)(3 * fraction >> 8);
            fraction = 3 * fraction & 255;
        }
    }
}

static void join_digits_run(const uint8_t *codes, uint8_t *chunks) {
    join_chunks(close_by_table, codes, chunks);
}

static uint32_t join_digits(const uint8_t *codes) {
    return join_bytes(close_by_table, codes);
}

static void split_digits(uint32_t bytes, uint8_t *codes) {
    for (int j = 0; j < 4; j++)
        for (int n = 0; n < TERN_TRITS; n++)
            codes[4 * n + j] = (uint8_t)tern_trits_digit(bytes >> 8 * j & 255, n);
}

static const strip_shape t5r16 = {20, 4, join_fractions_run, join_fractions, split_fractions};
static const strip_shape t5br16 = {20, 4, join_digits_run, join_digits, split_digits};

/* ---- all ----------------------------------------------------------------------------------- */

/* Columns of the strip at column k, and the same with the chunk's padding. */
static size_t strip_cols(size_t cols, size_t k) {
    return cols - k < TERN_TERNARY_COLS ? cols - k : TERN_TERNARY_COLS;
}

static size_t padded_cols(const strip_shape *shape, size_t cols) {
    return (cols + shape->chunk_cols - 1) / shape->chunk_cols * shape->chunk_cols;
}

/* Writes `cols` codes (whole chunks) of rows r .. r+3 of a group whose strip begins at `out`. */
static inline __attribute__((always_inline)) void
join_strip(const strip_shape *shape, const uint8_t *codes, size_t cols, size_t r, uint8_t *out) {
    const size_t run_cols = shape->run_chunks * shape->chunk_cols;
    size_t k = 0;

    for (out += 4 * r; k + run_cols <= cols; k += run_cols) {
        shape->join_run(codes + k, out);
        out += shape->run_chunks * TERN_CHUNK_BYTES;
    }
    for (; k < cols; k += shape->chunk_cols, out += TERN_CHUNK_BYTES)
        for (size_t i = 0; i < ROWS; i++)
            tern_store32(out + 4 * i, shape->join(codes + i * TERN_TERNARY_COLS + k));
}

/* Codes of columns [k, k + cols) of up to four rows; 1, which is weight 0, where there is nothing.
 * False when one is 3. */
static bool read_strip(const tern_pack_job *job, size_t row, size_t n, size_t k, size_t cols,
                       uint8_t *codes) {
    bool good = true;

    if (n < ROWS || cols < TERN_TERNARY_COLS)
        memset(codes, 1, (size_t)ROWS * TERN_TERNARY_COLS);
    for (size_t i = 0; i < n && i < ROWS; i++, codes += TERN_TERNARY_COLS) {
        tern_ternary_read(job->format, job->file, (row + i) * job->cols + k, cols, codes);
        good = good && !tern_ternary_invalid(codes, cols);
    }
    return good;
}

static inline __attribute__((always_inline)) tern_status pack_group(const tern_pack_job *job,
                                                                    const strip_shape *shape,
                                                                    size_t row0, uint8_t *out,
                                                                    tern_error *err) {
    const size_t n = tern_pack_group_rows(job, row0);
    uint8_t codes[ROWS * TERN_TERNARY_COLS];

    for (size_t k = 0; k < job->cols; k += TERN_TERNARY_COLS) {
        const size_t cols = strip_cols(job->cols, k);
        const size_t padded = padded_cols(shape, cols);
        for (size_t r = 0; r < TERN_ROW_GROUP; r += ROWS) {
            if (!read_strip(job, row0 + r, r < n ? n - r : 0, k, cols, codes))
                return tern_ternary_fail(job->format, job->file, job->cols, row0, err);
            join_strip(shape, codes, padded, r, out);
        }
        out += padded / shape->chunk_cols * TERN_CHUNK_BYTES;
    }
    return TERN_OK;
}

static void unpack_row(const tern_pack_job *job, const strip_shape *shape, const uint8_t *group,
                       size_t row, uint8_t *file) {
    uint8_t codes[TERN_TERNARY_COLS];
    const uint8_t *bytes = group + 4 * (row % TERN_ROW_GROUP);

    for (size_t k = 0; k < job->cols; k += TERN_TERNARY_COLS) {
        const size_t cols = strip_cols(job->cols, k);
        for (size_t at = 0; at < cols; at += shape->chunk_cols, bytes += TERN_CHUNK_BYTES)
            shape->split(tern_load32(bytes), codes + at);
        tern_ternary_write(job->format, codes, row * job->cols + k, cols, file);
    }
}

static void unpack_matrix(const tern_pack_job *job, const strip_shape *shape, const uint8_t *packed,
                          uint8_t *file) {
    if (job->format == TERN_FORMAT_I2_S)
        memset(file, 0, job->rows * job->cols / 4);
    for (size_t row = 0; row < job->rows; row++) {
        unpack_row(job, shape, packed + row / TERN_ROW_GROUP * job->group_bytes, row, file);
        tern_unpack_scales(job, row, file);
    }
}

static size_t group_bytes(const strip_shape *shape, size_t cols) {
    const size_t chunks = cols / shape->chunk_cols + (cols % shape->chunk_cols != 0);
    size_t bytes;

    return __builtin_mul_overflow(chunks, (size_t)TERN_CHUNK_BYTES, &bytes) ? 0 : bytes;
}

static size_t group_bytes_t2r16(size_t cols) {
    return group_bytes(&t2r16, cols);
}

static size_t group_bytes_base3(size_t cols) {
    return group_bytes(&t5r16, cols); /* T5BR16 has the same chunks */
}

static tern_status pack_t2r16(const tern_pack_job *job, size_t row0, uint8_t *group,
                              tern_error *err) {
    if (job->format == TERN_FORMAT_TQ1_0 || job->cols % TERN_I2S_UNIT != 0 ||
        tern_pack_group_rows(job, row0) < TERN_ROW_GROUP)
        return pack_group(job, &t2r16, row0, group, err);
    return tern_pack_planes(job, row0, group)
               ? TERN_OK
               : tern_ternary_fail(job->format, job->file, job->cols, row0, err);
}

static tern_status pack_t5r16(const tern_pack_job *job, size_t row0, uint8_t *group,
                              tern_error *err) {
    return pack_group(job, &t5r16, row0, group, err);
}

static tern_status pack_t5br16(const tern_pack_job *job, size_t row0, uint8_t *group,
                               tern_error *err) {
    return pack_group(job, &t5br16, row0, group, err);
}

static void unpack_t2r16(const tern_pack_job *job, const uint8_t *packed, uint8_t *file) {
    unpack_matrix(job, &t2r16, packed, file);
}

static void unpack_t5r16(const tern_pack_job *job, const uint8_t *packed, uint8_t *file) {
    unpack_matrix(job, &t5r16, packed, file);
}

static void unpack_t5br16(const tern_pack_job *job, const uint8_t *packed, uint8_t *file) {
    unpack_matrix(job, &t5br16, packed, file);
}

const tern_packer tern_packer_t2r16 = {TERN_LAYOUT_T2R16, tern_format_is_ternary, group_bytes_t2r16,
                                       pack_t2r16, unpack_t2r16};
const tern_packer tern_packer_t5r16 = {TERN_LAYOUT_T5R16, tern_format_is_ternary, group_bytes_base3,
                                       pack_t5r16, unpack_t5r16};
const tern_packer tern_packer_t5br16 = {TERN_LAYOUT_T5BR16, tern_format_is_ternary,
                                        group_bytes_base3, pack_t5br16, unpack_t5br16};
