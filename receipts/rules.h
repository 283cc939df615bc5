/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_RECEIPTS_RULES_H
#define TERN_RECEIPTS_RULES_H

/* Parts of receipt_check_rules, and how they read a document whose fields have been checked. */

#include "receipts/document.h"

int64_t rule_count(const json_t *root, const char *path);
double rule_number(const json_t *root, const char *path); /* of integers too */
const char *rule_text(const json_t *root, const char *path);
bool rule_flag(const json_t *root, const char *path);
bool rule_known(const json_t *root, const char *path); /* there, and not null */
bool rule_list_has(const json_t *list, const char *text);

/* Of a list of numbers, as bench has them; 0 for an empty one. */
double rule_median(const json_t *list);
double rule_low(const json_t *list);
double rule_high(const json_t *list);
double rule_spread(const json_t *list); /* (largest - smallest) / median, in percent */

/* A finding unless the field has the value; `why` says where that comes from. */
void rule_equal_counts(const json_t *r, receipt_findings *f, const char *path, int64_t expected,
                       const char *why);
void rule_near(const json_t *r, receipt_findings *f, const char *path, double expected,
               const char *why);

/* An object inside of a document, with the name that findings call it by. */
typedef struct rule_place {
    const json_t *object;
    const char *shown;
    receipt_findings *found;
} rule_place;

/* As rule_near; nothing where the field is null (receipt_check_fields says whether it may be). */
void rule_near_in(const rule_place *p, const char *path, double expected, const char *why);

/* The same of a member that is at hand: its name may have dots. */
void rule_near_value(const rule_place *p, const json_t *value, const char *name, double expected,
                     const char *why);

/* A finding unless the number is above 0. */
void rule_positive(const json_t *r, receipt_findings *f, const char *path);

/* Of documents of one kind. */
void rules_benchmark_document(const json_t *r, receipt_findings *f); /* rules_benchmark.c */
void rules_comparison(const json_t *r, receipt_findings *f);         /* rules_comparison.c */
void rules_answer(const json_t *r, receipt_findings *f);             /* rules_answer.c */
void rules_perplexity(const json_t *r, receipt_findings *f);         /* rules_perplexity.c */

/* Of parts that several kinds have. */
void rules_header(const json_t *r, receipt_findings *f);   /* rules.c: time, compute path */
void rules_model(const json_t *r, receipt_findings *f);    /* rules.c: sizes and files */
void rules_origin(const json_t *r, receipt_findings *f);   /* rules_samples.c */
void rules_tokens(const json_t *r, receipt_findings *f);   /* rules.c: prompt, output, sampler */
void rules_accuracy(const json_t *r, receipt_findings *f); /* rules_figures.c */
void rules_kernel_names(const json_t *r, receipt_findings *f); /* rules_kernels.c */
void rules_machine(const json_t *r, receipt_findings *f);      /* rules_kernels.c */
void rules_nodes(const json_t *r, receipt_findings *f);        /* rules_places.c */
void rules_sweeps(const json_t *r, receipt_findings *f);       /* rules_sweeps.c */

/* Of receipts of runs. */
void rules_kernels(const json_t *r, receipt_findings *f);     /* rules_kernels.c */
void rules_places(const json_t *r, receipt_findings *f);      /* rules_places.c */
void rules_tests(const json_t *r, receipt_findings *f);       /* rules_figures.c */
void rules_performance(const json_t *r, receipt_findings *f); /* rules_figures.c */
void rules_benchmark(const json_t *r, receipt_findings *f);   /* rules_benchmark.c */

#endif
