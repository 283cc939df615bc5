/* SPDX-License-Identifier: Apache-2.0 */

#include "runtime/model/tune/measure.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/metrics.h"
#include "kernels/facts.h"
#include "runtime/model/tune/estimate.h"

const tern_tune_effort tern_tune_quick = {
    .rounds = 16, .sample_seconds = 0.3e-3, .budget_seconds = 0.15};
const tern_tune_effort tern_tune_thorough = {.rounds = 21, .sample_seconds = 2e-3};
const tern_tune_effort tern_tune_again = {
    .rounds = 32, .sample_seconds = 0.5e-3, .budget_seconds = 0.5};

struct tern_tuner {
    const tern_guard *guard;
    tern_team *team;
    tern_tune_effort effort;
    tern_layout preferred; /* NONE: the table's */
    bool (*stop)(void *);  /* NULL: never */
    void *user;
    bool stopped;
    const tern_tune_choice *only; /* the one alternative to the table's; NULL: all that there are */
    double start;                 /* when measuring began */
    tern_arena memory;            /* holds `stream` */
    uint8_t *stream;              /* [stream_bytes] */
    size_t stream_bytes, at;      /* where the next matrix begins */
    tern_arena operands;          /* holds x and y of the matrix that is measured */
    tern_activations x;
    float *y; /* [TERN_TUNE_TOKENS][rows] */
    double gemv_seconds[TERN_TUNE_ROUNDS * TERN_TUNE_CANDIDATES];
    double gemm_seconds[TERN_TUNE_ROUNDS * TERN_TUNE_CANDIDATES];
    double gemv_again[TERN_TUNE_ROUNDS], gemm_again[TERN_TUNE_ROUNDS];
};

/* ---- memory ---------------------------------------------------------------------------------- */

/*
 * Fills memory with bytes from 0x38 to 0x3f. They are ordinary numbers in every type that weights,
 * scales and activations have: 0.5 to 1.97 as f16, 4e-5 to 0.75 as f32 and bf16, 56 to 63 as int8.
 * So no product meets a denormal number, which would cost more than it does in a model.
 */
static void fill(uint8_t *bytes, size_t n) {
    uint32_t state = 20240229;
    const size_t block = n < 4096 ? n : 4096;
    for (size_t i = 0; i < block; i++) {
        state = state * 1664525u + 1013904223u;
        bytes[i] = (uint8_t)(0x38 | state >> 29);
    }
    for (size_t i = block; i < n; i += block)
        memcpy(bytes + i, bytes, n - i < block ? n - i : block);
}

/* Each thread fills the part that it will read first: that places the pages. */
static void fill_part(tern_worker worker, void *argument) {
    const tern_tuner *t = argument;
    const tern_part part = tern_team_split(worker, t->stream_bytes, 4096);
    fill(t->stream + part.begin, part.end - part.begin);
}

tern_status tern_tuner_new(const tern_guard *guard, tern_team *team, uint64_t stream,
                           const tern_tune_effort *effort, tern_tuner **out, tern_error *err) {
    void *memory;
    tern_tuner *t = calloc(1, sizeof *t);
    if (t == NULL)
        return tern_fail(err, TERN_ERR_NOMEM, "no memory to measure kernels");
    *t = (tern_tuner){
        .guard = guard, .team = team, .effort = *effort, .stream_bytes = (size_t)stream};
    t->preferred = TERN_LAYOUT_NONE;
    tern_status status = tern_arena_new(t->stream_bytes, true, &t->memory, err);
    if (status == TERN_OK)
        status = tern_arena_take(&t->memory, t->stream_bytes, 1, &memory, err);
    if (status != TERN_OK) {
        tern_tuner_free(&t);
        return status;
    }
    t->stream = memory;
    tern_team_run(team, fill_part, t);
    t->start = tern_clock_seconds(); /* set now, so that the first key is measured in any case */
    *out = t;
    return TERN_OK;
}

