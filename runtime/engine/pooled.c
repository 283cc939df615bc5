/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/engine/pooled.h"

#include <math.h>
#include <stdlib.h>

tern_status tern_pooled_open(tern_pooled *p, tern_pooling how, size_t width, uint32_t rows,
                             tern_error *err) {
    *p = (tern_pooled){.how = how, .width = width, .rows = rows};
    if (how == TERN_POOLING_NONE)
        return TERN_OK;
    p->sums = calloc(width, sizeof *p->sums);
    p->vector = calloc(width, sizeof *p->vector);
    return p->sums != NULL && p->vector != NULL
               ? TERN_OK
               : tern_fail(err, TERN_ERR_NOMEM, "no memory for a vector of %zu numbers", width);
}

void tern_pooled_close(tern_pooled *p) {
    free(p->sums);
    free(p->vector);
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

tern_status tern_pooled_finish(tern_pooled *p, tern_error *err) {
    for (size_t i = 0; i < p->width; i++) {
        p->vector[i] = (float)(p->sums[i] / (double)p->added);
        if (!isfinite(p->vector[i]))
            return tern_fail(err, TERN_ERR_NONFINITE, "number %zu of the vector is not finite", i);
    }
    return TERN_OK;
}
