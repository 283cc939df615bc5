/* SPDX-License-Identifier: Apache-2.0 */
/* Rounds of prefill and decode, and passes of several tokens. */

#include <inttypes.h>
#include <stdlib.h>

#include "base/metrics.h"
#include "bench/peaks.h"
#include "tern/team.h"
#include "tools/speed/speed.h"

enum { BATCH_ROUNDS = 5 }; /* passes of each size in each of the --repeat rounds */

tern_status bench_fill(bench *b, size_t depth, tern_error *err) {
    tern_session *s = b->l.session;
    const size_t position = tern_session_position(s);
    if (position >= depth)
        return tern_session_rewind(s, (uint32_t)depth, err);
    return tern_session_eval(s, b->tokens + position, depth - position, TERN_LOGITS_NONE, NULL,
                             err);
}

/* ---- a round -------------------------------------------------------------------------------- */

/* Runs inside the timed window of decoding. */
static bool touch_with_token(int32_t token, double seconds, void *user) {
    (void)token;
    (void)seconds;
    touch_token(user);
    return true;
}

/* Calls tern_generate with the benchmark's tokens; the end of a text does not stop it. */
static tern_status generate(bench *b, const int32_t *tokens, size_t n_tokens, size_t n_decode,
                            tern_generation *g, tern_error *err) {
    const tern_generate_params params = {.max_tokens = n_decode,
                                         .ignore_end = true,
                                         .draft = b->l.draft != NULL ? TERN_DRAFT_WHERE_IT_PAYS
                                                                     : TERN_DRAFT_NEVER};
    const bool touches = b->touch.words != NULL;
    return tern_generate(b->l.session, b->sampler, tokens, n_tokens, &params,
                         touches ? touch_with_token : NULL, &b->touch, g, err);
}

static tern_status prefill(bench *b, bench_point *p, tern_error *err) {
    tern_generation g;
    tern_status status = tern_session_rewind(b->l.session, 0, err);
    if (status == TERN_OK)
        status = generate(b, b->tokens, p->n_prompt, 0, &g, err);
    if (status == TERN_OK) {
        series_add(&p->prefill_tps, bench_ratio((double)p->n_prompt, g.prefill_seconds));
        const double evaluated = tern_clock_seconds();
        int32_t first; /* needs the head, which the prompt itself does not */
        status = tern_session_pick(b->l.session, b->sampler, &first, err);
        series_add(&p->first_ms, 1e3 * (g.prefill_seconds + tern_clock_seconds() - evaluated));
    }
    return status;
}

/* Evaluating the last token of the context gives the first logits. An empty context is treated as
 * one token. */
static tern_status decode(bench *b, bench_point *p, tern_error *err) {
    tern_generation g;
    const size_t start = p->depth > 0 ? p->depth - 1 : 0;
    tern_status status = bench_fill(b, start, err);
    if (status != TERN_OK)
        return status;
    const double before = bandwidth_measure(&b->memory, p->threads);
    const tern_session_work work = tern_session_work_done(b->l.session);
    (void)energy_joules(&b->energy); /* measures from here on */
    status = generate(b, b->tokens + start, 1, p->n_decode, &g, err);
    const double joules = energy_joules(&b->energy);
    if (status != TERN_OK)
        return status;
    const double after = bandwidth_measure(&b->memory, p->threads);
    const tern_session_work done = tern_session_work_done(b->l.session);
    series_add(&p->read_gbs, before > after ? before : after);
    series_add(&p->decode_tps, bench_ratio((double)g.n_generated, g.decode_seconds));
    series_add(&p->head_rows, bench_ratio((double)(done.head_rows - work.head_rows),
                                          (double)(done.scans - work.scans)));
    p->n_drafted += g.n_drafted;
    p->n_accepted += g.n_accepted;
    series_add(&p->p50_ms, g.p50_ms);
    series_add(&p->p95_ms, g.p95_ms);
    if (joules >= 0.0)
        series_add(&p->joules, bench_ratio(joules, (double)g.n_generated));
    return TERN_OK;
}

int bench_measure(bench *b, bench_point *p) {
    tern_error err = {0};
    const uint64_t repeats = options_integer(b->o, OPT_REPEAT);
    for (uint64_t i = 0; i < repeats; i++)
        if ((p->n_prompt > 0 && prefill(b, p, &err) != TERN_OK) ||
            (p->n_decode > 0 && decode(b, p, &err) != TERN_OK))
            return complain_error(&err);
    return EXIT_DONE;
}

/* ---- passes of several tokens -----------------------------------------------------------------
 */

/* Milliseconds of one pass after the main point's depth, with logits of all its tokens, or if
 * `logits` is NULL with a token picked after the last one. The session keeps the pass's tokens. */
