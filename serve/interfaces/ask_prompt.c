/* SPDX-License-Identifier: Apache-2.0 */
/* Prompts: texts, token ids, and mixtures of both. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "serve/interfaces/ask.h"

/* Passes on messages of chat formats. The tokenizer's own messages name the model's file, so the
 * client gets the status in their place. */
bool ask_refuse_text(refusal *r, const char *param, const tern_error *err) {
    const bool of_chat = err->status == TERN_ERR_CHAT || err->status == TERN_ERR_TEMPLATE ||
                         err->status == TERN_ERR_JSON;
    if (of_chat)
        return refuse(r, 400, param, "%s: %s", param, err->message);
    return err->status == TERN_ERR_NOMEM
               ? refuse_error(r, param, err)
               : refuse(r, 400, param, "%s: %s", param,
                        err->status == TERN_ERR_TOKENIZER_DATA
                            ? "the model has no chat format that is known here"
                            : tern_status_str(err->status));
}

bool ask_refuse_limits(const ask_rules *rules, const char *param, tern_status status, refusal *r) {
    if (status == TERN_ERR_STATE)
        return refuse(r, 503, param, "the server is ending, or the client has left");
    if (rules->limits.most_tokens == 0) {
        return refuse(r, 400, param,
                      "%s is longer than %zu bytes, which is as much as is tokenized", param,
                      rules->limits.most_bytes);
    }
    (void)refuse_long(r, rules->limits.most_tokens, rules->n_ctx);
    if (rules->limits.most_bytes > 0) { /* the tokenizer does not say which of the two limits it
                                           was */
        (void)snprintf(r->message, sizeof r->message,
                       "the prompt has more than %zu bytes or %zu tokens, and the context %u "
                       "positions",
                       rules->limits.most_bytes, rules->limits.most_tokens, rules->n_ctx);
    }
    return false;
}

int32_t *ask_tokenize(const ask_rules *rules, const char *bytes, size_t size, unsigned flags,
                      size_t *n, const char *param, refusal *r) {
    tern_error err = {0};
    int32_t *ids = NULL;
    const tern_status status =
        tern_tokenize_within(rules->tokenizer, bytes, size, flags, &rules->limits, &ids, n, &err);
    if (status == TERN_ERR_CONTEXT || status == TERN_ERR_STATE)
        (void)ask_refuse_limits(rules, param, status, r);
    else if (status != TERN_OK)
        (void)ask_refuse_text(r, param, &err);
    else if (ids == NULL && (ids = malloc(sizeof *ids)) == NULL) /* an empty text has no tokens */
        (void)refuse(r, 503, param, "no memory for the request");
    return ids;
}

static bool read_id(const json_t *id, size_t i, uint32_t n_vocab, const char *param, int32_t *out,
                    refusal *r) {
    const json_int_t x = json_integer_value(id);
    if (!json_is_integer(id) || x < 0 || x >= (json_int_t)n_vocab) {
        return refuse(r, 400, param, "element %zu is not a token id, an integer from 0 to %u", i,
                      n_vocab - 1);
    }
    *out = (int32_t)x;
    return true;
}

int32_t *ask_read_ids(const json_t *array, uint32_t n_vocab, size_t *n, const char *param,
                      refusal *r) {
    *n = json_array_size(array);
    int32_t *ids = malloc((*n + 1) * sizeof *ids);
    if (ids == NULL) {
        (void)refuse(r, 503, param, "no memory for %zu tokens", *n);
        return NULL;
    }
    for (size_t i = 0; i < *n; i++) {
        if (!read_id(json_array_get(array, i), i, n_vocab, param, &ids[i], r)) {
            free(ids);
            return NULL;
        }
    }
    return ids;
}

/* ---- into an ask ----------------------------------------------------------------------------- */

const char *ask_prompt_field(ask_kind kind) {
    switch (kind) {
    case ASK_CHAT:
    case ASK_MESSAGE:
        return "messages";
    case ASK_RESPONSE:
    case ASK_EMBEDDING:
        return "input";
    case ASK_NATIVE_EMBEDDING:
        return "content";
    default:
        return "prompt";
    }
}

static bool reserve_prompts(ask *a, const ask_rules *rules, size_t n, refusal *r) {
    const char *param = ask_prompt_field(a->kind);
    const uint32_t most = (a->kind & ASK_VECTORS) != 0 ? ASK_MOST_TEXTS : rules->most_choices;
    if (n == 0 || n > most)
        return refuse(r, 400, param, "%zu prompts: a request has 1 to %u", n, most);
    a->prompts = calloc(n, sizeof *a->prompts);
    a->n_prompts = a->prompts != NULL ? n : 0;
    return a->prompts != NULL || refuse(r, 503, param, "no memory for %zu prompts", n);
}

