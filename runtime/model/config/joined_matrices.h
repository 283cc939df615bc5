/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_RUNTIME_MODEL_CONFIG_JOINED_MATRICES_H
#define TERN_RUNTIME_MODEL_CONFIG_JOINED_MATRICES_H

/* Files of some architectures join matrices that read the same rows into one. */

#include "runtime/model/config/config.h"

enum { TERN_JOINED_PIECES = 3 }; /* at most */

/* A joined matrix: its name in a block, and its pieces in the order of their rows. */
typedef struct tern_joined {
    const char *name;
    const char *hf; /* in Hugging Face folders */
    unsigned join;  /* bit of tern_arch.joined */
    size_t n;
    struct {
        const char *name;
        tern_block_size rows;
    } pieces[TERN_JOINED_PIECES];
} tern_joined;

/* The joined matrix of which t is a piece; NULL: the architecture joins no such matrix. Static
 * storage. */
const tern_joined *tern_joined_of(const tern_arch *arch, const tern_block_tensor *t);

/* Rows of all its pieces. */
uint64_t tern_joined_rows(const tern_joined *joined, const tern_block_sizes *sizes);

/* True if t is the first piece: whoever writes a file writes the whole matrix in its place. */
bool tern_joined_begins(const tern_joined *joined, const tern_block_tensor *t);

/*
 * Divides joined matrices, if the architecture may have them: the file then has attn_q, attn_k and
 * attn_v in place of each block's attn_qkv, and ffn_gate and ffn_up in place of an ffn_up of twice
 * the rows. Rows are not copied. Pointers to the file's tensors become invalid.
 * TERN_ERR_TENSOR_SHAPE: the rows are not those of the pieces; TERN_ERR_TENSOR_TYPE: rows of that
 * type are not runs of bytes; TERN_ERR_TENSOR_DUPLICATE: the file has a piece besides;
 * TERN_ERR_NOMEM.
 */
TERN_MUST_CHECK tern_status tern_joined_divide(tern_gguf *file, const tern_config *c,
                                               tern_error *err);

#endif
