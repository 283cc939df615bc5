/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_TOOLS_RECEIPT_SERVED_ANSWER_H
#define TERN_TOOLS_RECEIPT_SERVED_ANSWER_H

/*
 * Receipts of a server's answers. They have in common what is said of the model, the machine and
 * the accuracy of products. It is made once, beside the start of the server.
 */

#include <pthread.h>

#include "serve/work/receipt.h"
#include "tools/receipt/receipt.h"

typedef struct answer_receipts {
    const options *o;
    const loaded *l;
    pthread_mutex_t lock; /* of what follows */
    json_t *common;       /* NULL: not made yet */
    receipt_maker maker;  /* that uses this */
    pthread_t thread;     /* that makes it */
    bool has_thread;
} answer_receipts;

/* For the model in `l`. Close it in any case, also one of zeros. */
void answer_receipts_open(answer_receipts *a, const options *o, const loaded *l);

/* Makes what all have in common, in a thread of its own: the first receipt waits for it at most.
 * Where there is no thread or something fails, the next receipt that is wanted tries it again. */
void answer_receipts_begin(answer_receipts *a);

/* The receipt of an answer without its digest; NULL after a complaint, or without memory. */
json_t *answer_receipts_build(answer_receipts *a, const receipt_answer *answer);

/* Waits for what was begun. */
void answer_receipts_close(answer_receipts *a);

#endif
