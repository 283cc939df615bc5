/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_RUNTIME_MODEL_ORDERS_H
#define TERN_RUNTIME_MODEL_ORDERS_H

/* Orders of rank 0 to the ranks that follow it (runtime/engine/forward/together.h). */

#include <stdint.h>

typedef enum tern_order_kind {
    TERN_ORDER_END,    /* the model is freed */
    TERN_ORDER_OPEN,   /* a: threads, n_batch, n_ctx, n_picks */
    TERN_ORDER_HOLD,   /* a: format, pages, window pages */
    TERN_ORDER_CLOSE,  /* the runner and its pool */
    TERN_ORDER_PASS,   /* a: number of spans; payload: tern_order_span and what belongs to it */
    TERN_ORDER_LOGITS, /* a: first row, number of rows */
    TERN_ORDER_SCAN,   /* a: number of rows; payload: which, uint32_t */
    TERN_ORDER_FETCH,  /* a: offset in the pool, bytes, the rank that has them */
    TERN_ORDER_SEND    /* the same; payload: the bytes */
} tern_order_kind;

typedef struct tern_order {
    uint32_t kind;
    uint32_t runner;
    uint64_t bytes; /* of the payload */
    uint64_t a[4];
} tern_order;

#endif