/* Leaves out the end of a text that is too long. A control token that ends every text stays. */
static void truncate_ids(ask_prompt *p, const ask_rules *rules) {
    size_t shown;
    if (p->n <= rules->n_ctx)
        return;
    (void)tern_token_bytes(rules->tokenizer, p->ids[p->n - 1], false, &shown);
    if (shown == 0)
        p->ids[rules->n_ctx - 1] = p->ids[p->n - 1];
    p->n = rules->n_ctx;
}

static bool check_length(const ask *a, ask_prompt *p, const ask_rules *rules, refusal *r) {
    if (rules->truncates)
        truncate_ids(p, rules);
    if (p->n == 0)
        return refuse(r, 400, ask_prompt_field(a->kind), "the prompt has no tokens");
    return p->n + !a->prompt_only <= rules->n_ctx || refuse_length(r, p->n, rules->n_ctx);
}

/* Recognises control tokens in prompts, since clients that apply templates write them there; but
 * not in texts of which vectors are wanted. */
static unsigned text_flags(const ask *a, bool first) {
    const bool parse = (a->kind & ASK_VECTORS) == 0 && !a->plain;
    return (first && !a->bare ? TERN_TOKENIZE_SPECIAL : 0U) | (parse ? TERN_TOKENIZE_PARSE : 0U);
}

static bool reserve_ids(ask_prompt *p, size_t n, refusal *r) {
    int32_t *grown = realloc(p->ids, (p->n + n + 1) * sizeof *grown);
    if (grown == NULL)
        return refuse(r, 503, "prompt", "no memory for %zu tokens", p->n + n);
    p->ids = grown;
    return true;
}

bool ask_append_ids(ask_prompt *p, const int32_t *ids, size_t n, refusal *r) {
    if (!reserve_ids(p, n, r))
        return false;
    memcpy(p->ids + p->n, ids, n * sizeof *ids);
    p->n += n;
    return true;
}

/* The number of elements from the i-th on that are not texts. */
static size_t count_ids(const json_t *parts, size_t i) {
    const size_t first = i;
    while (i < json_array_size(parts) && !json_is_string(json_array_get(parts, i)))
        i++;
    return i - first;
}

static bool append_ids_of(const ask_rules *rules, const json_t *parts, size_t i, size_t n,
                          const char *param, ask_prompt *p, refusal *r) {
    if (!reserve_ids(p, n, r))
        return false;
    for (const size_t end = i + n; i < end; i++, p->n++)
        if (!read_id(json_array_get(parts, i), i, rules->n_vocab, param, &p->ids[p->n], r))
            return false;
    return true;
}

static bool append_text_of(const ask_rules *rules, const json_t *part, unsigned flags,
                           const char *param, ask_prompt *p, refusal *r) {
    size_t n = 0;
    int32_t *ids =
        ask_tokenize(rules, json_string_value(part), json_string_length(part), flags, &n, param, r);
    const bool appended = ids != NULL && ask_append_ids(p, ids, n, r);
    free(ids);
    return appended;
}

bool ask_tokenize_mixture(const ask_rules *rules, const json_t *parts, ask_mixture how,
                          ask_prompt *p, refusal *r) {
    bool sound = reserve_ids(p, 0, r);
    for (size_t i = 0; i < json_array_size(parts) && sound; i++) {
        const size_t n = count_ids(parts, i);
        if (p->n > how.most)
            return refuse_length(r, p->n, rules->n_ctx);
        sound = n > 0 ? append_ids_of(rules, parts, i, n, how.param, p, r)
                      : append_text_of(rules, json_array_get(parts, i),
                                       i == 0 ? how.first : how.others, how.param, p, r);
        i += n > 0 ? n - 1 : 0;
    }
    return sound;
}

static bool read_mixture(const ask *a, ask_prompt *p, const ask_rules *rules, const json_t *parts,
                         refusal *r) {
    const ask_mixture how = {.first = text_flags(a, true),
                             .others = text_flags(a, false),
                             .most = rules->truncates ? SIZE_MAX : rules->n_ctx,
                             .param = ask_prompt_field(a->kind)};
    return ask_tokenize_mixture(rules, parts, how, p, r);
}

