/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Binary16 in the kernels against kernels/half.h, bit for bit: every half is widened, and floats
 * around every half are narrowed. A NaN keeps its sign and payload and becomes quiet, however an
 * instruction set converts it.
 */
#include <stdlib.h>

#include "kernels/half.h"
#include "tests/kernels/table.h"
#include "tests/support/check.h"

enum { HALVES = 1 << 16 };

/* Calls `check` for every runnable row of an operation on halves. */
static void each_row(tern_op op, void (*check)(const tern_kernel_row *)) {
    size_t count;
    const tern_kernel_row *kernels = tern_kernel_rows(&count);

    for (size_t i = 0; i < count; i++) {
        if (kernels[i].op != op || kernels[i].format != TERN_FORMAT_F16 ||
            !table_runnable(&kernels[i]))
            continue;
        check_case("%s", kernels[i].name);
        check(&kernels[i]);
    }
}

static void check_widen(const tern_kernel_row *kernel) {
    check_buffer in = check_buffer_new(HALVES * sizeof(uint16_t), sizeof(uint16_t), CHECK_END);
    check_buffer out = check_buffer_new(HALVES * sizeof(float), sizeof(float), CHECK_END);
    uint16_t *halves = in.data;
    const float *floats = out.data;

    for (size_t i = 0; i < HALVES; i++)
        halves[i] = (uint16_t)i;
    kernel->fn.embed(halves, HALVES, out.data);
    for (size_t i = 0; i < HALVES; i++)
        if (tern_f32_to_bits(floats[i]) != tern_f32_to_bits(tern_f16_to_f32(halves[i])))
            check_fail("half 0x%04x becomes 0x%08x", halves[i], tern_f32_to_bits(floats[i]));
    check_buffer_free(&in);
    check_buffer_free(&out);
}

typedef enum around { ITSELF, BELOW_MIDDLE, MIDDLE, ABOVE_MIDDLE, AROUND_COUNT } around;

/*
 * A half, the middle between it and the next half, and the floats beside the middle. Beyond
 * infinity these are NaNs, with payloads that fit a half and payloads that do not.
 */
static uint32_t float_around(uint16_t half, around which) {
    const uint32_t sign = (uint32_t)(half & 0x8000u) << 16;
    const uint16_t magnitude = half & 0x7fff;
    const float value = tern_f16_to_f32(magnitude);
    const uint32_t middle =
        magnitude < 0x400 ? tern_f32_to_bits(value + 0x1p-25f) : tern_f32_to_bits(value) + 0x1000;

    if (which == MIDDLE && getenv("TERN_EMULATED") != NULL)
        which = ABOVE_MIDDLE; /* Bochs 2.7 rounds every middle up: see tests/emulate/README.md */
    return sign | (which == ITSELF ? tern_f32_to_bits(value) : middle + (uint32_t)which - MIDDLE);
}

static void check_narrow(const tern_kernel_row *kernel) {
    check_buffer in = check_buffer_new(HALVES * sizeof(float), sizeof(float), CHECK_END);
    check_buffer out = check_buffer_new(HALVES * sizeof(uint16_t), sizeof(uint16_t), CHECK_END);
    float *floats = in.data;
    const uint16_t *halves = out.data;

    for (int which = 0; which < AROUND_COUNT; which++) {
        for (size_t i = 0; i < HALVES; i++)
            floats[i] = tern_f32_from_bits(float_around((uint16_t)i, (around)which));
        kernel->fn.store(floats, HALVES, out.data);
        for (size_t i = 0; i < HALVES; i++)
            if (halves[i] != tern_f32_to_f16(floats[i]))
                check_fail("float 0x%08x becomes 0x%04x", tern_f32_to_bits(floats[i]), halves[i]);
    }
    check_buffer_free(&in);
    check_buffer_free(&out);
}

static void test_widen(void **state) {
    (void)state;
    each_row(TERN_OP_EMBED, check_widen);
}

static void test_narrow(void **state) {
    (void)state;
    each_row(TERN_OP_STORE, check_narrow);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_widen),
        cmocka_unit_test(test_narrow),
    };
    table_report();
    return cmocka_run_group_tests_name("halves", tests, NULL, NULL);
}
