/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sequences that share passes (runtime/engine/forward/runner.h). Whatever runs beside a sequence,
 * however it is cut into spans, wherever its pages lie and however many threads there are: every
 * hidden state, logit, picked token and cache row equals that of the sequence alone, one token at a
 * time, in one thread.
 */
#include <stdlib.h>
#include <string.h>

#include "runtime/engine/forward/runner.h"
#include "runtime/engine/sample/sampler.h"
#include "tests/support/check.h"
#include "tests/support/tiny_model.h"

enum {
    SEQUENCES = 5,
    LONGEST = 150, /* positions: more than two pages */
    PAGES = SEQUENCES * ((LONGEST + TERN_PAGE - 1) / TERN_PAGE),
    N_BATCH = 48,
    N_CTX = 192,
    N_PICKS = 3
};

#ifdef __SANITIZE_THREAD__ /* it slows everything down */
enum { ROUNDS = 1, MOST_THREADS = 3 };
#else
enum { ROUNDS = 3, MOST_THREADS = 4 };
#endif

/* A sequence, its results alone, and how far it has come. */
typedef struct sequence {
    int32_t tokens[LONGEST];
    uint32_t pages[PAGES / SEQUENCES];
    size_t length;
    float *hidden, *logits; /* [LONGEST][n_embd], [LONGEST][n_vocab] */
    size_t at;
    tern_sampler *alone, *together; /* samplers in the same state */
} sequence;

/* Most are decided by bounds, the others by all logits. */
static const tern_sampler_params samplers[SEQUENCES] = {
    {.top_p = 1.0f},
    {.temperature = 0.8f, .top_k = 40, .top_p = 0.95f},
    {.temperature = 1.0f, .top_p = 1.0f},
    {.temperature = 0.7f, .top_p = 0.9f, .repetition_penalty = 1.2f, .repeat_last_n = 16},
    {.temperature = 1.2f, .top_p = 1.0f, .min_p = 0.05f},
};

typedef struct world {
    tern_model *model;
    tern_model_info info;
    tern_format kv;
    tern_pool alone, pool;
    sequence s[SEQUENCES];
    float *rows; /* [N_BATCH][n_embd] */
    float *logits;
    check_rng rng;
} world;

static void must(tern_status status, const tern_error *err) {
    if (status != TERN_OK)
        check_fail("%s", err->message);
}

static tern_runner *open_runner(const tern_model *model, uint32_t threads, uint32_t n_batch) {
    const tern_runner_params params = {
        .threads = threads, .n_batch = n_batch, .n_ctx = N_CTX, .n_picks = N_PICKS};
    tern_runner *r = NULL;
    tern_error err = {0};
    must(tern_runner_new(model, &params, &r, &err), &err);
    return r;
}

static tern_pool open_pool(const tern_model *model, tern_format kv) {
    tern_pool pool;
    int refused = 0;
    tern_error err = {0};
    const tern_pool_size size = {.pages = PAGES, .states = SEQUENCES};
    must(tern_pool_open(model, kv, size, &pool, &refused, &err), &err);
    return pool;
}

/* Gives each sequence consecutive pages. */
static void lay_pages(world *w) {
    for (size_t i = 0; i < SEQUENCES; i++)
        for (uint32_t j = 0; j < PAGES / SEQUENCES; j++)
            w->s[i].pages[j] = (uint32_t)i * (PAGES / SEQUENCES) + j;
}

/* Deals out the pool's pages anew. */
static void shuffle_pages(world *w) {
    for (uint32_t i = PAGES - 1; i > 0; i--) {
        const uint32_t j = check_below(&w->rng, i + 1);
        uint32_t *a = &w->s[i % SEQUENCES].pages[i / SEQUENCES];
        uint32_t *b = &w->s[j % SEQUENCES].pages[j / SEQUENCES];
        const uint32_t kept = *a;
        *a = *b;
        *b = kept;
    }
}

