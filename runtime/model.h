/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_RUNTIME_MODEL_H
#define TERN_RUNTIME_MODEL_H

/* What a tern_model is made of. Immutable after tern_model_open. */

#include "runtime/arch.h"
#include "runtime/arena.h"
#include "runtime/gguf.h"
#include "runtime/guard.h"
#include "runtime/weights.h"
#include "tern/tern.h"

typedef struct tern_layer {
    const float *attn_norm;     /* [n_embd] */
    const float *attn_sub_norm; /* [n_head * head_dim], or NULL */
    const float *ffn_norm;      /* [n_embd] */
    const float *ffn_sub_norm;  /* [n_ff], or NULL */
    tern_linear q;              /* n_embd -> n_head * head_dim */
    tern_linear k, v;           /* n_embd -> n_head_kv * head_dim */
    tern_linear o;              /* n_head * head_dim -> n_embd */
    tern_linear gate, up;       /* n_embd -> n_ff */
    tern_linear down;           /* n_ff -> n_embd */
} tern_layer;

/* Rows for everything that is not a matrix product, selected once. */
typedef struct tern_row_set {
    const tern_kernel_row *quantize_token, *quantize_block, *rmsnorm, *rope, *gate, *add;
    const tern_kernel_row *attend_f16, *attend_f32, *store_f16, *store_f32;
} tern_row_set;

struct tern_model {
    tern_gguf *file;
    tern_config config;
    tern_guard guard; /* features that rows may use, and what was found out about rows */
    tern_row_set rows;
    tern_arena weights; /* packed matrices and vectors */
    tern_layer *layers; /* [n_layer] */
    tern_embedding embedding;
    const float *output_norm;  /* [n_embd] */
    tern_linear head;          /* n_embd -> n_vocab */
    double *frequency;         /* [n_rot / 2], radians per position */
    tern_tokenizer *tokenizer; /* NULL: see tokenizer_error */
    tern_error tokenizer_error;
    char *name;      /* general.name or "" */
    bool runnable;   /* weights are loaded */
    uint64_t packed; /* bytes of the arena */
};

#endif
