/* SPDX-License-Identifier: Apache-2.0 */
/* Rounds of prefill and decoding that mark the end of every stage. */

#include "tools/speed/stages.h"

#include <stdlib.h>
#include <string.h>

#include "base/metrics.h"
#include "tools/cli/kv_layers.h"
#include "tools/speed/speed.h"

bool bench_stage_ran(const bench_stage *s) {
    return series_high(&s->work_ms) + series_high(&s->wait_ms) > 0.0;
}

/* x per token as 1e9 per second of work. */
static double rate(const bench_stage *s, double x) {
    return bench_ratio(1e-6 * x, series_median(&s->work_ms));
}

double bench_stage_gbs(const bench_stage *s) {
    return rate(s, s->bytes);
}

double bench_stage_gweights(const bench_stage *s) {
    return rate(s, s->weights);
}

/* ---- bytes read ------------------------------------------------------------------------------ */

/* Adds a matrix that passes read completely `times` times per token, and that `tokens` tokens
 * multiply. Of experts, a pass reads at most those that its tokens choose. */
static void add_matrix(bench_stage *s, const tern_linear_info *matrix, double times,
                       double tokens) {
    const double share =
        matrix->experts > 0 ? (double)matrix->experts_used / (double)matrix->experts : 1.0;
    const double most = tokens * share;
    s->bytes += (times < most ? times : most) * (double)matrix->bytes;
    s->weights += most * (double)matrix->matrix.rows * (double)matrix->matrix.cols;
}

static bool is_in_layer(const tern_linear_info *matrix) {
    return matrix->stage != TERN_STAGE_HEAD && matrix->stage != TERN_STAGE_SCAN;
}

static uint64_t matrices_in_layers(const tern_model *m) {
    const tern_linear *linear;
    tern_linear_info matrix;
    uint64_t n = 0;
    for (size_t i = 0; (linear = tern_model_linear(m, i)) != NULL; i++) {
        tern_linear_describe(m, linear, &matrix);
        n += is_in_layer(&matrix);
    }
    return n;
}

/* Per token: how often passes read each matrix, and rows of the head read after its scan. In the
 * last layer only tokens with results are multiplied, except for keys and values. */
typedef struct readings {
    double passes, heads, scans, rows;
    double results;
    uint32_t last_layer;
} readings;

/*
 * True for matrices of keys and values: in the last layer tokens without results need these, too.
 */
static bool is_for_cache(const tern_linear_info *matrix) {
    static const char *const ends[] = {"attn_k.weight", "attn_v.weight"};
    const tern_span name = matrix->tensor;
    bool found = false;
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        const size_t n = strlen(ends[i]);
        found |= name.size >= n && memcmp(name.data + name.size - n, ends[i], n) == 0;
    }
    return found;
}

static void add_layer_matrix(bench_stage *s, const tern_linear_info *matrix, const readings *r) {
    if (matrix->layer == r->last_layer && !is_for_cache(matrix))
        add_matrix(s, matrix, r->results, r->results);
    else
        add_matrix(s, matrix, r->passes, 1.0);
}

static void add_head_rows(bench_stage *s, const tern_linear_info *head, double rows) {
    s->bytes = rows * (double)head->bytes / (double)head->matrix.rows;
    s->weights = rows * (double)head->matrix.cols;
}

static void add_matrices(bench_stages *s, const tern_model *m, const readings *r) {
    const tern_linear *linear;
    tern_linear_info matrix;
    for (size_t i = 0; (linear = tern_model_linear(m, i)) != NULL; i++) {
        tern_linear_describe(m, linear, &matrix);
        bench_stage *stage = &s->stage[matrix.stage];
        if (is_in_layer(&matrix)) {
            add_layer_matrix(stage, &matrix, r);
        } else if (matrix.stage == TERN_STAGE_SCAN) {
            add_matrix(stage, &matrix, r->scans, r->scans);
        } else {
            add_matrix(stage, &matrix, r->heads, r->heads);
            add_head_rows(&s->stage[TERN_STAGE_ROWS], &matrix, r->rows);
        }
    }
}

/* Positions of the cache that attention reads for tokens [first, end) in passes of n_batch: a block
 * of tokens reads the positions that its last token attends to. */
static double positions_read(size_t first, size_t end, size_t n_batch) {
    double sum = 0.0;
    for (size_t pass = first; pass < end; pass += n_batch) {
        const size_t pass_end = pass + n_batch < end ? pass + n_batch : end;
        for (size_t t = pass; t < pass_end; t += TERN_ATTEND_TOKENS) {
            const size_t seen = t + TERN_ATTEND_TOKENS;
            sum += (double)(seen < pass_end ? seen : pass_end);
        }
    }
    return sum;
}

/* The mean over the layers that attend, the last layer among them. That one reads only for tokens
 * with results: all, or the last one. */
static double positions_of_layer(uint32_t layers, size_t first, size_t end, size_t n_batch,
                                 bool all_have_results) {
    const double all = positions_read(first, end, n_batch);
    const double last = all_have_results ? all : (double)end;
    return (all * (layers - 1) + last) / layers;
}

/* Fills in bytes and weights per token from the work of a round. Its tokens begin at `first`, in
 * passes of n_batch; all of them have results, or only the last one. */
