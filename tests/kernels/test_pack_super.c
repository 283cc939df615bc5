/* SPDX-License-Identifier: Apache-2.0 */
/*
 * K-quants, packed and back: the pictures of docs/formats.md element by element, with a decoder of
 * the file that is independent of the one under test, and the worked bytes of that page.
 */

#include <string.h>

#include "kernels/codes.h"
#include "tests/kernels/matmul_case.h"

/* A K-quant and its layout, in bytes. */
typedef struct super_case {
    tern_format format;
    tern_layout layout;
    size_t file_bytes;
    size_t head_bytes; /* f16 fields of 16 rows */
    size_t sub_bytes;  /* scales and codes of 32 columns of 16 rows */
    size_t scales;     /* bytes of them a row */
} super_case;

static const super_case cases[] = {
    {TERN_FORMAT_Q4_K, TERN_LAYOUT_Q4_KR16, 144, 64, 32 + 4 * 64, 2},
    {TERN_FORMAT_Q5_K, TERN_LAYOUT_Q5_KR16, 176, 64, 32 + 5 * 64, 2},
    {TERN_FORMAT_Q6_K, TERN_LAYOUT_Q6_KR16, 210, 32, 32 + 6 * 64, 2},
    {TERN_FORMAT_Q3_K, TERN_LAYOUT_Q3_KR16, 110, 32, 32 + 3 * 64, 2},
    {TERN_FORMAT_Q2_K, TERN_LAYOUT_Q2_KR16, 84, 64, 32 + 2 * 64, 2},
    {TERN_FORMAT_IQ4_XS, TERN_LAYOUT_IQ4_XSR16, 136, 32, 16 + 4 * 64, 1},
};

enum { CASES = sizeof cases / sizeof *cases };

/* ---- the file, one element at a time -------------------------------------------------------- */

/* The bits of column e of a block, as an unsigned code. */
static int file_code(const super_case *k, const uint8_t *block, size_t e) {
    const size_t twos = e / 128 * 32 + e % 32, place = e % 128 / 32 * 2;
    if (k->format == TERN_FORMAT_Q2_K)
        return block[16 + twos] >> place & 3;
    if (k->format == TERN_FORMAT_Q3_K)
        return (block[32 + twos] >> place & 3) | (block[e % 32] >> e / 32 & 1) << 2;
    if (k->format == TERN_FORMAT_IQ4_XS)
        return block[8 + e / 32 * 16 + e % 16] >> e % 32 / 16 * 4 & 15;
    if (k->format == TERN_FORMAT_Q6_K) {
        const size_t half = e / 128, quarter = e % 128 / 32, l = e % 32;
        const int low = block[64 * half + 32 * (quarter % 2) + l] >> 4 * (quarter / 2) & 15;
        return low | (block[128 + 32 * half + l] >> 2 * quarter & 3) << 4;
    }
    const int fifth = k->format == TERN_FORMAT_Q5_K ? block[16 + e % 32] >> e / 32 & 1 : 0;
    const uint8_t *nibbles = block + (k->format == TERN_FORMAT_Q5_K ? 48 : 16);
    return (nibbles[e / 64 * 32 + e % 32] >> e / 32 % 2 * 4 & 15) | fifth << 4;
}

/* The byte that the layout keeps for sub-block s: its scale (if `which` is 0), or its minimum or
 * second scale. */
static int file_scale(const super_case *k, const uint8_t *block, size_t s, size_t which) {
    const size_t run = 2 * s + which;
    if (k->format == TERN_FORMAT_Q6_K)
        return block[192 + run];
    if (k->format == TERN_FORMAT_Q2_K)
        return block[run];
    if (k->format == TERN_FORMAT_Q3_K) {
        const int six = (block[96 + run % 8] >> run / 8 * 4 & 15) |
                        (block[104 + run % 4] >> run / 4 * 2 & 3) << 4;
        return (uint8_t)(six - 32);
    }
    if (k->format == TERN_FORMAT_IQ4_XS) {
        const int upper = (block[2] | block[3] << 8) >> 2 * s & 3;
        return (uint8_t)(((block[4 + s / 2] >> s % 2 * 4 & 15) | upper << 4) - 32);
    }
    const uint8_t *packed = block + 4;
    if (s < 4)
        return packed[s + 4 * which] & 63;
    return (packed[s + 4] >> 4 * which & 15) | packed[s - 4 + 4 * which] >> 6 << 4;
}

