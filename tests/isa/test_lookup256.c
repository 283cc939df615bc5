/* SPDX-License-Identifier: Apache-2.0 */
/* vb_lookup256: every byte looked up, in every position of a vector, in an unordered table; and
 * vb_trit, which is built on it. */
#include <stdio.h>

#include "dispatch/cpu.h"
#include "tests/isa/avx512vbmi.h"
#include "tests/kernels/table.h"
#include "tests/support/check.h"

static void test_every_byte(void **state) {
    check_rng rng = {256};
    uint8_t table[256];
    uint8_t index[64];
    uint8_t out[64];
    uint8_t want[64];

    (void)state;
    for (int i = 0; i < 256; i++)
        table[i] = (uint8_t)check_random(&rng);
    for (int first = 0; first < 256; first++) {
        check_case("indices from %d", first);
        for (int i = 0; i < 64; i++) {
            index[i] = (uint8_t)(first + 37 * i);
            want[i] = table[index[i]];
        }
        isa_lookup256(table, index, out);
        check_bytes("out", want, out, sizeof out);
    }
}

/* Every byte that encodes five digits. With a wrong digit, kernels would not even run
 * (docs/architecture.md, self-defence). */
static void test_every_digit(void **state) {
    static const int powers[] = {81, 27, 9, 3, 1};
    uint8_t codes[64];
    uint8_t digits[5][64];

    (void)state;
    for (int first = 0; first < 243; first++) {
        check_case("from %d on", first);
        for (int i = 0; i < 64; i++)
            codes[i] = (uint8_t)((256 * ((first + i) % 243) + 242) / 243 - 128);
        isa_trits(codes, digits);
        for (int n = 0; n < 5; n++)
            for (int i = 0; i < 64; i++)
                assert_int_equal(digits[n][i], (first + i) % 243 / powers[n] % 3);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_every_byte), cmocka_unit_test(test_every_digit)};
    if ((TERN_CPU_MASK(AVX512BW) & ~tern_cpu_features()) != 0 ||
        ((TERN_CPU_MASK(AVX512VBMI) | TERN_CPU_MASK(GFNI)) & ~tern_cpu_features()) != 0) {
        printf("skipped: this processor lacks AVX512VBMI or GFNI\n");
        return TABLE_SKIPPED;
    }
    return cmocka_run_group_tests_name("byte tables", tests, NULL, NULL);
}
