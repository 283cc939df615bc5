/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_RUNTIME_MODEL_LOAD_HEAD_IMAGE_H
#define TERN_RUNTIME_MODEL_LOAD_HEAD_IMAGE_H

/* How the int8 image of a head is made (runtime/model/parts/head.h). */

#include "runtime/model/load/jobs.h"
#include "runtime/model/parts/head.h"
#include "runtime/model/tune/guard.h"

/* The image of a head whose layout is chosen: its matrix, without kernels and memory. False, and no
 * rows: the head is no larger than its image would be. */
bool tern_head_image_plan(const tern_linear *head, tern_head_image *out);

/*
 * Notes down that the image, whose memory is bound, is to be made, by so many workers at once. The
 * job checks the head's rows (weight_check.h). TERN_ERR_NOMEM, TERN_ERR_KERNEL.
 */
TERN_MUST_CHECK tern_status tern_head_image_note(const tern_head_image *image,
                                                 const tern_linear *head, const tern_gguf *file,
                                                 tern_guard *guard, uint32_t workers,
                                                 tern_load_jobs *jobs, tern_error *err);

/* Takes the image that was made into use. */
void tern_head_image_finish(tern_head_image *image);

/* Why a guard has no kernels for an image. */
TERN_MUST_CHECK tern_status tern_head_image_no_kernels(const tern_guard *guard, tern_error *err);

#endif
