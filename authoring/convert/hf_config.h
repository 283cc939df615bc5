/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_AUTHORING_CONVERT_HF_CONFIG_H
#define TERN_AUTHORING_CONVERT_HF_CONFIG_H

/* The config.json of a Hugging Face model, checked, in the terms of GGUF. */

#include <stdbool.h>
#include <stdint.h>

#include "authoring/convert/hf_quantization.h"
#include "runtime/files/arch/arch.h"
#include "runtime/model/config/rope_scaling.h"
#include "runtime/model/parts/block.h"
#include "tern/embed.h"
#include "tern/status.h"

/* Kinds of weights in the matrices of the blocks, beyond the tensors' own types. */
typedef enum hf_weights {
    HF_WEIGHTS_PLAIN,
    HF_WEIGHTS_MASTER, /* floats that the model rounds to ternary values when it runs */
    HF_WEIGHTS_TERNARY /* two-bit codes in uint8, with a weight_scale tensor */
} hf_weights;

typedef enum hf_scale {
    HF_SCALE_UNSAID,
    HF_SCALE_MULTIPLIES, /* weight = code * weight_scale */
    HF_SCALE_DIVIDES     /* weight = code / weight_scale */
} hf_scale;

typedef struct hf_config {
    const tern_arch *arch; /* static storage */
    bool tied;             /* the embedding is the output head, unless the folder has another */
    uint32_t n_layer, n_embd, n_ff, n_head, n_head_kv, head_dim, n_vocab, n_ctx;
    float norm_eps, rope_base;
    float embedding_scale, block_scale,
        logit_divisor;     /* of architectures that have them; with logit_times it is a factor */
    float attention_scale; /* of scores; 0: the default */
    bool other_class;      /* the class is the architecture's second */
    bool windowed;         /* the class has windows */
    float attention_cap, logit_cap; /* of architectures that have such bounds; 0: none */
    uint32_t n_ff_shared;      /* the width of the expert that all tokens take; 0: there is none */
    uint32_t n_expert, n_used; /* experts of width n_ff, and how many a token uses; 0: none */
    bool expert_norm;          /* weights of the chosen experts are divided by their sum */
    uint32_t window;           /* of all layers, or of the second kind; 0: none */
    uint32_t period;   /* layers period - 1, 2 * period - 1 ... see all; 0: all layers are alike */
    float window_base; /* of the rope of the second kind; 0: that of the first */
    tern_delta_sizes delta; /* of layers of the second kind that are delta nets; zeros: none are */
    uint32_t n_rot;         /* leading dimensions of a head that turn */
    float warming, yarn_less;         /* of tern_config */
    float rope_linear;                /* factor of linear scaling; 1: none */
    tern_rope_llama3 llama3;          /* factor 0: none */
    tern_rope_yarn yarn;              /* factor 0: none */
    uint32_t n_types, first_position; /* of encoders: kinds of tokens, and the row of position 0 */
    bool ranks;                       /* an encoder with a head that scores pairs of texts */
    tern_pooling pooling;             /* as the folder says; NONE: it does not say */
    hf_weights weights;
    bool fp4; /* matrices may be in NVFP4; the tensors say which */
    hf_scale scale;
    hf_kept kept;      /* matrices that are not ternary where others are */
    char unknown[400]; /* keys that tern does not know, separated by commas; "": none */
} hf_config;

/*
 * Reads FOLDER/config.json and the pooling files beside it (hf_pooling.h). Settings that a GGUF
 * file of these architectures cannot express are refused, not dropped. TERN_ERR_IO, TERN_ERR_JSON,
 * TERN_ERR_ARCH, TERN_ERR_KEY_MISSING, TERN_ERR_KEY_RANGE, TERN_ERR_CONFIG.
 */
TERN_MUST_CHECK tern_status hf_config_read(const char *folder, hf_config *out, tern_error *err);

#endif
