/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_TOOLS_MODEL_MODEL_FOLDER_H
#define TERN_TOOLS_MODEL_MODEL_FOLDER_H

/*
 * The path of a model in a folder: of the file `name`, with or without ".gguf" or ".ie.json", or,
 * where name is NULL, of the only model there: a GGUF file (of a split model the first part), or
 * the list of an IEBIN folder. A name with a '/' is a path of its own. NULL after a complaint.
 * Lives until the next call.
 */
const char *model_in_folder(const char *folder, const char *name);

/*
 * `name`, or where there is no such file, the path of the model that it names as one of the Hugging
 * Face Hub, if that was fetched (tern pull). NULL after a complaint: it names several. Lives until
 * the next call.
 */
const char *model_or_hub_name(const char *name);

#endif
