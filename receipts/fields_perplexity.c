/* SPDX-License-Identifier: Apache-2.0 */
/* The fields of a perplexity document, schema 1.0.0; docs/receipts.md says what each means. */

#include "receipts/document.h"
#include "receipts/fields.h"
#include "receipts/fields_shared.h"

static const receipt_field fields[] = {
    ORIGIN_ROWS,
    CHOICE("backend", "cpu cuda"),
    KERNELS_ROWS,
    MUST("deterministic", BOOL),
    MODEL_ROWS,
    MUST("run", OBJECT),
    CHOICE("run.command", "perplexity"),
    MUST("run.isa", TEXT),
    CHOICE("run.layout", "t2r16 t5r16 t5br16 tl1r16 tl2r16 mixed"),
    CHOICE("run.choice", "table tuned asked"),
    CHOICE("run.kv", "f32 f16 q8_0"),
    MAY_CHOICE("run.activations", "int8 fp8 fp8-e5m2 fp16 bf16 fp32"),
    MUST("run.threads", COUNT),
    MUST("perplexity", OBJECT),
    MUST("perplexity.value", NUMBER),
    MUST("perplexity.error", NUMBER),
    MUST("perplexity.low", NUMBER),
    MUST("perplexity.high", NUMBER),
    MUST("perplexity.nll", NUMBER),
    MUST("perplexity.nll_error", NUMBER),
    MUST("perplexity.windows", COUNT),
    MUST("perplexity.ctx", COUNT),
    MUST("perplexity.stride", COUNT),
    MUST("perplexity.scored_tokens", COUNT),
    MUST("perplexity.text", ANY_TEXT),
    MUST("perplexity.text_tokens", COUNT),
    MUST("perplexity.text_sha256", HASH),
    MUST("perplexity.window_nll", LIST),
    MUST("perplexity.window_nll[]", NUMBER),
    MUST("perplexity.rss_mib", NUMBER),
    MACHINE_ROWS,
    MUST("model_hash_seconds", NUMBER),
    SEAL_ROWS,
};

const document_type document_perplexity = {"perplexity",
                                           PERPLEXITY_SCHEMA,
                                           "How well a model predicts a text",
                                           fields,
                                           sizeof fields / sizeof *fields,
                                           true};
