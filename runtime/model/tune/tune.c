/* SPDX-License-Identifier: Apache-2.0 */

#include "runtime/model/tune/tune.h"
#include "base/grow.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- a set of choices ------------------------------------------------------------------------ */

static bool same_key(const tern_tune_key *a, const tern_tune_key *b) {
    return a->format == b->format && a->rows == b->rows && a->cols == b->cols &&
           a->threads == b->threads && a->stream == b->stream;
}

const tern_tune_choice *tern_tuning_find(const tern_tuning *t, const tern_tune_key *key) {
    for (size_t i = 0; t != NULL && i < t->n; i++)
        if (same_key(&t->choices[i].key, key))
            return &t->choices[i];
    return NULL;
}

tern_status tern_tuning_set(tern_tuning *t, const tern_tune_choice *choice, tern_error *err) {
    for (size_t i = 0; i < t->n; i++)
        if (same_key(&t->choices[i].key, &choice->key)) {
            t->choices[i] = *choice;
            return TERN_OK;
        }
    if (!tern_grow((void **)&t->choices, &t->capacity, t->n, sizeof *choice,
                   SIZE_MAX / sizeof *choice))
        return tern_fail(err, TERN_ERR_NOMEM, "no memory for more than %zu choices of kernels",
                         t->n);
    t->choices[t->n++] = *choice;
    return TERN_OK;
}

void tern_tuning_free(tern_tuning *t) {
    free(t->choices);
    *t = (tern_tuning){.n = 0};
}

/* ---- keys ------------------------------------------------------------------------------------ */

static bool is_ternary(tern_layout layout) {
    return layout != TERN_LAYOUT_NONE && tern_layout_input(layout) == TERN_INPUT_TOKEN &&
           tern_layout_holds(layout, TERN_FORMAT_I2_S);
}

tern_format tern_tune_format(tern_format format, tern_layout layout) {
    if (layout == TERN_LAYOUT_ROWS)
        return format;
    if (is_ternary(layout))
        return TERN_FORMAT_I2_S;
    for (int f = 0; f < TERN_FORMAT_COUNT; f++)
        if (tern_format_layout((tern_format)f) == layout)
            return (tern_format)f;
    return format;
}

tern_tune_key tern_tune_key_of(const tern_matrix *matrix, uint32_t threads, uint64_t stream) {
    return (tern_tune_key){.format = tern_tune_format(matrix->format, matrix->layout),
                           .rows = matrix->rows,
                           .cols = matrix->cols,
                           .threads = threads,
                           .stream = stream};
}

/* Twice a cache: by then earlier reads have left it, even if the oldest line does not go first. */
static const uint64_t least_stream = UINT64_C(8) << 20, most_stream = UINT64_C(128) << 20;

uint64_t tern_tune_stream(uint64_t bytes, uint64_t cache_bytes) {
    uint64_t limit = cache_bytes > 0 ? 2 * cache_bytes : most_stream;
    limit = limit < least_stream ? least_stream : limit > most_stream ? most_stream : limit;
    uint64_t power = 1;
    while (power < bytes && power < limit)
        power *= 2;
    return power;
}

/* ---- candidates ------------------------------------------------------------------------------ */

/* Layouts in which products could read the format: its own first, then other ternary ones. */
static size_t list_layouts(tern_format format, tern_layout layouts[TERN_TUNE_LAYOUTS]) {
    const tern_layout own = tern_format_layout(format);
    size_t n = 0;
    layouts[n++] = own;
    for (int l = 0; l < TERN_LAYOUT_COUNT && n < TERN_TUNE_LAYOUTS; l++) {
        const tern_layout layout = (tern_layout)l;
        if (tern_layout_input(own) == TERN_INPUT_TOKEN && layout != own &&
            tern_layout_input(layout) == TERN_INPUT_TOKEN && tern_layout_holds(layout, format))
            layouts[n++] = layout;
    }
    return n;
}

