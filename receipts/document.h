/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_RECEIPTS_DOCUMENT_H
#define TERN_RECEIPTS_DOCUMENT_H

/*
 * Receipts: a record of a run that somebody else can check (docs/receipts.md has every field and
 * rule). Benchmarks and comparisons are other kinds of documents, with the same digest, and with
 * fields (fields.h) and rules of their own.
 *
 * This library knows documents, not command lines: it prints nothing and knows no options. A
 * document is a JSON tree throughout: fields.c describes it once, for writing and for reading.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/json_tree/value.h"
#include "receipts/fields.h"
#include "tern/status.h"

#define RECEIPT_SCHEMA "urn:tern:receipt:1.0.0"
#define BENCHMARK_SCHEMA "urn:tern:benchmark:1.0.0"
#define COMPARISON_SCHEMA "urn:tern:comparison:1.0.0"
#define ANSWER_SCHEMA "urn:tern:answer:1.0.0"
#define RECORD_SCHEMA "urn:tern:record:1.0.0"
#define RECORD_END_SCHEMA "urn:tern:record-end:1.0.0"
#define PERPLEXITY_SCHEMA "urn:tern:perplexity:1.0.0"
#define RECEIPT_VERSION "1.0.0"
#define RECEIPT_DIGEST "sha256-canonical-json" /* docs/receipts.md */

enum {
    RECEIPT_EVERY = 16,          /* generated tokens between two digests of the logits */
    RECEIPT_TEST_TOKENS = 16,    /* most tokens that each test run generates */
    RECEIPT_MAX_BYTES = 1 << 26, /* of a document */
    RECEIPT_HEX = 65             /* a SHA-256 as lower-case hexadecimal text, with its terminator */
};

/* Parses a document; NULL with a message in err. The caller releases it with json_decref. */
json_t *receipt_parse(const char *bytes, size_t size, const char *name, tern_error *err);

/* Findings, one a line. Zero-initialise it; call receipt_findings_free in any case. */
typedef struct receipt_findings {
    char **lines; /* "field: the problem", owned */
    size_t n, capacity;
    bool out_of_memory;
} receipt_findings;

/* Adds a line; control characters become '?'. */
void receipt_find(receipt_findings *f, const char *format, ...) TERN_PRINTF(2, 3);
void receipt_findings_free(receipt_findings *f);

/* Adds a finding for every broken rule; a document without findings is valid. Returns its kind,
 * NULL if that is not known. */
const document_type *receipt_check(const json_t *receipt, receipt_findings *f);

/* The same for a line of a recording, which has neither digest nor signature. */
bool receipt_check_record(const json_t *record, receipt_findings *f);

/* The same in two halves, without digest and signature: first the fields and their types, then the
 * rules between them (only for a document whose fields are right). */
bool receipt_check_fields(const json_t *receipt, const document_type *type, receipt_findings *f);
void receipt_check_rules(const json_t *receipt, receipt_findings *f);

/* True for a document of figures: a benchmark, a comparison, perplexities. These are written and
 * sealed like receipts, and checked by lab/verify-figures. */
bool receipt_is_of_figures(const json_t *document);

/* The kind of a receipt: a run's unless "$schema" names another. NULL after a finding. */
const document_type *receipt_type(const json_t *receipt, receipt_findings *f);

/* The member that a path such as "model_info.sha256" leads to, or NULL. */
json_t *receipt_at(const json_t *root, const char *path);

/* SHA-256 of a value in canonical form (docs/receipts.md): equal for equal values, however the JSON
 * was written. Members of the outermost object named in `without` (ends with NULL) are left out.
 * The digest is meaningless if json_memory_failed() is true afterwards. */
void receipt_digest(const json_t *value, const char *const *without, char hex[RECEIPT_HEX]);

/* The digest of a receipt: everything but its own digest and signature. */
void receipt_digest_of(const json_t *receipt, char hex[RECEIPT_HEX]);

/* Sets "digest" of a document that is complete except for its signature. */
void receipt_seal(json_t *receipt);

#endif
