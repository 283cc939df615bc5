/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The certified head: bounds hold for hostile rows and states, and a pick from bounds equals the
 * pick from all logits. TERN_TEST_STATES=1000000 makes the last test long, and TERN_TEST_MODEL
 * names another model for it.
 */

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/chacha.h"
#include "kernels/half.h"
#include "runtime/engine/forward/internal.h"
#include "runtime/engine/sample/logit_source.h"
#include "runtime/engine/sample/sampler.h"
#include "runtime/engine/session.h"
#include "runtime/model/load/list.h"
#include "tests/support/check.h"
#include "tests/support/tiny_model.h"

static double uniform(tern_chacha *c) {
    return 2.0 * tern_chacha_uniform(c) - 1.0;
}

/* Roughly normal with variance 1. */
static float normal(tern_chacha *c) {
    double sum = 0.0;
    for (int i = 0; i < 6; i++)
        sum += uniform(c);
    return (float)(sum * 0.70710678);
}

/* ---- bounds ---------------------------------------------------------------------------------- */

enum { ROWS = 150, MAX_WIDTH = 1100 };

typedef struct fixture {
    size_t cols;
    uint16_t *weights; /* [ROWS][cols] halves */
    tern_gguf_tensor tensor;
    tern_linear head;
    tern_head_image image;
    tern_arena arena;
    tern_team *team;
    tern_guard guard;
    float *x, *lower, *upper, *exact;
    int8_t *q;
    float d[MAX_WIDTH / TERN_BLOCK + 1];
    int32_t sums[MAX_WIDTH / TERN_BLOCK + 1];
} fixture;

/* Makes the image of the head. Returns the status of the job. */
static tern_status try_image(fixture *f, tern_error *problem) {
    const tern_load_entry from = {
        .tensor = &f->tensor, .rows = ROWS, .cols = f->cols, .divisor = 1.0f, .scale = 1.0f};
    tern_load_entry entries[] = {from, from};
    entries[0].kind = TERN_LOAD_MATRIX;
    entries[0].format = TERN_FORMAT_F16;
    entries[0].to.linear = &f->head;
    entries[1].kind = TERN_LOAD_IMAGE;
    entries[1].to.image = &f->image;
    tern_load_list list = {.entries = entries, .n = 2};
    tern_error err;
    f->tensor.data = (const uint8_t *)f->weights;
    f->head = (tern_linear){.matrix = {.format = TERN_FORMAT_F16, .rows = ROWS, .cols = f->cols},
                            .tensor = &f->tensor};
    assert_int_equal(tern_load_list_choose(&list, &(tern_load_choice){.guard = &f->guard}, &err),
                     TERN_OK);
    assert_int_equal(tern_load_list_arrange(&list, NULL, &err), TERN_OK);
    tern_arena_free(&f->arena);
    assert_int_equal(tern_arena_new(list.bytes, false, &f->arena, &err), TERN_OK);
    tern_load_list_bind(&list, f->arena.base);
    f->head.in_file = false; /* the weights lie in no file */
    const tern_status status =
        tern_load_list_fill(&list, f->arena.base, &f->guard, f->team, problem);
    return status == TERN_OK ? tern_load_list_check(&list, &f->guard, problem) : status;
}

static void make_image(fixture *f) {
    tern_error err = {0};
    assert_int_equal(try_image(f, &err), TERN_OK);
}

static void setup(fixture *f, size_t cols) {
    uint64_t mask;
    memset(f, 0, sizeof *f);
    f->cols = cols;
    f->weights = calloc(ROWS * cols, sizeof *f->weights);
    f->x = tiny_floats(cols);
    f->lower = tiny_floats(ROWS);
    f->upper = tiny_floats(ROWS);
    f->exact = tiny_floats(ROWS);
    f->q = aligned_alloc(TERN_ALIGN, (cols / TERN_Q_PAD + 1) * TERN_Q_PAD);
    assert_non_null(f->weights);
    assert_non_null(f->q);
    assert_int_equal(tern_team_new(3, &f->team, NULL), TERN_OK);
    assert_int_equal(tern_cpu_mask(NULL, NULL, &mask, NULL), TERN_OK);
    f->guard = tern_guard_new(mask);
}

