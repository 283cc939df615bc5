/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_AUTHORING_CONVERT_HF_KEYS_H
#define TERN_AUTHORING_CONVERT_HF_KEYS_H

/*
 * The known keys of config.json, so that a model is converted completely or not at all: each key is
 * read, makes no difference, or is refused. Unknown ones are reported (docs/converting.md).
 */

#include "authoring/convert/hf_config.h"
#include "base/json.h"

/*
 * Checks the members of `root`, the object in the file `path`; `c` holds what hf_config.c has read.
 * Appends the names of unknown keys to `unknown`, separated by commas, as many as fit.
 * TERN_ERR_CONFIG: a key asks for something that is not supported.
 */
TERN_MUST_CHECK tern_status hf_keys_check(const char *path, const tern_json_value *root,
                                          const hf_config *c, char *unknown, size_t size,
                                          tern_error *err);

#endif
