/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_TOOLS_RECORD_RUN_FACTS_H
#define TERN_TOOLS_RECORD_RUN_FACTS_H

/* Facts of a receipt about files, machine and command line (receipts/facts.h has the others). Each
 * function returns a new tree, or NULL. */

#include "tools/record/receipt.h"

/* "model_info"; NULL after a complaint. */
json_t *facts_model(const loaded *l, const options *o, double *hash_seconds);
/* A part of "model_info": the file's name, how the files are read, and the sizes of vocabulary and
 * context: the model is not hashed. NULL after a complaint. */
json_t *facts_opening(const loaded *l, const options *o);
/* {"path", "sha256"} of a separate tokenizer file; NULL for the model's own. False after a
 * complaint. */
bool facts_tokenizer(const tern_model *model, json_t **out);

json_t *facts_machine(const tern_model *model);
json_t *facts_versions(void);

/*
 * The first keys of a document of measurements by this program: what it is, when it was made and
 * what ran, up to "deterministic".
 */
json_t *facts_measurement(const char *schema, const options *o, const loaded *l);

/* The settings in effect, under the names by which other engines read them. */
json_t *facts_environment(const receipt_run *run);

/*
 * The files of a model, [{"path", "bytes", "sha256"}, ...], and the model's digest: that of its
 * file, or for several files the digest of their hexadecimal digests in sequence. NULL: a file
 * cannot be read, after a complaint, or there was no memory (json_memory_failed).
 */
json_t *facts_files(const tern_model *model, char hex[RECEIPT_HEX]);

#endif
