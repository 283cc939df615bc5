/* SPDX-License-Identifier: Apache-2.0 */
/* The kinds of receipts. */

#include "receipts/fields.h"

const document_type *document_describe(document_kind kind) {
    static const document_type *const types[DOCUMENT_KINDS] = {
        [DOCUMENT_RUN] = &document_run, [DOCUMENT_ANSWER] = &document_answer};
    return types[kind];
}
