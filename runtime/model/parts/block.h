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
    tern_linear shared_router;          /* n_embd -> 1, the gate of the expert for all tokens */
    tern_linear shared_gate, shared_up; /* of that expert, n_embd -> n_ff_shared */
    tern_linear shared_down;            /* likewise, n_ff_shared -> n_embd */
    tern_linear mixed;                  /* of delta nets, n_embd -> channels: q, k and v */
    tern_linear z;                      /* n_embd -> inner: gates of what a delta net reads */
    tern_linear alpha, beta;            /* n_embd -> a number for each state of a delta net */
    tern_linear rates;                  /* both in one: n_embd -> 2 numbers for each state */
    const float *taps;                  /* [channels][n_taps] of a delta net's convolution */
    const float *rate, *rate_bias;      /* [states] */
    const float *delta_norm;            /* [state_dim] of what is read from each state */
    tern_linear delta_out;              /* inner -> n_embd */
} tern_layer;

/* The sizes of delta nets. A net has n_states states, each state_dim x state_dim; so many of them
 * in turn share one of n_keys heads of q and k. */
typedef struct tern_delta_sizes {
    uint32_t n_keys, n_states, state_dim;
    uint32_t n_taps; /* positions that the convolution sees, the own included */
    bool grouped;    /* states that share a head stand beside each other */
} tern_delta_sizes;

/* Elements of the values of all states. */
static inline size_t tern_delta_inner(const tern_delta_sizes *d) {
    return (size_t)d->n_states * d->state_dim;
}

/* The head of q and k that a state reads. */
static inline size_t tern_delta_key_of(const tern_delta_sizes *d, size_t state) {
    return d->grouped ? state / (d->n_states / d->n_keys) : state % d->n_keys;
}

/* Elements that the convolution sees at a position: q and k of all heads, v of all states. */
static inline size_t tern_delta_channels(const tern_delta_sizes *d) {
    return 2 * (size_t)d->n_keys * d->state_dim + tern_delta_inner(d);
}

/* The numbers of a model that give its tensors their shapes. */
typedef struct tern_block_sizes {
    uint32_t n_embd, n_ff, n_head, n_head_kv, head_dim, n_expert, n_ff_shared;
    bool query_gates;       /* beside the queries of a head there are as many gates */
    tern_delta_sizes delta; /* zeros: there are no delta nets */
} tern_block_sizes;

/* The length of a side of a tensor, by these numbers. */
typedef enum tern_block_size {
    TERN_SIZE_ONE,     /* rows of a vector */
    TERN_SIZE_EMBD,    /* n_embd */
    TERN_SIZE_FF,      /* n_ff */
    TERN_SIZE_Q,       /* n_head * head_dim */
    TERN_SIZE_KV,      /* n_head_kv * head_dim */
    TERN_SIZE_HEAD,    /* head_dim */
    TERN_SIZE_HEADS,   /* n_head */
    TERN_SIZE_EXPERTS, /* n_expert */
    TERN_SIZE_SHARED,  /* n_ff_shared */
    TERN_SIZE_QUERIES, /* n_head * head_dim, twice if there are gates beside queries */
    TERN_SIZE_CHANNELS,
    TERN_SIZE_INNER,
    TERN_SIZE_STATES,
    TERN_SIZE_RATES, /* twice as many */
    TERN_SIZE_STATE,
    TERN_SIZE_TAPS /* of
delta nets */
} tern_block_size;

/* Which layers have a tensor, where there are delta nets beside attention. */
typedef enum tern_block_where {
    TERN_IN_ALL,
    TERN_IN_ATTENTION, /* those that attend */
    TERN_IN_DELTA      /* delta nets */
} tern_block_where;

typedef enum tern_block_kind {
    TERN_BLOCK_NORM,   /* a vector of gains, const float * in tern_layer */
    TERN_BLOCK_SINKS,  /* likewise, a vector of logits */
    TERN_BLOCK_TAPS,   /* likewise, `rows` such vectors one after the other */
    TERN_BLOCK_RATES,  /* likewise, numbers below 0 */
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
    tern_block_where where;  /* layers that have it */
    unsigned when;           /* bit of tern_arch.has for blocks that have it; 0: every block does */
    tern_stage stage;        /* of a pass that multiplies by the matrix */
    bool gates;              /* blocks without a gate lack it */
    bool dense;              /* blocks with experts lack it */
    bool routed;             /* as many matrices, or biases, as there are experts, one after the
                                other */
    bool turned;             /* its rows, or elements, are heads that RoPE turns */
    size_t at;               /* its offset in tern_layer, of a member by its kind */
} tern_block_tensor;

enum { TERN_LAYER_LINEARS = 21 }; /* matrices of the table */

/* The table, in the order in which files are written, and its length. Static storage. */
const tern_block_tensor *tern_block_tensors(size_t *n);

/* True if layers of that kind are delta nets. */
static inline bool tern_block_is_delta(const tern_arch *arch, uint32_t kind) {
    return kind > 0 && arch->second != NULL && arch->second->delta;
}

/* True if some blocks of that architecture have the tensor; a bias may still be missing. */
static inline bool tern_block_has(const tern_arch *arch, const tern_block_tensor *t) {
    return (t->where != TERN_IN_DELTA || tern_block_is_delta(arch, 1)) &&
           (t->when == 0 || (arch->has & t->when) != 0) && !(t->gates && arch->ungated) &&
           !(t->dense && (arch->has & TERN_HAS_EXPERTS) != 0);
}

/* True if layers of that kind have it. */
static inline bool tern_block_has_in(const tern_arch *arch, uint32_t kind,
                                     const tern_block_tensor *t) {
    const tern_block_where other =
        tern_block_is_delta(arch, kind) ? TERN_IN_ATTENTION : TERN_IN_DELTA;
    return tern_block_has(arch, t) && t->where != other;
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

/* How many matrices layers of a kind have, and the index in the table of number i. */
size_t tern_block_linears(const tern_arch *arch, uint32_t kind);
size_t tern_block_linear_at(const tern_arch *arch, uint32_t kind, size_t i);

/* Linear map i < TERN_LAYER_LINEARS of a layer, in the order of the table. */
const tern_linear *tern_layer_linear(const tern_layer *layer, size_t i);

#endif
