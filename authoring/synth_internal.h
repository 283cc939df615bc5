/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_AUTHORING_SYNTH_INTERNAL_H
#define TERN_AUTHORING_SYNTH_INTERNAL_H

/* Shared by the files of tern_synth alone. */

#include <stdbool.h>
#include <stdint.h>

#include "authoring/gguf_writer.h"
#include "authoring/synth.h"
#include "tern/kernels.h"

/* ---- vocabulary ---------------------------------------------------------------------------- */

typedef enum tern_synth_tokens {
    TERN_SYNTH_LLAMA3, /* ordinary tokens, then <|begin_of_text|>, ...: bitnet-b1.58 */
    TERN_SYNTH_CHATML  /* <|endoftext|>, ..., then ordinary tokens: SmolLM2 */
} tern_synth_tokens;

/*
 * A byte-level BPE vocabulary: the 256 byte tokens, made-up words with the merges that build them,
 * and the special tokens of a family. Spans point into `text` or static storage.
 */
typedef struct tern_synth_vocab {
    size_t n_tokens, n_merges;
    tern_span *tokens; /* [n_tokens] index = id */
    int32_t *types;    /* [n_tokens] 1 normal, 3 control */
    tern_span *merges; /* [n_merges] "left right", in order of rank */
    char *text;
    size_t text_used;
} tern_synth_vocab;

/* n_special <= 256 for LLAMA3 and <= 17 for CHATML; n_tokens > 256 + n_special. */
tern_status tern_synth_vocab_new(tern_synth_tokens kind, size_t n_tokens, size_t n_special,
                                 tern_synth_vocab *out, tern_error *err);
void tern_synth_vocab_free(tern_synth_vocab *vocab);

/* ---- presets ----------------------------------------------------------------------------- */

/* The properties in which presets differ. */
typedef struct tern_synth_model {
    tern_synth_preset preset;
    const char
        *architecture; /* it alone decides which tensors a block has (runtime/files/arch/arch.h) */
    uint32_t n_layer, n_embd, n_ff, n_head, n_head_kv, head_dim, n_vocab, n_special, n_ctx;
    float rope_base;
    float score_gain; /* deviation of queries and keys; attention scores have its square */
    tern_format body, embedding;
    tern_format experts; /* if not that of the body; F32: it is */
    bool factors;        /* matrices have factors, but for the embedding and routers */
    bool normed;         /* has norms before each matrix */
    bool biases;         /* has the biases that are optional in the architecture */
    bool output_head;    /* has a separate head in the body's format, instead of tied embeddings */
    bool wide_head;      /* that head is in the embeddings' format */
    tern_synth_tokens tokens;
    const char *pre;
    uint32_t window, period; /* of windowed layers; period 0: all layers have windows */
    uint32_t n_keys, n_states, state_dim; /* of delta nets; `period` says which layers attend */
    uint32_t n_rot;                       /* rotated dimensions of a head; 0: all */
    uint32_t n_ff_shared;                 /* the width of the expert that all tokens take */
    uint32_t n_expert, n_used;            /* with experts n_ff is the width of each expert */
    uint32_t n_ctx_original;              /* longrope's shorter context; 0: no longrope */
    uint32_t hadamard;   /* block size of the transform before all matrices; 0: none */
    float yarn;          /* factor of the context; 0: no YaRN */
    uint32_t n_ctx_yarn; /* the context before */
    float warming;       /* of queries; 0: none. Then YaRN multiplies cosine and sine by 1 */
    float rope_gain;     /* longrope's factor for cosine and sine */
    float embedding_scale, block_scale, logit_divisor; /* for architectures that have them */
} tern_synth_model;

/* The model of a preset; TERN_ERR_NAME with a message that says how to list the presets. */
tern_status tern_synth_find_model(const char *preset, const tern_synth_model **out,
                                  tern_error *err);

/* Puts the keys of its Hadamard transform, if it has one; the architecture is known.
 * TERN_ERR_NOMEM. */
tern_status tern_synth_put_hadamard(tern_gguf_writer *w, const tern_synth_model *m,
                                    tern_error *err);

/* ---- random tensors ------------------------------------------------------------------------ */

enum {
    TERN_SYNTH_VALUES = 4 * 255 + 1, /* sums of four bytes: the steps of the bell curve */
    TERN_SYNTH_PIECE = 1 << 18       /* elements generated at a time; a multiple of every block */
};

/* The random stream of one tensor. */
typedef struct tern_synth_stream {
    uint64_t state[4];
    tern_format format;
    float sd;                           /* standard deviation of the weights */
    uint32_t values[TERN_SYNTH_VALUES]; /* float formats: bits of the value for each sum */
    uint8_t codes[81];                  /* I2_S, TQ2_0: the bytes that hold four ternary codes */
    bool varied;                        /* TQ: each block has its own scale */
} tern_synth_stream;

/* Initialises a stream of weights of mean 0 and deviation sd; streams of different index are
 * independent. */
void tern_synth_stream_weights(tern_synth_stream *s, tern_format format, float sd, uint64_t seed,
                               uint64_t index);

/* Initialises a stream of norm weights: F32, uniform in [0.875, 1.125). */
void tern_synth_stream_norm(tern_synth_stream *s, uint64_t seed, uint64_t index);

/*
 * Writes the next n elements (at most TERN_SYNTH_PIECE, a multiple of the block; all but the last
 * call a multiple of 128) as the file stores them; for I2_S only the codes. Returns the number of
 * bytes.
 */
size_t tern_synth_stream_fill(tern_synth_stream *s, uint8_t *out, size_t n);

/* The bytes after the codes of an I2_S tensor: the scale that gives sd, and 28 zeros. */
enum { TERN_SYNTH_TRAILER = 32 };
void tern_synth_stream_trailer(const tern_synth_stream *s, uint8_t *out);

#endif
