/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/kernels/row_trial.h"

#include <math.h>
#include <string.h>

#include "tests/kernels/table.h"

static float special(check_rng *rng) {
    static const float values[] = {INFINITY, -INFINITY, NAN, 0.0f, 1.0f};
    const uint32_t pick = check_below(rng, 40);
    return pick < 5 ? values[pick] : check_normal(rng);
}

static float number(trial_kind kind, size_t i, check_rng *rng) {
    switch (kind) {
    case TRIAL_ANY:
        return check_any_finite(rng);
    case TRIAL_DENORMAL:
        return (float)check_below(rng, 1u << 23) * (check_below(rng, 2) ? 0x1p-149f : -0x1p-149f);
    case TRIAL_TINY:
        return check_normal(rng) * 5e-6f;
    case TRIAL_TIES:
        return i == 0 ? 127.0f : 0.5f * (float)((int)check_below(rng, 508) - 254);
    case TRIAL_CONSTANT:
        return -1.75f;
    case TRIAL_ZERO:
        return check_below(rng, 2) ? 0.0f : -0.0f;
    case TRIAL_SPECIAL:
        return special(rng);
    default:
        return check_normal(rng);
    }
}

check_buffer trial_floats(size_t n, trial_kind kind, check_place place, check_rng *rng) {
    check_buffer buffer = check_buffer_new(n * sizeof(float), sizeof(float), place);
    float *x = buffer.data;

    for (size_t i = 0; i < n; i++)
        x[i] = number(kind, i, rng);
    return buffer;
}

check_buffer trial_copy(const check_buffer *from, check_place place) {
    check_buffer buffer = check_buffer_new(from->bytes, sizeof(float), place);
    memcpy(buffer.data, from->data, from->bytes);
    return buffer;
}

/* Trials: multiples of a length up to the longest, with the first kinds of numbers. */
typedef struct {
    size_t multiple, longest; /* 0: a block of the kernel's format */
    int kinds;
} extent;

static void each_length(const tern_kernel_row *kernel, size_t seed, const extent *e,
                        void (*check)(trial *)) {
    static const size_t longer[] = {95,  96,  100, 127, 128, 129,  255,  256,
                                    257, 320, 511, 640, 900, 2560, 4099, 6912};
    const size_t multiple =
        e->multiple != 0 ? e->multiple : tern_format_describe(kernel->format)->block_elements;

    for (size_t i = 1; i <= 70 + sizeof longer / sizeof *longer; i++) {
        const size_t n = (i <= 70 ? i : longer[i - 71]) * multiple;
        for (int kind = 0; kind < e->kinds && n <= e->longest; kind++) {
            trial t = {kernel,
                       n,
                       (trial_kind)kind,
                       (i + (size_t)kind) % 2 ? CHECK_END : CHECK_START,
                       {i * 16 + seed}};
            check_case("%s, n = %zu, fill %d", kernel->name, n, kind);
            if (!table_left_out())
                check(&t);
        }
    }
}

static void each_kernel(tern_op op, const extent *e, void (*check)(trial *)) {
    size_t count;
    const tern_kernel_row *kernels = tern_kernel_rows(&count);

    for (size_t r = 0; r < count; r++)
        if (kernels[r].op == op && table_runnable(&kernels[r]))
            each_length(&kernels[r], r, e, check);
}

void trial_each(tern_op op, size_t multiple, void (*check)(trial *)) {
    each_kernel(op, &(extent){multiple, SIZE_MAX, TRIAL_COUNT}, check);
}

void trial_each_block(tern_op op, void (*check)(trial *)) {
    each_kernel(op, &(extent){0, 8192, 2}, check);
}

void trial_check_binary(trial *t, trial_binary *op, bool second) {
    const check_place other = t->place == CHECK_END ? CHECK_START : CHECK_END;
    check_buffer a = trial_floats(t->n, t->kind, t->place, &t->rng);
    check_buffer b =
        trial_floats(t->n, (trial_kind)(check_below(&t->rng, TRIAL_COUNT)), other, &t->rng);
    check_buffer want = check_buffer_new(a.bytes, sizeof(float), t->place);
    check_buffer y = check_buffer_new(a.bytes, sizeof(float), other);
    check_buffer in_b = trial_copy(&b, t->place);

    op(NULL, a.data, b.data, t->n, want.data);
    op(t->kernel, a.data, b.data, t->n, y.data);
    check_floats("y", want.data, y.data, t->n);
    if (second) {
        op(t->kernel, a.data, in_b.data, t->n, in_b.data);
        check_floats("y in place of the second operand", want.data, in_b.data, t->n);
    }
    op(t->kernel, a.data, b.data, t->n, a.data);
    check_floats("y in place of the first operand", want.data, a.data, t->n);
    check_buffer_free(&a);
    check_buffer_free(&b);
    check_buffer_free(&want);
    check_buffer_free(&y);
    check_buffer_free(&in_b);
}
