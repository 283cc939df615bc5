/* SPDX-License-Identifier: Apache-2.0 */
#include "authoring/synth.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "authoring/synth_internal.h"
#include "runtime/model/config/factors.h"
#include "runtime/model/config/joined_matrices.h"

typedef tern_synth_model model;

enum { TAPS = 4 /* of the convolutions of delta nets */ };

/* ---- metadata ------------------------------------------------------------------------------ */

static void put_u32(tern_gguf_writer *w, const model *m, const char *suffix, uint32_t value) {
    char key[96];
    snprintf(key, sizeof key, "%s.%s", m->architecture, suffix);
    tern_gguf_put_u32(w, key, value);
}

static void put_f32(tern_gguf_writer *w, const model *m, const char *suffix, float value) {
    char key[96];
    snprintf(key, sizeof key, "%s.%s", m->architecture, suffix);
    tern_gguf_put_f32(w, key, value);
}

static void put_experts(tern_gguf_writer *w, const model *m) {
    put_u32(w, m, "expert_count", m->n_expert);
    put_u32(w, m, "expert_used_count", m->n_used);
    put_u32(w, m, "expert_feed_forward_length", m->n_ff);
    if (m->n_ff_shared > 0)
        put_u32(w, m, "expert_shared_feed_forward_length", m->n_ff_shared);
}

static void put_deltas(tern_gguf_writer *w, const model *m) {
    if (m->n_states == 0)
        return;
    put_u32(w, m, "full_attention_interval", m->period);
    put_u32(w, m, "ssm.conv_kernel", TAPS);
    put_u32(w, m, "ssm.state_size", m->state_dim);
    put_u32(w, m, "ssm.group_count", m->n_keys);
    put_u32(w, m, "ssm.time_step_rank", m->n_states);
    put_u32(w, m, "ssm.inner_size", m->n_states * m->state_dim);
}

static void put_yarn(tern_gguf_writer *w, const model *m) {
    char key[96];
    if (m->yarn == 0.0f)
        return;
    snprintf(key, sizeof key, "%s.rope.scaling.type", m->architecture);
    tern_gguf_put_string(w, key, "yarn");
    put_f32(w, m, "rope.scaling.factor", m->yarn);
    put_u32(w, m, "rope.scaling.original_context_length", m->n_ctx_yarn);
    if (m->warming == 0.0f)
        return;
    put_f32(w, m, "rope.scaling.yarn_log_multiplier", 1.0f);
    put_f32(w, m, "attention.temperature_scale", m->warming);
}

static void put_geometry(tern_gguf_writer *w, const model *m, const tern_arch *arch) {
    tern_gguf_put_string(w, "general.architecture", m->architecture);
    tern_gguf_put_string(w, "general.name", m->preset.name);
    put_u32(w, m, "vocab_size", m->n_vocab);
    put_u32(w, m, "context_length", m->n_ctx);
    put_u32(w, m, "embedding_length", m->n_embd);
    put_u32(w, m, "block_count", m->n_layer);
    if (m->n_expert == 0)
        put_u32(w, m, "feed_forward_length", m->n_ff);
    else
        put_experts(w, m);
    put_u32(w, m, "rope.dimension_count", m->n_rot > 0 ? m->n_rot : m->head_dim);
    put_f32(w, m, "rope.freq_base", m->rope_base);
    put_u32(w, m, "attention.head_count", m->n_head);
    put_u32(w, m, "attention.head_count_kv", m->n_head_kv);
    if (m->n_head * m->head_dim != m->n_embd) { /* otherwise the keys' defaults are right */
        put_u32(w, m, "attention.key_length", m->head_dim);
        put_u32(w, m, "attention.value_length", m->head_dim);
    }
    put_f32(w, m,
            arch->layer_norms ? "attention.layer_norm_epsilon" : "attention.layer_norm_rms_epsilon",
            1e-5f);
    if (arch->logit_times)
        put_f32(w, m, "logit_scale", 1.25f);
    if (arch->soft_capped) { /* low enough to be felt */
        put_f32(w, m, "attn_logit_softcapping", 6.0f);
        put_f32(w, m, "final_logit_softcapping", 4.0f);
    }
    if (m->window > 0) {
        put_u32(w, m, "attention.sliding_window", m->window);
        if (m->period > 0)
            put_u32(w, m, "attention.sliding_window_pattern", m->period);
    }
    if (m->n_ctx_original > 0) {
        put_u32(w, m, "rope.scaling.original_context_length", m->n_ctx_original);
        put_f32(w, m, "rope.scaling.attn_factor", m->rope_gain);
    }
    put_yarn(w, m);
    put_deltas(w, m);
    if (m->block_scale > 0) {
        put_f32(w, m, "embedding_scale", m->embedding_scale);
        put_f32(w, m, "residual_scale", m->block_scale);
        put_f32(w, m, "logit_scale", m->logit_divisor);
    }
    tern_gguf_put_u32(w, "general.file_type", tern_gguf_file_type(m->body));
    tern_gguf_put_u32(w, "general.quantization_version", 2);
}

