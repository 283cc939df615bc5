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
    TERN_HAS_FFN_POST_NORM = 1 << 5,  /* norm of the feed-forward result, before it is added */
    TERN_HAS_ATTN_NORM = 1 << 6,      /* norm before attention */
    TERN_HAS_FFN_NORM = 1 << 7,       /* norm before the feed-forward part */
    TERN_HAS_SUM_NORMS = 1 << 9,      /* LayerNorm of the stream after each half was added */
    TERN_HAS_OTHER_BIASES = 1 << 10,  /* the other matrices may have biases, too */
    TERN_HAS_WIDE_QK_NORMS = 1 << 8,  /* norm of all heads of q, and of k, as one vector */
    TERN_HAS_EXPERTS = 1 << 11,       /* the feed-forward part is a few of many experts, chosen by
                                         token */
    TERN_HAS_INPUT_NORMS = 1 << 12,   /* one more norm of the input of each matrix */
    TERN_HAS_SINKS = 1 << 13,         /* a logit of each head beside the scores of attention */
    TERN_HAS_EXPERT_BIASES = 1 << 14, /* the router and the experts may have biases */
    TERN_HAS_LATE_FFN_NORM = 1 << 15, /* norm before the feed-forward part, which files name after
                                         attention */
    TERN_HAS_TURNED_QK_NORMS = 1 << 16, /* norm of every head of q and k, after it is turned */
    TERN_HAS_QUERY_GATES = 1 << 17,   /* attn_q has a gate for each head beside the head's query */
    TERN_HAS_SHARED_EXPERT = 1 << 18, /* beside the experts one that every token takes, by as much
                                         as a gate says */
    TERN_HAS_OWN_RATES = 1 << 19,     /* delta nets have a matrix for decays and one for changes */
    TERN_HAS_JOINED_RATES = 1 << 20,  /* they have one for both */
    TERN_HAS_PRE_NORMS = TERN_HAS_ATTN_NORM | TERN_HAS_FFN_NORM,
    TERN_HAS_SUB_NORMS = TERN_HAS_ATTN_SUB_NORM | TERN_HAS_FFN_SUB_NORM,
    TERN_HAS_POST_NORMS = TERN_HAS_ATTN_POST_NORM | TERN_HAS_FFN_POST_NORM
} tern_block_option;

/* Matrices that files of an architecture may hold as one: bits of tern_arch.joined. */
typedef enum tern_joins {
    TERN_JOINS_QKV = 1 << 0,    /* q, k and v, as attn_qkv */
    TERN_JOINS_GATE_UP = 1 << 1 /* gate and up, as ffn_up */
} tern_joins;

/* Defaults for the experts of an architecture that has them; files may say otherwise. */
typedef struct tern_arch_experts {
    bool norm;   /* weights of the chosen ones are divided by their sum */
    float clamp; /* gates are cut above it, their factors beyond it on both sides; 0: none */
} tern_arch_experts;

/* Values for keys that files of an architecture may lack. */
typedef struct tern_arch_defaults {
    const char *of; /* the model whose numbers they are, for messages */
    uint32_t n_layer, n_embd, n_ff, n_head, n_head_kv, n_ctx;
    float norm_eps, rope_base;
} tern_arch_defaults;

/* YaRN stretches the angles for contexts longer than the model was first trained for. */
typedef struct tern_rope_yarn {
    float factor;               /* by how much the context grew, at least 1; 0: no YaRN */
    float original;             /* positions before it grew */
    float beta_fast, beta_slow; /* pairs that turn more often than fast in `original` positions keep
                                   their angles; those that turn less often than slow are
                                   interpolated */
    float mix;                  /* 1: pairs between these are mixed by how often they turn; 0: all
                                   are interpolated */
    bool between;               /* the mixing begins and ends between pairs, not at the next one */
} tern_rope_yarn;

/* Settings that layers of one kind share. */
typedef struct tern_layer_kind {
    uint32_t window;  /* positions that a token attends to, its own included; 0: all up to it */
    float rope_base;  /* the first pair of a head turns by 1 radian a position, the last hardly */
    float rope_scale; /* multiplies angles: 1 / factor of linear scaling */
    double rope_gain; /* multiplies their cosine and sine; 1 without YaRN's attention factor */
    tern_rope_yarn yarn;
} tern_layer_kind;

/*
 * A second kind of layers. Layers period - 1, 2 * period - 1 ... (counted from 0) are of the first
 * kind, which keys of the file describe; all others are of this one. period >= 1.
 */
