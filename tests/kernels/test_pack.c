/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Packing and unpacking: the pictures of docs/formats.md element by element, and every refusal. The
 * worked bytes of that page are in test_pack_worked.c, the pictures of K-quants in
 * test_pack_super.c, and those of Q1_0, Q2_0, PQ2_0, PTQ1_0 and STQ1_0 in test_pack_groups.c.
 */

#include <stdio.h>
#include <string.h>

#include "kernels/facts.h"
#include "kernels/trits.h"
#include "tests/kernels/matmul_case.h"

/* ---- the pictures -------------------------------------------------------------------------- */

/* The bytes that a plain format and its layout have for 32 columns, from kernels/formats.toml. */
typedef struct plain {
    tern_format format;
    tern_layout layout;
    size_t file_bytes, fields, chunks, fifth, power;
} plain;

static const plain plains[] = {
#define TERN_PLAIN(NAME, name, ...) {TERN_FORMAT_##NAME, TERN_LAYOUT_##NAME##R16, __VA_ARGS__},
#include "gen/plain.inc"
#undef TERN_PLAIN
};
enum { PLAINS = sizeof plains / sizeof *plains };

static const plain *plain_layout(tern_layout layout) {
    for (size_t i = 0; i < PLAINS; i++)
        if (plains[i].layout == layout)
            return &plains[i];
    return NULL;
}

static size_t header_bytes(const plain *p) {
    return 32 * p->fields + 16 * p->power;
}

static size_t packed_block_bytes(const plain *p) {
    return header_bytes(p) + 64 * (p->chunks + p->fifth);
}

/* Digit n of the base-3 fraction byte/256. */
static int digit(uint8_t byte, size_t n) {
    static const int power[] = {1, 3, 9, 27, 81};
    return byte * power[n] % 256 * 3 / 256;
}

static bool is_tq(tern_format format) {
    return format == TERN_FORMAT_TQ1_0 || format == TERN_FORMAT_TQ2_0;
}

static int tq_code(tern_format format, const uint8_t *block, size_t j) {
    if (format == TERN_FORMAT_TQ2_0)
        return block[j / 128 * 32 + j % 32] >> (2 * (j % 128 / 32)) & 3;
    if (j < 160)
        return digit(block[j % 32], j / 32);
    return j < 240 ? digit(block[32 + j % 16], (j - 160) / 16)
                   : digit(block[48 + j % 4], (j - 240) / 4);
}

static bool is_base3(tern_layout layout) {
    return layout == TERN_LAYOUT_T5R16 || layout == TERN_LAYOUT_T5BR16;
}

/* The integer code that a packed layout holds for (row, col), according to the picture in
 * kernels.h. */
static int packed_code(const tern_matrix *w, size_t row, size_t col) {
    const uint8_t *data = w->data;
    const size_t g = row / 16;
    const size_t r = row % 16;

    if (w->layout == TERN_LAYOUT_T2R16) {
        const uint8_t *chunk = data + (g * ((w->cols + 15) / 16) + col / 16) * 64;
        return chunk[4 * r + col % 4] >> (2 * (col % 16 / 4)) & 3;
    }
    if (is_base3(w->layout)) {
        const uint8_t *chunk = data + (g * ((w->cols + 19) / 20) + col / 20) * 64;
        const uint8_t byte = chunk[4 * r + col % 4];
        const int n = (int)(col % 20 / 4);
        return w->layout == TERN_LAYOUT_T5R16 ? digit((uint8_t)(byte + 128), (size_t)n)
                                              : (int)tern_trits_digit(byte, n);
    }
    const plain *p = plain_layout(w->layout);
    const uint8_t *block = data + (g * (w->cols / 32) + col / 32) * packed_block_bytes(p);
    const uint8_t *codes = block + header_bytes(p) + 4 * r;
    const size_t k = col % 32;
    if (p->chunks == 8)
        return (int8_t)codes[k / 4 * 64 + k % 4];
    const uint8_t byte = codes[k / 8 * 64 + k % 4];
    const int nibble = k % 8 < 4 ? byte & 15 : byte >> 4;
    return p->fifth ? nibble | (codes[256 + k % 4] >> (k / 4) & 1) << 4 : nibble;
}

/* An f16 field of a packed block: 0 is d, 1 is m. */
static uint16_t packed_field(const tern_matrix *w, size_t row, size_t block, size_t field) {
    const size_t bytes = packed_block_bytes(plain_layout(w->layout));
    const uint8_t *at = (const uint8_t *)w->data + (row / 16 * (w->cols / 32) + block) * bytes;
    uint16_t half;

    memcpy(&half, at + 32 * field + 2 * (row % 16), 2);
    return half;
}

