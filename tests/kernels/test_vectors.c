/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Published vectors of the file formats and of the ternary product, through the reference,
 * dequantization and packing.
 */

#include <string.h>

#include "kernels/half.h"
#include "kernels/reference.h"
#include "kernels/ternary.h"
#include "tests/support/check.h"

/* ---- vectors: a 32-bit linear congruential generator --------------------------------------- */

static uint32_t lcg(uint32_t *state) {
    *state = (*state * 1103515245u + 12345u) & 0x7fffffffu;
    return *state >> 16;
}

static void ternary_weights(int8_t *w, size_t n) {
    uint32_t state = 12345;
    for (size_t i = 0; i < n; i++)
        w[i] = (int8_t)((int)(lcg(&state) % 3) - 1);
}

static void activation_codes(int8_t *q, size_t n) {
    uint32_t state = 54321;
    for (size_t i = 0; i < n; i++) {
        const int code = (int)(lcg(&state) & 255) - 128;
        q[i] = (int8_t)(code == -128 ? -127 : code);
    }
}

/* The places of a block's f16 fields; the same place twice if there is one. */
static void half_places(tern_format format, size_t places[2]) {
    const bool two = format == TERN_FORMAT_Q4_1 || format == TERN_FORMAT_Q2_K ||
                     format == TERN_FORMAT_Q4_K || format == TERN_FORMAT_Q5_K;
    const bool behind = tern_format_is_ternary(format) || format == TERN_FORMAT_Q2_K ||
                        format == TERN_FORMAT_Q3_K || format == TERN_FORMAT_Q6_K ||
                        format == TERN_FORMAT_PTQ1_0 || format == TERN_FORMAT_STQ1_0;
    places[0] = behind ? tern_format_describe(format)->block_bytes - (two ? 4u : 2u) : 0;
    places[1] = places[0] + (two ? 2 : 0);
}

/* Four blocks of random bytes. Their scales are 1, 0.1 or so, -0.5 and the smallest denormal. */
static void random_blocks(tern_format format, uint8_t *blocks) {
    static const uint16_t scales[] = {0x3c00, 0x2e66, 0xb800, 0x0001};
    const size_t bytes = tern_format_describe(format)->block_bytes;
    uint32_t state = 12345;
    size_t places[2];

    half_places(format, places);
    for (size_t i = 0; i < 4 * bytes; i++)
        blocks[i] = (uint8_t)(lcg(&state) & 255);
    for (size_t i = 0; i < 16 && format == TERN_FORMAT_IQ1_M; i++) { /* a scale is four nibbles */
        uint8_t *byte = &blocks[i / 4 * bytes + 49 + 2 * (i % 4)];
        *byte = (uint8_t)((*byte & 15) | (scales[i / 4] >> 4 * (i % 4) & 15) << 4);
    }
    for (size_t b = 0; b < 4 && format != TERN_FORMAT_IQ1_M; b++)
        for (size_t f = 0; f < 2; f++) {
            blocks[b * bytes + places[f]] = (uint8_t)(scales[b] & 255);
            blocks[b * bytes + places[f] + 1] = (uint8_t)(scales[b] >> 8);
        }
}

static void check_blocks(tern_format format, const float first[3], const char *hash) {
    const size_t n = 4 * (size_t)tern_format_describe(format)->block_elements;
    uint8_t blocks[4 * 210];
    float y[4 * 256];

    random_blocks(format, blocks);
    tern_ref_embed(format, blocks, n, y);
    for (int i = 0; i < 3; i++)
        assert_true(y[i] == first[i]);
    for (size_t i = 0; i < n; i++)
        y[i] += 0.0f; /* the published hash has no negative zeros */
    assert_string_equal(check_hash(y, n * sizeof *y), hash);
    tern_dequantize_row(format, blocks, n, 0, 1.0f, y);
    for (size_t i = 0; i < n; i++)
        y[i] += 0.0f;
    assert_string_equal(check_hash(y, n * sizeof *y), hash);
}

