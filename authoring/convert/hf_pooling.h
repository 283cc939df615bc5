/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_AUTHORING_CONVERT_HF_POOLING_H
#define TERN_AUTHORING_CONVERT_HF_POOLING_H

/* How a folder makes vectors of texts: modules.json, and the configuration of its pooling. */

#include "tern/embed.h"

/*
 * Reads FOLDER/modules.json, and config.json in the folder that it names for pooling. Without a
 * modules.json 1_Pooling/config.json counts, and without that *out is TERN_POOLING_NONE. Whether
 * vectors are brought to length 1 makes no difference: tern does it always.
 * TERN_ERR_IO, TERN_ERR_JSON; TERN_ERR_CONFIG: a module or a kind of pooling that tern has not.
 */
TERN_MUST_CHECK tern_status hf_pooling_read(const char *folder, tern_pooling *out, tern_error *err);

#endif