/* Computes the results of each sequence alone. */
static void run_alone(world *w) {
    tern_runner *r = open_runner(w->model, 1, 1);
    tern_error err = {0};
    for (size_t i = 0; i < SEQUENCES; i++) {
        sequence *s = &w->s[i];
        for (size_t p = 0; p < s->length; p++) {
            const tern_pass_span span = {.pages = s->pages,
                                         .state = (uint32_t)i,
                                         .position = (uint32_t)p,
                                         .tokens = s->tokens + p,
                                         .n = 1,
                                         .wanted = 1};
            tern_runner_run(r, &w->alone, &span, 1);
            must(tern_runner_check(r, 0, &err), &err);
            memcpy(s->hidden + p * w->info.n_embd, tern_runner_hidden(r, 0),
                   w->info.n_embd * sizeof(float));
            must(tern_runner_logits(r, 0, 1, w->logits, &err), &err);
            memcpy(s->logits + p * w->info.n_vocab, w->logits, w->info.n_vocab * sizeof(float));
        }
    }
    tern_runner_free(&r);
}

static void world_open(world *w, const char *preset, tern_format kv, uint64_t seed) {
    *w = (world){.model = tiny_open(preset, NULL), .kv = kv, .rng = {seed}};
    tern_model_describe(w->model, &w->info);
    w->alone = open_pool(w->model, kv);
    w->pool = open_pool(w->model, kv);
    w->rows = tiny_floats((size_t)N_BATCH * w->info.n_embd);
    w->logits = tiny_floats((size_t)N_BATCH * w->info.n_vocab);
    for (size_t i = 0; i < SEQUENCES; i++) {
        sequence *s = &w->s[i];
        s->length = i == 0 ? LONGEST : 1 + check_below(&w->rng, LONGEST);
        tiny_prompt(w->model, seed + i, s->tokens, s->length);
        s->hidden = tiny_floats((size_t)LONGEST * w->info.n_embd);
        s->logits = tiny_floats((size_t)LONGEST * w->info.n_vocab);
        tern_sampler **both[] = {&s->alone, &s->together};
        for (size_t j = 0; j < 2; j++)
            assert_int_equal(tern_sampler_new(&samplers[i], w->info.n_vocab, both[j], NULL),
                             TERN_OK);
    }
    lay_pages(w);
    run_alone(w);
}

static void world_close(world *w) {
    for (size_t i = 0; i < SEQUENCES; i++) {
        free(w->s[i].hidden);
        free(w->s[i].logits);
        tern_sampler_free(&w->s[i].alone);
        tern_sampler_free(&w->s[i].together);
    }
    free(w->rows);
    free(w->logits);
    tern_pool_close(&w->alone);
    tern_pool_close(&w->pool);
    tern_model_free(&w->model);
}

/* ---- random passes --------------------------------------------------------------------------- */

/* A pass, and the sequence of each span. */
typedef struct pass {
    tern_pass_span spans[SEQUENCES];
    sequence *of[SEQUENCES];
    size_t n, rows;
} pass;

/* The embeddings of a span's tokens, which replace the tokens. */
static const float *embeddings(world *w, const sequence *s, size_t n, size_t row) {
    float *rows = w->rows + row * w->info.n_embd;
    for (size_t i = 0; i < n; i++)
        assert_int_equal(
            tern_model_embed(w->model, s->tokens[s->at + i], rows + i * w->info.n_embd, NULL),
            TERN_OK);
    return rows;
}

static void add_span(world *w, pass *p, sequence *s) {
    const size_t left = s->length - s->at, room = N_BATCH - p->rows;
    size_t n = check_below(&w->rng, 3) == 0 ? 1 + check_below(&w->rng, N_BATCH)
                                            : 1 + check_below(&w->rng, 5);
    n = n < left ? n : left;
    n = n < room ? n : room;
    if (n == 0)
        return;
    tern_pass_span span = {.pages = s->pages,
                           .state = (uint32_t)(s - w->s),
                           .position = (uint32_t)s->at,
                           .tokens = s->tokens + s->at,
                           .n = n,
                           .wanted = check_below(&w->rng, 2) == 0
                                         ? check_below(&w->rng, (uint32_t)n + 1)
                                         : check_below(&w->rng, 2)};
    if (check_below(&w->rng, 4) == 0) {
        span.rows = embeddings(w, s, n, p->rows);
        span.tokens = NULL;
    }
    p->spans[p->n] = span;
    p->of[p->n++] = s;
    p->rows += n;
}

/* Some of the sequences, in random order. */
static pass make_pass(world *w) {
    pass p = {.n = 0};
    const size_t first = check_below(&w->rng, SEQUENCES);
    const size_t step = 1 + check_below(&w->rng, SEQUENCES - 1);
    const size_t most = 1 + check_below(&w->rng, SEQUENCES);
    for (size_t i = 0; i < SEQUENCES && p.n < most; i++)
        add_span(w, &p, &w->s[(first + i * step) % SEQUENCES]);
    return p;
}

