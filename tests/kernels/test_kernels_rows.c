/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every kernel of the table that works on one row of floats (quantization, norms, rope, add,
 * softmax, embed, store) against the reference, bit for bit, at every length around the vector
 * widths and with every kind of number.
 */

#include <math.h>
#include <string.h>

#include "kernels/reference.h"
#include "tests/kernels/row_trial.h"
#include "tests/kernels/table.h"
#include "tests/support/check.h"

/* ---- quantization -------------------------------------------------------------------------- */

static size_t padded(size_t n) {
    return (n + TERN_Q_PAD - 1) / TERN_Q_PAD * TERN_Q_PAD;
}

static void check_quantize_token(trial *t) {
    check_buffer x = trial_floats(t->n, t->kind, t->place, &t->rng);
    check_buffer q = check_buffer_new(padded(t->n), TERN_ALIGN, t->place);
    check_buffer want = check_buffer_new(padded(t->n), TERN_ALIGN, t->place);
    float s[2];
    int32_t sum[2];

    tern_ref_quantize_token(x.data, t->n, want.data, &s[0], &sum[0]);
    t->kernel->fn.quantize_token(x.data, t->n, q.data, &s[1], &sum[1]);
    check_bytes("q", want.data, q.data, q.bytes);
    check_floats("s", &s[0], &s[1], 1);
    assert_int_equal(sum[0], sum[1]);
    check_buffer_free(&x);
    check_buffer_free(&q);
    check_buffer_free(&want);
}

static void check_quantize_block(trial *t) {
    const size_t blocks = (t->n + TERN_BLOCK - 1) / TERN_BLOCK;
    check_buffer x = trial_floats(t->n, t->kind, t->place, &t->rng);
    check_buffer out[2][3]; /* [reference, kernel][q, d, block_sum] */

    for (int i = 0; i < 2; i++) {
        out[i][0] = check_buffer_new(padded(t->n), TERN_ALIGN, t->place);
        out[i][1] = check_buffer_new(blocks * sizeof(float), sizeof(float), t->place);
        out[i][2] = check_buffer_new(blocks * sizeof(int32_t), sizeof(int32_t), t->place);
    }
    tern_ref_quantize_block(x.data, t->n, out[0][0].data, out[0][1].data, out[0][2].data);
    t->kernel->fn.quantize_block(x.data, t->n, out[1][0].data, out[1][1].data, out[1][2].data);
    check_bytes("q", out[0][0].data, out[1][0].data, out[0][0].bytes);
    check_floats("d", out[0][1].data, out[1][1].data, blocks);
    check_bytes("block_sum", out[0][2].data, out[1][2].data, out[0][2].bytes);
    check_buffer_free(&x);
    for (int i = 0; i < 6; i++)
        check_buffer_free(&out[i / 3][i % 3]);
}

static void test_quantize_token(void **state) {
    (void)state;
    trial_each(TERN_OP_QUANTIZE_TOKEN, 1, check_quantize_token);
}

static void test_quantize_block(void **state) {
    (void)state;
    trial_each(TERN_OP_QUANTIZE_BLOCK, 1, check_quantize_block);
}

/* ---- norms, add ---------------------------------------------------------------------------- */

static void run_rmsnorm(const tern_kernel_row *kernel, const float *x, const float *g, size_t n,
                        float *y) {
    if (kernel == NULL)
        tern_ref_rmsnorm(x, g, n, 1e-5f, y);
    else
        kernel->fn.rmsnorm(x, g, n, 1e-5f, y);
}

static void check_rmsnorm(trial *t) {
    trial_check_binary(t, run_rmsnorm, false);
}

/* Norms also get numbers around 100, where the mean is most of x. */
static void check_layernorm(trial *t) {
    const check_place other = t->place == CHECK_END ? CHECK_START : CHECK_END;
    check_buffer x = trial_floats(t->n, t->kind, t->place, &t->rng);
    check_buffer g = trial_floats(t->n, TRIAL_NORMAL, other, &t->rng);
    check_buffer b = trial_floats(t->n, TRIAL_NORMAL, t->place, &t->rng);
    check_buffer want = trial_copy(&x, t->place);
    check_buffer y = trial_copy(&x, other);

    for (size_t i = 0; i < t->n && t->n % 2 == 0 && t->kind == TRIAL_NORMAL; i++)
        ((float *)x.data)[i] += 100.0f;
    for (int shifted = 0; shifted < 2; shifted++) {
        const float *shift = shifted ? b.data : NULL;
        tern_ref_layernorm(x.data, g.data, shift, t->n, 1e-5f, want.data);
        t->kernel->fn.layernorm(x.data, g.data, shift, t->n, 1e-5f, y.data);
        check_floats(shifted ? "y with a shift" : "y", want.data, y.data, t->n);
    }
    t->kernel->fn.layernorm(x.data, g.data, b.data, t->n, 1e-5f, x.data);
    check_floats("y in place", want.data, x.data, t->n);
    check_buffer_free(&x);
    check_buffer_free(&g);
    check_buffer_free(&b);
    check_buffer_free(&want);
    check_buffer_free(&y);
}

static void check_add(trial *t) {
    check_buffer x = trial_floats(t->n, t->kind, t->place, &t->rng);
    check_buffer y =
        trial_floats(t->n, (trial_kind)(check_below(&t->rng, TRIAL_COUNT)), t->place, &t->rng);
    check_buffer want = trial_copy(&x, t->place);

    tern_ref_add(want.data, y.data, t->n);
    t->kernel->fn.add(x.data, y.data, t->n);
    check_floats("x", want.data, x.data, t->n);
    check_buffer_free(&x);
    check_buffer_free(&y);
    check_buffer_free(&want);
}

