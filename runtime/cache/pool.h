/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_RUNTIME_CACHE_POOL_H
#define TERN_RUNTIME_CACHE_POOL_H

/*
 * Cache memory: a number of pages, each of which holds the keys and values of all layers for
 * TERN_PAGE positions of one sequence. The pool knows nothing of sequences: who has which page is
 * the business of whoever uses it (a table of pages for each sequence).
 *
 * Keys and values lie apart, each as [page][layer][kv head][TERN_PAGE] rows of head_dim elements of
 * the format: F32, F16, or Q8_0 (whole blocks). So what a layer and head read of a page is one
 * contiguous run, and a page moves from one sequence to another by its number.
 *
 * One arena holds everything; it is placed where the model's places say. Nothing is allocated
 * after tern_pool_open, and the memory is not initialized: a position may be read only after it was
 * stored.
 */

#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "runtime/model/model.h"

enum { TERN_PAGE = TERN_ATTEND_CHUNK }; /* positions of a page */

typedef struct tern_pool {
    tern_arena arena;
    uint8_t *k, *v;     /* page 0 */
    size_t row_bytes;   /* of one position of one head, of keys or of values */
    size_t head_stride; /* bytes from a head to the next one, within a layer and from the last head
                           of a layer to the first one of the next */
    size_t page_stride; /* bytes from a page to the next one */
    uint32_t n_head_kv;
    uint32_t pages;
    tern_format kv;
} tern_pool;

/* How many pages the positions of one sequence take. */
static inline uint32_t tern_pages_of(uint32_t positions) {
    return positions / TERN_PAGE + (positions % TERN_PAGE > 0);
}

/*
 * Bytes of a pool of `pages` pages, keys and values together. kv is a format that
 * tern_is_cache_format accepts. TERN_ERR_NOMEM when they exceed the address space.
 */
TERN_MUST_CHECK tern_status tern_pool_bytes(const tern_model *model, tern_format kv, uint32_t pages,
                                            size_t *bytes, tern_error *err);

/*
 * Maps the memory. *refused takes errno of the first place that the system refused, as
 * tern_model_note_refusal has it. TERN_ERR_NOMEM as above, TERN_ERR_CACHE_MEMORY when the system
 * has no memory, TERN_ERR_STRICT. On an error *pool is closed.
 */
TERN_MUST_CHECK tern_status tern_pool_open(const tern_model *model, tern_format kv, uint32_t pages,
                                           tern_pool *pool, int *refused, tern_error *err);

/* Gives the memory back; nothing for a pool of zeros or a closed one. */
void tern_pool_close(tern_pool *pool);

/* Where the keys, or the values, of a layer and head begin in page 0; other pages have theirs
 * page_stride further on. */
static inline uint8_t *tern_pool_head(const tern_pool *p, bool value, size_t layer, size_t head) {
    return (value ? p->v : p->k) + (layer * p->n_head_kv + head) * p->head_stride;
}

/* The row of a layer, head and position of a sequence with these pages. */
static inline uint8_t *tern_pool_row(const tern_pool *p, bool value, size_t layer, size_t head,
                                     const uint32_t *pages, uint32_t position) {
    return tern_pool_head(p, value, layer, head) + pages[position / TERN_PAGE] * p->page_stride +
           position % TERN_PAGE * p->row_bytes;
}

#endif
