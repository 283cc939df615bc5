/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_AUTHORING_IEBIN_WRITER_H
#define TERN_AUTHORING_IEBIN_WRITER_H

/*
 * Writes IEBIN folders (runtime/files/gguf/iebin.h) with the writer of GGUF files: the same calls,
 * and at the end a list of tensors, their bytes and the model's keys in three files.
 */

#include "authoring/gguf_writer.h"

/* The files of a folder, in the order in which they get their names: the list is the last. */
enum { TERN_IEBIN_FILES = 3 };
extern const char *const tern_iebin_files[TERN_IEBIN_FILES];

/*
 * A writer into `folder`, which is made where it is missing. general.alignment is written as a key
 * and has no effect. Refuses what tern_out_file_create refuses for any of the files. A list that is
 * replaced is removed before the first of the new files has its name, so no list ever tells about
 * the bytes of another.
 */
TERN_MUST_CHECK tern_status tern_iebin_writer_new(const char *folder, tern_out_mode mode,
                                                  tern_gguf_writer **out, tern_error *err);

/*
 * tern_gguf_put_tensor for INT4: ne[0] is a multiple of 32, form->group is 32, 64, 128 or ne[0].
 * Refused by writers of GGUF files, which have no number for it.
 */
void tern_iebin_put_int4(tern_gguf_writer *w, const char *name, uint32_t n_dims, const uint64_t *ne,
                         const tern_int4_rows *form);

/*
 * The tensor that was described last has its bytes elsewhere, as model.dedup.json of the folder
 * says (runtime/files/gguf/dedup.h): no data follow for it.
 */
void tern_iebin_share_last(tern_gguf_writer *w);

/*
 * The folder holds sparse layers of a model that has its keys in a file of its own: none are
 * written, and none may be put.
 */
void tern_iebin_without_keys(tern_gguf_writer *w);

/* The tensor that was described last stands for dense bytes with that XXH64 in another file. */
void tern_iebin_replaces_last(tern_gguf_writer *w, uint64_t hash);

#endif
