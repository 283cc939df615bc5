/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Formats, packing and unpacking: the pictures of docs/formats.md element by element, the worked
 * bytes of that page, and every refusal. The pictures of K-quants: test_pack_super.c.
 */

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tests/matmul_case.h"

/* ---- facts --------------------------------------------------------------------------------- */

static void test_describe(void **state) {
    (void)state;
    for (int i = 0; i < TERN_FORMAT_COUNT; i++) {
        const tern_format_info *info = tern_format_describe((tern_format)i);
        assert_non_null(info);
        assert_int_equal(tern_format_from_gguf(info->gguf_type),
                         info->gguf_type == TERN_NO_GGUF_TYPE ? (int)TERN_FORMAT_NONE : i);
    }
    assert_string_equal(tern_format_describe(TERN_FORMAT_Q4_1)->name, "q4_1");
    assert_int_equal(tern_format_describe(TERN_FORMAT_Q8_0)->block_bytes, 34);
    assert_null(tern_format_describe(TERN_FORMAT_NONE));
    assert_null(tern_format_describe((tern_format)-1));
    assert_int_equal(tern_format_from_gguf(39), TERN_FORMAT_NONE);
    assert_string_equal(tern_layout_name(TERN_LAYOUT_T2R16), "t2r16");
    assert_null(tern_layout_name(TERN_LAYOUT_COUNT));
    assert_string_equal(tern_op_name(TERN_OP_GATE_RELU2), "gate_relu2");
    assert_null(tern_op_name(TERN_OP_COUNT));
}

static uint64_t bytes_of(tern_format format, uint64_t rows, uint64_t cols) {
    uint64_t bytes = 0;
    assert_int_equal(tern_format_bytes(format, rows, cols, &bytes), TERN_OK);
    return bytes;
}

static void test_bytes(void **state) {
    (void)state;
    assert_int_equal(bytes_of(TERN_FORMAT_F32, 3, 5), 60);
    assert_int_equal(bytes_of(TERN_FORMAT_BF16, 3, 5), 30);
    assert_int_equal(bytes_of(TERN_FORMAT_Q4_0, 3, 64), 108);
    assert_int_equal(bytes_of(TERN_FORMAT_Q4_1, 3, 64), 120);
    assert_int_equal(bytes_of(TERN_FORMAT_Q5_0, 3, 64), 132);
    assert_int_equal(bytes_of(TERN_FORMAT_Q8_0, 3, 64), 204);
    assert_int_equal(bytes_of(TERN_FORMAT_I2_S, 6912, 2560), 4423712);
    assert_int_equal(bytes_of(TERN_FORMAT_I2_S, 32, 4), 64);
    assert_int_equal(bytes_of(TERN_FORMAT_TQ1_0, 3, 512), 6 * 54);
    assert_int_equal(bytes_of(TERN_FORMAT_TQ2_0, 3, 512), 6 * 66);
}

static void test_bytes_refused(void **state) {
    static const struct {
        tern_format format;
        uint64_t rows, cols;
    } bad[] = {
        {TERN_FORMAT_F32, 0, 4},
        {TERN_FORMAT_F32, 4, 0},
        {TERN_FORMAT_Q4_0, 4, 48},
        {TERN_FORMAT_Q8_0, 4, 31},
        {TERN_FORMAT_I2_S, 128, 1},
        {TERN_FORMAT_I2_S, 1, 64},
        {TERN_FORMAT_I2_S, 3, 2560 + 4},
        {TERN_FORMAT_I2_S, 128, 65536},
        {TERN_FORMAT_TQ1_0, 4, 128},
        {TERN_FORMAT_TQ2_0, 4, 65536},
        {TERN_FORMAT_F32, UINT64_C(1) << 32, UINT64_C(1) << 32},
        {TERN_FORMAT_F32, UINT64_C(1) << 61, 2},
        {TERN_FORMAT_Q8_0, UINT64_C(1) << 59, 32},
    };
    uint64_t bytes;

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(tern_format_bytes(bad[i].format, bad[i].rows, bad[i].cols, &bytes),
                         TERN_ERR_TENSOR_SHAPE);
    assert_int_equal(tern_format_bytes(TERN_FORMAT_NONE, 4, 4, &bytes), TERN_ERR_ARG);
    assert_int_equal(tern_format_bytes(TERN_FORMAT_F32, 4, 4, NULL), TERN_ERR_ARG);
}

