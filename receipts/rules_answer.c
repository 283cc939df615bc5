/* SPDX-License-Identifier: Apache-2.0 */
/* What the fields of an answer's receipt must say together. */

#include "receipts/rules.h"

void rules_answer(const json_t *r, receipt_findings *f) {
    rules_header(r, f);
    rules_model(r, f);
    rules_tokens(r, f);
    rules_accuracy(r, f);
    rule_positive(r, f, "run.threads");
    rule_positive(r, f, "machine.cores");
    if (!rule_flag(r, "test_results.determinism_tests.identical_sequences")) {
        receipt_find(f, "test_results.determinism_tests.identical_sequences: is false, a request "
                        "has one answer");
    }
    rule_equal_counts(r, f, "test_results.determinism_tests.runs", 2,
                      "the answer and its repetition");
}
