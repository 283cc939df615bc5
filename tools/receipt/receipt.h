/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_TOOLS_RECEIPT_RECEIPT_H
#define TERN_TOOLS_RECEIPT_RECEIPT_H

/*
 * Receipts: what a run was, written down so that somebody else can check it (docs/receipts.md has
 * every field and rule). Benchmarks and comparisons are documents of their own kinds, with the same
 * digest, fields of their own (fields.h) and rules of their own.
 *
 *   written    a command keeps a receipt_watch while it generates, then calls receipt_write, which
 *              adds the model's hash, tests of its own and the machine, and saves a JSON document.
 *   read       receipt_read parses and owns nothing else; the caller decrefs the tree.
 *   validated  receipt_check holds the document against every rule, without the model.
 *   replayed   receipt_replay runs it again and compares tokens and logits bit for bit.
 *
 * A document is a JSON tree throughout: fields.c describes it once, for writing (nothing that
 * breaks a rule is ever saved) and for reading.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tern/tern.h"
#include "tools/answer/answer.h"
#include "tools/cli/targets.h"
#include "tools/model/json.h"
#include "tools/model/loader.h"
#include "tools/receipt/fields.h"

#define RECEIPT_SCHEMA "urn:tern:receipt:1.0.0"
#define BENCHMARK_SCHEMA "urn:tern:benchmark:1.0.0"
#define COMPARISON_SCHEMA "urn:tern:comparison:1.0.0"
#define RECEIPT_VERSION "1.0.0"
#define RECEIPT_DIGEST "sha256-canonical-json" /* docs/receipts.md */

enum {
    RECEIPT_EVERY = 16,          /* generated tokens between two digests of the logits */
    RECEIPT_TEST_TOKENS = 16,    /* tokens that each test run generates, at most */
    RECEIPT_MAX_BYTES = 1 << 26, /* of a document */
    RECEIPT_HEX = 65             /* a SHA-256 as lower-case hexadecimal text, with its terminator */
};

/* ---- while generating ------------------------------------------------------------------------ */

/* SHA-256 of the n_vocab logits (little-endian f32) that follow `after` generated tokens. */
typedef struct receipt_point {
    uint64_t after;
    char sha256[RECEIPT_HEX];
} receipt_point;

/* Digests of a run in work, and what its session had done before. Free the points in any case. */
typedef struct receipt_watch {
    tern_session *session;
    receipt_point *points; /* owned; `after` ascends */
    size_t n, capacity;
    tern_session_work before;
    double seconds;   /* that hashing took; part of the run's own times */
    tern_error error; /* why the record is incomplete, if it is */
} receipt_watch;

receipt_watch receipt_watch_begin(tern_session *session);

/*
 * The session's logits are those that follow `after` generated tokens: call it before each token is
 * evaluated, and with `last` when the run is over. Hashes them when `after` is a multiple of
 * RECEIPT_EVERY or it is the last call.
 */
void receipt_watch_logits(receipt_watch *w, uint64_t after, bool last);
void receipt_watch_free(receipt_watch *w);

/* SHA-256 of the session's logits: tern_session_last_logits, with its errors. */
TERN_MUST_CHECK tern_status receipt_hash_logits(tern_session *session, char hex[RECEIPT_HEX],
                                                tern_error *err);

/* ---- writing --------------------------------------------------------------------------------- */

/* A finished run. Everything is borrowed; the session in `l` still holds prompt and output, and
 * held nothing before. */
typedef struct receipt_run {
    const options *o;
    const loaded *l;
    const prompt *prompt;
    const tern_sampler_params *sampling;
    const answer_request *request;
    const answerer *answer;
    const receipt_watch *watch;
} receipt_run;

/* ---- documents ------------------------------------------------------------------------------- */

/*
 * Builds the receipt of a run, testing as it goes, and saves it under --receipt's name, signed if
 * --sign-key is given. `benchmark` (may be NULL, is borrowed) goes in as it is. The exit status,
 * after a complaint where it is not EXIT_DONE: a receipt that would not pass is not written.
 */
int receipt_write(const receipt_run *run, const json_t *benchmark);

/*
 * Seals a document with its digest, signs it if --sign-key is given, and saves it at `path`. The
 * exit status, after a complaint where it is not EXIT_DONE: what would not pass is not written.
 */
int receipt_finish(json_t *receipt, const options *o, const char *path);

/* The document in bytes; NULL with a message in err. The caller decrefs it. */
json_t *receipt_parse(const char *bytes, size_t size, const char *name, tern_error *err);

/* The document in a file ("-": standard input); NULL after a complaint. The caller decrefs it. */
json_t *receipt_read(const char *path);

/* Before a run: whether --sign-key has something to sign, and a key to do it with. EXIT_DONE, or
 * after a complaint EXIT_USAGE or EXIT_FAILED. */
int receipt_check_key(const options *o);

/* Saves a document as indented JSON. The exit status. */
int receipt_save(const json_t *receipt, const char *path, tern_out_mode mode);

/* SHA-256 of the text of ids, as tern_detokenize gives it without control tokens; NULL: no memory.
 */
json_t *receipt_hash_text(const tern_tokenizer *t, const int32_t *ids, size_t n);

/* Lines about what is wrong. Zero-initialise; free in any case. */
typedef struct receipt_findings {
    char **lines; /* "field: what is wrong with it", owned */
    size_t n, capacity;
    bool out_of_memory;
} receipt_findings;

/* Adds a line; control characters become '?'. */
void receipt_find(receipt_findings *f, const char *format, ...) TERN_PRINTF(2, 3);
void receipt_findings_free(receipt_findings *f);

/* Adds a finding for every broken rule; a document without findings is valid. Its kind, NULL for
 * one that is not known. */
const document_type *receipt_check(const json_t *receipt, receipt_findings *f);

/* The same in two halves: fields and their types; what they say (only for a document that has the
 * right fields). Everything but digest and signature. */
bool receipt_check_fields(const json_t *receipt, const document_type *type, receipt_findings *f);
void receipt_check_rules(const json_t *receipt, receipt_findings *f); /* of a run */

/* What kind of document it is: a run's unless "$schema" names another. NULL after a finding. */
const document_type *receipt_type(const json_t *receipt, receipt_findings *f);

/* The member that a path such as "model_info.sha256" leads to, or NULL. */
json_t *receipt_at(const json_t *root, const char *path);

/* SHA-256 of a value in canonical form (docs/receipts.md): equal for equal values, however the JSON
 * was written. Members of the outermost object named in `without` (ends with NULL) are left out.
 * Means nothing where json_memory_failed() is true afterwards. */
void receipt_digest(const json_t *value, const char *const *without, char hex[RECEIPT_HEX]);

/* The digest of a receipt: of everything but its own digest and signature. */
void receipt_digest_of(const json_t *receipt, char hex[RECEIPT_HEX]);

#endif
