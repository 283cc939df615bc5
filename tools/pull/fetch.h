/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_TOOLS_PULL_FETCH_H
#define TERN_TOOLS_PULL_FETCH_H

/*
 * Fetches files from the Hugging Face Hub, by its public HTTP interface, into the folder of
 * tools/hub/hub_cache.h. It respects the variables of other clients: HF_ENDPOINT, HF_TOKEN,
 * HF_TOKEN_PATH, HF_HUB_OFFLINE.
 */

#include "tools/cli/options.h"
#include "tools/hub/hub_name.h"

/*
 * Fetches the model that a name means with all its parts. If a repository has no GGUF file, fetches
 * its safetensors files and what belongs to them. Files that are there already are not fetched
 * again. Prints the path of the first file, or of the folder. Returns the exit status, after a
 * complaint unless it is EXIT_DONE. An incomplete file is kept for the next time, unless its hash
 * is wrong.
 */
int fetch_model(const options *o, const hub_name *name);

#endif
