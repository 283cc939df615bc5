/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_AUTHORING_CONVERT_HF_KEYS_H
#define TERN_AUTHORING_CONVERT_HF_KEYS_H

/*
 * What is known of the keys of config.json, so that a model is converted whole or not at all:
 * each is read, makes no difference, or is refused; others are named (docs/converting.md).
 */

#include "authoring/convert/hf_config.h"
#include "base/json.h"

/*
 * Checks the members of `root`, the object of the file `path`, of a model of which `c` has what
 * hf_config.c read. Names of keys that are not known go to `unknown`, separated by commas, as many
 * as fit. TERN_ERR_CONFIG: a key asks for what is not done.
 */
TERN_MUST_CHECK tern_status hf_keys_check(const char *path, const tern_json_value *root,
                                          const hf_config *c, char *unknown, size_t size,
                                          tern_error *err);

#endif
