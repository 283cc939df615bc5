/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every kernel of the table that computes a function of each element (gates, bias with an
 * activation, tanh) against the reference, bit for bit.
 */

#include <math.h>

#include "kernels/half.h"
#include "kernels/reference.h"
#include "tests/kernels/row_trial.h"
#include "tests/kernels/table.h"

static tern_op checked; /* of the tested kernels; the reference has no row */

static void run_gate(const tern_kernel_row *kernel, const float *g, const float *u, size_t n,
                     float *y) {
    if (kernel == NULL)
        tern_ref_gate(tern_ref_activation_of(checked), g, u, n, y);
    else
        kernel->fn.gate(g, u, n, y);
}

static void run_bias(const tern_kernel_row *kernel, const float *x, const float *b, size_t n,
                     float *y) {
    if (kernel == NULL)
        tern_ref_bias(tern_ref_activation_of(checked), x, b, n, y);
    else
        kernel->fn.bias(x, b, n, y);
}

static void check_gate(trial *t) {
    trial_check_binary(t, run_gate, true);
}

static void check_bias(trial *t) {
    trial_check_binary(t, run_bias, true);
}

static void each_of(const tern_op *ops, size_t count, void (*check)(trial *)) {
    for (size_t i = 0; i < count; i++) {
        checked = ops[i];
        trial_each(ops[i], 1, check);
    }
}

static void test_gates(void **state) {
    static const tern_op ops[] = {TERN_OP_GATE_SILU, TERN_OP_GATE_RELU2, TERN_OP_GATE_GELU,
                                  TERN_OP_GATE_QUICK};
    (void)state;
    each_of(ops, sizeof ops / sizeof *ops, check_gate);
}

static void test_bias(void **state) {
    static const tern_op ops[] = {TERN_OP_BIAS_RELU, TERN_OP_BIAS_RELU2, TERN_OP_BIAS_SILU,
                                  TERN_OP_BIAS_GELU, TERN_OP_BIAS_TANH};
    (void)state;
    each_of(ops, sizeof ops / sizeof *ops, check_bias);
}

static void check_tanh(trial *t) {
    check_buffer x = trial_floats(t->n, t->kind, t->place, &t->rng);
    check_buffer want = check_buffer_new(x.bytes, sizeof(float), t->place);
    check_buffer y = check_buffer_new(x.bytes, sizeof(float), t->place);

    for (size_t i = 0; i < t->n; i++)
        ((float *)want.data)[i] = tern_ref_tanh(((float *)x.data)[i]);
    t->kernel->fn.tanh(x.data, t->n, y.data);
    check_floats("y", want.data, y.data, t->n);
    t->kernel->fn.tanh(x.data, t->n, x.data);
    check_floats("y in place", want.data, x.data, t->n);
    check_buffer_free(&x);
    check_buffer_free(&want);
    check_buffer_free(&y);
}

static void test_tanh(void **state) {
    (void)state;
    trial_each(TERN_OP_TANH, 1, check_tanh);
}

/* exp densely over its whole range: a constant that is wrong in its last bits shows here. */
static void test_exp_sweep(void **state) {
    enum { POINTS = 1 << 17 };
    size_t count;
    const tern_kernel_row *kernels = tern_kernel_rows(&count);
    check_buffer x = check_buffer_new(POINTS * sizeof(float), sizeof(float), CHECK_END);
    check_buffer up = trial_floats(POINTS, TRIAL_CONSTANT, CHECK_END, NULL);
    check_buffer want = check_buffer_new(x.bytes, sizeof(float), CHECK_END);
    check_buffer y = check_buffer_new(x.bytes, sizeof(float), CHECK_END);

    (void)state;
    for (size_t i = 0; i < POINTS; i++)
        ((float *)x.data)[i] = -90.0f + (float)i * (195.0f / POINTS);
    tern_ref_gate(TERN_REF_SILU, x.data, up.data, POINTS, want.data);
    for (size_t r = 0; r < count; r++) {
        if (kernels[r].op != TERN_OP_GATE_SILU || !table_runnable(&kernels[r]))
            continue;
        check_case("%s, sweep", kernels[r].name);
        kernels[r].fn.gate(x.data, up.data, POINTS, y.data);
        check_floats("y", want.data, y.data, POINTS);
    }
    check_buffer_free(&x);
    check_buffer_free(&up);
    check_buffer_free(&want);
    check_buffer_free(&y);
}

/* tanh at every 5003rd float of either sign: a wrong constant or clamp shows here. */
static void test_tanh_sweep(void **state) {
    enum { STEP = 5003, POINTS = 0x7f800000 / STEP * 2 };
    size_t count;
    const tern_kernel_row *kernels = tern_kernel_rows(&count);
    check_buffer x = check_buffer_new(POINTS * sizeof(float), sizeof(float), CHECK_END);
    check_buffer want = check_buffer_new(x.bytes, sizeof(float), CHECK_END);
    check_buffer y = check_buffer_new(x.bytes, sizeof(float), CHECK_END);

    (void)state;
    for (uint32_t i = 0; i < POINTS; i++) {
        const float value = tern_f32_from_bits(i / 2 * STEP);
        ((float *)x.data)[i] = i % 2 ? -value : value;
        ((float *)want.data)[i] = tern_ref_tanh(((float *)x.data)[i]);
    }
    for (size_t r = 0; r < count; r++) {
        if (kernels[r].op != TERN_OP_TANH || !table_runnable(&kernels[r]))
            continue;
        check_case("%s, sweep", kernels[r].name);
        kernels[r].fn.tanh(x.data, POINTS, y.data);
        check_floats("y", want.data, y.data, POINTS);
    }
    check_buffer_free(&x);
    check_buffer_free(&want);
    check_buffer_free(&y);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gates),      cmocka_unit_test(test_bias),
        cmocka_unit_test(test_tanh),       cmocka_unit_test(test_exp_sweep),
        cmocka_unit_test(test_tanh_sweep),
    };
    table_report();
    return cmocka_run_group_tests_name("functions of an element", tests, NULL, NULL);
}
