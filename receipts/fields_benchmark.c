/* SPDX-License-Identifier: Apache-2.0 */
/* The fields of a benchmark document, schema 1.0.0; docs/receipts.md says what each means. */

#include "receipts/document.h"
#include "receipts/fields.h"
#include "receipts/fields_shared.h"

/* clang-format off: one row a line */
#define STAGE_ROWS(p)                                                                              \
    MAY(p, OBJECT), MUST(p ".tokens", COUNT), MUST(p ".depth", COUNT), MUST(p ".threads", COUNT),  \
        MUST(p ".work_ms", NUMBER), MUST(p ".wait_ms", NUMBER), MUST(p ".outside_ms", SIGNED),     \
        MUST(p ".whole_ms", NUMBER), MUST(p ".rounds", OBJECT),                                    \
        MUST(p ".rounds.outside_ms", LIST), MUST(p ".rounds.outside_ms[]", SIGNED),                \
        SERIES_ROWS(p ".rounds.whole_ms"), MUST(p ".stages", LIST), MUST(p ".stages[]", OBJECT),   \
        MUST(p ".stages[].stage", TEXT), MUST(p ".stages[].work_ms", NUMBER),                      \
        MUST(p ".stages[].work_fraction", NUMBER), MUST(p ".stages[].wait_ms", NUMBER),            \
        MUST(p ".stages[].wait_fraction", NUMBER), MUST(p ".stages[].bytes", NUMBER),              \
        MUST(p ".stages[].gbs", NUMBER), MUST(p ".stages[].gweights", NUMBER),                     \
        MUST(p ".stages[].rounds", OBJECT), SERIES_ROWS(p ".stages[].rounds.work_ms"),             \
        SERIES_ROWS(p ".stages[].rounds.wait_ms")

#define ZERO_ROWS(p)                                                                               \
    MUST(p, OBJECT), MUST(p ".values", COUNT), MUST(p ".zeros", COUNT),                            \
        MUST(p ".zero_groups", OBJECT), MUST(p ".zero_groups.*", NUMBER)
/* clang-format on */

