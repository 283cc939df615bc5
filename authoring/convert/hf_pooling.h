/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_AUTHORING_CONVERT_HF_POOLING_H
#define TERN_AUTHORING_CONVERT_HF_POOLING_H

/* How a folder turns hidden states into vectors: modules.json and its pooling configuration. */

#include "tern/embed.h"

/*
 * Reads FOLDER/modules.json, and config.json in the folder that it names for pooling. Without
 * modules.json it reads 1_Pooling/config.json, and without that *out is TERN_POOLING_NONE.
 * Normalization makes no difference: tern always brings vectors to length 1. TERN_ERR_IO,
 * TERN_ERR_JSON; TERN_ERR_CONFIG: a module or a kind of pooling that tern does not have.
 */
TERN_MUST_CHECK tern_status hf_pooling_read(const char *folder, tern_pooling *out, tern_error *err);

#endif
