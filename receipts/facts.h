/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_RECEIPTS_FACTS_H
#define TERN_RECEIPTS_FACTS_H

/* The parts of a receipt that describe rather than prove; each returns a new tree, or NULL. */

#include "receipts/document.h"
#include "tern/inspect.h"

/*
 * Family of a row in the vocabulary of other validators: "i2s_gemv" (ternary products by
 * multiplication), "tl1_matmul", "tl2_matmul" (by table lookup), "rope_apply", "attention_real";
 * NULL for rows of no family.
 */
const char *facts_family(const tern_kernel_row *row);

/* The family of products of a ternary layout; NULL for other layouts. */
const char *facts_layout_family(tern_layout layout);

/* Rows that the session has executed, then the families they belong to. */
json_t *facts_kernels(const tern_session *session);

/* "mock" as soon as any name contains that, in capitals or not; else "real". */
const char *facts_compute_path(const json_t *kernels);

/*
 * Weights by format of the matrices that are multiplied by, {"i2_s": 2083520512, ...}, and the
 * format that most weights of the blocks have, in capitals: "I2_S".
 */
json_t *facts_weights(const tern_model *model, char quantization_type[16]);

/* The time: RFC 3339, UTC. */
json_t *facts_now(void);

/* Ids as an array. */
json_t *facts_ids(const int32_t *ids, size_t n);

/* SHA-256 of ids as little-endian 32-bit integers. */
void facts_hash_ids(const int32_t *ids, size_t n, char hex[RECEIPT_HEX]);
void facts_hash(const void *bytes, size_t size, char hex[RECEIPT_HEX]);

/* The sampler's settings with the seed that was used, and their digest. */
json_t *facts_sampler(const tern_sampler_params *sampling, uint64_t seed);

/* SHA-256 of the text of ids, as tern_detokenize gives it without control tokens; NULL: no memory.
 */
json_t *receipt_hash_text(const tern_tokenizer *t, const int32_t *ids, size_t n);

#endif
