/* SPDX-License-Identifier: Apache-2.0 */

#include "runtime/model/parts/block.h"

#include <stddef.h>

#define VECTOR(what, member, side)                                                                 \
    .kind = (what), .rows = TERN_SIZE_ONE, .columns = (side), .at = offsetof(tern_layer, member)
#define NORM(member, side) VECTOR(TERN_BLOCK_NORM, member, side)
#define ANY_BIAS(member, side) VECTOR(TERN_BLOCK_BIAS, member.bias, side)
#define BIAS(member, side) ANY_BIAS(member, side), .when = TERN_HAS_QKV_BIAS
#define OTHER_BIAS(member, side) ANY_BIAS(member, side), .when = TERN_HAS_OTHER_BIASES
#define EXPERT_BIAS(member, side) ANY_BIAS(member, side), .when = TERN_HAS_EXPERT_BIASES
#define SUM_NORM(member) NORM(member, TERN_SIZE_EMBD), .when = TERN_HAS_SUM_NORMS
#define EXPERTS(member, results, inputs, during)                                                   \
    MATRIX(member, results, inputs, during), .when = TERN_HAS_EXPERTS, .routed = true
#define MATRIX(member, results, inputs, during)                                                    \
    .kind = TERN_BLOCK_MATRIX, .rows = (results), .columns = (inputs), .stage = (during),          \
    .at = offsetof(tern_layer, member)

#define DELTA_MATRIX(member, results, inputs, during)                                              \
    MATRIX(member, results, inputs, during), .where = TERN_IN_DELTA

#define INPUT_NORM(before, member, side)                                                           \
    before ".rms_norm.weight", NORM(member, side), .when = TERN_HAS_INPUT_NORMS

