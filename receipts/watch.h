/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_RECEIPTS_WATCH_H
#define TERN_RECEIPTS_WATCH_H

/* Digests of the logits during a run. */

#include "receipts/document.h"
#include "tern/tern.h"

/* SHA-256 of the n_vocab logits (little-endian f32) that follow `after` generated tokens. */
typedef struct receipt_point {
    uint64_t after;
    char sha256[RECEIPT_HEX];
} receipt_point;

/* Digests of a run in progress, and the work its session had done before. Call receipt_watch_free
 * in any case. */
typedef struct receipt_watch {
    tern_session *session;
    receipt_point *points; /* owned; `after` ascends */
    size_t n, capacity;
    tern_session_work before;
    double seconds;   /* that hashing took; included in the run's own times */
    tern_error error; /* why the record is incomplete, if it is */
} receipt_watch;

receipt_watch receipt_watch_begin(tern_session *session);

/*
 * Hashes logits[n_vocab] that follow `after` generated tokens, if a receipt records them: `after`
 * must be a multiple of RECEIPT_EVERY.
 */
void receipt_watch_logits(receipt_watch *w, uint64_t after, const float *logits);

/* Ends the run after `after` generated tokens and hashes the session's last logits, unless they are
 * hashed already. */
void receipt_watch_end(receipt_watch *w, uint64_t after);
void receipt_watch_free(receipt_watch *w);

/* SHA-256 of logits[n_vocab] of the session's model. */
void receipt_hash_row(const tern_session *session, const float *logits, char hex[RECEIPT_HEX]);

/* SHA-256 of tern_session_last_logits. Errors are those of that function. */
TERN_MUST_CHECK tern_status receipt_hash_logits(tern_session *session, char hex[RECEIPT_HEX],
                                                tern_error *err);

#endif
