/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_TOOLS_EVAL_PERPLEXITY_RECORD_H
#define TERN_TOOLS_EVAL_PERPLEXITY_RECORD_H

/* The document of tern perplexity --record. */

#include "tools/eval/perplexity.h"
#include "tools/load/loader.h"
#include "tools/prompt/text_file.h"

/* A finished measurement; everything is borrowed. */
typedef struct perplexity_record {
    const options *o;
    const loaded *l;
    const text_file *text;
    const perplexity_params *params; /* with the means of its windows */
    const perplexity_result *result;
} perplexity_record;

/* Writes the document under --record's name. Returns the exit status, after a complaint unless it
 * is EXIT_DONE. */
int perplexity_write_record(const perplexity_record *m);

#endif