static tern_status time_pass(bench *b, size_t n, float *logits, double *ms, tern_error *err) {
    tern_session *s = b->l.session;
    const size_t depth = b->main.depth;
    int32_t token;
    tern_status status = tern_session_rewind(s, (uint32_t)depth, err);
    if (status != TERN_OK)
        return status;
    const double begin = tern_clock_seconds();
    status = tern_session_eval(s, b->tokens + depth, n,
                               logits != NULL ? TERN_LOGITS_ALL : TERN_LOGITS_NONE, logits, err);
    if (status == TERN_OK && logits == NULL)
        status = tern_session_pick(s, b->sampler, &token, err);
    *ms = 1e3 * (tern_clock_seconds() - begin);
    return status;
}

/* Measures all sizes once, one after the other, each relative to the first pass, which has one
 * token. */
static tern_status batch_round(bench *b, float *logits, tern_error *err) {
    double one_all = 0.0;
    double one_pick = 0.0;
    tern_status status = TERN_OK;
    for (size_t i = 0; i < b->n_batches && status == TERN_OK; i++) {
        bench_batch *batch = &b->batches[i];
        double all;
        double pick;
        status = time_pass(b, batch->tokens, logits, &all, err);
        if (status == TERN_OK)
            status = time_pass(b, batch->tokens, NULL, &pick, err);
        if (status == TERN_OK) {
            one_all = i == 0 ? all : one_all;
            one_pick = i == 0 ? pick : one_pick;
            series_add(&batch->all_ms, all);
            series_add(&batch->pick_ms, pick);
            series_add(&batch->all_ratio, bench_ratio(all, one_all));
            series_add(&batch->pick_ratio, bench_ratio(pick, one_pick));
        }
    }
    return status;
}

int bench_measure_batches(bench *b) {
    size_t most = 1;
    for (size_t i = 0; i < b->n_batches; i++)
        most = b->batches[i].tokens > most ? b->batches[i].tokens : most;
    const size_t bytes = most * b->l.info.n_vocab * sizeof(float);
    float *logits = aligned_alloc(TERN_ALIGN, (bytes + TERN_ALIGN - 1) / TERN_ALIGN * TERN_ALIGN);
    if (logits == NULL) {
        complain("no memory for the logits of %zu tokens", most);
        return EXIT_FAILED;
    }
    tern_error err = {0};
    tern_status status = bench_fill(b, b->main.depth, &err);
    const uint64_t rounds = BATCH_ROUNDS * options_integer(b->o, OPT_REPEAT);
    for (uint64_t i = 0; i < rounds && status == TERN_OK; i++)
        status = batch_round(b, logits, &err);
    free(logits);
    return status == TERN_OK ? EXIT_DONE : complain_error(&err);
}

/* ---- the processor ----------------------------------------------------------------------------
 */

enum { PEAK_ROUNDS = 20 }; /* enough that all threads run at the same time */

typedef struct peak_call {
    const tern_kernel_row *kernel;
    double *rates; /* [threads] multiply-accumulates a second */
} peak_call;

static void peak_body(tern_worker worker, void *argument) {
    const peak_call *call = argument;
    double best = 0.0;
    tern_team_barrier(worker);
    for (int i = 0; i < PEAK_ROUNDS; i++) {
        const double rate =
            tern_roof_macs(call->kernel->isa, tern_unit_of_kernel(call->kernel->name));
        best = rate > best ? rate : best;
    }
    call->rates[worker.index] = best;
}

/* The kernel that multiplies matrices by several tokens; NULL: none. */
static const tern_kernel_row *gemm_kernel(const loaded *l) {
    for (size_t i = 0; i < l->n_kernels; i++)
        if (l->kernels[i]->op == TERN_OP_GEMM)
            return l->kernels[i];
    return NULL;
}

void bench_measure_peak(bench *b) {
    const tern_kernel_row *kernel = gemm_kernel(&b->l);
    tern_team *team = NULL;
    if (tern_model_device(b->l.model) != NULL || kernel == NULL ||
        tern_team_new(b->main.threads, &team, NULL) != TERN_OK)
        return;
    const uint32_t threads = tern_team_size(team);
    peak_call call = {.kernel = kernel, .rates = calloc(threads, sizeof(double))};
    if (call.rates != NULL) {
        tern_team_run(team, peak_body, &call);
        for (uint32_t i = 0; i < threads; i++)
            b->peak_gmacs += 1e-9 * call.rates[i];
        b->peak_isa = kernel->isa;
        b->peak_unit = tern_unit_name(tern_unit_of_kernel(kernel->name));
    }
    free(call.rates);
    tern_team_free(&team);
}