static const tern_block_tensor tensors[] = {
    {"attn_norm.weight", "input_layernorm.weight", NORM(attn_norm, TERN_SIZE_EMBD),
     .when = TERN_HAS_ATTN_NORM},
    {"attn_q_norm_in.weight", INPUT_NORM("self_attn.q_proj", q_in, TERN_SIZE_EMBD)},
    {"attn_q.weight", "self_attn.q_proj.weight",
     MATRIX(q, TERN_SIZE_QUERIES, TERN_SIZE_EMBD, TERN_STAGE_QKV), .where = TERN_IN_ATTENTION,
     .turned = true, .hf_encoder = "attention.self.query.weight"},
    {"attn_q.bias", "self_attn.q_proj.bias", BIAS(q, TERN_SIZE_Q), .turned = true,
     .hf_encoder = "attention.self.query.bias"},
    {"attn_q_norm.weight", "self_attn.q_norm.weight", "self_attn.query_layernorm.weight",
     NORM(q_norm, TERN_SIZE_HEAD), .where = TERN_IN_ATTENTION,
     .when = TERN_HAS_QK_NORMS | TERN_HAS_TURNED_QK_NORMS},
    {"attn_q_norm.weight", "self_attn.q_norm.weight", NORM(q_wide, TERN_SIZE_Q),
     .when = TERN_HAS_WIDE_QK_NORMS, .turned = true},
    {"attn_k_norm_in.weight", INPUT_NORM("self_attn.k_proj", k_in, TERN_SIZE_EMBD)},
    {"attn_k.weight", "self_attn.k_proj.weight",
     MATRIX(k, TERN_SIZE_KV, TERN_SIZE_EMBD, TERN_STAGE_QKV), .where = TERN_IN_ATTENTION,
     .turned = true, .hf_encoder = "attention.self.key.weight"},
    {"attn_k.bias", "self_attn.k_proj.bias", BIAS(k, TERN_SIZE_KV), .turned = true,
     .hf_encoder = "attention.self.key.bias"},
    {"attn_k_norm.weight", "self_attn.k_norm.weight", "self_attn.key_layernorm.weight",
     NORM(k_norm, TERN_SIZE_HEAD), .where = TERN_IN_ATTENTION,
     .when = TERN_HAS_QK_NORMS | TERN_HAS_TURNED_QK_NORMS},
    {"attn_k_norm.weight", "self_attn.k_norm.weight", NORM(k_wide, TERN_SIZE_KV),
     .when = TERN_HAS_WIDE_QK_NORMS, .turned = true},
    {"attn_v_norm_in.weight", INPUT_NORM("self_attn.v_proj", v_in, TERN_SIZE_EMBD)},
    {"attn_v.weight", "self_attn.v_proj.weight",
     MATRIX(v, TERN_SIZE_KV, TERN_SIZE_EMBD, TERN_STAGE_QKV), .where = TERN_IN_ATTENTION,
     .hf_encoder = "attention.self.value.weight"},
    {"attn_v.bias", "self_attn.v_proj.bias", BIAS(v, TERN_SIZE_KV),
     .hf_encoder = "attention.self.value.bias"},
    {"attn_sub_norm.weight", "self_attn.attn_sub_norm.weight", "self_attn.inner_attn_ln.weight",
     NORM(attn_sub_norm, TERN_SIZE_Q), .when = TERN_HAS_ATTN_SUB_NORM},
    {"attn_sinks.weight", "self_attn.sinks", VECTOR(TERN_BLOCK_SINKS, sinks, TERN_SIZE_HEADS),
     .when = TERN_HAS_SINKS},
    {"attn_output_norm_in.weight", INPUT_NORM("self_attn.o_proj", o_in, TERN_SIZE_Q)},
    {"attn_output.weight", "self_attn.o_proj.weight",
     MATRIX(o, TERN_SIZE_EMBD, TERN_SIZE_Q, TERN_STAGE_OUT), .where = TERN_IN_ATTENTION,
     .hf_encoder = "attention.output.dense.weight"},
    {"attn_output.bias", "self_attn.o_proj.bias", OTHER_BIAS(o, TERN_SIZE_EMBD),
     .hf_encoder = "attention.output.dense.bias"},
    {"attn_output_norm.weight", "attention.output.LayerNorm.weight", SUM_NORM(attn_sum_norm)},
    {"attn_output_norm.bias", "attention.output.LayerNorm.bias", SUM_NORM(attn_sum_bias)},
    {"post_attention_norm.weight", "post_self_attn_layernorm.weight",
     "post_attention_layernorm.weight", NORM(attn_post_norm, TERN_SIZE_EMBD),
     .when = TERN_HAS_ATTN_POST_NORM},
    {"ffn_norm.weight", "post_attention_layernorm.weight", NORM(ffn_norm, TERN_SIZE_EMBD),
     .when = TERN_HAS_FFN_NORM},
    {"post_attention_norm.weight", "post_attention_layernorm.weight",
     NORM(ffn_norm, TERN_SIZE_EMBD), .when = TERN_HAS_LATE_FFN_NORM},
    {"ffn_gate_norm_in.weight", INPUT_NORM("mlp.gate_proj", gate_in, TERN_SIZE_EMBD)},
    {"ffn_gate.weight", "mlp.gate_proj.weight",
     MATRIX(gate, TERN_SIZE_FF, TERN_SIZE_EMBD, TERN_STAGE_GATE_UP), .gates = true, .dense = true},
    {"ffn_up_norm_in.weight", INPUT_NORM("mlp.up_proj", up_in, TERN_SIZE_EMBD)},
    {"ffn_up.weight", "mlp.up_proj.weight",
     MATRIX(up, TERN_SIZE_FF, TERN_SIZE_EMBD, TERN_STAGE_GATE_UP), .dense = true,
     .hf_encoder = "intermediate.dense.weight"},
    {"ffn_up.bias", "intermediate.dense.bias", OTHER_BIAS(up, TERN_SIZE_FF), .dense = true},
    {"ffn_sub_norm.weight", "mlp.ffn_sub_norm.weight", "mlp.ffn_layernorm.weight",
     NORM(ffn_sub_norm, TERN_SIZE_FF), .when = TERN_HAS_FFN_SUB_NORM},
    {"ffn_down_norm_in.weight", INPUT_NORM("mlp.down_proj", down_in, TERN_SIZE_FF)},
    {"ffn_down.weight", "mlp.down_proj.weight",
     MATRIX(down, TERN_SIZE_EMBD, TERN_SIZE_FF, TERN_STAGE_DOWN), .dense = true,
     .hf_encoder = "output.dense.weight"},
    {"ffn_gate_inp.weight", "mlp.gate.weight", "mlp.router.weight",
     MATRIX(router, TERN_SIZE_EXPERTS, TERN_SIZE_EMBD, TERN_STAGE_GATE_UP),
     .when = TERN_HAS_EXPERTS},
    {"ffn_gate_inp.bias", "mlp.router.bias", EXPERT_BIAS(router, TERN_SIZE_EXPERTS)},
    {"ffn_gate_exps.weight", "mlp.experts.%u.gate_proj.weight",
     EXPERTS(expert_gate, TERN_SIZE_FF, TERN_SIZE_EMBD, TERN_STAGE_GATE_UP)},
    {"ffn_gate_exps.bias", NULL, EXPERT_BIAS(expert_gate, TERN_SIZE_FF), .routed = true},
    {"ffn_up_exps.weight", "mlp.experts.%u.up_proj.weight",
     EXPERTS(expert_up, TERN_SIZE_FF, TERN_SIZE_EMBD, TERN_STAGE_GATE_UP)},
    {"ffn_up_exps.bias", NULL, EXPERT_BIAS(expert_up, TERN_SIZE_FF), .routed = true},
    {"ffn_down_exps.weight", "mlp.experts.%u.down_proj.weight",
     EXPERTS(expert_down, TERN_SIZE_EMBD, TERN_SIZE_FF, TERN_STAGE_DOWN)},
    {"ffn_gate_inp_shexp.weight", "mlp.shared_expert_gate.weight",
     MATRIX(shared_router, TERN_SIZE_ONE, TERN_SIZE_EMBD, TERN_STAGE_GATE_UP),
     .when = TERN_HAS_SHARED_EXPERT},
    {"ffn_gate_shexp.weight", "mlp.shared_expert.gate_proj.weight",
     MATRIX(shared_gate, TERN_SIZE_SHARED, TERN_SIZE_EMBD, TERN_STAGE_GATE_UP),
     .when = TERN_HAS_SHARED_EXPERT},
    {"ffn_up_shexp.weight", "mlp.shared_expert.up_proj.weight",
     MATRIX(shared_up, TERN_SIZE_SHARED, TERN_SIZE_EMBD, TERN_STAGE_GATE_UP),
     .when = TERN_HAS_SHARED_EXPERT},
    {"ffn_down_shexp.weight", "mlp.shared_expert.down_proj.weight",
     MATRIX(shared_down, TERN_SIZE_EMBD, TERN_SIZE_SHARED, TERN_STAGE_DOWN),
     .when = TERN_HAS_SHARED_EXPERT},
    {"ffn_down_exps.bias", NULL, EXPERT_BIAS(expert_down, TERN_SIZE_EMBD), .routed = true},
    {"ffn_down.bias", "output.dense.bias", OTHER_BIAS(down, TERN_SIZE_EMBD), .dense = true},
    {"layer_output_norm.weight", "output.LayerNorm.weight", SUM_NORM(ffn_sum_norm)},
    {"layer_output_norm.bias", "output.LayerNorm.bias", SUM_NORM(ffn_sum_bias)},
    {"post_ffw_norm.weight", "post_mlp_layernorm.weight", "post_feedforward_layernorm.weight",
     NORM(ffn_post_norm, TERN_SIZE_EMBD), .when = TERN_HAS_FFN_POST_NORM},
    {"attn_qkv.weight", "linear_attn.in_proj_qkv.weight",
     DELTA_MATRIX(mixed, TERN_SIZE_CHANNELS, TERN_SIZE_EMBD, TERN_STAGE_QKV)},
    {"attn_gate.weight", "linear_attn.in_proj_z.weight",
     DELTA_MATRIX(z, TERN_SIZE_INNER, TERN_SIZE_EMBD, TERN_STAGE_QKV)},
    {"ssm_alpha.weight", "linear_attn.in_proj_a.weight",
     DELTA_MATRIX(alpha, TERN_SIZE_STATES, TERN_SIZE_EMBD, TERN_STAGE_QKV),
     .when = TERN_HAS_OWN_RATES},
    {"ssm_beta.weight", "linear_attn.in_proj_b.weight",
     DELTA_MATRIX(beta, TERN_SIZE_STATES, TERN_SIZE_EMBD, TERN_STAGE_QKV),
     .when = TERN_HAS_OWN_RATES},
    {"ssm_ba.weight", "linear_attn.in_proj_ba.weight",
     DELTA_MATRIX(rates, TERN_SIZE_RATES, TERN_SIZE_EMBD, TERN_STAGE_QKV),
     .when = TERN_HAS_JOINED_RATES},
    {"ssm_conv1d.weight", "linear_attn.conv1d.weight", .kind = TERN_BLOCK_TAPS,
     .rows = TERN_SIZE_CHANNELS, .columns = TERN_SIZE_TAPS, .at = offsetof(tern_layer, taps),
     .where = TERN_IN_DELTA},
    {"ssm_a", "linear_attn.A_log", VECTOR(TERN_BLOCK_RATES, rate, TERN_SIZE_STATES),
     .where = TERN_IN_DELTA},
    {"ssm_dt.bias", "linear_attn.dt_bias", VECTOR(TERN_BLOCK_SINKS, rate_bias, TERN_SIZE_STATES),
     .where = TERN_IN_DELTA},
    {"ssm_norm.weight", "linear_attn.norm.weight", NORM(delta_norm, TERN_SIZE_STATE),
     .where = TERN_IN_DELTA},
    {"ssm_out.weight", "linear_attn.out_proj.weight",
     DELTA_MATRIX(delta_out, TERN_SIZE_EMBD, TERN_SIZE_INNER, TERN_STAGE_OUT)},
};