void tern_tuner_free(tern_tuner **tuner) {
    if (tuner == NULL || *tuner == NULL)
        return;
    tern_arena_free(&(*tuner)->memory);
    tern_arena_free(&(*tuner)->operands);
    free(*tuner);
    *tuner = NULL;
}

/* Reserves activations of TERN_TUNE_TOKENS tokens in every form, and room for that many results. */
static bool take_operands(tern_tuner *t, size_t cols, size_t results) {
    const size_t q_stride = (cols + TERN_Q_PAD - 1) / TERN_Q_PAD * TERN_Q_PAD;
    const size_t blocks = (cols + TERN_BLOCK - 1) / TERN_BLOCK;
    const size_t each[] = {cols * sizeof(float),   q_stride,
                           sizeof(float),          sizeof(int32_t),
                           blocks * sizeof(float), blocks * sizeof(int32_t)};
    enum { PARTS = sizeof each / sizeof *each };
    void *part[PARTS + 1];
    size_t total = 0;
    tern_arena_free(&t->operands);
    for (size_t i = 0; i < PARTS; i++)
        if (!tern_arena_reserve(&total, TERN_TUNE_TOKENS, each[i]))
            return false;
    const size_t inputs = total;
    if (!tern_arena_reserve(&total, results, sizeof(float)) ||
        tern_arena_new(total, false, &t->operands, NULL) != TERN_OK)
        return false;
    fill(t->operands.base, inputs);
    for (size_t i = 0; i < PARTS; i++)
        if (tern_arena_take(&t->operands, TERN_TUNE_TOKENS, each[i], &part[i], NULL) != TERN_OK)
            return false;
    if (tern_arena_take(&t->operands, results, sizeof(float), &part[PARTS], NULL) != TERN_OK)
        return false;
    memset(part[3], 0, TERN_TUNE_TOKENS * each[3]); /* sums are multiplied by codes: no overflow */
    memset(part[5], 0, TERN_TUNE_TOKENS * each[5]);
    t->x = (tern_activations){.cols = cols,
                              .x = part[0],
                              .x_stride = cols,
                              .q = part[1],
                              .q_stride = q_stride,
                              .s = part[2],
                              .sum = part[3],
                              .d = part[4],
                              .block_sum = part[5],
                              .d_stride = blocks};
    t->y = part[PARTS];
    return true;
}

/* ---- one measurement ------------------------------------------------------------------------- */

/* A sample: products one after the other, each with the next matrix of the stream. */
typedef struct sample {
    const tern_kernel_row *kernel;
    const tern_tuner *tuner;
    size_t rows, tokens, products;
    size_t bytes;   /* from one matrix to the next */
    double seconds; /* of all products */
} sample;

static size_t matrix_bytes(tern_layout layout, tern_format format, size_t rows, size_t cols) {
    const size_t packed = tern_packed_bytes(layout, rows, cols);
    const size_t element = tern_format_describe(format)->block_bytes;
    const size_t bytes = packed > 0 ? packed : rows * cols * element;
    return (bytes + TERN_ALIGN - 1) / TERN_ALIGN * TERN_ALIGN;
}

/* The place of matrix number i of the sample. If a matrix does not fit after the last one, the
 * stream begins anew. */
static const void *place(const sample *s, size_t i) {
    const size_t slots = s->tuner->stream_bytes / s->bytes;
    const size_t first = s->tuner->at / s->bytes;
    return s->tuner->stream + (first + i) % slots * s->bytes;
}

static void run(const sample *s, tern_part part, size_t i) {
    const tern_matrix w = {.format = s->kernel->format,
                           .layout = s->kernel->layout,
                           .rows = s->rows,
                           .cols = s->tuner->x.cols,
                           .scale = 1.0f,
                           .data = place(s, i)};
    const tern_tile tile = {.t0 = 0, .t1 = s->tokens, .r0 = part.begin, .r1 = part.end};
    if (part.begin < part.end)
        s->kernel->fn.matmul(&w, &s->tuner->x, &tile, s->tuner->y, s->rows);
}

