/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_AUTHORING_CONVERT_MERGE_H
#define TERN_AUTHORING_CONVERT_MERGE_H

/*
 * Adapters that become part of the weights: each matrix is written as W + factor * B A, of all of a
 * model's adapters with the scales that it was opened with. Sums are made in double precision and
 * rounded to floats once; then they get the tensor's format, whatever it is.
 */

#include "authoring/convert/job.h"
#include "tern/tern.h"

typedef struct convert_merged convert_merged; /* one tensor */

/* Zero-initialise it; free in any case, after the job. */
typedef struct convert_merge {
    convert_merged **merged; /* [n] owned */
    size_t n;
} convert_merge;

/* Changes the rows of a planned job's tensors, which are those of the model's file; the model must
 * outlive the job. TERN_ERR_NOMEM. */
TERN_MUST_CHECK tern_status convert_merge_adapters(convert_merge *m, const tern_model *model,
                                                   convert_job *job, tern_error *err);
void convert_merge_free(convert_merge *m);

#endif
