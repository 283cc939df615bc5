/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_RUNTIME_ENGINE_CACHE_POOL_H
#define TERN_RUNTIME_ENGINE_CACHE_POOL_H

/*
 * Cache memory: pages, each of which holds the keys and values of some layers for TERN_PAGE
 * positions of one sequence. The pool knows nothing of sequences: its users keep tables of pages
 * for each sequence.
 *
 * A pool has two parts, each with its own pages and page numbers. Pages of the first part hold the
 * layers that see all positions, pages of the second part those with a window. So a sequence can
 * give back the positions that its windows have left behind, and keep the rest. Where nothing is
 * ever given back the second part is empty, and the first one holds all layers.
 *
 * Keys and values lie apart, each as [page][layer of the part][kv head][TERN_PAGE] rows of head_dim
 * elements of the format: F32, F16, or Q8_0 (whole blocks). So the part of a page that a layer and
 * head read is one contiguous run, and a page moves from one sequence to another by its number.
 *
 * One arena holds everything; it is placed on the model's memory places. Nothing is allocated after
 * tern_pool_open, and the memory is not initialized: a position may be read only after it was
 * stored.
 */

#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "runtime/model/model.h"

enum { TERN_PAGE = TERN_ATTEND_CHUNK }; /* positions of a page */

typedef enum tern_pool_part {
    TERN_PART_ALL,    /* layers that see all positions */
    TERN_PART_WINDOW, /* layers with a window */
    TERN_POOL_PARTS
} tern_pool_part;

/* Pages of each part. */
typedef struct tern_pool_size {
    uint32_t pages;
    uint32_t window_pages; /* 0: layers with a window use `pages` like all others */
    uint32_t states;       /* sequences that run at once; only delta nets need them */
} tern_pool_size;

/* Memory of one part. */
typedef struct tern_pool_pages {
    uint8_t *k, *v;     /* page 0 */
    size_t page_stride; /* bytes from a page to the next one */
    uint32_t n_layer;   /* 0: pages take no memory */
    uint32_t n;
} tern_pool_pages;

struct tern_runner;
typedef struct tern_pool tern_pool;

/* tern_pool_fetch and tern_pool_send of a pool whose passes ranks compute. */
typedef struct tern_pool_far {
    tern_status (*fetch)(struct tern_runner *leader, const tern_pool *p, uint8_t *rows,
                         size_t bytes, tern_error *err);
    tern_status (*send)(struct tern_runner *leader, const tern_pool *p, const uint8_t *rows,
                        size_t bytes, tern_error *err);
} tern_pool_far;

struct tern_pool {
    tern_arena arena;
    const tern_config *config;
    tern_pool_pages parts[TERN_POOL_PARTS];
    float *states;       /* of delta nets, of `n_states` sequences one after the other */
    size_t state_stride; /* floats of a sequence; 0: the model has no delta nets */
    uint32_t n_states;
    size_t row_bytes;   /* of one position of one head, of keys or of values */
    size_t head_stride; /* bytes from a head to the next one, within a layer and from the last head
                           of a layer to the first one of the next */
    uint32_t n_head_kv;
    tern_format kv;
    tern_mirror *mirror; /* of the runner that computes on another device (tern_runner_hold): stored
                            rows are there, fetched ones here; NULL: all rows are here */
    const struct tern_pool_far *far; /* of rank 0, where other ranks have some heads' rows in pools
                                        of theirs; NULL: no other rank has any */
    struct tern_runner *leader;      /* for these functions */
};

/* The number of pages that hold this many positions of a sequence. */
static inline uint32_t tern_pages_of(uint32_t positions) {
    return positions / TERN_PAGE + (positions % TERN_PAGE > 0);
}

/* The first page of which a token at this position still sees something; window >= 1. */
static inline uint32_t tern_window_first(uint32_t window, uint32_t position) {
    return position >= window ? (position + 1 - window) / TERN_PAGE : 0;
}

/* The most pages that this many consecutive tokens see; window, rows >= 1. */
static inline uint32_t tern_window_pages(uint32_t window, uint32_t rows) {
    return tern_pages_of(window - 1 + rows) + 1;
}

