/* SPDX-License-Identifier: Apache-2.0 */
/* Rules of the form of an answer. */

#include <string.h>

#include "receipts/rules.h"

/* Checks that each call says how its values are written, in one way. */
static void rules_tags(const json_t *r, receipt_findings *f) {
    const json_t *tags = receipt_at(r, "form.calls.tags");
    for (size_t i = 0; i < json_array_size(tags); i++) {
        const json_t *tag = json_array_get(tags, i);
        if ((json_object_get(tag, "schema") == NULL) == (json_object_get(tag, "arguments") == NULL))
            receipt_find(f, "form.calls.tags[%zu]: must have either a schema or arguments", i);
    }
}

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
    rules_tags(r, f);
    if (rule_flag(r, "output.ignore_end"))
        receipt_find(f, "output.ignore_end: must be false for an answer in a form");
}
