/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes go through everything that `tern verify` does without a model: parsing, fields, rules,
 * digest, signature. A document that passes all of them but one must stay the same when it is
 * written and read. seeds_receipt.py writes a corpus.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_tree/write.h"
#include "receipts/document.h"
#include "receipts/sign.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_findings(const receipt_findings *f) {
    for (size_t i = 0; i < f->n; i++)
        if (strchr(f->lines[i], ':') == NULL || strchr(f->lines[i], '\n') != NULL)
            abort(); /* not one line that names the document's field */
}

static void check_round_trip(const json_t *receipt) {
    char before[RECEIPT_HEX], after[RECEIPT_HEX];
    tern_error err = {0};
    char *text = json_dump(receipt, (json_style){.indent = 2});
    json_t *again = text != NULL ? receipt_parse(text, strlen(text), "again", &err) : NULL;
    if (again == NULL)
        abort();
    receipt_digest_of(receipt, before);
    receipt_digest_of(again, after);
    if (strcmp(before, after) != 0)
        abort();
    json_decref(again);
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    tern_error err = {0};
    receipt_findings found = {0};
    json_t *receipt = receipt_parse((const char *)data, size, "fuzz", &err);
    if (receipt == NULL) {
        if (err.message[0] == '\0')
            abort();
        return 0;
    }
    (void)receipt_check(receipt, &found);
    (void)!sign_check(receipt, NULL, &found, NULL);
    check_findings(&found);
    if (found.n <= 1) /* at most the digest is wrong */
        check_round_trip(receipt);
    receipt_findings_free(&found);
    json_decref(receipt);
    return 0;
}
