/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/speed/sequences.h"

#include <stdlib.h>
#include <string.h>

#include "base/metrics.h"
#include "tern/engine.h"
#include "tools/speed/speed.h"

enum { DIGEST_BYTES = 65 }; /* as in tern/engine.h */

/* An engine and its sequences. The prompt of sequence i is the benchmark's tokens from token i on.
 * The last sequence is the prompt that arrives, if there is one. */
typedef struct crowd {
    bench *b;
    tern_engine *engine;
    size_t n;                    /* sequences */
    uint64_t *ids;               /* [n] requests; 0: not running */
    char (*alone)[DIGEST_BYTES]; /* [n] digest of each sequence alone; "": not known yet */
    int32_t *prompt;             /* [b->n_tokens] */
    size_t got;                  /* tokens of all sequences in the last pass */
    double ended;                /* the time when that pass ended */
    double took;                 /* seconds from the end of the pass before it */
} crowd;

/* Times between tokens. */
typedef struct gaps {
    tern_latencies times;
    double sum;
} gaps;

/* ---- sizes ----------------------------------------------------------------------------------- */

static size_t most_of(const bench *b) {
    size_t most = 1;
    for (size_t i = 0; i < b->n_sequences; i++)
        most = b->sequences[i].n > most ? b->sequences[i].n : most;
    return most;
}

static size_t rows_of_pass(const bench *b) {
    const size_t rows = tern_session_batch(b->l.session), least = 2 * most_of(b);
    return rows > least ? rows : least;
}

static size_t depth_of(const bench *b) {
    return b->main.depth > 0 ? b->main.depth : 1;
}

/*
 * Tokens that a sequence generates. Sequences do not begin in the same pass, because the last page
 * of each prompt is not shared and is computed first. Each gets enough additional tokens that all
 * of them decode together in as many passes as were asked for.
 */
static size_t tokens_of(const bench *b) {
    const size_t most = most_of(b);
    return b->main.n_decode + most * TERN_ATTEND_CHUNK / (rows_of_pass(b) - most) + 2;
}

size_t bench_sequence_end(const bench *b) {
    return depth_of(b) + tokens_of(b);
}

/* ---- the engine ------------------------------------------------------------------------------ */

/* Opens an engine for n sequences, with cache memory for so many positions. */
static tern_status open_crowd(crowd *c, bench *b, size_t n, uint64_t positions, double gap,
                              tern_error *err) {
    tern_engine_params p = tern_engine_params_default();
    p.n_ctx = b->context;
    p.n_sequences = p.n_queue = (uint32_t)n;
    p.n_batch = (uint32_t)rows_of_pass(b);
    p.threads = b->main.threads;
    p.kv = loader_kv_format(b->o);
    p.gap_seconds = gap;
    p.pool_bytes = loader_pool_bytes(&b->l, &p, positions);
    *c = (crowd){.b = b,
                 .n = n,
                 .ids = calloc(n, sizeof *c->ids),
                 .alone = calloc(n, sizeof *c->alone),
                 .prompt = calloc(b->n_tokens, sizeof *c->prompt)};
    if (c->ids == NULL || c->alone == NULL || c->prompt == NULL)
        return tern_fail(err, TERN_ERR_NOMEM, "no memory for %zu sequences", n);
    return tern_engine_new(b->l.model, &p, &c->engine, err);
}

static void close_crowd(crowd *c) {
    tern_engine_free(&c->engine);
    free(c->ids);
    free(c->alone);
    free(c->prompt);
}

/*
 * Submits sequence i with a prompt of so many tokens. max_tokens 0: it runs until it is cancelled.
 */
static tern_status begin(crowd *c, size_t i, size_t n_prompt, size_t max_tokens, tern_error *err) {
    const bench *b = c->b;
    for (size_t t = 0; t < n_prompt; t++)
        c->prompt[t] = b->tokens[(i + t) % b->n_tokens];
    const tern_request request = {
        .tokens = c->prompt, .n_tokens = n_prompt, .max_tokens = max_tokens, .ignore_end = true};
    return tern_engine_submit(c->engine, &request, &c->ids[i], err);
}

