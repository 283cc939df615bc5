/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/crossval/run.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tools/crossval/cache.h"
#include "tools/crossval/floats.h"

enum { PIECE = 32 }; /* positions whose logits are in memory at once; changes no bit */

typedef struct runner {
    tern_session *session;
    const reference_case *given;
    const char *name; /* of the case, for messages */
    case_result *out;
    tern_model_info info;
    int32_t *sequence; /* tokens, then all greedy tokens but the last */
    size_t n;
    float_file whole; /* rows of all logits; file NULL: none */
    size_t next_row;  /* of given->rows */
    float *logits;    /* [PIECE][n_vocab], tern's */
    float *row;       /* [n_vocab], the reference's */
    float *some;      /* [n_vocab], tern's logits of the ids that the reference names */
} runner;

size_t crossval_positions(const reference_case *c) {
    return c->n_tokens + c->n_greedy - (c->n_greedy > 0);
}

/* ---- one position ---------------------------------------------------------------------------- */

/* All logits at once; *margin is the reference's. */
static tern_status compare_whole(runner *r, const float *ours, double *margin, tern_error *err) {
    const tern_status status = float_file_next(&r->whole, r->row, err);
    if (status != TERN_OK) {
        return status;
    }
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
    for (size_t i = 0; i < row->n; i++) {
        r->some[i] = ours[row->ids[i]];
    }
    const pair_figures f = compare_vectors(row->logits, r->some, row->n);
    sum_add(&r->out->logits, &f);
}

