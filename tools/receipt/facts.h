/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_TOOLS_RECEIPT_FACTS_H
#define TERN_TOOLS_RECEIPT_FACTS_H

/* The parts of a receipt that describe rather than prove; each returns a new tree, or NULL. */

#include "tools/receipt/receipt.h"

/*
 * Family of a row in the vocabulary of other validators: "i2s_gemv" (ternary products by
 * multiplication), "tl1_matmul", "tl2_matmul" (by table lookup), "rope_apply", "attention_real";
 * NULL for rows of no family.
 */
const char *facts_family(const tern_kernel_row *row);

/* Rows that the session has executed, then the families they belong to. */
json_t *facts_kernels(const tern_session *session);

/* "mock" as soon as any name contains that, in capitals or not; else "real". */
const char *facts_compute_path(const json_t *kernels);

/*
 * Weights by format of the matrices that are multiplied by, {"i2_s": 2083520512, ...}, and the
 * format that most weights of the blocks have, in capitals: "I2_S".
 */
json_t *facts_weights(const tern_model *model, char quantization_type[16]);

/* "model_info"; NULL after a complaint. */
json_t *facts_model(const loaded *l, const options *o, double *hash_seconds);
/* {"path", "sha256"} of a tokenizer from a file of its own, NULL for the model's; false after a
 * complaint. */
bool facts_tokenizer(const tern_model *model, json_t **out);

/* The time: RFC 3339, UTC. */
json_t *facts_now(void);

json_t *facts_machine(const tern_model *model);
json_t *facts_versions(void);

/* Settings under the names that other engines read them from, as they were in effect. */
json_t *facts_environment(const receipt_run *run);

/* Ids as an array. */
json_t *facts_ids(const int32_t *ids, size_t n);

/* SHA-256 of ids as little-endian 32-bit integers. */
void facts_hash_ids(const int32_t *ids, size_t n, char hex[RECEIPT_HEX]);
void facts_hash(const void *bytes, size_t size, char hex[RECEIPT_HEX]);

/* The sampler's settings with the seed that was used, and their digest. */
json_t *facts_sampler(const tern_sampler_params *sampling, uint64_t seed);

/*
 * The files of a model, [{"path", "bytes", "sha256"}, ...], and the model's digest: that of its
 * file, or for several of their digests in hexadecimal, one behind the other. NULL: a
 * file cannot be read, after a complaint, or there was no memory (json_memory_failed).
 */
json_t *facts_files(const tern_model *model, char hex[RECEIPT_HEX]);

#endif
