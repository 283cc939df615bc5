/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_RECEIPTS_FIELDS_SHARED_H
#define TERN_RECEIPTS_FIELDS_SHARED_H

/* Rows that several tables of fields share (fields.h). Rows below a row follow it. */

#define MUST(path, type)                                                                           \
    { path, FIELD_##type, false, NULL, 0 }
#define MAY(path, type)                                                                            \
    { path, FIELD_##type, true, NULL, 0 }
#define CHOICE(path, words)                                                                        \
    { path, FIELD_TEXT, false, words, 0 }
#define MAY_CHOICE(path, words)                                                                    \
    { path, FIELD_TEXT, true, words, 0 }

/* Rows that only one kind has. */
#define OF(kind, path, type)                                                                       \
    { path, FIELD_##type, false, NULL, 1u << DOCUMENT_##kind }

/* clang-format off: one row a line */

/* The model; the same in receipts of runs and of benchmarks. */
#define MODEL_ROWS                                                                                 \
    MUST("model_info", OBJECT), MUST("model_info.model_path", ANY_TEXT),                           \
        MUST("model_info.sha256", HASH), MUST("model_info.file_bytes", COUNT),                     \
        MUST("model_info.files", LIST), MUST("model_info.files[]", OBJECT),                        \
        MUST("model_info.files[].path", ANY_TEXT), MUST("model_info.files[].bytes", COUNT),        \
        MUST("model_info.files[].sha256", HASH), MUST("model_info.architecture", TEXT),            \
        MUST("model_info.name", ANY_TEXT), MUST("model_info.quantization_type", TEXT),             \
        MUST("model_info.weight_formats", OBJECT), MUST("model_info.weight_formats.*", COUNT),     \
        CHOICE("model_info.i2s_layout", "a b c d"), MAY("model_info.i2s_map", ANY_TEXT),           \
        MAY("model_info.tl_tiles", ANY_TEXT), MAY("model_info.long_context", BOOL),                \
        MUST("model_info.pre_tokenizer", ANY_TEXT),                                                \
        MAY_CHOICE("model_info.pre_tokenizer_from", "model asked"),                                \
        MAY("model_info.tokenizer", OBJECT), MUST("model_info.tokenizer.path", ANY_TEXT),          \
        MUST("model_info.tokenizer.sha256", HASH), MUST("model_info.layers", COUNT),               \
        MAY("model_info.experts", COUNT), MUST("model_info.hidden_size", COUNT),                   \
        MUST("model_info.ffn_size", COUNT), MUST("model_info.num_attention_heads", COUNT),         \
        MUST("model_info.num_key_value_heads", COUNT), MUST("model_info.head_dim", COUNT),         \
        MUST("model_info.vocab_size", COUNT), MUST("model_info.context_length", COUNT),            \
        MUST("model_info.parameters", COUNT), MUST("model_info.weight_bytes", COUNT)

#define MACHINE_ROWS                                                                               \
    MUST("machine", OBJECT), MUST("machine.cpu", ANY_TEXT), MUST("machine.cores", COUNT),          \
        CHOICE("machine.architecture", "x86_64 aarch64 other"), MUST("machine.os", TEXT),          \
        MUST("machine.instruction_sets", LIST), MUST("machine.instruction_sets[]", TEXT),          \
        MUST("versions", OBJECT), MUST("versions.tern", TEXT), MUST("versions.compiler", TEXT),    \
        MAY("versions.commit", TEXT), MAY("versions.numerics", COUNT)

/* Settings of the sampler. */
#define SAMPLER_ROWS                                                                               \
    MUST("sampler", OBJECT), MUST("sampler.temperature", NUMBER), MUST("sampler.top_k", COUNT),    \
        MUST("sampler.top_p", NUMBER), MUST("sampler.min_p", NUMBER),                              \
        MUST("sampler.repetition_penalty", NUMBER), MUST("sampler.presence_penalty", SIGNED),      \
        MUST("sampler.frequency_penalty", SIGNED), MUST("sampler.repeat_last_n", COUNT),           \
        MUST("sampler.logit_bias", LIST), MUST("sampler.logit_bias[]", OBJECT),                    \
        MUST("sampler.logit_bias[].token", COUNT), MUST("sampler.logit_bias[].bias", SIGNED),      \
        MUST("sampler.seed", TEXT), MUST("sampler.sha256", HASH)

/* Accuracy of products. */
#define ACCURACY_ROWS                                                                              \
    MUST("test_results.accuracy_tests", OBJECT), MUST("test_results.accuracy_tests.*", OBJECT),    \
        MUST("test_results.accuracy_tests.*.mse", NUMBER),                                         \
        MUST("test_results.accuracy_tests.*.tolerance", NUMBER),                                   \
        MUST("test_results.accuracy_tests.*.passed", BOOL),                                        \
        MAY("test_results.accuracy_tests.*.inputs", TEXT),                                         \
        MUST("test_results.accuracy_tests.*.tensor", TEXT),                                        \
        MUST("test_results.accuracy_tests.*.gemv", TEXT),                                          \
        MUST("test_results.accuracy_tests.*.gemm", TEXT)

/* The last rows of every document. */
#define SEAL_ROWS                                                                                  \
    MUST("digest", OBJECT), CHOICE("digest.algorithm", RECEIPT_DIGEST),                            \
        MUST("digest.value", HASH), MAY("signature", OBJECT),                                      \
        CHOICE("signature.algorithm", "ed25519"), MUST("signature.public_key", HASH),              \
        MUST("signature.value", KEY)

/* Prefill and decoding at one depth. Optional rows are missing in early receipts. */
#define POINT_ROWS                                                                                 \
    MAY("benchmark.threads", COUNT), MUST("benchmark.prompt_tokens", COUNT),                       \
        MUST("benchmark.generated_tokens", COUNT), MUST("benchmark.depth", COUNT),                 \
        MUST("benchmark.prefill_tps", NUMBER), MUST("benchmark.prefill_spread_percent", NUMBER),   \
        MUST("benchmark.decode_tps", NUMBER), MUST("benchmark.decode_spread_percent", NUMBER),     \
        MUST("benchmark.first_token_ms", NUMBER), MUST("benchmark.p50_ms", NUMBER),                \
        MUST("benchmark.p95_ms", NUMBER), MUST("benchmark.bytes_per_token", COUNT),                \
        MAY("benchmark.cache_bytes", COUNT), MAY("benchmark.head_rows", NUMBER),                   \
        MUST("benchmark.bandwidth_gbs", NUMBER), MUST("benchmark.read_gbs", NUMBER),               \
        MUST("benchmark.bandwidth_fraction", NUMBER), MAY("benchmark.joules_per_token", NUMBER),   \
        MAY("benchmark.rounds", OBJECT), SERIES_ROWS("benchmark.rounds.prefill_tps"),              \
        SERIES_ROWS("benchmark.rounds.first_token_ms"),                                            \
        SERIES_ROWS("benchmark.rounds.decode_tps"), SERIES_ROWS("benchmark.rounds.p50_ms"),        \
        SERIES_ROWS("benchmark.rounds.p95_ms"), SERIES_ROWS("benchmark.rounds.read_gbs"),          \
        SERIES_ROWS("benchmark.rounds.head_rows"),                                                 \
        SERIES_ROWS("benchmark.rounds.joules_per_token")

#define SERIES_ROWS(path) MUST(path, LIST), MUST(path "[]", NUMBER)

/* Further rows of a receipt of tern bench. */
#define FIGURE_ROWS                                                                                \
    {"benchmark", FIELD_OBJECT, true, NULL, 1u << DOCUMENT_RUN}, POINT_ROWS,                       \
        MUST("benchmark.repeat", COUNT), MUST("benchmark.rss_mib", NUMBER),                        \
        MAY("benchmark.attention_bytes", COUNT), MAY("benchmark.feed_forward_bytes", COUNT),       \
        MAY("benchmark.head_bytes", COUNT), MAY("benchmark.mb_per_token", NUMBER),                 \
        MAY("benchmark.bytes_touched", NUMBER), MAY("benchmark.coverage", NUMBER),                 \
        MAY("benchmark.read_low_gbs", NUMBER), MAY("benchmark.read_high_gbs", NUMBER),             \
        MAY("benchmark.prefill_gweights", NUMBER), MAY("benchmark.decode_gweights", NUMBER),       \
        MAY("benchmark.operations_per_byte", NUMBER), MAY("benchmark.peak_gmacs", NUMBER),         \
        MAY("benchmark.peak_isa", TEXT), MAY("benchmark.peak_unit", TEXT),                         \
        MAY("benchmark.prefill_peak_fraction", NUMBER),                                            \
        MAY("benchmark.decode_peak_fraction", NUMBER), MAY("benchmark.load_ms", NUMBER),           \
        MAY("benchmark.first_token_with_load_ms", NUMBER), MAY("benchmark.kv_bytes", COUNT)

/* clang-format on */
#endif
