/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_RECEIPTS_RULES_H
#define TERN_RECEIPTS_RULES_H

/* Parts of receipt_check_rules, and functions to read a document whose fields have been checked. */

#include "receipts/document.h"

int64_t rule_count(const json_t *root, const char *path);
double rule_number(const json_t *root, const char *path); /* also of integers */
const char *rule_text(const json_t *root, const char *path);
bool rule_flag(const json_t *root, const char *path);
bool rule_known(const json_t *root, const char *path); /* present and not null */
bool rule_list_has(const json_t *list, const char *text);

/* Adds a finding unless the field has the value; `why` says where the value comes from. */
void rule_equal_counts(const json_t *r, receipt_findings *f, const char *path, int64_t expected,
                       const char *why);
void rule_near(const json_t *r, receipt_findings *f, const char *path, double expected,
               const char *why);

/* True if two computed numbers are equal except for rounding. */
bool rule_is_near(double a, double b);

/* Adds a finding unless the number is above 0. */
void rule_positive(const json_t *r, receipt_findings *f, const char *path);

void rules_form(const json_t *r, receipt_findings *f);     /* rules_form.c */
void rules_accuracy(const json_t *r, receipt_findings *f); /* rules_figures.c */
void rules_machine(const json_t *r, receipt_findings *f);  /* rules_kernels.c */
void rules_places(const json_t *r, receipt_findings *f);   /* rules_places.c */
void rules_nodes(const json_t *r, receipt_findings *f);    /* rules_places.c */

/* Rules of receipts of runs. */
void rules_kernels(const json_t *r, receipt_findings *f);     /* rules_kernels.c */
void rules_tests(const json_t *r, receipt_findings *f);       /* rules_figures.c */
void rules_performance(const json_t *r, receipt_findings *f); /* rules_figures.c */
void rules_benchmark(const json_t *r, receipt_findings *f);   /* rules_benchmark.c */

#endif