static void read_text(const ask *a, ask_prompt *p, const ask_rules *rules, const char *bytes,
                      size_t size, refusal *r) {
    p->ids =
        ask_tokenize(rules, bytes, size, text_flags(a, true), &p->n, ask_prompt_field(a->kind), r);
}

/* Returns the text of an object, in which llama.cpp's clients may send it, beside a list of images.
 * The list must be empty. */
static const json_t *unwrap(const json_t *given) {
    const json_t *inside = json_object_get(given, "prompt_string");
    const json_t *other = json_object_get(given, "multimodal_data");
    const bool alone = other == NULL || (json_is_array(other) && json_array_size(other) == 0);
    return inside != NULL && alone ? inside : given;
}

/* Reads a text in parts, as they are in messages: the parts are one text, with nothing between. */
static bool read_parts(const ask *a, ask_prompt *p, const ask_rules *rules, const json_t *parts,
                       refusal *r) {
    const char *param = ask_prompt_field(a->kind);
    text joined = {0};
    for (size_t i = 0; i < json_array_size(parts) && r->status == 0; i++) {
        const json_t *part = json_array_get(parts, i), *said = json_object_get(part, "text");
        const json_t *type = json_object_get(part, "type");
        if (!json_is_string(said) || !json_is_string(type) ||
            strcmp(json_string_value(type), "text") != 0)
            (void)refuse(r, 400, param, "part %zu of content is not a text", i);
        else
            text_add(&joined, json_string_value(said), json_string_length(said));
    }
    if (joined.failed)
        (void)refuse(r, 503, param, "no memory for the request");
    if (r->status == 0)
        read_text(a, p, rules, joined.bytes != NULL ? joined.bytes : "", joined.size, r);
    text_free(&joined);
    return r->status == 0;
}

static bool read_prompt(const ask *a, ask_prompt *p, const ask_rules *rules, const json_t *given,
                        refusal *r) {
    const char *param = ask_prompt_field(a->kind);
    given = unwrap(given);
    const json_t *parts = json_object_get(given, "content");
    if (a->gap) {
        (void)ask_tokenize_gap(a, rules, given, p, r);
    } else if (json_is_string(given)) {
        p->given = json_string_value(given);
        p->given_size = json_string_length(given);
        read_text(a, p, rules, p->given, p->given_size, r);
    } else if (json_is_array(given)) {
        (void)read_mixture(a, p, rules, given, r);
    } else if (json_is_array(parts)) {
        (void)read_parts(a, p, rules, parts, r);
    } else {
        return refuse(r, 400, param,
                      "%s must be a text, an array of token ids and texts, or an array of those",
                      param);
    }
    return r->status == 0 && check_length(a, p, rules, r);
}

/* True if a field is one prompt: not an array, or an array with ids in it. */
static bool is_one_prompt(const json_t *prompt) {
    bool ids = false;
    for (size_t i = 0; i < json_array_size(prompt) && !ids; i++)
        ids = json_is_integer(json_array_get(prompt, i));
    return ids || !json_is_array(prompt);
}

static bool read_texts(ask *a, const ask_rules *rules, const json_t *prompt, refusal *r) {
    if (is_one_prompt(prompt))
        return reserve_prompts(a, rules, 1, r) && read_prompt(a, &a->prompts[0], rules, prompt, r);
    bool sound = reserve_prompts(a, rules, json_array_size(prompt), r);
    for (size_t i = 0; i < a->n_prompts && sound; i++)
        sound = read_prompt(a, &a->prompts[i], rules, json_array_get(prompt, i), r);
    return sound;
}

bool ask_read_prompts(ask *a, const ask_rules *rules, refusal *r) {
    const char *name = ask_prompt_field(a->kind);
    const json_t *prompt = json_object_get(a->body, name);
    if (prompt == NULL && a->kind == ASK_NATIVE_EMBEDDING)
        prompt = json_object_get(a->body, "input"); /* llama.cpp takes both names */
    if (prompt == NULL || json_is_null(prompt))
        return refuse(r, 400, name, "%s is missing", name);
    if ((a->kind & (ASK_COMPLETION | ASK_NATIVE | ASK_VECTORS)) != 0)
        return read_texts(a, rules, prompt, r);
    if (!reserve_prompts(a, rules, 1, r))
        return false;
    ask_prompt *p = &a->prompts[0];
    return ask_tokenize_talk(a, rules, p, r) && check_length(a, p, rules, r);
}