static void run_all(tern_worker worker, void *argument) {
    sample *s = argument;
    const tern_part part = tern_team_split(worker, s->rows, TERN_ROW_GROUP);
    tern_team_barrier(worker); /* everybody is awake */
    const double start = tern_clock_seconds();
    for (size_t i = 0; i < s->products; i++)
        run(s, part, i);
    tern_team_barrier(worker);
    if (worker.index == 0)
        s->seconds = tern_clock_seconds() - start;
}

/* Measures the seconds of one product of the sample by the team. The stream moves on. */
static double measure(tern_tuner *t, sample *s) {
    tern_team_run(t->team, run_all, s);
    t->at = (t->at + s->products * s->bytes) % t->stream_bytes;
    return s->seconds / (double)s->products;
}

/* The least time that one thread takes for the sample's product when everything is in its cache. */
static double pilot(const sample *s) {
    const tern_part all = {.begin = 0, .end = s->rows};
    double least = 0.0;
    run(s, all, 0);
    for (int i = 0; i < 3; i++) {
        const double start = tern_clock_seconds();
        run(s, all, 0);
        const double seconds = tern_clock_seconds() - start;
        least = i == 0 || seconds < least ? seconds : least;
    }
    return least;
}

/* ---- all candidates of an operation ---------------------------------------------------------- */

/* The rows of a pilot, and its tokens for gemm. A gemm kernel may be pilot_lag times slower than
 * the best of its layout's pilots. */
enum { PILOT_ROWS = 32, PILOT_TOKENS = 32 };
static const double pilot_lag = 1.5;

/* The same for whole measurements; of the first two rounds the better one counts. */
static const double slow_lag = 1.25;

/* Multiplications that a thread does in a gemm sample: about as long as a sample should take. */
static const double gemm_work = 20e6;

/* Makes a sample. If its matrix does not fit into the stream, it has no products. */
static sample new_sample(const tern_tuner *t, const tern_kernel_row *kernel, size_t rows,
                         size_t tokens) {
    const size_t bytes = matrix_bytes(kernel->layout, kernel->format, rows, t->x.cols);
    return (sample){.kernel = kernel,
                    .tuner = t,
                    .rows = rows,
                    .tokens = tokens,
                    .products = bytes <= t->stream_bytes,
                    .bytes = bytes};
}

/* The most rows that `wanted` allows, in whole groups for each thread. */
static size_t fit_rows(const tern_tuner *t, size_t rows, double wanted) {
    const size_t unit = (size_t)TERN_ROW_GROUP * tern_team_size(t->team);
    const size_t units = (size_t)(wanted / (double)unit);
    const size_t fit = units > 0 ? units * unit : unit;
    return rows < fit ? rows : fit;
}

/* Drops gemv kernels that take longer from the cache than the first one from memory: they cannot
 * win. A pilot tells that in microseconds. */
static void drop_gemv(const tern_tuner *t, const tern_kernel_row *const *kernels, size_t n,
                      size_t n_rows, double best, bool *out) {
    const size_t few = n_rows < PILOT_ROWS ? n_rows : PILOT_ROWS;
    const double share = (double)n_rows / (double)few / (double)tern_team_size(t->team);
    for (size_t i = 1; i < n; i++) {
        const sample whole = new_sample(t, kernels[i], n_rows, 1);
        const sample s = new_sample(t, kernels[i], few, 1);
        out[i] = whole.products == 0 || pilot(&s) * share > best;
    }
}

