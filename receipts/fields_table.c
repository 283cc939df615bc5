/* SPDX-License-Identifier: Apache-2.0 */
/* The fields of receipts, schema 1.0.0; docs/receipts.md says what each means. */

#include "receipts/document.h"
#include "receipts/fields_shared.h"

static const receipt_field fields[] = {
    MAY("$schema", TEXT),
    MUST("schema_version", TEXT),
    MUST("timestamp", TEXT),
    MUST("compute_path", TEXT),
    CHOICE("backend", "cpu cuda metal"),
    OF(ANSWER, "system_fingerprint", TEXT),
    OF(RUN, "kernels", LIST),
    MUST("kernels[]", TEXT),
    OF(RUN, "deterministic", BOOL),
    OF(RUN, "environment", OBJECT),
    CHOICE("environment.BITNET_DETERMINISTIC", "0 1"),
    MUST("environment.BITNET_SEED", TEXT),
    MUST("environment.RAYON_NUM_THREADS", TEXT),
    CHOICE("environment.BITNET_STRICT_MODE", "0 1"),
    MUST("environment.TERN_VERSION", TEXT),
    MUST("environment.COMPILER", TEXT),
    MUST("environment.OS", TEXT),
    MUST("environment.CPU_BRAND", ANY_TEXT),
    MODEL_ROWS,
    ANSWERED_ROWS,
    MUST("test_results", OBJECT),
    OF(RUN, "test_results.total_tests", COUNT),
    OF(RUN, "test_results.passed", COUNT),
    OF(RUN, "test_results.failed", COUNT),
    OF(RUN, "test_results.skipped", COUNT),
    OF(RUN, "test_results.seconds", NUMBER),
    OF(RUN, "test_results.tests", LIST),
    MUST("test_results.tests[]", OBJECT),
    MUST("test_results.tests[].name", TEXT),
    CHOICE("test_results.tests[].result", "passed failed skipped"),
    ACCURACY_ROWS,
    MUST("test_results.determinism_tests", OBJECT),
    MUST("test_results.determinism_tests.identical_sequences", BOOL),
    MUST("test_results.determinism_tests.runs", COUNT),
    OF(RUN, "test_results.determinism_tests.tokens_per_run", COUNT),
    MAY("test_results.determinism_tests.repetitions", LIST),
    MUST("test_results.determinism_tests.repetitions[]", OBJECT),
    MUST("test_results.determinism_tests.repetitions[].threads", COUNT),
    MUST("test_results.determinism_tests.repetitions[].batch", COUNT),
    MUST("test_results.determinism_tests.repetitions[].same", BOOL),
    OF(RUN, "test_results.kv_cache_tests", OBJECT),
    MUST("test_results.kv_cache_tests.prefill_decode_parity", BOOL),
    MUST("test_results.kv_cache_tests.positions", COUNT),
    MUST("test_results.kv_cache_tests.cache_hit_rate", NUMBER),
    OF(RUN, "performance_baseline", OBJECT),
    MUST("performance_baseline.tokens_generated", COUNT),
    MUST("performance_baseline.total_time_ms", NUMBER),
    MUST("performance_baseline.prefill_time_ms", NUMBER),
    MUST("performance_baseline.decode_time_ms", NUMBER),
    MUST("performance_baseline.tokens_per_second", NUMBER),
    MUST("performance_baseline.first_token_latency_ms", NUMBER),
    MUST("performance_baseline.average_token_latency_ms", NUMBER),
    MUST("performance_baseline.p50_ms", NUMBER),
    MUST("performance_baseline.p95_ms", NUMBER),
    MUST("performance_baseline.logits_hash_ms", NUMBER),
    MUST("performance_baseline.memory_usage_mb", NUMBER),
    MUST("performance_baseline.bytes_per_token", COUNT),
    MUST("performance_baseline.cache_efficiency", OBJECT),
    MUST("performance_baseline.cache_efficiency.kv_cache_hit_rate", NUMBER),
    MUST("performance_baseline.cache_efficiency.positions_reused", COUNT),
    MUST("performance_baseline.cache_efficiency.tokens_evaluated", COUNT),
    MUST("performance_baseline.cache_efficiency.tensor_cache_hits", COUNT),
    MUST("performance_baseline.cache_efficiency.tensor_cache_misses", COUNT),
    OF(RUN, "cross_validation", OBJECT),
    MUST("cross_validation.cpp_reference_available", BOOL),
    MUST("cross_validation.tolerance", NUMBER),
    MUST("cross_validation.parity_tests_passed", COUNT),
    MACHINE_ROWS,
    OF(RUN, "model_hash_seconds", NUMBER),
    /* only of tern bench */
    FIGURE_ROWS,
    SEAL_ROWS,
};

#define FIELDS fields, sizeof fields / sizeof *fields

const document_type document_run = {"receipt", RECEIPT_SCHEMA, "What a run of tern was",
                                    DOCUMENT_RUN, FIELDS};

const document_type document_answer = {"answer", ANSWER_SCHEMA,
                                       "What an answer of tern serve, or in a form, was",
                                       DOCUMENT_ANSWER, FIELDS};

const document_type *document_describe(document_kind kind) {
    return kind == DOCUMENT_RUN ? &document_run : &document_answer;
}
