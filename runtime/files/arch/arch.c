/* SPDX-License-Identifier: Apache-2.0 */

#include "runtime/files/arch/arch.h"

#include <stdio.h>
#include <string.h>

static const tern_arch_defaults bitnet_2b = {.of = "BitNet 2B4T",
                                             .n_layer = 30,
                                             .n_embd = 2560,
                                             .n_ff = 6912,
                                             .n_head = 20,
                                             .n_head_kv = 5,
                                             .n_ctx = 4096,
                                             .norm_eps = 1e-5f,
                                             .rope_base = 500000.0f};

/* Five of six layers see a window. */
static const tern_arch_second_kind gemma3_windowed = {
    .period = 6,
    .windowed = true,
    .kind = {.rope_base = 10000.0f, .rope_scale = 1.0f, .rope_gain = 1.0}};

/* Three of four layers see a window and turn q and k; the fourth does neither. */
static const tern_arch_second_kind fourth_sees_all = {
    .period = 4, .windowed = true, .alone_turned = true};

/* Three of four layers turn q and k, the fourth does not. */
static const tern_arch_second_kind smollm3_turned = {.period = 4, .alone_turned = true};

/* Every other layer sees a window. */
static const tern_arch_second_kind other_windowed = {.period = 2, .windowed = true, .alike = true};

/* Three of four layers are delta nets. */
static const tern_arch_second_kind qwen35_deltas = {.period = 4, .alike = true, .delta = true};
static const tern_arch_second_kind qwen3next_deltas = {
    .period = 4, .alike = true, .delta = true, .grouped = true};

/* Qwen 3.5 and what came before it. */
#define QWEN35 .folders_turn = 0.25f, .gate = TERN_OP_GATE_SILU, .rope = TERN_OP_ROPE_NEOX
#define QWEN35_HAS                                                                                 \
    (TERN_HAS_ATTN_NORM | TERN_HAS_LATE_FFN_NORM | TERN_HAS_QK_NORMS | TERN_HAS_QUERY_GATES)

#define QWEN3 .gate = TERN_OP_GATE_SILU, .rope = TERN_OP_ROPE_NEOX
#define QWEN3_HAS (TERN_HAS_PRE_NORMS | TERN_HAS_QK_NORMS)

/* Scores of Gemma 3 27B are scaled by its width, which its files do not say. */
#define GEMMA3                                                                                     \
    .gate = TERN_OP_GATE_GELU, .rope = TERN_OP_ROPE_NEOX, .scaled_embedding = true,                \
    .width_scaled = 62, .second = &gemma3_windowed
#define GEMMA3_HAS (TERN_HAS_PRE_NORMS | TERN_HAS_POST_NORMS | TERN_HAS_QK_NORMS)

/* Variants with the input norms of BitNet-embedding. */
static const tern_arch qwen3_normed = {
    .name = "qwen3", QWEN3, .has = QWEN3_HAS | TERN_HAS_INPUT_NORMS};
static const tern_arch gemma3_normed = {
    .name = "gemma3", GEMMA3, .has = GEMMA3_HAS | TERN_HAS_INPUT_NORMS, .may_lack_second = true};

