/* SPDX-License-Identifier: Apache-2.0 */
/* Prompts with a gap: the model fills in what is missing between two texts. */

#include <stdlib.h>
#include <string.h>

#include "serve/interfaces/ask.h"

/* Texts of the control tokens before the first text, before the second, and where the answer
 * begins. Vocabularies have one of these rows, or none. */
typedef struct gap_marks {
    const char *before, *after, *middle;
} gap_marks;

static const gap_marks known[] = {
    {"<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>"},
    {"<fim_prefix>", "<fim_suffix>", "<fim_middle>"},
    {"<fim-prefix>", "<fim-suffix>", "<fim-middle>"},
    {"<|code_prefix|>", "<|code_suffix|>", "<|code_middle|>"},
    {"<\357\275\234fim\342\226\201begin\357\275\234>",
     "<\357\275\234fim\342\226\201hole\357\275\234>",
     "<\357\275\234fim\342\226\201end\357\275\234>"}, /* DeepSeek */
    {"<PRE>", "<SUF>", "<MID>"},
    {"[PREFIX]", "[SUFFIX]", "[MIDDLE]"},
};

/* True if a text is one token of the vocabulary. */
static bool is_token(const ask_rules *rules, const char *words) {
    int32_t *ids = NULL;
    size_t n = 0;
    const tern_status status =
        tern_tokenize_within(rules->tokenizer, words, strlen(words), TERN_TOKENIZE_PARSE,
                             &rules->limits, &ids, &n, NULL);
    free(ids);
    return status == TERN_OK && n == 1;
}

static const gap_marks *find_marks(const ask_rules *rules) {
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (is_token(rules, known[i].before) && is_token(rules, known[i].after) &&
            is_token(rules, known[i].middle))
            return &known[i];
    return NULL;
}

static bool add(const ask_rules *rules, ask_prompt *p, const char *bytes, size_t size,
                unsigned flags, refusal *r) {
    size_t n;
    int32_t *ids = ask_tokenize(rules, bytes, size, flags, &n, "prompt", r);
    const bool added = ids != NULL && ask_append_ids(p, ids, n, r);
    free(ids);
    return added;
}

static bool add_mark(const ask_rules *rules, ask_prompt *p, const char *mark, unsigned flags,
                     refusal *r) {
    return add(rules, p, mark, strlen(mark), flags | TERN_TOKENIZE_PARSE, r);
}

static bool add_text(const ask_rules *rules, ask_prompt *p, const json_t *words, unsigned flags,
                     refusal *r) {
    return json_string_length(words) == 0 ||
           add(rules, p, json_string_value(words), json_string_length(words), flags, r);
}

bool ask_tokenize_gap(const ask *a, const ask_rules *rules, const json_t *before, ask_prompt *p,
                      refusal *r) {
    const gap_marks *marks = find_marks(rules);
    const unsigned parse = a->plain ? 0U : TERN_TOKENIZE_PARSE;
    if (marks == NULL)
        return refuse(r, 400, "suffix", "suffix: this model has no tokens for texts to fill in");
    if (!json_is_string(before) || (a->echo && a->logprobs))
        return refuse(r, 400, "suffix",
                      "suffix: the prompt must be a text, whose logprobs are not told");
    p->given = json_string_value(before);
    p->given_size = json_string_length(before);
    return add_mark(rules, p, marks->before, a->bare ? 0U : TERN_TOKENIZE_SPECIAL, r) &&
           add_text(rules, p, before, parse, r) && add_mark(rules, p, marks->after, 0, r) &&
           add_text(rules, p, a->suffix, parse, r) && add_mark(rules, p, marks->middle, 0, r);
}
