/* SPDX-License-Identifier: Apache-2.0 */
#include "authoring/convert/mixture.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

enum { SUPER = 256, MANY_QUERIES = 4, EIGHT_EXPERTS = 8 };

/* The layers whose matrices have more bits. */
typedef enum some_layers {
    NO_LAYER,
    EVERY_LAYER,
    FIRST_TWO,
    FIRST_FOUR,
    FIRST_EIGHTH,
    FIRST_SIXTEENTH,
    ENDS_AND_THIRDS /* the first and the last eighth, and every third between */
} some_layers;

/* In these layers `more`, in the others `rest`; NONE: what all matrices are. */
typedef struct rule {
    some_layers where;
    tern_format more, rest;
} rule;

struct convert_mixture {
    const char *name;
    uint32_t file_type;
    tern_format most;
    bool with_queries; /* the rule of values holds where several queries share them, else `lone` */
    tern_format lone;
    rule values; /* and of queries, keys and values in one matrix */
    rule down;
    bool unless_known;   /* the rule of down holds without importance alone */
    tern_format heads;   /* of attn_output */
    bool heads_of_eight; /* with eight experts attn_output is Q5_K */
};

#define F(name) TERN_FORMAT_##name
#define NONE TERN_FORMAT_NONE

static const convert_mixture mixtures[] = {
    {"q2_k",
     10,
     F(Q2_K),
     true,
     F(Q3_K),
     {EVERY_LAYER, F(Q4_K), NONE},
     {EVERY_LAYER, F(Q3_K), NONE},
     false,
     F(Q3_K),
     true},
    {"q2_k_s",
     21,
     F(Q2_K),
     true,
     NONE,
     {EVERY_LAYER, F(Q4_K), NONE},
     {FIRST_EIGHTH, F(Q4_K), NONE},
     false,
     NONE,
     false},
    {"q3_k_s",
     11,
     F(Q3_K),
     false,
     NONE,
     {NO_LAYER, NONE, NONE},
     {NO_LAYER, NONE, NONE},
     false,
     NONE,
     true},
    {"q3_k_m",
     12,
     F(Q3_K),
     false,
     NONE,
     {FIRST_TWO, F(Q5_K), F(Q4_K)},
     {FIRST_SIXTEENTH, F(Q5_K), F(Q4_K)},
     false,
     F(Q4_K),
     true},
    {"q3_k_l",
     13,
     F(Q3_K),
     false,
     NONE,
     {EVERY_LAYER, F(Q5_K), NONE},
     {EVERY_LAYER, F(Q5_K), NONE},
     false,
     F(Q5_K),
     false},
    {"q4_k_s",
     14,
     F(Q4_K),
     false,
     NONE,
     {FIRST_FOUR, F(Q5_K), NONE},
     {FIRST_EIGHTH, F(Q5_K), NONE},
     false,
     NONE,
     true},
    {"q4_k_m",
     15,
     F(Q4_K),
     false,
     NONE,
     {ENDS_AND_THIRDS, F(Q6_K), NONE},
     {ENDS_AND_THIRDS, F(Q6_K), NONE},
     false,
     NONE,
     true},
    {"q5_k_s",
     16,
     F(Q5_K),
     false,
     NONE,
     {NO_LAYER, NONE, NONE},
     {NO_LAYER, NONE, NONE},
     false,
     NONE,
     false},
    {"q5_k_m",
     17,
     F(Q5_K),
     false,
     NONE,
     {ENDS_AND_THIRDS, F(Q6_K), NONE},
     {ENDS_AND_THIRDS, F(Q6_K), NONE},
     false,
     NONE,
     false},
    {"iq4_xs",
     30,
     F(IQ4_XS),
     true,
     NONE,
     {EVERY_LAYER, F(Q5_K), NONE},
     {FIRST_EIGHTH, F(Q5_K), NONE},
     true,
     NONE,
     true},
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

static bool is_one_of(some_layers where, size_t layer, size_t layers) {
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
    case ENDS_AND_THIRDS:
        return layer < layers / 8 || layer >= 7 * layers / 8 || (layer - layers / 8) % 3 == 2;
    default:
        return false;
    }
}

static tern_format either(tern_format format, tern_format otherwise) {
    return format != NONE ? format : otherwise;
}

static tern_format by_rule(const convert_mixture *m, const rule *r, size_t layer, size_t layers) {
    return either(is_one_of(r->where, layer, layers) ? r->more : r->rest, m->most);
}

/* attn_v, or attn_qkv. Models of 80 layers that share values have few of these: one step more. */
static tern_format of_values(const convert_mixture *m, const convert_shape *s, size_t layer) {
    if (s->experts == EIGHT_EXPERTS)
        return F(Q8_0);
    const bool shared = s->queries >= MANY_QUERIES;
    const tern_format format = m->with_queries && !shared
                                   ? either(m->lone, m->most)
                                   : by_rule(m, &m->values, layer, s->layers);
    const bool raised = s->layers == 80 && s->queries > 1;
    return raised && (format == F(Q3_K) || format == F(Q4_K)) ? F(Q5_K) : format;
}

static tern_format of_block(const convert_mixture *m, const convert_shape *s, const char *matrix,
                            size_t layer) {
    if (strcmp(matrix, "attn_v.weight") == 0 || strcmp(matrix, "attn_qkv.weight") == 0)
        return of_values(m, s, layer);
    if (strcmp(matrix, "attn_k.weight") == 0)
        return s->experts == EIGHT_EXPERTS ? F(Q8_0) : m->most;
    if (strncmp(matrix, "ffn_down", 8) == 0)
        return m->unless_known && s->importance ? m->most : by_rule(m, &m->down, layer, s->layers);
    if (strcmp(matrix, "attn_output.weight") != 0)
        return m->most;
    if (s->experts == EIGHT_EXPERTS)
        return m->heads_of_eight ? F(Q5_K) : m->most;
    return either(m->heads, m->most);
}

tern_format convert_mixture_format(const convert_mixture *mixture, const convert_shape *shape,
                                   const char *name, size_t cols) {
    unsigned layer;
    int at = 0;

    if (strcmp(name, "output.weight") == 0 ||
        (shape->tied && strcmp(name, "token_embd.weight") == 0))
        return cols % SUPER == 0 ? F(Q6_K) : F(Q8_0);
    return sscanf(name, "blk.%u.%n", &layer, &at) == 1 && at > 0
               ? of_block(mixture, shape, name + at, layer)
               : mixture->most;
}