const tern_block_tensor *tern_block_tensors(size_t *n) {
    *n = sizeof tensors / sizeof *tensors;
    return tensors;
}

const char *tern_block_hf_name(const tern_arch *arch, const tern_block_tensor *t) {
    const bool taken = (arch->has & TERN_HAS_ATTN_POST_NORM) != 0 && !arch->sandwich_folders;
    if (arch->encodes && t->hf_encoder != NULL)
        return t->hf_encoder;
    return taken && t->when == TERN_HAS_FFN_NORM ? "pre_feedforward_layernorm.weight" : t->hf;
}

size_t tern_block_length(const tern_block_sizes *sizes, tern_block_size side) {
    switch (side) {
    case TERN_SIZE_EMBD:
        return sizes->n_embd;
    case TERN_SIZE_FF:
        return sizes->n_ff;
    case TERN_SIZE_Q:
        return (size_t)sizes->n_head * sizes->head_dim;
    case TERN_SIZE_KV:
        return (size_t)sizes->n_head_kv * sizes->head_dim;
    case TERN_SIZE_HEAD:
        return sizes->head_dim;
    case TERN_SIZE_HEADS:
        return sizes->n_head;
    case TERN_SIZE_EXPERTS:
        return sizes->n_expert;
    case TERN_SIZE_SHARED:
        return sizes->n_ff_shared;
    case TERN_SIZE_QUERIES:
        return (size_t)sizes->n_head * sizes->head_dim * (sizes->query_gates ? 2 : 1);
    case TERN_SIZE_CHANNELS:
        return tern_delta_channels(&sizes->delta);
    case TERN_SIZE_INNER:
        return tern_delta_inner(&sizes->delta);
    case TERN_SIZE_STATES:
        return sizes->delta.n_states;
    case TERN_SIZE_RATES:
        return 2 * (size_t)sizes->delta.n_states;
    case TERN_SIZE_STATE:
        return sizes->delta.state_dim;
    case TERN_SIZE_TAPS:
        return sizes->delta.n_taps;
    default:
        return 1;
    }
}

