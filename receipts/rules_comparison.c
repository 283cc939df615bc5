/* SPDX-License-Identifier: Apache-2.0 */
/* What a comparison must say: medians of its runs, and ratios with the intervals that they have. */

#include "receipts/rules.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "receipts/interval.h"

/* ---- one side -------------------------------------------------------------------------------- */

/* What `part` of a side says of a figure: `expected`. Names of figures may have dots. */
static void check_figure(const rule_place *p, const char *part, const char *name, double expected,
                         const char *why) {
    const json_t *figures = json_object_get(p->object, part);
    const json_t *value = json_object_get(figures, name);
    char shown[64];
    (void)snprintf(shown, sizeof shown, "%s.%s", p->shown, part);
    const rule_place place = {figures, shown, p->found};
    if (value == NULL)
        receipt_find(p->found, "%s.%.100s: is missing", shown, name);
    rule_near_value(&place, value, name, expected, why);
}

/* Figures have the same names everywhere, and their medians and spreads. */
static void check_figures(const rule_place *p) {
    const json_t *runs = json_object_get(p->object, "runs");
    const char *name;
    json_t *list;
    json_object_foreach((json_t *)(uintptr_t)runs, name, list) {
        if (json_array_size(list) < 2)
            receipt_find(p->found, "%s.runs.%.100s: an interval needs two values", p->shown, name);
        check_figure(p, "medians", name, rule_median(list), "the median of its runs");
        check_figure(p, "spread_percent", name, rule_spread(list),
                     "(largest - smallest) / median of the runs");
    }
    if (json_object_size(json_object_get(p->object, "medians")) != json_object_size(runs) ||
        json_object_size(json_object_get(p->object, "spread_percent")) != json_object_size(runs))
        receipt_find(p->found, "%s: medians and spread_percent are not those of runs", p->shown);
}

static bool names_mock(const json_t *side) {
    const json_t *kernels = json_object_get(side, "kernels");
    bool mock = strcasestr(rule_text(side, "name"), "mock") != NULL ||
                strcasestr(rule_text(side, "command"), "mock") != NULL;
    for (size_t i = 0; i < json_array_size(kernels); i++)
        mock = mock || strcasestr(json_string_value(json_array_get(kernels, i)), "mock") != NULL;
    return mock;
}

/* A side that names tern's kernels is real; of other programs it is not known. */
static void check_path(const rule_place *p) {
    const char *path = rule_text(p->object, "compute_path");
    const size_t kernels = json_array_size(json_object_get(p->object, "kernels"));
    const char *right = names_mock(p->object) ? "mock" : kernels > 0 ? "real" : "other";
    if (strcmp(right, "mock") == 0)
        receipt_find(p->found, "%s: names a mock", p->shown);
    else if (rule_known(p->object, "compute_path") && strcmp(path, right) != 0)
        receipt_find(p->found, "%s.compute_path: is \"%s\", must be \"%s\"", p->shown, path, right);
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

/* Of runs that went in turns: value i of both sides was measured one right after the other. */
static void check_pairs(const rule_place *p, double level, const json_t *a, const json_t *b) {
    const size_t n = json_array_size(a);
    double *x = values_of(a);
    double *y = values_of(b);
    if (x == NULL || y == NULL || n < 2 || n != json_array_size(b)) {
        receipt_find(p->found, "%s: must come from as many runs of both sides, all above 0",
                     p->shown);
    } else {
        const interval e = interval_of_pairs(x, y, n);
        rule_near_in(p, "ratio", exp(e.log), "the geometric mean of b / a");
        rule_near_in(p, "low", interval_bound(&e, level, -1), "Student's interval");
        rule_near_in(p, "high", interval_bound(&e, level, +1), "Student's interval");
        rule_near_in(p, "median", median_of_pairs(a, b), "the median of b / a");
    }
    free(x);
    free(y);
}

/* Of sides that were measured each by itself: nothing belongs together, and one may have more. */
static void check_independent(const rule_place *p, double level, const json_t *a, const json_t *b) {
    double *x = values_of(a);
    double *y = values_of(b);
    if (x == NULL || y == NULL || json_array_size(a) < 2 || json_array_size(b) < 2) {
        receipt_find(p->found, "%s: must come from two or more runs of each side, all above 0",
                     p->shown);
    } else {
        const interval e = interval_of_samples(x, json_array_size(a), y, json_array_size(b));
        rule_near_in(p, "ratio", exp(e.log), "the geometric mean of b over that of a");
        rule_near_in(p, "low", interval_bound(&e, level, -1), "Welch's interval");
        rule_near_in(p, "high", interval_bound(&e, level, +1), "Welch's interval");
        rule_near_in(p, "median", rule_median(b) / rule_median(a),
                     "the median of b over that of a");
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
    const bool independent = strcmp(rule_text(r, "method"), "independent") == 0;
    json_object_foreach((json_t *)(uintptr_t)ratios, name, ratio) {
        char shown[128];
        (void)snprintf(shown, sizeof shown, "ratios.%.100s", name);
        const rule_place p = {ratio, shown, f};
        (independent ? check_independent : check_pairs)(
            &p, rule_number(r, "level"), json_object_get(a, name), json_object_get(b, name));
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
