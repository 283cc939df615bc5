/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every row of the kernel table that works on one row of floats (quantization, norm, rope, gates,
 * softmax, embed, store) against the reference, bit for bit, at every length around the vector
 * widths and with every kind of number.
 */

#include <math.h>
#include <string.h>

#include "kernels/reference.h"
#include "tests/check.h"
#include "tests/table.h"

typedef enum fill {
    FILL_NORMAL,
    FILL_ANY,      /* every exponent */
    FILL_DENORMAL, /* below 2^-126 */
    FILL_TINY,     /* around the floor of quantization, 1e-5 */
    FILL_TIES,     /* multiples of 0.5 up to 127: products end in .5 */
    FILL_CONSTANT,
    FILL_ZERO,    /* of both signs */
    FILL_SPECIAL, /* with infinities and NaN among ordinary numbers */
    FILL_COUNT
} fill;

static float special(check_rng *rng) {
    static const float values[] = {INFINITY, -INFINITY, NAN, 0.0f, 1.0f};
    const uint32_t pick = check_below(rng, 40);
    return pick < 5 ? values[pick] : check_normal(rng);
}

static float number(fill kind, size_t i, check_rng *rng) {
    switch (kind) {
    case FILL_ANY:
        return check_any_finite(rng);
    case FILL_DENORMAL:
        return (float)check_below(rng, 1u << 23) * (check_below(rng, 2) ? 0x1p-149f : -0x1p-149f);
    case FILL_TINY:
        return check_normal(rng) * 5e-6f;
    case FILL_TIES:
        return i == 0 ? 127.0f : 0.5f * (float)((int)check_below(rng, 508) - 254);
    case FILL_CONSTANT:
        return -1.75f;
    case FILL_ZERO:
        return check_below(rng, 2) ? 0.0f : -0.0f;
    case FILL_SPECIAL:
        return special(rng);
    default:
        return check_normal(rng);
    }
}

static check_buffer floats(size_t n, fill kind, check_place place, check_rng *rng) {
    check_buffer buffer = check_buffer_new(n * sizeof(float), sizeof(float), place);
    float *x = buffer.data;

    for (size_t i = 0; i < n; i++)
        x[i] = number(kind, i, rng);
    return buffer;
}

static check_buffer copy_of(const check_buffer *from, check_place place) {
    check_buffer buffer = check_buffer_new(from->bytes, sizeof(float), place);
    memcpy(buffer.data, from->data, from->bytes);
    return buffer;
}

/* What one comparison is about. */
typedef struct trial {
    const tern_kernel_row *row;
    size_t n;
    fill kind;
    check_place place;
    check_rng rng;
} trial;

/* Runs `check` for the runnable rows of an operation over all lengths and kinds of numbers. */
static void each_trial(tern_op op, size_t multiple, void (*check)(trial *)) {
    static const size_t longer[] = {95,  96,  100, 127, 128, 129,  255,  256,
                                    257, 320, 511, 640, 900, 2560, 4099, 6912};
    size_t count;
    const tern_kernel_row *rows = tern_kernel_rows(&count);

    for (size_t r = 0; r < count; r++) {
        if (rows[r].op != op || !table_runnable(&rows[r]))
            continue;
        for (size_t i = 1; i <= 70 + sizeof longer / sizeof *longer; i++) {
            for (int kind = 0; kind < FILL_COUNT; kind++) {
                trial t = {&rows[r],
                           i <= 70 ? i : longer[i - 71],
                           (fill)kind,
                           (i + (size_t)kind) % 2 ? CHECK_END : CHECK_START,
                           {i * 16 + r}};
                t.n *= multiple;
                check_case("%s, n = %zu, fill %d", t.row->name, t.n, kind);
                check(&t);
            }
        }
    }
}

/* ---- quantization -------------------------------------------------------------------------- */

static size_t padded(size_t n) {
    return (n + TERN_Q_PAD - 1) / TERN_Q_PAD * TERN_Q_PAD;
}

