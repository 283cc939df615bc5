/* SPDX-License-Identifier: Apache-2.0 */
/* Prompts: conversations, texts, token ids. */

#include <stdlib.h>
#include <string.h>

#include "serve/ask.h"

/* A text that the tokenizer refuses is its client's, but for a lack of memory. Its messages name
 * the model's file. */
static bool refuse_text(refusal *r, const char *param, const tern_error *err) {
    return err->status == TERN_ERR_NOMEM
               ? refuse_error(r, param, err)
               : refuse(r, 400, param, "%s: %s", param,
                        err->status == TERN_ERR_TOKENIZER_DATA
                            ? "the model has no chat format that is known here"
                            : tern_status_str(err->status));
}

int32_t *ask_tokenize(const tern_tokenizer *t, const char *bytes, size_t size, unsigned flags,
                      size_t *n, const char *param, refusal *r) {
    tern_error err = {0};
    if (tern_tokenize(t, bytes, size, flags, NULL, 0, n, &err) != TERN_OK) {
        (void)refuse_text(r, param, &err);
        return NULL;
    }
    int32_t *ids = malloc((*n + 1) * sizeof *ids);
    if (ids == NULL) {
        (void)refuse(r, 503, param, "no memory for %zu tokens", *n);
    } else if (*n > 0 && tern_tokenize(t, bytes, size, flags, ids, *n, n, &err) != TERN_OK) {
        (void)refuse_text(r, param, &err);
        free(ids);
        ids = NULL;
    }
    return ids;
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
        const json_t *id = json_array_get(array, i);
        const json_int_t x = json_integer_value(id);
        if (!json_is_integer(id) || x < 0 || x >= (json_int_t)n_vocab) {
            (void)refuse(r, 400, param, "element %zu is no token id, an integer from 0 to %u", i,
                         n_vocab - 1);
            free(ids);
            return NULL;
        }
        ids[i] = (int32_t)x;
    }
    return ids;
}

/* ---- conversations --------------------------------------------------------------------------- */

/* Parts of text, with a line's end between two of them. */
static bool join_parts(const json_t *parts, size_t message, text *out, refusal *r) {
    for (size_t i = 0; i < json_array_size(parts); i++) {
        const json_t *part = json_array_get(parts, i);
        const char *type = json_string_value(json_object_get(part, "type"));
        const json_t *words = json_object_get(part, "text");
        if (type == NULL || strcmp(type, "text") != 0 || !json_is_string(words)) {
            return refuse(r, 400, "messages",
                          "messages[%zu].content[%zu]: only parts {\"type\": \"text\", \"text\": "
                          "...} are understood",
                          message, i);
        }
        text_add(out, "\n", i > 0);
        text_add(out, json_string_value(words), json_string_length(words));
    }
    return true;
}

/* The role that a chat format has a place for; NULL after a refusal. */
static const char *role_of(const json_t *message, size_t i, refusal *r) {
    static const char *const roles[] = {"system", "user", "assistant"};
    const char *role = json_string_value(json_object_get(message, "role"));
    for (size_t k = 0; role != NULL && k < sizeof roles / sizeof *roles; k++) {
        if (strcmp(role, roles[k]) == 0) {
            return roles[k];
        }
    }
    if (role != NULL && strcmp(role, "developer") == 0) {
        return roles[0];
    }
    (void)refuse(r, 400, "messages",
                 "messages[%zu].role is not system, developer, user or assistant", i);
    return NULL;
}

static bool read_message(const json_t *message, size_t i, tern_chat_message *out, text *joined,
                         refusal *r) {
    const json_t *content = json_object_get(message, "content");
    const json_t *calls = json_object_get(message, "tool_calls");
    out->role = role_of(message, i, r);
    if (out->role == NULL) {
        return false;
    }
    if (json_array_size(calls) > 0) {
        return refuse(r, 400, "messages", "messages[%zu].tool_calls: tools are not supported", i);
    }
    if (json_is_string(content)) {
        out->content = json_string_value(content);
        return true;
    }
    if (json_is_array(content)) {
        text_add(joined, "", 0);
        if (!join_parts(content, i, joined, r)) {
            return false;
        }
        out->content = joined->bytes;
        return !joined->failed || refuse(r, 503, "messages", "no memory for the messages");
    }
    return refuse(r, 400, "messages", "messages[%zu].content is no text and no array of parts", i);
}

