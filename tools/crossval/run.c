/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/crossval/run.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tools/crossval/cache.h"
#include "tools/crossval/floats.h"

/* A case that is being compared. */
typedef struct runner {
    const tern_model *model;
    const reference_case *given;
    const char *name; /* name of the case, for messages */
    case_result *out;
    tern_model_info info;
    int32_t *sequence; /* tokens, and all greedy tokens but the last */
    size_t n;
    float_file whole; /* file of all logits; its file is NULL if there is none */
    size_t next_row;  /* next index into given->rows */
    float *row;       /* [n_vocab], the reference's */
    float *some;      /* [n_vocab], tern's logits of the ids that the reference names */
    uint64_t id;      /* of the request; 0: none */
    tern_status status;
    tern_error error; /* belongs to status */
} runner;

bool crossval_wants_cache(const reference_case *c) {
    return c->keys != NULL && c->values != NULL;
}

size_t crossval_positions(const reference_case *c) {
    return c->n_tokens + c->n_greedy - (c->n_greedy > 0);
}

/* ---- one position ---------------------------------------------------------------------------- */

/* Compares all logits at once; *margin is the reference's. */
static tern_status compare_whole(runner *r, const float *ours, double *margin, tern_error *err) {
    const tern_status status = float_file_next(&r->whole, r->row, err);
    if (status != TERN_OK)
        return status;
    const size_t n = r->info.n_vocab;
    const pair_figures f = compare_vectors(r->row, ours, n);
    const double kl = compare_kl(r->row, ours, n);
    int32_t best;
    *margin = compare_margin(r->row, n, &best);
    sum_add(&r->out->logits, &f);
    r->out->whole++;
    r->out->top1 += best == tern_argmax(ours, n);
    r->out->kl_sum += kl;
    r->out->kl_max = fmax(r->out->kl_max, kl);
    return TERN_OK;
}

static void compare_some(runner *r, const reference_row *row, const float *ours) {
    for (size_t i = 0; i < row->n; i++)
        r->some[i] = ours[row->ids[i]];
    const pair_figures f = compare_vectors(row->logits, r->some, row->n);
    sum_add(&r->out->logits, &f);
}

/* Compares the token after `position`, if the reference continued there. */
static void compare_choice(runner *r, size_t position, const float *ours, double margin) {
    const reference_case *c = r->given;
    const size_t step = position + 1 - c->n_tokens; /* wraps around before the last token */
    if (position + 1 < c->n_tokens || step >= c->n_greedy)
        return;
    const int32_t best = tern_argmax(ours, r->info.n_vocab);
    if (best != c->greedy[step]) {
        r->out->differences[r->out->n_differences++] =
            (greedy_difference){.step = step,
                                .reference = c->greedy[step],
                                .ours = best,
                                .reference_margin = c->margins != NULL ? c->margins[step] : margin,
                                .our_margin = (double)ours[best] - (double)ours[c->greedy[step]]};
    }
}

static tern_status compare_position(runner *r, size_t position, const float *ours,
                                    tern_error *err) {
    const reference_case *c = r->given;
    double margin = (double)NAN;
    tern_status status = TERN_OK;
    if (r->whole.file != NULL && position >= c->first && r->whole.read < r->whole.rows)
        status = compare_whole(r, ours, &margin, err);
    if (status == TERN_OK && r->next_row < c->n_rows && c->rows[r->next_row].position == position)
        compare_some(r, &c->rows[r->next_row++], ours);
    compare_choice(r, position, ours, margin);
    return status;
}

/* ---- one case -------------------------------------------------------------------------------- */

static tern_status check_ids(const runner *r, const int32_t *ids, size_t n, const char *what,
                             tern_error *err) {
    for (size_t i = 0; i < n; i++) {
        if ((uint32_t)ids[i] >= r->info.n_vocab) {
            return tern_fail(err, TERN_ERR_TOKEN_RANGE, "%s: %s holds id %d, the model has %u",
                             r->name, what, ids[i], r->info.n_vocab);
        }
    }
    return TERN_OK;
}

/* Checks what needs the model. */
static tern_status check_case(runner *r, tern_error *err) {
    const reference_case *c = r->given;
    tern_status status = check_ids(r, c->tokens, c->n_tokens, "tokens", err);
    if (status == TERN_OK)
        status = check_ids(r, c->greedy, c->n_greedy, "greedy", err);
    for (size_t i = 0; status == TERN_OK && i < c->n_rows; i++) {
        status = check_ids(r, c->rows[i].ids, c->rows[i].n, "some", err);
        if (status == TERN_OK && (c->rows[i].position >= r->n || c->rows[i].n > r->info.n_vocab)) {
            return tern_fail(err, TERN_ERR_ARG, "%s: %zu logits at position %u of %zu", r->name,
                             c->rows[i].n, c->rows[i].position, r->n);
        }
    }
    return status;
}