static void test_hash(void **state) {
    (void)state; /* FIPS 180-4 */
    assert_string_equal(check_hash("abc", 3), "ba7816bf8f01cfea");
    assert_string_equal(check_hash("", 0), "e3b0c44298fc1c14");
    assert_string_equal(check_hash("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 56),
                        "248d6a61d20638b8");
}

static void test_block_vectors(void **state) {
    (void)state;
    check_blocks(TERN_FORMAT_Q4_0, (const float[]){-3, 2, 7}, "57d300d4d5a74244");
    check_blocks(TERN_FORMAT_Q4_1, (const float[]){16, 14, 14}, "8707e9dfd6ce1aae");
    check_blocks(TERN_FORMAT_Q5_0, (const float[]){13, -6, 10}, "1a93e284115ccee8");
    check_blocks(TERN_FORMAT_Q8_0, (const float[]){101, -86, 31}, "79a0957593836c3e");
    check_blocks(TERN_FORMAT_IQ2_S, (const float[]){40.625f, -69.875f, 40.625f},
                 "9eddf1d055eab480");
    check_blocks(TERN_FORMAT_IQ2_XXS, (const float[]){-29, 29, -90.625f}, "20d878d2b210094b");
    check_blocks(TERN_FORMAT_IQ2_XS, (const float[]){-17, 17, -53.125f}, "f03d34b9ae9b3d7a");
    check_blocks(TERN_FORMAT_IQ3_XXS, (const float[]){15, 75, 15}, "e1ada81fdd60cdec");
    check_blocks(TERN_FORMAT_IQ3_S, (const float[]){35, -7, -105}, "6de62f4d5e116215");
    check_blocks(TERN_FORMAT_IQ1_S, (const float[]){-16.875f, 13.125f, 13.125f},
                 "59cefa136c0ecd7c");
    check_blocks(TERN_FORMAT_IQ1_M, (const float[]){9.625f, -1.375f, -12.375f},
                 "f8b853bda7bd19cc");
    check_blocks(TERN_FORMAT_Q1_0, (const float[]){1, -1, 1}, "10c19fcb3a381eb4");
    check_blocks(TERN_FORMAT_Q2_0, (const float[]){0, 0, 1}, "91dab997936ba4a7");
    check_blocks(TERN_FORMAT_PQ2_0, (const float[]){0, 0, 1}, "436c83e790fec557");
    check_blocks(TERN_FORMAT_PTQ1_0, (const float[]){1, -1, 0}, "a0312a323192e463");
    check_blocks(TERN_FORMAT_STQ1_0, (const float[]){1, 1, 1}, "40e9150c24a8d159");
    check_blocks(TERN_FORMAT_TQ1_0, (const float[]){1, -1, 0}, "79d0e282b0a4fffd");
    check_blocks(TERN_FORMAT_TQ2_0, (const float[]){-1, -1, 0}, "a4ec5d25bbb2db84");
    check_blocks(TERN_FORMAT_IQ4_NL, (const float[]){-35, 25, 113}, "63db8f2be7ae0b11");
    /* These scales are 2^-128, 2^-26, 2^-128 and 2^-127. */
    check_blocks(TERN_FORMAT_MXFP4, (const float[]){-0x1p-126f, 0x1.8p-126f, -0x1p-127f},
                 "f665f4eebe2f47b1");
    check_blocks(TERN_FORMAT_NVFP4, (const float[]){0, 0, 0}, "8293ce95889142ea");
    check_blocks(TERN_FORMAT_IQ4_XS, (const float[]){-25, 35, -53}, "2ac7dfd325abb721");
    check_blocks(TERN_FORMAT_Q2_K, (const float[]){-1, -13, -1}, "fb19b482aa8cab04");
    check_blocks(TERN_FORMAT_Q3_K, (const float[]){80, 20, -40}, "7ff116cf423aa086");
    check_blocks(TERN_FORMAT_Q4_K, (const float[]){253, 346, 377}, "781a842aba8bceb4");
    check_blocks(TERN_FORMAT_Q5_K, (const float[]){625, 129, 842}, "00ab388e1b629349");
    check_blocks(TERN_FORMAT_Q6_K, (const float[]){-3024, -432, -2268}, "3f4e033b5e6ebe92");
}

enum { VECTOR_ROWS = 4, VECTOR_COLS = 256 };

/* T2R16, written directly from its picture. */
static void place_ternary(const int8_t *w, uint8_t *packed) {
    memset(packed, 0x55, VECTOR_COLS / 16 * 64);
    for (size_t r = 0; r < VECTOR_ROWS; r++)
        for (size_t k = 0; k < VECTOR_COLS; k++) {
            uint8_t *byte = packed + k / 16 * 64 + 4 * r + k % 4;
            const unsigned shift = 2 * (unsigned)(k % 16 / 4);
            *byte = (uint8_t)((*byte & ~(3u << shift)) | (unsigned)(w[r * VECTOR_COLS + k] + 1)
                                                             << shift);
        }
}

static void vector_file(uint8_t *file) {
    _Alignas(64) uint8_t packed[VECTOR_COLS / 16 * 64];
    int8_t w[VECTOR_ROWS * VECTOR_COLS];

    ternary_weights(w, sizeof w);
    place_ternary(w, packed);
    const tern_matrix m = {
        TERN_FORMAT_I2_S, TERN_LAYOUT_T2R16, VECTOR_ROWS, VECTOR_COLS, 0.75f, NULL, packed};
    assert_int_equal(tern_unpack(&m, file, NULL), TERN_OK);
}

/* The same weights as TQ blocks, one per row, from the packed form. */
static void check_tq_file(tern_format format, const char *first, const char *hash) {
    _Alignas(64) uint8_t packed[VECTOR_COLS / 16 * 64];
    uint8_t file[VECTOR_ROWS * 66];
    int8_t w[VECTOR_ROWS * VECTOR_COLS];

    ternary_weights(w, sizeof w);
    place_ternary(w, packed);
    const tern_matrix m = {format, TERN_LAYOUT_T2R16, VECTOR_ROWS, VECTOR_COLS, 0.75f, NULL,
                           packed};
    assert_int_equal(tern_unpack(&m, file, NULL), TERN_OK);
    assert_memory_equal(file, first, 8);
    assert_string_equal(
        check_hash(file, VECTOR_ROWS * (size_t)tern_format_describe(format)->block_bytes), hash);
}

static void test_tq_files(void **state) {
    (void)state;
    check_tq_file(TERN_FORMAT_TQ1_0, "\x2b\x96\x60\x2f\x65\x81\x8d\xdb", "aaa831c1b6e42bde");
    check_tq_file(TERN_FORMAT_TQ2_0, "\x54\x89\x11\x94\x51\x55\xa5\x26", "87721a04dac82e2f");
}

static void test_ternary_file(void **state) {
    uint8_t file[VECTOR_ROWS * VECTOR_COLS / 4];
    int8_t w[VECTOR_ROWS * VECTOR_COLS];

    (void)state;
    ternary_weights(w, sizeof w);
    vector_file(file);
    assert_memory_equal(file, "\x15\x62\x44\x16\x45\x55\x5a\x98", 8);
    assert_string_equal(check_hash(file, sizeof file), "1b145e38bb894280");
    const tern_ref_matrix m = {.format = TERN_FORMAT_I2_S,
                               .file = file,
                               .rows = VECTOR_ROWS,
                               .cols = VECTOR_COLS,
                               .scale = 0.75f};
    for (size_t i = 0; i < sizeof w; i++)
        assert_true(tern_ref_weight(&m, i / VECTOR_COLS, i % VECTOR_COLS) == (float)w[i]);
}

static void test_ternary_product(void **state) {
    static const uint32_t want[] = {0x3f7c1894, 0x401a20c5, 0x3f8a872c, 0x4144676d};
    uint8_t file[VECTOR_ROWS * VECTOR_COLS / 4];
    int8_t codes[VECTOR_COLS];
    int8_t q[VECTOR_COLS];
    float x[VECTOR_COLS];
    float y[VECTOR_ROWS];
    float s;
    int32_t sum;

    (void)state;
    activation_codes(codes, sizeof codes);
    for (size_t i = 0; i < VECTOR_COLS; i++)
        x[i] = (float)codes[i] * 0.013f;
    assert_int_equal(tern_f32_to_bits(x[0]), 0x3fab645a);
    tern_ref_quantize_token(x, VECTOR_COLS, q, &s, &sum);
    assert_memory_equal(q, codes, sizeof q);
    assert_int_equal(tern_f32_to_bits(s), 0x4299d89d);
    assert_int_equal(sum, -523);
    assert_string_equal(check_hash(q, sizeof q), "d5423ae2de0cc478");

    vector_file(file);
    const tern_ref_matrix m = {.format = TERN_FORMAT_I2_S,
                               .file = file,
                               .rows = VECTOR_ROWS,
                               .cols = VECTOR_COLS,
                               .scale = 0.75f};
    const tern_activations a = {
        .cols = VECTOR_COLS, .q = q, .q_stride = VECTOR_COLS, .s = &s, .sum = &sum};
    const tern_tile all = {0, 1, 0, VECTOR_ROWS};
    tern_ref_matmul(&m, &a, &all, y, VECTOR_ROWS);
    for (size_t r = 0; r < VECTOR_ROWS; r++)
        assert_int_equal(tern_f32_to_bits(y[r]), want[r]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_hash),
        cmocka_unit_test(test_block_vectors),
        cmocka_unit_test(test_ternary_file),
        cmocka_unit_test(test_tq_files),
        cmocka_unit_test(test_ternary_product),
    };
    return cmocka_run_group_tests_name("published vectors", tests, NULL, NULL);
}
