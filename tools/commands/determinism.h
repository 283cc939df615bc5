/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_TOOLS_COMMANDS_DETERMINISM_H
#define TERN_TOOLS_COMMANDS_DETERMINISM_H

/*
 * What tern verify-determinism is made of: models that it opens, random schedules, and what a run
 * of a model computed, kept whole, and where two runs differ first.
 */

#include "tern/tern.h"
#include "tools/cli/options.h"

/* Where a model runs; NULL: the best instruction set, its layout, the processor. */
typedef struct determinism_place {
    const char *isa, *layout, *device;
} determinism_place;

/* Opens a model for a place, read as the options say. EXIT_DONE, or the exit status after a
 * complaint. */
int determinism_open(const options *o, const char *path, const determinism_place *where,
                     tern_model **model);

/* --schedules N on all instruction sets of the mask. The exit status. */
int determinism_schedules(const options *o, const char *path, uint64_t mask);

typedef struct record {
    uint32_t layers, heads, positions, n_vocab;
    size_t row_bytes; /* of a key or value of one head and position */
    uint8_t *cache;   /* [layer][keys, values][head][position][row_bytes] */
    float *logits;    /* [positions][n_vocab] */
} record;

/* False after a complaint; record_free in any case. */
bool record_new(const tern_model *model, tern_format kv, uint32_t positions, record *r);
void record_free(record *r);

/* Room for the logits of all positions, aligned as tern_session_eval wants them; NULL: no memory.
 */
float *record_logits_buffer(const record *r);

/* Copies the session's cache, which holds the record's positions. */
void record_cache(record *r, const tern_session *session);

/* SHA-256 of cache and logits. */
void record_hash(const record *r, char hex[65]);

typedef enum record_part { RECORD_SAME, RECORD_KEYS, RECORD_VALUES, RECORD_LOGITS } record_part;

/* The first number that differs, in the order in which a forward pass computes them. */
typedef struct record_difference {
    record_part part;
    uint32_t layer, head, position;
    uint32_t index; /* logits: the token */
} record_difference;

record_difference record_compare(const record *a, const record *b);

/* "layer 1, keys of head 0 at position 17: ..." with what is computed between there and the last
 * thing that was the same. */
void record_describe(const record *r, const record_difference *d, char *text, size_t size);

#endif
