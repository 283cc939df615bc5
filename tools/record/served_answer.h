/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_TOOLS_RECORD_SERVED_ANSWER_H
#define TERN_TOOLS_RECORD_SERVED_ANSWER_H

/*
 * Receipts of a server's answers, and what a recording says of these. Receipts share the facts
 * about the model, the machine and the accuracy of products, which are collected once while the
 * server starts.
 */

#include <pthread.h>

#include "serve/work/receipt.h"
#include "tools/record/receipt.h"
#include "tools/record/recording.h"

typedef struct answer_receipts {
    const options *o;
    const loaded *l;
    pthread_mutex_t lock; /* protects the members below */
    json_t *common;       /* NULL: not ready yet */
    recording *recording; /* borrowed; NULL: answers are not recorded */
    json_t *opening;      /* "model_info" of each line of the recording */
    receipt_maker maker;  /* uses this struct */
    pthread_t thread;     /* collects the facts */
    bool has_thread;
} answer_receipts;

/* Receipts for the model in `l`, whose answers go to the recording unless it is NULL. Close them in
 * any case; a zeroed struct can be closed, too. */
void answer_receipts_open(answer_receipts *a, const options *o, const loaded *l, recording *to);

/* Collects the shared facts in a separate thread; only the first receipt may have to wait for it.
 * If the thread cannot start or something fails, the next receipt tries again. */
void answer_receipts_begin(answer_receipts *a);

/* The receipt of an answer without its digest; NULL after a complaint, or without memory. */
json_t *answer_receipts_build(answer_receipts *a, const receipt_answer *answer);

/* Waits for the thread, and frees everything. */
void answer_receipts_close(answer_receipts *a);

#endif
