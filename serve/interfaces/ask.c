/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/interfaces/ask.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_tree/read.h"
#include "base/random_bytes.h"
#include "serve/interfaces/fields.h"

enum {
    MOST_VALUES = 1 << 20,
    MOST_ECHO = 4 << 20,
    MOST_NUMBERS = 1 << 22 /* in a reply, each of up to 16 bytes */
};

/* ---- JSON ------------------------------------------------------------------------------------ */

/* Returns an upper bound of the values in bytes[size]: the separators outside of strings, and one.
 */
static size_t count_values(const char *bytes, size_t size) {
    bool inside = false;
    size_t n = 1;
    for (size_t i = 0; i < size; i++)
        if (inside && bytes[i] == '\\')
            i++;
        else if (bytes[i] == '"')
            inside = !inside;
        else if (!inside)
            n += bytes[i] == ',' || bytes[i] == '[' || bytes[i] == '{' || bytes[i] == ':';
    return n;
}

/* True if a text in a value, which is at most as deep as JSON may be, has U+0000 in it. */
static bool has_nul(const json_t *value) {
    const char *words = json_string_value(value), *name;
    json_t *one;
    bool found = words != NULL && strlen(words) != json_string_length(value);
    for (size_t i = 0; i < json_array_size(value) && !found; i++)
        found = has_nul(json_array_get(value, i));
    json_object_foreach(value, name, one) found = found || has_nul(one);
    return found;
}

bool ask_check_texts(const json_t *body, bool plain, refusal *r) {
    const char *name;
    json_t *value;
    json_object_foreach(body, name, value) {
        const bool prompt = strcmp(name, "prompt") == 0 || strcmp(name, "content") == 0 ||
                            strcmp(name, "input") == 0;
        if (!(plain && prompt) && has_nul(value))
            return refuse(r, 400, name, "%.64s: a text has the character U+0000 in it", name);
    }
    return true;
}

json_t *ask_parse_any(const char *bytes, size_t size, const char *what, refusal *r) {
    if (count_values(bytes, size) > MOST_VALUES) {
        (void)refuse(r, 400, NULL, "%s has more than %d values", what, MOST_VALUES);
        return NULL;
    }
    tern_error err = {0};
    json_t *body = json_read_body(bytes, size, what, &err);
    if (body == NULL) {
        (void)refuse_error(r, NULL, &err);
    } else if (!json_is_object(body)) {
        (void)refuse(r, 400, NULL, "%s must be a JSON object", what);
        json_decref(body);
        body = NULL;
    }
    return body;
}

json_t *ask_parse(const char *bytes, size_t size, const char *what, refusal *r) {
    json_t *body = ask_parse_any(bytes, size, what, r);
    if (body == NULL || ask_check_texts(body, false, r))
        return body;
    json_decref(body);
    return NULL;
}

/* ---- fields ---------------------------------------------------------------------------------- */

/* Each reply repeats the ignored names, so their length is limited. */
void ask_note_ignored(ask *a, const char *name) {
    enum { MOST_BYTES = 4096 };
    if (a->ignored.size + strlen(name) > MOST_BYTES)
        return;
    text_add(&a->ignored, ",", a->ignored.size > 0);
    text_quote(&a->ignored, name, strlen(name));
}

/* Reads all fields. Null means the same as leaving the field out. */
static bool read_fields(ask *a, const ask_rules *rules, refusal *r) {
    const char *name;
    json_t *value;
    json_object_foreach(a->body, name, value) {
        const field_reading in = {a, rules, field_find(name, a->kind), r};
        if (in.at == NULL) {
            ask_note_ignored(a, name);
        } else if (!json_is_null(value) && !in.at->read(&in, value)) {
            return false;
        }
    }
    return true;
}

/* Draws a seed of at most 52 bits, which every reader of JSON keeps exactly. */
static uint64_t draw_seed(void) {
    uint64_t seed = 0;
    tern_random_bytes(&seed, sizeof seed);
    return seed >> 12;
}

/* Returns the bytes that echoed prompts take: each is repeated with each of its choices. */
static size_t echoed_bytes(const ask *a) {
    size_t n = 0;
    for (size_t i = 0; i < a->n_prompts; i++)
        n += a->prompts[i].given != NULL ? a->n * a->prompts[i].given_size : 0;
    return n;
}

