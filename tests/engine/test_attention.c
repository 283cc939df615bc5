/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A whole attention block made of the kernels (projections, rotation, cache, 32 query heads over 8
 * key/value heads, output projection) against the same in double precision and libm.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "dispatch/select.h"
#include "kernels/reference.h"
#include "runtime/model/config/rope.h"
#include "tests/support/check.h"
#include "tests/support/tiny_model.h"

enum {
    HEADS = 32,
    KV_HEADS = 8,
    GROUP = HEADS / KV_HEADS,
    DIM = 24, /* leaves a tail after vectors of 16 */
    HALF = DIM / 2,
    EMBD = 96,
    WIDTH = HEADS * DIM,
    KV_WIDTH = KV_HEADS * DIM,
    POSITIONS = 70 /* more than a chunk */
};

static const double BASE = 10000.0;

typedef struct block {
    tern_format cache;
    tern_op rope;
    float *x;                 /* [POSITIONS][EMBD] */
    float *wq, *wk, *wv, *wo; /* [WIDTH][EMBD], [KV_WIDTH][EMBD] twice, [EMBD][WIDTH] */
} block;

static float *normal_floats(check_rng *rng, size_t n, float deviation) {
    float *values = tiny_floats(n);
    for (size_t i = 0; i < n; i++)
        values[i] = check_normal(rng) * deviation;
    return values;
}

static block block_new(tern_format cache, tern_op rope) {
    check_rng rng = {307};
    const float in = 1.0f / sqrtf((float)EMBD);
    return (block){.cache = cache,
                   .rope = rope,
                   .x = normal_floats(&rng, (size_t)POSITIONS * EMBD, 1.0f),
                   .wq = normal_floats(&rng, (size_t)WIDTH * EMBD, 2.0f * in),
                   .wk = normal_floats(&rng, (size_t)KV_WIDTH * EMBD, 2.0f * in),
                   .wv = normal_floats(&rng, (size_t)KV_WIDTH * EMBD, in),
                   .wo = normal_floats(&rng, (size_t)WIDTH * EMBD, 1.0f / sqrtf((float)WIDTH))};
}

static void block_free(block *b) {
    free(b->x);
    free(b->wq);
    free(b->wk);
    free(b->wv);
    free(b->wo);
}

/* ---- double precision ---------------------------------------------------------------------------
 */

static void naive_multiply(const float *w, size_t rows, size_t cols, const double *x, double *y) {
    for (size_t r = 0; r < rows; r++) {
        y[r] = 0.0;
        for (size_t c = 0; c < cols; c++)
            y[r] += (double)w[r * cols + c] * x[c];
    }
}

static void naive_rotate(tern_op op, double *x, size_t position) {
    for (size_t i = 0; i < HALF; i++) {
        const double angle = (double)position * pow(BASE, -2.0 * (double)i / DIM);
        const size_t a = op == TERN_OP_ROPE_NORM ? 2 * i : i;
        const size_t b = op == TERN_OP_ROPE_NORM ? 2 * i + 1 : i + HALF;
        const double x0 = x[a];
        const double x1 = x[b];
        x[a] = x0 * cos(angle) - x1 * sin(angle);
        x[b] = x0 * sin(angle) + x1 * cos(angle);
    }
}

/* Rounds values as the cache does. */
static void naive_store(tern_format cache, double *x, size_t n) {
    for (size_t i = 0; i < n; i++) {
        float value = (float)x[i];
        if (cache == TERN_FORMAT_F16) {
            uint16_t half;
            tern_ref_store(TERN_FORMAT_F16, &value, 1, &half);
            tern_ref_embed(TERN_FORMAT_F16, &half, 1, &value);
        }
        x[i] = (double)value;
    }
}

static void naive_head(const double *q, const double *k, const double *v, size_t positions,
                       double *out) {
    double weights[POSITIONS];
    double total = 0.0;
    memset(out, 0, DIM * sizeof *out);
    for (size_t j = 0; j < positions; j++) {
        double score = 0.0;
        for (size_t i = 0; i < DIM; i++)
            score += q[i] * k[j * KV_WIDTH + i];
        weights[j] = exp(score / sqrt((double)DIM));
        total += weights[j];
    }
    for (size_t j = 0; j < positions; j++)
        for (size_t i = 0; i < DIM; i++)
            out[i] += weights[j] / total * v[j * KV_WIDTH + i];
}

