/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_TOOLS_REPLAY_LOCATE_H
#define TERN_TOOLS_REPLAY_LOCATE_H

/*
 * Finds the files that a receipt names. It has their names, not their paths; digests show whether
 * the right files were found.
 */

#include <limits.h>

#include "tools/record/receipt.h"

/*
 * The model's path: from --model-dir and -m; otherwise a file of the recorded name beside the
 * receipt `document` or in the working directory; otherwise the model that comes with tern, if it
 * has the name. Folders in a receipt are ignored (earlier versions recorded them), and devices,
 * pipes and sockets are not opened. The result may be in `path`. NULL after a complaint.
 */
const char *locate_model(const json_t *receipt, const options *o, const char *document,
                         char path[PATH_MAX]);

/* The same without what options say, and without a complaint: NULL if there is none. */
const char *locate_recorded(const json_t *record, const char *document, char path[PATH_MAX]);

/* The path of a separate tokenizer: --tokenizer; otherwise the name beside the receipt or the
 * model, or in the working directory. Never NULL. */
const char *locate_tokenizer(const json_t *receipt, const options *o, const char *document,
                             const char *model, char path[PATH_MAX]);

#endif