static tern_status open_logits(runner *r, const reference *all, tern_error *err) {
    const reference_case *c = r->given;
    if (c->logits == NULL)
        return TERN_OK;
    const tern_status status =
        float_file_open(&r->whole, all->folder, c->logits, r->info.n_vocab, err);
    if (status == TERN_OK && (c->first > r->n || r->whole.rows > r->n - c->first)) {
        return tern_fail(err, TERN_ERR_ARG, "%s: %zu rows from position %u on, of %zu positions",
                         r->whole.path, r->whole.rows, c->first, r->n);
    }
    return status;
}

static tern_status allocate(runner *r, tern_error *err) {
    const reference_case *c = r->given;
    const size_t row = r->info.n_vocab * sizeof(float); /* below 2^34 */
    r->row = malloc(row);
    r->some = malloc(row);
    r->sequence = calloc(r->n, sizeof *r->sequence);
    r->out->differences = calloc(c->n_greedy + 1, sizeof *r->out->differences);
    if (r->row == NULL || r->some == NULL || r->sequence == NULL || r->out->differences == NULL)
        return tern_fail(err, TERN_ERR_NOMEM, "%s: no memory for its logits", r->name);
    memcpy(r->sequence, c->tokens, c->n_tokens * sizeof *r->sequence);
    if (c->n_greedy > 1)
        memcpy(r->sequence + c->n_tokens, c->greedy, (c->n_greedy - 1) * sizeof *r->sequence);
    return TERN_OK;
}

/* Checks that tern's tokenizer gives the same tokens for the text. */
static tern_status compare_text(runner *r, tern_error *err) {
    const reference_case *c = r->given;
    const tern_tokenizer *t;
    if (c->text == NULL)
        return TERN_OK;
    tern_status status = tern_model_tokenizer(r->model, &t, err);
    int32_t *ids = calloc(c->n_tokens, sizeof *ids);
    size_t n = 0;
    if (status == TERN_OK && ids == NULL)
        status = tern_fail(err, TERN_ERR_NOMEM, "no memory for %zu tokens", c->n_tokens);
    const unsigned flags = TERN_TOKENIZE_SPECIAL | (c->special ? TERN_TOKENIZE_PARSE : 0);
    if (status == TERN_OK)
        status = tern_tokenize(t, c->text, strlen(c->text), flags, NULL, 0, &n, err);
    if (status == TERN_OK && n == c->n_tokens)
        status = tern_tokenize(t, c->text, strlen(c->text), flags, ids, n, &n, err);
    r->out->text_told = true;
    r->out->text_equal =
        status == TERN_OK && n == c->n_tokens && memcmp(ids, c->tokens, n * sizeof *ids) == 0;
    free(ids);
    return status;
}

/* Decides which differences are near-ties, after all logits were compared. */
static void judge_differences(case_result *out) {
    out->tie_margin = out->logits.pairs > 0 ? 3.0 * sqrt(2.0) * sum_rms(&out->logits) : (double)NAN;
    for (size_t i = 0; i < out->n_differences; i++) {
        greedy_difference *d = &out->differences[i];
        d->near_tie = d->reference_margin <= out->tie_margin; /* false for NaN */
    }
}

/* Compares the rest, after all logits were compared. */
static tern_status finish(runner *r, const reference *all, tern_session *session, tern_error *err) {
    const reference_case *c = r->given;
    tern_status status = compare_text(r, err);
    judge_differences(r->out);
    if (status == TERN_OK && crossval_wants_cache(c)) {
        status = tern_session_rewind(session, 0, err);
        if (status == TERN_OK)
            status = tern_session_eval(session, r->sequence, r->n, TERN_LOGITS_NONE, NULL, err);
        if (status == TERN_OK)
            status = crossval_compare_cache(session, all, c, r->out, err);
    }
    return status;
}

static void close_case(runner *r) {
    float_file_close(&r->whole);
    free(r->row);
    free(r->some);
    free(r->sequence);
    r->row = r->some = NULL;
    r->sequence = NULL;
}

/* ---- cases, several at once ------------------------------------------------------------------ */

typedef struct cases {
    tern_engine *engine;
    tern_session *session;
    const reference *all;
    runner *runners;        /* [n] */
    size_t n, asked, ended; /* of them; they end in any order */
} cases;