static void test_rmsnorm(void **state) {
    (void)state;
    trial_each(TERN_OP_RMSNORM, 1, check_rmsnorm);
}

static void test_layernorm(void **state) {
    (void)state;
    trial_each(TERN_OP_LAYERNORM, 1, check_layernorm);
}

static void test_add(void **state) {
    (void)state;
    trial_each(TERN_OP_ADD, 1, check_add);
}

/* ---- rope, softmax ------------------------------------------------------------------------- */

static void check_rope(trial *t) {
    const bool neox = t->kernel->op == TERN_OP_ROPE_NEOX;
    check_buffer x = trial_floats(2 * t->n, t->kind, t->place, &t->rng);
    check_buffer c = trial_floats(t->n, TRIAL_NORMAL, t->place, &t->rng);
    check_buffer s = trial_floats(t->n, TRIAL_NORMAL, t->place, &t->rng);
    check_buffer want = trial_copy(&x, t->place);

    tern_ref_rope(neox ? TERN_REF_PAIR_NEOX : TERN_REF_PAIR_NORM, want.data, c.data, s.data, t->n);
    t->kernel->fn.rope(x.data, c.data, s.data, t->n);
    check_floats("x", want.data, x.data, 2 * t->n);
    check_buffer_free(&x);
    check_buffer_free(&c);
    check_buffer_free(&s);
    check_buffer_free(&want);
}

static void check_softmax(trial *t) {
    check_buffer x = trial_floats(t->n, t->kind, t->place, &t->rng);
    float *values = x.data;

    for (size_t i = 0; i < t->n; i++) /* a range in which exp is not always near 1 */
        values[i] = t->kind == TRIAL_NORMAL ? 9.0f * values[i] : values[i];
    check_buffer want = trial_copy(&x, t->place);
    tern_ref_softmax(want.data, t->n);
    t->kernel->fn.softmax(x.data, t->n);
    check_floats("x", want.data, x.data, t->n);
    check_buffer_free(&x);
    check_buffer_free(&want);
}

static void test_rope(void **state) {
    (void)state;
    trial_each(TERN_OP_ROPE_NORM, 1, check_rope);
    trial_each(TERN_OP_ROPE_NEOX, 1, check_rope);
}

static void test_softmax(void **state) {
    (void)state;
    trial_each(TERN_OP_SOFTMAX, 1, check_softmax);
}

/* ---- embed, store -------------------------------------------------------------------------- */

/* A row of the file. Any bytes are valid. Elements of 2 and 4 bytes are aligned, blocks are not. */
static void check_embed(trial *t) {
    const tern_format_info *info = tern_format_describe(t->kernel->format);
    const size_t bytes = t->n / info->block_elements * info->block_bytes;
    const size_t align = info->block_elements == 1 ? info->block_bytes : 1;

    check_buffer file = check_buffer_new(bytes, align, t->place);
    check_buffer y = check_buffer_new(t->n * sizeof(float), sizeof(float), t->place);
    check_buffer want = check_buffer_new(t->n * sizeof(float), sizeof(float), t->place);
    for (size_t i = 0; i < bytes; i++)
        ((uint8_t *)file.data)[i] = (uint8_t)check_random(&t->rng);
    tern_ref_embed(t->kernel->format, file.data, t->n, want.data);
    t->kernel->fn.embed(file.data, t->n, y.data);
    check_floats("y", want.data, y.data, t->n);
    tern_dequantize_row(t->kernel->format, file.data, t->n, 0, 1.0f, y.data);
    check_floats("dequantized", want.data, y.data, t->n);
    check_buffer_free(&file);
    check_buffer_free(&y);
    check_buffer_free(&want);
}

static void check_store(trial *t) {
    const tern_format_info *info = tern_format_describe(t->kernel->format);
    const size_t blocks = (t->n + info->block_elements - 1) / info->block_elements;
    const size_t bytes = blocks * info->block_bytes;
    const size_t align = info->block_elements == 1 ? info->block_bytes : 1;
    check_buffer x = trial_floats(t->n, t->kind, t->place, &t->rng);
    check_buffer out = check_buffer_new(bytes, align, t->place);
    check_buffer want = check_buffer_new(bytes, align, t->place);

    for (size_t i = 0; i < t->n && t->kind == TRIAL_ANY; i += 2) /* mostly values in f16's range */
        ((float *)x.data)[i] = ldexpf(check_normal(&t->rng), 16 - (int)check_below(&t->rng, 44));
    tern_ref_store(t->kernel->format, x.data, t->n, want.data);
    t->kernel->fn.store(x.data, t->n, out.data);
    check_bytes("out", want.data, out.data, out.bytes);
    check_buffer_free(&x);
    check_buffer_free(&out);
    check_buffer_free(&want);
}

static void test_embed(void **state) {
    (void)state;
    trial_each_block(TERN_OP_EMBED, check_embed);
}

static void test_store(void **state) {
    (void)state;
    trial_each(TERN_OP_STORE, 1, check_store);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_quantize_token),
        cmocka_unit_test(test_quantize_block),
        cmocka_unit_test(test_rmsnorm),
        cmocka_unit_test(test_layernorm),
        cmocka_unit_test(test_add),
        cmocka_unit_test(test_rope),
        cmocka_unit_test(test_softmax),
        cmocka_unit_test(test_embed),
        cmocka_unit_test(test_store),
    };
    table_report();
    return cmocka_run_group_tests_name("rows of floats", tests, NULL, NULL);
}
