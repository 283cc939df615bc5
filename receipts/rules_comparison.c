/* SPDX-License-Identifier: Apache-2.0 */
/* What a comparison must say: medians of its runs, and ratios with the intervals that they have. */

#include "receipts/rules.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "receipts/interval.h"

/* ---- one side -------------------------------------------------------------------------------- */

/* Figures have the same names everywhere, and their medians and spreads. */
static void check_figures(const rule_place *p) {
    const json_t *runs = json_object_get(p->object, "runs");
    const char *name;
    json_t *list;
    json_object_foreach((json_t *)(uintptr_t)runs, name, list) {
        char path[96];
        if (json_array_size(list) < 2) {
            receipt_find(p->found, "%s.runs.%.40s: an interval needs two values", p->shown, name);
        }
        (void)snprintf(path, sizeof path, "medians.%.60s", name);
        rule_near_in(p, path, rule_median(list), "the median of its runs");
        (void)snprintf(path, sizeof path, "spread_percent.%.60s", name);
        rule_near_in(p, path, rule_spread(list), "(largest - smallest) / median of the runs");
    }
    if (json_object_size(json_object_get(p->object, "medians")) != json_object_size(runs) ||
        json_object_size(json_object_get(p->object, "spread_percent")) != json_object_size(runs)) {
        receipt_find(p->found, "%s: medians and spread_percent are not those of runs", p->shown);
    }
}

static bool names_mock(const json_t *side) {
    const json_t *kernels = json_object_get(side, "kernels");
    bool mock = strcasestr(rule_text(side, "name"), "mock") != NULL ||
                strcasestr(rule_text(side, "command"), "mock") != NULL;
    for (size_t i = 0; i < json_array_size(kernels); i++) {
        mock = mock || strcasestr(json_string_value(json_array_get(kernels, i)), "mock") != NULL;
    }
    return mock;
}

/* A side that names tern's kernels is real; of other programs nobody knows. */
static void check_path(const rule_place *p) {
    const char *path = rule_text(p->object, "compute_path");
    const size_t kernels = json_array_size(json_object_get(p->object, "kernels"));
    const char *right = names_mock(p->object) ? "mock" : kernels > 0 ? "real" : "other";
    if (strcmp(right, "mock") == 0) {
        receipt_find(p->found, "%s: names a mock", p->shown);
    } else if (rule_known(p->object, "compute_path") && strcmp(path, right) != 0) {
        receipt_find(p->found, "%s.compute_path: is \"%s\", must be \"%s\"", p->shown, path, right);
    }
}

static void check_side(const json_t *r, receipt_findings *f, const char *which) {
    const rule_place p = {json_object_get(r, which), which, f};
    check_path(&p);
    check_figures(&p);
}

/* ---- ratios ---------------------------------------------------------------------------------- */

/* The values of a figure; all must be above 0. To be freed; NULL: they are not, or no memory. */
static double *values_of(const json_t *list) {
    const size_t n = json_array_size(list);
    double *values = json_reserve((n + 1) * sizeof *values);
    for (size_t i = 0; values != NULL && i < n; i++) {
        values[i] = json_number_value(json_array_get(list, i));
        if (!(values[i] > 0.0)) {
            free(values);
            return NULL;
        }
    }
    return values;
}

/* The median of b[i] / a[i]. */
static double median_of_pairs(const json_t *a, const json_t *b) {
    json_t *ratios = json_array();
    for (size_t i = 0; i < json_array_size(a); i++) {
        json_array_append_new(ratios, json_number(json_number_value(json_array_get(b, i)) /
                                                  json_number_value(json_array_get(a, i))));
    }
    const double median = rule_median(ratios);
    json_decref(ratios);
    return median;
}

static void check_ratio(const json_t *r, const rule_place *p, const json_t *a, const json_t *b) {
    const size_t n = json_array_size(a);
    double *x = values_of(a);
    double *y = values_of(b);
    if (x == NULL || y == NULL || n < 2 || n != json_array_size(b)) {
        receipt_find(p->found, "%s: must come from as many runs of both sides, all above 0",
                     p->shown);
    } else {
        const interval e = interval_of_pairs(x, y, n);
        const double level = rule_number(r, "level");
        rule_near_in(p, "ratio", exp(e.log), "the geometric mean of b / a");
        rule_near_in(p, "low", interval_bound(&e, level, -1), "Student's interval");
        rule_near_in(p, "high", interval_bound(&e, level, +1), "Student's interval");
        rule_near_in(p, "median", median_of_pairs(a, b), "the median of b / a");
    }
    free(x);
    free(y);
}

static void check_ratios(const json_t *r, receipt_findings *f) {
    const json_t *ratios = json_object_get(r, "ratios");
    const json_t *a = receipt_at(r, "a.runs");
    const json_t *b = receipt_at(r, "b.runs");
    const char *name;
    json_t *ratio;
    size_t common = 0;
    json_object_foreach((json_t *)(uintptr_t)a, name, ratio) {
        common += json_object_get(b, name) != NULL;
    }
    if (common == 0 || json_object_size(ratios) != common) {
        receipt_find(f, "ratios: %zu, but a and b have %zu figures in common",
                     json_object_size(ratios), common);
    }
    json_object_foreach((json_t *)(uintptr_t)ratios, name, ratio) {
        char shown[80];
        (void)snprintf(shown, sizeof shown, "ratios.%.60s", name);
        const rule_place p = {ratio, shown, f};
        check_ratio(r, &p, json_object_get(a, name), json_object_get(b, name));
    }
}

void rules_comparison(const json_t *r, receipt_findings *f) {
    rules_header(r, f);
    rules_origin(r, f);
    const double level = rule_number(r, "level");
    if (!(level >= 0.5 && level <= 0.999)) {
        receipt_find(f, "level: is %g, must be 0.5 to 0.999", level);
        return;
    }
    check_side(r, f, "a");
    check_side(r, f, "b");
    check_ratios(r, f);
}
