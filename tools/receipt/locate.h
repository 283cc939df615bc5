/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_TOOLS_RECEIPT_LOCATE_H
#define TERN_TOOLS_RECEIPT_LOCATE_H

/*
 * Where the files lie that a receipt names. It has the names of files, not their paths; digests say
 * whether what is found is what is meant.
 */

#include <limits.h>

#include "tools/receipt/receipt.h"

/*
 * The model's path: --model-dir and -m, else a file of the recorded name beside the receipt
 * `document` or in the working directory, else the model that comes with tern where that has the
 * name. Folders that a receipt names are not looked at (earlier versions recorded them), and
 * devices, pipes and sockets are not opened. May lie in `path`. NULL after a complaint.
 */
const char *locate_model(const json_t *receipt, const options *o, const char *document,
                         char path[PATH_MAX]);

/* Likewise of a tokenizer of its own file: --tokenizer, else the name beside the receipt or the
 * model, else in the working directory. Never NULL. */
const char *locate_tokenizer(const json_t *receipt, const options *o, const char *document,
                             const char *model, char path[PATH_MAX]);

#endif
