/* SPDX-License-Identifier: Apache-2.0 */
/* The fields of a line of a recording: what a receipt says of an answer and of how the model's
 * files are read, without the model's digests, tests and a digest of its own. */

#include "receipts/document.h"
#include "receipts/fields_shared.h"

static const receipt_field fields[] = {
    MUST("$schema", TEXT),
    MUST("timestamp", TEXT),
    MUST("system_fingerprint", TEXT),
    MUST("model_info", OBJECT),
    MUST("model_info.model_path", ANY_TEXT),
    READING_ROWS,
    MUST("model_info.vocab_size", COUNT),
    MUST("model_info.context_length", COUNT),
    ANSWERED_ROWS,
};

const document_type document_record = {
    "record",        RECORD_SCHEMA, "An answer in a recording",
    DOCUMENT_ANSWER, fields,        sizeof fields / sizeof *fields};
