/* SPDX-License-Identifier: Apache-2.0 */
/* The presets of tern_synth. */
#include <stdio.h>
#include <string.h>

#include "authoring/synth_internal.h"

#define BITNET_GRAPH                                                                               \
    .architecture = "bitnet-b1.58", .rope_base = 500000.0f, .tokens = TERN_SYNTH_LLAMA3,           \
    .pre = "llama-bpe"

#define BITNET BITNET_GRAPH, .body = TERN_FORMAT_I2_S, .embedding = TERN_FORMAT_F16

/* Every width is a multiple of 256, the block of the TQ formats. */
#define BITNET_TINY_256 BITNET_GRAPH, TINY_256
#define TINY_256                                                                                   \
    .n_layer = 2, .n_embd = 256, .n_ff = 768, .n_head = 4, .n_head_kv = 2, .head_dim = 64,         \
    .n_vocab = 515, .n_special = 10, .n_ctx = 512, .score_gain = SHARP

#define LLAMA .architecture = "llama", .tokens = TERN_SYNTH_CHATML, .pre = "smollm"

/* Blocks of 32 columns. 24 values per head leave a tail of 8 lanes, 307 tokens leave a tail of 3
 * rows. */
#define LLAMA_TINY_BLOCKS                                                                          \
    LLAMA, .n_layer = 2, .n_embd = 96, .n_ff = 160, .n_head = 4, .n_head_kv = 2, .head_dim = 24,   \
           .n_vocab = 307, .n_special = 3, .n_ctx = 512, .rope_base = 10000.0f,                    \
           .score_gain = SHARP

/* Super-blocks of 256 columns. */
#define LLAMA_TINY_SUPERS                                                                          \
    LLAMA, .n_layer = 2, .n_embd = 256, .n_ff = 512, .n_head = 4, .n_head_kv = 2, .head_dim = 64,  \
           .n_vocab = 307, .n_special = 3, .n_ctx = 512, .rope_base = 10000.0f,                    \
           .score_gain = SHARP

/* Float formats can have any width. */
#define LLAMA_TINY_FLOATS                                                                          \
    LLAMA, .n_layer = 2, .n_embd = 88, .n_ff = 150, .n_head = 4, .n_head_kv = 2, .head_dim = 22,   \
           .n_vocab = 307, .n_special = 3, .n_ctx = 512, .rope_base = 10000.0f,                    \
           .score_gain = SHARP

/* Heads whose width is not n_embd / n_head, as in Qwen 3. */
#define QWEN_TINY                                                                                  \
    .tokens = TERN_SYNTH_CHATML, .pre = "qwen2", .n_layer = 2, .n_embd = 96, .n_ff = 160,          \
    .n_head = 4, .n_head_kv = 2, .head_dim = 32, .n_vocab = 307, .n_special = 3, .n_ctx = 512,     \
    .rope_base = 1000000.0f, .score_gain = SHARP, .body = TERN_FORMAT_Q4_0,                        \
    .embedding = TERN_FORMAT_Q8_0

/* Shared by small models with delta nets in two of three layers, and their experts. */
#define DELTAS_TINY                                                                                \
    .tokens = TERN_SYNTH_CHATML, .n_layer = 3, .n_embd = 96, .n_head = 4, .n_head_kv = 2,          \
    .head_dim = 32, .n_rot = 8, .n_keys = 2, .n_states = 4, .state_dim = 40, .period = 2,          \
    .n_vocab = 307, .n_special = 3, .n_ctx = 512, .rope_base = 1000000.0f, .score_gain = SHARP,    \
    .embedding = TERN_FORMAT_Q8_0, .output_head = true
#define DELTAS_EXPERTS .n_ff = 64, .n_ff_shared = 160, .n_expert = 6, .n_used = 2

