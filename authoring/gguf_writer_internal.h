/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_AUTHORING_GGUF_WRITER_INTERNAL_H
#define TERN_AUTHORING_GGUF_WRITER_INTERNAL_H

/* Shared by gguf_writer.c (the file) and gguf_put.c (its description). */

#include "authoring/gguf_writer.h"
#include "runtime/files/gguf/internal.h"

typedef struct tern_gguf_described {
    char *name; /* owned */
    uint32_t type;
    uint32_t n_dims;
    uint64_t ne[4];
    uint64_t bytes;
    tern_int4_rows int4; /* for tensors of an IEBIN folder */
    uint64_t shared;     /* bytes stored elsewhere (tern_iebin_share_last); `bytes` is 0 then */
    uint64_t replaces;   /* XXH64 of the replaced bytes (tern_iebin_replaces_last); 0: none */
} tern_gguf_described;

typedef struct tern_byte_list {
    uint8_t *bytes;
    size_t size, capacity;
} tern_byte_list;

/* The parts of an IEBIN folder other than the data (iebin_writer.c). */
typedef struct tern_iebin_target tern_iebin_target;

struct tern_gguf_writer {
    char *path;               /* for messages */
    tern_iebin_target *iebin; /* NULL: a GGUF file */
    tern_out_file *file;
    tern_error error; /* the first error; every later call returns it */
    bool begun;
    uint32_t alignment;

    tern_byte_list metadata; /* records as in the file; after begin, a GGUF file also has the
                                descriptions here */
    uint64_t n_values;
    tern_gguf_described *tensors;
    size_t n_tensors, tensors_capacity;

    size_t current; /* tensor that receives data */
    uint64_t left;  /* bytes that it still lacks */
    uint8_t *chunk; /* [CHUNK_BYTES] output that is not written yet */
    size_t chunk_used;
};

static inline bool tern_gguf_writer_failed(const tern_gguf_writer *w) {
    return w->error.status != TERN_OK;
}

/*
 * The offset of the tensor after tensor i, which begins at `offset`; refuses more than 2^64 bytes.
 */
uint64_t tern_gguf_next_offset(tern_gguf_writer *w, size_t i, uint64_t offset);

/* Appends the descriptions of all tensors, with their offsets, after the metadata. */
void tern_gguf_append_descriptions(tern_gguf_writer *w);

/* A writer that has no file yet, or NULL when memory is short. */
tern_gguf_writer *tern_gguf_writer_make(const char *path);

/* Writes keys and list of an IEBIN folder and gives all files their names; errors are remembered.
 */
void tern_iebin_finish(tern_gguf_writer *w);

/* Removes unfinished files and frees the folder's memory. Does nothing for GGUF files. */
void tern_iebin_discard(tern_gguf_writer *w);

#endif