static const tern_arch archs[] = {
    {.name = "llama",
     .hf_class = "LlamaForCausalLM",
     .hf_other = "MistralForCausalLM",
     .gate = TERN_OP_GATE_SILU,
     .rope = TERN_OP_ROPE_NORM,
     .has = TERN_HAS_PRE_NORMS | TERN_HAS_QKV_BIAS,
     .may_window = true},
    {.name = "qwen2",
     .hf_class = "Qwen2ForCausalLM",
     .gate = TERN_OP_GATE_SILU,
     .rope = TERN_OP_ROPE_NEOX,
     .has = TERN_HAS_PRE_NORMS | TERN_HAS_QKV_BIAS},
    {.name = "qwen3",
     .hf_class = "Qwen3ForCausalLM",
     QWEN3,
     .has = QWEN3_HAS,
     .normed = &qwen3_normed},
    {.name = "phi3",
     .hf_class = "Phi3ForCausalLM",
     .gate = TERN_OP_GATE_SILU,
     .rope = TERN_OP_ROPE_NEOX,
     .has = TERN_HAS_PRE_NORMS,
     .may_window = true,
     .joined = TERN_JOINS_QKV | TERN_JOINS_GATE_UP},
    {.name = "olmo2",
     .hf_class = "Olmo2ForCausalLM",
     .gate = TERN_OP_GATE_SILU,
     .rope = TERN_OP_ROPE_NEOX,
     .has = TERN_HAS_POST_NORMS | TERN_HAS_WIDE_QK_NORMS},
    {.name = "smollm3",
     .hf_class = "SmolLM3ForCausalLM",
     .gate = TERN_OP_GATE_SILU,
     .rope = TERN_OP_ROPE_NORM,
     .has = TERN_HAS_PRE_NORMS | TERN_HAS_QKV_BIAS,
     .second = &smollm3_turned},
    {.name = "seed_oss",
     .hf_class = "SeedOssForCausalLM",
     .gate = TERN_OP_GATE_SILU,
     .rope = TERN_OP_ROPE_NEOX,
     .has = TERN_HAS_ATTN_NORM | TERN_HAS_LATE_FFN_NORM | TERN_HAS_QKV_BIAS},
    {.name = "ernie4_5",
     .hf_class = "Ernie4_5ForCausalLM",
     .hf_other = "Ernie4_5_ForCausalLM",
     .neighbour_folders = true,
     .gate = TERN_OP_GATE_SILU,
     .rope = TERN_OP_ROPE_NORM,
     .has = TERN_HAS_PRE_NORMS | TERN_HAS_QKV_BIAS},
    {.name = "glm4",
     .hf_class = "Glm4ForCausalLM",
     .neighbour_folders = true,
     .sandwich_folders = true,
     .folders_turn = 0.5f,
     .gate = TERN_OP_GATE_SILU,
     .rope = TERN_OP_ROPE_NORM,
     .has = TERN_HAS_PRE_NORMS | TERN_HAS_POST_NORMS | TERN_HAS_QKV_BIAS,
     .joined = TERN_JOINS_GATE_UP},
    {.name = "hunyuan-dense",
     .hf_class = "HunYuanDenseV1ForCausalLM",
     .folders_alpha = true,
     .gate = TERN_OP_GATE_SILU,
     .rope = TERN_OP_ROPE_NEOX,
     .has = TERN_HAS_PRE_NORMS | TERN_HAS_TURNED_QK_NORMS},
    {.name = "mistral3",
     .hf_class = "Ministral3ForCausalLM",
     .gate = TERN_OP_GATE_SILU,
     .rope = TERN_OP_ROPE_NORM,
     .has = TERN_HAS_PRE_NORMS | TERN_HAS_QKV_BIAS,
     .warmed = true},
    {.name = "cohere2",
     .hf_class = "Cohere2ForCausalLM",
     .neighbour_folders = true,
     .gate = TERN_OP_GATE_SILU,
     .rope = TERN_OP_ROPE_NORM,
     .has = TERN_HAS_ATTN_NORM,
     .embedding_head = true,
     .layer_norms = true,
     .parallel = true,
     .logit_times = true,
     .second = &fourth_sees_all},
    {.name = "exaone4",
     .hf_class = "Exaone4ForCausalLM",
     .gate = TERN_OP_GATE_SILU,
     .rope = TERN_OP_ROPE_NEOX,
     .has = TERN_HAS_POST_NORMS | TERN_HAS_QK_NORMS,
     .second = &fourth_sees_all,
     .may_lack_second = true},
    {.name = "minicpm",
     .hf_class = "MiniCPMForCausalLM",
     .gate = TERN_OP_GATE_SILU,
     .rope = TERN_OP_ROPE_NORM,
     .has = TERN_HAS_PRE_NORMS,
     .own_factors = true},
    {.name = "granite",
     .hf_class = "GraniteForCausalLM",
     .gate = TERN_OP_GATE_SILU,
     .rope = TERN_OP_ROPE_NORM,
     .has = TERN_HAS_PRE_NORMS,
     .own_factors = true},
    {.name = "gemma2",
     .hf_class = "Gemma2ForCausalLM",
     .gemma_folders = true,
     .gate = TERN_OP_GATE_GELU,
     .rope = TERN_OP_ROPE_NEOX,
     .has = TERN_HAS_PRE_NORMS | TERN_HAS_POST_NORMS,
     .scaled_embedding = true,
     .soft_capped = true,
     .width_scaled = 46,
     .second = &other_windowed},
    {.name = "gemma3",
     .hf_class = "Gemma3ForCausalLM",
     .gemma_folders = true,
     GEMMA3,
     .has = GEMMA3_HAS,
     .normed = &gemma3_normed},
    {.name = "qwen2moe",
     .hf_class = "Qwen2MoeForCausalLM",
     .gate = TERN_OP_GATE_SILU,
     .rope = TERN_OP_ROPE_NEOX,
     .has = TERN_HAS_PRE_NORMS | TERN_HAS_QKV_BIAS | TERN_HAS_EXPERTS | TERN_HAS_SHARED_EXPERT},
    {.name = "qwen3moe",
     .hf_class = "Qwen3MoeForCausalLM",
     .gate = TERN_OP_GATE_SILU,
     .rope = TERN_OP_ROPE_NEOX,
     .has = TERN_HAS_PRE_NORMS | TERN_HAS_QK_NORMS | TERN_HAS_EXPERTS,
     .experts = {.norm = true}},
    {.name = "qwen35",
     .hf_class = "Qwen3_5ForCausalLM",
     QWEN35,
     .has = QWEN35_HAS | TERN_HAS_OWN_RATES,
     .second = &qwen35_deltas},
    {.name = "qwen35moe",
     .hf_class = "Qwen3_5MoeForCausalLM",
     QWEN35,
     .has = QWEN35_HAS | TERN_HAS_OWN_RATES | TERN_HAS_EXPERTS | TERN_HAS_SHARED_EXPERT,
     .experts = {.norm = true},
     .second = &qwen35_deltas},
    {.name = "qwen3next",
     .hf_class = "Qwen3NextForCausalLM",
     QWEN35,
     .has = QWEN35_HAS | TERN_HAS_JOINED_RATES | TERN_HAS_EXPERTS | TERN_HAS_SHARED_EXPERT,
     .experts = {.norm = true},
     .second = &qwen3next_deltas},
    {.name = "olmoe",
     .hf_class = "OlmoeForCausalLM",
     .gate = TERN_OP_GATE_SILU,
     .rope = TERN_OP_ROPE_NEOX,
     .has = TERN_HAS_PRE_NORMS | TERN_HAS_WIDE_QK_NORMS | TERN_HAS_EXPERTS},
    {.name = "maple",
     .gate = TERN_OP_GATE_SILU,
     .rope = TERN_OP_ROPE_NEOX,
     .has = TERN_HAS_PRE_NORMS | TERN_HAS_QK_NORMS | TERN_HAS_EXPERTS,
     .experts = {.norm = true, .clamp = 7.0f},
     .second = &fourth_sees_all},
    {.name = "gpt-oss",
     .hf_class = "GptOssForCausalLM",
     .gate = TERN_OP_GATE_QUICK,
     .rope = TERN_OP_ROPE_NEOX,
     .has = TERN_HAS_ATTN_NORM | TERN_HAS_LATE_FFN_NORM | TERN_HAS_QKV_BIAS |
            TERN_HAS_OTHER_BIASES | TERN_HAS_SINKS | TERN_HAS_EXPERTS | TERN_HAS_EXPERT_BIASES,
     .stacked_folders = true,
     .yarn_between = true,
     .experts = {.norm = true, .clamp = 7.0f},
     .second = &other_windowed},
    {.name = "bert",
     .hf_class = "BertModel",
     .hf_other = "XLMRobertaModel",
     .gate = TERN_OP_GATE_GELU,
     .rope = TERN_OP_ROPE_NEOX,
     .has = TERN_HAS_QKV_BIAS | TERN_HAS_OTHER_BIASES | TERN_HAS_SUM_NORMS,
     .ungated = true,
     .encodes = true},
    {.name = "bitnet-b1.58",
     .hf_class = "BitNetForCausalLM",
     .gate = TERN_OP_GATE_RELU2,
     .rope = TERN_OP_ROPE_NEOX,
     .has = TERN_HAS_PRE_NORMS | TERN_HAS_SUB_NORMS,
     .embedding_head = true,
     .ternary = true,
     .bitnet_text = true,
     .defaults = &bitnet_2b},
    {.name = "bitnet-25",
     .gate = TERN_OP_GATE_RELU2,
     .rope = TERN_OP_ROPE_NEOX,
     .has = TERN_HAS_PRE_NORMS | TERN_HAS_SUB_NORMS,
     .embedding_head = true,
     .ternary = true,
     .bitnet_text = true,
     .defaults = &bitnet_2b},
    {.name = "bitnet",
     .hf_class = "BitnetForCausalLM",
     .gate = TERN_OP_GATE_SILU,
     .rope = TERN_OP_ROPE_NEOX,
     .has = TERN_HAS_PRE_NORMS | TERN_HAS_SUB_NORMS,
     .embedding_head = true,
     .ternary = true,
     .defaults = &bitnet_2b},
};

const tern_arch *tern_archs(size_t *n) {
    *n = sizeof archs / sizeof *archs;
    return archs;
}

const tern_arch *tern_arch_find(tern_span name) {
    for (size_t i = 0; i < sizeof archs / sizeof *archs; i++)
        if (strlen(archs[i].name) == name.size && memcmp(archs[i].name, name.data, name.size) == 0)
            return &archs[i];
    return NULL;
}

const char *tern_arch_names(char *out, size_t size) {
    size_t used = 0;
    for (size_t i = 0; i < sizeof archs / sizeof *archs && used < size; i++)
        used += (size_t)snprintf(out + used, size - used, "%s%s", i > 0 ? ", " : "", archs[i].name);
    return out;
}
