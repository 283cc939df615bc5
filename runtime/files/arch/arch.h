/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_RUNTIME_FILES_ARCH_ARCH_H
#define TERN_RUNTIME_FILES_ARCH_ARCH_H

/*
 * Architectures as data: everything that distinguishes one transformer from another. No code
 * branches on a name; it reads a field of this table. docs/adding-an-architecture.md adds one.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tern/kernels.h"
#include "tern/span.h"

/* Tensors that not every block has: bits of tern_arch.has (runtime/model/parts/block.c lists them).
 */
typedef enum tern_block_option {
    TERN_HAS_QKV_BIAS = 1 << 0,       /* q, k and v may have biases */
    TERN_HAS_QK_NORMS = 1 << 1,       /* norm of every head of q and k, before it is turned */
    TERN_HAS_ATTN_SUB_NORM = 1 << 2,  /* norm of the attended heads, before the output projection */
    TERN_HAS_FFN_SUB_NORM = 1 << 3,   /* norm of the gated activation, before the down projection */
    TERN_HAS_ATTN_POST_NORM = 1 << 4, /* norm of attention's result, before it is added */
    TERN_HAS_FFN_POST_NORM = 1 << 5,  /* norm of the feed-forward part's, before it is added */
    TERN_HAS_ATTN_NORM = 1 << 6,      /* norm before attention */
    TERN_HAS_FFN_NORM = 1 << 7,       /* norm before the feed-forward part */
    TERN_HAS_SUM_NORMS = 1 << 9,      /* LayerNorm of the stream after each half was added */
    TERN_HAS_OTHER_BIASES = 1 << 10,  /* the other matrices may have biases, too */
    TERN_HAS_WIDE_QK_NORMS = 1 << 8,  /* norm of all heads of q, and of k, as one vector */
    TERN_HAS_EXPERTS = 1 << 11,       /* the feed-forward part is some of many, by token */
    TERN_HAS_INPUT_NORMS = 1 << 12,   /* one more norm before each matrix, of what it reads */
    TERN_HAS_PRE_NORMS = TERN_HAS_ATTN_NORM | TERN_HAS_FFN_NORM,
    TERN_HAS_SUB_NORMS = TERN_HAS_ATTN_SUB_NORM | TERN_HAS_FFN_SUB_NORM,
    TERN_HAS_POST_NORMS = TERN_HAS_ATTN_POST_NORM | TERN_HAS_FFN_POST_NORM
} tern_block_option;

/* Of the experts of an architecture that has them, unless files say it. */
typedef struct tern_arch_experts {
    bool norm; /* weights of the chosen ones are divided by their sum */
    float
        clamp; /* gates above it, and what they multiply beyond it, are cut to it; 0: nothing is */
} tern_arch_experts;

/* What stands in for keys that files of an architecture may lack. */
typedef struct tern_arch_defaults {
    const char *of; /* the model whose numbers they are, for messages */
    uint32_t n_layer, n_embd, n_ff, n_head, n_head_kv, n_ctx;
    float norm_eps, rope_base;
} tern_arch_defaults;

/* How YaRN stretches angles for contexts longer than the model was trained for first. */
typedef struct tern_rope_yarn {
    float factor;               /* by which the context grew, at least 1; 0: no YaRN */
    float original;             /* positions before that */
    float beta_fast, beta_slow; /* pairs that turn more often than fast in them keep their angles;
                                   those that turn less often than slow are interpolated */
    float mix;                  /* 1: between these by how often; 0: all are interpolated */
} tern_rope_yarn;

/* What layers of one kind share. */
typedef struct tern_layer_kind {
    uint32_t window;  /* positions that a token attends to, its own included; 0: all up to it */
    float rope_base;  /* the first pair of a head turns by 1 radian a position, the last hardly */
    float rope_scale; /* multiplies angles: 1 / factor of linear scaling */
    double rope_gain; /* multiplies their cosine and sine; 1 without YaRN's attention factor */
    tern_rope_yarn yarn;
} tern_layer_kind;

/*
 * Layers of a second kind. Layers period - 1, 2 * period - 1 ... (counted from 0) are of the first
 * kind, which keys of the file describe; all others are of this one. period >= 1.
 */
typedef struct tern_arch_second_kind {
    uint32_t period;   /* unless the file has one, where it is windowed */
    bool windowed;     /* the file says the window, and may say the base */
    bool alone_turned; /* keys of the file describe how this kind turns; the first turns nothing */
    tern_layer_kind kind; /* without what the file says; not where it is alone turned */
} tern_arch_second_kind;

typedef struct tern_arch {
    const char *name;      /* general.architecture */
    const char *hf_class;  /* "architectures" of a Hugging Face config.json; NULL: not converted */
    const char *hf_other;  /* a second class, the same graph with windows, or of encoders with
                              positions that begin after those of padding; NULL: none */
    bool gemma_folders;    /* of norms those folders have what is above 1, of the head nothing where
                              it is the embedding, and a number whose root divides scores */
    tern_op gate;          /* of the feed-forward part: TERN_OP_GATE_..., unless the file has one */
    tern_op rope;          /* TERN_OP_ROPE_NORM or TERN_OP_ROPE_NEOX */
    unsigned has;          /* bits of tern_block_option */
    bool embedding_head;   /* the head is token_embd even if the file has output.weight */
    bool scaled_embedding; /* rows of the embedding are multiplied by sqrt(n_embd) */
    bool own_factors; /* files say by what rows of the embedding and what blocks add are multiplied,
                         and by what logits are divided */
    bool may_window;  /* files may say a window, which all layers see */
    bool joined;      /* q, k and v may lie in one matrix, attn_qkv, gate and up in ffn_up */
    uint32_t width_scaled; /* models of so many layers scale scores by 1 / sqrt(n_embd / n_head),
                              not by 1 / sqrt(head_dim); 0: none */
    bool ungated;          /* the feed-forward part is down(act(up(x))) */
    bool
        encodes;      /* tokens see all others, before and after; positions and kinds of tokens are
                         learned rows, added to the embedding and normed with it; nothing is turned, no
                         norm ends the stack, no head follows: texts become vectors, none is continued */
    bool ternary;     /* trained with ternary weights, which decides what is ambiguous */
    bool bitnet_text; /* a vocabulary of 128256 tokens that names no pre-tokenizer is Llama 3's, and
                         with <|eot_id|> and no template chats have the form of BitNet 2B4T */
    const tern_arch_defaults *defaults;  /* NULL: every key must be there */
    tern_arch_experts experts;           /* with TERN_HAS_EXPERTS */
    const tern_arch_second_kind *second; /* NULL: all layers are of the first kind */
    bool may_lack_second; /* where files say no window, all layers are of the first kind, too */
    const struct tern_arch *normed; /* the same with norms before each matrix, where files have
                                       them; NULL: none do */
} tern_arch;

/* All of them, and how many. Static storage. */
const tern_arch *tern_archs(size_t *n);

/* The architecture of that name, or NULL. Static storage. */
const tern_arch *tern_arch_find(tern_span name);

/*
 * What graphs of an architecture need that tern does not do, "experts", for messages; NULL: it is
 * not known. Static storage.
 */
const char *tern_arch_missing(tern_span name);

/* Writes "llama, qwen2, ...", for messages, cut off where `size` bytes end; returns `out`. */
const char *tern_arch_names(char *out, size_t size);

#endif