static void test_packed_bytes(void **state) {
    (void)state;
    assert_int_equal(tern_packed_bytes(TERN_LAYOUT_T2R16, 16, 16), 64);
    assert_int_equal(tern_packed_bytes(TERN_LAYOUT_T2R16, 17, 20), 2 * 2 * 64);
    assert_int_equal(tern_packed_bytes(TERN_LAYOUT_T5R16, 17, 41), 2 * 3 * 64);
    assert_int_equal(tern_packed_bytes(TERN_LAYOUT_Q4_0R16, 16, 64), 2 * 288);
    assert_int_equal(tern_packed_bytes(TERN_LAYOUT_Q4_1R16, 1, 64), 2 * 320);
    assert_int_equal(tern_packed_bytes(TERN_LAYOUT_Q5_0R16, 17, 96), 2 * 3 * 352);
    assert_int_equal(tern_packed_bytes(TERN_LAYOUT_Q8_0R16, 33, 32), 3 * 544);
    assert_int_equal(tern_packed_bytes(TERN_LAYOUT_ROWS, 16, 64), 0);
    assert_int_equal(tern_packed_bytes(TERN_LAYOUT_NONE, 16, 64), 0);
    assert_int_equal(tern_packed_bytes(TERN_LAYOUT_T2R16, SIZE_MAX, 1024), 0);
    assert_int_equal(tern_packed_bytes(TERN_LAYOUT_Q8_0R16, 16, SIZE_MAX), 0);
}

/* ---- the pictures -------------------------------------------------------------------------- */

