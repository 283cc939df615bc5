/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_RUNTIME_ENGINE_CACHE_SEQUENCE_H
#define TERN_RUNTIME_ENGINE_CACHE_SEQUENCE_H

/*
 * One sequence: its tokens and the tables of the pages that hold their keys and values. It owns
 * neither: its maker owns the arrays.
 */

#include <stdint.h>

typedef struct tern_sequence {
    int32_t *tokens; /* [position] that are stored; TERN_NO_TOKEN where a row took its place */
    uint32_t *pages; /* position p lies in pages[p / TERN_PAGE] of the pool */
    uint32_t *window_pages; /* likewise of layers with a window, where these have their own */
    uint32_t kept;     /* layers with a window have pages from pages[kept] on, not those before */
    uint32_t position; /* tokens that are there */
    uint32_t n_ctx;    /* that fit: of tokens, and of positions in pages */
} tern_sequence;

#endif
