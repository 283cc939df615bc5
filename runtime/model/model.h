/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_RUNTIME_MODEL_MODEL_H
#define TERN_RUNTIME_MODEL_MODEL_H

/* The members of a tern_model. It is immutable after tern_model_open, except `identity` and what
 * the commons count. */

#include "base/arena.h"
#include "base/file_map.h"
#include "device/mirror.h"
#include "runtime/files/gguf/code_shares.h"
#include "runtime/files/gguf/gguf.h"
#include "runtime/model/adapters/adapters.h"
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

/* Copies of the hot weights on every NUMA node (model_replicas.h). */
typedef struct tern_model_replicas {
    tern_hot_list hot; /* candidates; empty unless replicas were asked for */
    size_t bytes;      /* of one replica */
    uint32_t n;        /* replicas that are planned, or were made */
    tern_replicas copies;
    tern_weight_set *sets; /* [nodes], owns layers (NULL: none there); NULL: no replicas */
} tern_model_replicas;

/* The kernels of all operations but matrix products, selected once. */
typedef struct tern_kernel_set {
    const tern_kernel_row *quantize_token, *quantize_block, *rmsnorm, *rope, *gate, *add;
    const tern_kernel_row *layernorm, *hadamard, *tanh;
    const tern_kernel_row *softmax; /* for the routers of experts */
    const tern_kernel_row *round;   /* rounds float activations; NULL: they are not rounded */
    /* indexed by the cache's format; NULL: caches cannot have that format */
    const tern_kernel_row *attend[TERN_FORMAT_COUNT], *store[TERN_FORMAT_COUNT];
} tern_kernel_set;

static inline bool tern_is_cache_format(const tern_kernel_set *kernels, tern_format kv) {
    return (unsigned)kv < TERN_FORMAT_COUNT && kernels->attend[kv] != NULL;
}

/* The source of layouts and kernels; tern_model_choice names it. */
typedef enum tern_choice {
    TERN_CHOICE_TABLE, /* the kernel table's order of preference */
    TERN_CHOICE_TUNED, /* measurements, made now or at an earlier start */
    TERN_CHOICE_ASKED  /* the caller named the ternary layout; the rest is as it would have been */
} tern_choice;

typedef struct tern_image_work tern_image_work;
typedef struct tern_commons tern_commons;

struct tern_model {
    tern_gguf *file;
    tern_config config;
    tern_hadamards hadamards; /* transforms of the rows that matrices read */
    tern_topology *topology;
    tern_places places;     /* where weights and sessions lie */
    tern_fetch fetch;       /* what passes prefetch, settled at the end of opening */
    tern_fetching fetching; /* `fetch`, as passes use it */
    int refused;            /* errno of the first binding that the system refused; 0: none */
    tern_guard guard;       /* features that kernels may use, and what their checks found */
    tern_layout ternary;    /* layout of ternary matrices that `tuning` does not list */
    tern_tuning tuning;     /* measured choices, in place of the table's */
    char *tune_folder;      /* where tune_later keeps choices; NULL without it */
    uint32_t tune_threads;
    uint32_t together; /* sequences that are expected to be decoded at once */
    char layout_reason[TERN_LAYOUT_REASON_BYTES]; /* why it is `ternary`; empty: no probe */
    tern_choice choice;
    tern_kernel_set kernels;
    tern_arena weights;          /* packed matrices and vectors; over packed_image if mapped */
    tern_file_map *packed_image; /* NULL: weights were packed */
    tern_image_work *image_work; /* NULL: no image is being written; model_image.c */
    tern_model_loading loading;
    _Atomic uint32_t runners; /* numbers given to runners that ranks share */
    tern_commons *commons;    /* models that share matrices; NULL: it is not loaded */
    tern_model **sources;     /* [n_sources] models that hold matrices of this one */
    size_t n_sources;
    uint32_t users;        /* the owner, readers, and looks; with the lock of the commons */
    bool left;             /* its owner has freed it; likewise */
    tern_model *next_done; /* of those that nobody uses any more */
    tern_layer *layers;    /* [n_layer] those of `own` */
    tern_split split;      /* the parts that ranks have */
    tern_load_list list;   /* what is loaded, and how; kept as long as the model */
    tern_weight_set own;   /* the weights as they were loaded */
    tern_model_replicas replicas;
    tern_adapters adapters; /* that answers may use */
    tern_head_image image;  /* int8 image of the head; no rows: the head has none */
    tern_mirror *mirror;    /* the weights on another device; NULL: passes run on the processor */
    char device_note[TERN_ERROR_MESSAGE_BYTES]; /* why "auto" chose the processor; else empty */
    double *frequency[TERN_LAYER_KINDS];        /* of each kind [n_rot / 2], radians per position */
    tern_tokenizer *tokenizer;                  /* NULL: see tokenizer_error */
    tern_error tokenizer_error;
    tern_unused unused; /* unknown keys and tensors of the file */
    char *name;         /* general.name or "" */
    bool runnable;      /* weights are loaded */
    bool agreed;        /* by all ranks, which follow rank 0 until it frees the model */
    bool strict;
    bool pre_asked;           /* the pre-tokenizer was named when the model was opened */
    bool exact_head;          /* the head gets no image */
    tern_precision precision; /* of activations; AUTO: the model's own */
    bool precision_refused;   /* asked for another one than the weights' definition fixes */
    char precision_note[TERN_ERROR_MESSAGE_BYTES]; /* why a hint could not be used; else empty */
    tern_reading reading;                          /* how ternary tensors are read */
    char doubt[TERN_DOUBT_BYTES];                  /* about the meaning of codes; empty: none */
    _Atomic uint64_t identity;                     /* 0: not computed yet; identity.c */
};

/* Frees a model that nobody uses: neither its owner nor readers of its matrices. */
void tern_model_dispose(tern_model *m);

/* The weights that a worker at that place reads: those of its node's replica, if there is one. */
static inline const tern_weight_set *tern_model_weights(const tern_model *m, tern_place place) {
    const bool bound = place.first < place.end;
    const tern_weight_set *set =
        m->replicas.sets != NULL && bound ? &m->replicas.sets[place.node] : &m->own;
    return set->layers != NULL ? set : &m->own;
}

/* True if it is an error that the system refuses to bind threads or memory to places. */
static inline bool tern_model_must_bind(const tern_model *m) {
    return m->strict || m->places.numa == TERN_NUMA_STRICT;
}

/*
 * Notes the outcome of a binding: 0, or the errno with which the system refused it. A refusal is
 * TERN_ERR_STRICT for a strict model and for the NUMA policy "strict"; otherwise *refused keeps the
 * first one.
 */
TERN_MUST_CHECK tern_status tern_model_note_refusal(const tern_model *m, int error, int *refused,
                                                    tern_error *err);

/* The forms of activations that the model's matrices read, as bits of tern_input_form; and whether
 * any of these matrices is ternary. The image of the head does not count. */
unsigned tern_model_forms(const tern_model *m);
bool tern_model_is_ternary(const tern_model *m);

/* Notes the kind of each layer, and makes the frequencies of each kind that has none yet. */
TERN_MUST_CHECK tern_status tern_model_use_kinds(tern_model *m, tern_error *err);

/*
 * Sets m->tokenizer: to the one that params name, else to the file's own, else to a tokenizer.json
 * beside the file. If none is named and none of the others is there and usable, it sets
 * m->tokenizer_error.
 */
TERN_MUST_CHECK tern_status tern_model_open_tokenizer(tern_model *m,
                                                      const tern_model_params *params,
                                                      tern_error *err);

#endif
