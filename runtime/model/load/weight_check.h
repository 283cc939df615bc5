/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_RUNTIME_MODEL_LOAD_WEIGHT_CHECK_H
#define TERN_RUNTIME_MODEL_LOAD_WEIGHT_CHECK_H

/*
 * Refuses invalid weights: a scale, a minimum or a float that is NaN or infinite, a ternary scale
 * below zero. Quantized activations have no NaN, so such a weight would give finite nonsense and no
 * sign of it. docs/formats.md has the rules.
 */

#include "runtime/model/load/jobs.h"
#include "tern/kernels.h"

/*
 * Checks rows [r0, r1) of a matrix of `cols` columns in the file's layout, whole blocks in each
 * row. TERN_ERR_TENSOR_DATA names the first wrong row, its block or column, and the value. The one
 * scale of an I2_S tensor lies in no row and is not checked.
 */
TERN_MUST_CHECK tern_status tern_weight_check(tern_format format, const void *data, size_t cols,
                                              size_t r0, size_t r1, tern_error *err);

/* Adds a job that checks some rows of a matrix that is not packed, and their ternary codes. `drop`:
 * its pages are given back. TERN_ERR_NOMEM. */
TERN_MUST_CHECK tern_status tern_weight_note_check(tern_load_jobs *jobs, const tern_gguf *file,
                                                   const tern_gguf_tensor *tensor, tern_part rows,
                                                   bool drop, tern_error *err);

#endif
