/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_RUNTIME_FILES_GGUF_DEDUP_H
#define TERN_RUNTIME_FILES_GGUF_DEDUP_H

/*
 * Tensors of an IEBIN folder that are made of shared bytes: model.dedup.json beside the list, and
 * up to four files that it names. docs/dedup.md has the form, to the field.
 *
 *   defaults    bytes that groups of tensors share
 *   base        the same in a file of another model, mostly by a link
 *   masks       a bit a byte, bit 0 first: 1 where a tensor differs from its default
 *   exceptions  the bytes that differ, in their order
 *
 * A tensor is cut into ranges without gaps. A range is its default, or its default with exceptions.
 * Defaults are bytes of files and never a tensor that has to be made first, so none can depend on
 * itself.
 *
 * Tensors without exceptions whose ranges lie side by side are not copied: they are read where the
 * defaults are mapped, and processes that map the same file share its pages. Others are made anew,
 * piece by piece: in memory up to tern_dedup_params.cache_bytes, then in a file without a name,
 * whose pages the system may take back.
 */

#include "runtime/files/gguf/iebin_internal.h"

#define TERN_DEDUP_INDEX "model.dedup.json"

enum {
    TERN_DEDUP_PIECE = 1 << 16, /* bytes of a tensor that are made at a time; a multiple of 8 */
    TERN_DEDUP_RATIO = 4096     /* bytes that may be made of each byte of the files */
};

/* The files that an index names, in the order of its `totals`. */
typedef enum tern_dedup_file {
    TERN_DEDUP_DEFAULTS,
    TERN_DEDUP_MASKS,
    TERN_DEDUP_EXCEPTIONS,
    TERN_DEDUP_BASE,
    TERN_DEDUP_FILES
} tern_dedup_file;

extern const char *const tern_dedup_fields[TERN_DEDUP_FILES]; /* "defaults", "masks" ... */
extern const char *const tern_dedup_names[TERN_DEDUP_FILES];  /* "model.defaults.bin" ... */

/* Bytes [offset, offset + bytes) of a tensor. */
typedef struct tern_dedup_range {
    size_t tensor; /* its number in the list */
    uint64_t offset, bytes;
    const uint8_t *defaults;   /* [bytes] */
    const uint8_t *mask;       /* [ceil(bytes / 8)]; NULL: nothing differs */
    const uint8_t *exceptions; /* [n_exceptions] */
    uint64_t n_exceptions;     /* bits of the mask */
    bool is_default;           /* listed as the default of its group */
} tern_dedup_range;

/* The contents of an index. The ranges are sorted by tensor and offset, and cover each tensor. */
typedef struct tern_dedup_index {
    tern_gguf *file; /* the index file, owned by the list */
    tern_json json;
    tern_dedup_range *ranges;
    size_t n_ranges;
    uint64_t *sums;    /* [n_sums] checksum of each tensor of the list, where has_sum */
    uint8_t *has_sum;  /* [n_sums] */
    size_t n_sums;     /* tensors of the list */
    uint64_t capacity; /* most bytes that may be made */
} tern_dedup_index;

/*
 * Reads and checks an index against the list and against all files that it names, which it opens
 * with the opener of the list. Everything is checked but the checksums. Free *out in any case.
 * TERN_ERR_IO, _JSON, _VERSION, _COUNT, _TRUNCATED, _TENSOR_RANGE, _TENSOR_OVERLAP, _TENSOR_DATA,
 * _TENSOR_MISSING, _NOMEM.
 */
TERN_MUST_CHECK tern_status tern_dedup_index_read(tern_iebin_reading *r, tern_dedup_index *out,
                                                  tern_error *err);
void tern_dedup_index_free(tern_dedup_index *index);

/*
 * Gives every tensor that the index covers its bytes: in place, in memory, or in the file. Compares
 * the checksums that there are; TERN_ERR_TENSOR_DATA names the tensor that differs. On failure no
 * tensor has changed.
 */
TERN_MUST_CHECK tern_status tern_dedup_rebuild(const tern_dedup_index *index, tern_gguf *list,
                                               uint64_t cache_bytes, tern_dedup_store *store,
                                               tern_error *err);

/*
 * Does what params say (tern/dedup.h; NULL: the defaults) for a list that was read. Afterwards
 * every tensor of the list has bytes. If all have bytes of their own (data is not NULL), it fails
 * only in strict mode or without memory.
 */
TERN_MUST_CHECK tern_status tern_dedup_apply(tern_iebin_reading *r, const tern_dedup_params *params,
                                             tern_error *err);

#endif