static int file_half(const super_case *k, const uint8_t *block, size_t field) {
    const bool first = k->format == TERN_FORMAT_Q4_K || k->format == TERN_FORMAT_Q5_K ||
                       k->format == TERN_FORMAT_IQ4_XS;
    const uint8_t *at = block + (first ? 0 : k->file_bytes - k->head_bytes / 16) + 2 * field;
    return at[0] | at[1] << 8;
}

/* ---- the picture ---------------------------------------------------------------------------- */

/* The start of packed super-block b in the group of a row. */
static const uint8_t *packed_super(const super_case *k, const tern_matrix *w, size_t row,
                                   size_t b) {
    const size_t bytes = k->head_bytes + 8 * k->sub_bytes;
    return (const uint8_t *)w->data + (row / 16 * (w->cols / 256) + b) * bytes;
}

static int packed_code(const super_case *k, const uint8_t *super, size_t r, size_t e) {
    const uint8_t *codes = super + k->head_bytes + e / 32 * k->sub_bytes + 16 * k->scales;
    const size_t col = e % 32, byte = 4 * r + col % 4;
    const int two = codes[col / 16 * 64 + byte] >> col % 16 / 4 * 2 & 3;
    if (k->format == TERN_FORMAT_Q2_K)
        return two;
    if (k->format == TERN_FORMAT_Q3_K)
        return two | (codes[128 + byte] >> col / 4 & 1) << 2;
    const int nibble = codes[col / 8 * 64 + byte] >> col % 8 / 4 * 4 & 15;

    if (k->format == TERN_FORMAT_Q5_K)
        return nibble | (codes[256 + byte] >> col / 4 & 1) << 4;
    if (k->format == TERN_FORMAT_Q6_K)
        return nibble | (codes[256 + col / 16 * 64 + byte] >> col % 16 / 4 * 2 & 3) << 4;
    return nibble;
}

/* Compares row r of a packed super-block with its block of the file, or with zeros if that is
 * NULL. */
static void check_super(const super_case *k, const uint8_t *super, size_t r, const uint8_t *block) {
    for (size_t f = 0; f < k->head_bytes / 32; f++) {
        const uint8_t *half = super + 32 * f + 2 * r;
        assert_int_equal(half[0] | half[1] << 8, block != NULL ? file_half(k, block, f) : 0);
    }
    for (size_t s = 0; s < 8; s++)
        for (size_t which = 0; which < k->scales; which++)
            assert_int_equal(super[k->head_bytes + s * k->sub_bytes + 16 * which + r],
                             block != NULL ? file_scale(k, block, s, which) : 0);
    for (size_t e = 0; e < 256; e++)
        if (packed_code(k, super, r, e) != (block != NULL ? file_code(k, block, e) : 0))
            check_fail("row %zu of a group, column %zu: code %d", r, e,
                       packed_code(k, super, r, e));
}

static void check_picture(const super_case *k, const matmul_case *c) {
    const uint8_t *file = c->file.data;
    const size_t supers = c->cols / 256;

    assert_int_equal(c->packed.bytes,
                     (c->rows + 15) / 16 * supers * (k->head_bytes + 8 * k->sub_bytes));
    for (size_t row = 0; row < (c->rows + 15) / 16 * 16; row++)
        for (size_t b = 0; b < supers; b++)
            check_super(k, packed_super(k, &c->matrix, row, b), row % 16,
                        row < c->rows ? file + (row * supers + b) * k->file_bytes : NULL);
}

static void check_round_trip(const matmul_case *c) {
    check_buffer back = check_buffer_new(c->file.bytes, 1, CHECK_END);
    tern_error err = {0};

    assert_int_equal(tern_unpack(&c->matrix, back.data, &err), TERN_OK);
    check_bytes("unpacked", c->file.data, back.data, c->file.bytes);
    check_buffer_free(&back);
}

static void test_pictures(void **state) {
    static const size_t rows[] = {1, 2, 15, 16, 17, 33};
    check_rng rng = {21};

    (void)state;
    for (size_t k = 0; k < CASES; k++)
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
            for (size_t cols = 256; cols <= 768; cols += 256) {
                check_case("%s, %zu x %zu", tern_format_describe(cases[k].format)->name, rows[i],
                           cols);
                matmul_case c =
                    case_new(cases[k].format, rows[i], cols, 1, CASE_RANDOM, CHECK_END, &rng);
                assert_int_equal(c.matrix.layout, cases[k].layout);
                check_picture(&cases[k], &c);
                check_round_trip(&c);
                case_free(&c);
            }
}

/* ---- worked bytes of docs/formats.md --------------------------------------------------------- */

