/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Blocks of 64 to 256 columns with one scale, packed and back: the pictures of docs/formats.md
 * element by element, with a decoder of the file that is independent of the one under test, and the
 * worked bytes of that page.
 */

#include <string.h>

#include "tests/kernels/matmul_case.h"

/* A format and its layout, in bytes and columns. */
typedef struct group_case {
    tern_format format;
    tern_layout layout;
    size_t cols, file_bytes, scale_at;
    size_t packed_bytes; /* of a block of 16 rows */
} group_case;

static const group_case cases[] = {
    {TERN_FORMAT_Q1_0, TERN_LAYOUT_Q1_0R16, 128, 18, 0, 32 + 4 * 64},
    {TERN_FORMAT_Q2_0, TERN_LAYOUT_Q2_0R16, 64, 18, 0, 32 + 4 * 64},
    {TERN_FORMAT_PQ2_0, TERN_LAYOUT_PQ2_0R16, 128, 34, 0, 32 + 8 * 64},
    {TERN_FORMAT_PTQ1_0, TERN_LAYOUT_PQ2_0R16, 128, 28, 26, 32 + 8 * 64},
    {TERN_FORMAT_STQ1_0, TERN_LAYOUT_STQ1_0R16, 256, 42, 40, 32 + 10 * 64},
};

enum { CASES = sizeof cases / sizeof *cases };

/* ---- the file, one element at a time -------------------------------------------------------- */

/* Digit n of the base-3 fraction byte/256. */
static int digit(uint8_t byte, size_t n) {
    for (size_t i = 0; i < n; i++)
        byte = (uint8_t)(3 * byte);
    return 3 * byte / 256;
}

/* The bits of column k of a block. In STQ1_0, the pattern that the column shares with three
 * others. */
static int file_code(const group_case *c, const uint8_t *block, size_t k) {
    const size_t quad = k / 64 * 16 + k % 16;
    if (c->format == TERN_FORMAT_STQ1_0)
        return (block[quad / 2] >> 4 * (quad % 2) & 15) | (block[32 + quad / 8] >> quad % 8 & 1)
                                                              << 4;
    if (c->format == TERN_FORMAT_Q1_0)
        return block[2 + k / 8] >> k % 8 & 1;
    if (c->format != TERN_FORMAT_PTQ1_0)
        return block[2 + k / 4] >> 2 * (k % 4) & 3;
    if (k >= 120)
        return digit(block[24 + k % 2], (k - 120) / 2);
    return k < 80 ? digit(block[k % 16], k / 16) : digit(block[16 + k % 8], (k - 80) / 8);
}

/* ---- the picture ---------------------------------------------------------------------------- */

static int packed_code(const group_case *c, const uint8_t *block, size_t r, size_t k) {
    const uint8_t *codes = block + 32 + 4 * r + k % 4;

    if (c->layout == TERN_LAYOUT_STQ1_0R16) {
        const uint8_t *signs = codes + k / 128 * 320, *slots = signs + 64 + k % 128 / 64 * 128;
        const size_t four = k % 16 / 4; /* which four of the 16 quads of 64 columns */
        return (slots[four / 2 * 64] >> 4 * (four % 2) & 15) |
               (signs[0] >> (4 * (k % 128 / 64) + four) & 1) << 4;
    }
    if (c->layout == TERN_LAYOUT_Q1_0R16)
        return codes[k / 32 * 64] >> k % 32 / 4 & 1;
    return codes[k / 16 * 64] >> 2 * (k % 16 / 4) & 3;
}

/* Compares row r of a packed block with its block of the file, or with zeros if that is NULL. */
static void check_block(const group_case *c, const uint8_t *packed, size_t r,
                        const uint8_t *block) {
    const uint8_t *d = block + c->scale_at;

    assert_int_equal(packed[2 * r] | packed[2 * r + 1] << 8, block != NULL ? d[0] | d[1] << 8 : 0);
    for (size_t k = 0; k < c->cols; k++)
        if (packed_code(c, packed, r, k) != (block != NULL ? file_code(c, block, k) : 0))
            check_fail("row %zu of a group, column %zu: code %d", r, k,
                       packed_code(c, packed, r, k));
}

static void check_picture(const group_case *c, const matmul_case *m) {
    const size_t blocks = m->cols / c->cols;

    assert_int_equal(m->packed.bytes, (m->rows + 15) / 16 * blocks * c->packed_bytes);
    for (size_t row = 0; row < (m->rows + 15) / 16 * 16; row++)
        for (size_t b = 0; b < blocks; b++)
            check_block(c, (uint8_t *)m->packed.data + (row / 16 * blocks + b) * c->packed_bytes,
                        row % 16,
                        row < m->rows ? (uint8_t *)m->file.data + (row * blocks + b) * c->file_bytes
                                      : NULL);
}

