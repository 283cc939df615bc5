/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_TOOLS_COMMANDS_DETERMINISM_H
#define TERN_TOOLS_COMMANDS_DETERMINISM_H

/*
 * Parts of tern verify-determinism: opened models, random schedules, complete records of what a run
 * of a model computed, and the first difference of two records.
 */

#include "tern/tern.h"
#include "tools/cli/options.h"

/* The place where a model runs; NULL: the best instruction set, its layout, the processor. */
typedef struct determinism_place {
    const char *isa, *layout, *device;
} determinism_place;

/* Opens a model for a place, with the other parameters from the options. EXIT_DONE, or the exit
 * status after a complaint. */
int determinism_open(const options *o, const char *path, const determinism_place *where,
                     tern_model **model);

/* Runs --schedules N on all instruction sets of the mask. Returns the exit status. */
int determinism_schedules(const options *o, const char *path, uint64_t mask);

typedef struct record {
    uint32_t layers, heads, positions, n_vocab;
    size_t row_bytes; /* of a key or value of one head at one position */
    uint8_t *cache;   /* [layer][keys, values][head][position][row_bytes] */
    float *logits;    /* [positions][n_vocab] */
} record;

/* False after a complaint; record_free in any case. */
bool record_new(const tern_model *model, tern_format kv, uint32_t positions, record *r);
void record_free(record *r);

/* A buffer for the logits of all positions, aligned for tern_session_eval; NULL: no memory. */
float *record_logits_buffer(const record *r);

/* Copies the session's cache, which must hold the record's positions. */
void record_cache(record *r, const tern_session *session);

/* SHA-256 of the record's cache and logits. */
void record_hash(const record *r, char hex[65]);

typedef enum record_part { RECORD_SAME, RECORD_KEYS, RECORD_VALUES, RECORD_LOGITS } record_part;

/* The first number that differs, in the order in which a forward pass computes them. */
typedef struct record_difference {
    record_part part;
    uint32_t layer, head, position;
    uint32_t index; /* for logits: the token */
} record_difference;

record_difference record_compare(const record *a, const record *b);

/* Writes "layer 1, keys of head 0 at position 17: ..." and what is computed between the last thing
 * that was the same and this one. */
void record_describe(const record *r, const record_difference *d, char *text, size_t size);

#endif