static void teardown(fixture *f) {
    free(f->weights);
    free(f->x);
    free(f->lower);
    free(f->upper);
    free(f->exact);
    free(f->q);
    tern_arena_free(&f->arena);
    check_freed(tern_team_free, f->team);
}

static float weight(const fixture *f, size_t r, size_t i) {
    return tern_f16_to_f32(f->weights[r * f->cols + i]);
}

static void set_weight(fixture *f, size_t r, size_t i, float value) {
    tern_f16_store(&f->weights[r * f->cols + i], value);
}

/* Rows of different kinds: plain, with an outlier, tiny, large, few levels, one element, zero. */
static void fill_rows(fixture *f, tern_chacha *c) {
    static const float gain[] = {0.02f, 0.02f, 1e-7f, 9000.0f, 1.0f, 0.5f, 0.0f};
    for (size_t r = 0; r < ROWS; r++) {
        const size_t kind = r % 7;
        for (size_t i = 0; i < f->cols; i++) {
            float w = gain[kind] * normal(c);
            if (kind == 1 && i == r % f->cols)
                w *= 300.0f;
            if (kind == 4)
                w = (float)(int)(3.0 * uniform(c));
            if (kind == 5)
                w = i == (r * 31) % f->cols ? w : 0.0f;
            set_weight(f, r, i, w);
        }
    }
}

/* The image's value for weight i of row r. */
static float imaged(const fixture *f, size_t r, size_t i) {
    const size_t blocks = (f->cols + TERN_BLOCK - 1) / TERN_BLOCK;
    const int8_t *group =
        (const int8_t *)f->image.scan.matrix.data + r / 16 * blocks * 16 * TERN_BLOCK;
    const size_t chunk = i / 4;
    return f->image.scan.matrix.row_scale[r] * (float)group[chunk * 64 + r % 16 * 4 + i % 4];
}

/* States for the worst errors of the scan: along the difference of row r and its image. */
static void make_state(fixture *f, tern_chacha *c, size_t kind, size_t r) {
    for (size_t i = 0; i < f->cols; i++) {
        float x = normal(c);
        if (kind == 1)
            x = 1e4f * (weight(f, r, i) - imaged(f, r, i));
        if (kind == 2)
            x = i == r % f->cols ? 7.0f : 0.0f;
        if (kind == 3)
            x = i % 97 == 5 ? 400.0f * x : x;
        if (kind == 4)
            x *= 1e-22f;
        if (kind == 5)
            x = weight(f, r, i);
        if (kind == 6)
            x *= 1e12f;
        f->x[i] = x;
    }
}

/* Checks the bounds of the state in f->x. Returns the largest used fraction of one, at most 1. */
static double check_bounds(fixture *f) {
    const tern_kernel_row *quantize =
        tern_kernel_select(0, TERN_OP_QUANTIZE_BLOCK, TERN_FORMAT_NONE);
    const size_t q_stride = (f->cols + TERN_Q_PAD - 1) / TERN_Q_PAD * TERN_Q_PAD;
    const tern_tile tile = {0, 1, 0, ROWS};
    double worst = 0.0;
    quantize->fn.quantize_block(f->x, f->cols, f->q, f->d, f->sums);
    const tern_activations x = {.cols = f->cols,
                                .x = f->x,
                                .x_stride = f->cols,
                                .q = f->q,
                                .q_stride = q_stride,
                                .d = f->d,
                                .block_sum = f->sums,
                                .d_stride = MAX_WIDTH / TERN_BLOCK + 1};
    const tern_head_slack slack = tern_head_slack_of(&f->image, f->x, f->q, f->d);
    assert_true(slack.certain);
    f->image.scan.gemv->fn.matmul(&f->image.scan.matrix, &x, &tile, f->lower, ROWS);
    tern_head_bounds(&f->image, slack, 0, ROWS, f->lower, f->upper);
    f->head.gemv->fn.matmul(&f->head.matrix, &x, &tile, f->exact, ROWS);
    for (size_t r = 0; r < ROWS; r++) {
        if (!(f->lower[r] <= f->exact[r] && f->exact[r] <= f->upper[r]))
            fail_msg("row %zu of %zu columns: %.9g is not in [%.9g, %.9g]", r, f->cols,
                     (double)f->exact[r], (double)f->lower[r], (double)f->upper[r]);
        const double middle = 0.5 * ((double)f->lower[r] + (double)f->upper[r]);
        const double half = 0.5 * ((double)f->upper[r] - (double)f->lower[r]);
        const double used = fabs((double)f->exact[r] - middle) / half;
        worst = used > worst ? used : worst;
    }
    return worst;
}