/* Runs wrong guesses for a sequence, which then continues from where it was. */
static void spoil(world *w, tern_runner *r) {
    int32_t wrong[8];
    sequence *s = &w->s[check_below(&w->rng, SEQUENCES)];
    const size_t left = s->length - s->at;
    const size_t n = left < 8 ? left : 8;
    if (n == 0 || w->pool.n_states > 0) /* states cannot be taken back */
        return;
    tiny_prompt(w->model, check_random(&w->rng), wrong, n);
    const tern_pass_span span = {
        .pages = s->pages, .position = (uint32_t)s->at, .tokens = wrong, .n = n, .wanted = n};
    tern_runner_run(r, &w->pool, &span, 1);
}

static void check_hidden(const world *w, tern_runner *r, const pass *p) {
    size_t row = 0;
    for (size_t i = 0; i < p->n; i++) {
        const tern_pass_span *span = &p->spans[i];
        const size_t first = span->position + span->n - span->wanted;
        assert_int_equal(tern_runner_check(r, i, NULL), TERN_OK);
        for (size_t j = 0; j < span->wanted; j++, row++)
            check_floats("hidden state", p->of[i]->hidden + (first + j) * w->info.n_embd,
                         tern_runner_hidden(r, row), w->info.n_embd);
    }
}

/* Checks the logits of some of the wanted rows, computed together. */
static void check_logits(world *w, tern_runner *r, const pass *p) {
    const float *want[N_BATCH];
    size_t wanted = 0;
    for (size_t i = 0; i < p->n; i++) {
        const tern_pass_span *span = &p->spans[i];
        for (size_t j = 0; j < span->wanted; j++)
            want[wanted++] =
                p->of[i]->logits + (span->position + span->n - span->wanted + j) * w->info.n_vocab;
    }
    if (wanted == 0)
        return;
    const size_t first = check_below(&w->rng, (uint32_t)wanted);
    const size_t n = 1 + check_below(&w->rng, (uint32_t)(wanted - first));
    assert_int_equal(tern_runner_logits(r, first, n, w->logits, NULL), TERN_OK);
    for (size_t i = 0; i < n; i++)
        check_floats("logits", want[first + i], w->logits + i * w->info.n_vocab, w->info.n_vocab);
}

/* Picks a token after one of the wanted rows of each span, all together. */
static void check_picks(world *w, tern_runner *r, const pass *p) {
    tern_pick picks[SEQUENCES];
    int32_t want[SEQUENCES];
    sequence *of[SEQUENCES];
    size_t n = 0, row = 0;
    for (size_t i = 0; i < p->n; row += p->spans[i++].wanted) {
        const tern_pass_span *span = &p->spans[i];
        sequence *s = p->of[i];
        if (span->wanted == 0)
            continue;
        const size_t j = check_below(&w->rng, (uint32_t)span->wanted);
        const float *logits =
            s->logits + (span->position + span->n - span->wanted + j) * w->info.n_vocab;
        assert_int_equal(tern_sampler_pick(s->alone, logits, &want[n], NULL), TERN_OK);
        tern_sampler_accept(s->alone, want[n]);
        of[n] = s;
        picks[n++] = (tern_pick){.row = row + j, .sampler = s->together, .token = -1};
    }
    tern_runner_picks(r, picks, n);
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(picks[i].status, TERN_OK);
        if (picks[i].token != want[i])
            check_fail("pick %zu of %zu: token %d, not %d", i, n, picks[i].token, want[i]);
        tern_sampler_accept(of[i]->together, want[i]);
    }
}

/* Runs the sequences in random passes until all have come to their ends. */
static void run_together(world *w, tern_runner *r) {
    size_t left = SEQUENCES;
    for (size_t i = 0; i < SEQUENCES; i++)
        w->s[i].at = 0;
    while (left > 0) {
        const pass p = make_pass(w);
        if (check_below(&w->rng, 6) == 0)
            spoil(w, r);
        if (p.n == 0)
            continue;
        tern_runner_run(r, &w->pool, p.spans, p.n);
        check_hidden(w, r, &p);
        if (check_below(&w->rng, 2) == 0)
            check_logits(w, r, &p);
        check_picks(w, r, &p);
        for (size_t i = 0; i < p.n; i++) {
            p.of[i]->at += p.spans[i].n;
            left -= p.of[i]->at == p.of[i]->length;
        }
    }
}

