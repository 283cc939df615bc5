/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of samples, and where documents of measurements come from. */

#include "receipts/rules.h"

#include <stdlib.h>
#include <string.h>

static int compare(const void *a, const void *b) {
    const double x = *(const double *)a;
    const double y = *(const double *)b;
    return (x > y) - (x < y);
}

double rule_median(const json_t *list) {
    const size_t n = json_array_size(list);
    double *sorted = json_reserve((n + 1) * sizeof *sorted);
    if (sorted == NULL || n == 0) {
        free(sorted);
        return 0.0;
    }
    for (size_t i = 0; i < n; i++)
        sorted[i] = json_number_value(json_array_get(list, i));
    qsort(sorted, n, sizeof *sorted, compare);
    const double median = (sorted[(n - 1) / 2] + sorted[n / 2]) / 2.0;
    free(sorted);
    return median;
}

double rule_low(const json_t *list) {
    double low = json_number_value(json_array_get(list, 0));
    for (size_t i = 1; i < json_array_size(list); i++) {
        const double x = json_number_value(json_array_get(list, i));
        low = x < low ? x : low;
    }
    return low;
}

double rule_high(const json_t *list) {
    double high = json_number_value(json_array_get(list, 0));
    for (size_t i = 1; i < json_array_size(list); i++) {
        const double x = json_number_value(json_array_get(list, i));
        high = x > high ? x : high;
    }
    return high;
}

double rule_spread(const json_t *list) {
    const double median = rule_median(list);
    return median > 0.0 ? 100.0 * (rule_high(list) - rule_low(list)) / median : 0.0;
}

bool rule_list_has(const json_t *list, const char *text) {
    for (size_t i = 0; i < json_array_size(list); i++) {
        const char *element = json_string_value(json_array_get(list, i));
        if (element != NULL && strcmp(element, text) == 0)
            return true;
    }
    return false;
}

/* What is measured lacks nothing; what is imported says what it lacks, and where it came from. */
void rules_origin(const json_t *r, receipt_findings *f) {
    const bool imported = strcmp(rule_text(r, "origin.kind"), "imported") == 0;
    const size_t lacking = json_array_size(receipt_at(r, "origin.not_recorded"));
    if (imported && rule_text(r, "origin.note")[0] == '\0')
        receipt_find(f, "origin.note: must say where imported figures come from");
    if (imported != (lacking > 0)) {
        receipt_find(f, "origin.kind: is \"%s\", but %zu fields were not recorded",
                     rule_text(r, "origin.kind"), lacking);
    }
}