/* The token after `position`, where the reference continued. */
static void compare_choice(runner *r, size_t position, const float *ours, double margin) {
    const reference_case *c = r->given;
    const size_t step = position + 1 - c->n_tokens; /* wraps in front of the last token */
    if (position + 1 < c->n_tokens || step >= c->n_greedy) {
        return;
    }
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
    if (r->whole.file != NULL && position >= c->first && r->whole.read < r->whole.rows) {
        status = compare_whole(r, ours, &margin, err);
    }
    if (status == TERN_OK && r->next_row < c->n_rows && c->rows[r->next_row].position == position) {
        compare_some(r, &c->rows[r->next_row++], ours);
    }
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

/* What could be checked only now that the model is known. */
static tern_status check_case(runner *r, tern_error *err) {
    const reference_case *c = r->given;
    tern_status status = check_ids(r, c->tokens, c->n_tokens, "tokens", err);
    if (status == TERN_OK) {
        status = check_ids(r, c->greedy, c->n_greedy, "greedy", err);
    }
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
    if (c->logits == NULL) {
        return TERN_OK;
    }
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
    r->logits = aligned_alloc(TERN_ALIGN, PIECE * row); /* PIECE * 4 bytes are whole lines of 64 */
    r->row = malloc(row);
    r->some = malloc(row);
    r->sequence = calloc(r->n, sizeof *r->sequence);
    r->out->differences = calloc(c->n_greedy + 1, sizeof *r->out->differences);
    if (r->logits == NULL || r->row == NULL || r->some == NULL || r->sequence == NULL ||
        r->out->differences == NULL) {
        return tern_fail(err, TERN_ERR_NOMEM, "no memory for the logits of %d positions", PIECE);
    }
    memcpy(r->sequence, c->tokens, c->n_tokens * sizeof *r->sequence);
    if (c->n_greedy > 1) {
        memcpy(r->sequence + c->n_tokens, c->greedy, (c->n_greedy - 1) * sizeof *r->sequence);
    }
    return TERN_OK;
}

static tern_status evaluate(runner *r, tern_error *err) {
    tern_status status = tern_session_rewind(r->session, 0, err);
    for (size_t at = 0; status == TERN_OK && at < r->n; at += PIECE) {
        const size_t n = r->n - at < PIECE ? r->n - at : PIECE;
        status =
            tern_session_eval(r->session, r->sequence + at, n, TERN_LOGITS_ALL, r->logits, err);
        for (size_t i = 0; status == TERN_OK && i < n; i++) {
            status = compare_position(r, at + i, r->logits + i * r->info.n_vocab, err);
        }
    }
    return status;
}

/* Whether tern makes the same tokens of the text. */
static tern_status compare_text(runner *r, tern_error *err) {
    const reference_case *c = r->given;
    const tern_tokenizer *t;
    if (c->text == NULL) {
        return TERN_OK;
    }
    tern_status status = tern_model_tokenizer(tern_session_model(r->session), &t, err);
    int32_t *ids = calloc(c->n_tokens, sizeof *ids);
    size_t n = 0;
    if (status == TERN_OK && ids == NULL) {
        status = tern_fail(err, TERN_ERR_NOMEM, "no memory for %zu tokens", c->n_tokens);
    }
    const unsigned flags = TERN_TOKENIZE_SPECIAL | (c->special ? TERN_TOKENIZE_PARSE : 0);
    if (status == TERN_OK) {
        status = tern_tokenize(t, c->text, strlen(c->text), flags, NULL, 0, &n, err);
    }
    if (status == TERN_OK && n == c->n_tokens) {
        status = tern_tokenize(t, c->text, strlen(c->text), flags, ids, n, &n, err);
    }
    r->out->text_told = true;
    r->out->text_equal =
        status == TERN_OK && n == c->n_tokens && memcmp(ids, c->tokens, n * sizeof *ids) == 0;
    free(ids);
    return status;
}

/* Decides which differences are near-ties, now that all logits are known. */
static void judge_differences(case_result *out) {
    out->tie_margin = out->logits.pairs > 0 ? 3.0 * sqrt(2.0) * sum_rms(&out->logits) : (double)NAN;
    for (size_t i = 0; i < out->n_differences; i++) {
        greedy_difference *d = &out->differences[i];
        d->near_tie = d->reference_margin <= out->tie_margin; /* false for NaN */
    }
}

static tern_status run(runner *r, const reference *all, tern_error *err) {
    tern_status status = check_case(r, err);
    if (status == TERN_OK) {
        status = open_logits(r, all, err);
    }
    if (status == TERN_OK) {
        status = allocate(r, err);
    }
    if (status == TERN_OK) {
        status = evaluate(r, err);
    }
    if (status == TERN_OK) {
        status = compare_text(r, err);
    }
    if (status == TERN_OK) {
        status = crossval_compare_cache(r->session, all, r->given, r->out, err);
    }
    return status;
}

tern_status crossval_run_case(tern_session *session, const reference *all, const reference_case *c,
                              case_result *out, tern_error *err) {
    runner r = {
        .session = session, .given = c, .name = c->name, .out = out, .n = crossval_positions(c)};
    tern_model_describe(tern_session_model(session), &r.info);
    out->steps = c->n_greedy;
    const tern_status status = run(&r, all, err);
    judge_differences(out);
    float_file_close(&r.whole);
    free(r.logits);
    free(r.row);
    free(r.some);
    free(r.sequence);
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

/* The mean decides; a single pair may be off by ten times as much, not more. */
static bool is_near(const sum_figures *f, double tolerance) {
    return f->pairs == 0 || (sum_cosine_mean(f) >= tolerance &&
                             f->cosine_min >= 1.0 - CROSSVAL_SINGLE * (1.0 - tolerance));
}

bool crossval_passed(const case_result *r, double tolerance) {
    bool passed = is_near(&r->logits, tolerance) && (!r->text_told || r->text_equal);
    for (size_t i = 0; i < r->n_differences; i++) {
        passed = passed && r->differences[i].near_tie;
    }
    for (size_t i = 0; i < r->n_layer; i++) {
        passed = passed && is_near(&r->keys[i], tolerance) && is_near(&r->values[i], tolerance);
    }
    return passed;
}
