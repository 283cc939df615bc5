/* SPDX-License-Identifier: Apache-2.0 */
/* Rules between the fields of an answer's receipt. */

#include <string.h>

#include "receipts/rules.h"

/* Checks that a form has a text, or says how calls are written, and not both. */
void rules_form(const json_t *r, receipt_findings *f) {
    if (receipt_at(r, "form") == NULL)
        return;
    const char *kind = rule_text(r, "form.kind");
    const bool calls = strcmp(kind, "calls") == 0;
    if ((receipt_at(r, "form.text") != NULL) == calls)
        receipt_find(f, "form.text: must %sbe there for the kind \"%s\"", calls ? "not " : "",
                     kind);
    if ((receipt_at(r, "form.calls") != NULL) != calls)
        receipt_find(f, "form.calls: must %sbe there for the kind \"%s\"", calls ? "" : "not ",
                     kind);
    if ((receipt_at(r, "form.calls.open") == NULL) != (receipt_at(r, "form.calls.close") == NULL))
        receipt_find(f, "form.calls.close: must be there with form.calls.open, and with it alone");
    if (calls && json_array_size(receipt_at(r, "form.calls.tags")) == 0)
        receipt_find(f, "form.calls.tags: has no call");
    if (rule_flag(r, "output.ignore_end"))
        receipt_find(f, "output.ignore_end: must be false for an answer in a form");
}

void rules_answer(const json_t *r, receipt_findings *f) {
    rules_header(r, f);
    rules_model(r, f);
    rules_places(r, f);
    rules_machine(r, f);
    rules_tokens(r, f);
    rules_accuracy(r, f);
    rules_form(r, f);
    rule_positive(r, f, "run.threads");
    rule_positive(r, f, "machine.cores");
    if (!rule_flag(r, "test_results.determinism_tests.identical_sequences")) {
        receipt_find(f, "test_results.determinism_tests.identical_sequences: is false, a request "
                        "has one answer");
    }
    rule_equal_counts(r, f, "test_results.determinism_tests.runs", 2,
                      "the answer and its repetition");
}