/* Drops gemm kernels whose pilot is far slower than another one of their layout. */
static void drop_gemm(const tern_tuner *t, const tern_kernel_row *const *kernels, size_t n,
                      size_t n_rows, bool *out) {
    double seconds[TERN_TUNE_CANDIDATES];
    const size_t few = n_rows < PILOT_ROWS ? n_rows : PILOT_ROWS;
    for (size_t i = 0; i < n; i++) {
        const sample s = new_sample(t, kernels[i], few, PILOT_TOKENS);
        seconds[i] = out[i] ? 0.0 : pilot(&s);
    }
    for (size_t i = 1; i < n; i++)
        for (size_t k = 0; k < n && !out[i]; k++)
            out[i] = kernels[k]->layout == kernels[i]->layout && !out[k] &&
                     seconds[i] > pilot_lag * seconds[k];
}

/* The least seconds of candidate i in the first two rounds. */
static double least(const double *seconds, size_t n, size_t i) {
    return seconds[i] < seconds[n + i] ? seconds[i] : seconds[n + i];
}

/*
 * Drops slow kernels after two rounds. gemv kernels are compared with the best of all layouts,
 * since gemv is most of what a layout costs; gemm kernels with the best of the same layout. Number
 * 0 stays.
 */
static void drop_slow(const tern_kernel_row *const *kernels, size_t n, double *seconds, bool *out) {
    for (size_t i = 1; i < n; i++)
        for (size_t k = 0; k < n && !out[i]; k++)
            out[i] = !out[k] &&
                     (kernels[i]->op == TERN_OP_GEMV || kernels[i]->layout == kernels[k]->layout) &&
                     least(seconds, n, i) > slow_lag * least(seconds, n, k);
    for (size_t i = 0; i < n; i++)
        seconds[i] = out[i] ? 0.0 : seconds[i];
}

/*
 * The candidate that i must beat: for gemv the first of all, for gemm the first left of its layout.
 */
static size_t rival(const tern_kernel_row *const *kernels, size_t i, const bool *out) {
    size_t to = 0;
    if (kernels[i]->op == TERN_OP_GEMV)
        return to;
    while (to < i && (out[to] || kernels[to]->layout != kernels[i]->layout))
        to++;
    return to;
}

/* Drops candidates that have lost too many of the `done` rounds to win. */
static void drop_lost(const tern_tuner *t, const tern_kernel_row *const *kernels, size_t n,
                      size_t done, double *seconds, bool *out) {
    for (size_t i = 1; i < n; i++) {
        const size_t to = rival(kernels, i, out);
        if (out[i] || to == i || !tern_tune_has_lost(seconds, n, done, t->effort.rounds, i, to))
            continue;
        out[i] = true;
        seconds[i] = 0.0;
    }
}

static bool is_alone(const bool *out, size_t n) {
    size_t left = 0;
    for (size_t i = 0; i < n; i++)
        left += !out[i];
    return left == 1;
}

static bool is_stopped(tern_tuner *t) {
    t->stopped = t->stopped || (t->stop != NULL && t->stop(t->user));
    return t->stopped;
}

/*
 * Measures rounds over all candidates that are left, forwards and backwards in turn, so that a
 * drift hits all alike. Number 0 is measured at both ends of a round, which tells the noise.
 * Seconds become those of one token and a matrix `whole` times as large. If only one candidate is
 * left and a user waits, `known` seconds of a product stand for the other rounds. False: it was
 * stopped.
 */
static bool measure_rounds(tern_tuner *t, const tern_kernel_row *const *kernels, size_t n,
                           sample model, double whole, double known, bool *out, double *seconds,
                           double *again) {
    const bool waited_for = t->effort.budget_seconds > 0.0; /* else all figures are reported */
    for (size_t r = 0; r < t->effort.rounds; r++) {
        if (is_stopped(t))
            return false;
        if (r == 2)
            drop_slow(kernels, n, seconds, out);
        if (waited_for)
            drop_lost(t, kernels, n, r, seconds, out);
        const bool alone = waited_for && is_alone(out, n);
        for (size_t k = 0; k <= n; k++) {
            const size_t at = r % 2 ? n - k : k; /* n: number 0 again */
            const size_t i = at == n ? 0 : at;
            sample s = new_sample(t, kernels[i], model.rows, model.tokens);
            s.products = model.products;
            const double one = out[i] ? 0.0 : alone ? known : measure(t, &s);
            *(at == n ? &again[r] : &seconds[r * n + i]) = one * whole / (double)model.tokens;
        }
    }
    return true;
}

