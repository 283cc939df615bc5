/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_AUTHORING_CONVERT_HF_CONFIG_H
#define TERN_AUTHORING_CONVERT_HF_CONFIG_H

/* What the config.json of a Hugging Face model says, checked, in the terms of GGUF. */

#include <stdbool.h>
#include <stdint.h>

#include "runtime/files/arch/arch.h"
#include "runtime/model/config/rope_scaling.h"
#include "tern/embed.h"
#include "tern/status.h"

/* What the matrices of the blocks are, besides what their own type says. */
typedef enum hf_weights {
    HF_WEIGHTS_PLAIN,
    HF_WEIGHTS_MASTER, /* floats that the model makes ternary when it runs */
    HF_WEIGHTS_TERNARY /* two bits in uint8, a weight_scale beside them */
} hf_weights;

typedef enum hf_scale {
    HF_SCALE_UNSAID,
    HF_SCALE_MULTIPLIES, /* weight = code * weight_scale */
    HF_SCALE_DIVIDES     /* weight = code / weight_scale */
} hf_scale;

typedef struct hf_config {
    const tern_arch *arch; /* static storage */
    bool tied;             /* the embedding is the output head */
    bool must_tie;         /* because the architecture knows no other; the folder does not say so */
    uint32_t n_layer, n_embd, n_ff, n_head, n_head_kv, head_dim, n_vocab, n_ctx;
    float norm_eps, rope_base;
    float embedding_scale, block_scale, logit_divisor; /* of architectures with such factors */
    float attention_scale;                             /* of scores; 0: the usual one */
    bool other_class;                                  /* it is the architecture's second one */
    bool windowed;                                     /* the class has windows */
    uint32_t n_expert, n_used; /* of width n_ff, and how many a token takes; 0: none */
    bool expert_norm;          /* weights of those that it takes are divided by their sum */
    uint32_t window;           /* that all layers see, or those of the second kind; 0: none */
    uint32_t period;   /* layers period - 1, 2 * period - 1 ... see all; 0: there is one kind */
    float window_base; /* of the rope of the second kind */
    float rope_linear; /* factor of linear scaling; 1: none */
    tern_rope_llama3 llama3;          /* factor 0: none */
    tern_rope_yarn yarn;              /* factor 0: none */
    uint32_t n_types, first_position; /* of encoders: kinds of tokens, the row of position 0 */
    tern_pooling pooling;             /* that the folder says; NONE: it does not */
    hf_weights weights;
    hf_scale scale;
    char unknown[400]; /* keys that tern has not heard of, with commas; "": none */
} hf_config;

/*
 * Reads FOLDER/config.json, and beside it how vectors are made of hidden states (hf_pooling.h).
 * What a GGUF file of these architectures cannot say is refused rather than left out. TERN_ERR_IO,
 * TERN_ERR_JSON, TERN_ERR_ARCH, TERN_ERR_KEY_MISSING, TERN_ERR_KEY_RANGE, TERN_ERR_CONFIG.
 */
TERN_MUST_CHECK tern_status hf_config_read(const char *folder, hf_config *out, tern_error *err);

#endif
