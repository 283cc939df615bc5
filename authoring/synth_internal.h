/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_AUTHORING_SYNTH_INTERNAL_H
#define TERN_AUTHORING_SYNTH_INTERNAL_H

/* What the files of tern_synth share. Nothing here is for other files. */

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

/* What differs between presets. */
typedef struct tern_synth_model {
    tern_synth_preset preset;
    const char
        *architecture; /* which decides what tensors a block has (runtime/files/arch/arch.h) */
    uint32_t n_layer, n_embd, n_ff, n_head, n_head_kv, head_dim, n_vocab, n_special, n_ctx;
    float rope_base;
    float score_gain; /* deviation of queries and keys; its square is that of attention scores */
    tern_format body, embedding;
    bool normed;      /* norms before each matrix */
    bool biases;      /* those that the architecture leaves open */
    bool output_head; /* a matrix of its own, in the body's format, instead of the embeddings */
    bool wide_head;   /* that matrix is in the embeddings' format */
    tern_synth_tokens tokens;
    const char *pre;
    uint32_t window, period;   /* of windows; period 0: all layers have them */
    uint32_t n_rot;            /* of a head, that turn; 0: all */
    uint32_t n_expert, n_used; /* with experts n_ff is the width of each */
    uint32_t n_ctx_original;   /* longrope's shorter context; 0: no longrope */
    uint32_t hadamard;         /* block of the transform of what all matrices read; 0: none */
    float rope_gain;           /* longrope's factor of cosine and sine */
    float embedding_scale, block_scale, logit_divisor; /* of architectures with such factors */
} tern_synth_model;

/* The model of a preset; TERN_ERR_NAME with a message that says where they are listed. */
tern_status tern_synth_find_model(const char *preset, const tern_synth_model **out,
                                  tern_error *err);

/* The keys of its Hadamard transform, if it has one; the architecture is known. TERN_ERR_NOMEM. */
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
    uint32_t values[TERN_SYNTH_VALUES]; /* float formats: bits of the value of each sum */
    uint8_t codes[81];                  /* I2_S, TQ2_0: the bytes of four ternary codes */
    bool varied;                        /* TQ: blocks have scales of their own */
} tern_synth_stream;

/* Weights of mean 0 and deviation sd; streams of different index are independent. */
void tern_synth_stream_weights(tern_synth_stream *s, tern_format format, float sd, uint64_t seed,
                               uint64_t index);

/* Norm weights: F32, uniform in [0.875, 1.125). */
void tern_synth_stream_norm(tern_synth_stream *s, uint64_t seed, uint64_t index);

/*
 * The next n elements (at most TERN_SYNTH_PIECE, a multiple of the block; all but the last call a
 * multiple of 128) as the file stores them; I2_S: only codes. Returns the number of bytes.
 */
size_t tern_synth_stream_fill(tern_synth_stream *s, uint8_t *out, size_t n);

/* What follows the codes of an I2_S tensor: the scale that gives sd, and 28 zeros. */
enum { TERN_SYNTH_TRAILER = 32 };
void tern_synth_stream_trailer(const tern_synth_stream *s, uint8_t *out);

#endif
