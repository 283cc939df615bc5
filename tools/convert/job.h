/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_TOOLS_CONVERT_JOB_H
#define TERN_TOOLS_CONVERT_JOB_H

/* All tensors of a file that is written, and what became of them: quantize and convert share it. */

#include "authoring/gguf_writer.h"
#include "tools/cli/options.h"
#include "tools/convert/formats.h"
#include "tools/convert/recode.h"

typedef struct convert_job {
    convert_tensor *tensors; /* [n] in the order of the file; owned */
    size_t n, capacity;
    convert_result *results; /* [n] of those that are written; owned */
    /* Called before each tensor, whose rows will be asked for; may be NULL. */
    tern_status (*begin)(const convert_tensor *t, void *user, tern_error *err);
    /* Called after each tensor, when its source is no longer needed; may be NULL. */
    void (*done)(const convert_tensor *t, void *user);
    void *user;
} convert_job;

/* A zeroed tensor at the end of the list, or NULL when memory is short. Moves the others. */
convert_tensor *convert_job_add(convert_job *job);

void convert_job_free(convert_job *job);

/* --type, --embedding-type, --output-type and --tl-tiles. TERN_ERR_ARG: these are no tiles. */
TERN_MUST_CHECK tern_status convert_job_formats(const options *o, convert_formats *out,
                                                tern_error *err);

/*
 * Sets target and bytes of every tensor; those whose format does not change keep as_is, the others
 * lose it. TERN_ERR_TILES, TERN_ERR_TENSOR_SHAPE: a matrix cannot be written in tiles.
 */
TERN_MUST_CHECK tern_status convert_job_plan(convert_job *job, const convert_formats *formats,
                                             tern_error *err);

/*
 * Describes the tensors to the writer, which has all metadata, writes and finishes it. Progress by
 * --verbose, threads by --threads, --force-ternary as it says.
 */
TERN_MUST_CHECK tern_status convert_job_write(convert_job *job, tern_gguf_writer **w,
                                              const options *o, tern_error *err);

/* What was written, as text or with --json as a line of JSON; the exit status. */
int convert_job_report(const convert_job *job, const options *o);

#endif
