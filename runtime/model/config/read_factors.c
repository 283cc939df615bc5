/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Factors of embeddings, of what blocks add, and of logits.
 *
 * The norms of blocks read x = e * embedding + r * (a_1 + a_2 + ...). The stream is kept as x / r:
 * the embedding's rows times e / r, and then plain sums. No operation of a pass needs r, because
 * rmsnorm(x, eps) = rmsnorm(x / r, eps / r^2).
 */

#include <math.h>

#include "runtime/model/config/internal.h"

static tern_status read_factor(const tern_gguf *file, const tern_config *c, const char *suffix,
                               float *out, tern_error *err) {
    return tern_config_f32(file, c->arch, suffix, 0.0f, 1e-4f, 1e4f, out, err);
}

/* Reads the soft bounds. A file must say them: which ones a model was trained with cannot be
 * guessed. 0: there is none. */
static tern_status read_caps(const tern_gguf *file, tern_config *c, tern_error *err) {
    const tern_status s = tern_config_f32(file, c->arch, "attn_logit_softcapping", NAN, 0.0f, 1e4f,
                                          &c->attention_cap, err);
    return s != TERN_OK ? s
                        : tern_config_f32(file, c->arch, "final_logit_softcapping", NAN, 0.0f, 1e4f,
                                          &c->logit_cap, err);
}

tern_status tern_config_factors(const tern_gguf *file, tern_config *c, tern_error *err) {
    float embedding;
    tern_status s;
    c->embedding_scale = c->arch->scaled_embedding ? sqrtf((float)c->n_embd) : 1.0f;
    c->block_scale = c->logit_divisor = 1.0f;
    if (c->arch->logit_times) {
        float times;
        if ((s = read_factor(file, c, "logit_scale", &times, err)) == TERN_OK)
            c->logit_divisor = (float)(1.0 / (double)times);
        return s;
    }
    if (c->arch->soft_capped)
        return read_caps(file, c, err);
    if (!c->arch->own_factors)
        return TERN_OK;
    if ((s = read_factor(file, c, "embedding_scale", &embedding, err)) ||
        (s = read_factor(file, c, "residual_scale", &c->block_scale, err)) ||
        (s = read_factor(file, c, "logit_scale", &c->logit_divisor, err)))
        return s;
    const double r = (double)c->block_scale;
    c->embedding_scale = (float)((double)embedding / r);
    c->norm_eps = (float)((double)c->norm_eps / (r * r));
    return TERN_OK;
}