/* For a state along the rounding error of a row, the bound is nearly reached. So it is not larger
 * than necessary, and a smaller one would be wrong. */
static void test_bounds(void **state) {
    static const size_t widths[] = {1, 31, 32, 33, 64, 100, 256, 576, 1024, 1099};
    tern_chacha c;
    double worst = 0.0;
    (void)state;
    tern_chacha_seed(&c, 11);
    for (size_t w = 0; w < sizeof widths / sizeof *widths; w++) {
        fixture f;
        setup(&f, widths[w]);
        fill_rows(&f, &c);
        make_image(&f);
        for (size_t i = 0; i < 140; i++) {
            make_state(&f, &c, i % 7, i % ROWS);
            const double used = check_bounds(&f);
            worst = used > worst ? used : worst;
        }
        teardown(&f);
    }
    assert_true(worst > 0.9);
}

/* A weight that is not finite is refused. A state that is not finite has no bounds, so the exact
 * way reports it. */
static void test_not_finite(void **state) {
    static const uint16_t halves[] = {0x7c00, 0xfc00, 0x7e00};
    fixture f;
    tern_chacha c;
    (void)state;
    tern_chacha_seed(&c, 12);
    for (size_t i = 0; i < 3; i++) {
        setup(&f, 64);
        tern_error err = {0};
        fill_rows(&f, &c);
        f.weights[5 * 64 + 63] = halves[i];
        assert_int_equal(try_image(&f, &err), TERN_ERR_TENSOR_DATA);
        assert_non_null(strstr(err.message, "row 5, column 63"));
        teardown(&f);
    }
    setup(&f, 64);
    fill_rows(&f, &c);
    make_image(&f);
    static const float wrong[] = {INFINITY, -INFINITY, NAN, 3e38f};
    for (size_t i = 0; i < 4; i++) {
        make_state(&f, &c, 0, 0);
        f.x[7] = wrong[i];
        tern_kernel_select(0, TERN_OP_QUANTIZE_BLOCK, TERN_FORMAT_NONE)
            ->fn.quantize_block(f.x, 64, f.q, f.d, f.sums);
        assert_false(tern_head_slack_of(&f.image, f.x, f.q, f.d).certain);
    }
    /* Rows of zeros keep every product small, but the norm of the state itself exceeds a float. */
    memset(f.weights, 0, ROWS * 64 * sizeof *f.weights);
    make_image(&f);
    for (size_t i = 0; i < 64; i++)
        f.x[i] = 3e38f;
    tern_kernel_select(0, TERN_OP_QUANTIZE_BLOCK, TERN_FORMAT_NONE)
        ->fn.quantize_block(f.x, 64, f.q, f.d, f.sums);
    assert_false(tern_head_slack_of(&f.image, f.x, f.q, f.d).certain);
    teardown(&f);
}

/* ---- picking --------------------------------------------------------------------------------- */

enum { VOCAB = 3000 };

typedef struct fake {
    float exact[VOCAB], lower[VOCAB], upper[VOCAB];
    size_t rows, whole;
} fake;

static bool fake_bounds(void *user, float **lower, float **upper) {
    fake *f = user;
    *lower = f->lower;
    *upper = f->upper;
    return true;
}

static void fake_rows(void *user, const uint32_t *ids, size_t n, float *logits) {
    fake *f = user;
    for (size_t i = 0; i < n; i++) {
        assert_true(i == 0 || ids[i] > ids[i - 1]);
        logits[ids[i]] = f->exact[ids[i]];
    }
    f->rows += n;
}