static size_t packed_block_bytes(tern_layout layout) {
    switch (layout) {
    case TERN_LAYOUT_Q4_0R16:
        return 288;
    case TERN_LAYOUT_Q4_1R16:
        return 320;
    case TERN_LAYOUT_Q5_0R16:
        return 352;
    default:
        return 544;
    }
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

/* The integer code that a packed layout holds for (row, col), read from the picture in kernels.h.
 */
static int packed_code(const tern_matrix *w, size_t row, size_t col) {
    const uint8_t *data = w->data;
    const size_t g = row / 16;
    const size_t r = row % 16;

    if (w->layout == TERN_LAYOUT_T2R16) {
        const uint8_t *chunk = data + (g * ((w->cols + 15) / 16) + col / 16) * 64;
        return chunk[4 * r + col % 4] >> (2 * (col % 16 / 4)) & 3;
    }
    if (w->layout == TERN_LAYOUT_T5R16) {
        const uint8_t *chunk = data + (g * ((w->cols + 19) / 20) + col / 20) * 64;
        return digit((uint8_t)(chunk[4 * r + col % 4] + 128), col % 20 / 4);
    }
    const size_t header = w->layout == TERN_LAYOUT_Q4_1R16 ? 64 : 32;
    const uint8_t *block = data + (g * (w->cols / 32) + col / 32) * packed_block_bytes(w->layout);
    const size_t k = col % 32;
    if (w->layout == TERN_LAYOUT_Q8_0R16)
        return (int8_t)block[header + k / 4 * 64 + 4 * r + k % 4];
    const uint8_t byte = block[header + k / 8 * 64 + 4 * r + k % 4];
    const int nibble = k % 8 < 4 ? byte & 15 : byte >> 4;
    if (w->layout != TERN_LAYOUT_Q5_0R16)
        return nibble;
    return nibble | (block[header + 256 + 4 * r + k % 4] >> (k / 4) & 1) << 4;
}

/* The f16 field of a packed block: 0 is d, 1 is m. */
static uint16_t packed_field(const tern_matrix *w, size_t row, size_t block, size_t field) {
    const size_t bytes = packed_block_bytes(w->layout);
    const uint8_t *at = (const uint8_t *)w->data + (row / 16 * (w->cols / 32) + block) * bytes;
    uint16_t half;

    memcpy(&half, at + 32 * field + 2 * (row % 16), 2);
    return half;
}

/* The code as the file has it; `element` counts row-major. */
static int file_code(const matmul_case *c, size_t element) {
    const tern_format_info *info = tern_format_describe(c->format);
    const uint8_t *file = c->file.data;
    const size_t j = element % 32;

    if (c->format == TERN_FORMAT_I2_S)
        return file[element / 128 * 32 + j] >> (6 - 2 * (element % 128 / 32)) & 3;
    if (is_tq(c->format))
        return tq_code(c->format, file + element / 256 * info->block_bytes, element % 256);
    const uint8_t *block = file + element / 32 * info->block_bytes;
    if (c->format == TERN_FORMAT_Q8_0)
        return (int8_t)block[2 + j];
    const uint8_t byte = block[info->block_bytes - 16 + j % 16];
    const int nibble = j < 16 ? byte & 15 : byte >> 4;
    if (c->format != TERN_FORMAT_Q5_0)
        return nibble;
    return nibble | (block[2 + j / 8] >> (j % 8) & 1) << 4;
}

static void check_codes(const matmul_case *c) {
    const bool ternary = tern_layout_input(c->matrix.layout) == TERN_INPUT_TOKEN;
    const int offset = is_tq(c->format) && !ternary ? 7 : 0; /* weight + 1 and weight + 8 */
    const int padding = ternary ? 1 : 0;
    const size_t chunk = c->matrix.layout == TERN_LAYOUT_T5R16 ? 20 : 16;
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
    const size_t fields = c->format == TERN_FORMAT_Q4_1 ? 2 : 1;
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

/* Ternary layouts leave the scales of TQ blocks to the matrix: the file gets those. */
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

/* Layouts that packed_code and packed_field read; the others have worked bytes and round trips. */
static bool has_picture(tern_layout layout) {
    switch (layout) {
    case TERN_LAYOUT_TL1R16:
    case TERN_LAYOUT_TL2R16:
    case TERN_LAYOUT_INT8R16:
    case TERN_LAYOUT_INT4R16:
    case TERN_LAYOUT_IQ2_SR16:
    case TERN_LAYOUT_Q4_KR16:
    case TERN_LAYOUT_Q5_KR16:
    case TERN_LAYOUT_Q6_KR16:
        return false;
    default:
        return true;
    }
}

static void check_layouts(tern_format format, size_t rows, size_t cols, check_rng *rng) {
    const case_shape shape = {rows, cols, 1};

    for (int l = 0; l < TERN_LAYOUT_COUNT; l++) {
        const tern_layout layout = (tern_layout)l;
        if (!tern_layout_holds(layout, format))
            continue;
        check_case("%s as %s, %zu x %zu", tern_format_describe(format)->name,
                   tern_layout_name(layout), rows, cols);
        matmul_case c = case_new_layout(format, layout, &shape, CASE_RANDOM, CHECK_END, rng);
        if (has_picture(layout))
            check_codes(&c);
        if (has_picture(layout) && tern_layout_input(layout) == TERN_INPUT_BLOCK)
            check_fields(&c);
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

/* Groups packed one by one, last first, give the same bytes as the whole matrix at once. */
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

/* ---- worked bytes of docs/formats.md ------------------------------------------------------- */

static void test_worked_ternary(void **state) {
    _Alignas(64) uint8_t packed[512];
    uint8_t file[16 * 32 + 32];

    (void)state;
    memset(file, 0x55, sizeof file);
    file[0] = 0x92; /* row 0, columns 0, 32, 64, 96: codes 2, 1, 0, 2 */
    file[5] = 0x15; /* row 0, column 5: code 0 */
    assert_int_equal(
        tern_pack_rows(TERN_FORMAT_I2_S, file, 16, 128, TERN_LAYOUT_T2R16, 0, 16, packed, NULL),
        TERN_OK);
    assert_int_equal(packed[0], 0x56);      /* chunk 0: column 0 */
    assert_int_equal(packed[1], 0x51);      /* chunk 0: column 5 is j = 1, p = 1 */
    assert_int_equal(packed[2 * 64], 0x55); /* column 32 */
    assert_int_equal(packed[4 * 64], 0x54); /* column 64 */
    assert_int_equal(packed[6 * 64], 0x56); /* column 96 */
    assert_int_equal(packed[4], 0x55);      /* row 1 */
}

/* Row 1 of INT8, INT4 and IQ2_S matrices: one code, its scale, its zero point, in their places. */
static void test_worked_int(void **state) {
    _Alignas(64) uint8_t packed[64 + 8 * 544];
    uint8_t file[2 * 82] = {0};

    (void)state;
    file[33] = 0x85; /* INT8, row 1, column 1: -123 */
    assert_int_equal(
        tern_pack_rows(TERN_FORMAT_INT8, file, 2, 32, TERN_LAYOUT_INT8R16, 0, 2, packed, NULL),
        TERN_OK);
    assert_int_equal(packed[4 + 1], 0x85);

    memset(file, 0, sizeof file);
    file[21] = 0x3c;     /* INT4, row 1: scale 1.0 */
    file[22] = 7;        /* zero point */
    file[24 + 5] = 0xa2; /* columns 5 and 21 */
    assert_int_equal(
        tern_pack_rows(TERN_FORMAT_INT4, file, 2, 32, TERN_LAYOUT_INT4R16, 0, 2, packed, NULL),
        TERN_OK);
    assert_int_equal(packed[2 + 1], 0x3c);
    assert_int_equal(packed[32 + 1], 7);
    assert_int_equal(packed[64 + 4 + 1], 0x20);          /* chunk 0: 5 = 4 + 1, high */
    assert_int_equal(packed[64 + 2 * 64 + 4 + 1], 0xa0); /* chunk 2: 21 = 16 + 4 + 1 */

    memset(file, 0, sizeof file);
    file[82 + 1] = 0x3c;  /* IQ2_S, row 1: d = 1.0 */
    file[82 + 2] = 5;     /* run 0 is entry 5: 25 8 25 8 ... */
    file[82 + 34] = 0x81; /* weights 0 and 7 of the run are negative */
    file[82 + 74] = 0x21; /* nibbles 1 and 2: factors 3 and 5 */
    assert_int_equal(
        tern_pack_rows(TERN_FORMAT_IQ2_S, file, 2, 256, TERN_LAYOUT_IQ2_SR16, 0, 2, packed, NULL),
        TERN_OK);
    assert_int_equal(packed[2 + 1], 0x3c);
    assert_int_equal(packed[64 + 1], 3);
    assert_int_equal(packed[64 + 16 + 1], 5);
    assert_int_equal((int8_t)packed[64 + 32 + 4], -25);
    assert_int_equal((int8_t)packed[64 + 32 + 64 + 4 + 3], -8);
}

/* The same file in the layouts of table lookup. */
static void test_worked_lookup(void **state) {
    _Alignas(64) uint8_t packed[6 * 80];
    uint8_t file[16 * 32 + 32];

    (void)state;
    memset(file, 0x55, sizeof file);
    file[0] = 0x92;
    file[5] = 0x15;
    assert_int_equal(tern_packed_bytes(TERN_LAYOUT_TL1R16, 16, 128), 8 * 64);
    assert_int_equal(tern_packed_bytes(TERN_LAYOUT_TL2R16, 17, 128), 2 * 6 * 80);
    check_buffer buffer = check_buffer_new(8 * 64, TERN_ALIGN, CHECK_END);
    uint8_t *tl1 = buffer.data;
    assert_int_equal(
        tern_pack_rows(TERN_FORMAT_I2_S, file, 16, 128, TERN_LAYOUT_TL1R16, 0, 16, tl1, NULL),
        TERN_OK);
    assert_int_equal(tl1[0], 0x47);
    assert_int_equal(tl1[16], 0x43); /* columns 4 .. 7: 0 -1 0 0 */
    assert_int_equal(tl1[1], 0x44);  /* row 1 */
    check_buffer_free(&buffer);
    assert_int_equal(
        tern_pack_rows(TERN_FORMAT_I2_S, file, 16, 128, TERN_LAYOUT_TL2R16, 0, 16, packed, NULL),
        TERN_OK);
    assert_int_equal(packed[0], 0x19);
    assert_int_equal(packed[64], 0x02);
    assert_int_equal(packed[1], 0x00);
}

/* A matrix of zeros but for four weights of row 0, in columns 0, 4, 16 and 17. */
static void test_worked_base3(void **state) {
    _Alignas(64) uint8_t packed[7 * 64];
    uint8_t file[32 * 4 + 32];

    (void)state;
    memset(file, 0x55, sizeof file);
    file[0] = 0x95;  /* row 0, column 0: code 2 */
    file[4] = 0x15;  /* column 4: code 0 */
    file[16] = 0x95; /* column 16: code 2 */
    file[17] = 0x15; /* column 17: code 0 */
    assert_int_equal(
        tern_pack_rows(TERN_FORMAT_I2_S, file, 4, 128, TERN_LAYOUT_T5R16, 0, 4, packed, NULL),
        TERN_OK);
    assert_int_equal(packed[0], 0x3a); /* 2 0 1 1 2: v = 176, 186 - 128 */
    assert_int_equal(packed[1], 0xff); /* 1 1 1 1 0: v = 120, 127 - 128 */
    assert_int_equal(packed[2], 0x00); /* 1 1 1 1 1: v = 121, 128 - 128 */
    assert_int_equal(packed[4], 0x00); /* row 1 */
    assert_int_equal(packed[64], 0x00);
}

/* TQ blocks, with codes 2 0 1 1 2 in elements 0, 32, 64, 96, 128 and 2 0 1 1 in 240, 244 ... */
static void test_worked_tq(void **state) {
    _Alignas(64) uint8_t packed[16 * 64];
    uint8_t tq1[54], tq2[66];
    float y[256];

    (void)state;
    memset(tq1, 0x80, sizeof tq1); /* 1 1 1 1 1: v = 121 */
    memset(tq1 + 48, 0x7f, 4);     /* 1 1 1 1 0: v = 120 */
    tq1[0] = 0xba;
    tq1[48] = 0xb8;
    memcpy(tq1 + 52, "\x00\x38", 2); /* 0.5 */
    memset(tq2, 0x55, sizeof tq2);
    tq2[0] = 0x52;  /* elements 0, 32, 64, 96 */
    tq2[32] = 0x56; /* element 128 */
    tq2[48] = 0x65; /* element 240 is byte 48, plane 3: code 1; 208 gets code 2 */
    memcpy(tq2 + 64, "\x00\x38", 2);
    tern_dequantize_row(TERN_FORMAT_TQ1_0, tq1, 256, 0, 1.0f, y);
    assert_true(y[0] == 0.5f && y[32] == -0.5f && y[64] == 0 && y[96] == 0 && y[128] == 0.5f);
    assert_true(y[240] == 0.5f && y[244] == -0.5f && y[248] == 0.0f && y[252] == 0.0f);
    assert_int_equal(
        tern_pack_rows(TERN_FORMAT_TQ1_0, tq1, 1, 256, TERN_LAYOUT_T2R16, 0, 1, packed, NULL),
        TERN_OK);
    assert_int_equal(packed[0], 0x56);       /* columns 0, 4, 8, 12 */
    assert_int_equal(packed[2 * 64], 0x54);  /* column 32 */
    assert_int_equal(packed[15 * 64], 0x52); /* columns 240, 244, 248, 252: 2 0 1 1 */
    tern_dequantize_row(TERN_FORMAT_TQ2_0, tq2, 256, 0, 1.0f, y);
    assert_true(y[0] == 0.5f && y[32] == -0.5f && y[64] == 0 && y[96] == 0 && y[128] == 0.5f);
    assert_true(y[208] == 0.5f && y[240] == 0.0f);
    assert_int_equal(
        tern_pack_rows(TERN_FORMAT_TQ2_0, tq2, 1, 256, TERN_LAYOUT_T2R16, 0, 1, packed, NULL),
        TERN_OK);
    assert_int_equal(packed[0], 0x56);
    assert_int_equal(packed[2 * 64], 0x54);
    assert_int_equal(packed[13 * 64], 0x56); /* column 208 */
}

/* ---- one scale a row ----------------------------------------------------------------------- */

enum { SCALE_ROWS = 4, SCALE_COLS = 512 };

static void set_scale(uint8_t *file, size_t row, size_t block, float scale) {
    tern_ref_store(TERN_FORMAT_F16, &scale, 1, file + (2 * row + block) * 66 + 64);
}

static void clear_block(uint8_t *file, size_t row, size_t block) {
    memset(file + (2 * row + block) * 66, 0x55, 64);
}

static void test_row_scales(void **state) {
    uint8_t file[SCALE_ROWS * 2 * 66];
    float scales[SCALE_ROWS];
    uint64_t random = 3;

    (void)state;
#define ROW_SCALES(to) tern_ternary_row_scales(TERN_FORMAT_TQ2_0, file, SCALE_ROWS, SCALE_COLS, to)
    tern_ref_fill_weights(TERN_FORMAT_TQ2_0, TERN_REF_FILL_RANDOM, SCALE_ROWS, SCALE_COLS, 1.0f,
                          &random, file);
    assert_false(ROW_SCALES(scales));
    for (size_t r = 0; r < SCALE_ROWS; r++) {
        set_scale(file, r, 0, 0.25f + (float)r);
        set_scale(file, r, 1, 0.25f + (float)r);
    }
    assert_true(ROW_SCALES(NULL) && ROW_SCALES(scales));
    for (size_t r = 0; r < SCALE_ROWS; r++)
        assert_true(scales[r] == 0.25f + (float)r);
    set_scale(file, 3, 1, 7.0f); /* the last block of the matrix */
    assert_false(ROW_SCALES(NULL));
    clear_block(file, 3, 1); /* zero weights suit any scale */
    assert_true(ROW_SCALES(scales) && scales[3] == 3.25f);
    set_scale(file, 2, 0, NAN);
    assert_false(ROW_SCALES(scales));
    clear_block(file, 2, 0);
    assert_true(ROW_SCALES(scales) && scales[2] == 2.25f);
    for (size_t b = 0; b < 2; b++) { /* rows of zeros before and behind one with a scale */
        clear_block(file, 0, b);
        clear_block(file, 2, b);
    }
    assert_true(ROW_SCALES(scales) && scales[0] == 1.25f && scales[2] == 1.25f);
#undef ROW_SCALES
    assert_false(tern_ternary_row_scales(TERN_FORMAT_Q4_0, file, 1, 32, scales));
    memset(file, 0x55, 64);
    memcpy(file + 32, "\x00\x00\x40\x3f", 4);
    assert_true(tern_ternary_row_scales(TERN_FORMAT_I2_S, file, 2, 64, scales));
    assert_true(scales[0] == 0.75f && scales[1] == 0.75f);
}

/* Row 1 of a one-block matrix: d = 1.0, codes as docs/formats.md lists them. */
static void test_worked_q4_0(void **state) {
    _Alignas(64) uint8_t packed[288];
    uint8_t file[2 * 18] = {0};

    (void)state;
    file[18] = 0x00;
    file[19] = 0x3c;
    for (unsigned j = 0; j < 16; j++) /* column k holds code k / 2 */
        file[20 + j] = (uint8_t)(j / 2 | (j + 16) / 2 << 4);
    assert_int_equal(file[20 + 5], 0xa2);
    assert_int_equal(
        tern_pack_rows(TERN_FORMAT_Q4_0, file, 2, 32, TERN_LAYOUT_Q4_0R16, 0, 2, packed, NULL),
        TERN_OK);
    assert_memory_equal(packed + 2, "\x00\x3c", 2);
    assert_memory_equal(packed + 32 + 4, "\x20\x20\x31\x31", 4);
    assert_memory_equal(packed + 32 + 64 + 4, "\x64\x64\x75\x75", 4);
    assert_memory_equal(packed + 32 + 128 + 4, "\xa8\xa8\xb9\xb9", 4);
    assert_memory_equal(packed + 32 + 192 + 4, "\xec\xec\xfd\xfd", 4);
}

static void test_worked_q4_1(void **state) {
    _Alignas(64) uint8_t packed[320];
    uint8_t file[2 * 20] = {0};

    (void)state;
    memcpy(file + 20, "\x00\x3c\x00\xb8", 4); /* d = 1, m = -0.5 */
    file[24] = 0xa2;                          /* column 0: 2, column 16: 10 */
    assert_int_equal(
        tern_pack_rows(TERN_FORMAT_Q4_1, file, 2, 32, TERN_LAYOUT_Q4_1R16, 0, 2, packed, NULL),
        TERN_OK);
    assert_memory_equal(packed + 2, "\x00\x3c", 2);
    assert_memory_equal(packed + 32 + 2, "\x00\xb8", 2);
    assert_int_equal(packed[64 + 4], 0x02);
    assert_int_equal(packed[64 + 128 + 4], 0x0a);
}

static void test_worked_q5_0(void **state) {
    _Alignas(64) uint8_t packed[352];
    uint8_t file[2 * 22] = {0};

    (void)state;
    memcpy(file + 22, "\x00\x3c", 2);
    memcpy(file + 24, "\x21\x00\x00\x80", 4); /* columns 0, 5 and 31 */
    file[28] = 0xa2;                          /* column 0: 2, column 16: 10 */
    assert_int_equal(
        tern_pack_rows(TERN_FORMAT_Q5_0, file, 2, 32, TERN_LAYOUT_Q5_0R16, 0, 2, packed, NULL),
        TERN_OK);
    assert_memory_equal(packed + 2, "\x00\x3c", 2);
    assert_int_equal(packed[32 + 4], 0x02);
    assert_int_equal(packed[32 + 128 + 4], 0x0a);
    assert_memory_equal(packed + 32 + 256 + 4, "\x01\x02\x00\x80", 4);
}

static void test_worked_q8_0(void **state) {
    _Alignas(64) uint8_t packed[544];
    uint8_t file[2 * 34] = {0};

    (void)state;
    memcpy(file + 34, "\x08\x2c", 2);
    for (unsigned k = 0; k < 32; k++)
        file[36 + k] = (uint8_t)(0x81 + k);
    assert_int_equal(
        tern_pack_rows(TERN_FORMAT_Q8_0, file, 2, 32, TERN_LAYOUT_Q8_0R16, 0, 2, packed, NULL),
        TERN_OK);
    assert_memory_equal(packed + 2, "\x08\x2c", 2);
    assert_memory_equal(packed + 32 + 4, "\x81\x82\x83\x84", 4);
    assert_memory_equal(packed + 32 + 64 + 4, "\x85\x86\x87\x88", 4);
    assert_memory_equal(packed + 32 + 7 * 64 + 4, "\x9d\x9e\x9f\xa0", 4);
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

/* Also in Q4_0R16, whose nibbles could hold it: no encoder writes it. */
static void test_tq_code_3(void **state) {
    static const tern_layout layouts[] = {TERN_LAYOUT_T2R16, TERN_LAYOUT_T5R16,
                                          TERN_LAYOUT_Q4_0R16};
    uint8_t file[17 * 66];

    (void)state;
    for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++)
        for (size_t row = 2; row < 17; row += 14) {
            _Alignas(64) uint8_t packed[2 * 8 * 288];
            char place[64];
            tern_error err = {0};
            memset(file, 0x55, sizeof file);
            file[row * 66 + 33] = 0xd5; /* column 128 + 96 + 1 */
            assert_int_equal(
                tern_pack_rows(TERN_FORMAT_TQ2_0, file, 17, 256, layouts[i], 0, 17, packed, &err),
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
    assert_int_equal(PACK(I2_S, 16, 128, T2R16, 0, 16, NULL), TERN_ERR_ARG);
    assert_int_equal(PACK(I2_S, 16, 128, T2R16, 0, 16, out + 32), TERN_ERR_UNALIGNED);
    assert_non_null(strstr(err.message, "64"));
#undef PACK
    const tern_matrix rows = {TERN_FORMAT_F32, TERN_LAYOUT_ROWS, 4, 4, 1.0f, NULL, file};
    const tern_matrix missing = {TERN_FORMAT_I2_S, TERN_LAYOUT_T2R16, 16, 128, 1.0f, NULL, NULL};
    assert_int_equal(tern_unpack(&rows, out, &err), TERN_ERR_ARG);
    assert_int_equal(tern_unpack(&missing, out, &err), TERN_ERR_ARG);
}

/* ---- dequantization ------------------------------------------------------------------------ */

static void test_dequantize(void **state) {
    check_rng rng = {13};
    float y[256];

    (void)state;
    for (int f = 0; f < TERN_FORMAT_COUNT; f++) {
        matmul_case c = case_new((tern_format)f, 5, 256, 1, CASE_EXTREME, CHECK_END, &rng);
        const tern_ref_matrix reference = case_reference(&c);
        const uint64_t before = tern_dequantize_calls();
        for (size_t row = 0; row < 5; row++) {
            tern_dequantize_row(c.format, c.file.data, 256, row, 0.75f, y);
            for (size_t k = 0; k < 256; k++) {
                const float weight = tern_ref_weight(&reference, row, k);
                const bool outer = c.format == TERN_FORMAT_I2_S || c.format == TERN_FORMAT_INT8;
                const float want = outer ? weight * 0.75f : weight;
                assert_true(check_same_float(want, y[k]));
            }
        }
        assert_int_equal(tern_dequantize_calls() - before, 5);
        case_free(&c);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_describe),       cmocka_unit_test(test_bytes),
        cmocka_unit_test(test_bytes_refused),  cmocka_unit_test(test_packed_bytes),
        cmocka_unit_test(test_layouts),        cmocka_unit_test(test_groups),
        cmocka_unit_test(test_worked_ternary), cmocka_unit_test(test_worked_lookup),
        cmocka_unit_test(test_worked_int),     cmocka_unit_test(test_worked_q4_0),
        cmocka_unit_test(test_worked_q4_1),    cmocka_unit_test(test_worked_q5_0),
        cmocka_unit_test(test_worked_q8_0),    cmocka_unit_test(test_code_3),
        cmocka_unit_test(test_worked_base3),   cmocka_unit_test(test_worked_tq),
        cmocka_unit_test(test_row_scales),     cmocka_unit_test(test_tq_code_3),
        cmocka_unit_test(test_refusals),       cmocka_unit_test(test_dequantize),
    };
    return cmocka_run_group_tests_name("formats and packing", tests, NULL, NULL);
}
