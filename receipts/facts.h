/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_RECEIPTS_FACTS_H
#define TERN_RECEIPTS_FACTS_H

/* The parts of a receipt that describe rather than prove. A json_t is a new tree, or NULL. */

#include "receipts/document.h"
#include "tern/inspect.h"

/*
 * Family of a kernel in the vocabulary of other validators: "i2s_gemv" (ternary products by
 * multiplication), "tl1_matmul", "tl2_matmul" (by table lookup), "rope_apply", "attention_real";
 * NULL for a row without a family.
 */
const char *facts_family(const tern_kernel_row *kernel);

/* The family of products of a ternary layout; NULL for other layouts. */
const char *facts_layout_family(tern_layout layout);

/* Rows that the session has run, then their families. */
json_t *facts_kernels(const tern_session *session);

/* "mock" if any name contains that, in capitals or not; else "real". */
const char *facts_compute_path(const json_t *kernels);

/*
 * Number of weights by format, of the matrices used in products: {"i2_s": 2083520512, ...}. Also
 * the format of most weights in the blocks, in capitals: "I2_S".
 */
json_t *facts_weights(const tern_model *model, char quantization_type[16]);

/* The current time: RFC 3339, UTC. */
json_t *facts_now(void);

/* Ids as an array. */
json_t *facts_ids(const int32_t *ids, size_t n);

/* The number, digest and list of ids: the members of "prompt" and "output" of every receipt. */
json_t *facts_tokens(const int32_t *ids, size_t n);

/* "output": an answer, how it was asked for and how it ended. Everything is borrowed. */
typedef struct facts_answer {
    const int32_t *tokens; /* [n_tokens] */
    size_t n_tokens;
    const char *stop; /* how it ended */
    size_t max_tokens;
    bool ignore_end;
    const char *const *stop_texts; /* [n_stop_texts] */
    size_t n_stop_texts;
    const tern_tokenizer *tokenizer; /* NULL: there is no text */
} facts_answer;
json_t *facts_output(const facts_answer *a);

/* SHA-256 of ids as little-endian 32-bit integers. */
void facts_hash_ids(const int32_t *ids, size_t n, char hex[RECEIPT_HEX]);
void facts_hash(const void *bytes, size_t size, char hex[RECEIPT_HEX]);

/* The sampler's settings with the seed in use, and their digest. */
json_t *facts_sampler(const tern_sampler_params *sampling, uint64_t seed);

/* SHA-256 of the text that tern_detokenize gives for ids, without control tokens; NULL: no
 * memory. */
json_t *receipt_hash_text(const tern_tokenizer *t, const int32_t *ids, size_t n);

#endif
