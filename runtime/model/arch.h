/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_RUNTIME_MODEL_ARCH_H
#define TERN_RUNTIME_MODEL_ARCH_H

/*
 * Architectures as data: what distinguishes one transformer block from another, and the numbers of
 * one model. The forward pass reads these and knows no names.
 */

#include <stdbool.h>
#include <stdint.h>

#include "runtime/gguf/gguf.h"
#include "tern/kernels.h"

typedef struct tern_arch {
    const char *name;    /* general.architecture */
    tern_op gate;        /* TERN_OP_GATE_SILU or TERN_OP_GATE_RELU2 */
    tern_op rope;        /* TERN_OP_ROPE_NORM or TERN_OP_ROPE_NEOX */
    bool sub_norms;      /* RMSNorm after attention and after the gated activation */
    bool embedding_head; /* the head is token_embd even if the file has output.weight */
    bool qkv_bias;       /* q, k, v may have biases */
    bool qk_norms;       /* RMSNorm of every head of q and k, before they are turned */
} tern_arch;

/* The architecture of that name, or NULL. Static storage. */
const tern_arch *tern_arch_find(tern_span name);

/* "llama, bitnet-b1.58, ...", for messages. */
const char *tern_arch_names(void);

/* Numbers of one model, checked against each other. */
typedef struct tern_config {
    const tern_arch *arch;
    uint32_t n_layer;
    uint32_t n_embd;
    uint32_t n_ff;
    uint32_t n_head;
    uint32_t n_head_kv;
    uint32_t head_dim;
    uint32_t n_rot; /* leading dimensions of a head that RoPE turns; even */
    uint32_t n_vocab;
    uint32_t n_ctx; /* trained for */
    float norm_eps;
    float rope_base;
    float rope_scale;      /* multiplies angles: 1 / factor of linear scaling */
    float attention_scale; /* multiplies q . k: 1 / sqrt(head_dim) unless the file has its own */
} tern_config;

/*
 * Reads and checks the configuration. The vocabulary size is that of token_embd.weight. Missing
 * keys of BitNet files take the values of BitNet b1.58 2B4T. Errors: TERN_ERR_ARCH, TERN_ERR_KEY_*,
 * TERN_ERR_CONFIG, TERN_ERR_TENSOR_MISSING, TERN_ERR_TENSOR_SHAPE.
 */
TERN_MUST_CHECK tern_status tern_config_read(const tern_gguf *file, tern_config *out,
                                             tern_error *err);

/*
 * The rotation frequencies of a configuration, *out [n_rot / 2] radians per position, to be freed:
 * those of the bases, divided by the factors of rope_freqs.weight where the file has them.
 * TERN_ERR_NOMEM, TERN_ERR_TENSOR_SHAPE, TERN_ERR_TENSOR_DATA.
 */
TERN_MUST_CHECK tern_status tern_config_frequencies(const tern_gguf *file, const tern_config *c,
                                                    double **out, tern_error *err);

#endif
