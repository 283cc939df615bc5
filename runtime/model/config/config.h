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
/* Tensors of the head that scores pairs of texts, named as llama.cpp names them. */
#define TERN_RANK_DENSE "cls.weight"
#define TERN_RANK_DENSE_BIAS "cls.bias"
#define TERN_RANK_OUT "cls.output.weight"
#define TERN_RANK_OUT_BIAS "cls.output.bias"

typedef struct tern_config {
    const tern_arch *arch;
    uint32_t n_layer;
    uint32_t n_predictors; /* further blocks of the file, which predict further tokens and are not
                              read */
    uint32_t n_embd;
    uint32_t n_ff; /* of each expert, if there are experts */
    uint32_t n_head;
    uint32_t n_head_kv;
    uint32_t head_dim;
    uint32_t n_rot; /* leading dimensions of a head that RoPE turns; even */
    uint32_t n_vocab;
    uint32_t n_types; /* types of tokens that an encoder tells apart */
    uint32_t n_ctx;   /* positions that it was trained for */
    float norm_eps;   /* for the stream as it is kept, see block_scale */
    /* Factor of what a block adds. The residual stream is kept divided by it, so embedding_scale
     * contains 1 / block_scale, and norm_eps 1 / block_scale^2. */
    float block_scale;
    float logit_divisor;   /* divides logits, by way of the gains of the output norm */
    float attention_cap;   /* bounds q . k times that softly; 0: nothing does */
    float logit_cap;       /* bounds logits softly; 0: nothing does */
    float attention_scale; /* multiplies q . k: 1 / sqrt(head_dim) unless the file has its own */
    tern_op gate;          /* the architecture's activation, or the file's */
    float embedding_scale; /* multiplies rows of the embedding */
    tern_pooling pooling;  /* how vectors of texts are made; NONE: the file does not say */
    bool ranks;            /* the file has a head that scores pairs of texts */
    uint32_t n_kinds;      /* of layers */
    uint32_t period;       /* layers period - 1, 2 * period - 1 ... are of the first kind */
    tern_layer_kind kinds[TERN_LAYER_KINDS];
    double yarn_less; /* YaRN's factor of cosine and sine is divided by what it would be with
                         this times the logarithm */
    float warming;    /* queries at position p are multiplied by 1 + warming *
                         ln(1 + floor(p / warm_step)); 0: by nothing */
    uint32_t warm_step;
    uint32_t n_ctx_long;       /* positions with longrope's long factors; 0: there are none */
    bool long_factors;         /* long factors are in use, and n_ctx is theirs */
    uint32_t n_ff_shared;      /* the width of the expert that all tokens take; 0: there is none */
    uint32_t n_expert, n_used; /* experts, and how many a token uses; 0: none */
    bool expert_norm;          /* weights of the experts that it uses are divided by their sum */
    float expert_scale;        /* multiplies these weights after that */
    tern_delta_sizes delta;    /* zeros: there are no delta nets */
    float expert_clamp; /* bounds gates above, and what they multiply on both sides; 0: no bounds */
} tern_config;

/* The sizes that decide the shapes of its blocks' tensors. */
static inline tern_block_sizes tern_config_block(const tern_config *c) {
    return (tern_block_sizes){.n_embd = c->n_embd,
                              .n_ff = c->n_ff,
                              .n_head = c->n_head,
                              .n_head_kv = c->n_head_kv,
                              .head_dim = c->head_dim,
                              .n_expert = c->n_expert,
                              .n_ff_shared = c->n_ff_shared,
                              .query_gates = (c->arch->has & TERN_HAS_QUERY_GATES) != 0,
                              .delta = c->delta};
}

/*
 * Reads and checks the configuration. The vocabulary size is that of token_embd.weight. Missing
 * keys take the architecture's defaults, if it has any. Errors: TERN_ERR_ARCH, TERN_ERR_KEY_*,
 * TERN_ERR_NO_SIZE, TERN_ERR_NO_KV_HEADS, TERN_ERR_HEADS, TERN_ERR_CONFIG, TERN_ERR_TENSOR_MISSING,
 * TERN_ERR_TENSOR_SHAPE.
 */
