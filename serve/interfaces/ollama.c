/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/interfaces/ollama.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* True if the template has a variable that says whether the model thinks, or how much. */
static bool can_switch(const tern_tokenizer *t) {
    return tern_chat_mentions(t, "enable_thinking") || tern_chat_mentions(t, "thinking") ||
           tern_chat_mentions(t, "reasoning_effort");
}

bool ollama_thinks(const tern_tokenizer *t) {
    return can_switch(t) || thinking_find(t) != NULL;
}

/* ---- values ---------------------------------------------------------------------------------- */

static const char *target_of(const ollama_field *f) {
    return f->to != NULL ? f->to : f->name;
}

/* Writes the name as clients know it. */
static void write_name(const ollama_field *f, char *out, size_t size) {
    (void)snprintf(out, size, "%s%s", f->option ? "options." : "", f->name);
}

static bool refuse_value(const ollama_reading *in, const char *why) {
    char name[64];
    write_name(in->at, name, sizeof name);
    return refuse(in->r, 400, name, "%s: %s", name, why);
}

static void note_ignored(ollama_reading *in, const char *prefix, const char *name) {
    enum { MOST_BYTES = 2048 };
    char whole[96];
    (void)snprintf(whole, sizeof whole, "%s%s", prefix, name);
    if (in->ignored.size + strlen(whole) > MOST_BYTES)
        return;
    text_add(&in->ignored, ",", in->ignored.size > 0);
    text_quote(&in->ignored, whole, strlen(whole));
}

/* True for a value that asks for nothing. */
static bool is_nothing(const json_t *value) {
    return value == NULL || json_is_null(value) ||
           (json_is_boolean(value) && !json_is_true(value)) ||
           (json_is_string(value) && json_string_length(value) == 0) ||
           (json_is_array(value) && json_array_size(value) == 0) ||
           (json_is_object(value) && json_object_size(value) == 0);
}

/* ---- fields ---------------------------------------------------------------------------------- */

/* Passes the value on. The field that it becomes checks it. */
static bool take_same(ollama_reading *in, json_t *value) {
    (void)json_object_set(in->body, target_of(in->at), value);
    return true;
}

/* Accepts fields that are read before or after all others. */
static bool take_later(ollama_reading *in, json_t *value) {
    (void)in;
    (void)value;
    return true;
}

/* Fields that change no answer here. */
static bool take_harmless(ollama_reading *in, json_t *value) {
    (void)value;
    note_ignored(in, in->at->option ? "options." : "", in->at->name);
    return true;
}

static bool take_absent(ollama_reading *in, json_t *value) {
    return is_nothing(value) || refuse_value(in, "not supported by this server");
}

static bool take_neutral(ollama_reading *in, json_t *value) {
    char why[64];
    (void)snprintf(why, sizeof why, "only %g is supported by this server", in->at->neutral);
    return (json_is_number(value) && json_number_value(value) == in->at->neutral) ||
           refuse_value(in, why);
}

/* Reads a number of tokens; -1, -2 and 0 ask for no limit but the context. */
static bool take_limit(ollama_reading *in, json_t *value) {
    if (!json_is_integer(value) || json_integer_value(value) < -2)
        return refuse_value(in, "must be an integer, at least -1");
    const json_int_t n = json_integer_value(value);
    (void)json_object_set_new(in->body, target_of(in->at), json_integer(n > 0 ? n : -1));
    return true;
}

/* Reads a number of tokens that are looked back at; -1: all. */
static bool take_window(ollama_reading *in, json_t *value) {
    if (!json_is_integer(value) || json_integer_value(value) != -1)
        return take_same(in, value);
    (void)json_object_set_new(in->body, target_of(in->at), json_integer(in->rules->n_ctx));
    return true;
}

/* Reads texts that end an answer. Empty ones, which some clients send, end nothing. */
static bool take_stops(ollama_reading *in, json_t *value) {
    if (!json_is_array(value))
        return is_nothing(value) || take_same(in, value);
    json_t *list = json_array();
    for (size_t i = 0; i < json_array_size(value); i++)
        if (!is_nothing(json_array_get(value, i)))
            (void)json_array_append_new(list, json_incref(json_array_get(value, i)));
    (void)json_object_set_new(in->body, target_of(in->at), list);
    return true;
}