static void *member(tern_layer *layer, const tern_block_tensor *t) {
    return (uint8_t *)layer + t->at;
}

tern_linear *tern_layer_matrix(tern_layer *layer, const tern_block_tensor *t) {
    return member(layer, t);
}

const float **tern_layer_vector(tern_layer *layer, const tern_block_tensor *t) {
    return member(layer, t);
}

const tern_block_tensor *tern_block_matrix(size_t i) {
    const tern_block_tensor *t = tensors;
    while (t->kind != TERN_BLOCK_MATRIX || i-- > 0)
        t++;
    return t;
}

const tern_linear *tern_layer_linear(const tern_layer *layer, size_t i) {
    return (const void *)((const uint8_t *)layer + tern_block_matrix(i)->at);
}

size_t tern_block_linears(const tern_arch *arch, uint32_t kind) {
    size_t count, n = 0;
    const tern_block_tensor *all = tern_block_tensors(&count);
    for (size_t i = 0; i < count; i++)
        n += all[i].kind == TERN_BLOCK_MATRIX && tern_block_has_in(arch, kind, &all[i]);
    return n;
}

size_t tern_block_linear_at(const tern_arch *arch, uint32_t kind, size_t i) {
    size_t at = 0;
    while (!tern_block_has_in(arch, kind, tern_block_matrix(at)) || i-- > 0)
        at++;
    return at;
}
