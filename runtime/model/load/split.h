/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_RUNTIME_MODEL_LOAD_SPLIT_H
#define TERN_RUNTIME_MODEL_LOAD_SPLIT_H

/*
 * The parts of a model that each rank holds. Rows of a matrix are divided, never its columns: a sum
 * belongs to one rank as a whole. The rows of q, k and v go with the key/value heads, since these
 * are attended to where they are stored; the rows of all other matrices in groups of
 * TERN_ROW_GROUP, as they are packed. A rank may have none of them.
 *
 * Some things are not divided, and then every rank has all of them: see tern_split_of.
 */

#include "ranks/ranks.h"
#include "runtime/model/config/config.h"
#include "runtime/model/parts/block.h"
#include "tern/team.h"

/* The results that are divided. */
typedef enum tern_split_kind {
    TERN_SPLIT_HEADS,   /* key/value heads */
    TERN_SPLIT_Q,       /* rows of q, and what attention makes of them */
    TERN_SPLIT_KV,      /* rows of k and v */
    TERN_SPLIT_EMBD,    /* rows of what is added to the residual stream */
    TERN_SPLIT_FF,      /* rows of gate and up */
    TERN_SPLIT_VOCAB,   /* rows of the head */
    TERN_SPLIT_EXPERTS, /* experts, each whole: with gate, up and down */
    TERN_SPLIT_KINDS
} tern_split_kind;

typedef struct tern_split {
    tern_ranks *ranks; /* NULL: this process is alone */
    uint32_t rank, size;
    bool divided[TERN_SPLIT_KINDS];                       /* false: every rank has all */
    size_t bounds[TERN_SPLIT_KINDS][TERN_RANKS_MOST + 1]; /* rank r has [bounds[r], bounds[r+1]) */
} tern_split;

/*
 * Divides a model of that configuration. Heads are not divided where q or k are normed as a whole;
 * where a block has experts, these are divided in place of the rows of gate and up.
 */
tern_split tern_split_of(tern_ranks *ranks, const tern_config *c);

/* The rank's own part of `kind`, which has `count` in all. */
tern_part tern_split_part(const tern_split *s, tern_split_kind kind, size_t count);

/* The rank that has item `at` of a kind; this one where all have it. */
uint32_t tern_split_owner(const tern_split *s, tern_split_kind kind, size_t at);

/* The kind of the rows of a matrix of a block; KINDS: they are not divided. */
tern_split_kind tern_split_kind_of(const tern_block_tensor *t);

static inline bool tern_split_is(const tern_split *s) {
    return s->ranks != NULL;
}

#endif