static void on_logits(void *user, const tern_progress *progress, size_t position,
                      const float *logits) {
    runner *r = user;
    (void)progress;
    if (r->status == TERN_OK)
        r->status = compare_position(r, position, logits, &r->error);
}

static tern_status open_case(const cases *x, runner *r, tern_error *err) {
    tern_status status = check_case(r, err);
    if (status == TERN_OK)
        status = open_logits(r, x->all, err);
    return status == TERN_OK ? allocate(r, err) : status;
}

/* Submits as many as the engine's queue takes; the next one stays open until then. */
static tern_status ask(cases *x, tern_error *err) {
    tern_status status = TERN_OK;
    while (status == TERN_OK && x->asked < x->n) {
        runner *r = &x->runners[x->asked];
        if (r->sequence == NULL)
            status = open_case(x, r, err);
        const tern_request request = {.tokens = r->sequence,
                                      .n_tokens = r->n,
                                      .prompt_only = true,
                                      .logits = on_logits,
                                      .user = r};
        if (status == TERN_OK)
            status = tern_engine_submit(x->engine, &request, &r->id, err);
        x->asked += status == TERN_OK;
    }
    return status == TERN_ERR_QUEUE ? TERN_OK : status;
}

/* Takes the end of a case. */
static tern_status take(cases *x, const tern_event *e, tern_error *err) {
    runner *r = x->runners;
    while (r->id != e->request)
        r++;
    const tern_error *error = e->end == TERN_END_ERROR ? e->error : &r->error;
    if (e->end == TERN_END_ERROR || r->status != TERN_OK)
        return tern_fail(err, error->status, "%s", error->message);
    x->ended++;
    const tern_status status = finish(r, x->all, x->session, err);
    close_case(r);
    return status;
}

static tern_status run_all(cases *x, tern_error *err) {
    tern_status status = TERN_OK;
    while (status == TERN_OK && x->ended < x->n) {
        const tern_event *events;
        size_t n = 0;
        status = ask(x, err);
        if (status == TERN_OK)
            status = tern_engine_step(x->engine, &events, &n, err);
        for (size_t i = 0; i < n && status == TERN_OK; i++)
            status = take(x, &events[i], err);
    }
    return status;
}

tern_status crossval_run(tern_engine *engine, const tern_model *model, tern_session *session,
                         const reference *all, const reference_case *const *given, size_t n,
                         case_result *results, tern_error *err) {
    cases x = {.engine = engine, .session = session, .all = all, .n = n};
    x.runners = calloc(n, sizeof *x.runners);
    if (x.runners == NULL)
        return tern_fail(err, TERN_ERR_NOMEM, "no memory for %zu cases", n);
    for (size_t i = 0; i < n; i++) {
        x.runners[i] = (runner){.model = model,
                                .given = given[i],
                                .name = given[i]->name,
                                .out = &results[i],
                                .n = crossval_positions(given[i])};
        tern_model_describe(model, &x.runners[i].info);
        results[i].steps = given[i]->n_greedy;
    }
    const tern_status status = run_all(&x, err);
    for (size_t i = 0; i < n; i++)
        close_case(&x.runners[i]);
    free(x.runners);
    return status;
}

void case_result_free(case_result *r) {
    free(r->differences);
    free(r->keys);
    free(r->values);
    *r = (case_result){0};
}

/* ---- judgement ------------------------------------------------------------------------------- */

size_t crossval_equal_steps(const case_result *r) {
    return r->n_differences > 0 ? r->differences[0].step : r->steps;
}

/* The mean decides. A single pair may deviate ten times as much, but not more. */
static bool is_near(const sum_figures *f, double tolerance) {
    return f->pairs == 0 || (sum_cosine_mean(f) >= tolerance &&
                             f->cosine_min >= 1.0 - CROSSVAL_SINGLE * (1.0 - tolerance));
}

/* True if anything was compared with the reference. */
static bool was_compared(const case_result *r) {
    return r->text_told || r->logits.pairs > 0 || r->steps > 0 || r->n_layer > 0;
}

bool crossval_passed(const case_result *r, double tolerance) {
    bool passed =
        was_compared(r) && is_near(&r->logits, tolerance) && (!r->text_told || r->text_equal);
    for (size_t i = 0; i < r->n_differences; i++)
        passed = passed && r->differences[i].near_tie;
    for (size_t i = 0; i < r->n_layer; i++)
        passed = passed && is_near(&r->keys[i], tolerance) && is_near(&r->values[i], tolerance);
    return passed;
}
