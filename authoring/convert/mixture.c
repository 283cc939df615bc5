/* SPDX-License-Identifier: Apache-2.0 */
#include "authoring/convert/mixture.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/word_list.h"

enum { SUPER = 256, MANY_QUERIES = 4, MANY_EXPERTS = 4, EIGHT_EXPERTS = 8, LARGE_LAYERS = 80 };

/* The layers whose matrices have another format. */
typedef enum some_layers {
    NO_LAYER,
    EVERY_LAYER,
    FIRST_TWO,
    FIRST_FOUR,
    FIRST_EIGHTH,
    FIRST_SIXTEENTH,
    MIDDLE,         /* all but the first and the last eighth */
    ENDS_AND_THIRDS /* the first and the last eighth, and every third between */
} some_layers;

/* No matrix of a mixture is f32. A format that is not set means: that of most matrices. */
#define UNSET TERN_FORMAT_F32

typedef struct rule {
    some_layers where;
    tern_format format; /* in these layers */
    tern_format rest;   /* in the others */
} rule;

struct convert_mixture {
    const char *name;
    uint32_t file_type;
    tern_format most;
    tern_format head;      /* of output.weight, or the embedding that is the head; unset: q6_k */
    tern_format embedding; /* of another embedding */
    bool low;              /* values are q4_k or `lone`; with eight experts keys are q4_k, too */
    rule values;           /* of attn_v, and of queries, keys and values in one matrix */
    bool by_keys; /* `values` holds where four queries or more share a key, elsewhere `lone` */
    tern_format lone, lone_unknown; /* the second without importance, unless it is unset */
    tern_format keys, queries;
    rule wide;                              /* of ffn_gate and ffn_up */
    rule down, down_unknown, down_of_eight; /* ffn_down; without importance; with eight experts */
    tern_format heads;                      /* of attn_output */
    bool heads_of_eight;                    /* with eight experts attn_output is q5_k */
    tern_format experts;                    /* of all matrices of experts; unset: as of others */
    bool q2_k_needs_importance;
};

#define F(name) TERN_FORMAT_##name

/* Mixtures of types below three bits have these in common. */
#define LOW(better)                                                                                \
    .head = F(Q5_K), .embedding = F(better), .low = true, .lone = F(better),                       \
    .down = {FIRST_EIGHTH, F(better), UNSET}, .heads_of_eight = true