typedef struct tern_arch_second_kind {
    uint32_t period;      /* if it is windowed, a file may say another */
    bool windowed;        /* the file says the window, and may say the base */
    bool alone_turned;    /* only this kind turns, as keys of the file say; the first kind turns
                             nothing */
    bool alike;           /* but for the window this kind is as the first one */
    bool delta;           /* layers of this kind are gated delta nets, which attend to nothing and
                             keep a state instead of keys and values */
    bool grouped;         /* the states that share a head of q and k stand beside each other, not
                             every so many of them */
    tern_layer_kind kind; /* defaults for what the file does not say; unused if alone_turned or
                             alike */
} tern_arch_second_kind;

typedef struct tern_arch {
    const char *name;     /* general.architecture */
    const char *hf_class; /* "architectures" of a Hugging Face config.json; NULL: not converted */
    const char *hf_other; /* a second class: the same graph with windows, or encoders whose
                             positions begin after those of padding; NULL: none */
    bool gemma_folders;   /* those folders hold norms minus 1, no head if it is the embedding, and
                             a number whose root divides scores */
    bool stacked_folders; /* those folders hold the experts of a layer in one tensor, gates and the
                             values that they multiply in turns; the weights of the chosen are
                             always normed, and MXFP4 may be their type */
    bool neighbour_folders; /* heads of those folders lie as in files that pair neighbours */
    bool folders_alpha;     /* those folders may say a factor of the base, alpha */
    bool sandwich_folders;  /* those folders name the norm before the feed-forward part after
                               attention, though there are norms of results, too */
    float folders_turn;    /* the part of a head that those folders turn unless they say it; 0: all,
                              and they may say no other */
    tern_op gate;          /* gate of the feed-forward part: TERN_OP_GATE_..., unless the file says
                              another */
    tern_op rope;          /* TERN_OP_ROPE_NORM or TERN_OP_ROPE_NEOX */
    unsigned has;          /* bits of tern_block_option */
    bool embedding_head;   /* the head is token_embd even if the file has output.weight */
    bool scaled_embedding; /* rows of the embedding are multiplied by sqrt(n_embd) */
    bool own_factors; /* files have factors for rows of the embedding and for what blocks add, and a
                         divisor for logits */
    bool logit_times; /* files have a factor of logits */
    bool soft_capped; /* files have bounds that scores of attention and logits approach softly */
    bool layer_norms; /* norms are LayerNorms without biases */
    bool parallel;    /* attention and the feed-forward part read the same normed rows; both results
                         are added */
    bool may_window;  /* files may say a window for all layers */
    bool yarn_between; /* of tern_rope_yarn */
    bool warmed;     /* files may say that scores grow with the position of the query, and that YaRN
                        does     not multiply cosine and sine */
    unsigned joined; /* bits of tern_joins */
    uint32_t width_scaled; /* models with so many layers scale scores by 1 / sqrt(n_embd / n_head),
                              not by 1 / sqrt(head_dim); 0: none */
    bool ungated;          /* the feed-forward part is down(act(up(x))) */
    bool encodes;          /* tokens see all others, before and after. Positions and token types are
                              learned rows, added to the embedding and normed with it. Nothing is
                              turned, no norm ends the stack, no head follows. Texts become vectors
                              and are not continued */
    bool ternary;          /* trained with ternary weights; decides what is ambiguous */
    bool bitnet_text; /* a vocabulary of 128256 tokens that names no pre-tokenizer is Llama 3's;
                         with <|eot_id|> and no template, chats have the form of BitNet 2B4T */
    const tern_arch_defaults *defaults;  /* NULL: every key must be there */
    tern_arch_experts experts;           /* used with TERN_HAS_EXPERTS */
    const tern_arch_second_kind *second; /* NULL: all layers are of the first kind */
    bool may_lack_second; /* if a file says no window, all layers are of the first kind, too */
    const struct tern_arch *normed; /* a variant with norms before each matrix, for files that have
                                       them; NULL: none do */
} tern_arch;

/* All of them, and how many. Static storage. */
const tern_arch *tern_archs(size_t *n);

/* The architecture of that name, or NULL. Static storage. */
const tern_arch *tern_arch_find(tern_span name);

/*
 * Names what an architecture needs and tern does not do, such as "experts", for messages; NULL: the
 * architecture is not known. Static storage.
 */
const char *tern_arch_missing(tern_span name);

/* Writes "llama, qwen2, ...", for messages, cut off where `size` bytes end; returns `out`. All
 * names have room in TERN_ARCH_NAMES_BYTES. */
enum { TERN_ARCH_NAMES_BYTES = 384 };
const char *tern_arch_names(char *out, size_t size);

#endif