static tern_status fake_all(void *user, const float **logits, tern_error *err) {
    fake *f = user;
    (void)err;
    f->whole++;
    *logits = f->exact;
    return TERN_OK;
}

/* Logits of several kinds: spread, peaked, a flat top, many ties, all equal. */
static void fake_logits(fake *f, tern_chacha *c, size_t kind, float error) {
    for (size_t i = 0; i < VOCAB; i++) {
        float x = 3.0f * normal(c);
        if (kind == 1)
            x = i % 500 == 3 ? x + 14.0f : x;
        if (kind == 2)
            x = x > 4.0f ? 4.0f : x;
        if (kind == 3)
            x = (float)(int)x;
        if (kind == 4)
            x = 1.5f;
        if (kind == 5)
            x *= 40.0f;
        f->exact[i] = x;
        const float e = error * (float)tern_chacha_uniform(c);
        const float shift = e * (float)uniform(c);
        f->lower[i] = nextafterf(x - e + shift, -INFINITY);
        f->upper[i] = nextafterf(x + e + shift, INFINITY);
    }
}

/* Allows a random selection of tokens, about one in `every`; 0: all. */
static void allow(tern_sampler *a, tern_sampler *b, uint64_t *allowed, uint32_t every,
                  tern_chacha *c) {
    memset(allowed, 0, (VOCAB / 64 + 1) * sizeof *allowed);
    for (uint32_t i = 0; every > 0 && i < VOCAB; i++)
        if (tern_chacha_next(c) % every == 0 || i == VOCAB - 1)
            allowed[i / 64] |= UINT64_C(1) << (i % 64);
    assert_int_equal(tern_sampler_allow(a, every > 0 ? allowed : NULL, NULL), TERN_OK);
    assert_int_equal(tern_sampler_allow(b, every > 0 ? allowed : NULL, NULL), TERN_OK);
}

/* Checks that the token is allowed and, if `greedy`, that it is the best of the allowed ones. */
static void check_allowed(const fake *f, const uint64_t *allowed, int32_t token, bool greedy) {
    assert_true(allowed[token / 64] >> (token % 64) & 1);
    for (int32_t i = 0; greedy && i < VOCAB; i++)
        assert_true(!(allowed[i / 64] >> (i % 64) & 1) || f->exact[i] < f->exact[token] ||
                    (f->exact[i] == f->exact[token] && i >= token));
}

/* Picks some tokens in both ways. Returns how many were decided by bounds. */
static size_t compare_picks(const tern_sampler_params *params, size_t kind, float error,
                            uint32_t every) {
    uint64_t allowed[VOCAB / 64 + 1];
    static fake f;
    tern_sampler *whole, *bounded;
    tern_chacha c;
    enum { PICKS = 20 };
    tern_chacha_seed(&c, 100 * kind + params->seed);
    assert_int_equal(tern_sampler_new(params, VOCAB, &whole, NULL), TERN_OK);
    assert_int_equal(tern_sampler_new(params, VOCAB, &bounded, NULL), TERN_OK);
    f.rows = f.whole = 0;
    for (int i = 0; i < PICKS; i++) {
        int32_t expected = -1, got = -2;
        const tern_logit_source source = {
            .user = &f, .bounds = fake_bounds, .rows = fake_rows, .all = fake_all};
        fake_logits(&f, &c, kind, error);
        allow(whole, bounded, allowed, every, &c);
        assert_int_equal(tern_sampler_pick(whole, f.exact, &expected, NULL), TERN_OK);
        assert_int_equal(tern_sampler_pick_from(bounded, &source, &got, NULL), TERN_OK);
        if (got != expected)
            fail_msg("kind %zu, temperature %g, top-k %u, top-p %g, min-p %g: token %d, not %d",
                     kind, (double)params->temperature, params->top_k, (double)params->top_p,
                     (double)params->min_p, got, expected);
        if (every > 0)
            check_allowed(&f, allowed, got,
                          params->temperature == 0.0f && params->n_bias == 0 &&
                              params->repeat_last_n == 0);
        tern_sampler_accept(whole, got);
        tern_sampler_accept(bounded, got);
    }
    tern_sampler_free(&whole);
    tern_sampler_free(&bounded);
    return PICKS - f.whole;
}