TERN_MUST_CHECK tern_status tern_config_read(const tern_gguf *file, tern_config *out,
                                             tern_error *err);

/* Adds the architecture's second kind of layers, if it has one, as the file describes it, and sets
 * n_kinds and period. TERN_ERR_KEY_*, TERN_ERR_CONFIG. */
TERN_MUST_CHECK tern_status tern_config_kinds(const tern_gguf *file, tern_config *c,
                                              tern_error *err);

/* Reads the file's factors, if the architecture has them: sets embedding_scale, block_scale,
 * logit_divisor, and norm_eps for a stream that is divided (read_factors.c). TERN_ERR_KEY_*. */
TERN_MUST_CHECK tern_status tern_config_factors(const tern_gguf *file, tern_config *c,
                                                tern_error *err);

/* Reads the numbers of experts, if the architecture has them (read_experts.c). TERN_ERR_KEY_*,
 * TERN_ERR_CONFIG. */
TERN_MUST_CHECK tern_status tern_config_experts(const tern_gguf *file, tern_config *c,
                                                tern_error *err);

/* Tables of angles that a pass makes: one for each kind of layers, and with a warming another one
 * for the queries of each kind. */
static inline uint32_t tern_config_angle_tables(const tern_config *c) {
    return c->warming > 0.0f ? 2 * c->n_kinds : c->n_kinds;
}

/* The table of the queries of a kind; keys have table `kind`. */
static inline uint32_t tern_config_query_angles(const tern_config *c, uint32_t kind) {
    return c->warming > 0.0f ? c->n_kinds + kind : kind;
}

/* The factor of cosine and sine in a table at a position. */
double tern_config_angle_gain(const tern_config *c, uint32_t table, uint32_t position);

/* Reads the numbers of delta nets, and which layers they are, if the architecture has them
 * (read_delta.c). TERN_ERR_KEY_*, TERN_ERR_CONFIG. */
TERN_MUST_CHECK tern_status tern_config_deltas(const tern_gguf *file, tern_config *c,
                                               tern_error *err);

/* The index of a layer's kind. */
uint32_t tern_config_kind_of(const tern_config *c, uint32_t layer);

static inline bool tern_config_has_window(const tern_config *c, uint32_t layer) {
    return c->kinds[tern_config_kind_of(c, layer)].window > 0;
}

/* The number of layers of a kind. */
uint32_t tern_config_layers_of(const tern_config *c, uint32_t kind);

/* True if the layer is a delta net, which has no keys and values. */
static inline bool tern_config_is_delta(const tern_config *c, uint32_t layer) {
    return tern_block_is_delta(c->arch, tern_config_kind_of(c, layer));
}

/* The number of layers that are delta nets. */
static inline uint32_t tern_config_delta_layers(const tern_config *c) {
    return tern_block_is_delta(c->arch, 1) ? tern_config_layers_of(c, 1) : 0;
}

/* Matrices of all layers together, and the layer and the index in the table of blocks of number
 * i. */
size_t tern_config_linears(const tern_config *c);
void tern_config_linear_at(const tern_config *c, size_t i, uint32_t *layer, size_t *at);

/* The largest window of the kinds of layers that the model has, in positions. 0: in all layers a
 * token sees all positions up to its own. */
uint32_t tern_config_window(const tern_config *c);

/* Switches to longrope's long factors and their context. TERN_ERR_CONTEXT: there are none. */
TERN_MUST_CHECK tern_status tern_config_take_long(const tern_gguf *file, tern_config *c,
                                                  tern_error *err);

/*
 * Makes the rotation frequencies of a kind of layers, *out [n_rot / 2] in radians per position, to
 * be freed. They are those of the base, divided by the factors of rope_freqs.weight,
 * rope_factors_short.weight or rope_factors_long.weight if the file has them, and stretched as the
 * kind says. TERN_ERR_NOMEM, TERN_ERR_TENSOR_SHAPE, TERN_ERR_TENSOR_DATA.
 */
TERN_MUST_CHECK tern_status tern_config_frequencies(const tern_gguf *file, const tern_config *c,
                                                    const tern_layer_kind *kind, double **out,
                                                    tern_error *err);

#endif
