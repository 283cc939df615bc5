/* SPDX-License-Identifier: Apache-2.0 */
/* The choice of a row's experts, and their weights. */

#include <math.h>

#include "runtime/engine/forward/experts.h"
#include "tests/support/check.h"

enum { EXPERTS = 6, USED = 3 };

static void check_choice(const tern_config *c, const float p[EXPERTS], const uint32_t *ids,
                         const float *weights) {
    uint32_t got[EXPERTS];
    float of[EXPERTS];
    tern_experts_choose(c, p, got, of);
    for (uint32_t i = 0; i < c->n_used; i++) {
        assert_int_equal(got[i], ids[i]);
        assert_true(of[i] == weights[i]);
    }
}

/* Experts come in their own order, whatever the order of their chances. */
static void test_order(void **state) {
    const tern_config c = {.n_expert = EXPERTS, .n_used = USED, .expert_scale = 1.0f};
    (void)state;
    check_choice(&c, (const float[]){0.1f, 0.3f, 0.05f, 0.2f, 0.15f, 0.2f},
                 (const uint32_t[]){1, 3, 5}, (const float[]){0.3f, 0.2f, 0.2f});
    check_choice(&c, (const float[]){0.4f, 0.1f, 0.0f, 0.0f, 0.2f, 0.3f},
                 (const uint32_t[]){0, 4, 5}, (const float[]){0.4f, 0.2f, 0.3f});
}

/* Among equal chances the first expert wins. A NaN is larger than nothing. */
static void test_equal_chances(void **state) {
    const tern_config c = {.n_expert = EXPERTS, .n_used = USED, .expert_scale = 1.0f};
    (void)state;
    check_choice(&c, (const float[]){0.1f, 0.1f, 0.1f, 0.1f, 0.1f, 0.1f},
                 (const uint32_t[]){0, 1, 2}, (const float[]){0.1f, 0.1f, 0.1f});
    check_choice(&c, (const float[]){0.1f, 0.2f, 0.1f, 0.2f, 0.1f, 0.1f},
                 (const uint32_t[]){0, 1, 3}, (const float[]){0.1f, 0.2f, 0.2f});
    uint32_t ids[EXPERTS];
    float weights[EXPERTS];
    const float nan[EXPERTS] = {NAN, NAN, NAN, NAN, NAN, NAN};
    tern_experts_choose(&c, nan, ids, weights);
    for (uint32_t i = 0; i < USED; i++)
        assert_int_equal(ids[i], i);
}

/* Divided by a sum in the order of the experts, then multiplied, exact to the bit. */
static void test_weights(void **state) {
    const tern_config c = {
        .n_expert = EXPERTS, .n_used = USED, .expert_norm = true, .expert_scale = 1.7f};
    const float p[EXPERTS] = {0x1p-24f, 0.3f, 0.0f, 0x1p-24f, 0.5f, 0.0f};
    const float sum = (p[0] + p[1]) + p[4]; /* among equal small ones, the first */
    (void)state;
    check_choice(&c, p, (const uint32_t[]){0, 1, 4},
                 (const float[]){p[0] / sum * 1.7f, p[1] / sum * 1.7f, p[4] / sum * 1.7f});
}

/* One expert, and all of them. */
static void test_ends(void **state) {
    const float p[EXPERTS] = {0.1f, 0.1f, 0.15f, 0.5f, 0.05f, 0.1f};
    tern_config c = {.n_expert = EXPERTS, .n_used = 1, .expert_norm = true, .expert_scale = 1.0f};
    (void)state;
    check_choice(&c, p, (const uint32_t[]){3}, (const float[]){1.0f});
    c.n_used = EXPERTS;
    c.expert_norm = false;
    check_choice(&c, p, (const uint32_t[]){0, 1, 2, 3, 4, 5}, p);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_order),
        cmocka_unit_test(test_equal_chances),
        cmocka_unit_test(test_weights),
        cmocka_unit_test(test_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
