/* SPDX-License-Identifier: Apache-2.0 */
/* The bytes that the quantizers of super-blocks and of grids write, which stay what they are: also
 * those of runs of zeros, where many scales are as good, and of values that are alike. */
#include <stdlib.h>
#include <string.h>

#include "base/hash64.h"
#include "kernels/quantize_grids.h"
#include "kernels/quantize_super.h"
#include "tests/support/check.h"

enum { COUNT = 256, RUN = 16, BLOCK_BYTES = 256, BLOCKS = 48, KINDS = 6 };

static void fill(int kind, float *x, check_rng *rng) {
    for (int j = 0; j < COUNT; j++) {
        const float normal = check_normal(rng);
        const int run = j / RUN;
        switch (kind) {
        case 0:
            x[j] = normal;
            break;
        case 1:
            x[j] = run % 3 == 0 ? 0.0F : normal;
            break; /* runs of zeros */
        case 2:
            x[j] = run % 2 == 0 ? 0.5F : -0.5F;
            break; /* alike */
        case 3:
            x[j] = j % 2 == 0 ? 0.25F : -0.25F;
            break;
        case 4:
            x[j] = normal * (float)(run == 5 ? 1000 : 1);
            break; /* one run is far larger */
        default:
            x[j] = 0.0F;
        }
    }
}

static uint64_t hash_of(void (*encode)(const float *x, const float *w, uint8_t *block)) {
    tern_hash64 h;
    check_rng rng = {11};
    tern_hash64_start(&h);
    for (int i = 0; i < BLOCKS; i++) {
        float x[COUNT], w[COUNT];
        uint8_t block[BLOCK_BYTES] = {0};
        fill(i % KINDS, x, &rng);
        for (int j = 0; j < COUNT; j++)
            w[j] = (float)(1 + check_below(&rng, 8));
        encode(x, i < BLOCKS / 2 ? NULL : w, block);
        tern_hash64_add(&h, block, sizeof block);
    }
    return tern_hash64_value(&h);
}

static void test_bytes(void **state) {
    (void)state;
    assert_int_equal(hash_of(tern_encode_q4_k), UINT64_C(0x746015146fb93cdc));
    assert_int_equal(hash_of(tern_encode_q5_k), UINT64_C(0xd300a039ffc12a78));
    assert_int_equal(hash_of(tern_encode_q6_k), UINT64_C(0x643a7672448a88d5));
    assert_int_equal(hash_of(tern_encode_q2_k), UINT64_C(0x24e4ad0bda33df71));
    assert_int_equal(hash_of(tern_encode_q3_k), UINT64_C(0x83f02c725f563870));
    assert_int_equal(hash_of(tern_encode_iq4_xs), UINT64_C(0x5df204ddbce49238));
}

static uint64_t hash_of_grid(tern_format format) {
    tern_grid_search *search = malloc(sizeof *search);
    tern_hash64 h;
    check_rng rng = {12};
    assert_non_null(search);
    tern_grid_search_init(search, format);
    tern_hash64_start(&h);
    for (int i = 0; i < 2 * KINDS; i++) {
        float x[COUNT], w[COUNT];
        uint8_t block[BLOCK_BYTES] = {0};
        fill(i % KINDS, x, &rng);
        for (int j = 0; j < COUNT; j++)
            w[j] = (float)(1 + check_below(&rng, i < KINDS ? 1 : 8));
        assert_true(tern_encode_grid(search, x, w, block));
        tern_hash64_add(&h, block, sizeof block);
    }
    free(search);
    return tern_hash64_value(&h);
}

static void test_bytes_of_grids(void **state) {
    (void)state;
    assert_int_equal(hash_of_grid(TERN_FORMAT_IQ1_S), UINT64_C(0x98d0509dcfe0d57e));
    assert_int_equal(hash_of_grid(TERN_FORMAT_IQ1_M), UINT64_C(0x36594e842b0d3c86));
    assert_int_equal(hash_of_grid(TERN_FORMAT_IQ2_XXS), UINT64_C(0x3da65c93a6bc4bb7));
    assert_int_equal(hash_of_grid(TERN_FORMAT_IQ2_XS), UINT64_C(0x6b0d380320251fa9));
    assert_int_equal(hash_of_grid(TERN_FORMAT_IQ2_S), UINT64_C(0xd6b088a67baded46));
    assert_int_equal(hash_of_grid(TERN_FORMAT_IQ3_XXS), UINT64_C(0x1d1012f3b78728af));
    assert_int_equal(hash_of_grid(TERN_FORMAT_IQ3_S), UINT64_C(0x82c8d084f055250a));
}

/* Weights whose scale a half cannot hold. */
static void test_too_large(void **state) {
    static const tern_format formats[] = {
        TERN_FORMAT_IQ1_S, TERN_FORMAT_IQ1_M,   TERN_FORMAT_IQ2_XXS, TERN_FORMAT_IQ2_XS,
        TERN_FORMAT_IQ2_S, TERN_FORMAT_IQ3_XXS, TERN_FORMAT_IQ3_S};
    tern_grid_search *search = malloc(sizeof *search);
    (void)state;
    assert_non_null(search);
    for (size_t f = 0; f < sizeof formats / sizeof *formats; f++) {
        float x[COUNT], w[COUNT];
        uint8_t block[BLOCK_BYTES] = {0};
        tern_grid_search_init(search, formats[f]);
        for (int j = 0; j < COUNT; j++) {
            x[j] = j % 2 ? 1e20f : -1e20f;
            w[j] = 1.0f;
        }
        assert_false(tern_encode_grid(search, x, w, block));
    }
    free(search);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_bytes),
                                       cmocka_unit_test(test_bytes_of_grids),
                                       cmocka_unit_test(test_too_large)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
