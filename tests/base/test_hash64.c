/* SPDX-License-Identifier: Apache-2.0 */
/* XXH64: values of other implementations, and input added in pieces. */
#include "base/hash64.h"

#include "tests/support/check.h"

/* From python-xxhash 4.1.0, xxh64_intdigest: the empty input, text, and the bytes 0, 1, 2 ... n -
 * 1. */
static void test_known_values(void **state) {
    static const struct {
        size_t n;
        uint64_t hash;
    } counted[] = {{4, UINT64_C(0xffced8604453cc1e)},  {7, UINT64_C(0x14cc643f630c72d2)},
                   {8, UINT64_C(0x884a173614b81b8d)},  {31, UINT64_C(0xc346d2b59b4d8ee1)},
                   {32, UINT64_C(0xcbf59c5116ff32b4)}, {33, UINT64_C(0x0c535d1acafb8ead)},
                   {44, UINT64_C(0xa733d156db2bb292)}, {63, UINT64_C(0xe26aa9e2a95f8e4f)},
                   {64, UINT64_C(0xf7c67301db6713f0)}, {1000, UINT64_C(0x6ef436b00eba4078)}};
    uint8_t bytes[1024];
    (void)state;
    assert_int_equal(tern_hash64_of("", 0), UINT64_C(0xef46db3751d8e999));
    assert_int_equal(tern_hash64_of("a", 1), UINT64_C(0xd24ec4f1a98c6e5b));
    assert_int_equal(tern_hash64_of("abc", 3), UINT64_C(0x44bc2cf5ad770999));
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)i;
    for (size_t i = 0; i < sizeof counted / sizeof *counted; i++) {
        check_case("%zu bytes", counted[i].n);
        assert_true(counted[i].n <= sizeof bytes);
        assert_int_equal(tern_hash64_of(bytes, counted[i].n), counted[i].hash);
    }
}

static void test_pieces(void **state) {
    uint8_t bytes[200];
    check_rng rng = {3};
    (void)state;
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)check_random(&rng);
    for (int round = 0; round < 500; round++) {
        tern_hash64 h;
        const size_t n = check_below(&rng, sizeof bytes + 1);
        tern_hash64_start(&h);
        for (size_t at = 0; at < n;) {
            const size_t piece = check_below(&rng, (uint32_t)(n - at) + 1);
            tern_hash64_add(&h, bytes + at, piece);
            (void)tern_hash64_value(&h); /* reading the value changes nothing */
            at += piece;
        }
        assert_int_equal(tern_hash64_value(&h), tern_hash64_of(bytes, n));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_known_values),
        cmocka_unit_test(test_pieces),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