static const convert_mixture mixtures[] = {
    {.name = "q2_k",
     .file_type = 10,
     .most = F(Q2_K),
     .values = {EVERY_LAYER, F(Q4_K), UNSET},
     .by_keys = true,
     .lone = F(Q3_K),
     .down = {EVERY_LAYER, F(Q3_K), UNSET},
     .heads = F(Q3_K),
     .heads_of_eight = true},
    {.name = "q2_k_s",
     .file_type = 21,
     .most = F(Q2_K),
     .values = {EVERY_LAYER, F(Q4_K), UNSET},
     .by_keys = true,
     .down = {FIRST_EIGHTH, F(Q4_K), UNSET},
     .q2_k_needs_importance = true},
    {.name = "q3_k_s", .file_type = 11, .most = F(Q3_K), .heads_of_eight = true},
    {.name = "q3_k_m",
     .file_type = 12,
     .most = F(Q3_K),
     .values = {FIRST_TWO, F(Q5_K), F(Q4_K)},
     .down = {FIRST_SIXTEENTH, F(Q5_K), F(Q4_K)},
     .heads = F(Q4_K),
     .heads_of_eight = true},
    {.name = "q3_k_l",
     .file_type = 13,
     .most = F(Q3_K),
     .values = {EVERY_LAYER, F(Q5_K), UNSET},
     .down = {EVERY_LAYER, F(Q5_K), UNSET},
     .heads = F(Q5_K)},
    {.name = "q4_k_s",
     .file_type = 14,
     .most = F(Q4_K),
     .values = {FIRST_FOUR, F(Q5_K), UNSET},
     .down = {FIRST_EIGHTH, F(Q5_K), UNSET},
     .heads_of_eight = true},
    {.name = "q4_k_m",
     .file_type = 15,
     .most = F(Q4_K),
     .values = {ENDS_AND_THIRDS, F(Q6_K), UNSET},
     .down = {ENDS_AND_THIRDS, F(Q6_K), UNSET},
     .heads_of_eight = true},
    {.name = "q5_k_s", .file_type = 16, .most = F(Q5_K)},
    {.name = "q5_k_m",
     .file_type = 17,
     .most = F(Q5_K),
     .values = {ENDS_AND_THIRDS, F(Q6_K), UNSET},
     .down = {ENDS_AND_THIRDS, F(Q6_K), UNSET}},
    {.name = "iq1_s", .file_type = 24, .most = F(IQ1_S), LOW(Q2_K), .heads = F(IQ2_XXS)},
    {.name = "iq1_m", .file_type = 31, .most = F(IQ1_M), LOW(Q2_K), .heads = F(IQ2_XXS)},
    {.name = "iq2_xxs", .file_type = 19, .most = F(IQ2_XXS), LOW(Q2_K)},
    {.name = "iq2_xs", .file_type = 20, .most = F(IQ2_XS), LOW(Q2_K)},
    {.name = "iq2_s", /* a name that llama.cpp also gives to the format of most of iq2_m */
     .file_type = 28,
     .most = F(IQ2_XS),
     LOW(IQ3_S),
     .heads = F(IQ3_S)},
    {.name = "iq2_m", .file_type = 29, .most = F(IQ2_S), LOW(IQ3_S), .heads = F(IQ3_S)},
    {.name = "iq3_xxs",
     .file_type = 23,
     .most = F(IQ3_XXS),
     .head = F(Q5_K),
     .embedding = F(IQ3_S),
     .values = {EVERY_LAYER, F(Q4_K), UNSET},
     .by_keys = true,
     .lone_unknown = F(IQ3_S),
     .keys = F(IQ2_S),
     .queries = F(IQ2_S),
     .down_unknown = {FIRST_EIGHTH, F(Q4_K), F(Q3_K)},
     .heads = F(IQ3_S),
     .heads_of_eight = true},
    {.name = "iq3_xs",
     .file_type = 22,
     .most = F(IQ3_S),
     .values = {EVERY_LAYER, F(Q4_K), UNSET},
     .by_keys = true,
     .keys = F(IQ3_XXS),
     .queries = F(IQ3_XXS),
     .wide = {MIDDLE, F(IQ3_XXS), UNSET},
     .heads_of_eight = true},
    {.name = "iq3_s",
     .file_type = 26,
     .most = F(IQ3_S),
     .values = {EVERY_LAYER, F(Q4_K), UNSET},
     .by_keys = true,
     .heads_of_eight = true},
    {.name = "iq3_m",
     .file_type = 27,
     .most = F(IQ3_S),
     .values = {EVERY_LAYER, F(Q4_K), UNSET},
     .down = {FIRST_EIGHTH, F(Q4_K), UNSET},
     .down_of_eight = {ENDS_AND_THIRDS, F(Q4_K), UNSET},
     .heads = F(Q4_K),
     .heads_of_eight = true},
    {.name = "iq4_xs",
     .file_type = 30,
     .most = F(IQ4_XS),
     .values = {EVERY_LAYER, F(Q5_K), UNSET},
     .by_keys = true,
     .down_unknown = {FIRST_EIGHTH, F(Q5_K), UNSET},
     .heads_of_eight = true},
    {.name = "mxfp4_moe", .file_type = 38, .most = F(Q8_0), .head = F(Q8_0), .experts = F(MXFP4)},
};

const convert_mixture *convert_mixture_find(const char *name) {
    for (size_t i = 0; name != NULL && i < sizeof mixtures / sizeof *mixtures; i++)
        if (strcasecmp(mixtures[i].name, name) == 0)
            return &mixtures[i];
    return NULL;
}

uint32_t convert_mixture_file_type(const convert_mixture *mixture) {
    return mixture->file_type;
}

bool convert_mixture_needs_importance(const convert_mixture *mixture, tern_format format) {
    return mixture->q2_k_needs_importance && format == F(Q2_K);
}