/* Shared by small models with blocks of 32 columns, whatever their architecture. */
#define FAMILY_TINY FAMILY_TINY_BUT(2)
#define FAMILY_TINY_BUT(layers) FAMILY_TIED_TINY(layers), .output_head = true
#define FAMILY_TIED_TINY(layers)                                                                   \
    .tokens = TERN_SYNTH_CHATML, .pre = "qwen2", .n_layer = (layers), .n_embd = 96, .n_ff = 160,   \
    .n_head = 4, .n_head_kv = 2, .head_dim = 32, .n_vocab = 307, .n_special = 3, .n_ctx = 512,     \
    .rope_base = 10000.0f, .score_gain = SHARP, .embedding = TERN_FORMAT_Q8_0

/* The same without a width of the feed-forward part: experts have a width of their own. */
#define EXPERTS_TINY                                                                               \
    .tokens = TERN_SYNTH_CHATML, .pre = "qwen2", .n_layer = 2, .n_embd = 96, .n_head = 4,          \
    .n_head_kv = 2, .head_dim = 32, .n_vocab = 307, .n_special = 3, .n_ctx = 512,                  \
    .score_gain = SHARP, .embedding = TERN_FORMAT_Q8_0, .output_head = true

/* Maple: ternary experts; three of four layers have a window. */
#define MAPLE                                                                                      \
    .architecture = "maple", .tokens = TERN_SYNTH_CHATML, .pre = "qwen2", .n_special = 3,          \
    .rope_base = 1000000.0f, .body = TERN_FORMAT_TQ2_0, .embedding = TERN_FORMAT_F16,              \
    .output_head = true, .wide_head = true

/* gpt-oss: experts in MXFP4 with biases, sinks, a window in every other layer. */
#define GPT_OSS GPT_OSS_GRAPH, .body = TERN_FORMAT_Q8_0, .experts = TERN_FORMAT_MXFP4
#define GPT_OSS_GRAPH                                                                              \
    .architecture = "gpt-oss", .tokens = TERN_SYNTH_CHATML, .pre = "gpt-4o",                       \
    .rope_base = 150000.0f, .yarn = 32.0f, .embedding = TERN_FORMAT_Q8_0, .biases = true,          \
    .output_head = true

/* Every width is a multiple of 128. */
#define BONSAI_TINY                                                                                \
    .architecture = "qwen3", .tokens = TERN_SYNTH_CHATML, .pre = "qwen2", .n_layer = 2,            \
    .n_embd = 256, .n_ff = 384, .n_head = 4, .n_head_kv = 2, .head_dim = 64, .n_vocab = 307,       \
    .n_special = 3, .n_ctx = 512, .rope_base = 1000000.0f, .score_gain = SHARP

/*
 * Falcon 3: heads of 256 in four groups, whatever the width; the llama architecture with ternary
 * matrices, float embeddings and a separate float head. Falcon-E: the same graph with tied
 * embeddings.
 */
#define FALCON_TINY                                                                                \
    .architecture = "llama", .tokens = TERN_SYNTH_CHATML, .n_layer = 2, .n_embd = 128,             \
    .n_ff = 256, .n_vocab = 307, .n_special = 3, .n_ctx = 512, .score_gain = SHARP,                \
    .body = TERN_FORMAT_I2_S, .embedding = TERN_FORMAT_F16

#define SMOLLM2_135M                                                                               \
    LLAMA, .n_layer = 30, .n_embd = 576, .n_ff = 1536, .n_head = 9, .n_head_kv = 3,                \
           .head_dim = 64, .n_vocab = 49152, .n_special = 17, .n_ctx = 8192,                       \
           .rope_base = 100000.0f, .score_gain = SOFT

/*
 * Sharp attention makes the next token depend on the whole context, not only on the last token, and
 * lets greedy decoding wander. Through many layers it also makes the model chaotic: one activation
 * that rounds the other way changes the logits visibly. So deep models have less of it.
 */
#define SHARP 2.0f
#define SOFT 1.4f

