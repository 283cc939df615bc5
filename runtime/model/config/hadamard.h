/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_RUNTIME_MODEL_CONFIG_HADAMARD_H
#define TERN_RUNTIME_MODEL_CONFIG_HADAMARD_H

/*
 * Weights that were turned: transformed by a Hadamard transform H in blocks of columns, as the keys
 * prism.hadamard.* of a file say. A turned matrix reads H(s * x) in place of x; a row h of a turned
 * embedding becomes s * H(h). s are signs, one vector for each width of rows. H is the operation
 * `hadamard` of tern/kernels.h.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/files/gguf/gguf.h"
#include "runtime/model/config/config.h"

/* How rows of one width are turned. */
typedef struct tern_hadamard {
    size_t block;       /* columns; 0: they are not turned */
    const float *signs; /* [width] -1 or 1; NULL: all are 1 */
} tern_hadamard;

/* The inputs of a block's matrices. */
typedef enum tern_block_input {
    TERN_BLOCK_QKV,     /* n_embd: before attn_q, attn_k, attn_v */
    TERN_BLOCK_OUT,     /* n_head * head_dim: before attn_output */
    TERN_BLOCK_GATE_UP, /* n_embd: before ffn_gate, ffn_up */
    TERN_BLOCK_DOWN,    /* n_ff: before ffn_down */
    TERN_BLOCK_INPUTS
} tern_block_input;

/* All zero: nothing is turned. Owns its memory. */
typedef struct tern_hadamards {
    size_t block;                  /* columns, a power of two; 0: no keys */
    tern_hadamard embedding, head; /* rows of the embedding, turned back; rows of the head */
    tern_hadamard (*blocks)[TERN_BLOCK_INPUTS]; /* [n_layer] */
    size_t matrices;                            /* of blocks and the head, that read turned rows */
    float *signs;                               /* of all widths; NULL: none */
} tern_hadamards;

/*
 * Reads the keys and checks them against the file's tensors. A file without these keys turns
 * nothing. Refuses, by the name of the key or tensor: keys that are missing, unknown or of another
 * version; blocks, widths and signs that do not fit each other or the model; names that are not
 * matrices of the model; matrices that read the same rows, of which only some were turned.
 * TERN_ERR_KEY_MISSING, TERN_ERR_KEY_TYPE, TERN_ERR_KEY_RANGE, TERN_ERR_CONFIG, TERN_ERR_ARCH,
 * TERN_ERR_NOMEM. The caller frees *out after TERN_OK.
 */
TERN_MUST_CHECK tern_status tern_hadamards_read(const tern_gguf *file, const tern_config *c,
                                                tern_hadamards *out, tern_error *err);

void tern_hadamards_free(tern_hadamards *h);

#endif