static bool is_one_of(some_layers where, size_t layer, size_t layers) {
    const bool end = layer < layers / 8 || layer >= 7 * layers / 8;
    switch (where) {
    case EVERY_LAYER:
        return true;
    case FIRST_TWO:
        return layer < 2;
    case FIRST_FOUR:
        return layer < 4;
    case FIRST_EIGHTH:
        return layer < layers / 8;
    case FIRST_SIXTEENTH:
        return layer < layers / 16;
    case MIDDLE:
        return !end;
    case ENDS_AND_THIRDS:
        return end || (layer - layers / 8) % 3 == 2;
    default:
        return false;
    }
}

static tern_format either(tern_format format, tern_format otherwise) {
    return format != UNSET ? format : otherwise;
}

static tern_format by_rule(const convert_mixture *m, const rule *r, size_t layer, size_t layers) {
    return either(is_one_of(r->where, layer, layers) ? r->format : r->rest, m->most);
}

/* attn_v, or attn_qkv. Models of 80 layers that share values have few of these: one step more. */
static tern_format of_values(const convert_mixture *m, const convert_shape *s, size_t layer) {
    const bool many = s->queries >= MANY_QUERIES;
    if (m->low)
        return many || s->experts >= MANY_EXPERTS ? F(Q4_K) : m->lone;
    if (s->experts == EIGHT_EXPERTS)
        return F(Q8_0);
    const tern_format lone = either(s->importance ? UNSET : m->lone_unknown, m->lone);
    const tern_format format =
        m->by_keys && !many ? either(lone, m->most) : by_rule(m, &m->values, layer, s->layers);
    const bool raised = s->layers == LARGE_LAYERS && s->queries > 1;
    return raised && (format == F(Q3_K) || format == F(Q4_K)) ? F(Q5_K) : format;
}

static tern_format of_keys(const convert_mixture *m, const convert_shape *s) {
    if (s->experts == EIGHT_EXPERTS)
        return m->low ? F(Q4_K) : F(Q8_0);
    return either(m->keys, m->most);
}

static tern_format of_down(const convert_mixture *m, const convert_shape *s, size_t layer) {
    const rule *r = &m->down;
    if (!s->importance && m->down_unknown.where != NO_LAYER)
        r = &m->down_unknown;
    else if (s->experts == EIGHT_EXPERTS && m->down_of_eight.where != NO_LAYER)
        r = &m->down_of_eight;
    return by_rule(m, r, layer, s->layers);
}

static tern_format of_heads(const convert_mixture *m, const convert_shape *s) {
    if (s->experts == EIGHT_EXPERTS)
        return m->heads_of_eight ? F(Q5_K) : m->most;
    return either(m->heads, m->most);
}

static tern_format of_block(const convert_mixture *m, const convert_shape *s, const char *matrix,
                            size_t layer) {
    if (m->experts != UNSET && strstr(matrix, "_exps.") != NULL)
        return m->experts;
    if (text_begins_with(matrix, "attn_v.") || text_begins_with(matrix, "attn_qkv."))
        return of_values(m, s, layer);
    if (text_begins_with(matrix, "attn_k."))
        return of_keys(m, s);
    if (text_begins_with(matrix, "attn_q."))
        return either(m->queries, m->most);
    if (text_begins_with(matrix, "attn_output."))
        return of_heads(m, s);
    if (text_begins_with(matrix, "ffn_down"))
        return of_down(m, s, layer);
    if (text_begins_with(matrix, "ffn_gate") || text_begins_with(matrix, "ffn_up"))
        return by_rule(m, &m->wide, layer, s->layers);
    return m->most;
}

tern_format convert_mixture_format(const convert_mixture *mixture, const convert_shape *shape,
                                   const char *name, size_t cols) {
    unsigned layer;
    int at = 0;
    const bool embedding = strcmp(name, "token_embd.weight") == 0;

    if (strcmp(name, "position_embd.weight") == 0 || strcmp(name, "token_types.weight") == 0)
        return TERN_FORMAT_NONE;
    if (strcmp(name, "output.weight") == 0 || (shape->tied && embedding))
        return cols % SUPER == 0 ? either(mixture->head, F(Q6_K)) : F(Q8_0);
    if (embedding)
        return either(mixture->embedding, mixture->most);
    return sscanf(name, "blk.%u.%n", &layer, &at) == 1 && at > 0
               ? of_block(mixture, shape, name + at, layer)
               : mixture->most;
}