/* The code in the file; `element` counts row-major. */
static int file_code(const matmul_case *c, size_t element) {
    const tern_format_info *info = tern_format_describe(c->format);
    const uint8_t *file = c->file.data;
    const size_t j = element % 32;

    if (c->format == TERN_FORMAT_I2_S)
        return file[element / 128 * 32 + j] >> (6 - 2 * (element % 128 / 32)) & 3;
    if (is_tq(c->format))
        return tq_code(c->format, file + element / 256 * info->block_bytes, element % 256);
    const plain *p = plain_layout(tern_format_layout(c->format));
    const uint8_t *block = file + element / 32 * p->file_bytes;
    const uint8_t *fifths = block + 2 * p->fields + p->power;
    const uint8_t *codes = fifths + 4 * p->fifth;
    if (p->chunks == 8)
        return (int8_t)codes[j];
    const int nibble = j < 16 ? codes[j % 16] & 15 : codes[j % 16] >> 4;
    return p->fifth ? nibble | (fifths[j / 8] >> (j % 8) & 1) << 4 : nibble;
}

static void check_codes(const matmul_case *c) {
    const bool ternary = tern_layout_input(c->matrix.layout) == TERN_INPUT_TOKEN;
    const int offset = is_tq(c->format) && !ternary ? 7 : 0; /* weight + 1 and weight + 8 */
    const int padding = ternary ? 1 : 0;
    const size_t chunk = is_base3(c->matrix.layout) ? 20 : 16;
    const size_t rows = (c->rows + 15) / 16 * 16;
    const size_t cols = (c->cols + chunk - 1) / chunk * chunk;

    for (size_t row = 0; row < rows; row++)
        for (size_t col = 0; col < cols; col++) {
            const bool inside = row < c->rows && col < c->cols;
            const int want = inside ? file_code(c, row * c->cols + col) + offset : padding;
            if (packed_code(&c->matrix, row, col) != want)
                check_fail("row %zu, column %zu: code %d, expected %d", row, col,
                           packed_code(&c->matrix, row, col), want);
        }
}

static void check_fields(const matmul_case *c) {
    const size_t block_bytes = tern_format_describe(c->format)->block_bytes;
    const size_t fields = plain_layout(c->matrix.layout)->fields;
    const size_t blocks = c->cols / 32;

    for (size_t row = 0; row < (c->rows + 15) / 16 * 16; row++)
        for (size_t b = 0; b < blocks; b++)
            for (size_t f = 0; f < fields; f++) {
                const uint8_t *at = (const uint8_t *)c->file.data;
                at += is_tq(c->format) ? (row * blocks + b) / 8 * block_bytes + block_bytes - 2
                                       : (row * blocks + b) * block_bytes + 2 * f;
                const int want = row < c->rows ? at[0] | at[1] << 8 : 0;
                assert_int_equal(packed_field(&c->matrix, row, b, f), want);
            }
}

/* The bytes before the codes of a block that has a power of two. */
static void check_powers(const matmul_case *c) {
    const plain *p = plain_layout(c->matrix.layout);
    const uint8_t *file = c->file.data, *packed = c->matrix.data;
    const size_t blocks = c->cols / 32;

    for (size_t row = 0; p->power && row < (c->rows + 15) / 16 * 16; row++)
        for (size_t b = 0; b < blocks; b++) {
            const size_t at = (row / 16 * blocks + b) * packed_block_bytes(p) + row % 16;
            assert_int_equal(packed[at],
                             row < c->rows ? file[(row * blocks + b) * p->file_bytes] : 0);
        }
}

/* Ternary layouts leave the scales of TQ blocks to the matrix, so the file gets those. */
static void set_block_scales(const matmul_case *c) {
    const size_t bytes = tern_format_describe(c->format)->block_bytes;

    for (size_t row = 0; row < c->rows; row++)
        for (size_t k = 0; k < c->cols; k += 256) {
            uint8_t *end = (uint8_t *)c->file.data + ((row * c->cols + k) / 256 + 1) * bytes;
            const float scale =
                c->matrix.row_scale != NULL ? c->matrix.row_scale[row] : c->matrix.scale;
            tern_ref_store(TERN_FORMAT_F16, &scale, 1, end - 2);
        }
}