static void test_picks(void **state) {
    static const tern_logit_bias bias[] = {{3, 9.0f}, {17, -30.0f}, {503, 2.5f}, {3, 1.0f}};
    static const tern_sampler_params params[] = {
        {.temperature = 0.0f},
        {.temperature = 0.0f, .repetition_penalty = 1.3f, .repeat_last_n = 40},
        {.temperature = 0.0f, .bias = bias, .n_bias = 4},
        {.temperature = 0.8f, .top_k = 1},
        {.temperature = 0.8f, .top_k = 40},
        {.temperature = 1.2f, .top_k = 40, .top_p = 0.9f, .min_p = 0.05f},
        {.temperature = 0.7f,
         .top_k = 20,
         .presence_penalty = 1.0f,
         .frequency_penalty = -0.4f,
         .repeat_last_n = 64},
        {.temperature = 0.7f, .top_p = 0.9f},
        {.temperature = 1.0f, .top_p = 0.5f, .min_p = 0.02f},
        {.temperature = 1.0f, .min_p = 0.1f},
        {.temperature = 0.1f, .top_p = 0.999f},
        {.temperature = 1.0f, .min_p = 1.0f},
        {.temperature = 1.0f, .min_p = 1e-30f},
        {.temperature = 1.0f},
        {.temperature = 2.0f, .top_k = 2999},
    };
    static const float errors[] = {0.0f, 0.001f, 0.3f, 20.0f};
    static const uint32_t every[] = {0, 2, 150, 100000}; /* the last allows a single token */
    size_t decided[sizeof params / sizeof *params] = {0};
    (void)state;
    for (size_t p = 0; p < sizeof params / sizeof *params; p++)
        for (size_t kind = 0; kind < 6; kind++)
            for (size_t e = 0; e < 4; e++) {
                tern_sampler_params full = params[p];
                full.top_p = full.top_p > 0.0f ? full.top_p : 1.0f;
                full.seed = 7 + e;
                decided[p] += compare_picks(&full, kind, errors[e], 0);
                if ((p + kind + e) % 3 == 0)
                    (void)compare_picks(&full, kind, errors[e], every[1 + e % 3]);
            }
    /* Samplers that select few tokens decide many of 480 picks by bounds, a full softmax none. */
    for (size_t p = 0; p < 11; p++)
        assert_true(decided[p] > 120);
    assert_int_equal(decided[13], 0);
}

/* A single allowed token is picked, however unlikely it is. Allowing none is refused. */
static void test_allowed(void **state) {
    (void)state;
    static const tern_sampler_params params = {.temperature = 1.0f, .top_p = 1.0f};
    uint64_t allowed[VOCAB / 64 + 1] = {0};
    static float logits[VOCAB];
    tern_sampler *s;
    tern_error err = {0};
    int32_t token = -1;
    logits[5] = 90.0f;
    assert_int_equal(tern_sampler_new(&params, VOCAB, &s, NULL), TERN_OK);
    assert_int_equal(tern_sampler_allow(s, allowed, &err), TERN_ERR_ARG);
    assert_string_equal(err.message, "sampler: none of 3000 tokens is allowed");
    allowed[VOCAB / 64] = UINT64_MAX << (VOCAB % 64); /* only tokens beyond the vocabulary */
    assert_int_equal(tern_sampler_allow(s, allowed, &err), TERN_ERR_ARG);
    assert_int_equal(tern_sampler_pick(s, logits, &token, NULL), TERN_OK);
    assert_int_equal(token, 5);
    allowed[1999 / 64] |= UINT64_C(1) << (1999 % 64);
    assert_int_equal(tern_sampler_allow(s, allowed, &err), TERN_OK);
    assert_int_equal(tern_sampler_pick(s, logits, &token, NULL), TERN_OK);
    assert_int_equal(token, 1999);
    assert_int_equal(tern_sampler_allow(s, NULL, &err), TERN_OK);
    assert_int_equal(tern_sampler_pick(s, logits, &token, NULL), TERN_OK);
    assert_int_equal(token, 5);
    tern_sampler_free(&s);
}