/* Packs row 1 of two rows. Row 0 is zero. */
static void pack_second(const super_case *k, const uint8_t *block, uint8_t *packed) {
    uint8_t file[2 * 210] = {0};

    memcpy(file + k->file_bytes, block, k->file_bytes);
    assert_int_equal(tern_pack_rows(k->format, file, 2, 256, k->layout, 0, 2, packed, NULL),
                     TERN_OK);
}

/* d = 1, dmin = -0.5; sub-block 5 has scale 0x25 and minimum 0x1a; its columns 1 and 6. */
static void test_worked_minima(void **state) {
    _Alignas(64) uint8_t packed[64 + 8 * 352];
    uint8_t block[176] = {0x00, 0x3c, 0x00, 0xb8};

    (void)state;
    block[4 + 1] = 0x80; /* upper bits of scale 5: 0x25 = 2 * 16 + 5 */
    block[4 + 5] = 0x40; /* upper bits of minimum 5: 0x1a = 16 + 10 */
    block[4 + 9] = 0xa5;
    block[16 + 64 + 1] = 0x70; /* sub-blocks 4 and 5 share 32 bytes: column 1 of 5 is 7 */
    block[16 + 64 + 6] = 0x90;
    pack_second(&cases[0], block, packed);
    assert_memory_equal(packed + 2, "\x00\x3c", 2);
    assert_memory_equal(packed + 32 + 2, "\x00\xb8", 2);
    const uint8_t *sub = packed + 64 + 5 * 288;
    assert_int_equal(sub[1], 0x25);
    assert_int_equal(sub[16 + 1], 0x1a);
    assert_memory_equal(sub + 32 + 4, "\x00\x07\x90\x00", 4);

    memmove(block + 48, block + 16, 128); /* the same in Q5_K, with the fifth bit of column 6 */
    memset(block + 16, 0, 32);
    block[16 + 6] = 1 << 5;
    pack_second(&cases[1], block, packed);
    sub = packed + 64 + 5 * 352;
    assert_int_equal(sub[1], 0x25);
    assert_int_equal(sub[16 + 1], 0x1a);
    assert_memory_equal(sub + 32 + 4, "\x00\x07\x90\x00", 4);
    assert_memory_equal(sub + 32 + 256 + 4, "\x00\x00\x02\x00", 4);
}

/* d = 1; sub-block 6 is quarter 2 of the second half: scales -128 and 3; columns 1 and 22. */
static void test_worked_q6_k(void **state) {
    _Alignas(64) uint8_t packed[32 + 8 * 416];
    uint8_t block[210] = {0};

    (void)state;
    block[64 + 1] = 0x70;        /* column 1: 7 */
    block[64 + 22] = 0x90;       /* column 22: 9 */
    block[128 + 32 + 1] = 0x20;  /* bits 5:4 are those of quarter 2: 2, so 0x27 */
    block[128 + 32 + 22] = 0x30; /* 3, so 0x39 */
    block[192 + 12] = 0x80;
    block[192 + 13] = 3;
    block[209] = 0x3c;
    pack_second(&cases[2], block, packed);
    assert_memory_equal(packed + 2, "\x00\x3c", 2);
    const uint8_t *sub = packed + 32 + 6 * 416;
    assert_int_equal(sub[1], 0x80);
    assert_int_equal(sub[16 + 1], 3);
    assert_memory_equal(sub + 32 + 4, "\x00\x07\x00\x00", 4);
    assert_memory_equal(sub + 32 + 2 * 64 + 4, "\x00\x00\x90\x00", 4); /* 22 = 8 * 2 + 4 + 2 */
    assert_memory_equal(sub + 32 + 256 + 4, "\x00\x02\x00\x00", 4);
    assert_memory_equal(sub + 32 + 320 + 4, "\x00\x00\x0c\x00", 4); /* plane 1 of columns 16.. */
}

/* d = 1; sub-block 5 is field 1 of the second half: scales -31 and 3, codes 6 and 1 of columns 1
 * and 22. */