static void check_quantize_token(trial *t) {
    check_buffer x = floats(t->n, t->kind, t->place, &t->rng);
    check_buffer q = check_buffer_new(padded(t->n), TERN_ALIGN, t->place);
    check_buffer want = check_buffer_new(padded(t->n), TERN_ALIGN, t->place);
    float s[2];
    int32_t sum[2];

    tern_ref_quantize_token(x.data, t->n, want.data, &s[0], &sum[0]);
    t->row->fn.quantize_token(x.data, t->n, q.data, &s[1], &sum[1]);
    check_bytes("q", want.data, q.data, q.bytes);
    check_floats("s", &s[0], &s[1], 1);
    assert_int_equal(sum[0], sum[1]);
    check_buffer_free(&x);
    check_buffer_free(&q);
    check_buffer_free(&want);
}

static void check_quantize_block(trial *t) {
    const size_t blocks = (t->n + TERN_BLOCK - 1) / TERN_BLOCK;
    check_buffer x = floats(t->n, t->kind, t->place, &t->rng);
    check_buffer out[2][3]; /* reference and row: q, d, block_sum */

    for (int i = 0; i < 2; i++) {
        out[i][0] = check_buffer_new(padded(t->n), TERN_ALIGN, t->place);
        out[i][1] = check_buffer_new(blocks * sizeof(float), sizeof(float), t->place);
        out[i][2] = check_buffer_new(blocks * sizeof(int32_t), sizeof(int32_t), t->place);
    }
    tern_ref_quantize_block(x.data, t->n, out[0][0].data, out[0][1].data, out[0][2].data);
    t->row->fn.quantize_block(x.data, t->n, out[1][0].data, out[1][1].data, out[1][2].data);
    check_bytes("q", out[0][0].data, out[1][0].data, out[0][0].bytes);
    check_floats("d", out[0][1].data, out[1][1].data, blocks);
    check_bytes("block_sum", out[0][2].data, out[1][2].data, out[0][2].bytes);
    check_buffer_free(&x);
    for (int i = 0; i < 6; i++)
        check_buffer_free(&out[i / 3][i % 3]);
}

static void test_quantize_token(void **state) {
    (void)state;
    each_trial(TERN_OP_QUANTIZE_TOKEN, 1, check_quantize_token);
}

static void test_quantize_block(void **state) {
    (void)state;
    each_trial(TERN_OP_QUANTIZE_BLOCK, 1, check_quantize_block);
}

/* ---- norm, gates, add ---------------------------------------------------------------------- */

/* y = op(a, b) by the reference when row is NULL. */
typedef void binary_op(const tern_kernel_row *row, const float *a, const float *b, size_t n,
                       float *y);

static void run_rmsnorm(const tern_kernel_row *row, const float *x, const float *g, size_t n,
                        float *y) {
    if (row == NULL)
        tern_ref_rmsnorm(x, g, n, 1e-5f, y);
    else
        row->fn.rmsnorm(x, g, n, 1e-5f, y);
}

static void run_silu(const tern_kernel_row *row, const float *g, const float *u, size_t n,
                     float *y) {
    if (row == NULL)
        tern_ref_gate(TERN_REF_GATE_SILU, g, u, n, y);
    else
        row->fn.gate(g, u, n, y);
}

static void run_relu2(const tern_kernel_row *row, const float *g, const float *u, size_t n,
                      float *y) {
    if (row == NULL)
        tern_ref_gate(TERN_REF_GATE_RELU2, g, u, n, y);
    else
        row->fn.gate(g, u, n, y);
}

/* Separately and in place of the first operand; of the second too where `second` says so. */
static void check_binary(trial *t, binary_op *op, bool second) {
    const check_place other = t->place == CHECK_END ? CHECK_START : CHECK_END;
    check_buffer a = floats(t->n, t->kind, t->place, &t->rng);
    check_buffer b = floats(t->n, (fill)(check_below(&t->rng, FILL_COUNT)), other, &t->rng);
    check_buffer want = check_buffer_new(a.bytes, sizeof(float), t->place);
    check_buffer y = check_buffer_new(a.bytes, sizeof(float), other);
    check_buffer in_b = copy_of(&b, t->place);

    op(NULL, a.data, b.data, t->n, want.data);
    op(t->row, a.data, b.data, t->n, y.data);
    check_floats("y", want.data, y.data, t->n);
    if (second) {
        op(t->row, a.data, in_b.data, t->n, in_b.data);
        check_floats("y in place of the second operand", want.data, in_b.data, t->n);
    }
    op(t->row, a.data, b.data, t->n, a.data);
    check_floats("y in place of the first operand", want.data, a.data, t->n);
    check_buffer_free(&a);
    check_buffer_free(&b);
    check_buffer_free(&want);
    check_buffer_free(&y);
    check_buffer_free(&in_b);
}

