/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_AUTHORING_CONVERT_JOB_H
#define TERN_AUTHORING_CONVERT_JOB_H

/* All tensors of a file that is written, and their results; shared by quantize and convert. */

#include "authoring/convert/formats.h"
#include "authoring/convert/recode.h"
#include "authoring/gguf_writer.h"

typedef struct convert_job {
    convert_tensor *tensors; /* [n] in the order of the file; owned */
    size_t n, capacity;
    convert_result *results; /* [n] of the tensors that are written; owned */
    bool beside; /* they replace tensors of the file that they come from (convert_sparse_alone) */
    /* Called before the rows of a tensor are read; may be NULL. */
    tern_status (*begin)(const convert_tensor *t, void *user, tern_error *err);
    /* Called after each tensor, when its source is no longer needed; may be NULL. */
    void (*done)(const convert_tensor *t, void *user);
    void *user;
} convert_job;

/* A zeroed tensor at the end of the list, or NULL when memory is short. Moves the others. */
convert_tensor *convert_job_add(convert_job *job);

void convert_job_free(convert_job *job);

/*
 * Sets target and bytes of every tensor, and the shape of the model in `formats`. Tensors whose
 * format does not change keep as_is, the others lose it. TERN_ERR_TILES, TERN_ERR_TENSOR_SHAPE: a
 * matrix cannot be written in tiles.
 */
TERN_MUST_CHECK tern_status convert_job_plan(convert_job *job, convert_formats *formats,
                                             tern_error *err);

/* Options of convert_job_write. */
typedef struct convert_how {
    uint32_t threads;   /* 0: one per processor */
    bool force_ternary; /* also weights that are not ternary */
    /* Called after each tensor; both in bytes of the file. */
    void (*progress)(uint64_t done, uint64_t total, void *user);
    void *user;
} convert_how;

/* Describes the tensors to the writer, which has all metadata already; writes and finishes it. */
TERN_MUST_CHECK tern_status convert_job_write(convert_job *job, tern_gguf_writer **w,
                                              const convert_how *how, tern_error *err);

#endif