/* y[POSITIONS][EMBD] */
static void naive_block(const block *b, double *y) {
    static double k[POSITIONS][KV_WIDTH], v[POSITIONS][KV_WIDTH];
    double x[EMBD], q[WIDTH], heads[WIDTH];
    for (size_t p = 0; p < POSITIONS; p++) {
        for (size_t i = 0; i < EMBD; i++)
            x[i] = (double)b->x[p * EMBD + i];
        naive_multiply(b->wq, WIDTH, EMBD, x, q);
        naive_multiply(b->wk, KV_WIDTH, EMBD, x, k[p]);
        naive_multiply(b->wv, KV_WIDTH, EMBD, x, v[p]);
        for (size_t h = 0; h < HEADS; h++)
            naive_rotate(b->rope, q + h * DIM, p);
        for (size_t h = 0; h < KV_HEADS; h++)
            naive_rotate(b->rope, k[p] + h * DIM, p);
        naive_store(b->cache, k[p], KV_WIDTH);
        naive_store(b->cache, v[p], KV_WIDTH);
        for (size_t h = 0; h < HEADS; h++)
            naive_head(q + h * DIM, k[0] + h / GROUP * DIM, v[0] + h / GROUP * DIM, p + 1,
                       heads + h * DIM);
        naive_multiply(b->wo, EMBD, WIDTH, heads, y + p * EMBD);
    }
}

/* ---- kernels
 * -------------------------------------------------------------------------------------
 */

typedef struct kernel_set {
    tern_matmul_fn *multiply;
    tern_rope_fn *rotate;
    tern_store_fn *store;
    const tern_kernel_row *attend;
} kernel_set;

static kernel_set kernels_of(uint64_t mask, const block *b) {
    return (kernel_set){.multiply =
                            tern_kernel_select(mask, TERN_OP_GEMV, TERN_FORMAT_F32)->fn.matmul,
                        .rotate = tern_kernel_select(mask, b->rope, TERN_FORMAT_NONE)->fn.rope,
                        .store = tern_kernel_select(mask, TERN_OP_STORE, b->cache)->fn.store,
                        .attend = tern_kernel_select(mask, TERN_OP_ATTEND, b->cache)};
}

static void multiply(const kernel_set *r, const float *w, size_t rows, size_t cols, const float *x,
                     float *y) {
    const tern_matrix matrix = {.format = TERN_FORMAT_F32,
                                .layout = TERN_LAYOUT_ROWS,
                                .rows = rows,
                                .cols = cols,
                                .scale = 1.0f,
                                .data = w};
    const tern_activations in = {.cols = cols, .x = x, .x_stride = cols};
    const tern_tile tile = {.t0 = 0, .t1 = 1, .r0 = 0, .r1 = rows};
    r->multiply(&matrix, &in, &tile, y, rows);
}

/* Scratch of run_block; the caches are [KV_HEADS][POSITIONS][DIM] of the cache's format. */
typedef struct buffers {
    float *q, *k, *v, *heads, *states, *scratch;
    uint8_t *cache_k, *cache_v;
} buffers;

static buffers buffers_new(void) {
    return (buffers){.q = tiny_floats(WIDTH),
                     .k = tiny_floats(KV_WIDTH),
                     .v = tiny_floats(KV_WIDTH),
                     .heads = tiny_floats(WIDTH),
                     .states = tiny_floats(tern_attend_state_bytes(GROUP, DIM) / sizeof(float)),
                     .scratch = tiny_floats(tern_attend_scratch_bytes(GROUP, DIM) / sizeof(float)),
                     .cache_k = (uint8_t *)tiny_floats((size_t)KV_WIDTH * POSITIONS),
                     .cache_v = (uint8_t *)tiny_floats((size_t)KV_WIDTH * POSITIONS)};
}

static void buffers_free(buffers *s) {
    free(s->q);
    free(s->k);
    free(s->v);
    free(s->heads);
    free(s->states);
    free(s->scratch);
    free(s->cache_k);
    free(s->cache_v);
}

