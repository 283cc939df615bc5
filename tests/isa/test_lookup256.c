/* SPDX-License-Identifier: Apache-2.0 */
/* vb_lookup256: every byte looked up, in every place of a vector, in a table without order. */
#include <stdio.h>

#include "dispatch/cpu.h"
#include "tests/check.h"
#include "tests/isa/avx512vbmi.h"
#include "tests/table.h"

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

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_every_byte)};
    if ((TERN_CPU_MASK(AVX512BW) & ~tern_cpu_features()) != 0 ||
        (TERN_CPU_MASK(AVX512VBMI) & ~tern_cpu_features()) != 0) {
        printf("skipped: this processor lacks AVX512VBMI\n");
        return TABLE_SKIPPED;
    }
    return cmocka_run_group_tests_name("byte tables", tests, NULL, NULL);
}