/* Returns how many products a sample needs; *seconds: the time of one product of *s. */
static size_t calibrate(tern_tuner *t, sample *s, double *seconds) {
    (void)measure(t, s);
    *seconds = measure(t, s);
    for (int i = 0; i < 2; i++) {
        const double again = measure(t, s);
        *seconds = again < *seconds ? again : *seconds;
    }
    const double products = t->effort.sample_seconds / *seconds;
    return products < 1.0 ? 1 : products > 1024.0 ? 1024 : (size_t)products;
}

/* Rows that represent the matrix in a product with one token: an eighth of the stream. */
static size_t gemv_rows(const tern_tuner *t, const tern_kernel_row *kernel, size_t rows,
                        size_t cols) {
    const size_t group = matrix_bytes(kernel->layout, kernel->format, TERN_ROW_GROUP, cols);
    const double groups = (double)t->stream_bytes / 8.0 / (double)group;
    return fit_rows(t, rows, groups * (double)TERN_ROW_GROUP);
}

static size_t gemm_rows(const tern_tuner *t, size_t rows, size_t cols, size_t tokens) {
    const double each = gemm_work / ((double)cols * (double)tokens);
    return fit_rows(t, rows, each * tern_team_size(t->team));
}

/* Measures gemv with `rows` of the `whole` rows of the matrix; dropped[i] says which candidates
 * cannot win. */
static bool measure_gemv(tern_tuner *t, size_t rows, size_t whole, tern_tune_times *out,
                         bool *dropped) {
    sample s = new_sample(t, out->gemv[0], rows, 1);
    double seconds;
    s.products = calibrate(t, &s, &seconds);
    drop_gemv(t, out->gemv, out->n_gemv, rows, seconds, dropped);
    return measure_rounds(t, out->gemv, out->n_gemv, s, (double)whole / (double)rows, seconds,
                          dropped, t->gemv_seconds, t->gemv_again);
}

static bool any_of_layout(const tern_tune_times *times, const bool *dropped, tern_layout layout) {
    for (size_t i = 0; i < times->n_gemv; i++)
        if (times->gemv[i]->layout == layout && !dropped[i])
            return true;
    return false;
}

/* Measures gemm, without layouts whose gemv kernels were all dropped. */
static bool measure_gemm(tern_tuner *t, size_t rows, size_t whole, tern_tune_times *out,
                         const bool *gemv_dropped) {
    bool dropped[TERN_TUNE_CANDIDATES] = {false};
    sample s = new_sample(t, out->gemm[0], rows, TERN_TUNE_TOKENS);
    double seconds;
    for (size_t i = 1; i < out->n_gemm; i++)
        dropped[i] = !any_of_layout(out, gemv_dropped, out->gemm[i]->layout) ||
                     new_sample(t, out->gemm[i], rows, 1).products == 0;
    drop_gemm(t, out->gemm, out->n_gemm, rows, dropped);
    s.products = calibrate(t, &s, &seconds);
    return measure_rounds(t, out->gemm, out->n_gemm, s, (double)whole / (double)rows, seconds,
                          dropped, t->gemm_seconds, t->gemm_again);
}

void tern_tuner_prefer(tern_tuner *t, tern_layout layout) {
    t->preferred = layout;
}

void tern_tuner_stop(tern_tuner *t, bool (*stop)(void *), void *user) {
    t->stop = stop;
    t->user = user;
}