static void check_rmsnorm(trial *t) {
    check_binary(t, run_rmsnorm, false);
}

static void check_silu(trial *t) {
    check_binary(t, run_silu, true);
}

static void check_relu2(trial *t) {
    check_binary(t, run_relu2, true);
}

static void check_add(trial *t) {
    check_buffer x = floats(t->n, t->kind, t->place, &t->rng);
    check_buffer y = floats(t->n, (fill)(check_below(&t->rng, FILL_COUNT)), t->place, &t->rng);
    check_buffer want = copy_of(&x, t->place);

    tern_ref_add(want.data, y.data, t->n);
    t->row->fn.add(x.data, y.data, t->n);
    check_floats("x", want.data, x.data, t->n);
    check_buffer_free(&x);
    check_buffer_free(&y);
    check_buffer_free(&want);
}

static void test_rmsnorm(void **state) {
    (void)state;
    each_trial(TERN_OP_RMSNORM, 1, check_rmsnorm);
}

static void test_gates(void **state) {
    (void)state;
    each_trial(TERN_OP_GATE_SILU, 1, check_silu);
    each_trial(TERN_OP_GATE_RELU2, 1, check_relu2);
}

static void test_add(void **state) {
    (void)state;
    each_trial(TERN_OP_ADD, 1, check_add);
}

/* ---- rope, softmax ------------------------------------------------------------------------- */

static void check_rope(trial *t) {
    const bool neox = t->row->op == TERN_OP_ROPE_NEOX;
    check_buffer x = floats(2 * t->n, t->kind, t->place, &t->rng);
    check_buffer c = floats(t->n, FILL_NORMAL, t->place, &t->rng);
    check_buffer s = floats(t->n, FILL_NORMAL, t->place, &t->rng);
    check_buffer want = copy_of(&x, t->place);

    tern_ref_rope(neox ? TERN_REF_PAIR_NEOX : TERN_REF_PAIR_NORM, want.data, c.data, s.data, t->n);
    t->row->fn.rope(x.data, c.data, s.data, t->n);
    check_floats("x", want.data, x.data, 2 * t->n);
    check_buffer_free(&x);
    check_buffer_free(&c);
    check_buffer_free(&s);
    check_buffer_free(&want);
}

static void check_softmax(trial *t) {
    check_buffer x = floats(t->n, t->kind, t->place, &t->rng);
    float *values = x.data;

    for (size_t i = 0; i < t->n; i++) /* a range in which exp is not always near 1 */
        values[i] = t->kind == FILL_NORMAL ? 9.0f * values[i] : values[i];
    check_buffer want = copy_of(&x, t->place);
    tern_ref_softmax(want.data, t->n);
    t->row->fn.softmax(x.data, t->n);
    check_floats("x", want.data, x.data, t->n);
    check_buffer_free(&x);
    check_buffer_free(&want);
}

/* exp over its whole range, densely: a constant that is off in its last bits shows here. */
static void test_exp_sweep(void **state) {
    enum { POINTS = 1 << 17 };
    size_t count;
    const tern_kernel_row *rows = tern_kernel_rows(&count);
    check_buffer x = check_buffer_new(POINTS * sizeof(float), sizeof(float), CHECK_END);
    check_buffer up = floats(POINTS, FILL_CONSTANT, CHECK_END, NULL);
    check_buffer want = check_buffer_new(x.bytes, sizeof(float), CHECK_END);
    check_buffer y = check_buffer_new(x.bytes, sizeof(float), CHECK_END);

    (void)state;
    for (size_t i = 0; i < POINTS; i++)
        ((float *)x.data)[i] = -90.0f + (float)i * (195.0f / POINTS);
    tern_ref_gate(TERN_REF_GATE_SILU, x.data, up.data, POINTS, want.data);
    for (size_t r = 0; r < count; r++) {
        if (rows[r].op != TERN_OP_GATE_SILU || !table_runnable(&rows[r]))
            continue;
        check_case("%s, sweep", rows[r].name);
        rows[r].fn.gate(x.data, up.data, POINTS, y.data);
        check_floats("y", want.data, y.data, POINTS);
    }
    check_buffer_free(&x);
    check_buffer_free(&up);
    check_buffer_free(&want);
    check_buffer_free(&y);
}

