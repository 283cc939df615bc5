/* SPDX-License-Identifier: Apache-2.0 */
/* The worked bytes of docs/formats.md. Those of K-quants are in test_pack_super.c. */

#include <string.h>

#include "kernels/trits.h"
#include "tests/kernels/matmul_case.h"

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

/* Row 1 of INT8, INT4 and IQ2_S matrices: one code, its scale and its zero point are in their
 * places. */
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
    assert_int_equal(packed[32 + 1], 0x21);
    assert_int_equal(packed[48 + 4], 0xfd);     /* columns 0, 4, ..: codes 1 3 3 3, -25 8 8 8 */
    assert_int_equal(packed[48 + 4 + 2], 0xfc); /* columns 2, 6, ..: codes 4 3 3 3, 25 8 8 8 */
    assert_int_equal(packed[48 + 4 + 3], 0xfb); /* columns 3, 7, ..: codes 3 2 3 3, 8 -8 8 8 */
    assert_int_equal(packed[48 + 2 * 64 + 4 + 2], 0x01); /* the third bit of column 2 alone */
}

/* Row 1 of MXFP4 and NVFP4 matrices: scales, and codes of the columns 5 and 21. */
static void test_worked_fp4(void **state) {
    _Alignas(64) uint8_t packed[2 * 288];
    uint8_t file[2 * 36] = {0}, back[2 * 36];

    (void)state;
    file[17] = 0x85; /* MXFP4, row 1: 2^5 */
    file[18 + 5] = 0xa2;
    assert_int_equal(
        tern_pack_rows(TERN_FORMAT_MXFP4, file, 2, 32, TERN_LAYOUT_MXFP4R16, 0, 2, packed, NULL),
        TERN_OK);
    assert_int_equal(packed[1], 0x85);
    assert_int_equal(packed[16 + 4 + 1], 0x20);
    assert_int_equal(packed[16 + 2 * 64 + 4 + 1], 0xa0);

    memset(file, 0, sizeof file);
    memcpy(file + 36, "\x38\x7f\xff\xb8", 4); /* NVFP4, row 1: 1, not a number, 480, -1 */
    file[40 + 5] = 0x02;                      /* of run 0: columns 5 and 13 */
    file[48 + 5] = 0xa0;                      /* of run 1: columns 21 and 29 */
    assert_int_equal(
        tern_pack_rows(TERN_FORMAT_NVFP4, file, 2, 64, TERN_LAYOUT_NVFP4R16, 0, 2, packed, NULL),
        TERN_OK);
    assert_int_equal(packed[1], 0x38);
    assert_int_equal(packed[16 + 1], 0);
    assert_int_equal(packed[288 + 1], 0x7f);
    assert_int_equal(packed[288 + 16 + 1], 0x38);
    assert_int_equal(packed[32 + 4 + 1], 0x20);          /* chunk 0: 5 = 4 + 1, high */
    assert_int_equal(packed[32 + 3 * 64 + 4 + 1], 0xa0); /* chunk 3: 29 = 24 + 4 + 1 */
    const tern_matrix m = {TERN_FORMAT_NVFP4, TERN_LAYOUT_NVFP4R16, 2, 64, 1.0f, NULL, packed};
    assert_int_equal(tern_unpack(&m, back, NULL), TERN_OK);
    memcpy(file + 36, "\x38\x00\x7f\x38",
           4); /* the same numbers as writers have them; 480 has no other form */
    assert_memory_equal(back, file, sizeof file);
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

/* A matrix of zeros, except for four weights of row 0 in columns 0, 4, 16 and 17. */
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
    assert_int_equal(
        tern_pack_rows(TERN_FORMAT_I2_S, file, 4, 128, TERN_LAYOUT_T5BR16, 0, 4, packed, NULL),
        TERN_OK);
    assert_int_equal(packed[0], 0x0d);
    assert_int_equal(packed[1], 0x0e);
    assert_int_equal(packed[2], 0x00);
    assert_int_equal(packed[4], 0x00);
}

/* Every group of five codes as a byte of a base-3 layout, in each of 16 rows. Chunk c of row r
 * holds v = 4c + r and so on. */
