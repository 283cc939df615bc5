/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_TOOLS_EMBED_POOLING_H
#define TERN_TOOLS_EMBED_POOLING_H

/* The pooling for a model's vectors: --pooling, or what its file says. */

#include "tern/embed.h"
#include "tools/cli/options.h"

/* NONE if neither says anything. Warns on standard error if they differ. */
tern_pooling pooling_read(const options *o, const tern_model *model);

#endif