static void test_rope(void **state) {
    (void)state;
    each_trial(TERN_OP_ROPE_NORM, 1, check_rope);
    each_trial(TERN_OP_ROPE_NEOX, 1, check_rope);
}

static void test_softmax(void **state) {
    (void)state;
    each_trial(TERN_OP_SOFTMAX, 1, check_softmax);
}

/* ---- embed, store -------------------------------------------------------------------------- */

/* A row of the file: any bytes are one. Elements of 2 and 4 bytes are aligned, blocks are not. */
static void check_embed(trial *t) {
    const tern_format_info *info = tern_format_describe(t->row->format);
    const size_t bytes = t->n / info->block_elements * info->block_bytes;
    const size_t align = info->block_elements == 1 ? info->block_bytes : 1;

    if (t->n % info->block_elements != 0)
        return;
    check_buffer file = check_buffer_new(bytes, align, t->place);
    check_buffer y = check_buffer_new(t->n * sizeof(float), sizeof(float), t->place);
    check_buffer want = check_buffer_new(t->n * sizeof(float), sizeof(float), t->place);
    for (size_t i = 0; i < bytes; i++)
        ((uint8_t *)file.data)[i] = (uint8_t)check_random(&t->rng);
    tern_ref_embed(t->row->format, file.data, t->n, want.data);
    t->row->fn.embed(file.data, t->n, y.data);
    check_floats("y", want.data, y.data, t->n);
    tern_dequantize_row(t->row->format, file.data, t->n, 0, 1.0f, y.data);
    check_floats("dequantized", want.data, y.data, t->n);
    check_buffer_free(&file);
    check_buffer_free(&y);
    check_buffer_free(&want);
}

static void check_store(trial *t) {
    const size_t size = t->row->format == TERN_FORMAT_F16 ? 2 : 4;
    check_buffer x = floats(t->n, t->kind, t->place, &t->rng);
    check_buffer out = check_buffer_new(t->n * size, size, t->place);
    check_buffer want = check_buffer_new(t->n * size, size, t->place);

    for (size_t i = 0; i < t->n && t->kind == FILL_ANY; i += 2) /* mostly what f16 can hold */
        ((float *)x.data)[i] = ldexpf(check_normal(&t->rng), 16 - (int)check_below(&t->rng, 44));
    tern_ref_store(t->row->format, x.data, t->n, want.data);
    t->row->fn.store(x.data, t->n, out.data);
    check_bytes("out", want.data, out.data, out.bytes);
    check_buffer_free(&x);
    check_buffer_free(&out);
    check_buffer_free(&want);
}

static void test_embed(void **state) {
    (void)state;
    each_trial(TERN_OP_EMBED, 1, check_embed);
    each_trial(TERN_OP_EMBED, TERN_BLOCK, check_embed);
}

static void test_store(void **state) {
    (void)state;
    each_trial(TERN_OP_STORE, 1, check_store);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_quantize_token),
        cmocka_unit_test(test_quantize_block),
        cmocka_unit_test(test_rmsnorm),
        cmocka_unit_test(test_gates),
        cmocka_unit_test(test_add),
        cmocka_unit_test(test_rope),
        cmocka_unit_test(test_softmax),
        cmocka_unit_test(test_exp_sweep),
        cmocka_unit_test(test_embed),
        cmocka_unit_test(test_store),
    };
    table_report();
    return cmocka_run_group_tests_name("rows of floats", tests, NULL, NULL);
}
