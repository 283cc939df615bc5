/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_RUNTIME_MODEL_MODEL_H
#define TERN_RUNTIME_MODEL_MODEL_H

/* What a tern_model is made of. Immutable after tern_model_open. */

#include "base/arena.h"
#include "base/file_map.h"
#include "device/mirror.h"
#include "runtime/files/gguf/code_shares.h"
#include "runtime/files/gguf/gguf.h"
#include "runtime/model/config/config.h"
#include "runtime/model/config/hadamard.h"
#include "runtime/model/config/precision.h"
#include "runtime/model/config/unclaimed.h"
#include "runtime/model/load/list.h"
#include "runtime/model/parts/head.h"
#include "runtime/model/parts/weight_set.h"
#include "runtime/model/tune/guard.h"
#include "tern/tern.h"
#include "threads/fetch.h"
#include "threads/placement.h"
#include "threads/replica.h"

/* Hot weights on every node; model_replicas.h. */
typedef struct tern_model_replicas {
    tern_hot_list hot; /* what could be copied; empty unless that was asked for */
    size_t bytes;      /* of one replica */
    uint32_t n;        /* planned, or there */
    tern_replicas copies;
    tern_weight_set *sets; /* [nodes] without layers: none there; NULL: no replicas. Owns layers */
} tern_model_replicas;

/* Rows for everything that is not a matrix product, selected once. */
typedef struct tern_row_set {
    const tern_kernel_row *quantize_token, *quantize_block, *rmsnorm, *rope, *gate, *add;
    const tern_kernel_row *layernorm, *hadamard;
    const tern_kernel_row *softmax; /* of routers to experts */
    const tern_kernel_row *round;   /* of float activations; NULL: they stay as they are */
    /* by format of the cache; NULL: not a format of caches */
    const tern_kernel_row *attend[TERN_FORMAT_COUNT], *store[TERN_FORMAT_COUNT];
} tern_row_set;

static inline bool tern_is_cache_format(const tern_row_set *rows, tern_format kv) {
    return (unsigned)kv < TERN_FORMAT_COUNT && rows->attend[kv] != NULL;
}

/* Where layouts and kernels come from, as tern_model_choice says it. */
typedef enum tern_choice {
    TERN_CHOICE_TABLE, /* its order of preference */
    TERN_CHOICE_TUNED, /* measurements, here or kept from before */
    TERN_CHOICE_ASKED  /* the layout was named; the rest is as it would have been */
} tern_choice;

typedef struct tern_image_work tern_image_work;

struct tern_model {
    tern_gguf *file;
    tern_config config;
    tern_hadamards hadamards; /* of rows that matrices read */
    tern_topology *topology;
    tern_places places;     /* of weights and sessions */
    tern_fetch fetch;       /* what passes ask memory for ahead, settled when weights are loaded */
    tern_fetching fetching; /* the same */
    int refused;            /* errno of the first binding that the system refused; 0: none */
    tern_guard guard;       /* features that kernels may use, and what it found out of them */
    tern_layout ternary;    /* packed layout of ternary matrices, but for what `tuning` has */
    tern_tuning tuning;     /* choices in place of the table's */
    char *tune_folder;      /* with tune_later: where choices are kept; else NULL */
    uint32_t tune_threads;
    uint32_t together; /* sequences that are expected to be decoded at once */
    char layout_reason[TERN_LAYOUT_REASON_BYTES]; /* why `ternary` is that one; empty: no probe */
    tern_choice choice;
    tern_row_set rows;
    tern_arena weights;          /* packed matrices and vectors; over packed_image where it is */
    tern_file_map *packed_image; /* NULL: weights were packed */
    tern_image_work *image_work; /* NULL: no image is being written; model_image.c */
    tern_model_loading loading;
    tern_model *shared;     /* whose matrices are read where they are equal; NULL: none */
    _Atomic uint32_t users; /* the owner, and models that share its matrices */
    tern_layer *layers;     /* [n_layer] those of `own` */
    tern_load_list list;    /* what is loaded, and how; stays as long as the model */
    tern_weight_set own;    /* as they were loaded */
    tern_model_replicas replicas;
    tern_head_image image; /* of the head; no rows: it is small, or shall be read itself */
    tern_mirror *mirror;   /* the weights on another device; NULL: passes run on the processor */
    char device_note[TERN_ERROR_MESSAGE_BYTES]; /* why "auto" is the processor; else empty */
    double *frequency[TERN_LAYER_KINDS];        /* of each kind [n_rot / 2], radians per position */
    tern_tokenizer *tokenizer;                  /* NULL: see tokenizer_error */
    tern_error tokenizer_error;
    tern_unused unused; /* in the file, and not known */
    char *name;         /* general.name or "" */
    bool runnable;      /* weights are loaded */
    bool strict;
    bool pre_asked;           /* the pre-tokenizer was named when the model was opened */
    bool exact_head;          /* no image of the head */
    tern_precision precision; /* of activations, where it is not the model's own */
    bool precision_refused;   /* another one was asked for than the weights' definition fixes */
    char precision_note[TERN_ERROR_MESSAGE_BYTES]; /* why a hint is not taken; empty: it is, or the
                                                      definition fixes another */
    tern_reading reading;                          /* of ternary tensors */
    char doubt[TERN_DOUBT_BYTES];                  /* about the meaning of codes; empty: none */
    _Atomic uint64_t identity;                     /* 0: not asked for yet; identity.c */
};

/* What a worker at that place reads. */
static inline const tern_weight_set *tern_model_weights(const tern_model *m, tern_place place) {
    const bool bound = place.first < place.end;
    const tern_weight_set *set =
        m->replicas.sets != NULL && bound ? &m->replicas.sets[place.node] : &m->own;
    return set->layers != NULL ? set : &m->own;
}

/* Whether what the system refuses, of threads and memory at places, is an error. */
static inline bool tern_model_must_bind(const tern_model *m) {
    return m->strict || m->places.numa == TERN_NUMA_STRICT;
}

/*
 * A binding that the system refused, an errno or 0. A strict model, and the NUMA policy "strict",
 * take it for an error; otherwise it is kept in *refused, the first one.
 */
TERN_MUST_CHECK tern_status tern_model_note_refusal(const tern_model *m, int error, int *refused,
                                                    tern_error *err);

/* The forms of activations that the matrices read, bits of tern_input_form; whether one of them is
 * ternary. The image of the head is not one of them. */
unsigned tern_model_forms(const tern_model *m);
bool tern_model_is_ternary(const tern_model *m);

/* Notes the kind of each layer, and makes the frequencies of each kind that has none yet. */
TERN_MUST_CHECK tern_status tern_model_use_kinds(tern_model *m, tern_error *err);

/*
 * Fills tokenizer, or tokenizer_error where nothing was asked for and the file has none: with the
 * one that params name, the file's own, or a tokenizer.json beside the file.
 */
TERN_MUST_CHECK tern_status tern_model_open_tokenizer(tern_model *m,
                                                      const tern_model_params *params,
                                                      tern_error *err);

#endif