static bool check_whole(const ask *a, const ask_rules *rules, refusal *r) {
    const json_t *best = a->kind == ASK_COMPLETION ? json_object_get(a->body, "best_of") : NULL;
    const json_t *one = json_object_get(a->body, "max_tokens");
    const json_t *other = json_object_get(a->body, "max_completion_tokens");
    if (a->ignored.failed)
        return refuse(r, 503, NULL, "no memory for the request");
    if (a->kind != ASK_MESSAGE && json_is_number(one) && json_is_number(other) &&
        !json_equal(one, other))
        return refuse(r, 400, "max_tokens", "max_tokens and max_completion_tokens differ");
    if ((a->kind & ASK_VECTORS) != 0 && a->n_prompts * a->dimensions > MOST_NUMBERS) {
        return refuse(r, 400, ask_prompt_field(a->kind),
                      "%zu vectors of %u numbers: a reply has at most %d numbers", a->n_prompts,
                      a->dimensions, MOST_NUMBERS);
    }
    if ((a->kind & ASK_VECTORS) == 0 && a->n * a->n_prompts > rules->most_choices) {
        return refuse(r, 400, "n", "%zu choices: a request has at most %u", a->n * a->n_prompts,
                      rules->most_choices);
    }
    if ((a->kind == ASK_CHAT || a->kind == ASK_RESPONSE) && a->n_logprobs > 0 && !a->logprobs) {
        return refuse(r, 400, "top_logprobs", "top_logprobs needs %s",
                      a->kind == ASK_CHAT ? "\"logprobs\": true"
                                          : "\"include\": [\"message.output_text.logprobs\"]");
    }
    if (json_is_number(best) && json_number_value(best) != (double)a->n)
        return refuse(r, 400, "best_of", "best_of must be n, which is %u: answers are not compared",
                      a->n);
    if (a->echo && echoed_bytes(a) > MOST_ECHO) {
        return refuse(r, 400, "echo", "the prompts would be told in %zu bytes; at most %d are",
                      echoed_bytes(a), MOST_ECHO);
    }
    if (a->receipt && a->n_stop_tokens > 0)
        return refuse(r, 400, "stop_token_ids", "stop_token_ids: a receipt has no place for them");
    if (a->receipt && (a->n * a->n_prompts > 1 || a->prompt_only || rules->most_choices < 2))
        return refuse(r, 400, "receipt", "a receipt is of one answer, which is computed twice");
    if (a->receipt && a->echo && a->logprobs) {
        return refuse(r, 400, "receipt",
                      "a receipt is of the answer, not of its prompt's logprobs");
    }
    if (a->prompt_only && a->kind == ASK_COMPLETION && !a->echo)
        return refuse(r, 400, "max_tokens", "max_tokens must be at least 1 without \"echo\": true");
    if (a->n > 1 && (a->prompt_only || (a->echo && a->logprobs && a->stream))) {
        return refuse(
            r, 400, a->kind == ASK_NATIVE ? "n_cmpl" : "n", "one answer at most to a prompt %s",
            a->prompt_only ? "of which no token is wanted" : "that is streamed with its logprobs");
    }
    return true;
}

/* Reads the tools, which only conversations have. */
static bool read_tools(ask *a, const ask_rules *rules, refusal *r) {
    if ((a->kind & (ASK_COMPLETION | ASK_NATIVE | ASK_VECTORS)) != 0)
        return true;
    const tools_dialect dialect = a->kind == ASK_RESPONSE  ? TOOLS_OF_RESPONSES
                                  : a->kind == ASK_MESSAGE ? TOOLS_OF_MESSAGES
                                                           : TOOLS_OF_CHATS;
    if (!tools_read(&a->tools, dialect, a->body, rules->calls, r))
        return false;
    const text *out = &a->tools.left_out;
    text_add(&a->ignored, ",", a->ignored.size > 0 && out->size > 0);
    text_add(&a->ignored, out->bytes, out->size);
    return true;
}

/* Puts the conversation that a response goes on from before its input, as items. */
static bool join_earlier(ask *a, refusal *r) {
    json_t *given = json_object_get(a->body, "input"), *all = a->earlier;
    if (a->kind != ASK_RESPONSE || (all == NULL && a->kept == NULL))
        return true;
    a->earlier = NULL;
    all = all != NULL ? all : json_array();
    if (json_is_string(given))
        (void)json_array_append_new(all, json_pack("{s:s, s:O}", "role", "user", "content", given));
    for (size_t i = 0; i < json_array_size(given); i++)
        (void)json_array_append_new(all, json_incref(json_array_get(given, i)));
    if (!json_is_string(given) && !json_is_array(given)) {
        json_decref(all); /* it is refused later */
        return true;
    }
    return json_object_set_new(a->body, "input", all) == 0 ||
           refuse(r, 503, "input", "no memory for the messages");
}

/* Messages think only when they are asked to. */
static bool set_defaults(ask *a, const ask_rules *rules, refusal *r) {
    const json_t *thinking = json_object_get(a->body, "thinking");
    const field_reading in = {a, rules, field_find("thinking", ASK_MESSAGE), r};
    const bool given = thinking != NULL && !json_is_null(thinking);
    return a->kind != ASK_MESSAGE || given || field_switch_thinking(&in, NULL, false);
}