static const tern_synth_model models[] = {
    {{"bitnet-2b", "BitNet b1.58 2B4T: 30 layers of 2560, I2_S, F16 embeddings (1.2 GB)"},
     BITNET,
     .n_layer = 30,
     .n_embd = 2560,
     .n_ff = 6912,
     .n_head = 20,
     .n_head_kv = 5,
     .head_dim = 128,
     .n_vocab = 128256,
     .n_special = 256,
     .n_ctx = 4096,
     .score_gain = SOFT},
    {{"bitnet-tiny", "the bitnet-b1.58 graph with 2 layers of 256, for tests (0.6 MB)"},
     BITNET,
     .n_layer = 2,
     .n_embd = 256,
     .n_ff = 640,
     .n_head = 4,
     .n_head_kv = 2,
     .head_dim = 64,
     .n_vocab = 515,
     .n_special = 10,
     .n_ctx = 512,
     .score_gain = SHARP},
    {{"bitnet-tiny-odd", "bitnet-tiny with widths that are not a multiple of 128"},
     BITNET,
     .n_layer = 2,
     .n_embd = 192,
     .n_ff = 320,
     .n_head = 4,
     .n_head_kv = 2,
     .head_dim = 48,
     .n_vocab = 515,
     .n_special = 10,
     .n_ctx = 512,
     .score_gain = SHARP},
    {{"bitnet-tiny-tq1_0", "bitnet-tiny in TQ1_0, with TQ2_0 embeddings"},
     BITNET_TINY_256,
     .body = TERN_FORMAT_TQ1_0,
     .embedding = TERN_FORMAT_TQ2_0},
    {{"bitnet-tiny-tq2_0", "bitnet-tiny in TQ2_0, with TQ1_0 embeddings"},
     BITNET_TINY_256,
     .body = TERN_FORMAT_TQ2_0,
     .embedding = TERN_FORMAT_TQ1_0},
    {{"llama-tiny-q4_0", "the llama graph with 2 layers of 96, Q4_0, for tests"},
     LLAMA_TINY_BLOCKS,
     .body = TERN_FORMAT_Q4_0,
     .embedding = TERN_FORMAT_Q4_0},
    {{"llama-tiny-q4_1", "llama-tiny in Q4_1, with Q8_0 embeddings and an output head"},
     LLAMA_TINY_BLOCKS,
     .body = TERN_FORMAT_Q4_1,
     .embedding = TERN_FORMAT_Q8_0,
     .output_head = true},
    {{"llama-tiny-q5_0", "llama-tiny in Q5_0"},
     LLAMA_TINY_BLOCKS,
     .body = TERN_FORMAT_Q5_0,
     .embedding = TERN_FORMAT_Q5_0},
    {{"llama-tiny-q5_1", "llama-tiny in Q5_1"},
     LLAMA_TINY_BLOCKS,
     .body = TERN_FORMAT_Q5_1,
     .embedding = TERN_FORMAT_Q5_1},
    {{"llama-tiny-iq4_nl", "llama-tiny in IQ4_NL"},
     LLAMA_TINY_BLOCKS,
     .body = TERN_FORMAT_IQ4_NL,
     .embedding = TERN_FORMAT_IQ4_NL},
    {{"llama-tiny-mxfp4", "llama-tiny in MXFP4"},
     LLAMA_TINY_BLOCKS,
     .body = TERN_FORMAT_MXFP4,
     .embedding = TERN_FORMAT_MXFP4},
    {{"llama-tiny-q8_0", "llama-tiny in Q8_0"},
     LLAMA_TINY_BLOCKS,
     .body = TERN_FORMAT_Q8_0,
     .embedding = TERN_FORMAT_Q8_0},
    {{"llama-tiny-iq4_xs", "llama-tiny in IQ4_XS, 256 wide"},
     LLAMA_TINY_SUPERS,
     .body = TERN_FORMAT_IQ4_XS,
     .embedding = TERN_FORMAT_IQ4_XS},
    {{"llama-tiny-nvfp4", "llama-tiny in NVFP4, 256 wide"},
     LLAMA_TINY_SUPERS,
     .body = TERN_FORMAT_NVFP4,
     .embedding = TERN_FORMAT_NVFP4},
    {{"llama-tiny-q3_k", "llama-tiny in Q3_K, 256 wide, with an output head"},
     LLAMA_TINY_SUPERS,
     .body = TERN_FORMAT_Q3_K,
     .embedding = TERN_FORMAT_Q3_K,
     .output_head = true},
    {{"llama-tiny-q2_k", "llama-tiny in Q2_K, 256 wide"},
     LLAMA_TINY_SUPERS,
     .body = TERN_FORMAT_Q2_K,
     .embedding = TERN_FORMAT_Q2_K},
    {{"llama-tiny-q4_k", "llama-tiny in Q4_K, 256 wide, with Q6_K embeddings"},
     LLAMA_TINY_SUPERS,
     .body = TERN_FORMAT_Q4_K,
     .embedding = TERN_FORMAT_Q6_K},
    {{"llama-tiny-q5_k", "llama-tiny in Q5_K, 256 wide, with an output head"},
     LLAMA_TINY_SUPERS,
     .body = TERN_FORMAT_Q5_K,
     .embedding = TERN_FORMAT_Q4_K,
     .output_head = true},
    {{"llama-tiny-q6_k", "llama-tiny in Q6_K, 256 wide, with an output head"},
     LLAMA_TINY_SUPERS,
     .body = TERN_FORMAT_Q6_K,
     .embedding = TERN_FORMAT_Q5_K,
     .output_head = true},
    {{"llama-tiny-iq2_s", "llama-tiny in IQ2_S, 256 wide, with Q4_K embeddings"},
     LLAMA_TINY_SUPERS,
     .body = TERN_FORMAT_IQ2_S,
     .embedding = TERN_FORMAT_Q4_K},
    {{"llama-tiny-iq3_s", "llama-tiny in IQ3_S, 256 wide, with an output head"},
     LLAMA_TINY_SUPERS,
     .body = TERN_FORMAT_IQ3_S,
     .embedding = TERN_FORMAT_IQ3_S,
     .output_head = true},
    {{"llama-tiny-iq3_xxs", "llama-tiny in IQ3_XXS, 256 wide, with an output head"},
     LLAMA_TINY_SUPERS,
     .body = TERN_FORMAT_IQ3_XXS,
     .embedding = TERN_FORMAT_IQ3_XXS,
     .output_head = true},
    {{"llama-tiny-iq2_xs", "llama-tiny in IQ2_XS, 256 wide, with an output head"},
     LLAMA_TINY_SUPERS,
     .body = TERN_FORMAT_IQ2_XS,
     .embedding = TERN_FORMAT_IQ2_XS,
     .output_head = true},
    {{"llama-tiny-iq2_xxs", "llama-tiny in IQ2_XXS, 256 wide, with an output head"},
     LLAMA_TINY_SUPERS,
     .body = TERN_FORMAT_IQ2_XXS,
     .embedding = TERN_FORMAT_IQ2_XXS,
     .output_head = true},
    {{"llama-tiny-iq1_s", "llama-tiny in IQ1_S, 256 wide, with an output head"},
     LLAMA_TINY_SUPERS,
     .body = TERN_FORMAT_IQ1_S,
     .embedding = TERN_FORMAT_IQ1_S,
     .output_head = true},
    {{"llama-tiny-iq1_m", "llama-tiny in IQ1_M, 256 wide, with an output head"},
     LLAMA_TINY_SUPERS,
     .body = TERN_FORMAT_IQ1_M,
     .embedding = TERN_FORMAT_IQ1_M,
     .output_head = true},
    {{"qwen2-tiny", "the qwen2 graph with 2 layers of 96, Q4_0: biases of q, k and v"},
     QWEN_TINY,
     .architecture = "qwen2",
     .biases = true},
    {{"qwen3-tiny", "the qwen3 graph with 2 layers of 96, Q4_0: norms of each head"},
     QWEN_TINY,
     .architecture = "qwen3",
     .output_head = true},
    {{"qwen35-tiny", "the qwen35 graph with 3 layers of 96, Q4_0: delta nets in two of them"},
     DELTAS_TINY,
     .architecture = "qwen35",
     .pre = "qwen35",
     .n_ff = 160,
     .body = TERN_FORMAT_Q4_0},
    {{"qwen35moe-tiny", "the same with experts, Q8_0: 2 of 6 of 64, and one for all of 160"},
     DELTAS_TINY,
     DELTAS_EXPERTS,
     .architecture = "qwen35moe",
     .pre = "qwen35",
     .body = TERN_FORMAT_Q8_0},
    {{"qwen3next-tiny",
      "the qwen3next graph of that size, Q4_0: states of a head beside each other"},
     DELTAS_TINY,
     DELTAS_EXPERTS,
     .architecture = "qwen3next",
     .pre = "qwen2",
     .body = TERN_FORMAT_Q4_0},
    {{"phi3-tiny", "the phi3 graph with 2 layers of 96, Q4_0: q, k, v in one, longrope, windows"},
     FAMILY_TINY,
     .architecture = "phi3",
     .body = TERN_FORMAT_Q4_0,
     .window = 30,
     .n_rot = 24,
     .n_ctx_original = 256,
     .rope_gain = 1.19f},
    {{"olmo2-tiny", "the olmo2 graph with 2 layers of 96, Q8_0: norms after, of all q and all k"},
     FAMILY_TINY,
     .architecture = "olmo2",
     .body = TERN_FORMAT_Q8_0},
    {{"minicpm-tiny", "the minicpm graph with 2 layers of 96, Q4_1: factors of rows and logits"},
     FAMILY_TINY,
     .architecture = "minicpm",
     .body = TERN_FORMAT_Q4_1,
     .embedding_scale = 12.0f,
     .block_scale = 0.7f,
     .logit_divisor = 1.5f},
    {{"mistral-tiny", "llama-tiny in Q8_0, Q5_0 embeddings, whose layers see 20 positions each"},
     LLAMA_TINY_BLOCKS,
     .body = TERN_FORMAT_Q8_0,
     .embedding = TERN_FORMAT_Q5_0,
     .window = 20},
    {{"trilm-tiny", "TriLM with 2 layers of 256: the llama graph in TQ2_0, F16 embeddings"},
     LLAMA_TINY_SUPERS,
     .body = TERN_FORMAT_TQ2_0,
     .embedding = TERN_FORMAT_F16},
    {{"bitnet-3b-tiny", "1bitLLM's BitNet with 2 layers of 256: SiLU, TQ1_0, F16 embeddings"},
     TINY_256,
     .architecture = "bitnet",
     .rope_base = 10000.0f,
     .tokens = TERN_SYNTH_LLAMA3,
     .pre = "llama-bpe",
     .body = TERN_FORMAT_TQ1_0,
     .embedding = TERN_FORMAT_F16},
    {{"bonsai-tiny-q1_0", "the qwen3 graph with 2 layers of 256 in Q1_0, embeddings too"},
     BONSAI_TINY,
     .body = TERN_FORMAT_Q1_0,
     .embedding = TERN_FORMAT_Q1_0},
    {{"bonsai-tiny-q2_0", "bonsai-tiny in Q2_0, 64 columns a scale, with PTQ1_0 embeddings"},
     BONSAI_TINY,
     .body = TERN_FORMAT_Q2_0,
     .embedding = TERN_FORMAT_PTQ1_0},
    {{"bonsai-tiny-pq2_0", "bonsai-tiny in PQ2_0, 128 columns a scale, with Q2_0 embeddings"},
     BONSAI_TINY,
     .body = TERN_FORMAT_PQ2_0,
     .embedding = TERN_FORMAT_Q2_0},
    {{"bonsai-tiny-ptq1_0", "bonsai-tiny in PTQ1_0, with PQ2_0 embeddings and an output head"},
     BONSAI_TINY,
     .body = TERN_FORMAT_PTQ1_0,
     .embedding = TERN_FORMAT_PQ2_0,
     .output_head = true},
    {{"sherry-tiny", "the llama graph with 2 layers of 256 in STQ1_0, embeddings too"},
     LLAMA_TINY_SUPERS,
     .body = TERN_FORMAT_STQ1_0,
     .embedding = TERN_FORMAT_STQ1_0},
    {{"bonsai2-tiny", "bonsai-tiny in PTQ1_0, rows turned by a Hadamard transform in blocks of 64"},
     BONSAI_TINY,
     .body = TERN_FORMAT_PTQ1_0,
     .embedding = TERN_FORMAT_PQ2_0,
     .output_head = true,
     .hadamard = 64},
    {{"qwen3moe-tiny", "the qwen3moe graph with 2 layers of 96, Q4_0: 2 of 6 experts of 64"},
     EXPERTS_TINY,
     .architecture = "qwen3moe",
     .rope_base = 1000000.0f,
     .n_ff = 64,
     .body = TERN_FORMAT_Q4_0,
     .n_expert = 6,
     .n_used = 2},
    {{"qwen2moe-tiny",
      "the qwen2moe graph with 2 layers of 96, Q8_0: 3 of 6 experts of 64, and one for all of 160"},
     EXPERTS_TINY,
     .architecture = "qwen2moe",
     .rope_base = 1000000.0f,
     .n_ff = 64,
     .n_ff_shared = 160,
     .body = TERN_FORMAT_Q8_0,
     .biases = true,
     .n_expert = 6,
     .n_used = 3},
    {{"olmoe-tiny", "the olmoe graph with 2 layers of 96, F16: 3 of 5 experts of 40"},
     EXPERTS_TINY,
     .architecture = "olmoe",
     .rope_base = 10000.0f,
     .n_ff = 40,
     .body = TERN_FORMAT_F16,
     .n_expert = 5,
     .n_used = 3},
    {{"maple-tiny", "Maple with 4 layers of 256, TQ2_0: 3 of 8 experts, windows of 6 in three"},
     MAPLE,
     .n_layer = 4,
     .n_embd = 256,
     .n_ff = 256,
     .n_head = 4,
     .n_head_kv = 2,
     .head_dim = 64,
     .n_vocab = 307,
     .n_ctx = 512,
     .score_gain = SHARP,
     .window = 6,
     .n_expert = 8,
     .n_used = 3},
    {{"gpt-oss-tiny", "the gpt-oss graph with 4 layers of 96, MXFP4: 2 of 5 experts, windows of 6"},
     GPT_OSS,
     .n_layer = 4,
     .n_embd = 96,
     .n_ff = 64,
     .n_head = 6,
     .n_head_kv = 2,
     .head_dim = 32,
     .n_vocab = 307,
     .n_special = 3,
     .n_ctx = 512,
     .n_ctx_yarn = 64,
     .score_gain = SHARP,
     .window = 6,
     .n_expert = 5,
     .n_used = 2},
    {{"gpt-oss-tiny-nvfp4", "gpt-oss with 2 layers of 128, NVFP4 with factors: 2 of 3 experts"},
     GPT_OSS_GRAPH,
     .body = TERN_FORMAT_NVFP4,
     .experts = TERN_FORMAT_NVFP4,
     .factors = true,
     .n_layer = 2,
     .n_embd = 128,
     .n_ff = 64,
     .n_head = 4,
     .n_head_kv = 2,
     .head_dim = 32,
     .n_vocab = 307,
     .n_special = 3,
     .n_ctx = 512,
     .n_ctx_yarn = 64,
     .score_gain = SHARP,
     .window = 6,
     .n_expert = 3,
     .n_used = 2},
    {{"gpt-oss-20b-cut", "gpt-oss 20B with 2 of its 24 layers and 65,536 tokens (1.3 GB)"},
     GPT_OSS,
     .n_layer = 2,
     .n_embd = 2880,
     .n_ff = 2880,
     .n_head = 64,
     .n_head_kv = 8,
     .head_dim = 64,
     .n_vocab = 65536,
     .n_special = 3,
     .n_ctx = 131072,
     .n_ctx_yarn = 4096,
     .score_gain = SOFT,
     .window = 128,
     .n_expert = 32,
     .n_used = 4},
    {{"gemma2-tiny",
      "the gemma2 graph with 2 layers of 96, Q8_0: soft bounds, windows of 6 in the first"},
     FAMILY_TIED_TINY(2),
     .architecture = "gemma2",
     .body = TERN_FORMAT_Q8_0,
     .window = 6,
     .period = 2},
    {{"gemma3-tiny", "the gemma3 graph with 2 layers of 96, Q8_0: windows of 6 in the first"},
     .architecture = "gemma3",
     .tokens = TERN_SYNTH_CHATML,
     .pre = "qwen2",
     .n_layer = 2,
     .n_embd = 96,
     .n_ff = 160,
     .n_head = 4,
     .n_head_kv = 1,
     .head_dim = 32,
     .n_vocab = 307,
     .n_special = 3,
     .n_ctx = 512,
     .rope_base = 1000000.0f,
     .score_gain = SHARP,
     .body = TERN_FORMAT_Q8_0,
     .embedding = TERN_FORMAT_Q8_0,
     .window = 6,
     .period = 2},
    {{"smollm3-tiny", "the smollm3 graph with 4 layers of 96, Q8_0: the fourth turns nothing"},
     FAMILY_TINY_BUT(4),
     .architecture = "smollm3",
     .body = TERN_FORMAT_Q8_0},
    {{"glm4-tiny",
      "the glm4 graph with 3 layers of 96, Q8_0: heads turn by half, gate and up are one"},
     FAMILY_TINY_BUT(3),
     .architecture = "glm4",
     .body = TERN_FORMAT_Q8_0,
     .n_rot = 16,
     .biases = true},
    {{"hunyuan-tiny", "the hunyuan-dense graph with 2 layers of 96, Q4_0: norms of turned heads"},
     FAMILY_TINY,
     .architecture = "hunyuan-dense",
     .body = TERN_FORMAT_Q4_0},
    {{"mistral3-tiny", "the mistral3 graph with 2 layers of 96, Q4_1: queries grow with positions"},
     FAMILY_TINY,
     .architecture = "mistral3",
     .body = TERN_FORMAT_Q4_1,
     .yarn = 16.0f,
     .n_ctx_yarn = 16,
     .warming = 0.5f},
    {{"cohere2-tiny",
      "the cohere2 graph with 2 layers of 96, Q4_0: both halves of a block read one norm"},
     QWEN_TINY,
     .architecture = "cohere2",
     .window = 6,
     .period = 2},
    {{"exaone4-tiny",
      "the exaone4 graph with 2 layers of 96, Q4_0: the first has a window and turns"},
     FAMILY_TINY,
     .architecture = "exaone4",
     .body = TERN_FORMAT_Q4_0,
     .window = 6,
     .period = 2},
    {{"bitnet-embedding-tiny", "qwen3 with 2 layers of 256, I2_S: a norm before each matrix"},
     TINY_256,
     .architecture = "qwen3",
     .normed = true,
     .rope_base = 1000000.0f,
     .tokens = TERN_SYNTH_CHATML,
     .pre = "qwen2",
     .body = TERN_FORMAT_I2_S,
     .embedding = TERN_FORMAT_F16},
    {{"bitnet-embedding-gemma-tiny",
      "gemma3 with 2 layers of 256, I2_S: a norm before each matrix"},
     TINY_256,
     .architecture = "gemma3",
     .normed = true,
     .rope_base = 10000.0f,
     .tokens = TERN_SYNTH_CHATML,
     .pre = "qwen2",
     .body = TERN_FORMAT_I2_S,
     .embedding = TERN_FORMAT_F16,
     .output_head = true,
     .wide_head = true},
    {{"falcon3-tiny", "Falcon 3 1.58 bit with 2 layers of 128: heads of 256, I2_S, an output head"},
     FALCON_TINY,
     .n_head = 8,
     .n_head_kv = 4,
     .head_dim = 256,
     .rope_base = 1000042.0f,
     .pre = "falcon3",
     .output_head = true,
     .wide_head = true},
    {{"falcon-e-tiny", "Falcon-E with 2 layers of 128: heads of 64, I2_S, tied embeddings"},
     FALCON_TINY,
     .n_head = 4,
     .n_head_kv = 2,
     .head_dim = 64,
     .rope_base = 10000.0f,
     .pre = "falcon_e"},
    {{"llama-tiny-f16", "llama-tiny in F16, 88 wide"},
     LLAMA_TINY_FLOATS,
     .body = TERN_FORMAT_F16,
     .embedding = TERN_FORMAT_F16},
    {{"llama-tiny-bf16", "llama-tiny in BF16, 88 wide"},
     LLAMA_TINY_FLOATS,
     .body = TERN_FORMAT_BF16,
     .embedding = TERN_FORMAT_BF16},
    {{"llama-tiny-f32", "llama-tiny in F32, 88 wide, with an output head"},
     LLAMA_TINY_FLOATS,
     .body = TERN_FORMAT_F32,
     .embedding = TERN_FORMAT_F32,
     .output_head = true},
    {{"smollm2-135m", "SmolLM2 135M: 30 layers of 576, Q4_1, Q8_0 embeddings (98 MB)"},
     SMOLLM2_135M,
     .body = TERN_FORMAT_Q4_1,
     .embedding = TERN_FORMAT_Q8_0},
    {{"smollm2-135m-q8_0", "SmolLM2 135M in Q8_0 (145 MB)"},
     SMOLLM2_135M,
     .body = TERN_FORMAT_Q8_0,
     .embedding = TERN_FORMAT_Q8_0},
    {{"qwen2.5-500m", "Qwen 2.5 0.5B: 24 layers of 896, Q4_0, Q8_0 embeddings (352 MB)"},
     .architecture = "qwen2",
     .tokens = TERN_SYNTH_CHATML,
     .pre = "qwen2",
     .n_layer = 24,
     .n_embd = 896,
     .n_ff = 4864,
     .n_head = 14,
     .n_head_kv = 2,
     .head_dim = 64,
     .n_vocab = 151936,
     .n_special = 3,
     .n_ctx = 32768,
     .rope_base = 1000000.0f,
     .score_gain = SOFT,
     .biases = true,
     .body = TERN_FORMAT_Q4_0,
     .embedding = TERN_FORMAT_Q8_0},
};

enum { N_MODELS = sizeof models / sizeof models[0] };

const tern_synth_preset *tern_synth_preset_at(size_t index) {
    return index < N_MODELS ? &models[index].preset : NULL;
}

tern_status tern_synth_find_model(const char *preset, const tern_synth_model **out,
                                  tern_error *err) {
    for (size_t i = 0; i < N_MODELS; i++) {
        if (strcmp(models[i].preset.name, preset) == 0) {
            *out = &models[i];
            return TERN_OK;
        }
    }
    return tern_fail(err, TERN_ERR_NAME,
                     "unknown preset '%.64s'; there are %d, from %s to %s: tern synth --list",
                     preset, (int)N_MODELS, models[0].preset.name,
                     models[N_MODELS - 1].preset.name);
}