/* The chat format that the 2B model was trained with: "User: ...<|eot_id|>Assistant: ". */
static const char bitnet_template[] =
    "{% for message in messages %}{{ message['role'] | capitalize + ': ' + message['content'] | "
    "trim + '<|eot_id|>' }}{% endfor %}{% if add_generation_prompt %}{{ 'Assistant: ' }}{% endif "
    "%}";

static const char chatml_template[] =
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\\n' + "
    "message['content'] + '<|im_end|>' + '\\n' }}{% endfor %}{% if add_generation_prompt %}"
    "{{ '<|im_start|>assistant\\n' }}{% endif %}";

static void put_special_ids(tern_gguf_writer *w, const model *m) {
    const bool llama3 = m->tokens == TERN_SYNTH_LLAMA3;
    const uint32_t first = llama3 ? m->n_vocab - m->n_special : 0;
    tern_gguf_put_u32(w, "tokenizer.ggml.bos_token_id", llama3 ? first : 1);
    tern_gguf_put_u32(w, "tokenizer.ggml.eos_token_id", llama3 ? first + 1 : 2);
    if (!llama3)
        tern_gguf_put_u32(w, "tokenizer.ggml.unknown_token_id", 0);
    tern_gguf_put_u32(w, "tokenizer.ggml.padding_token_id", llama3 ? first + 1 : 2);
    tern_gguf_put_bool(w, "tokenizer.ggml.add_bos_token", llama3);
    tern_gguf_put_string(w, "tokenizer.chat_template", llama3 ? bitnet_template : chatml_template);
}

static tern_status put_tokenizer(tern_gguf_writer *w, const model *m, tern_error *err) {
    tern_synth_vocab vocab;
    tern_status status = tern_synth_vocab_new(m->tokens, m->n_vocab, m->n_special, &vocab, err);
    if (status != TERN_OK)
        return status;
    float *scores = calloc(vocab.n_tokens, sizeof *scores); /* all zero, as converters write them */
    if (scores == NULL) {
        status = tern_fail(err, TERN_ERR_NOMEM, "no memory for %zu scores", vocab.n_tokens);
        goto done;
    }
    tern_gguf_put_string(w, "tokenizer.ggml.model", "gpt2");
    tern_gguf_put_string(w, "tokenizer.ggml.pre", m->pre);
    tern_gguf_put_strings(w, "tokenizer.ggml.tokens", vocab.tokens, vocab.n_tokens);
    tern_gguf_put_f32s(w, "tokenizer.ggml.scores", scores, vocab.n_tokens);
    tern_gguf_put_i32s(w, "tokenizer.ggml.token_type", vocab.types, vocab.n_tokens);
    tern_gguf_put_strings(w, "tokenizer.ggml.merges", vocab.merges, vocab.n_merges);
    put_special_ids(w, m);

done:
    free(scores);
    tern_synth_vocab_free(&vocab);
    return status;
}

/* ---- tensors ------------------------------------------------------------------------------- */

enum { NAME_BYTES = 48 };

typedef struct tensor {
    char name[NAME_BYTES];
    tern_format format;
    uint32_t n_dims;
    uint64_t ne[3];
    uint64_t bytes;
    float sd;   /* of a matrix or a bias; 0 for norms */
    bool below; /* the numbers of a norm, below 0 */
} tensor;

/* The state of a walk over the tensors of a model, which describes or writes them. */
typedef struct walk {
    const model *m;
    const tern_arch *arch;
    tern_gguf_writer *w;
    uint64_t seed;
    uint64_t index; /* index of the next tensor */
    uint64_t done, total;
    tern_synth_progress *progress;
    void *user;
    uint8_t *piece; /* NULL while tensors are only described */
    tern_error *err;
} walk;