bool ask_read_body(ask *a, ask_kind kind, const ask_rules *rules, json_t *body, refusal *r) {
    *a = (ask){.kind = kind,
               .body = body,
               .thinking = rules->thinking,
               .tells = kind != ASK_MESSAGE,
               .kept = kind == ASK_RESPONSE ? rules->kept : NULL,
               .n = 1,
               .prompt_only = (kind & ASK_VECTORS) != 0,
               .dimensions = rules->n_embd,
               .max_tokens = rules->max_tokens,
               .sampling = rules->sampling};
    if (!rules->seeded)
        a->sampling.seed = draw_seed();
    if (rules->adapters != NULL)
        adapter_scales_get(rules->adapters, &a->adapters);
    const bool plain = (kind & (ASK_COMPLETION | ASK_NATIVE | ASK_VECTORS)) != 0;
    return ask_check_texts(body, plain, r) && read_fields(a, rules, r) && join_earlier(a, r) &&
           set_defaults(a, rules, r) && read_tools(a, rules, r) && ask_read_prompts(a, rules, r) &&
           check_whole(a, rules, r) && ask_compile(a, rules, r);
}

bool ask_read(ask *a, ask_kind kind, const ask_rules *rules, const char *bytes, size_t size,
              refusal *r) {
    json_t *body = ask_parse_any(bytes, size, "the body", r);
    *a = (ask){0};
    return body != NULL && ask_read_body(a, kind, rules, body, r);
}

void ask_free(ask *a) {
    for (size_t i = 0; i < a->n_prompts; i++)
        free(a->prompts[i].ids);
    free(a->prompts);
    free(a->bias);
    text_free(&a->ignored);
    text_free(&a->schema_notes);
    free(a->schema_words);
    tools_free(&a->tools);
    tern_grammar_free(&a->grammar);
    json_decref(a->form_record);
    json_decref(a->form_schema);
    json_decref(a->variables);
    json_decref(a->earlier);
    free(a->form_text);
    json_decref(a->body);
    *a = (ask){0};
}

const json_t *ask_model_of(const json_t *body) {
    const json_t *model = json_object_get(body, "model");
    return model != NULL ? model : json_object_get(body, "name");
}

static bool is_named(const char *model, const char *asked) {
    const size_t n = strlen(model);
    return strncmp(asked, model, n) == 0 && (asked[n] == '\0' || strcmp(asked + n, ":latest") == 0);
}

bool ask_check_model(const ask_rules *rules, const json_t *name, refusal *r) {
    const char *asked = json_string_value(name);
    if (asked == NULL)
        return refuse(r, 400, "model", "model must be a text");
    if (rules->any_model || is_named(rules->model, asked))
        return true;
    (void)refuse(r, 404, "model", "there is no model '%.100s' here, only '%s'", asked,
                 rules->model);
    r->code = "model_not_found";
    return false;
}

/* Returns the limit of tokens; -1: only the context limits them. */
static ssize_t most_tokens(const ask *a) {
    return a->prompt_only ? 0 : a->max_tokens > 0 ? (ssize_t)a->max_tokens : -1;
}

/* Fields that both dialects share. Leaves the object open. */
static void write_sampling(const ask *a, text *out) {
    const tern_sampler_params *s = &a->sampling;
    text_print(out, "{\"seed\":%" PRIu64 ",\"max_tokens\":%zd", s->seed, most_tokens(a));
    text_real(out, "temperature", s->temperature);
    text_real(out, "top_p", s->top_p);
    text_print(out, ",\"top_k\":%u", s->top_k);
    text_real(out, "min_p", s->min_p);
    text_real(out, "presence_penalty", s->presence_penalty);
    text_real(out, "frequency_penalty", s->frequency_penalty);
    text_print(out, ",\"repeat_last_n\":%u,\"ignore_eos\":%s", s->repeat_last_n,
               a->ignore_end ? "true" : "false");
}

void ask_write_effective(const ask *a, text *out) {
    write_sampling(a, out);
    text_real(out, "repetition_penalty", a->sampling.repetition_penalty);
    text_print(out, ",\"n\":%u}", a->n);
}

void ask_write_native(const ask *a, text *out) {
    write_sampling(a, out);
    text_real(out, "repeat_penalty", a->sampling.repetition_penalty);
    text_print(out,
               ",\"n_predict\":%zd,\"n_probs\":%u,\"stream\":%s,\"cache_prompt\":%s,"
               "\"stop\":[",
               most_tokens(a), a->n_logprobs, a->stream ? "true" : "false",
               a->alone ? "false" : "true");
    for (size_t i = 0; i < a->n_stops; i++) {
        text_add(out, ",", i > 0);
        text_quote(out, a->stops[i], strlen(a->stops[i]));
    }
    text_print(out, "],\"logit_bias\":[");
    for (size_t i = 0; i < a->sampling.n_bias; i++) {
        text_print(out, "%s{\"token\":%d,\"bias\":", i > 0 ? "," : "", (int)a->bias[i].token);
        text_float(out, a->bias[i].bias);
        text_add(out, "}", 1);
    }
    text_print(out, "]}");
}