/* Puts candidates over the preferred layout first; those of each layout stay together, in order. */
static void sort_candidates(const tern_tuner *t, const tern_kernel_row **kernels, size_t n) {
    const tern_kernel_row *sorted[TERN_TUNE_CANDIDATES];
    size_t used = 0;
    for (int preferred = 1; preferred >= 0; preferred--)
        for (size_t i = 0; i < n; i++)
            if ((kernels[i]->layout == t->preferred) == preferred)
                sorted[used++] = kernels[i];
    memcpy(kernels, sorted, n * sizeof *kernels);
}

/* Keeps the first candidate, and `other` if it is another one; returns how many these are. */
static size_t keep_pair(const tern_kernel_row **kernels, size_t n, const tern_kernel_row *other) {
    for (size_t i = 1; i < n; i++)
        if (kernels[i] == other) {
            kernels[1] = other;
            return 2;
        }
    return 1;
}

/* The table's kernel over the layout; NULL: none but the scalar one. */
static const tern_kernel_row *kernel_of(const tern_tuner *t, tern_op op, tern_layout layout) {
    const tern_kernel_use use = {op, TERN_FORMAT_I2_S, layout};
    const tern_kernel_row *kernel = tern_guard_select(t->guard, use);
    return kernel != NULL && kernel->needs != 0 ? kernel : NULL;
}

/* The last dense layout that this machine has a kernel of its own for; without any, the first. */
static tern_layout dense_layout(const tern_tuner *t) {
    tern_layout dense = TERN_LAYOUT_NONE;
    for (int i = 0; i < TERN_LAYOUT_COUNT; i++) {
        const bool first = dense == TERN_LAYOUT_NONE;
        if (tern_layout_facts_of((tern_layout)i)->dense &&
            (first || kernel_of(t, TERN_OP_GEMV, (tern_layout)i) != NULL))
            dense = (tern_layout)i;
    }
    return dense;
}

/* The rounds before the first look, which may decide between layouts. Each further look comes when
 * the rounds have doubled: a look after each round would take chance for a lead. */
enum { FIRST_LOOK = 16 };

/* Measures rounds over the table's kernels of both layouts, until it is clear on which side of the
 * limit base 3 is. False: a kernel or memory is missing, or it was stopped. */
static bool compare_layouts(tern_tuner *t, tern_op op, size_t rows, size_t tokens, double limit,
                            tern_estimate *e) {
    const tern_kernel_row *two[] = {kernel_of(t, op, tern_layout_usual()),
                                    kernel_of(t, op, dense_layout(t))};
    double seconds;
    if (two[0] == NULL || two[1] == NULL || new_sample(t, two[0], rows, tokens).products == 0 ||
        !take_operands(t, t->x.cols, rows * tokens))
        return false;
    sample s[] = {new_sample(t, two[0], rows, tokens), new_sample(t, two[1], rows, tokens)};
    s[0].products = s[1].products = calibrate(t, &s[0], &seconds);
    for (size_t r = 0, look = FIRST_LOOK; r < TERN_ESTIMATE_ROUNDS; r++) {
        if (is_stopped(t))
            return false;
        double *ends[] = {&t->gemv_seconds[2 * r], &t->gemv_again[r]};
        *ends[r % 2] = measure(t, &s[0]);
        t->gemv_seconds[2 * r + 1] = measure(t, &s[1]);
        *ends[1 - r % 2] = measure(t, &s[0]);
        if (r + 1 < look)
            continue;
        *e = tern_estimate_of(t->gemv_seconds, t->gemv_again, r + 1);
        if (tern_estimate_decides(e, limit))
            break;
        look *= 2;
    }
    return true;
}