static tern_status write_piece(walk *c, const uint8_t *bytes, size_t size) {
    tern_status status = tern_gguf_writer_data(c->w, bytes, size, c->err);
    c->done += size;
    if (status == TERN_OK && c->progress != NULL)
        c->progress(c->done, c->total, c->user);
    return status;
}

static tern_status write_tensor(walk *c, const tensor *t) {
    tern_synth_stream stream;
    if (t->sd == 0)
        tern_synth_stream_norm(&stream, c->seed, c->index);
    else
        tern_synth_stream_weights(&stream, t->format, t->sd, c->seed, c->index);
    uint64_t left = t->ne[0] * t->ne[1] * t->ne[2];
    while (left > 0) {
        const size_t n = left < TERN_SYNTH_PIECE ? (size_t)left : TERN_SYNTH_PIECE;
        const size_t size = tern_synth_stream_fill(&stream, c->piece, n);
        for (size_t i = 3; t->below && i < size; i += 4)
            c->piece[i] |= 0x80; /* the signs of floats */
        tern_status status = write_piece(c, c->piece, size);
        if (status != TERN_OK)
            return status;
        left -= n;
    }
    if (t->format != TERN_FORMAT_I2_S)
        return TERN_OK;
    tern_synth_stream_trailer(&stream, c->piece);
    return write_piece(c, c->piece, TERN_SYNTH_TRAILER);
}

static tern_status visit(walk *c, tensor *t) {
    const tern_format_info *info = tern_format_describe(t->format);
    tern_status status = tern_format_bytes(t->format, t->ne[1] * t->ne[2], t->ne[0], &t->bytes);
    if (status != TERN_OK)
        return tern_fail(c->err, status, "preset %s: tensor %s of %" PRIu64 " x %" PRIu64,
                         c->m->preset.name, t->name, t->ne[0], t->ne[1]);
    if (c->piece != NULL) {
        status = write_tensor(c, t);
    } else {
        tern_gguf_put_tensor(c->w, t->name, info->gguf_type, t->n_dims, t->ne, t->bytes);
        c->total += t->bytes;
    }
    c->index++;
    return status;
}

/* `count` vectors; 0: one plain one. Norms have sd 0. */
static tern_status visit_vectors(walk *c, const char *name, uint64_t n, uint32_t count, float sd) {
    const size_t at = strlen(name) - strlen("ssm_a");
    tensor t = {.format = TERN_FORMAT_F32,
                .below = strcmp(name + at, "ssm_a") == 0,
                .n_dims = count > 0 ? 2 : 1,
                .ne = {n, count > 0 ? count : 1, 1},
                .sd = sd};
    snprintf(t.name, sizeof t.name, "%s", name);
    return visit(c, &t);
}

static tern_status visit_vector(walk *c, const char *name, uint64_t n, float sd) {
    return visit_vectors(c, name, n, 0, sd);
}

/* `count` matrices: their products with a vector of n_in values of variance 1 have deviation
 * `gain`. 0: one plain matrix. */
static tern_status visit_matrices(walk *c, const char *name, tern_format format, uint64_t n_in,
                                  uint64_t n_out, uint32_t count, float gain) {
    tensor t = {
        .format = format, .n_dims = count > 0 ? 3 : 2, .ne = {n_in, n_out, count > 0 ? count : 1}};
    t.sd = gain / (float)sqrt((double)n_in);
    snprintf(t.name, sizeof t.name, "%s", name);
    return visit(c, &t);
}

static tern_status visit_matrix(walk *c, const char *name, tern_format format, uint64_t n_in,
                                uint64_t n_out, float gain) {
    return visit_matrices(c, name, format, n_in, n_out, 0, gain);
}

/*
 * Deviation of the logits: a softmax over them is neither flat nor concentrated on one token. Rows
 * of the embedding, which is the head as well, have deviation LOGIT_GAIN / sqrt(n_embd) then.
 */
static const float LOGIT_GAIN = 2.5f;

/*
 * Deviation of each of the 2 * n_layer residual additions. Their variances add up to (2 *
 * LOGIT_GAIN)^2 = 25, against LOGIT_GAIN^2 / n_embd for the embedding that they are added to.
 * Otherwise, with tied embeddings, a token would meet its own row in the head and predict itself.
 * The remaining effect is LOGIT_GAIN / 2, half a deviation of the logits.
 */
static float residual_gain(const model *m) {
    return (float)sqrt(2.0 * (double)LOGIT_GAIN * (double)LOGIT_GAIN / (double)m->n_layer);
}

