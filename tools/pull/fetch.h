/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_TOOLS_PULL_FETCH_H
#define TERN_TOOLS_PULL_FETCH_H

/*
 * Fetches files from the Hugging Face Hub, by its public HTTP interface, into the folder of
 * tools/hub/hub_cache.h. What clients of the Hub heed counts here too: HF_ENDPOINT, HF_TOKEN,
 * HF_TOKEN_PATH, HF_HUB_OFFLINE.
 */

#include "tools/cli/options.h"
#include "tools/hub/hub_name.h"

/*
 * Fetches the model that a name means with all its parts; where a repository has no GGUF file, its
 * safetensors files and what belongs to them. What is there already is not fetched again. Prints
 * the path of the first file, or of the folder. The exit status, after a complaint unless it is
 * EXIT_DONE. A part of a file that has come stays for the next time, unless its hash is wrong.
 */
int fetch_model(const options *o, const hub_name *name);

#endif
