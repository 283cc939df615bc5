/* SPDX-License-Identifier: Apache-2.0 */

#include "tests/support/check.h"

#include <math.h>
#include <string.h>

#include "kernels/reference.h"
#include "tern/tern.h"

enum { POSITIONS = 5, DIM = 16 };

static void test_triangle(void **state) {
    (void)state;
    float mask[POSITIONS * POSITIONS];
    tern_causal_mask(POSITIONS, mask);
    for (int i = 0; i < POSITIONS; i++)
        for (int j = 0; j < POSITIONS; j++) {
            const float m = mask[i * POSITIONS + j];
            assert_true(j <= i ? m == 0.0f : isinf(m) && m < 0.0f);
        }
}

static void test_one_and_none(void **state) {
    (void)state;
    float mask[2] = {7.0f, 7.0f};
    tern_causal_mask(0, mask);
    assert_true(mask[0] == 7.0f);
    tern_causal_mask(1, mask);
    assert_true(mask[0] == 0.0f && mask[1] == 7.0f);
}

/* Softmax over masked scores gives the same weights as over the first i + 1 positions alone. */
static void test_agrees_with_positions(void **state) {
    (void)state;
    float mask[POSITIONS * POSITIONS];
    tern_causal_mask(POSITIONS, mask);
    for (size_t i = 0; i < POSITIONS; i++) {
        float masked[POSITIONS];
        float seen[POSITIONS];
        for (size_t j = 0; j < POSITIONS; j++) {
            seen[j] = (float)((j * 7 + i) % 5) * 0.25f;
            masked[j] = seen[j] + mask[i * POSITIONS + j];
        }
        tern_ref_softmax(masked, POSITIONS);
        tern_ref_softmax(seen, i + 1);
        for (size_t j = 0; j < POSITIONS; j++)
            assert_true(masked[j] == (j <= i ? seen[j] : 0.0f));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_triangle),
        cmocka_unit_test(test_one_and_none),
        cmocka_unit_test(test_agrees_with_positions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