/* The gate of the expert that all tokens take, which has one row. */
static bool is_shared_router(const tern_block_tensor *t) {
    return t->kind == TERN_BLOCK_MATRIX && t->rows == TERN_SIZE_ONE;
}

/* Deviation of a matrix's results: one value for queries, keys and scores of experts, one for
 * additions to the residual stream, one for the rest. */
static float matrix_gain(const model *m, const tern_block_tensor *t) {
    if (t->turned || t->rows == TERN_SIZE_EXPERTS || is_shared_router(t))
        return m->score_gain;
    if (t->rows != TERN_SIZE_EMBD)
        return 1.0f;
    return residual_gain(m) * (t->routed ? sqrtf((float)m->n_used) : 1.0f); /* their mean is
                                                                               taken */
}

static tern_format matrix_format(const model *m, const tern_block_tensor *t) {
    if (t->rows == TERN_SIZE_EXPERTS || is_shared_router(t))
        return TERN_FORMAT_F32;
    return t->routed && m->experts != TERN_FORMAT_F32 ? m->experts : m->body;
}

/* Deviation of biases; the results they are added to have deviation 1 or more. */
static const float BIAS_SD = 0.5f;

/* Deviation of sinks, which have about the weight of one position. */
static const float SINK_SD = 1.5f;

static float vector_sd(const tern_block_tensor *t) {
    switch (t->kind) {
    case TERN_BLOCK_BIAS:
        return BIAS_SD;
    case TERN_BLOCK_SINKS:
        return SINK_SD;
    case TERN_BLOCK_TAPS:
        return 1.0f / sqrtf((float)TAPS);
    default:
        return 0.0f;
    }
}

/* The factors of a matrix and of what it reads: `count` each, 0: one; near 1, as norms are. */
static tern_status visit_factors(walk *c, const char *matrix, uint32_t count) {
    char name[TERN_FACTOR_NAME_BYTES];
    const uint64_t n = count > 0 ? count : 1;
    if (!c->m->factors)
        return TERN_OK;
    tern_factor_name(matrix, "scale", name);
    const tern_status status = visit_vector(c, name, n, 0.0f);
    tern_factor_name(matrix, "input_scale", name);
    return status == TERN_OK ? visit_vector(c, name, n, 0.0f) : status;
}

/* A matrix of a block. Joined matrices are visited with the first of them. */
static tern_status visit_block_matrix(walk *c, uint32_t layer, const tern_block_sizes *sizes,
                                      const tern_block_tensor *t) {
    const tern_joined *joined = tern_joined_of(c->arch, t);
    const uint32_t experts = t->routed ? c->m->n_expert : 0;
    char name[NAME_BYTES];
    if (joined != NULL && !tern_joined_begins(joined, t))
        return TERN_OK;
    snprintf(name, sizeof name, "blk.%" PRIu32 ".%s", layer,
             joined != NULL ? joined->name : t->name);
    const tern_status status = visit_matrices(
        c, name, matrix_format(c->m, t), tern_block_length(sizes, t->columns),
        joined != NULL ? tern_joined_rows(joined, sizes) : tern_block_length(sizes, t->rows),
        experts, matrix_gain(c->m, t));
    return status == TERN_OK && t->rows != TERN_SIZE_EXPERTS && !is_shared_router(t)
               ? visit_factors(c, name, experts)
               : status;
}

/* How many vectors a tensor has, one after the other; 0: it is one vector. */
static uint32_t vector_count(const model *m, const tern_block_sizes *sizes,
                             const tern_block_tensor *t) {
    if (t->kind == TERN_BLOCK_TAPS)
        return (uint32_t)tern_block_length(sizes, t->rows);
    return t->routed ? m->n_expert : 0;
}

