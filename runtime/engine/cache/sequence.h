/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_RUNTIME_ENGINE_CACHE_SEQUENCE_H
#define TERN_RUNTIME_ENGINE_CACHE_SEQUENCE_H

/*
 * One sequence: its tokens and the tables of the pages that hold their keys and values. It does not
 * own these arrays; its maker does.
 */

#include <stdint.h>

typedef struct tern_sequence {
    int32_t *tokens;        /* [position] stored; TERN_NO_TOKEN where a row stands in for a token */
    uint32_t *pages;        /* position p lies in pages[p / TERN_PAGE] of the pool */
    uint32_t *window_pages; /* the same for layers with a window, if they have their own */
    uint32_t kept;          /* layers with a window have pages from pages[kept] on, not before */
    uint32_t position;      /* stored tokens */
    uint32_t state; /* tokens that the states of delta nets have seen: a token can follow only
                       so many, or none */
    uint32_t n_ctx; /* capacity: of tokens, and of positions in pages */
} tern_sequence;

#endif
