/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/text/tokenizer/bert_rules.h"

const char tern_no_bert[] =
    "this build of tern has neither lower case nor accents (library utf8proc)";

static bool add(tern_vocabulary *v, tern_step step) {
    if (v->n_steps == TERN_TOKENIZER_MAX_STEPS)
        return false;
    v->steps[v->n_steps++] = step;
    return true;
}

static bool add_map(tern_vocabulary *v, tern_character_map map) {
    return add(v, (tern_step){.kind = TERN_STEP_CHARACTERS, .map = map});
}

bool tern_bert_add_normalizer(tern_vocabulary *v, tern_bert_rules rules) {
    return (!rules.clean || add_map(v, TERN_MAP_CLEAN)) &&
           (!rules.han || add_map(v, TERN_MAP_SPACE_HAN)) &&
           (!rules.accents || (add(v, (tern_step){.kind = TERN_STEP_NORMALIZE, .form = TERN_NFD}) &&
                               add_map(v, TERN_MAP_DROP_MN))) &&
           (!rules.lowercase || add_map(v, TERN_MAP_LOWERCASE));
}

static bool has(const tern_vocabulary *v, tern_character_map map) {
    for (size_t i = 0; i < v->n_steps; i++)
        if (v->steps[i].kind == TERN_STEP_CHARACTERS && v->steps[i].map == map)
            return true;
    return false;
}

/* Compares the members in which steps of BERT can differ. */
static bool is_same(const tern_step *a, const tern_step *b) {
    return a->kind == b->kind && a->map == b->map && a->form == b->form;
}

bool tern_bert_recognise(const tern_vocabulary *v, tern_bert_rules *out) {
    tern_vocabulary other = {.n_steps = 0};
    size_t n = 0;
    *out = (tern_bert_rules){.clean = has(v, TERN_MAP_CLEAN),
                             .han = has(v, TERN_MAP_SPACE_HAN),
                             .accents = has(v, TERN_MAP_DROP_MN),
                             .lowercase = has(v, TERN_MAP_LOWERCASE)};
    if (!tern_bert_add_normalizer(&other, *out) ||
        !add(&other, (tern_step){.kind = TERN_STEP_WORDS}))
        return false;
    for (size_t i = 0; i < v->n_steps; i++) {
        if (v->steps[i].kind == TERN_STEP_ADDED)
            continue;
        if (n == other.n_steps || !is_same(&v->steps[i], &other.steps[n]))
            return false;
        n++;
    }
    return n == other.n_steps;
}