/* Fewer tokens are allowed than top-k keeps, in a vocabulary so small that it is read whole. */
static void test_fewer_than_k(void **state) {
    (void)state;
    static fake f;
    static const tern_sampler_params params = {.temperature = 1.0f, .top_k = 40, .top_p = 1.0f};
    const uint64_t allowed = UINT64_C(1) << 7 | UINT64_C(1) << 44;
    const tern_logit_source source = {
        .user = &f, .bounds = fake_bounds, .rows = fake_rows, .all = fake_all};
    tern_sampler *s;
    tern_chacha c;
    tern_chacha_seed(&c, 3);
    assert_int_equal(tern_sampler_new(&params, 60, &s, NULL), TERN_OK);
    assert_int_equal(tern_sampler_allow(s, &allowed, NULL), TERN_OK);
    for (int i = 0; i < 50; i++) {
        int32_t token = -1;
        fake_logits(&f, &c, 4, 0.1f);
        assert_int_equal(tern_sampler_pick_from(s, &source, &token, NULL), TERN_OK);
        assert_true(token == 7 || token == 44);
    }
    assert_int_equal(f.whole, 0);
    tern_sampler_free(&s);
}

/* ---- in a session ---------------------------------------------------------------------------- */

static int compare_counts(const void *a, const void *b) {
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* Replaces the hidden state of the last token. */
static void put_state(tern_session *s, tern_chacha *c, size_t kind) {
    const tern_model *m = s->model;
    const size_t width = m->config.n_embd;
    tern_scratch *scratch = &s->runner->scratch;
    float *x = scratch->in.norm; /* of the pass's only row */
    const uint32_t a = (uint32_t)(tern_chacha_uniform(c) * (double)m->config.n_vocab);
    const uint32_t b = (uint32_t)(tern_chacha_uniform(c) * (double)m->config.n_vocab);
    float *other = scratch->gate;
    m->own.embedding.kernel->fn.embed(m->own.embedding.data + a * m->own.embedding.row_bytes, width,
                                      x);
    m->own.embedding.kernel->fn.embed(m->own.embedding.data + b * m->own.embedding.row_bytes, width,
                                      other);
    for (size_t i = 0; i < width; i++)
        x[i] = kind == 0   ? normal(c) * m->own.output_norm[i]
               : kind == 1 ? x[i] + other[i] /* two tokens are nearly as likely */
               : kind == 2 ? x[i] - other[i]
                           : x[i] + 0.3f * normal(c);
    m->kernels.quantize_block->fn.quantize_block(x, width, scratch->in.bx, scratch->in.bx_d,
                                                 scratch->in.bx_sum);
    s->runner->buffer_row = TERN_NO_ROW;
}

/* For one state, each sampler picks the same token by bounds and by all logits. */
static void check_state(tern_session *s, tern_sampler **pair, size_t n) {
    for (size_t i = 0; i < n; i++) {
        int32_t got = -1, expected = -2;
        const float *logits;
        s->runner->buffer_row = TERN_NO_ROW;
        assert_int_equal(tern_session_pick(s, pair[2 * i], &got, NULL), TERN_OK);
        s->runner->buffer_row = TERN_NO_ROW;
        assert_int_equal(tern_session_last_logits(s, &logits, NULL), TERN_OK);
        assert_int_equal(tern_sampler_pick(pair[2 * i + 1], logits, &expected, NULL), TERN_OK);
        if (got != expected)
            fail_msg("sampler %zu: token %d, not %d", i, got, expected);
    }
}

static void test_states(void **state) {
    static const tern_sampler_params params[] = {{.temperature = 0.0f, .top_p = 1.0f},
                                                 {.temperature = 0.8f, .top_k = 40, .top_p = 0.95f},
                                                 {.temperature = 0.8f, .top_p = 0.9f}};
    enum { N = sizeof params / sizeof *params };
    const char *asked = getenv("TERN_TEST_STATES");
    const char *path = getenv("TERN_TEST_MODEL");
    const size_t states = asked != NULL ? strtoul(asked, NULL, 10) : 4000;
    tern_model *model;
    tern_session *s;
    tern_sampler *pair[2 * N];
    tern_chacha c;
    tern_error err;
    uint64_t *rows = calloc(states, sizeof *rows);
    (void)state;
    assert_non_null(rows);
    tern_chacha_seed(&c, 20);
    if (tern_model_open(path != NULL ? path : TERN_SOURCE_DIR "/models/tern-small.gguf", NULL,
                        &model, &err) != TERN_OK)
        fail_msg("%s", err.message);
    s = tiny_session(model,
                     (tern_session_params){.kv = TERN_FORMAT_F16, .n_ctx = 64, .threads = 1});
    for (size_t i = 0; i < 2 * N; i++)
        assert_int_equal(tern_sampler_new(&params[i / 2], model->config.n_vocab, &pair[i], NULL),
                         TERN_OK);
    const int32_t token = 1;
    assert_int_equal(tern_session_eval(s, &token, 1, TERN_LOGITS_NONE, NULL, NULL), TERN_OK);
    for (size_t i = 0; i < states; i++) {
        const tern_session_work before = tern_session_work_done(s);
        put_state(s, &c, i % 4);
        check_state(s, pair, i % 16 == 0 ? N : 1);
        rows[i] = tern_session_work_done(s).head_rows - before.head_rows;
    }
    const tern_session_work work = tern_session_work_done(s);
    qsort(rows, states, sizeof *rows, compare_counts);
    print_message("%zu states: %llu picks by a scan, exact rows a state: median %llu, most %llu\n",
                  states, (unsigned long long)work.scans, (unsigned long long)rows[states / 2],
                  (unsigned long long)rows[states - 1]);
    assert_true(work.scans > states * 3 / 4);
    assert_true(rows[states / 2] < model->config.n_vocab / 8);
    for (size_t i = 0; i < 2 * N; i++)
        tern_sampler_free(&pair[i]);
    tern_session_free(&s);
    tern_model_free(&model);
    free(rows);
}

/* tern_generate gives the same tokens with and without an image. Logits are there when they are
 * requested. */
static void test_generate(void **state) {
    static const char *const presets[] = {"bitnet-tiny", "llama-tiny-f32"};
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        tern_model *model = tiny_open(presets[i], NULL);
        const tern_head_image image = model->image;
        assert_true(image.scan.matrix.rows > 0);
        tern_session *s = tiny_session(model, (tern_session_params){.kv = TERN_FORMAT_F16});
        const float *a, *b;
        const int32_t tokens[] = {1, 2, 3};
        assert_int_equal(tern_session_last_logits(s, &a, NULL), TERN_ERR_STATE);
        assert_int_equal(tern_session_eval(s, tokens, 3, TERN_LOGITS_NONE, NULL, NULL), TERN_OK);
        assert_int_equal(tern_session_last_logits(s, &a, NULL), TERN_OK);
        float *kept = tiny_floats(model->config.n_vocab);
        memcpy(kept, a, model->config.n_vocab * sizeof *kept);
        assert_int_equal(tern_session_rewind(s, 0, NULL), TERN_OK);
        assert_int_equal(tern_session_last_logits(s, &b, NULL), TERN_ERR_STATE);
        b = tiny_eval(s, tokens, 3);
        assert_memory_equal(kept, b, model->config.n_vocab * sizeof *kept);
        free(kept);
        tern_session_free(&s);
        tern_model_free(&model);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bounds),       cmocka_unit_test(test_not_finite),
        cmocka_unit_test(test_picks),        cmocka_unit_test(test_allowed),
        cmocka_unit_test(test_fewer_than_k), cmocka_unit_test(test_states),
        cmocka_unit_test(test_generate),
    };
    return cmocka_run_group_tests_name("certified head", tests, NULL, NULL);
}
