/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_RECEIPTS_WATCH_H
#define TERN_RECEIPTS_WATCH_H

/* Digests of the logits while a run is in work. */

#include "receipts/document.h"
#include "tern/tern.h"

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

#endif
