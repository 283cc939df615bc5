/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_RUNTIME_MODEL_LOAD_HEAD_IMAGE_H
#define TERN_RUNTIME_MODEL_LOAD_HEAD_IMAGE_H

/* Makes the int8 image of a head (runtime/model/parts/head.h). */

#include "runtime/model/load/jobs.h"
#include "runtime/model/parts/head.h"
#include "runtime/model/tune/guard.h"

/*
 * Plans the image of a head whose layout is chosen: sets its matrix, without kernels and memory.
 * False, and no rows: the head is not stored as rows of floats, so its image would not be smaller,
 * or it has too many columns.
 */
bool tern_head_image_plan(const tern_linear *head, tern_head_image *out);

/* Adds a job that makes the image, whose memory is bound, by that many workers at once. The job
 * checks the head's rows (weight_check.h). TERN_ERR_NOMEM, TERN_ERR_KERNEL. */
TERN_MUST_CHECK tern_status tern_head_image_note(const tern_head_image *image,
                                                 const tern_linear *head, const tern_gguf *file,
                                                 tern_guard *guard, uint32_t workers,
                                                 tern_load_jobs *jobs, tern_error *err);

/* Makes a finished image ready for use: sets `largest`. */
void tern_head_image_finish(tern_head_image *image);

/* Reports why a guard has no kernels for an image: TERN_ERR_NOMEM, TERN_ERR_KERNEL. */
TERN_MUST_CHECK tern_status tern_head_image_no_kernels(const tern_guard *guard, tern_error *err);

#endif