static void count(const bench *b, bench_stages *s, tern_session_work before, size_t first,
                  size_t n_batch, bool all_have_results) {
    const tern_model *m = b->l.model;
    const tern_session_work now = tern_session_work_done(b->l.session);
    const double tokens = (double)s->tokens;
    tern_model_info info;
    tern_model_describe(m, &info);
    const kept_layers kept = kept_layers_of(m, tern_session_cache(b->l.session));
    const uint64_t passes = now.passes - before.passes;
    const uint64_t scans = now.scans - before.scans;
    const uint64_t products = passes * matrices_in_layers(m) + scans;
    const readings read = {.passes = (double)passes / tokens,
                           .heads = (double)(now.products - before.products - products) / tokens,
                           .scans = (double)scans / tokens,
                           .rows = (double)(now.head_rows - before.head_rows) / tokens,
                           .results = all_have_results ? 1.0 : 1.0 / tokens,
                           .last_layer = info.n_layer - 1};
    for (size_t i = 0; i < TERN_STAGE_COUNT; i++)
        s->stage[i].bytes = s->stage[i].weights = 0.0;
    add_matrices(s, m, &read);
    s->stage[TERN_STAGE_ATTENTION].bytes =
        positions_of_layer(kept.n, first, first + s->tokens, n_batch, all_have_results) / tokens *
        (double)tern_model_kv_bytes(m, 1, tern_session_cache(b->l.session));
}

/* ---- a round --------------------------------------------------------------------------------- */

static uint64_t now_ns(void *user) {
    (void)user;
    return tern_clock_nanoseconds();
}

/* Adds the results of a round that took `whole` nanoseconds. */
static void keep(bench_stages *s, const tern_stages *found, uint64_t whole) {
    const double to_ms = 1e-6 / (double)s->tokens;
    double work = 0.0;
    double wait = 0.0;
    for (tern_stage i = 0; i < TERN_STAGE_COUNT; i++) {
        series_add(&s->stage[i].work_ms, to_ms * tern_stages_work(found, i));
        series_add(&s->stage[i].wait_ms, to_ms * tern_stages_wait(found, i));
        work += to_ms * tern_stages_work(found, i);
        wait += to_ms * tern_stages_wait(found, i);
    }
    series_add(&s->work_ms, work);
    series_add(&s->wait_ms, wait);
    series_add(&s->whole_ms, to_ms * (double)whole);
    series_add(&s->outside_ms, to_ms * (double)whole - work - wait);
}

/* Evaluates the prompt in one call. */
static tern_status prefill(bench *b, tern_error *err) {
    return tern_session_eval(b->l.session, b->tokens, b->main.n_prompt, TERN_LOGITS_NONE, NULL,
                             err);
}

static tern_status decode(bench *b, tern_error *err) {
    tern_status status = TERN_OK;
    for (size_t i = 0; i < b->main.n_decode && status == TERN_OK; i++) {
        int32_t token;
        status = tern_session_pick(b->l.session, b->sampler, &token, err);
        if (status == TERN_OK)
            status = tern_session_eval(b->l.session, &token, 1, TERN_LOGITS_NONE, NULL, err);
    }
    return status;
}

/* Watches one of the two bodies, in passes of at most n_batch tokens. */
static tern_status watch(bench *b, bench_stages *s, tern_stages *found,
                         tern_status (*body)(bench *b, tern_error *err), size_t n_batch,
                         tern_error *err) {
    const tern_session_work before = tern_session_work_done(b->l.session);
    const size_t first = tern_session_position(b->l.session);
    tern_status status = tern_session_watch(b->l.session, found, err);
    const uint64_t begin = tern_clock_nanoseconds();
    tern_stages_begin(found);
    status = status == TERN_OK ? body(b, err) : status;
    const uint64_t end = tern_clock_nanoseconds();
    if (status == TERN_OK)
        status = tern_session_watch(b->l.session, NULL, err);
    if (status == TERN_OK) {
        keep(s, found, end - begin);
        count(b, s, before, first, n_batch, body == decode);
    }
    return status;
}

static tern_status stages_round(bench *b, tern_stages *found, tern_error *err) {
    const size_t start = b->main.depth > 0 ? b->main.depth - 1 : 0; /* like bench_measure */
    tern_status status = TERN_OK;
    if (b->stages->prefill.tokens > 0) {
        status = tern_session_rewind(b->l.session, 0, err);
        if (status == TERN_OK) {
            status = watch(b, &b->stages->prefill, found, prefill, tern_session_batch(b->l.session),
                           err);
        }
    }
    if (b->stages->decode.tokens > 0 && status == TERN_OK) {
        status = bench_fill(b, start, err);
        if (status == TERN_OK) {
            status =
                tern_session_eval(b->l.session, b->tokens + start, 1, TERN_LOGITS_NONE, NULL, err);
        }
        if (status == TERN_OK)
            status = watch(b, &b->stages->decode, found, decode, 1, err);
    }
    return status;
}

int bench_measure_stages(bench *b) {
    tern_error err = {0};
    tern_stages *found = NULL;
    const uint32_t threads = tern_session_threads(b->l.session);
    b->stages = calloc(1, sizeof *b->stages);
    if (b->stages == NULL) {
        complain("no memory for the stages");
        return EXIT_FAILED;
    }
    b->stages->prefill.tokens = b->main.n_prompt;
    b->stages->decode.tokens = b->main.n_decode;
    b->stages->prefill.threads = b->stages->decode.threads = threads;
    tern_status status = tern_stages_new(threads, now_ns, NULL, &found, &err);
    for (uint64_t i = 0; i < options_integer(b->o, OPT_REPEAT) && status == TERN_OK; i++)
        status = stages_round(b, found, &err);
    tern_stages_free(&found);
    return status == TERN_OK ? EXIT_DONE : complain_error(&err);
}