enum { BASE3_COLS = 1280, BASE3_CHUNKS = BASE3_COLS / 20 };

static void pack_every_byte(tern_layout layout, uint8_t packed[BASE3_CHUNKS * 64]) {
    static const unsigned power[] = {81, 27, 9, 3, 1};
    static uint8_t file[16 * BASE3_COLS / 4 + 32];

    memset(file, 0, sizeof file);
    for (size_t r = 0; r < 16; r++)
        for (size_t k = 0; k < BASE3_COLS; k++) {
            const size_t v = (k / 20 * 4 + k % 4 + r) % 243, e = r * BASE3_COLS + k;
            const unsigned code = (unsigned)v / power[k % 20 / 4] % 3;
            file[e / 128 * 32 + e % 32] |= (uint8_t)(code << (6 - 2 * (e % 128 / 32)));
        }
    assert_int_equal(
        tern_pack_rows(TERN_FORMAT_I2_S, file, 16, BASE3_COLS, layout, 0, 16, packed, NULL),
        TERN_OK);
}

static void test_every_base3_byte(void **state) {
    static _Alignas(64) uint8_t packed[BASE3_CHUNKS * 64];

    (void)state;
    pack_every_byte(TERN_LAYOUT_T5R16, packed);
    for (size_t r = 0; r < 16; r++)
        for (size_t i = 0; i < 4 * BASE3_CHUNKS; i++) {
            const unsigned v = (unsigned)(i + r) % 243;
            assert_int_equal(packed[i / 4 * 64 + 4 * r + i % 4],
                             (uint8_t)((256 * v + 242) / 243 - 128));
        }
}

/* Each code depends on six bits of a byte: bits 0 to 5, 2 to 7, or 0 to 3 with 6 and 7. */
static void test_every_table_byte(void **state) {
    static _Alignas(64) uint8_t packed[BASE3_CHUNKS * 64];
    uint8_t code[5][256];
    bool seen[256] = {false};

    (void)state;
    memset(code, 3, sizeof code);
    pack_every_byte(TERN_LAYOUT_T5BR16, packed);
    for (size_t r = 0; r < 16; r++)
        for (size_t i = 0; i < 4 * BASE3_CHUNKS; i++) {
            const unsigned v = (unsigned)(i + r) % 243, byte = packed[i / 4 * 64 + 4 * r + i % 4];
            const unsigned codes[] = {v / 81, v / 27 % 3, v / 9 % 3, v / 3 % 3, v % 3};
            const unsigned bits[] = {byte & 0x3f, byte & 0x3f, byte & 0xfc, byte & 0xfc,
                                     byte & 0xcf};
            seen[byte] = true;
            for (int n = 0; n < 5; n++) {
                assert_true(code[n][bits[n]] == 3 || code[n][bits[n]] == codes[n]);
                code[n][bits[n]] = (uint8_t)codes[n];
                assert_int_equal(tern_trits_digit(byte, n), codes[n]);
            }
        }
    size_t bytes = 0;
    for (size_t byte = 0; byte < 256; byte++)
        bytes += seen[byte];
    assert_int_equal(bytes, 243);
    for (int n = 0; n < 5; n++)
        assert_int_equal(tern_trits_digit(0, n), 1); /* padding */
}

/* TQ blocks with codes 2 0 1 1 2 in elements 0, 32, 64, 96, 128, and 2 0 1 1 in 240, 244 ... */
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

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_worked_ternary),   cmocka_unit_test(test_worked_lookup),
        cmocka_unit_test(test_worked_fp4),       cmocka_unit_test(test_worked_int),
        cmocka_unit_test(test_worked_base3),     cmocka_unit_test(test_every_base3_byte),
        cmocka_unit_test(test_every_table_byte), cmocka_unit_test(test_worked_tq),
        cmocka_unit_test(test_worked_q4_0),      cmocka_unit_test(test_worked_q4_1),
        cmocka_unit_test(test_worked_q5_0),      cmocka_unit_test(test_worked_q8_0),
    };
    return cmocka_run_group_tests_name("worked bytes", tests, NULL, NULL);
}
