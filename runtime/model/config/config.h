/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_RUNTIME_MODEL_CONFIG_CONFIG_H
#define TERN_RUNTIME_MODEL_CONFIG_CONFIG_H

/* The numbers of one model, from the metadata of its file. The forward pass reads them. */

#include <stdbool.h>
#include <stdint.h>

#include "runtime/files/arch/arch.h"
#include "runtime/files/gguf/gguf.h"
#include "runtime/model/parts/block.h"
#include "tern/embed.h"
#include "tern/kernels.h"

enum { TERN_LAYER_KINDS = 2 }; /* at most */

enum { TERN_MAX_EXPERTS = 1024 }; /* of a layer */

/* Numbers of one model, checked against each other. */
typedef struct tern_config {
    const tern_arch *arch;
    uint32_t n_layer;
    uint32_t n_embd;
    uint32_t n_ff; /* of each expert where there are some */
    uint32_t n_head;
    uint32_t n_head_kv;
    uint32_t head_dim;
    uint32_t n_rot; /* leading dimensions of a head that RoPE turns; even */
    uint32_t n_vocab;
    uint32_t n_types;    /* kinds of tokens of an encoder */
    uint32_t n_ctx;      /* trained for */
    float norm_eps;      /* of the stream as it is kept, see block_scale */
    float block_scale;   /* multiplies what a block adds. The residual stream is kept divided by it,
                            so embedding_scale has 1 / it and norm_eps 1 / its square as a factor */
    float logit_divisor; /* of logits; the gains of the output norm are divided by it instead */
    float attention_scale; /* multiplies q . k: 1 / sqrt(head_dim) unless the file has its own */
    tern_op gate;          /* the architecture's activation, or the file's */
    float embedding_scale; /* multiplies rows of the embedding */
    tern_pooling pooling;  /* that makes vectors of texts; NONE: the file does not say it */
    uint32_t n_kinds;      /* of layers */
    uint32_t period;       /* layers period - 1, 2 * period - 1 ... are of the first kind */
    tern_layer_kind kinds[TERN_LAYER_KINDS];
    uint32_t n_ctx_long;       /* trained for with longrope's long factors; 0: there are none */
    bool long_factors;         /* they are in use, and n_ctx is theirs */
    uint32_t n_expert, n_used; /* experts, and how many a token takes; 0: none */
    bool expert_norm;          /* weights of those that it takes are divided by their sum */
    float expert_scale;        /* and multiplied by this */
    float expert_clamp; /* cuts gates above and what they multiply on both sides; 0: nothing */
} tern_config;

/* What decides the shapes of its blocks' tensors. */
static inline tern_block_sizes tern_config_block(const tern_config *c) {
    return (tern_block_sizes){.n_embd = c->n_embd,
                              .n_ff = c->n_ff,
                              .n_head = c->n_head,
                              .n_head_kv = c->n_head_kv,
                              .head_dim = c->head_dim,
                              .n_expert = c->n_expert};
}

/*
 * Reads and checks the configuration. The vocabulary size is that of token_embd.weight. Missing
 * keys take the architecture's defaults, where it has some. Errors: TERN_ERR_ARCH, TERN_ERR_KEY_*,
 * TERN_ERR_CONFIG, TERN_ERR_TENSOR_MISSING, TERN_ERR_TENSOR_SHAPE.
 */
TERN_MUST_CHECK tern_status tern_config_read(const tern_gguf *file, tern_config *out,
                                             tern_error *err);

/*
 * Adds the kind of layers that the architecture has besides the first, with what the file says of
 * it, and sets n_kinds and period. TERN_ERR_KEY_*, TERN_ERR_CONFIG.
 */
TERN_MUST_CHECK tern_status tern_config_kinds(const tern_gguf *file, tern_config *c,
                                              tern_error *err);

/*
 * What the file says of factors, where the architecture has them: embedding_scale, block_scale,
 * logit_divisor, and norm_eps for a stream that is divided; config_factors.c. TERN_ERR_KEY_*.
 */
TERN_MUST_CHECK tern_status tern_config_factors(const tern_gguf *file, tern_config *c,
                                                tern_error *err);

/* What the file says of experts, where the architecture has them; config_experts.c. TERN_ERR_KEY_*,
 * TERN_ERR_CONFIG. */
TERN_MUST_CHECK tern_status tern_config_experts(const tern_gguf *file, tern_config *c,
                                                tern_error *err);

/* The index of a layer's kind. */
uint32_t tern_config_kind_of(const tern_config *c, uint32_t layer);

static inline bool tern_config_has_window(const tern_config *c, uint32_t layer) {
    return c->kinds[tern_config_kind_of(c, layer)].window > 0;
}

/* How many layers are of a kind. */
uint32_t tern_config_layers_of(const tern_config *c, uint32_t kind);

/* Positions that a token sees in layers with a window, the most of any kind that layers are of; 0:
 * in all layers it sees all up to it. */
uint32_t tern_config_window(const tern_config *c);

/* Takes longrope's long factors and their context. TERN_ERR_CONTEXT: there are none. */
TERN_MUST_CHECK tern_status tern_config_take_long(const tern_gguf *file, tern_config *c,
                                                  tern_error *err);

/*
 * The rotation frequencies of a kind of layers, *out [n_rot / 2] radians per position, to be freed:
 * those of its base, divided by the factors of rope_freqs.weight or rope_factors_short.weight
 * where the file has them, stretched as the kind says.
 * TERN_ERR_NOMEM, TERN_ERR_TENSOR_SHAPE, TERN_ERR_TENSOR_DATA.
 */
TERN_MUST_CHECK tern_status tern_config_frequencies(const tern_gguf *file, const tern_config *c,
                                                    const tern_layer_kind *kind, double **out,
                                                    tern_error *err);

#endif