size_t tern_tune_candidates(const tern_guard *guard, tern_op op, tern_format format,
                            const tern_kernel_row *kernels[TERN_TUNE_CANDIDATES]) {
    tern_layout layouts[TERN_TUNE_LAYOUTS];
    size_t n = 0;
    if ((unsigned)format >= TERN_FORMAT_COUNT || tern_format_layout(format) == TERN_LAYOUT_NONE)
        return 0;
    const size_t n_layouts = list_layouts(format, layouts);
    for (size_t i = 0; i < n_layouts; i++) {
        const tern_kernel_use use = {op, format, layouts[i]};
        const tern_kernel_row *kernel = tern_guard_select(guard, use);
        for (; kernel != NULL && n < TERN_TUNE_CANDIDATES;
             kernel = tern_guard_next(guard, use, kernel)) {
            if (kernel->needs != 0)
                kernels[n++] = kernel;
            else if (n == 0) {
                kernels[0] = kernel;
                return 1;
            }
        }
    }
    return n;
}

static bool is_candidate(const tern_guard *guard, tern_op op, const tern_tune_choice *choice,
                         const tern_kernel_row *kernel) {
    const tern_kernel_row *kernels[TERN_TUNE_CANDIDATES];
    const size_t n = tern_tune_candidates(guard, op, choice->key.format, kernels);
    for (size_t i = 0; i < n; i++)
        if (kernels[i] == kernel)
            return kernel->layout == choice->layout;
    return false;
}

bool tern_tune_is_possible(const tern_guard *guard, const tern_tune_choice *choice) {
    return is_candidate(guard, TERN_OP_GEMV, choice, choice->gemv) &&
           is_candidate(guard, TERN_OP_GEMM, choice, choice->gemm);
}

/* ---- decisions ------------------------------------------------------------------------------- */

enum { ROUNDS = TERN_ESTIMATE_ROUNDS };

/* The median of alternative i's ratios to number 0; 1 when it was given up. */
static double median_ratio(const double *seconds, size_t n, size_t rounds, size_t i) {
    double ratios[ROUNDS];
    for (size_t r = 0; r < rounds; r++) {
        if (seconds[r * n + i] <= 0.0)
            return 1.0;
        ratios[r] = seconds[r * n + i] / seconds[r * n];
    }
    return tern_estimate_median(ratios, rounds);
}

double tern_tune_ratio(const double *seconds, size_t n, size_t rounds, size_t i) {
    rounds = rounds < ROUNDS ? rounds : ROUNDS;
    const double median = median_ratio(seconds, n, rounds, i);
    double shortest = seconds[i], usual = seconds[0];
    size_t lead = 0;
    for (size_t r = 0; r < rounds; r++) {
        if (seconds[r * n + i] <= 0.0)
            return 1.0;
        lead += seconds[r * n + i] / seconds[r * n] < 1.0;
        shortest = seconds[r * n + i] < shortest ? seconds[r * n + i] : shortest;
        usual = seconds[r * n] < usual ? seconds[r * n] : usual;
    }
    if (4 * lead < 3 * rounds)
        return 1.0;
    const double best = shortest / usual;
    return median > best ? median : best;
}

size_t tern_tune_pick(const double *seconds, size_t n, size_t rounds, double margin) {
    size_t best = 0;
    double least = 1.0 - margin;
    rounds = rounds < ROUNDS ? rounds : ROUNDS;
    for (size_t i = 1; rounds > 0 && i < n; i++) {
        if (seconds[i] <= 0.0)
            continue;
        const double its = tern_tune_ratio(seconds, n, rounds, i);
        if (its < least) {
            least = its;
            best = i;
        }
    }
    return best;
}

bool tern_tune_has_lost(const double *seconds, size_t n, size_t rounds, size_t most, size_t i,
                        size_t to) {
    size_t lost = 0;
    for (size_t r = 0; r < rounds; r++)
        lost += seconds[r * n + i] >= seconds[r * n + to];
    return 4 * lost > most;
}

double tern_tune_noise(const double *seconds, size_t n, const double *again, size_t rounds) {
    double differences[ROUNDS];
    rounds = rounds < ROUNDS ? rounds : ROUNDS;
    if (again == NULL || rounds == 0)
        return 0.0;
    for (size_t r = 0; r < rounds; r++)
        differences[r] = fabs(again[r] / seconds[r * n] - 1.0);
    return tern_estimate_median(differences, rounds);
}

