/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_TOOLS_PLAN_MODEL_H
#define TERN_TOOLS_PLAN_MODEL_H

/* The sizes of a model that decide how fast it decodes and what it needs, from a file or a name. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tern/tern.h"

/* The matrices by what divides their rows between ranks. */
typedef enum plan_part {
    PLAN_QKV, /* key/value heads */
    PLAN_OUT, /* groups of rows, as all that follow */
    PLAN_GATE_UP,
    PLAN_DOWN,
    PLAN_HEAD,
    PLAN_PARTS
} plan_part;

typedef struct plan_model {
    char name[128];
    uint32_t n_layer, n_embd, n_ff, n_head, n_head_kv, head_dim, n_vocab;
    uint32_t n_expert, n_used; /* 0: no experts */
    uint64_t read[PLAN_PARTS]; /* bytes of weights that a token reads */
    uint64_t kept[PLAN_PARTS]; /* bytes of weights in memory */
    uint64_t whole;            /* bytes in memory that every rank has: vectors */
    uint64_t multiplied;       /* weights that a token is multiplied by */
    uint64_t row;              /* bytes of keys and values of a position in a layer */
    uint32_t kv_layers;        /* layers that have them; the others are delta nets */
    uint64_t states;           /* bytes of a sequence's states in these */
    uint32_t window_layers;    /* layers that see only so many positions: */
    uint32_t window;
} plan_model;

/* Takes them from an open model, which may lack its weights, and the format of its cache. */
TERN_MUST_CHECK tern_status plan_model_of(const tern_model *model, tern_format kv, plan_model *out,
                                          tern_error *err);

/*
 * A geometry by its name: ternary weights of 2 bits, an embedding in f16 that is the head too, and
 * is scanned in int8, a cache in f16. TERN_ERR_NAME: there is none of that name.
 */
TERN_MUST_CHECK tern_status plan_model_named(const char *name, plan_model *out, tern_error *err);

/* Name and description of geometry `index`; false past the last one. Static storage. */
bool plan_geometry_at(size_t index, const char **name, const char **description);

/* Bytes of the cache that a token after `position` others reads, or that they take. */
uint64_t plan_cache_bytes(const plan_model *m, uint64_t position);

/* Bytes of weights that a token reads, and that are in memory. */
uint64_t plan_read_bytes(const plan_model *m);
uint64_t plan_kept_bytes(const plan_model *m);

#endif