bool tern_tuner_compare(tern_tuner *t, size_t rows, size_t cols, uint32_t together,
                        tern_layout_probe *probe) {
    const tern_kernel_row *usual = kernel_of(t, TERN_OP_GEMV, tern_layout_usual());
    tern_estimate e;
    t->x.cols = cols;
    if (usual == NULL || !compare_layouts(t, TERN_OP_GEMV, gemv_rows(t, usual, rows, cols), 1,
                                          tern_layout_limit(true), &e))
        return false;
    *probe = tern_layout_probe_of(tern_team_size(t->team), t->stream_bytes, dense_layout(t), &e);
    for (size_t i = 0; !tern_layout_is_enough(probe, together); i++) {
        const uint32_t tokens = tern_layout_pass_tokens(i);
        if (!compare_layouts(t, TERN_OP_GEMM, gemm_rows(t, rows, cols, tokens), tokens,
                             tern_layout_limit(false), &e))
            return false;
        tern_layout_add_pass(probe, i, &e);
    }
    return true;
}

bool tern_tuner_measure(tern_tuner *t, tern_format format, size_t rows, size_t cols,
                        tern_tune_times *times) {
    bool dropped[TERN_TUNE_CANDIDATES] = {false};
    tern_tune_times out = {.rounds = t->effort.rounds,
                           .gemv_seconds = t->gemv_seconds,
                           .gemm_seconds = t->gemm_seconds,
                           .gemv_again = t->gemv_again,
                           .gemm_again = t->gemm_again};
    const double spent = tern_clock_seconds() - t->start;
    if (t->stopped || (t->effort.budget_seconds > 0.0 && spent > t->effort.budget_seconds))
        return false;
    out.n_gemv = tern_tune_candidates(t->guard, TERN_OP_GEMV, format, out.gemv);
    out.n_gemm = tern_tune_candidates(t->guard, TERN_OP_GEMM, format, out.gemm);
    if (out.n_gemv == 0 || out.n_gemm == 0)
        return false;
    sort_candidates(t, out.gemv, out.n_gemv);
    sort_candidates(t, out.gemm, out.n_gemm);
    if (t->only != NULL) {
        out.n_gemv = keep_pair(out.gemv, out.n_gemv, t->only->gemv);
        out.n_gemm = keep_pair(out.gemm, out.n_gemm, t->only->gemm);
    }
    const size_t for_gemv = gemv_rows(t, out.gemv[0], rows, cols);
    const size_t for_gemm = gemm_rows(t, rows, cols, TERN_TUNE_TOKENS);
    const size_t most = for_gemv > for_gemm ? for_gemv : for_gemm;
    if (matrix_bytes(out.gemv[0]->layout, out.gemv[0]->format, most, cols) > t->stream_bytes ||
        !take_operands(t, cols, for_gemv + TERN_TUNE_TOKENS * for_gemm))
        return false;
    if (!measure_gemv(t, for_gemv, rows, &out, dropped) ||
        !measure_gemm(t, for_gemm, rows, &out, dropped))
        return false;
    *times = out;
    return true;
}

bool tern_tuner_measure_pair(tern_tuner *t, const tern_tune_choice *choice,
                             tern_tune_times *times) {
    t->only = choice;
    const bool done =
        tern_tuner_measure(t, choice->key.format, choice->key.rows, choice->key.cols, times);
    t->only = NULL;
    return done;
}

double tern_tuner_batch_seconds(tern_tuner *t, tern_format format, size_t rows, size_t cols) {
    const tern_kernel_row *gemm[TERN_TUNE_CANDIDATES];
    double best;
    if (tern_tune_candidates(t->guard, TERN_OP_GEMM, format, gemm) == 0 ||
        !take_operands(t, cols, TERN_TUNE_TOKENS * rows))
        return 0.0;
    sample s = new_sample(t, gemm[0], rows, TERN_TUNE_TOKENS);
    if (s.products == 0)
        return 0.0;
    s.products = calibrate(t, &s, &best);
    for (size_t r = 0; r < t->effort.rounds; r++) {
        const double seconds = measure(t, &s);
        best = seconds < best ? seconds : best;
    }
    return best;
}