/* Reads "json", or a schema. */
static bool take_format(ollama_reading *in, json_t *value) {
    const char *word = json_string_value(value);
    if (word != NULL && strcmp(word, "json") == 0)
        (void)json_object_set_new(in->body, "response_format",
                                  json_pack("{s:s}", "type", "json_object"));
    else if (word != NULL && word[0] != '\0')
        return refuse_value(in, "must be \"json\" or a JSON Schema, an object");
    else if (word == NULL)
        return take_same(in, value);
    return true;
}

/* Reads whether, or how much, the model is to think. A template without a variable for it decides
 * alone. */
static bool take_think(ollama_reading *in, json_t *value) {
    const bool level = json_is_string(value) && !is_nothing(value);
    if (!level && !json_is_boolean(value))
        return refuse_value(in, "must be true, false, or a text such as \"low\"");
    if (in->as != ASK_CHAT || !ollama_thinks(in->rules->tokenizer))
        return is_nothing(value) || refuse_value(in, "the model does not support thinking");
    if (!can_switch(in->rules->tokenizer))
        return json_is_true(value) || take_harmless(in, value);
    if (tern_chat_mentions(in->rules->tokenizer, "reasoning_effort") && level)
        (void)json_object_set(in->body, "reasoning_effort", value);
    else
        (void)json_object_set_new(in->body, "enable_thinking",
                                  json_boolean(level || json_is_true(value)));
    return true;
}

/* Reads whether tokens get log-probabilities. Texts without a chat ask by the number of
 * alternatives. */
static bool take_logprobs(ollama_reading *in, json_t *value) {
    const json_t *n = json_object_get(in->given, "top_logprobs");
    if (!json_is_boolean(value))
        return refuse_value(in, "must be true or false");
    if (in->as == ASK_CHAT)
        return take_same(in, value);
    const json_int_t most = json_integer_value(n);
    if (json_is_true(value))
        (void)json_object_set_new(in->body, in->as == ASK_NATIVE ? "n_probs" : "logprobs",
                                  json_integer(in->as == ASK_NATIVE && most < 1 ? 1 : most));
    return true;
}

static bool take_top_logprobs(ollama_reading *in, json_t *value) {
    if (!json_is_integer(value))
        return refuse_value(in, "must be an integer");
    return in->as != ASK_CHAT || json_integer_value(value) == 0 || take_same(in, value);
}

static bool take_options(ollama_reading *in, json_t *value);

/* ---- the table ------------------------------------------------------------------------------- */

enum {
    CHAT = OLLAMA_CHAT,
    GENERATE = OLLAMA_GENERATE,
    TEXT = OLLAMA_TEXT,
    EMBED = OLLAMA_EMBED,
    OLDER = OLLAMA_EMBEDDING,
    ALL = OLLAMA_ALL
};

