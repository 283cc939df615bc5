/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_AUTHORING_DEDUP_DEDUP_H
#define TERN_AUTHORING_DEDUP_DEDUP_H

/*
 * Finds bytes that tensors of a model share with each other, or with another model, and writes them
 * once: the files that runtime/files/gguf/dedup.h reads.
 *
 * A plan cuts tensors into parts. A part is literal (its bytes are written), or like another part
 * of the model that is literal, or like bytes of the base; then only the bytes that differ are
 * written.
 */

#include <stddef.h>
#include <stdint.h>

#include "authoring/gguf_writer.h"
#include "base/out_file.h"
#include "tern/gguf.h"

enum {
    DEDUP_BLOCK_BYTES = 1 << 16, /* of tensors that are compared in blocks */
    DEDUP_LEAST_BYTES = 1 << 10  /* tensors below are left as they are: naming them costs as much */
};

#define DEDUP_NONE SIZE_MAX

typedef struct dedup_part {
    size_t tensor; /* its number in the model */
    uint64_t offset, bytes;
    size_t like;         /* the literal part that it is like, of the same size; DEDUP_NONE: none */
    const uint8_t *base; /* the bytes of the base that it is like; NULL: none */
    uint64_t differing;  /* of its bytes */
    size_t first_user, next_user; /* literal: parts like it; otherwise the next one of those */
} dedup_part;

/* Zero-initialise it; free it in any case. Parts stand in the order of tensors and offsets. */
typedef struct dedup_plan {
    const tern_gguf *model; /* borrowed */
    const uint8_t *base;    /* the file of the base that most of its bytes are in; NULL: no base */
    uint64_t base_bytes;
    const char *base_path;
    dedup_part *parts;
    size_t n, capacity;
    bool *shared; /* [tensors] made of parts; the others stay as they are */
} dedup_plan;

/* Opens a model, and where `weights_alone` also an IEBIN list without keys of a model. */
TERN_MUST_CHECK tern_status dedup_open(const char *path, bool weights_alone, tern_gguf **out,
                                       tern_error *err);

void dedup_plan_free(dedup_plan *plan);

/* A literal part after the others; NULL when memory is short. */
dedup_part *dedup_add(dedup_plan *plan, size_t tensor, uint64_t offset, uint64_t bytes);

/* Makes a part like a literal one of the same size. */
void dedup_make_like(dedup_plan *plan, size_t part, size_t literal);

/*
 * Fills plan->shared: the tensors with a part that is not literal, or that another one is like; and
 * drops the parts of the others. TERN_ERR_NOMEM.
 */
TERN_MUST_CHECK tern_status dedup_finish(dedup_plan *plan, tern_error *err);

/*
 * Finds parts by content: tensors that are equal, then blocks that are equal or differ in so few
 * bytes that mask and exceptions take at most three quarters of them. `base` may be NULL; of
 * several files the largest is used. Both models must stay open. TERN_ERR_NOMEM.
 */
TERN_MUST_CHECK tern_status dedup_find(const tern_gguf *model, const tern_gguf *base,
                                       dedup_plan *plan, tern_error *err);

/*
 * Takes whole tensors as two files say: `map` names tensors by numbers ({"tensors": [{"index",
 * "name", "nbytes"}]}), `groups` lists [{"default_index", "targets": [...]}] or has such a list as
 * "groups". All tensors of a group have the same size and are in no other one. TERN_ERR_JSON,
 * _TENSOR_MISSING, _TENSOR_SHAPE, _TENSOR_DUPLICATE, _IO, _NOMEM.
 */
TERN_MUST_CHECK tern_status dedup_read_groups(const tern_gguf *model, const char *map,
                                              const char *groups, dedup_plan *plan,
                                              tern_error *err);

/* What a plan gives, in bytes. */
typedef struct dedup_sizes {
    size_t tensors, shared_tensors;
    uint64_t before;      /* of all tensors */
    uint64_t shared;      /* of tensors that are made of parts */
    uint64_t equal, near; /* of parts that are not literal: without exceptions,
                             with some */
    uint64_t defaults, masks, exceptions, index; /* of the files */
    uint64_t after; /* these files, and the tensors that stay as they are */
} dedup_sizes;

/*
 * Writes PREFIX.defaults.bin, .masks.bin, .exceptions.bin and .dedup.json, and where the base is
 * used a symbolic link PREFIX.base.bin; the index is the last. A prefix of NULL: nothing is
 * written, only counted. On failure nothing new is left.
 */
TERN_MUST_CHECK tern_status dedup_write(const dedup_plan *plan, const char *prefix,
                                        tern_out_mode mode, dedup_sizes *sizes, tern_error *err);

/* Removes the files of a prefix. */
void dedup_remove(const char *prefix);

/*
 * An IEBIN folder of the model, with what dedup_write writes in place of shared tensors: all keys
 * but those of how the file was split, all tensors in their order. On failure nothing new is left.
 */
TERN_MUST_CHECK tern_status dedup_write_folder(const dedup_plan *plan, const char *folder,
                                               tern_out_mode mode, dedup_sizes *sizes,
                                               tern_error *err);

#endif
