/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_AUTHORING_DEDUP_DEDUP_H
#define TERN_AUTHORING_DEDUP_DEDUP_H

/*
 * Finds bytes that tensors of a model share with each other or with another model, and writes them
 * once, in the files that runtime/files/gguf/dedup.h reads.
 *
 * A plan cuts tensors into parts. A part is literal (its bytes are written), or like a literal part
 * of the model, or like bytes of the base. In the last two cases only the bytes that differ are
 * written.
 */

#include <stddef.h>
#include <stdint.h>

#include "authoring/gguf_writer.h"
#include "base/out_file.h"
#include "tern/gguf.h"

enum {
    DEDUP_BLOCK_BYTES = 1 << 16, /* of a block; tensors are compared in blocks */
    DEDUP_LEAST_BYTES = 1 << 10  /* smaller tensors are left alone: naming them costs as much */
};

#define DEDUP_NONE SIZE_MAX

typedef struct dedup_part {
    size_t tensor; /* index in the model */
    uint64_t offset, bytes;
    size_t like;         /* the literal part that it is like, of equal size; DEDUP_NONE: none */
    const uint8_t *base; /* the bytes of the base that it is like; NULL: none */
    uint64_t differing;  /* bytes that differ */
    size_t first_user, next_user; /* literal: its first part; else: the next one */
} dedup_part;

/* Zero-initialise it and free it in any case. Parts are in the order of tensors and offsets. */
typedef struct dedup_plan {
    const tern_gguf *model; /* borrowed */
    const uint8_t *base;    /* the file of the base that is used; NULL: no base */
    uint64_t base_bytes;
    const char *base_path;
    dedup_part *parts;
    size_t n, capacity;
    bool *shared; /* [tensors] true: made of parts; the others stay as they are */
} dedup_plan;

/* Opens a model. If `weights_alone`, also an IEBIN list without a model's keys. */
TERN_MUST_CHECK tern_status dedup_open(const char *path, bool weights_alone, tern_gguf **out,
                                       tern_error *err);

void dedup_plan_free(dedup_plan *plan);

/* Appends a literal part; NULL when memory is short. */
dedup_part *dedup_add(dedup_plan *plan, size_t tensor, uint64_t offset, uint64_t bytes);

/* Makes a part like a literal one of the same size. */
void dedup_make_like(dedup_plan *plan, size_t part, size_t literal);

/*
 * Fills plan->shared with the tensors that have a part which is not literal or which another part
 * is like; drops the parts of all other tensors. TERN_ERR_NOMEM.
 */
TERN_MUST_CHECK tern_status dedup_finish(dedup_plan *plan, tern_error *err);

/*
 * Finds parts by content: equal tensors first, then blocks that are equal or differ in so few bytes
 * that mask and exceptions take at most three quarters of the block. `base` may be NULL; if it has
 * several files the largest is used. Both models must stay open. TERN_ERR_NOMEM.
 */
TERN_MUST_CHECK tern_status dedup_find(const tern_gguf *model, const tern_gguf *base,
                                       dedup_plan *plan, tern_error *err);

/*
 * Reads groups of whole tensors from two files: `map` numbers tensors by name ({"tensors":
 * [{"index", "name", "nbytes"}]}), `groups` is a list [{"default_index", "targets": [...]}] or has
 * such a list as "groups". All tensors of a group have the same size, and no tensor is in two
 * groups. TERN_ERR_JSON, _TENSOR_MISSING, _TENSOR_SHAPE, _TENSOR_DUPLICATE, _IO, _NOMEM.
 */
TERN_MUST_CHECK tern_status dedup_read_groups(const tern_gguf *model, const char *map,
                                              const char *groups, dedup_plan *plan,
                                              tern_error *err);

/* The result of a plan, in bytes. */
typedef struct dedup_sizes {
    size_t tensors, shared_tensors;
    uint64_t before;      /* of all tensors */
    uint64_t shared;      /* of all tensors that are made of parts */
    uint64_t equal, near; /* of parts that are not literal: without exceptions, and with some */
    uint64_t defaults, masks, exceptions, index; /* sizes of the files */
    uint64_t after; /* these files, and the tensors that are not shared */
} dedup_sizes;

/*
 * Writes PREFIX.defaults.bin, .masks.bin, .exceptions.bin and .dedup.json, and a symbolic link
 * PREFIX.base.bin if the base is used; the index is written last. If prefix is NULL it only
 * computes the sizes. On failure no new file is left.
 */
TERN_MUST_CHECK tern_status dedup_write(const dedup_plan *plan, const char *prefix,
                                        tern_out_mode mode, dedup_sizes *sizes, tern_error *err);

/* Removes the files with this prefix. */
void dedup_remove(const char *prefix);

/*
 * Writes an IEBIN folder of the model without the bytes of shared tensors, which the files of
 * dedup_write hold. It has all tensors in their order and all keys except those that describe how
 * the file was split. On failure no new file is left.
 */
TERN_MUST_CHECK tern_status dedup_write_folder(const dedup_plan *plan, const char *folder,
                                               tern_out_mode mode, dedup_sizes *sizes,
                                               tern_error *err);

#endif