/* clang-format off: one field a line */
static const ollama_field fields[] = {
    {"model", ALL, false, "s", take_same, NULL, 0},
    {"messages", CHAT, false,
     "[{role:s,content?:s,thinking?:s,tool_calls?:[{function:{name:s,arguments:{*:*}}}],tool_name?:"
     "s}]",
     ollama_take_messages, NULL, 0},
    {"tools", CHAT, false,
     "[{type:\"function\",function:{name:s,description?:s,parameters?:{*:*}}}]", take_same, NULL,
     0},
    {"tool_choice", CHAT, false, "s|{type:\"function\",function:{name:s}}", take_same, NULL, 0},
    {"prompt", GENERATE | OLDER, false, "s", take_later, NULL, 0},
    {"system", GENERATE, false, "s", take_later, NULL, 0},
    {"suffix", GENERATE, false, "s", take_later, NULL, 0},
    {"raw", GENERATE, false, "b", take_later, NULL, 0},
    {"context", GENERATE, false, "[i]", take_later, NULL, 0},
    {"input", EMBED, false, "s|[s]", take_same, NULL, 0},
    {"dimensions", EMBED, false, "i", take_same, NULL, 0},
    {"stream", TEXT, false, "b", take_same, NULL, 0},
    {"format", TEXT, false, "\"json\"|\"\"|{*:*}", take_format, "json_schema", 0},
    {"think", TEXT, false, "b|s", take_think, NULL, 0},
    {"logprobs", TEXT, false, "b", take_logprobs, NULL, 0},
    {"top_logprobs", TEXT, false, "i", take_top_logprobs, NULL, 0},
    {"receipt", TEXT, false, "b", take_same, NULL, 0},
    {"options", ALL, false, "{*:*}", take_options, NULL, 0},

    /* Harmless: nothing here depends on them. */
    {"keep_alive", ALL, false, "s|n", take_harmless, NULL, 0},
    {"truncate", TEXT, false, "b", take_harmless, NULL, 0},
    {"truncate", EMBED, false, "b", take_later, NULL, 0},
    {"shift", TEXT, false, "b", take_harmless, NULL, 0},

    /* Refused unless they ask for nothing. */
    {"images", GENERATE, false, "[s]", ollama_take_images, NULL, 0},
    {"template", GENERATE, false, "s", take_absent, NULL, 0},
    {"_debug_render_only", TEXT, false, "b", take_absent, NULL, 0},

    /* Members of `options`. */
    {"num_predict", TEXT, true, "i", take_limit, "max_tokens", 0},
    {"temperature", TEXT, true, "n", take_same, NULL, 0},
    {"top_k", TEXT, true, "i", take_same, NULL, 0},
    {"top_p", TEXT, true, "n", take_same, NULL, 0},
    {"min_p", TEXT, true, "n", take_same, NULL, 0},
    {"seed", TEXT, true, "i", take_same, NULL, 0},
    {"stop", TEXT, true, "s|[s]", take_stops, NULL, 0},
    {"repeat_penalty", TEXT, true, "n", take_same, NULL, 0},
    {"repeat_last_n", TEXT, true, "i", take_window, NULL, 0},
    {"presence_penalty", TEXT, true, "n", take_same, NULL, 0},
    {"frequency_penalty", TEXT, true, "n", take_same, NULL, 0},
    {"typical_p", TEXT, true, "n", take_neutral, NULL, 1},
    {"tfs_z", TEXT, true, "n", take_neutral, NULL, 1},
    {"mirostat", TEXT, true, "i", take_neutral, NULL, 0},
    {"mirostat_eta", TEXT, true, "n", take_harmless, NULL, 0},
    {"mirostat_tau", TEXT, true, "n", take_harmless, NULL, 0},
    {"penalize_newline", TEXT, true, "b", take_harmless, NULL, 0},
    {"num_ctx", ALL, true, "i", take_harmless, NULL, 0},
    {"num_keep", ALL, true, "i", take_harmless, NULL, 0},
    {"num_batch", ALL, true, "i", take_harmless, NULL, 0},
    {"num_gpu", ALL, true, "i", take_harmless, NULL, 0},
    {"main_gpu", ALL, true, "i", take_harmless, NULL, 0},
    {"num_thread", ALL, true, "i", take_harmless, NULL, 0},
    {"numa", ALL, true, "b", take_harmless, NULL, 0},
    {"low_vram", ALL, true, "b", take_harmless, NULL, 0},
    {"use_mmap", ALL, true, "b", take_harmless, NULL, 0},
    {"use_mlock", ALL, true, "b", take_harmless, NULL, 0},
    {"draft_num_predict", ALL, true, "i", take_harmless, NULL, 0},
};
/* clang-format on */

const ollama_field *ollama_field_at(size_t i) {
    return i < sizeof fields / sizeof *fields ? &fields[i] : NULL;
}

static const ollama_field *find(const char *name, ollama_kind kind, bool option) {
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        if ((fields[i].kinds & kind) != 0 && fields[i].option == option &&
            strcmp(fields[i].name, name) == 0)
            return &fields[i];
    return NULL;
}