static void test_worked_q3_k(void **state) {
    _Alignas(64) uint8_t packed[32 + 8 * 224];
    uint8_t block[110] = {0};

    (void)state;
    block[1] = 0x20;           /* column 1: third bit of sub-block 5 */
    block[32 + 32 + 1] = 0x08; /* column 1: 2, so 6 */
    block[32 + 32 + 22] = 0x04;
    block[96 + 2] = 0x10; /* run 10: 1 */
    block[96 + 3] = 0x30; /* run 11: 3, and 2 above it */
    block[104 + 3] = 0x20;
    block[109] = 0x3c;
    pack_second(&cases[3], block, packed);
    assert_memory_equal(packed + 2, "\x00\x3c", 2);
    const uint8_t *sub = packed + 32 + 5 * 224;
    assert_int_equal((int8_t)sub[1], 1 - 32);
    assert_int_equal((int8_t)sub[16 + 1], 3 + 32 - 32);
    assert_memory_equal(sub + 32 + 4, "\x00\x02\x00\x00", 4);
    assert_memory_equal(sub + 32 + 64 + 4, "\x00\x00\x04\x00", 4); /* plane 1 of columns 16 .. */
    assert_memory_equal(sub + 32 + 128 + 4, "\x00\x01\x00\x00", 4);
}

/* d = 1, dmin = -0.5; scales 5 and minima 3 of run 10, 15 and 1 of run 11, code 2 of column 22. */
static void test_worked_q2_k(void **state) {
    _Alignas(64) uint8_t packed[64 + 8 * 160];
    uint8_t block[84] = {0};

    (void)state;
    block[10] = 0x35;
    block[11] = 0x1f;
    block[16 + 32 + 22] = 0x08;
    block[81] = 0x3c;
    block[83] = 0xb8;
    pack_second(&cases[4], block, packed);
    assert_memory_equal(packed + 2, "\x00\x3c", 2);
    assert_memory_equal(packed + 34, "\x00\xb8", 2);
    const uint8_t *sub = packed + 64 + 5 * 160;
    assert_int_equal(sub[1], 0x35);
    assert_int_equal(sub[16 + 1], 0x1f);
    assert_memory_equal(sub + 32 + 64 + 4, "\x00\x00\x08\x00", 4);
}

/* d = 1; scale 5 of sub-block 5 has 4 below and 2 above, less 32; columns 1 and 22. */
static void test_worked_iq4_xs(void **state) {
    _Alignas(64) uint8_t packed[32 + 8 * 272];
    uint8_t block[136] = {0};

    (void)state;
    block[1] = 0x3c;
    block[3] = 0x08; /* bits 11:10 */
    block[4 + 2] = 0x40;
    block[8 + 5 * 16 + 1] = 0x07;
    block[8 + 5 * 16 + 6] = 0x90;
    pack_second(&cases[5], block, packed);
    assert_memory_equal(packed + 2, "\x00\x3c", 2);
    const uint8_t *sub = packed + 32 + 5 * 272;
    assert_int_equal(sub[1], 4);
    assert_memory_equal(sub + 16 + 4, "\x00\x07\x00\x00", 4);
    assert_memory_equal(sub + 16 + 2 * 64 + 4, "\x00\x00\x90\x00", 4);
}

/* ---- parts of codes.h ------------------------------------------------------------------------ */

/* Any eight scales and minima survive the 12 bytes. */
static void test_scales(void **state) {
    check_rng rng = {22};
    uint8_t scale[8], min[8], packed[12];

    (void)state;
    for (int n = 0; n < 200; n++) {
        for (size_t s = 0; s < 8; s++) {
            scale[s] = (uint8_t)check_below(&rng, 64);
            min[s] = (uint8_t)check_below(&rng, 64);
        }
        tern_k_put_scales(scale, min, packed);
        for (size_t s = 0; s < 8; s++) {
            assert_int_equal(tern_k_scale(packed, s), scale[s]);
            assert_int_equal(tern_k_min(packed, s), min[s]);
        }
    }
}

static void test_refused(void **state) {
    uint64_t bytes;

    (void)state;
    for (size_t k = 0; k < CASES; k++) {
        assert_int_equal(tern_format_bytes(cases[k].format, 3, 512, &bytes), TERN_OK);
        assert_int_equal(bytes, 6 * cases[k].file_bytes);
        assert_int_equal(tern_format_bytes(cases[k].format, 4, 128, &bytes), TERN_ERR_TENSOR_SHAPE);
        assert_int_equal(tern_packed_bytes(cases[k].layout, 16, SIZE_MAX), 0);
        assert_int_equal(tern_packed_bytes(cases[k].layout, 17, 512),
                         2 * 2 * (cases[k].head_bytes + 8 * cases[k].sub_bytes));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pictures),    cmocka_unit_test(test_worked_minima),
        cmocka_unit_test(test_worked_q6_k), cmocka_unit_test(test_worked_q3_k),
        cmocka_unit_test(test_worked_q2_k), cmocka_unit_test(test_worked_iq4_xs),
        cmocka_unit_test(test_scales),      cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests_name("K-quants, packed", tests, NULL, NULL);
}
