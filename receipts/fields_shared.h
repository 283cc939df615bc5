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

/* How a model's files are read. */
#define READING_ROWS                                                                               \
    CHOICE("model_info.i2s_layout", "a b c d"), MAY("model_info.i2s_map", ANY_TEXT),               \
        MAY("model_info.tl_tiles", ANY_TEXT), MAY("model_info.long_context", BOOL),                \
        MUST("model_info.pre_tokenizer", ANY_TEXT),                                                \
        MAY_CHOICE("model_info.pre_tokenizer_from", "model asked"),                                \
        MAY("model_info.tokenizer", OBJECT), MUST("model_info.tokenizer.path", ANY_TEXT),          \
        MUST("model_info.tokenizer.sha256", HASH), MAY("model_info.adapters", LIST),               \
        MUST("model_info.adapters[]", OBJECT), MUST("model_info.adapters[].path", ANY_TEXT),       \
        MUST("model_info.adapters[].sha256", HASH), MUST("model_info.adapters[].scale", SIGNED)

/* The model; the same in receipts of runs and of benchmarks. */
#define MODEL_ROWS                                                                                 \
    MUST("model_info", OBJECT), MUST("model_info.model_path", ANY_TEXT),                           \
        MUST("model_info.sha256", HASH), MUST("model_info.file_bytes", COUNT),                     \
        MUST("model_info.files", LIST), MUST("model_info.files[]", OBJECT),                        \
        MUST("model_info.files[].path", ANY_TEXT), MUST("model_info.files[].bytes", COUNT),        \
        MUST("model_info.files[].sha256", HASH), MUST("model_info.architecture", TEXT),            \
        MUST("model_info.name", ANY_TEXT), MUST("model_info.quantization_type", TEXT),             \
        MUST("model_info.weight_formats", OBJECT), MUST("model_info.weight_formats.*", COUNT),     \
        READING_ROWS, MUST("model_info.layers", COUNT), MAY("model_info.experts", COUNT),          \
        MAY("model_info.shared_experts", COUNT), MAY("model_info.delta_layers", COUNT),            \
        MAY("model_info.delta_matrices", COUNT), MUST("model_info.hidden_size", COUNT),            \
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

/* How an answer was computed, asked for and given; the same in receipts and recordings. */
#define ANSWERED_ROWS                                                                              \
    MUST("run", OBJECT), {"run.command", FIELD_TEXT, false, "run bench", 1u << DOCUMENT_RUN},      \
        MUST("run.isa", TEXT), OF(RUN, "run.disabled", ANY_TEXT), MUST("run.layout", LAYOUT),      \
        MAY_CHOICE("run.choice", "table tuned asked"), CHOICE("run.kv", "f32 f16 q8_0"),           \
        MAY_CHOICE("run.activations", "int8 fp8 fp8-e5m2 fp16 bf16 fp32"),                         \
        MUST("run.context", COUNT), OF(RUN, "run.batch", COUNT), MUST("run.threads", COUNT),       \
        MAY_CHOICE("run.affinity", "auto compact scatter none"), MAY("run.numa", TEXT),            \
        MAY("run.nodes_online", ANY_TEXT), OF(RUN, "run.chat", BOOL), OF(RUN, "run.strict", BOOL), \
        OF(RUN, "run.dequantized_rows", COUNT), SAMPLER_ROWS, MAY("form", OBJECT),                 \
        CHOICE("form.kind", "schema grammar pattern calls"), MAY("form.text", ANY_TEXT),           \
        MAY("form.closed", BOOL), MAY("form.calls", OBJECT), MUST("form.calls.trigger", TEXT),     \
        MUST("form.calls.separator", ANY_TEXT), MAY("form.calls.schema", ANY_TEXT),                \
        MAY("form.calls.open", ANY_TEXT), MAY("form.calls.close", ANY_TEXT),                       \
        MAY("form.calls.at_start", BOOL), MUST("form.calls.free_text", BOOL),                      \
        MUST("form.calls.required", BOOL), MUST("form.calls.single", BOOL),                        \
        MUST("form.calls.tags", LIST), MUST("form.calls.tags[]", OBJECT),                          \
        MUST("form.calls.tags[].begin", ANY_TEXT), MUST("form.calls.tags[].end", ANY_TEXT),        \
        MAY("form.calls.tags[].schema", ANY_TEXT), MAY("form.calls.tags[].comma", ANY_TEXT),       \
        MAY("form.calls.tags[].arguments", LIST), MUST("form.calls.tags[].arguments[]", OBJECT),   \
        MUST("form.calls.tags[].arguments[].begin", ANY_TEXT),                                     \
        MUST("form.calls.tags[].arguments[].end", ANY_TEXT),                                       \
        MUST("form.calls.tags[].arguments[].required", BOOL),                                      \
        MUST("form.calls.tags[].arguments[].instead", BOOL),                                       \
        MAY("form.calls.tags[].arguments[].schema", ANY_TEXT),                                     \
        MAY("form.calls.tags[].arguments[].after_key", ANY_TEXT),                                  \
        MAY("form.calls.tags[].arguments[].words", LIST),                                          \
        MUST("form.calls.tags[].arguments[].words[]", ANY_TEXT), MUST("prompt", OBJECT),           \
        MUST("prompt.tokens", COUNT), MAY("prompt.text_sha256", HASH),                             \
        MAY("prompt.text_from_ids", BOOL), MUST("prompt.ids_sha256", HASH),                        \
        MUST("prompt.ids", LIST), MUST("prompt.ids[]", COUNT), MUST("output", OBJECT),             \
        MUST("output.tokens", COUNT),                                                              \
        {"output.stop", FIELD_TEXT, false, "end length context stop interrupted",                  \
         1u << DOCUMENT_RUN},                                                                      \
        {"output.stop", FIELD_TEXT, false, "end length context stop", 1u << DOCUMENT_ANSWER},      \
        MUST("output.max_tokens", COUNT), MUST("output.ignore_end", BOOL),                         \
        OF(RUN, "output.stop_tokens", LIST), MUST("output.stop_tokens[]", COUNT),                  \
        MUST("output.stop_texts", LIST), MUST("output.stop_texts[]", ANY_TEXT),                    \
        MAY("output.drop_space", BOOL), MAY("output.text_sha256", HASH),                           \
        MUST("output.ids_sha256", HASH), MUST("output.ids", LIST), MUST("output.ids[]", COUNT),    \
        OF(ANSWER, "output.hidden_sha256", HASH), OF(RUN, "output.logits", LIST),                  \
        MUST("output.logits[]", OBJECT), MUST("output.logits[].after", COUNT),                     \
        MUST("output.logits[].sha256", HASH)

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
