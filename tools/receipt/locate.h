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
 * The model's path: --model-dir and -m, else the name beside the receipt `document`, else the path
 * as it was recorded (earlier versions did), else the model that comes with tern. May lie in
 * `path`. NULL after a complaint.
 */
const char *locate_model(const json_t *receipt, const options *o, const char *document,
                         char path[PATH_MAX]);

/* The path of a tokenizer of its own file: --tokenizer, else beside the receipt or the model, else
 * as it was recorded. Never NULL. */
const char *locate_tokenizer(const json_t *receipt, const options *o, const char *document,
                             const char *model, char path[PATH_MAX]);

#endif