/* Attention of all heads at a position. Its q, k and v are in the buffers. */
static void run_heads(const block *b, const kernel_set *r, buffers *s, size_t position) {
    const size_t row_bytes = tiny_cache_row_bytes(b->cache, DIM);
    for (size_t h = 0; h < KV_HEADS; h++) {
        uint8_t *k = s->cache_k + h * POSITIONS * row_bytes;
        uint8_t *v = s->cache_v + h * POSITIONS * row_bytes;
        r->store(s->k + h * DIM, DIM, k + position * row_bytes);
        r->store(s->v + h * DIM, DIM, v + position * row_bytes);
        const tern_attend_args args = {
            .heads = {.positions = position + 1, .tokens = 1, .group = GROUP, .dim = DIM},
            .q = s->q + h * GROUP * DIM,
            .k = k,
            .v = v,
            .page_stride = TERN_ATTEND_CHUNK * row_bytes,
            .scale = 1.0f / sqrtf((float)DIM),
            .scratch = s->scratch};
        tern_attend_all(r->attend, &args, s->states, s->heads + h * GROUP * DIM, GROUP * DIM);
    }
}

/* y[POSITIONS][EMBD] */
static void run_block(const block *b, const kernel_set *r, float *y) {
    double frequency[HALF];
    float c[HALF], s[HALF];
    buffers w = buffers_new();
    tern_rope_frequencies(BASE, 1.0, NULL, DIM, frequency);
    for (size_t p = 0; p < POSITIONS; p++) {
        const float *x = b->x + p * EMBD;
        tern_rope_angles(frequency, 1.0, HALF, p, c, s);
        multiply(r, b->wq, WIDTH, EMBD, x, w.q);
        multiply(r, b->wk, KV_WIDTH, EMBD, x, w.k);
        multiply(r, b->wv, KV_WIDTH, EMBD, x, w.v);
        for (size_t h = 0; h < HEADS; h++)
            r->rotate(w.q + h * DIM, c, s, HALF);
        for (size_t h = 0; h < KV_HEADS; h++)
            r->rotate(w.k + h * DIM, c, s, HALF);
        run_heads(b, r, &w, p);
        multiply(r, b->wo, EMBD, WIDTH, w.heads, y + p * EMBD);
    }
    buffers_free(&w);
}

static void check_close(const double *want, const float *got, double bound) {
    double worst = 0.0;
    for (size_t i = 0; i < (size_t)POSITIONS * EMBD; i++)
        worst = fmax(worst, fabs(want[i] - (double)got[i]));
    if (!(worst <= bound))
        check_fail("largest error is %g, must be at most %g", worst, bound);
}

static void check_block(tern_format cache, tern_op rope, double bound) {
    static double want[POSITIONS * EMBD];
    const char *isas[16];
    const size_t n_isas = tiny_isas(isas, 16);
    block b = block_new(cache, rope);
    float *got = tiny_floats((size_t)POSITIONS * EMBD);
    naive_block(&b, want);
    for (size_t i = 0; i < n_isas; i++) {
        uint64_t mask = 0;
        check_case("attention block, cache %s, %s, %s", tern_format_describe(cache)->name,
                   tern_op_name(rope), isas[i]);
        assert_int_equal(tern_cpu_mask(isas[i], NULL, &mask, NULL), TERN_OK);
        const kernel_set kernels = kernels_of(mask, &b);
        run_block(&b, &kernels, got);
        check_close(want, got, bound);
    }
    free(got);
    block_free(&b);
}

static void test_f32_cache(void **state) {
    (void)state;
    check_block(TERN_FORMAT_F32, TERN_OP_ROPE_NORM, 1e-5);
    check_block(TERN_FORMAT_F32, TERN_OP_ROPE_NEOX, 1e-5);
}

/* A float and a double may round to different halves: an error of 2^-11, once in a thousand
 * values. */
static void test_f16_cache(void **state) {
    (void)state;
    check_block(TERN_FORMAT_F16, TERN_OP_ROPE_NORM, 1e-3);
    check_block(TERN_FORMAT_F16, TERN_OP_ROPE_NEOX, 1e-3);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_f32_cache),
        cmocka_unit_test(test_f16_cache),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