static void check_round_trip(const matmul_case *c) {
    if (is_tq(c->format) && tern_layout_input(c->matrix.layout) == TERN_INPUT_TOKEN)
        set_block_scales(c);
    const size_t codes = c->file.bytes - (c->format == TERN_FORMAT_I2_S ? 32 : 0);
    check_buffer back = check_buffer_new(codes, 1, CHECK_END);
    tern_error err = {0};

    assert_int_equal(tern_unpack(&c->matrix, back.data, &err), TERN_OK);
    check_bytes("unpacked", c->file.data, back.data, codes);
    check_buffer_free(&back);
}

/* The layouts that packed_code and packed_field can read. The others have worked bytes and round
 * trips. */
static bool has_picture(tern_layout layout) {
    return layout == TERN_LAYOUT_T2R16 || is_base3(layout) || plain_layout(layout) != NULL;
}

static void check_layouts(tern_format format, size_t rows, size_t cols, check_rng *rng) {
    const case_shape shape = {rows, cols, 1};

    for (int l = 0; l < TERN_LAYOUT_COUNT; l++) {
        const tern_layout layout = (tern_layout)l;
        if (layout == TERN_LAYOUT_ROWS || !tern_layout_holds(layout, format))
            continue; /* not packed */
        check_case("%s as %s, %zu x %zu", tern_format_describe(format)->name,
                   tern_layout_name(layout), rows, cols);
        matmul_case c = case_new_layout(format, layout, &shape, CASE_RANDOM, CHECK_END, rng);
        if (has_picture(layout))
            check_codes(&c);
        if (has_picture(layout) && tern_layout_input(layout) == TERN_INPUT_BLOCK) {
            check_fields(&c);
            check_powers(&c);
        }
        check_round_trip(&c);
        case_free(&c);
    }
}

static void test_layouts(void **state) {
    static const size_t rows[] = {1, 2, 4, 8, 15, 16, 17, 32, 33, 64, 96};
    static const size_t cols[] = {4,   12,  20,  32,  64,  96,   100, 128,
                                  132, 160, 256, 384, 512, 1536, 2560};
    check_rng rng = {11};

    (void)state;
    for (int f = TERN_FORMAT_Q4_0; f < TERN_FORMAT_COUNT; f++)
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
            for (size_t k = 0; k < sizeof cols / sizeof *cols; k++)
                if (case_possible((tern_format)f, rows[i], cols[k]))
                    check_layouts((tern_format)f, rows[i], cols[k], &rng);
}

/* Groups that are packed one by one, last first, give the same bytes as the whole matrix at
 * once. */
static void test_groups(void **state) {
    check_rng rng = {12};

    (void)state;
    for (int f = TERN_FORMAT_Q4_0; f < TERN_FORMAT_COUNT; f++) {
        matmul_case c = case_new((tern_format)f, 50, 256, 1, CASE_RANDOM, CHECK_END, &rng);
        check_buffer parts = check_buffer_new(c.packed.bytes, TERN_ALIGN, CHECK_END);
        const size_t group_bytes = parts.bytes / 4;
        for (size_t g = 4; g-- > 0;) {
            const size_t end = g == 3 ? 50 : 16 * g + 16;
            assert_int_equal(tern_pack_rows(c.format, c.file.data, 50, 256, c.matrix.layout, 16 * g,
                                            end, parts.data, NULL),
                             TERN_OK);
            assert_true(check_canary_intact(parts.data, g * group_bytes));
        }
        check_bytes("packed", c.packed.data, parts.data, parts.bytes);
        check_buffer_free(&parts);
        case_free(&c);
    }
}

/* ---- refusals ------------------------------------------------------------------------------ */

static void expect_code_3(size_t rows, size_t cols, size_t row, size_t col) {
    check_buffer file = check_buffer_new(rows * cols / 4, 1, CHECK_END);
    check_buffer out =
        check_buffer_new(tern_packed_bytes(TERN_LAYOUT_T2R16, rows, cols), TERN_ALIGN, CHECK_END);
    const size_t e = row * cols + col;
    tern_error err = {0};
    char place[64];

    memset(file.data, 0x55, file.bytes);
    ((uint8_t *)file.data)[e / 128 * 32 + e % 32] |= (uint8_t)(0xc0 >> (2 * (e % 128 / 32)));
    assert_int_equal(tern_pack_rows(TERN_FORMAT_I2_S, file.data, rows, cols, TERN_LAYOUT_T2R16, 0,
                                    rows, out.data, &err),
                     TERN_ERR_TENSOR_DATA);
    snprintf(place, sizeof place, "row %zu, column %zu", row, col);
    assert_non_null(strstr(err.message, place));
    check_buffer_free(&file);
    check_buffer_free(&out);
}