uint32_t tern_tune_thousandths(double share) {
    const double n = share * 1000.0 + 0.5;
    return n < (double)TERN_LAYOUT_RATIO_LIMIT ? (uint32_t)n : TERN_LAYOUT_RATIO_LIMIT;
}

static double larger(double a, double b) {
    return a > b ? a : b;
}

/* The noise of what a token of the answer and one of the prompt cost together. */
static double noise_of_both(const tern_tune_times *t, size_t rounds) {
    double first[ROUNDS], again[ROUNDS];
    if (t->gemv_again == NULL || t->gemm_again == NULL)
        return 0.0;
    for (size_t r = 0; r < rounds; r++) {
        first[r] = t->gemv_seconds[r * t->n_gemv] + t->gemm_seconds[r * t->n_gemm];
        again[r] = t->gemv_again[r] + t->gemm_again[r];
    }
    return tern_tune_noise(first, 1, again, rounds);
}

/* The best of the kernels over a layout, as an index into kernels[n]; n: none was measured. */
static size_t best_of_layout(const tern_kernel_row *const *kernels, const double *seconds, size_t n,
                             size_t rounds, tern_layout layout, double margin) {
    double column[ROUNDS * TERN_TUNE_CANDIDATES];
    size_t index[TERN_TUNE_CANDIDATES], count = 0;
    for (size_t i = 0; i < n; i++)
        if (kernels[i]->layout == layout && seconds[i] > 0.0)
            index[count++] = i;
    if (count == 0)
        return n;
    for (size_t r = 0; r < rounds; r++)
        for (size_t k = 0; k < count; k++)
            column[r * count + k] = seconds[r * n + index[k]];
    return index[tern_tune_pick(column, count, rounds, margin)];
}

void tern_tune_decide(const tern_tune_times *t, double margin, tern_tune_choice *choice) {
    const size_t rounds = t->rounds < ROUNDS ? t->rounds : ROUNDS;
    tern_tune_choice best[TERN_TUNE_LAYOUTS];
    double cost[ROUNDS * TERN_TUNE_LAYOUTS];
    size_t gemv[TERN_TUNE_LAYOUTS], gemm[TERN_TUNE_LAYOUTS], n = 0;
    const double gemv_noise = tern_tune_noise(t->gemv_seconds, t->n_gemv, t->gemv_again, rounds);
    const double gemm_noise = tern_tune_noise(t->gemm_seconds, t->n_gemm, t->gemm_again, rounds);

    for (size_t i = 0; i < t->n_gemv && n < TERN_TUNE_LAYOUTS; i++) {
        const tern_layout layout = t->gemv[i]->layout;
        if (i > 0 && t->gemv[i - 1]->layout == layout)
            continue;
        gemv[n] = best_of_layout(t->gemv, t->gemv_seconds, t->n_gemv, rounds, layout,
                                 larger(margin, gemv_noise));
        gemm[n] = best_of_layout(t->gemm, t->gemm_seconds, t->n_gemm, rounds, layout,
                                 larger(margin, gemm_noise));
        if (gemv[n] == t->n_gemv || gemm[n] == t->n_gemm)
            continue;
        best[n] = (tern_tune_choice){
            .layout = layout, .gemv = t->gemv[gemv[n]], .gemm = t->gemm[gemm[n]]};
        n++;
    }
    for (size_t r = 0; r < rounds; r++)
        for (size_t i = 0; i < n; i++)
            cost[r * n + i] =
                t->gemv_seconds[r * t->n_gemv + gemv[i]] + t->gemm_seconds[r * t->n_gemm + gemm[i]];
    const tern_tune_key key = choice->key;
    *choice = best[tern_tune_pick(cost, n, rounds, larger(margin, noise_of_both(t, rounds)))];
    choice->key = key;
    choice->noise = tern_tune_thousandths(gemv_noise);
}
