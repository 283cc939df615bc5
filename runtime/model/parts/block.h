/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_RUNTIME_MODEL_PARTS_BLOCK_H
#define TERN_RUNTIME_MODEL_PARTS_BLOCK_H

/*
 * The parts of a block: one table of its tensors. Loading, replicas, byte counts, the search for
 * tensors that nothing reads, synthetic models and the converter loop over it. The forward pass
 * reads the members of tern_layer by name.
 */

#include "runtime/files/arch/arch.h"
#include "runtime/model/parts/linear.h"

typedef struct tern_layer {
    uint32_t kind;                              /* index of its tern_layer_kind */
    const float *attn_norm;                     /* [n_embd], or NULL */
    const float *q_in, *k_in, *v_in;            /* [n_embd] of each matrix's own input, or NULL */
    const float *gate_in, *up_in;               /* likewise */
    const float *o_in, *down_in;                /* as wide as what these read, or NULL */
    const float *attn_sub_norm;                 /* [n_head * head_dim], or NULL */
    const float *attn_post_norm;                /* [n_embd], or NULL */
    const float *ffn_norm;                      /* [n_embd], or NULL */
    const float *ffn_sub_norm;                  /* [n_ff], or NULL */
    const float *ffn_post_norm;                 /* [n_embd], or NULL */
    const float *attn_sum_norm, *attn_sum_bias; /* [n_embd] of LayerNorm, or NULL */
    const float *ffn_sum_norm, *ffn_sum_bias;   /* likewise */
    tern_linear q;                              /* n_embd -> n_head * head_dim */
    const float *q_norm, *k_norm;               /* of each head [head_dim], or NULL */
    const float *q_wide, *k_wide;               /* of all heads: as long as q and k, or NULL */
    tern_linear k, v;                           /* n_embd -> n_head_kv * head_dim */
    const float *sinks;                         /* logits of heads [n_head], or NULL */
    tern_linear o;                              /* n_head * head_dim -> n_embd */
    tern_linear gate, up; /* n_embd -> n_ff; a block without a gate has no gate.tensor */
    tern_linear down;     /* n_ff -> n_embd */
    tern_linear router;   /* n_embd -> n_expert; with experts, in place of the three above */
    tern_linear expert_gate, expert_up; /* of each expert, n_embd -> n_ff */
    tern_linear expert_down;            /* likewise, n_ff -> n_embd */
} tern_layer;

/* The numbers of a model that give its tensors their shapes. */
typedef struct tern_block_sizes {
    uint32_t n_embd, n_ff, n_head, n_head_kv, head_dim, n_expert;
} tern_block_sizes;

/* The length of a side of a tensor, by these numbers. */
typedef enum tern_block_size {
    TERN_SIZE_ONE,    /* rows of a vector */
    TERN_SIZE_EMBD,   /* n_embd */
    TERN_SIZE_FF,     /* n_ff */
    TERN_SIZE_Q,      /* n_head * head_dim */
    TERN_SIZE_KV,     /* n_head_kv * head_dim */
    TERN_SIZE_HEAD,   /* head_dim */
    TERN_SIZE_HEADS,  /* n_head */
    TERN_SIZE_EXPERTS /* n_expert */
} tern_block_size;

typedef enum tern_block_kind {
    TERN_BLOCK_NORM,   /* a vector of gains, const float * in tern_layer */
    TERN_BLOCK_SINKS,  /* likewise, a vector of logits */
    TERN_BLOCK_MATRIX, /* a tern_linear */
    TERN_BLOCK_BIAS    /* a vector that files may leave out, the bias of a tern_linear */
} tern_block_kind;

typedef struct tern_block_tensor {
    const char *name; /* in GGUF files, after "blk.<n>." */
    const char *hf;   /* in Hugging Face folders, after "model.layers.<n>."; NULL: none known, see
                         tern_block_hf_name */
    const char *hf_older;    /* an older name there; NULL: none */
    const char *hf_encoder;  /* of encoders, after "encoder.layer.<n>."; NULL: the same */
    tern_block_kind kind;    /* a norm, a matrix or a bias */
    tern_block_size rows;    /* results; ONE for vectors */
    tern_block_size columns; /* elements of a row, or of the vector */
    unsigned when;           /* bit of tern_arch.has for blocks that have it; 0: every block does */
    tern_stage stage;        /* of a pass that multiplies by the matrix */
    bool gates;              /* blocks without a gate lack it */
    bool dense;              /* blocks with experts lack it */
    bool routed;             /* as many matrices, or biases, as there are experts, one after the
                                other */
    bool turned;             /* its rows, or elements, are heads that RoPE turns */
    size_t at;               /* its offset in tern_layer, of a member by its kind */
} tern_block_tensor;

enum { TERN_LAYER_LINEARS = 11 }; /* matrices of the table */

/* The table, in the order in which files are written, and its length. Static storage. */
const tern_block_tensor *tern_block_tensors(size_t *n);

/* True if blocks of that architecture have the tensor; a bias may still be missing. */
static inline bool tern_block_has(const tern_arch *arch, const tern_block_tensor *t) {
    return (t->when == 0 || (arch->has & t->when) != 0) && !(t->gates && arch->ungated) &&
           !(t->dense && (arch->has & TERN_HAS_EXPERTS) != 0);
}

/*
 * The tensor's name in Hugging Face folders of an architecture; encoders have names of their own.
 * The norm before the feed-forward part is named after attention there, unless a norm of
 * attention's result has that name.
 */
const char *tern_block_hf_name(const tern_arch *arch, const tern_block_tensor *t);

size_t tern_block_length(const tern_block_sizes *sizes, tern_block_size side);

/* The member of a layer for a matrix of the table, and for a norm or bias. */
tern_linear *tern_layer_matrix(tern_layer *layer, const tern_block_tensor *t);
const float **tern_layer_vector(tern_layer *layer, const tern_block_tensor *t);

/* Matrix i < TERN_LAYER_LINEARS of the table. */
const tern_block_tensor *tern_block_matrix(size_t i);

/* How many matrices blocks of an architecture have, and the index in the table of number i. */
size_t tern_block_linears(const tern_arch *arch);
size_t tern_block_linear_at(const tern_arch *arch, size_t i);

/* Linear map i < TERN_LAYER_LINEARS of a layer, in the order of the table. */
const tern_linear *tern_layer_linear(const tern_layer *layer, size_t i);

#endif
