/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/engine/pooled.h"

#include <math.h>
#include <stdlib.h>

#include "runtime/model/config/rope.h"

tern_status tern_pooled_open(tern_pooled *p, tern_pooling how, size_t width, uint32_t rows,
                             tern_error *err) {
    *p = (tern_pooled){.how = how, .width = width, .rows = rows};
    if (how == TERN_POOLING_NONE)
        return TERN_OK;
    p->sums = calloc(width, sizeof *p->sums);
    p->vector = calloc(width, sizeof *p->vector);
    p->row = how == TERN_POOLING_RANK ? calloc(width, sizeof *p->row) : NULL;
    return p->sums != NULL && p->vector != NULL && (p->row != NULL || how != TERN_POOLING_RANK)
               ? TERN_OK
               : tern_fail(err, TERN_ERR_NOMEM, "no memory for a vector of %zu numbers", width);
}

void tern_pooled_close(tern_pooled *p) {
    free(p->sums);
    free(p->vector);
    free(p->row);
    *p = (tern_pooled){0};
}

uint32_t tern_pooled_first(const tern_pooled *p) {
    return p->how == TERN_POOLING_LAST ? p->rows - 1 : 0;
}

bool tern_pooled_takes(const tern_pooled *p, uint32_t position) {
    return p->how == TERN_POOLING_MEAN || position == tern_pooled_first(p);
}

void tern_pooled_add(tern_pooled *p, const float *x) {
    for (size_t i = 0; i < p->width; i++)
        p->sums[i] += (double)x[i];
    p->added++;
}

/* ---- scores of pairs ------------------------------------------------------------------------- */

/* From 20 on tanh rounds to 1. */
static double tanh_of(double x) {
    const double size = fabs(x), e = tern_exp(-2.0 * (size < 20.0 ? size : 20.0));
    const double value = (1.0 - e) / (1.0 + e);
    return x < 0.0 ? -value : value;
}

float tern_rank_probability(float score) {
    const float x = score < -700.0F ? -700.0F : score > 700.0F ? 700.0F : score;
    return (float)(1.0 / (1.0 + tern_exp(-(double)x)));
}

/* sums[width] = tanh(dense * vector + its bias), or the vector itself. */
static void apply_dense(tern_pooled *p, const tern_rank_head *head) {
    const tern_embedding *dense = &head->dense;
    for (size_t i = 0; i < p->width; i++)
        p->sums[i] = (double)p->vector[i];
    if (dense->data == NULL)
        return;
    for (size_t r = 0; r < p->width; r++) {
        double sum = 0.0;
        dense->kernel->fn.embed(dense->data + r * dense->row_bytes, p->width, p->row);
        for (size_t i = 0; i < p->width; i++)
            sum += (double)p->row[i] * (double)p->vector[i];
        p->sums[r] = tanh_of(sum + (double)head->dense_bias[r]);
    }
}

/* The vector becomes the score, in its first element. */
static tern_status score(tern_pooled *p, const tern_rank_head *head, tern_error *err) {
    double sum = 0.0;
    apply_dense(p, head);
    for (size_t i = 0; i < p->width; i++)
        sum += (double)head->out[i] * p->sums[i];
    p->vector[0] = (float)(sum + (double)head->out_bias[0]);
    return isfinite(p->vector[0]) ? TERN_OK
                                  : tern_fail(err, TERN_ERR_NONFINITE, "the score is not finite");
}

tern_status tern_pooled_finish(tern_pooled *p, const tern_rank_head *head, tern_error *err) {
    for (size_t i = 0; i < p->width; i++) {
        p->vector[i] = (float)(p->sums[i] / (double)p->added);
        if (!isfinite(p->vector[i]))
            return tern_fail(err, TERN_ERR_NONFINITE, "number %zu of the vector is not finite", i);
    }
    return p->how == TERN_POOLING_RANK ? score(p, head, err) : TERN_OK;
}