/* Tokens of messages that were read. */
static int32_t *tokenize_chat(const tern_tokenizer *t, const tern_chat_message *messages,
                              size_t n_messages, size_t *n, refusal *r) {
    tern_error err = {0};
    if (tern_chat_tokenize(t, messages, n_messages, NULL, 0, n, &err) != TERN_OK) {
        (void)refuse_text(r, "messages", &err);
        return NULL;
    }
    int32_t *ids = malloc((*n + 1) * sizeof *ids);
    if (ids == NULL) {
        (void)refuse(r, 503, "messages", "no memory for %zu tokens", *n);
    } else if (*n > 0 && tern_chat_tokenize(t, messages, n_messages, ids, *n, n, &err) != TERN_OK) {
        (void)refuse_text(r, "messages", &err);
        free(ids);
        ids = NULL;
    }
    return ids;
}

int32_t *ask_tokenize_messages(const tern_tokenizer *t, const json_t *messages, size_t *n,
                               refusal *r) {
    const size_t count = json_array_size(messages);
    if (count == 0) {
        (void)refuse(r, 400, "messages", "messages must be an array of at least one message");
        return NULL;
    }
    tern_chat_message *list = calloc(count, sizeof *list);
    text *joined = calloc(count, sizeof *joined);
    int32_t *ids = NULL;
    bool sound = list != NULL && joined != NULL;
    if (!sound) {
        (void)refuse(r, 503, "messages", "no memory for %zu messages", count);
    }
    for (size_t i = 0; i < count && sound; i++) {
        sound = read_message(json_array_get(messages, i), i, &list[i], &joined[i], r);
    }
    if (sound) {
        ids = tokenize_chat(t, list, count, n, r);
    }
    for (size_t i = 0; i < count && joined != NULL; i++) {
        text_free(&joined[i]);
    }
    free(joined);
    free(list);
    return ids;
}

/* ---- into an ask ----------------------------------------------------------------------------- */

static bool reserve_prompts(ask *a, const ask_rules *rules, size_t n, const char *param,
                            refusal *r) {
    if (n == 0 || n > rules->most_choices) {
        return refuse(r, 400, param, "%zu prompts: a request has 1 to %u", n, rules->most_choices);
    }
    a->prompts = calloc(n, sizeof *a->prompts);
    a->n_prompts = a->prompts != NULL ? n : 0;
    return a->prompts != NULL || refuse(r, 503, param, "no memory for %zu prompts", n);
}

static bool check_length(const ask_prompt *p, const ask_rules *rules, const char *param,
                         refusal *r) {
    if (p->n == 0) {
        return refuse(r, 400, param, "the prompt has no tokens");
    }
    return p->n < rules->n_ctx || refuse_length(r, p->n, rules->n_ctx);
}

bool ask_read_messages(ask *a, const ask_rules *rules, const json_t *messages, refusal *r) {
    if (!reserve_prompts(a, rules, 1, "messages", r)) {
        return false;
    }
    ask_prompt *p = &a->prompts[0];
    p->ids = ask_tokenize_messages(rules->tokenizer, messages, &p->n, r);
    return p->ids != NULL && check_length(p, rules, "messages", r);
}

static bool read_prompt(ask_prompt *p, const ask_rules *rules, const json_t *given, refusal *r) {
    if (json_is_string(given)) {
        p->given = json_string_value(given);
        p->ids = ask_tokenize(rules->tokenizer, p->given, json_string_length(given),
                              TERN_TOKENIZE_SPECIAL, &p->n, "prompt", r);
    } else if (json_is_array(given)) {
        p->ids = ask_read_ids(given, rules->n_vocab, &p->n, "prompt", r);
    } else {
        return refuse(r, 400, "prompt",
                      "prompt must be a text, an array of token ids, or an array of those");
    }
    return p->ids != NULL && check_length(p, rules, "prompt", r);
}

bool ask_read_prompts(ask *a, const ask_rules *rules, const json_t *prompt, refusal *r) {
    const bool ids = json_is_integer(json_array_get(prompt, 0));
    if (!json_is_array(prompt) || ids) {
        return reserve_prompts(a, rules, 1, "prompt", r) &&
               read_prompt(&a->prompts[0], rules, prompt, r);
    }
    bool sound = reserve_prompts(a, rules, json_array_size(prompt), "prompt", r);
    for (size_t i = 0; i < a->n_prompts && sound; i++) {
        sound = read_prompt(&a->prompts[i], rules, json_array_get(prompt, i), r);
    }
    return sound;
}
