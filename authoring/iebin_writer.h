/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_AUTHORING_IEBIN_WRITER_H
#define TERN_AUTHORING_IEBIN_WRITER_H

/*
 * Writes IEBIN folders (runtime/files/gguf/iebin.h) with the writer of GGUF files: the same calls
 * produce three files, with the list of tensors, their bytes and the model's keys.
 */

#include "authoring/gguf_writer.h"

/* The files of a folder. They get their names in the order of the enumeration; the list is the
 * last. */
enum { TERN_IEBIN_FILES = 3 };
extern const char *const tern_iebin_files[TERN_IEBIN_FILES];

/*
 * A writer into `folder`, which is created if it is missing. general.alignment is written as a key
 * and has no effect. Refuses what tern_out_file_create refuses for any of the files. A list that
 * will be replaced is removed before the first new file gets its name, so no list ever describes
 * the bytes of another one.
 */
TERN_MUST_CHECK tern_status tern_iebin_writer_new(const char *folder, tern_out_mode mode,
                                                  tern_gguf_writer **out, tern_error *err);

/*
 * Like tern_gguf_put_tensor, for INT4: ne[0] is a multiple of 32, form->group is 32, 64, 128 or
 * ne[0]. Writers of GGUF files refuse it, because GGUF has no type id for it.
 */
void tern_iebin_put_int4(tern_gguf_writer *w, const char *name, uint32_t n_dims, const uint64_t *ne,
                         const tern_int4_rows *form);

/*
 * Marks the last described tensor as stored elsewhere: model.dedup.json of the folder says where
 * (runtime/files/gguf/dedup.h). No data follows for it.
 */
void tern_iebin_share_last(tern_gguf_writer *w);

/*
 * The folder holds sparse layers of a model whose own file has the keys: none are written, and none
 * may be put.
 */
void tern_iebin_without_keys(tern_gguf_writer *w);

/* The last described tensor replaces dense bytes in another file; `hash` is their XXH64. */
void tern_iebin_replaces_last(tern_gguf_writer *w, uint64_t hash);

#endif
