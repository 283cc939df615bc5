/* SPDX-License-Identifier: Apache-2.0 */
/* The kinds of documents. */

#include <string.h>

#include "receipts/fields.h"

const document_type *document_describe(document_kind kind) {
    static const document_type *const types[DOCUMENT_KINDS] = {
        [DOCUMENT_RUN] = &document_run,
        [DOCUMENT_BENCHMARK] = &document_benchmark,
        [DOCUMENT_COMPARISON] = &document_comparison,
        [DOCUMENT_ANSWER] = &document_answer,
        [DOCUMENT_PERPLEXITY] = &document_perplexity};
    return types[kind];
}

bool field_may_lack(const document_type *type, const receipt_field *f) {
    static const char *const never[] = {"$schema", "schema_version", "origin", "digest",
                                        "signature"};
    for (size_t i = 0; i < sizeof never / sizeof *never; i++) {
        const size_t n = strlen(never[i]);
        if (strncmp(f->path, never[i], n) == 0 && (f->path[n] == '\0' || f->path[n] == '.'))
            return false;
    }
    return type->may_lack;
}