/* Takes the members of an object. Null means the same as leaving a member out, and members that
 * are not known are ignored. */
static bool take_members(ollama_reading *in, const json_t *object, bool options) {
    const char *name;
    json_t *value;
    json_object_foreach(object, name, value) {
        in->at = find(name, in->kind, options);
        if (in->at == NULL)
            note_ignored(in, options ? "options." : "", name);
        else if (!json_is_null(value) && !in->at->take(in, value))
            return false;
    }
    return true;
}

static bool take_options(ollama_reading *in, json_t *value) {
    return json_is_object(value) ? take_members(in, value, true)
                                 : refuse_value(in, "must be an object");
}

/* ---- prompts --------------------------------------------------------------------------------- */

static bool has_chat_format(const ask_rules *rules) {
    return strcmp(tern_chat_format(rules->tokenizer), "none") != 0;
}

/* How a request is read: generate asks with the chat template, or, if it is raw or the model has no
 * template, with the text alone. */
static ask_kind choose_kind(const ollama_reading *in) {
    switch (in->kind) {
    case OLLAMA_CHAT:
        return ASK_CHAT;
    case OLLAMA_GENERATE:
        if (!is_nothing(json_object_get(in->given, "suffix")))
            return ASK_COMPLETION;
        return json_is_true(json_object_get(in->given, "raw")) || !has_chat_format(in->rules)
                   ? ASK_NATIVE
                   : ASK_CHAT;
    default:
        return ASK_EMBEDDING;
    }
}

/* Checks the fields that are texts; false after a refusal. */
static bool check_texts(const ollama_reading *in) {
    static const char *const names[] = {"prompt", "system", "suffix"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const json_t *value = json_object_get(in->given, names[i]);
        if (value != NULL && !json_is_null(value) && !json_is_string(value))
            return refuse(in->r, 400, names[i], "%s must be a text", names[i]);
    }
    return true;
}

static json_t *message(const char *role, const json_t *content) {
    return json_pack("{s:s, s:O}", "role", role, "content", content);
}

/* Writes the prompt of generate: as messages, or as a text. */
static void put_prompt(ollama_reading *in) {
    json_t *prompt = json_object_get(in->given, "prompt");
    const json_t *system = json_object_get(in->given, "system");
    json_t *suffix = json_object_get(in->given, "suffix");
    if (in->as == ASK_CHAT) {
        json_t *list = json_array();
        if (!is_nothing(system))
            (void)json_array_append_new(list, message("system", system));
        (void)json_array_append_new(list, message("user", prompt));
        (void)json_object_set_new(in->body, "messages", list);
        return;
    }
    if (!is_nothing(system))
        note_ignored(in, "", "system");
    (void)json_object_set(in->body, "prompt", prompt);
    if (!is_nothing(suffix))
        (void)json_object_set(in->body, "suffix", suffix);
}

static bool is_empty(const ollama_reading *in) {
    const char *name = in->kind == OLLAMA_CHAT    ? "messages"
                       : in->kind == OLLAMA_EMBED ? "input"
                                                  : "prompt";
    return is_nothing(json_object_get(in->given, name)) &&
           is_nothing(json_object_get(in->given, "suffix"));
}

static bool translate(ollama_reading *in) {
    if (in->kind != OLLAMA_CHAT && !check_texts(in))
        return false;
    in->as = choose_kind(in);
    if ((in->kind & OLLAMA_TEXT) != 0) /* a stream unless the request says otherwise */
        (void)json_object_set_new(in->body, "stream", json_boolean(true));
    if (!take_members(in, in->given, false))
        return false;
    if (in->kind == OLLAMA_GENERATE)
        put_prompt(in);
    else if (in->kind == OLLAMA_EMBEDDING)
        (void)json_object_set(in->body, "input", json_object_get(in->given, "prompt"));
    return true;
}

/* ---- context --------------------------------------------------------------------------------- */

/* Puts the tokens of an earlier request and its answer before the prompt. The token that begins a
 * text is there already. */
