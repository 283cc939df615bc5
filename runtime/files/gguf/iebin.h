/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_RUNTIME_FILES_GGUF_IEBIN_H
#define TERN_RUNTIME_FILES_GGUF_IEBIN_H

/*
 * Reader for IEBIN: a folder with model.ie.json, a list of tensors, and files of bytes that it
 * names, mostly model.ie.bin. Keys and tokenizer of the model are in a GGUF file without tensors
 * beside it, model.ie.gguf. The result is a tern_gguf like that of a GGUF file with the same
 * tensors and keys, so everything else is shared. docs/formats.md has the form, to the field.
 */

#include "base/file_map.h"
#include "runtime/files/gguf/gguf.h"

/* Names of the files in a folder that is written, and of the list in one that is read. */
#define TERN_IEBIN_LIST "model.ie.json"
#define TERN_IEBIN_DATA "model.ie.bin"
#define TERN_IEBIN_KEYS "model.ie.gguf"

enum {
    TERN_IEBIN_ALIGNMENT = 64,       /* alignment of tensors in files that are written */
    TERN_IEBIN_MAX_BYTES = 64 << 20, /* most bytes of a list */
    TERN_IEBIN_MAX_FILES = 1024,     /* most files that a list names */
    TERN_IEBIN_MAX_NAME = 255        /* most bytes of a file's name */
};

/* True if path is a folder with a list in it, or a file whose name ends in ".ie.json". */
bool tern_iebin_is(const char *path);

/*
 * Opens the list in a folder, or of that path, and every file that it names. All ranges lie inside
 * their files, none overlaps another, no name occurs twice. *out has no keys when the list names no
 * file of keys. TERN_ERR_IO, TERN_ERR_TRUNCATED, TERN_ERR_COUNT, TERN_ERR_JSON, TERN_ERR_VERSION,
 * TERN_ERR_STRING, TERN_ERR_TENSOR_SHAPE, _RANGE, _OVERLAP, _DUPLICATE; TERN_ERR_PARTS when the
 * file of keys holds tensors, and the errors of reading it. Tensors may be made of shared bytes, as
 * `shared` says (dedup.h); NULL: where the folder holds them in no other way.
 */
TERN_MUST_CHECK tern_status tern_iebin_open(const char *path, const tern_dedup_params *shared,
                                            tern_gguf **out, tern_error *err);

/*
 * Makes a file whose bytes mean nothing by themselves: no keys, no tensors. Takes over the map that
 * holds the bytes, also when it fails; without one (NULL) the caller keeps them alive.
 */
TERN_MUST_CHECK tern_status tern_gguf_raw(const uint8_t *bytes, size_t size, tern_file_map *map,
                                          const char *name, tern_gguf **out, tern_error *err);

/* Opens the file with that bare name as a raw one. */
typedef tern_status tern_iebin_opener(void *user, const char *name, tern_gguf **out,
                                      tern_error *err);

/* Does what tern_iebin_open does, for a list that tern_gguf_raw made; takes it over, also when it
 * fails. */
TERN_MUST_CHECK tern_status tern_iebin_parse(tern_gguf *list, tern_iebin_opener *opener, void *user,
                                             const tern_dedup_params *shared, tern_gguf **out,
                                             tern_error *err);

#endif
