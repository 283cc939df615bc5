/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_TOOLS_CROSSVAL_REPORT_H
#define TERN_TOOLS_CROSSVAL_REPORT_H

/* The results of a cross-validation, for people and for programs. */

#include "tools/crossval/reference.h"
#include "tools/crossval/run.h"
#include "tools/load/loader.h"

#define CROSSVAL_EXPECTED 0.999 /* the cosine that quantized models usually reach */

typedef struct crossval {
    const reference *reference;
    size_t n;                     /* cases compared, at least 1 */
    const reference_case **cases; /* [n] */
    case_result *results;         /* [n] */
    double tolerance;
} crossval;

/* The deciding figures over all cases. */
typedef struct crossval_total {
    sum_figures logits;
    size_t whole, top1, steps, equal, differences, near_ties, passed;
    double kl_sum, kl_max;
    sum_figures cache; /* keys and values of all layers */
} crossval_total;

crossval_total crossval_add_up(const crossval *x);

void crossval_print(const crossval *x, const tern_model_info *info);

/* Prints one line; returns the exit status of printing. */
int crossval_print_json(const crossval *x, const loaded *l);

#endif
