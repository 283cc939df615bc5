/* SPDX-License-Identifier: Apache-2.0 */
/* The fields of an answer's receipt, schema 1.0.0; docs/receipts.md says what each means. */

#include "receipts/document.h"
#include "receipts/fields.h"
#include "receipts/fields_shared.h"

static const receipt_field fields[] = {
    MUST("$schema", TEXT),
    MUST("schema_version", TEXT),
    MUST("timestamp", TEXT),
    MUST("compute_path", TEXT),
    CHOICE("backend", "cpu"),
    MUST("system_fingerprint", TEXT),
    MODEL_ROWS,
    MUST("run", OBJECT),
    MUST("run.isa", TEXT),
    CHOICE("run.layout", "t2r16 t5r16 tl1r16 tl2r16 mixed"),
    CHOICE("run.kv", "f32 f16 q8_0"),
    MAY_CHOICE("run.activations", "int8 fp8 fp8-e5m2 fp16 bf16 fp32"),
    MUST("run.context", COUNT),
    MUST("run.threads", COUNT),
    SAMPLER_ROWS,
    MUST("prompt", OBJECT),
    MUST("prompt.tokens", COUNT),
    MUST("prompt.ids_sha256", HASH),
    MUST("prompt.ids", LIST),
    MUST("prompt.ids[]", COUNT),
    MUST("output", OBJECT),
    MUST("output.tokens", COUNT),
    CHOICE("output.stop", "end length context stop"),
    MUST("output.max_tokens", COUNT),
    MUST("output.ignore_end", BOOL),
    MUST("output.stop_texts", LIST),
    MUST("output.stop_texts[]", ANY_TEXT),
    MUST("output.drop_space", BOOL),
    MUST("output.text_sha256", HASH),
    MUST("output.ids_sha256", HASH),
    MUST("output.ids", LIST),
    MUST("output.ids[]", COUNT),
    MUST("output.hidden_sha256", HASH),
    MUST("test_results", OBJECT),
    ACCURACY_ROWS,
    MUST("test_results.determinism_tests", OBJECT),
    MUST("test_results.determinism_tests.identical_sequences", BOOL),
    MUST("test_results.determinism_tests.runs", COUNT),
    MACHINE_ROWS,
    SEAL_ROWS,
};

const document_type document_answer = {"answer",
                                       ANSWER_SCHEMA,
                                       "What an answer of tern serve was",
                                       fields,
                                       sizeof fields / sizeof *fields,
                                       false};
