/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_TOOLS_LOAD_MODEL_FOLDER_H
#define TERN_TOOLS_LOAD_MODEL_FOLDER_H

#include <stdbool.h>
#include <stddef.h>

/*
 * The path of a model in a folder: the file `name`, with or without ".gguf" or ".ie.json"; if name
 * is NULL, the only model in the folder: a GGUF file (of a split model the first part), or the list
 * of an IEBIN folder. A name with a '/' is a path and is returned as it is. NULL after a complaint.
 * Valid until the next call.
 */
const char *model_in_folder(const char *folder, const char *name);

/* The models of a folder that holds several, sorted by name; none if it is an IEBIN folder, which
 * is one model, or not a folder. The caller frees each path and the list. False after a complaint.
 */
bool models_in_folder(const char *folder, char ***paths, size_t *n);

/*
 * `name`, or if there is no such file, the path of the model that this short name stands for
 * (tools/hub/short_names.h), or of the fetched model of the Hugging Face Hub that it names
 * (tern pull). NULL after a complaint: the name means several. Valid until the next call.
 */
const char *model_or_hub_name(const char *name);

#endif
