/* SPDX-License-Identifier: Apache-2.0 */
/* Digests of the logits during a run. */

#include <stdlib.h>

#include "base/grow.h"
#include "base/metrics.h"
#include "base/sha256.h"
#include "receipts/watch.h"

receipt_watch receipt_watch_begin(tern_session *session) {
    return (receipt_watch){.session = session, .before = tern_session_work_done(session)};
}

static bool grow(receipt_watch *w) {
    if (tern_grow((void **)&w->points, &w->capacity, w->n, sizeof *w->points,
                  SIZE_MAX / sizeof *w->points))
        return true;
    (void)tern_fail(&w->error, TERN_ERR_NOMEM, "no memory for the digests of logits");
    return false;
}

void receipt_hash_row(const tern_session *session, const float *logits, char hex[RECEIPT_HEX]) {
    tern_model_info info;
    tern_sha256 sum;
    tern_model_describe(tern_session_model(session), &info);
    tern_sha256_start(&sum);
    tern_sha256_add(&sum, logits, info.n_vocab * sizeof(float));
    tern_sha256_finish(&sum, hex);
}

void receipt_watch_logits(receipt_watch *w, uint64_t after, const float *logits) {
    if (after % RECEIPT_EVERY != 0 || !grow(w))
        return;
    const double start = tern_clock_seconds();
    receipt_point *point = &w->points[w->n++];
    point->after = after;
    receipt_hash_row(w->session, logits, point->sha256);
    w->seconds += tern_clock_seconds() - start;
}

void receipt_watch_end(receipt_watch *w, uint64_t after) {
    const bool known = w->n > 0 && w->points[w->n - 1].after == after;
    if (known || !grow(w))
        return;
    const double start = tern_clock_seconds();
    receipt_point *point = &w->points[w->n];
    point->after = after;
    w->n += receipt_hash_logits(w->session, point->sha256, &w->error) == TERN_OK;
    w->seconds += tern_clock_seconds() - start;
}

tern_status receipt_hash_logits(tern_session *session, char hex[RECEIPT_HEX], tern_error *err) {
    const float *logits;
    const tern_status status = tern_session_last_logits(session, &logits, err);
    if (status == TERN_OK)
        receipt_hash_row(session, logits, hex);
    return status;
}

void receipt_watch_free(receipt_watch *w) {
    free(w->points);
    w->points = NULL;
    w->n = w->capacity = 0;
}