/* Compares a sequence's keys and values with those it has alone. `alone` lists its pages there. */
static void check_cache(const world *w, size_t i, const uint32_t *alone) {
    for (uint32_t layer = 0; layer < w->info.n_layer; layer++)
        for (uint32_t head = 0; head < w->info.n_head_kv; head++)
            for (uint32_t p = 0; p < w->s[i].length && tern_pool_has(&w->pool, layer); p++)
                for (int value = 0; value < 2; value++)
                    check_bytes(value ? "V" : "K",
                                tern_pool_row(&w->alone, value, layer, head, alone, p),
                                tern_pool_row(&w->pool, value, layer, head, w->s[i].pages, p),
                                w->pool.row_bytes);
}

static void check_together(const char *preset, tern_format kv, uint32_t threads_most) {
    world w;
    world_open(&w, preset, kv, 77 + (uint64_t)kv);
    uint32_t before[SEQUENCES][PAGES / SEQUENCES];
    for (size_t i = 0; i < SEQUENCES; i++)
        memcpy(before[i], w.s[i].pages, sizeof before[i]);
    for (uint32_t threads = 1; threads <= threads_most; threads++) {
        tern_runner *r = open_runner(w.model, threads, N_BATCH);
        for (size_t round = 0; round < ROUNDS; round++) {
            check_case("%s, cache %s, %u threads, round %zu", preset,
                       tern_format_describe(kv)->name, threads, round);
            shuffle_pages(&w);
            run_together(&w, r);
            for (size_t i = 0; i < SEQUENCES; i++)
                check_cache(&w, i, before[i]);
        }
        assert_int_equal(tern_runner_work(r).scans > 0, tern_head_is_imaged(&w.model->image));
        tern_runner_free(&r);
    }
    world_close(&w);
}

static void test_f16(void **state) {
    (void)state;
    check_together("bitnet-tiny", TERN_FORMAT_F16, MOST_THREADS);
}

static void test_f32(void **state) {
    (void)state;
    check_together("bitnet-tiny", TERN_FORMAT_F32, MOST_THREADS);
}

static void test_q8_0(void **state) {
    (void)state;
    check_together("bitnet-tiny", TERN_FORMAT_Q8_0, MOST_THREADS);
}

/* Other architectures: biases, norms of heads, other products. */
static void test_architectures(void **state) {
    (void)state;
    for (const char *const *preset = tiny_presets(); *preset != NULL; preset++)
        check_together(*preset, TERN_FORMAT_F16, 2);
}

/* ---- one bad sequence ------------------------------------------------------------------------ */

static void test_overflow_of_one(void **state) {
    world w;
    (void)state;
    world_open(&w, "bitnet-tiny", TERN_FORMAT_F16, 5);
    tern_runner *r = open_runner(w.model, 2, N_BATCH);
    for (size_t i = 0; i < (size_t)3 * w.info.n_embd; i++)
        w.rows[i] = 3e38f;
    for (size_t bad = 0; bad < 3; bad++) {
        tern_pass_span spans[3];
        tern_error err = {0};
        for (size_t i = 0; i < 3; i++)
            spans[i] = (tern_pass_span){.pages = w.s[i].pages,
                                        .tokens = i == bad ? NULL : w.s[i].tokens,
                                        .rows = w.rows,
                                        .n = i + 1 < w.s[i].length ? i + 1 : 1,
                                        .wanted = 1};
        tern_runner_run(r, &w.pool, spans, 3);
        for (size_t i = 0; i < 3; i++) {
            assert_int_equal(tern_runner_check(r, i, &err),
                             i == bad ? TERN_ERR_NONFINITE : TERN_OK);
            if (i != bad)
                check_floats("hidden state", w.s[i].hidden + (spans[i].n - 1) * w.info.n_embd,
                             tern_runner_hidden(r, i), w.info.n_embd);
        }
        assert_non_null(strstr(err.message, "an embedding in layer 0"));
    }
    tern_runner_free(&r);
    world_close(&w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_f16),
        cmocka_unit_test(test_f32),
        cmocka_unit_test(test_q8_0),
        cmocka_unit_test(test_architectures),
        cmocka_unit_test(test_overflow_of_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