static tern_status visit_block(walk *c, uint32_t layer) {
    const model *m = c->m;
    const tern_block_sizes sizes = {.n_embd = m->n_embd,
                                    .n_ff = m->n_ff,
                                    .n_head = m->n_head,
                                    .n_head_kv = m->n_head_kv,
                                    .head_dim = m->head_dim,
                                    .n_expert = m->n_expert,
                                    .n_ff_shared = m->n_ff_shared,
                                    .query_gates = (c->arch->has & TERN_HAS_QUERY_GATES) != 0,
                                    .delta = {.n_keys = m->n_keys,
                                              .n_states = m->n_states,
                                              .state_dim = m->state_dim,
                                              .n_taps = TAPS}};
    const uint32_t kind = m->n_states > 0 && (layer + 1) % m->period != 0 ? 1 : 0;
    size_t count;
    const tern_block_tensor *tensors = tern_block_tensors(&count);
    tern_status status = TERN_OK;
    for (size_t i = 0; status == TERN_OK && i < count; i++) {
        const tern_block_tensor *t = &tensors[i];
        const size_t columns = tern_block_length(&sizes, t->columns);
        char name[NAME_BYTES];
        if (!tern_block_has_in(c->arch, kind, t) || (t->kind == TERN_BLOCK_BIAS && !m->biases))
            continue;
        snprintf(name, sizeof name, "blk.%" PRIu32 ".%s", layer, t->name);
        status = t->kind == TERN_BLOCK_MATRIX
                     ? visit_block_matrix(c, layer, &sizes, t)
                     : visit_vectors(c, name, columns, vector_count(m, &sizes, t), vector_sd(t));
    }
    return status;
}

/* Longrope's factors, between 0.875 and 1.125 like norm weights. */
static tern_status visit_rope_factors(walk *c) {
    const model *m = c->m;
    const uint64_t half = (m->n_rot > 0 ? m->n_rot : m->head_dim) / 2;
    if (m->n_ctx_original == 0)
        return TERN_OK;
    const tern_status status = visit_vector(c, "rope_factors_long.weight", half, 0.0f);
    return status == TERN_OK ? visit_vector(c, "rope_factors_short.weight", half, 0.0f) : status;
}

/* Visits every tensor of the model in the order of the file. */
static tern_status visit_all(walk *c) {
    const model *m = c->m;
    c->index = 0;
    tern_status status =
        visit_matrix(c, "token_embd.weight", m->embedding, m->n_embd, m->n_vocab, LOGIT_GAIN);
    for (uint32_t i = 0; status == TERN_OK && i < m->n_layer; i++)
        status = visit_block(c, i);
    if (status == TERN_OK)
        status = visit_rope_factors(c);
    if (status == TERN_OK)
        status = visit_vector(c, "output_norm.weight", m->n_embd, 0.0f);
    if (status == TERN_OK && m->output_head)
        status = visit_matrix(c, "output.weight", m->wide_head ? m->embedding : m->body, m->n_embd,
                              m->n_vocab, LOGIT_GAIN);
    if (status == TERN_OK && m->output_head)
        status = visit_factors(c, "output.weight", 0);
    return status;
}

tern_status tern_synth(const char *preset, const char *out_path, tern_out_mode mode, uint64_t seed,
                       tern_synth_progress *progress, void *user, tern_error *err) {
    if (preset == NULL || out_path == NULL)
        return tern_fail(err, TERN_ERR_NULL, "tern_synth: NULL argument");
    walk c = {.seed = seed, .progress = progress, .user = user, .err = err};
    uint8_t *piece = NULL;
    tern_status status = tern_synth_find_model(preset, &c.m, err);
    if (status != TERN_OK)
        return status;
    c.arch = tern_arch_find((tern_span){c.m->architecture, strlen(c.m->architecture)});
    if (c.arch == NULL)
        return tern_fail(err, TERN_ERR_ARCH, "preset %s: architecture '%s' is not known", preset,
                         c.m->architecture);
    if (c.m->normed)
        c.arch = c.arch->normed;
    status = tern_gguf_writer_new(out_path, mode, &c.w, err);
    if (status != TERN_OK)
        return status;
    put_geometry(c.w, c.m, c.arch);
    status = tern_synth_put_hadamard(c.w, c.m, err);
    if (status == TERN_OK)
        status = put_tokenizer(c.w, c.m, err);
    if (status == TERN_OK)
        status = visit_all(&c); /* describes */
    if (status == TERN_OK)
        status = tern_gguf_writer_begin(c.w, err);
    if (status != TERN_OK)
        goto done;
    piece = malloc((size_t)TERN_SYNTH_PIECE * sizeof(float)); /* F32 is the widest format */
    if (piece == NULL) {
        status = tern_fail(err, TERN_ERR_NOMEM, "%s: no memory for a piece", out_path);
        goto done;
    }
    c.piece = piece;
    status = visit_all(&c); /* writes */
    if (status == TERN_OK)
        status = tern_gguf_writer_finish(&c.w, err);

done:
    free(piece);
    tern_gguf_writer_abort(&c.w); /* does nothing after finish */
    return status;
}
