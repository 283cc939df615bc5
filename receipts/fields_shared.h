/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_RECEIPTS_FIELDS_SHARED_H
#define TERN_RECEIPTS_FIELDS_SHARED_H

/* Rows that several tables of fields share (fields.h). What lies below a row stands after it. */

#define MUST(path, type)                                                                           \
    { path, FIELD_##type, false, NULL }
#define MAY(path, type)                                                                            \
    { path, FIELD_##type, true, NULL }
#define CHOICE(path, words)                                                                        \
    { path, FIELD_TEXT, false, words }
#define MAY_CHOICE(path, words)                                                                    \
    { path, FIELD_TEXT, true, words }

/* clang-format off: one row a line */

/* What was run, the same in receipts of runs and of benchmarks. */
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

/* Kernels that ran, and those that a start took out because they answered wrongly. */
#define KERNELS_ROWS                                                                               \
    MUST("kernels", LIST), MUST("kernels[]", TEXT), MUST("refused_kernels", LIST),                 \
        MUST("refused_kernels[]", OBJECT), MUST("refused_kernels[].kernel", TEXT),                 \
        MUST("refused_kernels[].where", ANY_TEXT)

/* How tokens were picked. */
#define SAMPLER_ROWS                                                                               \
    MUST("sampler", OBJECT), MUST("sampler.temperature", NUMBER), MUST("sampler.top_k", COUNT),    \
        MUST("sampler.top_p", NUMBER), MUST("sampler.min_p", NUMBER),                              \
        MUST("sampler.repetition_penalty", NUMBER), MUST("sampler.presence_penalty", SIGNED),      \
        MUST("sampler.frequency_penalty", SIGNED), MUST("sampler.repeat_last_n", COUNT),           \
        MUST("sampler.logit_bias", LIST), MUST("sampler.logit_bias[]", OBJECT),                    \
        MUST("sampler.logit_bias[].token", COUNT), MUST("sampler.logit_bias[].bias", SIGNED),      \
        MUST("sampler.seed", TEXT), MUST("sampler.sha256", HASH)

/* What the accuracy of products was. */
#define ACCURACY_ROWS                                                                              \
    MUST("test_results.accuracy_tests", OBJECT), MUST("test_results.accuracy_tests.*", OBJECT),    \
        MUST("test_results.accuracy_tests.*.mse", NUMBER),                                         \
        MUST("test_results.accuracy_tests.*.tolerance", NUMBER),                                   \
        MUST("test_results.accuracy_tests.*.passed", BOOL),                                        \
        MAY("test_results.accuracy_tests.*.inputs", TEXT),                                         \
        MUST("test_results.accuracy_tests.*.tensor", TEXT),                                        \
        MUST("test_results.accuracy_tests.*.gemv", TEXT),                                          \
        MUST("test_results.accuracy_tests.*.gemm", TEXT)

/* What every document ends with. */
#define SEAL_ROWS                                                                                  \
    MUST("digest", OBJECT), CHOICE("digest.algorithm", RECEIPT_DIGEST),                            \
        MUST("digest.value", HASH), MAY("signature", OBJECT),                                      \
        CHOICE("signature.algorithm", "ed25519"), MUST("signature.public_key", HASH),              \
        MUST("signature.value", KEY)

/* What documents of measurements begin with. */
#define ORIGIN_ROWS                                                                                \
    MUST("$schema", TEXT), MUST("schema_version", TEXT), MUST("origin", OBJECT),                   \
        CHOICE("origin.kind", "measured imported"), MUST("origin.note", ANY_TEXT),                 \
        MUST("origin.not_recorded", LIST), MUST("origin.not_recorded[]", TEXT),                    \
        MUST("timestamp", TEXT), MUST("compute_path", TEXT)

/* Prefill and decoding at one depth. `p` is the path with its dot; figures that receipts of runs
 * had not from the start are SINCE there. */
#define POINT_ROWS(p, SINCE)                                                                       \
    SINCE(p "threads", COUNT), MUST(p "prompt_tokens", COUNT), MUST(p "generated_tokens", COUNT),  \
        MUST(p "depth", COUNT), MUST(p "prefill_tps", NUMBER),                                     \
        MUST(p "prefill_spread_percent", NUMBER), MUST(p "decode_tps", NUMBER),                    \
        MUST(p "decode_spread_percent", NUMBER), MUST(p "first_token_ms", NUMBER),                 \
        MUST(p "p50_ms", NUMBER), MUST(p "p95_ms", NUMBER), MUST(p "bytes_per_token", COUNT),      \
        SINCE(p "cache_bytes", COUNT), SINCE(p "head_rows", NUMBER),                               \
        MUST(p "bandwidth_gbs", NUMBER), MUST(p "read_gbs", NUMBER),                               \
        MUST(p "bandwidth_fraction", NUMBER), MAY(p "joules_per_token", NUMBER),                   \
        SINCE(p "rounds", OBJECT), SERIES_ROWS(p "rounds.prefill_tps"),                            \
        SERIES_ROWS(p "rounds.first_token_ms"), SERIES_ROWS(p "rounds.decode_tps"),                \
        SERIES_ROWS(p "rounds.p50_ms"), SERIES_ROWS(p "rounds.p95_ms"),                            \
        SERIES_ROWS(p "rounds.read_gbs"), SERIES_ROWS(p "rounds.head_rows"),                       \
        SERIES_ROWS(p "rounds.joules_per_token")

#define SERIES_ROWS(path) MUST(path, LIST), MUST(path "[]", NUMBER)

/* Of the main point alone. */
#define FIGURE_ROWS(SINCE)                                                                         \
    SINCE("benchmark", OBJECT), POINT_ROWS("benchmark.", SINCE), MUST("benchmark.repeat", COUNT),  \
        MUST("benchmark.rss_mib", NUMBER), SINCE("benchmark.attention_bytes", COUNT),              \
        SINCE("benchmark.feed_forward_bytes", COUNT), SINCE("benchmark.head_bytes", COUNT),        \
        SINCE("benchmark.mb_per_token", NUMBER), SINCE("benchmark.bytes_touched", NUMBER),         \
        SINCE("benchmark.coverage", NUMBER), SINCE("benchmark.read_low_gbs", NUMBER),              \
        SINCE("benchmark.read_high_gbs", NUMBER), SINCE("benchmark.prefill_gweights", NUMBER),     \
        SINCE("benchmark.decode_gweights", NUMBER), MAY("benchmark.operations_per_byte", NUMBER),  \
        MAY("benchmark.peak_gmacs", NUMBER), MAY("benchmark.peak_isa", TEXT),                      \
        MAY("benchmark.peak_unit", TEXT), MAY("benchmark.prefill_peak_fraction", NUMBER),          \
        MAY("benchmark.decode_peak_fraction", NUMBER), SINCE("benchmark.load_ms", NUMBER),         \
        SINCE("benchmark.first_token_with_load_ms", NUMBER), SINCE("benchmark.kv_bytes", COUNT)

/* clang-format on */
#endif