static bool prepend(ask *a, const ask_rules *rules, const json_t *context, refusal *r) {
    ask_prompt *p = &a->prompts[0];
    size_t n;
    if (!json_is_array(context))
        return refuse(r, 400, "context", "context must be an array of token ids");
    int32_t *ids = ask_read_ids(context, rules->n_vocab, &n, "context", r);
    if (ids == NULL)
        return false;
    const size_t skipped = p->n > 0 && p->ids[0] == tern_token_bos(rules->tokenizer);
    int32_t *grown = realloc(ids, (n + p->n + 1) * sizeof *grown);
    if (grown == NULL) {
        free(ids);
        return refuse(r, 503, "context", "no memory for %zu tokens", n + p->n);
    }
    memcpy(grown + n, p->ids + skipped, (p->n - skipped) * sizeof *grown);
    free(p->ids);
    p->ids = grown;
    p->n += n - skipped;
    return p->n + 1 <= rules->n_ctx || refuse_length(r, p->n, rules->n_ctx);
}

/* ---- refusals -------------------------------------------------------------------------------- */

/* Gives a refusal of the field that was made the name of the field that was sent. */
static void rename_refusal(const ollama_reading *in) {
    refusal *r = in->r;
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        const ollama_field *f = &fields[i];
        const size_t n = strlen(target_of(f));
        if ((f->kinds & in->kind) == 0 || strcmp(target_of(f), r->param) != 0)
            continue;
        write_name(f, r->param, sizeof r->param);
        if (strncmp(r->message, target_of(f), n) == 0) {
            char rest[sizeof r->message];
            memcpy(rest, r->message + n, sizeof rest - n);
            (void)snprintf(r->message, sizeof r->message, "%s%.*s", r->param,
                           (int)(sizeof rest - sizeof r->param), rest);
        }
        return;
    }
}

/* ---- all of it ------------------------------------------------------------------------------- */

static bool join_ignored(ask *a, const text *more) {
    text_add(&a->ignored, ",", a->ignored.size > 0 && more->size > 0);
    text_add(&a->ignored, more->bytes, more->size);
    a->ignored.failed = a->ignored.failed || more->failed;
    return !a->ignored.failed;
}

/* Reads the request that was made. */
static bool read_made(ask *a, ollama_reading *in, refusal *r) {
    const json_t *context = json_object_get(in->given, "context");
    ask_rules rules = *in->rules;
    const json_t *truncates = json_object_get(in->given, "truncate");
    rules.truncates = in->as == ASK_EMBEDDING && (truncates == NULL || json_is_true(truncates));
    json_t *body = in->body;
    in->body = NULL;
    if (!ask_read_body(a, in->as, &rules, body, r)) {
        rename_refusal(in);
        return false;
    }
    a->ollama = in->kind;
    if (!join_ignored(a, &in->ignored))
        return refuse(r, 503, NULL, "no memory for the request");
    return in->kind != OLLAMA_GENERATE || is_nothing(context) || prepend(a, in->rules, context, r);
}

bool ollama_read(ask *a, ollama_kind kind, const ask_rules *rules, const char *bytes, size_t size,
                 bool *empty, refusal *r) {
    json_t *given = ask_parse_any(bytes, size, "the body", r);
    const json_t *model = json_object_get(given, "model");
    *a = (ask){0};
    *empty = false;
    if (given == NULL || !ask_check_texts(given, true, r)) {
        json_decref(given);
        return false;
    }
    const bool before = json_remember(false);
    ollama_reading in = {
        .kind = kind, .given = given, .body = json_object(), .rules = rules, .r = r};
    *empty = is_empty(&in);
    bool sound = *empty ? (is_nothing(model) || ask_check_model(rules, model, r)) : translate(&in);
    if (json_remember(before) && sound)
        sound = refuse(r, 503, NULL, "no memory for the request");
    if (sound && !*empty)
        sound = read_made(a, &in, r);
    json_decref(in.body);
    json_decref(given);
    text_free(&in.ignored);
    return sound;
}
