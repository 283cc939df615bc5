/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_AUTHORING_GGUF_WRITER_H
#define TERN_AUTHORING_GGUF_WRITER_H

/*
 * Writes GGUF v3 files. Metadata and tensor descriptions come first, then the data of each tensor
 * in the order of its description, in as many pieces as the caller likes. The file appears when it
 * is complete (base/out_file.h): nothing half-written remains.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/out_file.h"
#include "runtime/files/gguf/gguf.h"
#include "tern/kernels.h"
#include "tern/status.h"

typedef struct tern_gguf_writer tern_gguf_writer;

/* Refuses what tern_out_file_create refuses, and a folder that cannot be written. */
TERN_MUST_CHECK tern_status tern_gguf_writer_new(const char *path, tern_out_mode mode,
                                                 tern_gguf_writer **out, tern_error *err);

/*
 * Adds metadata, kept in order. Errors (memory, an unusable key or tensor) are remembered and
 * returned by tern_gguf_writer_begin. Keys must be unique, and so must tensor names; neither is
 * checked here. Data is aligned to 32 bytes, or to general.alignment when that key is put as a u32.
 */
void tern_gguf_put_u32(tern_gguf_writer *w, const char *key, uint32_t value);
void tern_gguf_put_f32(tern_gguf_writer *w, const char *key, float value);
void tern_gguf_put_bool(tern_gguf_writer *w, const char *key, bool value);
void tern_gguf_put_string(tern_gguf_writer *w, const char *key, const char *value);
void tern_gguf_put_text(tern_gguf_writer *w, const char *key, tern_span value); /* a string, too */
void tern_gguf_put_strings(tern_gguf_writer *w, const char *key, const tern_span *values, size_t n);
void tern_gguf_put_f32s(tern_gguf_writer *w, const char *key, const float *values, size_t n);
void tern_gguf_put_i32s(tern_gguf_writer *w, const char *key, const int32_t *values, size_t n);

/* Copies a key with its value, of any type, from a file that is open for reading. */
void tern_gguf_put_value(tern_gguf_writer *w, const tern_gguf_value *value);

/*
 * Describes the next tensor: GGUF type id, 1 to 4 dimensions (ne[0] contiguous), bytes of its data.
 * If the reader knows the type, the bytes must be those that type and shape require.
 */
void tern_gguf_put_tensor(tern_gguf_writer *w, const char *name, uint32_t type, uint32_t n_dims,
                          const uint64_t *ne, uint64_t bytes);

/* Writes header, metadata and descriptions. Then tern_gguf_writer_data must supply exactly the
 * described bytes. */
TERN_MUST_CHECK tern_status tern_gguf_writer_begin(tern_gguf_writer *w, tern_error *err);

/*
 * Appends bytes to the current tensor; pads and moves to the next one when it is complete. A piece
 * must not reach into the next tensor (TERN_ERR_ARG). After an error every call returns that error.
 */
TERN_MUST_CHECK tern_status tern_gguf_writer_data(tern_gguf_writer *w, const void *bytes,
                                                  size_t size, tern_error *err);

/*
 * Completes and renames the file. Frees the writer in any case; on failure no file is left.
 * TERN_ERR_TRUNCATED if data is missing.
 */
TERN_MUST_CHECK tern_status tern_gguf_writer_finish(tern_gguf_writer **w, tern_error *err);

/* Removes the temporary file and frees the writer. NULL and *NULL are fine. */
void tern_gguf_writer_abort(tern_gguf_writer **w);

#endif
