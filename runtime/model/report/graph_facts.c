/* SPDX-License-Identifier: Apache-2.0 */

/* The facts about a model's graph in which models differ, and the source of each. */

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "runtime/model/config/internal.h"
#include "runtime/model/model.h"
#include "tern/inspect.h"

static const char of_file[] = "file", of_arch[] = "architecture", of_guess[] = "guess";

/* The list of facts while it is made. */
typedef struct listing {
    const tern_model *m;
    tern_model_fact *facts;
    size_t capacity, n; /* n: all facts, also those without room */
} listing;

static bool has_key(const tern_model *m, const char *suffix) {
    char key[TERN_KEY_BYTES];
    snprintf(key, sizeof key, "%s.%s", m->config.arch->name, suffix);
    return tern_gguf_find(m->file, key) != NULL;
}

/* The source of a key's value. If the numbers of another model stand in, it is a guess. */
static const char *source_of(const tern_model *m, const char *suffix) {
    return has_key(m, suffix) ? of_file : m->config.arch->defaults != NULL ? of_guess : of_arch;
}

/* Sets a fact's text; NULL: the fact is only counted. */
static void tell(tern_model_fact *fact, const char *format, ...) TERN_PRINTF(2, 3);
static void tell(tern_model_fact *fact, const char *format, ...) {
    va_list values;
    if (fact == NULL)
        return;
    va_start(values, format);
    (void)vsnprintf(fact->text, sizeof fact->text, format, values);
    va_end(values);
}

/* The next fact without its text; NULL: there is no room. */
static tern_model_fact *next(listing *l, const char *name, const char *from) {
    static const tern_model_fact empty = {.name = NULL};
    if (l->n++ >= l->capacity)
        return NULL;
    tern_model_fact *fact = &l->facts[l->n - 1];
    *fact = empty;
    fact->name = name;
    fact->from = from;
    return fact;
}

#define TELL(l, name, from, ...) tell(next(l, name, from), __VA_ARGS__)

/* ---- the graph ----------------------------------------------------------------------------- */

static const char *activation_name(tern_op gate) {
    switch (gate) {
    case TERN_OP_GATE_RELU2:
        return "relu2";
    case TERN_OP_GATE_GELU:
        return "gelu (tanh)";
    case TERN_OP_GATE_QUICK:
        return "quick gelu, times one more";
    default:
        return "silu";
    }
}

static void tell_norms(listing *l) {
    static const struct {
        unsigned bit;
        const char *where;
    } places[] = {
        {TERN_HAS_ATTN_NORM, "before attention"},
        {TERN_HAS_QK_NORMS, "of heads of q and k"},
        {TERN_HAS_TURNED_QK_NORMS, "of turned heads of q and k"},
        {TERN_HAS_WIDE_QK_NORMS, "of q and k"},
        {TERN_HAS_ATTN_SUB_NORM, "of attended heads"},
        {TERN_HAS_ATTN_POST_NORM, "after attention"},
        {TERN_HAS_FFN_NORM | TERN_HAS_LATE_FFN_NORM, "before feed-forward"},
        {TERN_HAS_FFN_SUB_NORM, "before down"},
        {TERN_HAS_FFN_POST_NORM, "after feed-forward"},
        {TERN_HAS_SUM_NORMS, "LayerNorm of the sums"},
        {TERN_HAS_INPUT_NORMS, "before each matrix"},
    };
    const double r = (double)l->m->config.block_scale; /* the stream is kept divided by it */
    char text[sizeof l->facts->text] = "";
    size_t used = 0;
    if (l->m->config.arch->layer_norms)
        TELL(l, "kind of norms", of_arch, "LayerNorm without biases");
    if (l->m->config.arch->parallel)
        TELL(l, "feed-forward", of_arch, "of the rows that attention reads");
    for (size_t i = 0; i < sizeof places / sizeof *places; i++)
        if ((l->m->config.arch->has & places[i].bit) != 0)
            used += (size_t)snprintf(text + used, sizeof text - used, "%s%s", used > 0 ? ", " : "",
                                     places[i].where);
    TELL(l, "norms", of_arch, "%s", text);
    TELL(l, "norm epsilon",
         l->m->config.arch->encodes || l->m->config.arch->layer_norms
             ? of_file
             : source_of(l->m, "attention.layer_norm_rms_epsilon"),
         "%g", (double)l->m->config.norm_eps * r * r);
}