static void check_round_trip(const matmul_case *m) {
    check_buffer back = check_buffer_new(m->file.bytes, 1, CHECK_END);
    tern_error err = {0};

    assert_int_equal(tern_unpack(&m->matrix, back.data, &err), TERN_OK);
    check_bytes("unpacked", m->file.data, back.data, m->file.bytes);
    check_buffer_free(&back);
}

static void test_pictures(void **state) {
    static const size_t rows[] = {1, 2, 15, 16, 17, 33};
    check_rng rng = {22};

    (void)state;
    for (size_t k = 0; k < CASES; k++)
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
            for (size_t cols = cases[k].cols; cols <= 5 * cases[k].cols; cols += cases[k].cols) {
                check_case("%s, %zu x %zu", tern_format_describe(cases[k].format)->name, rows[i],
                           cols);
                matmul_case m =
                    case_new(cases[k].format, rows[i], cols, 1, CASE_RANDOM, CHECK_END, &rng);
                assert_int_equal(m.matrix.layout, cases[k].layout);
                check_picture(&cases[k], &m);
                check_round_trip(&m);
                case_free(&m);
            }
}

/* ---- worked bytes of docs/formats.md --------------------------------------------------------- */

/* Packs row 1 of two rows. Row 0 is zero. */
static void pack_second(const group_case *c, const uint8_t *block, uint8_t *packed) {
    uint8_t file[2 * 42] = {0};

    memcpy(file + c->file_bytes, block, c->file_bytes);
    assert_int_equal(tern_pack_rows(c->format, file, 2, c->cols, c->layout, 0, 2, packed, NULL),
                     TERN_OK);
    assert_memory_equal(packed + 2, "\x00\x3c", 2);
}

static void test_worked(void **state) {
    _Alignas(64) uint8_t packed[672];
    uint8_t block[42] = {0x00, 0x3c};

    (void)state;
    block[2 + 4] = 0x21; /* Q1_0: columns 32 and 37 are +1 */
    pack_second(&cases[0], block, packed);
    assert_memory_equal(packed + 32 + 64 + 4, "\x01\x02\x00\x00", 4);

    memset(block + 2, 0x55, 32); /* Q2_0, PQ2_0: zeros, but column 21 is +2 and column 30 -1 */
    block[2 + 5] = 0x5d;
    block[2 + 7] = 0x45;
    pack_second(&cases[1], block, packed);
    assert_memory_equal(packed + 32 + 64 + 4, "\x55\x5d\x15\x55", 4);
    pack_second(&cases[2], block, packed);
    assert_memory_equal(packed + 32 + 64 + 4, "\x55\x5d\x15\x55", 4);

    /* PTQ1_0: byte 3 has the codes 0 1 2 2 1 of columns 3, 19, 35, 51 and 67: 52, ceil(256 * 52 /
     * 243) */
    memset(block, 0, sizeof block);
    block[3] = 0x37;
    block[26 + 1] = 0x3c;
    pack_second(&cases[3], block, packed);
    assert_memory_equal(packed + 32 + 4, "\x00\x00\x00\x00", 4);
    assert_memory_equal(packed + 32 + 64 + 4, "\x00\x00\x00\x01", 4);
    assert_memory_equal(packed + 32 + 2 * 64 + 4, "\x00\x00\x00\x02", 4);
    assert_memory_equal(packed + 32 + 3 * 64 + 4, "\x00\x00\x00\x02", 4);
    assert_memory_equal(packed + 32 + 4 * 64 + 4, "\x00\x00\x00\x01", 4);

    /* STQ1_0: quad 53 is 16 * 3 + 5, in columns 197, 213, 229 and 245: slot 6, negative */
    memset(block, 0, sizeof block);
    block[53 / 2] = 0x60;
    block[32 + 53 / 8] = 1 << 53 % 8;
    block[40 + 1] = 0x3c;
    pack_second(&cases[4], block, packed);
    assert_memory_equal(packed + 352 + 4, "\x00\x20\x00\x00", 4);
    assert_memory_equal(packed + 352 + 3 * 64 + 4, "\x00\x60\x00\x00", 4);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pictures),
        cmocka_unit_test(test_worked),
    };
    return cmocka_run_group_tests_name("packing of groups", tests, NULL, NULL);
}