static void test_code_3(void **state) {
    (void)state;
    for (size_t col = 0; col < 256; col++)
        expect_code_3(32, 256, col % 32, col);
    expect_code_3(32, 100, 31, 99);
    expect_code_3(32, 100, 17, 0);
    expect_code_3(33, 128, 32, 64);
}

/* Refused in Q4_0R16 too: its nibbles could hold the code, but no encoder writes it. */
static void test_tq_code_3(void **state) {
    uint8_t file[17 * 66];

    (void)state;
    for (int l = TERN_LAYOUT_ROWS + 1; l < TERN_LAYOUT_COUNT; l++)
        for (size_t row = 2; row < 17 && tern_layout_holds((tern_layout)l, TERN_FORMAT_TQ2_0);
             row += 14) {
            _Alignas(64) uint8_t packed[2 * 8 * 288];
            char place[64];
            tern_error err = {0};
            memset(file, 0x55, sizeof file);
            file[row * 66 + 33] = 0xd5; /* column 128 + 96 + 1 */
            assert_int_equal(tern_pack_rows(TERN_FORMAT_TQ2_0, file, 17, 256, (tern_layout)l, 0, 17,
                                            packed, &err),
                             TERN_ERR_TENSOR_DATA);
            snprintf(place, sizeof place, "row %zu, column 225", row);
            assert_non_null(strstr(err.message, place));
        }
}

static void test_refusals(void **state) {
    _Alignas(64) uint8_t file[16 * 32 + 32];
    _Alignas(64) uint8_t out[512];
    tern_error err = {0};

    (void)state;
    memset(file, 0x55, sizeof file);
#define PACK(format, rows, cols, layout, r0, r1, to)                                               \
    tern_pack_rows(TERN_FORMAT_##format, file, rows, cols, TERN_LAYOUT_##layout, r0, r1, to, &err)
    assert_int_equal(PACK(I2_S, 16, 128, T2R16, 0, 16, out), TERN_OK);
    assert_int_equal(PACK(I2_S, 16, 128, T2R16, 0, 0, out), TERN_OK);
    assert_int_equal(PACK(I2_S, 16, 128, Q4_0R16, 0, 16, out), TERN_ERR_ARG);
    assert_int_equal(PACK(Q8_0, 16, 128, T2R16, 0, 16, out), TERN_ERR_ARG);
    assert_int_equal(PACK(F16, 16, 128, ROWS, 0, 16, out), TERN_ERR_ARG);
    assert_int_equal(PACK(I2_S, 15, 100, T2R16, 0, 15, out), TERN_ERR_TENSOR_SHAPE);
    assert_int_equal(PACK(Q4_0, 16, 33, Q4_0R16, 0, 16, out), TERN_ERR_TENSOR_SHAPE);
    assert_int_equal(PACK(I2_S, 16, 128, T2R16, 8, 16, out), TERN_ERR_ARG);
    assert_int_equal(PACK(I2_S, 16, 128, T2R16, 0, 8, out), TERN_ERR_ARG);
    assert_int_equal(PACK(I2_S, 16, 128, T2R16, 0, 32, out), TERN_ERR_ARG);
    assert_int_equal(PACK(I2_S, 16, 128, T2R16, 16, 0, out), TERN_ERR_ARG);
    assert_int_equal(PACK(I2_S, 16, 128, T2R16, 0, 16, NULL), TERN_ERR_NULL);
    assert_int_equal(PACK(I2_S, 16, 128, T2R16, 0, 16, out + 32), TERN_ERR_UNALIGNED);
    assert_non_null(strstr(err.message, "64"));
#undef PACK
    const tern_matrix rows = {TERN_FORMAT_F32, TERN_LAYOUT_ROWS, 4, 4, 1.0f, NULL, file};
    const tern_matrix missing = {TERN_FORMAT_I2_S, TERN_LAYOUT_T2R16, 16, 128, 1.0f, NULL, NULL};
    assert_int_equal(tern_unpack(&rows, out, &err), TERN_ERR_ARG);
    assert_int_equal(tern_unpack(&missing, out, &err), TERN_ERR_NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_layouts),  cmocka_unit_test(test_groups),
        cmocka_unit_test(test_code_3),   cmocka_unit_test(test_tq_code_3),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests_name("packing", tests, NULL, NULL);
}