static void tell_scaling(listing *l) {
    const tern_arch_second_kind *second = l->m->config.arch->second;
    const tern_layer_kind *kind =
        &l->m->config.kinds[l->m->config.n_kinds > 1 && second->alone_turned ? 1 : 0];
    const bool said = has_key(l->m, "rope.scaling.type") || has_key(l->m, "rope.scaling.factor") ||
                      has_key(l->m, "rope.scale_linear");
    if (tern_gguf_find_tensor(l->m->file, "rope_freqs.weight") != NULL)
        TELL(l, "rope factors", of_file, "tensor rope_freqs.weight");
    if (tern_gguf_find_tensor(l->m->file, "rope_factors_short.weight") != NULL)
        TELL(l, "rope factors", l->m->config.long_factors ? "asked for" : of_file,
             "longrope's %s ones, for up to %u positions, gain %.6g",
             l->m->config.long_factors ? "long" : "short", l->m->config.n_ctx, kind->rope_gain);
    if (kind->yarn.factor > 0.0f)
        TELL(l, "rope scaling", of_file, "yarn, factor %g of %g positions, gain %.6g",
             (double)kind->yarn.factor, (double)kind->yarn.original, kind->rope_gain);
    else if (kind->rope_scale != 1.0f)
        TELL(l, "rope scaling", of_file, "linear, factor %g", (double)(1.0f / kind->rope_scale));
    else
        TELL(l, "rope scaling", said ? of_file : of_arch, "none");
}

static void tell_rope(listing *l) {
    const tern_config *c = &l->m->config;
    if (c->arch->encodes) {
        TELL(l, "attention", of_arch, "both ways");
        TELL(l, "positions", of_file, "learned, %u", c->n_ctx);
        return;
    }
    TELL(l, "rope pairs", of_arch, "%s, %u of %u dimensions of a head",
         c->arch->rope == TERN_OP_ROPE_NEOX ? "halves (neox)" : "neighbours (norm)", c->n_rot,
         c->head_dim);
    TELL(l, "rope base", source_of(l->m, "rope.freq_base"), "%g", (double)c->kinds[0].rope_base);
    tell_scaling(l);
}

static void tell_windows(listing *l) {
    const tern_config *c = &l->m->config;
    const tern_arch_second_kind *second = c->arch->second;
    if (c->kinds[0].window > 0)
        TELL(l, "windows", of_file, "%u positions, in all layers", c->kinds[0].window);
    if (second == NULL || c->n_kinds == 1 || second->delta)
        return;
    if (second->alone_turned)
        TELL(l, "rope", of_arch, "in all but every %u-th layer", c->period);
    if (!second->windowed)
        return;
    TELL(l, "windows", of_file, "%u positions, in all but every %u-th layer", c->kinds[1].window,
         c->period);
    TELL(l, "window rope base", source_of(l->m, "rope.freq_base_swa"), "%g",
         (double)c->kinds[1].rope_base);
}

static void tell_deltas(listing *l) {
    const tern_config *c = &l->m->config;
    const tern_delta_sizes *d = &c->delta;
    if (tern_config_delta_layers(c) == 0)
        return;
    TELL(l, "delta nets", of_file, "in all but every %u-th layer", c->period);
    TELL(l, "states", of_file, "%u of %u x %u a layer, %u heads of q and k, convolved over %u",
         d->n_states, d->state_dim, d->state_dim, d->n_keys, d->n_taps);
}