static const receipt_field fields[] = {
    ORIGIN_ROWS,
    CHOICE("backend", "cpu cuda"),
    KERNELS_ROWS,
    MUST("deterministic", BOOL),
    MODEL_ROWS,
    MUST("run", OBJECT),
    CHOICE("run.command", "bench"),
    MUST("run.isa", TEXT),
    MAY("run.device", TEXT),
    MUST("run.disabled", ANY_TEXT),
    CHOICE("run.layout", "t2r16 t5r16 t5br16 tl1r16 tl2r16 mixed"),
    CHOICE("run.choice", "table tuned asked"),
    CHOICE("run.kv", "f32 f16 q8_0"),
    MAY_CHOICE("run.activations", "int8 fp8 fp8-e5m2 fp16 bf16 fp32"),
    MUST("run.context", COUNT),
    MUST("run.batch", COUNT),
    MUST("run.threads", COUNT),
    CHOICE("run.affinity", "auto compact scatter none"),
    MUST("run.numa", TEXT),
    MUST("run.nodes_online", ANY_TEXT),
    MUST("run.strict", BOOL),
    MUST("run.exact_head", BOOL),
    MUST("run.seed", TEXT),
    CHOICE("run.weights", "mapped packed"),
    MUST("run.dequantized_rows", COUNT),
    FIGURE_ROWS(MUST),
    MAY("benchmark.depths", LIST),
    MUST("benchmark.depths[]", OBJECT),
    POINT_ROWS("benchmark.depths[].", MUST),
    MAY("benchmark.thread_counts", LIST),
    MUST("benchmark.thread_counts[]", OBJECT),
    POINT_ROWS("benchmark.thread_counts[].", MUST),
    MAY("benchmark.batches", LIST),
    MUST("benchmark.batches[]", OBJECT),
    MUST("benchmark.batches[].tokens", COUNT),
    MUST("benchmark.batches[].all_ms", NUMBER),
    MUST("benchmark.batches[].all_ratio", NUMBER),
    MUST("benchmark.batches[].pick_ms", NUMBER),
    MUST("benchmark.batches[].pick_ratio", NUMBER),
    MUST("benchmark.batches[].rounds", OBJECT),
    SERIES_ROWS("benchmark.batches[].rounds.all_ms"),
    SERIES_ROWS("benchmark.batches[].rounds.pick_ms"),
    MAY("benchmark.sequences", LIST),
    MUST("benchmark.sequences[]", OBJECT),
    MUST("benchmark.sequences[].n", COUNT),
    MUST("benchmark.sequences[].tps", NUMBER),
    MUST("benchmark.sequences[].each_tps", NUMBER),
    MUST("benchmark.sequences[].p50_ms", NUMBER),
    MUST("benchmark.sequences[].p95_ms", NUMBER),
    MUST("benchmark.sequences[].bytes_per_token", NUMBER),
    MUST("benchmark.sequences[].rounds", OBJECT),
    SERIES_ROWS("benchmark.sequences[].rounds.tps"),
    SERIES_ROWS("benchmark.sequences[].rounds.p50_ms"),
    SERIES_ROWS("benchmark.sequences[].rounds.p95_ms"),
    MAY("benchmark.arrivals", LIST),
    MUST("benchmark.arrivals[]", OBJECT),
    MUST("benchmark.arrivals[].n", COUNT),
    MUST("benchmark.arrivals[].prompt_tokens", COUNT),
    MUST("benchmark.arrivals[].gap_ms", COUNT),
    MUST("benchmark.arrivals[].before_p50_ms", NUMBER),
    MUST("benchmark.arrivals[].before_p95_ms", NUMBER),
    MUST("benchmark.arrivals[].during_p50_ms", NUMBER),
    MUST("benchmark.arrivals[].during_p95_ms", NUMBER),
    MUST("benchmark.arrivals[].first_token_ms", NUMBER),
    MUST("benchmark.arrivals[].rounds", OBJECT),
    SERIES_ROWS("benchmark.arrivals[].rounds.before_p50_ms"),
    SERIES_ROWS("benchmark.arrivals[].rounds.before_p95_ms"),
    SERIES_ROWS("benchmark.arrivals[].rounds.during_p50_ms"),
    SERIES_ROWS("benchmark.arrivals[].rounds.during_p95_ms"),
    SERIES_ROWS("benchmark.arrivals[].rounds.first_token_ms"),
    MAY("benchmark.stages", OBJECT),
    STAGE_ROWS("benchmark.stages.prefill"),
    STAGE_ROWS("benchmark.stages.decode"),
    MAY("benchmark.sparsity", OBJECT),
    ZERO_ROWS("benchmark.sparsity.all"),
    MUST("benchmark.sparsity.layers", LIST),
    ZERO_ROWS("benchmark.sparsity.layers[]"),
    MAY("benchmark.fetch", OBJECT),
    MUST("benchmark.fetch.ahead", COUNT),
    MUST("benchmark.fetch.non_temporal", BOOL),
    MUST("benchmark.fetch.non_temporal_percent", NUMBER),
    MAY("benchmark.touch", OBJECT),
    MUST("benchmark.touch.bytes_per_token", COUNT),
    MUST("benchmark.touch.stride", COUNT),
    MUST("benchmark.touch.tokens", COUNT),
    MUST("benchmark.touch.ms_per_token", NUMBER),
    MUST("benchmark.touch.non_temporal", BOOL),
    MAY("benchmark.touch.non_temporal_percent", NUMBER),
    MAY("benchmark.touch.ahead", COUNT),
    MUST("benchmark.touch.complete", BOOL),
    MACHINE_ROWS,
    MUST("model_hash_seconds", NUMBER),
    SEAL_ROWS,
};

const document_type document_benchmark = {"benchmark",
                                          BENCHMARK_SCHEMA,
                                          "What tern bench measured, with every sample",
                                          fields,
                                          sizeof fields / sizeof *fields,
                                          true};
