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

static bool add_mark(const ask_rules *rules, ask_prompt *p, const char *mark, refusal *r) {
    return add(rules, p, mark, strlen(mark), TERN_TOKENIZE_PARSE, r);
}

static bool add_text(const ask_rules *rules, ask_prompt *p, const json_t *words, unsigned flags,
                     refusal *r) {
    return json_string_length(words) == 0 ||
           add(rules, p, json_string_value(words), json_string_length(words), flags, r);
}

/* Adds other texts, each after its file's name: a token stands before the name, or dashes do. */
static bool add_extra(const ask *a, const ask_rules *rules, ask_prompt *p, refusal *r) {
    static const char *const tokens[] = {"<|file_sep|>", "<file_sep>", "<filename>"};
    const char *mark = NULL;
    bool sound = true;
    for (size_t i = 0; i < sizeof tokens / sizeof *tokens && mark == NULL; i++)
        mark = is_token(rules, tokens[i]) ? tokens[i] : NULL;
    for (size_t i = 0; i < json_array_size(a->extra) && sound; i++) {
        const json_t *one = json_array_get(a->extra, i);
        const json_t *name = json_object_get(one, "filename");
        text line = {0};
        text_print(&line, mark != NULL ? "%.512s\n" : "\n\n--- %.512s ---\n\n",
                   json_is_string(name) ? json_string_value(name) : "snippet");
        sound = !line.failed || refuse(r, 503, "input_extra", "no memory for the prompt");
        sound = sound && (mark == NULL || add_mark(rules, p, mark, r)) &&
                add(rules, p, line.bytes, line.size, 0, r) &&
                add_text(rules, p, json_object_get(one, "text"), 0, r);
        text_free(&line);
    }
    return sound;
}

bool ask_tokenize_gap(const ask *a, const ask_rules *rules, const json_t *before, ask_prompt *p,
                      refusal *r) {
    const char *param =
        json_object_get(a->body, "input_suffix") != NULL ? "input_suffix" : "suffix";
    const gap_marks *marks = find_marks(rules);
    const unsigned parse = a->plain ? 0U : TERN_TOKENIZE_PARSE;
    if (marks == NULL)
        return refuse(r, 400, param, "%s: this model has no tokens for texts to fill in", param);
    if (!json_is_string(before) || (a->echo && a->logprobs))
        return refuse(r, 400, param, "%s: the prompt must be a text, whose logprobs are not told",
                      param);
    p->given = json_string_value(before);
    p->given_size = json_string_length(before);
    return add(rules, p, "", 0, a->bare ? 0U : TERN_TOKENIZE_SPECIAL, r) &&
           add_extra(a, rules, p, r) && add_mark(rules, p, marks->before, r) &&
           add_text(rules, p, a->prefix, parse, r) && add_text(rules, p, before, parse, r) &&
           add_mark(rules, p, marks->after, r) && add_text(rules, p, a->suffix, parse, r) &&
           add_mark(rules, p, marks->middle, r);
}

bool ask_read_gap(ask *a, const ask_rules *rules, const char *bytes, size_t size, refusal *r) {
    static const char *const names[] = {"input_prefix", "input_suffix"};
    json_t *body = ask_parse_any(bytes, size, "the body", r);
    bool sound = body != NULL;
    *a = (ask){0};
    for (size_t i = 0; i < 2 && sound; i++)
        sound = json_is_string(json_object_get(body, names[i])) ||
                refuse(r, 400, names[i], "%s must be a text", names[i]);
    if (sound && json_object_get(body, "prompt") == NULL)
        sound = json_object_set_new(body, "prompt", json_string("")) == 0 ||
                refuse(r, 503, "prompt", "no memory for the request");
    if (sound)
        return ask_read_body(a, ASK_NATIVE, rules, body, r);
    json_decref(body);
    return false;
}
