/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_AUTHORING_SYNTH_H
#define TERN_AUTHORING_SYNTH_H

/*
 * Models with random weights and exactly the geometry, tensor types and metadata of a real model,
 * to measure or test a machine without a download. A preset and a seed give the same bytes on every
 * machine. The text that such a model produces is meaningless, but its activations stay finite and
 * depend on every token.
 */

#include <stddef.h>
#include <stdint.h>

#include "base/out_file.h"
#include "tern/status.h"

typedef struct tern_synth_preset {
    const char *name;
    const char *description; /* one line */
} tern_synth_preset;

/* Describes preset `index`, or NULL when there are no more. Static storage. */
const tern_synth_preset *tern_synth_preset_at(size_t index);

/* Called after each piece is written; both in bytes of tensor data. */
typedef void tern_synth_progress(uint64_t done, uint64_t total, void *user);

/*
 * Writes the model of a preset to out_path; progress may be NULL. On failure no file is left.
 * TERN_ERR_NAME: an unknown preset (the message says how to list the known ones); TERN_ERR_IO,
 * TERN_ERR_EXISTS, TERN_ERR_NOMEM.
 */
TERN_MUST_CHECK tern_status tern_synth(const char *preset, const char *out_path, tern_out_mode mode,
                                       uint64_t seed, tern_synth_progress *progress, void *user,
                                       tern_error *err);

#endif