static void tell_scales(listing *l) {
    const tern_config *c = &l->m->config;
    if (c->arch->scaled_embedding)
        TELL(l, "embedding times", of_arch, "%g", (double)c->embedding_scale);
    if (c->arch->own_factors) {
        TELL(l, "embedding times", of_file, "%g",
             (double)c->embedding_scale * (double)c->block_scale);
        TELL(l, "blocks times", of_file, "%g", (double)c->block_scale);
        TELL(l, "logits divided by", of_file, "%g", (double)c->logit_divisor);
    }
    if (c->arch->logit_times)
        TELL(l, "logits divided by", of_file, "%g", (double)c->logit_divisor);
    if (c->arch->soft_capped) {
        TELL(l, "scores bounded by", of_file, "%g", (double)c->attention_cap);
        TELL(l, "logits bounded by", of_file, "%g", (double)c->logit_cap);
    }
    if (c->warming > 0.0f)
        TELL(l, "queries times", of_file, "1 + %g ln(1 + position / %u), rounded down",
             (double)c->warming, c->warm_step);
    TELL(l, "scores times",
         has_key(l->m, "attention.scale")      ? of_file
         : c->arch->width_scaled == c->n_layer ? of_guess
                                               : of_arch,
         "%g", (double)c->attention_scale);
}

static void tell_hadamard(listing *l) {
    const tern_hadamards *h = &l->m->hadamards;
    if (h->block > 0)
        TELL(l, "Hadamard transform", of_file, "blocks of %zu, %s, before %zu matrices%s", h->block,
             h->signs != NULL ? "with signs" : "no signs", h->matrices,
             h->embedding.block > 0 ? ", after the embedding" : "");
}

static void tell_experts(listing *l) {
    const tern_config *c = &l->m->config;
    if (c->n_expert == 0)
        return;
    TELL(l, "experts", of_file, "%u of %u, each %u wide", c->n_used, c->n_expert, c->n_ff);
    if (c->n_ff_shared > 0)
        TELL(l, "expert of all", of_file, "%u wide, times the logistic function of a gate",
             c->n_ff_shared);
    TELL(l, "expert weights", has_key(l->m, "expert_weights_norm") ? of_file : of_arch,
         "softmax over all, %s",
         c->expert_norm ? "of the chosen divided by their sum" : "as it is");
    if (c->expert_scale != 1.0f)
        TELL(l, "expert weights times", of_file, "%g", (double)c->expert_scale);
    if (c->expert_clamp > 0.0f)
        TELL(l, "gates cut at", has_key(l->m, "swiglu_clamp_exp") ? of_file : of_arch, "%g",
             (double)c->expert_clamp);
}

static void tell_pooling(listing *l) {
    if (l->m->config.pooling != TERN_POOLING_NONE)
        TELL(l, "pooling", of_file, "%s", tern_pooling_name(l->m->config.pooling));
}

/* ---- the tokenizer ------------------------------------------------------------------------- */

static void tell_tokenizer(listing *l) {
    const tern_tokenizer *t = l->m->tokenizer;
    if (t == NULL) {
        TELL(l, "tokenizer", of_file, "none");
        return;
    }
    const bool own = strcmp(tern_tokenizer_file(t), tern_gguf_name(l->m->file)) == 0;
    const char *from = own ? of_file : "another file";
    const char *pre = tern_tokenizer_pre(t);
    TELL(l, "tokenizer", from, "%s, %zu tokens", tern_tokenizer_kind(t), tern_tokenizer_size(t));
    if (pre[0] == '\0')
        return;
    if (l->m->pre_asked)
        from = "asked for";
    else if (own && tern_gguf_find(l->m->file, "tokenizer.ggml.pre") == NULL)
        from = of_guess;
    TELL(l, "pre-tokenizer", from, "%s", pre);
}

size_t tern_model_facts(const tern_model *m, tern_model_fact *facts, size_t capacity) {
    listing l = {.m = m, .facts = facts, .capacity = capacity};
    TELL(&l, "activation", has_key(m, "hidden_activation") ? of_file : of_arch, "%s",
         activation_name(m->config.gate));
    tell_norms(&l);
    tell_rope(&l);
    tell_windows(&l);
    tell_deltas(&l);
    tell_scales(&l);
    tell_hadamard(&l);
    tell_experts(&l);
    tell_pooling(&l);
    tell_tokenizer(&l);
    return l.n;
}
