/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_TOOLS_LOAD_PARAMS_H
#define TERN_TOOLS_LOAD_PARAMS_H

/* The parameters with which commands open models; all options for them are read here. */

#include <limits.h>

#include "tern/tern.h"
#include "tools/cli/options.h"

/*
 * Reads every option that sets a parameter. Parameters of options that the command does not take
 * keep their defaults. The path of the cache may be in `cache`, which must live until the model is
 * open. Every error is one of usage.
 */
TERN_MUST_CHECK tern_status params_read(const options *o, char cache[PATH_MAX],
                                        tern_model_params *params, tern_error *err);

/* Reads how ternary tensors are stored: --i2s-layout, --i2s-map, --tl-tiles. TERN_ERR_ARG: wrong
 * usage. */
TERN_MUST_CHECK tern_status params_read_codes(const options *o, tern_model_params *params,
                                              tern_error *err);

/* The layout that --layout names; NULL: none. */
const char *params_layout(const options *o);

/* The chat format that --chat-template names; NULL: the one of the model's template. */
const char *params_chat_format(const options *o);

/* The folder for files that can be regenerated; it lies in the options or in path. NULL: there is
 * none. */
const char *params_cache(const options *o, char path[PATH_MAX]);

/* True if measurements choose kernels: neither with --no-tune nor with --deterministic. */
bool params_tune(const options *o);

#endif
