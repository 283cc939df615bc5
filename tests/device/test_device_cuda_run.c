/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every operation of the CUDA device against the reference, bit for bit. Skipped (77) where no
 * device can be opened, unless TERN_TEST_DEVICE=required. The same program runs on a real device
 * and, with TERN_CUDA_MODULE set to the emulated module, without one.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/device/device_case.h"

static device_run run;

#define ON_DEVICE(name)                                                                            \
    static void test_##name(void **state) {                                                        \
        (void)state;                                                                               \
        device_check_##name(&run);                                                                 \
    }
ON_DEVICE(copies)
ON_DEVICE(long_products)
ON_DEVICE(quantize)
ON_DEVICE(norms)
ON_DEVICE(elementwise)
ON_DEVICE(exp)
ON_DEVICE(rope)
ON_DEVICE(attend)
ON_DEVICE(attend_long)
ON_DEVICE(attend_prompt)
ON_DEVICE(pages)
ON_DEVICE(multiply)
ON_DEVICE(rounding)
ON_DEVICE(embed)
ON_DEVICE(store)
ON_DEVICE(heads)
ON_DEVICE(watch) /* TERN_OP_WATCH and TERN_OP_RMSNORM_TOKEN have rows on devices only */

static void test_products(void **state) {
    (void)state;
    assert_true(device_check_products(&run) > 100);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_copies),        cmocka_unit_test(test_products),
        cmocka_unit_test(test_long_products), cmocka_unit_test(test_quantize),
        cmocka_unit_test(test_norms),         cmocka_unit_test(test_elementwise),
        cmocka_unit_test(test_exp),           cmocka_unit_test(test_rope),
        cmocka_unit_test(test_attend),        cmocka_unit_test(test_attend_long),
        cmocka_unit_test(test_attend_prompt), cmocka_unit_test(test_rounding),
        cmocka_unit_test(test_embed),         cmocka_unit_test(test_store),
        cmocka_unit_test(test_pages),         cmocka_unit_test(test_multiply),
        cmocka_unit_test(test_watch),         cmocka_unit_test(test_heads),
    };
    const char *required = getenv("TERN_TEST_DEVICE");
    tern_device *d = NULL;
    tern_error err = {0};

    if (tern_device_open("cuda", &d, &err) != TERN_OK) {
        printf("skipped: %s\n", err.message);
        return required != NULL && strcmp(required, "required") == 0 ? 1 : 77;
    }
    printf("device: %s\n", d->name);
    run = device_run_new(d);
    const int failed = cmocka_run_group_tests_name("CUDA device", tests, NULL, NULL);
    if (failed == 0) { /* a failure leaks what was allocated, so closing would complain */
        device_run_free(&run);
        tern_device_close(&d);
    }
    return failed;
}