/*
 * Checks that sequence i, which has ended, has the same digest as alone, if its length is the same.
 */
static tern_status check_end(crowd *c, size_t i, const tern_event *e, tern_error *err) {
    c->ids[i] = 0;
    if (e->end == TERN_END_ERROR)
        return tern_fail(err, e->error->status, "%s", e->error->message);
    if (e->end != TERN_END_LENGTH)
        return TERN_OK;
    if (c->alone[i][0] == '\0')
        memcpy(c->alone[i], e->digest, DIGEST_BYTES);
    if (strcmp(c->alone[i], e->digest) != 0) {
        return tern_fail(err, TERN_ERR_STATE,
                         "sequence %zu has digest %.16s... beside others, %.16s... alone", i,
                         e->digest, c->alone[i]);
    }
    return TERN_OK;
}

static size_t sequence_of(const crowd *c, uint64_t id) {
    size_t i = 0;
    while (c->ids[i] != id)
        i++;
    return i;
}

/* Runs one pass. */
static tern_status step(crowd *c, tern_error *err) {
    const tern_event *events;
    size_t n;
    tern_status status = tern_engine_step(c->engine, &events, &n, err);
    const double now = tern_clock_seconds();
    c->took = now - c->ended;
    c->ended = now;
    c->got = 0;
    for (size_t e = 0; e < n && status == TERN_OK; e++)
        if (events[e].kind == TERN_EVENT_TOKEN)
            c->got++;
        else if (events[e].kind == TERN_EVENT_END)
            status = check_end(c, sequence_of(c, events[e].request), &events[e], err);
    return status;
}

static bool is_idle(const crowd *c) {
    const tern_engine_state now = tern_engine_now(c->engine);
    return now.waiting + now.running == 0;
}

static tern_status finish(crowd *c, tern_error *err) {
    tern_status status = TERN_OK;
    while (status == TERN_OK && !is_idle(c))
        status = step(c, err);
    return status;
}

static tern_status cancel_all(crowd *c, tern_error *err) {
    for (size_t i = 0; i < c->n; i++)
        (void)tern_engine_cancel(c->engine, c->ids[i]);
    const tern_status status = finish(c, err);
    tern_engine_forget(c->engine);
    return status;
}

static void add_gap(gaps *g, const crowd *c) {
    tern_latencies_add(&g->times, c->took);
    g->sum += c->took;
}

/* Times passes that give each of n sequences a token, at most `most` of them, not counting the
 * first. */
static tern_status watch(crowd *c, size_t n, size_t most, gaps *g, tern_error *err) {
    tern_status status = TERN_OK;
    bool together = false;
    while (status == TERN_OK && !is_idle(c) && g->times.added < most) {
        status = step(c, err);
        if (together && c->got == n)
            add_gap(g, c);
        together = c->got == n;
    }
    tern_latencies_sort(&g->times);
    return status;
}

static double percentile_ms(const gaps *g, double p) {
    return 1e3 * tern_latencies_percentile(&g->times, p);
}

/* ---- sequences that decode together ---------------------------------------------------------- */

static tern_status together(crowd *c, bench_sequences *s, tern_error *err) {
    gaps g = {.sum = 0.0};
    tern_status status = TERN_OK;
    for (size_t i = 0; i < s->n && status == TERN_OK; i++)
        status = begin(c, i, depth_of(c->b), tokens_of(c->b), err);
    if (status == TERN_OK)
        status = watch(c, s->n, c->b->main.n_decode, &g, err);
    if (status == TERN_OK)
        status = finish(c, err);
    series_add(&s->tps, bench_ratio((double)(s->n * g.times.added), g.sum));
    series_add(&s->p50_ms, percentile_ms(&g, 0.50));
    series_add(&s->p95_ms, percentile_ms(&g, 0.95));
    return status;
}

/*
 * Runs each sequence alone, for its digest and so that later rounds find the pages of its prompt.
 */
