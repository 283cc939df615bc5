/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/crossval/compare.h"

#include <math.h>

#include "base/logprob.h"
#include "tern/tern.h"

pair_figures compare_vectors(const float *reference, const float *ours, size_t n) {
    double sum = 0.0;
    double product = 0.0;
    double square_r = 0.0;
    double square_o = 0.0;
    pair_figures f = {.n = n};
    for (size_t i = 0; i < n; i++) {
        const double r = (double)reference[i];
        const double o = (double)ours[i];
        sum += r;
        product += r * o;
        square_r += r * r;
        square_o += o * o;
        f.squares += (r - o) * (r - o);
        f.max_abs = fabs(r - o) > f.max_abs ? fabs(r - o) : f.max_abs;
    }
    const double norms = sqrt(square_r) * sqrt(square_o);
    f.cosine = norms > 0.0 ? product / norms : square_r == square_o;
    f.cosine = isfinite(f.cosine) ? f.cosine : 0.0; /* a NaN is similar to nothing */
    const double mean = n > 0 ? sum / (double)n : 0.0;
    for (size_t i = 0; i < n; i++)
        f.deviation += ((double)reference[i] - mean) * ((double)reference[i] - mean);
    return f;
}

double compare_kl(const float *reference, const float *ours, size_t n) {
    const double log_r = tern_log_sum_exp(reference, n);
    const double log_o = tern_log_sum_exp(ours, n);
    double kl = 0.0;
    for (size_t i = 0; i < n; i++) {
        const double ln_p = (double)reference[i] - log_r;
        kl += tern_double_exp(ln_p) * (ln_p - ((double)ours[i] - log_o));
    }
    return kl;
}

double compare_margin(const float *logits, size_t n, int32_t *best) {
    *best = tern_argmax(logits, n);
    float second = -INFINITY;
    for (size_t i = 0; i < n; i++)
        second = i != (size_t)*best && logits[i] > second ? logits[i] : second;
    return (double)logits[*best] - (double)second;
}

void sum_add(sum_figures *s, const pair_figures *p) {
    const sum_figures one = {.pairs = 1,
                             .elements = p->n,
                             .cosine_min = p->cosine,
                             .cosine_sum = p->cosine,
                             .max_abs = p->max_abs,
                             .squares = p->squares,
                             .deviation = p->deviation};
    sum_merge(s, &one);
}

void sum_merge(sum_figures *s, const sum_figures *other) {
    if (other->pairs == 0)
        return;
    s->cosine_min = s->pairs == 0 ? other->cosine_min : fmin(s->cosine_min, other->cosine_min);
    s->max_abs = fmax(s->max_abs, other->max_abs);
    s->pairs += other->pairs;
    s->elements += other->elements;
    s->cosine_sum += other->cosine_sum;
    s->squares += other->squares;
    s->deviation += other->deviation;
}

double sum_cosine_mean(const sum_figures *s) {
    return s->pairs > 0 ? s->cosine_sum / (double)s->pairs : 1.0;
}

double sum_rms(const sum_figures *s) {
    return s->elements > 0 ? sqrt(s->squares / (double)s->elements) : 0.0;
}

double sum_scaled_mse(const sum_figures *s) {
    return s->deviation > 0.0 ? s->squares / s->deviation : s->squares;
}
