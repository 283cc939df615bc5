/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_AUTHORING_GGUF_WRITER_INTERNAL_H
#define TERN_AUTHORING_GGUF_WRITER_INTERNAL_H

/* What gguf_writer.c (the file) and gguf_put.c (its description) share. */

#include "authoring/gguf_writer.h"
#include "runtime/files/gguf/internal.h"

typedef struct tern_gguf_described {
    char *name; /* owned */
    uint32_t type;
    uint32_t n_dims;
    uint64_t ne[4];
    uint64_t bytes;
    tern_int4_rows int4; /* of a tensor of an IEBIN folder */
    uint64_t shared;   /* bytes that it has elsewhere (tern_iebin_share_last); `bytes` is 0 then */
    uint64_t replaces; /* of sparse layers beside a model (tern_iebin_replaces_last); 0: none */
} tern_gguf_described;

typedef struct tern_byte_list {
    uint8_t *bytes;
    size_t size, capacity;
} tern_byte_list;

/* What an IEBIN folder has besides the data (iebin_writer.c). */
typedef struct tern_iebin_target tern_iebin_target;

struct tern_gguf_writer {
    char *path;               /* for messages */
    tern_iebin_target *iebin; /* NULL: a GGUF file */
    tern_out_file *file;
    tern_error error; /* the first one; every later call returns it */
    bool begun;
    uint32_t alignment;

    tern_byte_list metadata; /* records as in the file; in a GGUF file, from begin on, also the
                                descriptions */
    uint64_t n_values;
    tern_gguf_described *tensors;
    size_t n_tensors, tensors_capacity;

    size_t current; /* tensor that receives data */
    uint64_t left;  /* bytes that it still needs */
    uint8_t *chunk; /* [CHUNK_BYTES] not written yet */
    size_t chunk_used;
};

static inline bool tern_gguf_writer_failed(const tern_gguf_writer *w) {
    return w->error.status != TERN_OK;
}

/* Where the tensor after number i begins, which begins at `offset`; refuses more than 2^64 bytes.
 */
uint64_t tern_gguf_next_offset(tern_gguf_writer *w, size_t i, uint64_t offset);

/* Appends the descriptions of all tensors, with their offsets, after the metadata. */
void tern_gguf_append_descriptions(tern_gguf_writer *w);

/* A writer that has no file yet, or NULL when memory is short. */
tern_gguf_writer *tern_gguf_writer_make(const char *path);

/* Writes keys and list of an IEBIN folder and gives all files their names; errors are remembered.
 */
void tern_iebin_finish(tern_gguf_writer *w);

/* Removes what was not finished, and frees what the folder needs. Nothing to do for GGUF files. */
void tern_iebin_discard(tern_gguf_writer *w);

#endif