/*
 * Bytes of a pool, keys and values together. kv is a format that tern_is_cache_format accepts.
 * TERN_ERR_NOMEM when they exceed the address space.
 */
TERN_MUST_CHECK tern_status tern_pool_bytes(const tern_model *model, tern_format kv,
                                            tern_pool_size size, size_t *bytes, tern_error *err);

/*
 * Maps the memory. *refused becomes the errno of the first place that the system refused, as
 * tern_model_note_refusal says. TERN_ERR_NOMEM as above, TERN_ERR_CACHE_MEMORY when the system has
 * no memory, TERN_ERR_STRICT. On an error *pool is closed.
 */
TERN_MUST_CHECK tern_status tern_pool_open(const tern_model *model, tern_format kv,
                                           tern_pool_size size, tern_pool *pool, int *refused,
                                           tern_error *err);

/* Frees the memory. Does nothing to a pool of zeros or a closed one. */
void tern_pool_close(tern_pool *pool);

/* True if layers with a window have their own pages. */
static inline bool tern_pool_has_windows(const tern_pool *p) {
    return p->parts[TERN_PART_WINDOW].n > 0;
}

/*
 * The state of a delta net, for each sequence that runs: the last n_taps - 1 rows of channels, the
 * oldest first, then [n_states][state_dim][state_dim] floats. A sequence at position 0 has a state
 * of zeros, whatever is in the memory.
 */
float *tern_pool_state(const tern_pool *p, uint32_t sequence, uint32_t layer);

/* Floats of the state of one layer, and those of them before the first state_dim x state_dim. */
size_t tern_pool_state_floats(const tern_delta_sizes *d);
size_t tern_pool_history_floats(const tern_delta_sizes *d);

/* True if the pool holds keys and values of the layer. */
static inline bool tern_pool_has(const tern_pool *p, uint32_t layer) {
    return !tern_config_is_delta(p->config, layer);
}

/* How many layers those are, and number i of them. */
static inline uint32_t tern_pool_layers(const tern_pool *p) {
    return p->config->n_layer - tern_config_delta_layers(p->config);
}
static inline uint32_t tern_pool_layer_at(const tern_pool *p, uint32_t i) {
    return tern_config_delta_layers(p->config) == 0 ? i : (i + 1) * p->config->period - 1;
}

/* The part that holds a layer. */
static inline tern_pool_part tern_pool_part_of(const tern_pool *p, uint32_t layer) {
    return tern_pool_has_windows(p) && tern_config_has_window(p->config, layer) ? TERN_PART_WINDOW
                                                                                : TERN_PART_ALL;
}

/* The beginning of the keys, or the values, of a layer and head in page 0 of the layer's part. Each
 * further page has them page_stride bytes later. */
uint8_t *tern_pool_head(const tern_pool *p, bool value, uint32_t layer, size_t head);

/*
 * Copy rows of one head between the device or the ranks of the passes and this memory: fetch before
 * reading rows that passes stored, send after writing rows that passes will read. Both do nothing
 * where passes run on this process' processor.
 */
TERN_MUST_CHECK tern_status tern_pool_fetch(const tern_pool *p, uint8_t *rows, size_t bytes,
                                            tern_error *err);
TERN_MUST_CHECK tern_status tern_pool_send(const tern_pool *p, const uint8_t *rows, size_t bytes,
                                           tern_error *err);

/* The head that a byte of the pool belongs to. */
size_t tern_pool_head_of(const tern_pool *p, const uint8_t *rows);

/* The row of a layer, head and position of a sequence with these pages of the layer's part. */
static inline uint8_t *tern_pool_row(const tern_pool *p, bool value, uint32_t layer, size_t head,
                                     const uint32_t *pages, uint32_t position) {
    return tern_pool_head(p, value, layer, head) +
           pages[position / TERN_PAGE] * p->parts[tern_pool_part_of(p, layer)].page_stride +
           position % TERN_PAGE * p->row_bytes;
}

#endif