static tern_status all_alone(crowd *c, tern_error *err) {
    tern_status status = TERN_OK;
    for (size_t i = 0; i < c->n && status == TERN_OK; i++) {
        status = begin(c, i, depth_of(c->b), tokens_of(c->b), err);
        if (status == TERN_OK)
            status = finish(c, err);
    }
    return status;
}

static tern_status measure_together(bench *b, tern_error *err) {
    crowd c = {.n = 0};
    const size_t most = most_of(b);
    const uint64_t positions = loader_positions(most, (uint32_t)bench_sequence_end(b));
    tern_status status = open_crowd(&c, b, most, positions, 0.0, err);
    if (status == TERN_OK)
        status = all_alone(&c, err);
    const uint64_t rounds = options_integer(b->o, OPT_REPEAT);
    for (uint64_t round = 0; round < rounds; round++)
        for (size_t i = 0; i < b->n_sequences && status == TERN_OK; i++)
            status = together(&c, &b->sequences[i], err);
    close_crowd(&c);
    return status;
}

/* ---- a prompt that arrives ------------------------------------------------------------------- */

/*
 * Runs passes until the last sequence, which arrives, has a token; all others get one in each pass.
 */
static tern_status watch_arrival(crowd *c, size_t n, gaps *g, tern_error *err) {
    const size_t last = c->n - 1;
    tern_status status = begin(c, last, c->b->n_arriving, 1, err);
    while (status == TERN_OK && c->ids[last] != 0) {
        status = step(c, err);
        add_gap(g, c);
        if (status == TERN_OK && c->got < n) {
            return tern_fail(err, TERN_ERR_CONTEXT,
                             "the sequences filled their contexts of %u before the prompt that "
                             "arrived was read",
                             c->b->context);
        }
    }
    tern_latencies_sort(&g->times);
    return status;
}

static tern_status arrive(crowd *c, bench_arrival *a, tern_error *err) {
    gaps before = {.sum = 0.0}, during = {.sum = 0.0};
    tern_status status = TERN_OK;
    for (size_t i = 0; i < a->n && status == TERN_OK; i++)
        status = begin(c, i, depth_of(c->b), 0, err);
    if (status == TERN_OK)
        status = watch(c, a->n, c->b->main.n_decode, &before, err);
    if (status == TERN_OK)
        status = watch_arrival(c, a->n, &during, err);
    series_add(&a->before_p50_ms, percentile_ms(&before, 0.50));
    series_add(&a->before_p95_ms, percentile_ms(&before, 0.95));
    series_add(&a->during_p50_ms, percentile_ms(&during, 0.50));
    series_add(&a->during_p95_ms, percentile_ms(&during, 0.95));
    series_add(&a->first_ms, 1e3 * during.sum);
    return status == TERN_OK ? cancel_all(c, err) : status;
}

/* Computes the digest of the arriving prompt alone. */
static tern_status read_alone(crowd *c, tern_error *err) {
    tern_status status = begin(c, c->n - 1, c->b->n_arriving, 1, err);
    if (status == TERN_OK)
        status = finish(c, err);
    tern_engine_forget(c->engine);
    return status;
}

static tern_status measure_arrivals(bench *b, tern_error *err) {
    crowd c = {.n = 0};
    const size_t most = most_of(b);
    const uint64_t positions =
        loader_positions(most, b->context) + loader_positions(1, (uint32_t)b->n_arriving + 1);
    const double gap = 1e-3 * (double)options_integer(b->o, OPT_GAP);
    tern_status status = open_crowd(&c, b, most + 1, positions, gap, err);
    if (status == TERN_OK)
        status = read_alone(&c, err);
    const uint64_t rounds = options_integer(b->o, OPT_REPEAT);
    for (uint64_t round = 0; round < rounds; round++)
        for (size_t i = 0; i < b->n_sequences && status == TERN_OK; i++)
            status = arrive(&c, &b->arrivals[i], err);
    close_crowd(&c);
    return status;
}

int bench_measure_sequences(bench *b) {
    tern_error err = {0};
    tern_status status = measure_together(b, &err);
    if (status == TERN_OK && b->n_arriving > 0)
        status = measure_arrivals(b, &err);
    return status == TERN_OK ? EXIT_DONE : complain_error(&err);
}
