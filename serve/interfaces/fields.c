/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/interfaces/fields.h"
#include "serve/interfaces/field_kinds.h"

#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* ---- values ---------------------------------------------------------------------------------- */

static void *place(const field_reading *in) {
    return (char *)in->a + in->at->offset;
}

static bool read_number(const field_reading *in, const json_t *value, bool whole, double *out) {
    *out = json_number_value(value);
    if (json_is_number(value) && *out >= in->at->low && *out <= in->at->high &&
        (!whole || *out == floor(*out)))
        return true;
    return refuse(in->r, 400, in->at->name, "%s must be %s from %.9g to %.9g", in->at->name,
                  whole ? "an integer" : "a number", in->at->low, in->at->high);
}

static bool read_real(const field_reading *in, const json_t *value) {
    double x;
    if (!read_number(in, value, false, &x))
        return false;
    *(float *)place(in) = (float)x;
    return true;
}

static bool read_count(const field_reading *in, const json_t *value) {
    double x;
    if (!read_number(in, value, true, &x))
        return false;
    *(uint32_t *)place(in) = x > 0.0 ? (uint32_t)x : 0;
    return true;
}

/* Reads the place whose pages can be saved later; -1: any. */
static bool read_slot(const field_reading *in, const json_t *value) {
    double x;
    if (!read_number(in, value, true, &x))
        return false;
    in->a->slot = (uint32_t)(x + 1.0);
    return true;
}

static bool read_adapters(const field_reading *in, const json_t *value) {
    return adapter_uses_read(in->rules->adapters, value, &in->a->adapters, in->r);
}

static bool read_truth(const field_reading *in, const json_t *value) {
    if (!json_is_boolean(value))
        return refuse(in->r, 400, in->at->name, "%s must be true or false", in->at->name);
    *(bool *)place(in) = json_is_true(value);
    return true;
}

/* Reads top_p. 0 becomes a tiny share, which keeps only the likeliest token. */
static bool read_top_p(const field_reading *in, const json_t *value) {
    if (!read_real(in, value))
        return false;
    float *p = place(in);
    *p = *p > 0.0F ? *p : 1e-6F;
    return true;
}

static bool read_max_tokens(const field_reading *in, const json_t *value) {
    double x;
    if (!read_number(in, value, true, &x))
        return false;
    in->a->prompt_only = x == 0.0 && (in->a->kind & (ASK_COMPLETION | ASK_NATIVE)) != 0;
    if (x == 0.0 && !in->a->prompt_only) {
        return refuse(in->r, 400, in->at->name,
                      "%s must be at least 1 (-1: until the context is "
                      "full)",
                      in->at->name);
    }
    in->a->max_tokens = x > 0.0 ? (size_t)x : 0;
    return true;
}

static bool read_seed(const field_reading *in, const json_t *value) {
    const json_int_t x = json_integer_value(value);
    if (!json_is_integer(value) || x < -1)
        return refuse(in->r, 400, "seed", "seed must be an integer, at least 0 (-1: drawn)");
    in->a->sampling.seed = x >= 0 ? (uint64_t)x : in->a->sampling.seed;
    return true;
}

static bool read_stops(const field_reading *in, const json_t *value) {
    const bool one = json_is_string(value);
    const size_t n = one ? 1 : json_array_size(value);
    if ((!one && !json_is_array(value)) || n > ASK_MOST_STOPS) {
        return refuse(in->r, 400, in->at->name,
                      "%s must be a text, or an array of at most %d texts", in->at->name,
                      ASK_MOST_STOPS);
    }
    size_t bytes = 0;
    for (size_t i = 0; i < n; i++) {
        const json_t *stop = one ? value : json_array_get(value, i);
        bytes += json_string_length(stop);
        if (bytes > ASK_MOST_STOP_BYTES) {
            return refuse(in->r, 400, in->at->name, "%s: texts have at most %d bytes together",
                          in->at->name, ASK_MOST_STOP_BYTES);
        }
        if (json_string_length(stop) == 0) {
            return refuse(in->r, 400, in->at->name, "%s: a text that is not empty is needed",
                          in->at->name);
        }
        in->a->stops[in->a->n_stops++] = json_string_value(stop);
    }
    return true;
}

static bool read_stop_tokens(const field_reading *in, const json_t *value) {
    const size_t n = json_array_size(value);
    if (!json_is_array(value) || n > ASK_MOST_STOPS) {
        return refuse(in->r, 400, in->at->name, "%s must be an array of at most %d token ids",
                      in->at->name, ASK_MOST_STOPS);
    }
    int32_t *ids =
        ask_read_ids(value, in->rules->n_vocab, &in->a->n_stop_tokens, in->at->name, in->r);
    if (ids == NULL)
        return false;
    memcpy(in->a->stop_tokens, ids, n * sizeof *ids);
    free(ids);
    if (n > 0 && in->rules->records)
        return refuse(in->r, 400, in->at->name, "%s: a recording has no place for them",
                      in->at->name);
    return true;
}

/* A number of alternatives for each token. Zero of them in a completion still asks for those of the
 * text. */
static bool read_n_logprobs(const field_reading *in, const json_t *value) {
    double x;
    if (!read_number(in, value, true, &x))
        return false;
    in->a->logprobs = in->a->kind == ASK_COMPLETION || x > 0.0;
    in->a->n_logprobs = (uint32_t)x;
    return true;
}

/* Reads logprobs: a truth value, or a number, except in chats. */
static bool read_logprobs(const field_reading *in, const json_t *value) {
    const bool is_truth = in->a->kind == ASK_CHAT || json_is_boolean(value);
    return is_truth ? read_truth(in, value) : read_n_logprobs(in, value);
}

static bool is_truth_or_nothing(const json_t *value) {
    return value == NULL || json_is_null(value) || json_is_boolean(value);
}

static bool read_stream_options(const field_reading *in, const json_t *value) {
    const json_t *usage = json_object_get(value, "include_usage");
    const json_t *running = json_object_get(value, "continuous_usage_stats");
    if (!json_is_object(value) || !is_truth_or_nothing(usage) || !is_truth_or_nothing(running)) {
        return refuse(in->r, 400, "stream_options",
                      "stream_options must be an object, its include_usage and "
                      "continuous_usage_stats true or false");
    }
    in->a->include_usage = json_is_true(usage);
    in->a->running_usage = json_is_true(running);
    return true;
}

enum { MOST_BIASES = 4096 };

/* Reads a token's id in decimal. */
static bool read_id(const char *name, uint32_t n_vocab, int32_t *id) {
    char *end;
    const size_t n = strlen(name);
    const unsigned long x = strtoul(name, &end, 10);
    *id = (int32_t)x;
    return n > 0 && n < 11 && strspn(name, "0123456789") == n && x < n_vocab;
}

static bool refuse_bias(const field_reading *in) {
    return refuse(in->r, 400, "logit_bias",
                  "logit_bias: an object of token ids from 0 to %u, each with a number%s, for at "
                  "most %d tokens",
                  in->rules->n_vocab - 1,
                  in->a->kind == ASK_NATIVE ? ", or an array of such pairs; texts stand for their "
                                              "tokens"
                                            : "",
                  MOST_BIASES);
}

/* Reads a bias. For llama.cpp's clients false means that the token is never picked. */
static bool read_amount(const field_reading *in, const json_t *bias, float *out) {
    const bool never = in->a->kind == ASK_NATIVE && json_is_boolean(bias) && !json_is_true(bias);
    *out = never ? -1e6F : (float)json_number_value(bias);
    return ((never || json_is_number(bias)) && fabsf(*out) <= 1e6F) || refuse_bias(in);
}

/* Gives n tokens the same bias. */
static bool add_biases(const field_reading *in, const int32_t *ids, size_t n, float amount) {
    ask *a = in->a;
    const size_t before = a->sampling.n_bias;
    if (n > MOST_BIASES - before)
        return refuse_bias(in);
    tern_logit_bias *grown = realloc(a->bias, (before + n + 1) * sizeof *grown);
    if (grown == NULL)
        return refuse(in->r, 503, "logit_bias", "no memory for %zu biases", before + n);
    for (size_t i = 0; i < n; i++)
        grown[before + i] = (tern_logit_bias){.token = ids[i], .bias = amount};
    a->sampling.bias = a->bias = grown;
    a->sampling.n_bias = before + n;
    return true;
}

/* Adds a bias by name: an id, or, for llama.cpp's clients, a text whose tokens are meant. */
static bool add_named_bias(const field_reading *in, const char *name, const json_t *bias) {
    float amount;
    size_t n = 1;
    int32_t id;
    if (!read_amount(in, bias, &amount))
        return false;
    if (read_id(name, in->rules->n_vocab, &id))
        return add_biases(in, &id, n, amount);
    if (in->a->kind != ASK_NATIVE)
        return refuse(in->r, 400, "logit_bias",
                      "logit_bias: \"%.64s\" is not a token id from 0 to %u", name,
                      in->rules->n_vocab - 1);
    ask_rules rules = *in->rules;
    rules.limits.most_tokens = MOST_BIASES;
    int32_t *ids = ask_tokenize(&rules, name, strlen(name), 0, &n, "logit_bias", in->r);
    if (ids == NULL && in->r->n_ctx > 0)
        return refuse_bias(in);
    const bool added = ids != NULL && add_biases(in, ids, n, amount);
    free(ids);
    return added;
}

static bool read_pair(const field_reading *in, const json_t *pair) {
    const json_t *of = json_array_get(pair, 0), *bias = json_array_get(pair, 1);
    const json_int_t id = json_integer_value(of);
    float amount;
    if (json_array_size(pair) != 2)
        return refuse_bias(in);
    if (json_is_string(of))
        return add_named_bias(in, json_string_value(of), bias);
    if (!json_is_integer(of) || id < 0 || id >= (json_int_t)in->rules->n_vocab)
        return refuse_bias(in);
    return read_amount(in, bias, &amount) && add_biases(in, &(int32_t){(int32_t)id}, 1, amount);
}

static bool read_bias(const field_reading *in, const json_t *value) {
    const bool pairs = in->a->kind == ASK_NATIVE && json_is_array(value);
    if ((!json_is_object(value) && !pairs) || json_object_size(value) > MOST_BIASES)
        return refuse_bias(in);
    bool sound = true;
    for (size_t i = 0; i < json_array_size(value) && sound; i++)
        sound = read_pair(in, json_array_get(value, i));
    const char *name;
    json_t *bias;
    json_object_foreach(value, name, bias) if (sound) sound = add_named_bias(in, name, bias);
    return sound;
}

static bool read_model(const field_reading *in, const json_t *value) {
    return ask_check_model(in->rules, value, in->r);
}

/* Accepts prompts and tools, which are read when all other fields are known. */
static bool read_later(const field_reading *in, const json_t *value) {
    (void)in;
    (void)value;
    return true;
}

/* Reads a truth value that says the opposite of its member. */
static bool read_negated(const field_reading *in, const json_t *value) {
    if (!read_truth(in, value))
        return false;
    *(bool *)place(in) = !*(bool *)place(in);
    return true;
}

/* ---- of vectors ------------------------------------------------------------------------------ */

static bool is_word(const json_t *value, const char *word) {
    const char *given = json_string_value(value);
    return given != NULL && strcmp(given, word) == 0;
}

static bool read_encoding(const field_reading *in, const json_t *value) {
    in->a->base64 = is_word(value, "base64");
    return in->a->base64 || is_word(value, "float") ||
           refuse(in->r, 400, in->at->name, "%s must be \"float\" or \"base64\"", in->at->name);
}

static bool read_dimensions(const field_reading *in, const json_t *value) {
    if (!read_count(in, value))
        return false;
    const uint32_t n = in->a->dimensions, all = in->rules->n_embd;
    return tern_model_shortens(in->rules->vectors, n) ||
           refuse(
               in->r, 400, in->at->name,
               "vectors of this model have %u numbers, and its file does not say that %u of them "
               "are a vector, too",
               all, n);
}

/* ---- what is known and done in part ---------------------------------------------------------- */

/* Reads how a prompt that does not fit is cut. It never is: one that fits is the same either way.
 */
static bool read_truncation(const field_reading *in, const json_t *value) {
    return is_word(value, "disabled") || is_word(value, "auto") ||
           field_refuse(in, "must be \"auto\" or \"disabled\"");
}

static bool read_reasoning_format(const field_reading *in, const json_t *value) {
    in->a->mixed = is_word(value, "none");
    return in->a->mixed || is_word(value, "auto") || is_word(value, "deepseek") ||
           field_refuse(in, "must be \"none\", \"auto\" or \"deepseek\"");
}

static bool read_receipt(const field_reading *in, const json_t *value) {
    return read_truth(in, value) && (!in->a->receipt || in->rules->receipts ||
                                     field_refuse(in, "not supported by this server"));
}

/* Reads `include` of responses. Reasoning may be asked for in a form that
 * only its server reads: it is told in plain words in any case. */
static bool read_include(const field_reading *in, const json_t *value) {
    for (size_t i = 0; i < json_array_size(value); i++) {
        const json_t *what = json_array_get(value, i);
        if (is_word(what, "message.output_text.logprobs")) {
            in->a->logprobs = true;
        } else if (!is_word(what, "reasoning.encrypted_content")) {
            return field_refuse(in, "only \"message.output_text.logprobs\" is supported by this "
                                    "server");
        }
    }
    return json_is_array(value) || field_refuse(in, "must be an array of texts");
}

/* Checks metadata against the limits of OpenAI's interface, since replies and events repeat it. */
static bool read_metadata(const field_reading *in, const json_t *value) {
    enum { MOST_PAIRS = 16, NAME_BYTES = 64, VALUE_BYTES = 512 };
    const char *name;
    json_t *one;
    bool sound = json_is_object(value) && json_object_size(value) <= MOST_PAIRS;
    json_object_foreach(value, name, one) sound = sound && strlen(name) <= NAME_BYTES &&
                                                  json_is_string(one) &&
                                                  json_string_length(one) <= VALUE_BYTES;
    return sound || refuse(in->r, 400, in->at->name,
                           "%s must be an object of at most %d texts, with names of at most %d and "
                           "values of at most %d bytes",
                           in->at->name, MOST_PAIRS, NAME_BYTES, VALUE_BYTES);
}

/* Checks the size of instructions, since replies and events repeat them, whether or not the model
 * sees them. They are read with the prompt. */
static bool read_instructions(const field_reading *in, const json_t *value) {
    enum { MOST_BYTES = 1 << 20 };
    return json_string_length(value) <= MOST_BYTES ||
           refuse(in->r, 400, in->at->name, "%s have %zu bytes; at most %d are taken", in->at->name,
                  json_string_length(value), MOST_BYTES);
}

/* Reads best_of, which must be n: ask.c compares them when both are known. */
static bool read_best_of(const field_reading *in, const json_t *value) {
    double x;
    return read_number(in, value, true, &x);
}

/* Reads whether a response is kept. Where none is, that changes no answer. */
static bool read_store(const field_reading *in, const json_t *value) {
    if (!json_is_boolean(value))
        return field_refuse(in, "must be true or false");
    if (in->rules->kept == NULL)
        ask_note_ignored(in->a, in->at->name);
    in->a->kept = json_is_true(value) ? in->rules->kept : NULL;
    return true;
}

static bool read_previous(const field_reading *in, const json_t *value) {
    const char *id = json_string_value(value);
    if (in->rules->kept == NULL)
        return field_refuse(in, "nothing is kept by this server (--keep-responses): send the whole "
                                "conversation");
    in->a->earlier = id != NULL ? kept_find(in->rules->kept, id, in->rules->owner) : NULL;
    return in->a->earlier != NULL || field_refuse(in, "a response with this id is not kept (any "
                                                      "more): send the whole conversation");
}

/* Reads the text after the answer. An empty one says that nothing follows. */
static bool read_suffix(const field_reading *in, const json_t *value) {
    in->a->suffix = json_string_length(value) > 0 ? value : NULL;
    in->a->gap = in->a->gap || in->a->suffix != NULL;
    return json_is_string(value) || field_refuse(in, "must be a text");
}

/* Reads a text of llama.cpp's /infill. An empty one makes a gap, too. */
static bool read_gap_text(const field_reading *in, const json_t *value) {
    *(const json_t **)place(in) = value;
    in->a->gap = true;
    return json_is_string(value) || field_refuse(in, "must be a text");
}

static bool read_extra(const field_reading *in, const json_t *value) {
    bool sound = json_is_array(value);
    for (size_t i = 0; i < json_array_size(value) && sound; i++)
        sound = json_is_string(json_object_get(json_array_get(value, i), "text"));
    in->a->extra = value;
    return sound || field_refuse(in, "must be an array of {\"text\": ..., \"filename\": ...}");
}

static bool read_members(const field_reading *in, const json_t *value) {
    const size_t n = json_array_size(value);
    bool sound = json_is_array(value) && n <= ASK_MOST_MEMBERS;
    for (size_t i = 0; i < n && sound; i++)
        sound = json_is_string(json_array_get(value, i));
    in->a->members = n > 0 ? value : NULL;
    return sound || field_refuse(in, "must be an array of at most 64 names of members");
}

/* ---- the table ------------------------------------------------------------------------------- */

enum { MOST_TOKENS = 100000000 };

#define IN(member) offsetof(ask, member)
#define PARTS "{prompt_string:s}|{content:[{type:\"text\",text:s}]}"
#define PROMPTS "s|" PARTS "|[s|i|" PARTS "|[s|i]]"
#define IN_SAMPLING(member) (offsetof(ask, sampling) + offsetof(tern_sampler_params, member))

/* clang-format off: one field a line */
static const field fields[] = {
    {"model", ALL | VECTORS, "s", read_model, 0, 0, 0},
    {"messages", CHAT,
     "[{role:s,content?:s|[{type:s,text:s}]|~,tool_calls?:[@call]|~,tool_call_id?:s}]", read_later,
     0, 0, 0},
    {"messages", MESSAGE, "[{role:s,content:s|[@block]}]", read_later, 0, 0, 0},
    {"system", MESSAGE, "s|[{type:s,text:s}]", read_later, 0, 0, 0},
    {"input", RESPONSE,
     "s|[{type?:s,role:s,content:s|[{type:s,text:s}]}|{type:s,call_id:s,name:s,arguments:s}|{type:"
     "s,call_id:s,output:s|[{type:s,text:s}]}]",
     read_later, 0, 0, 0},
    {"input", VECTORS, PROMPTS, read_later, 0, 0, 0},
    {"content", ASK_NATIVE_EMBEDDING, PROMPTS, read_later, 0, 0, 0},
    {"encoding_format", VECTORS, "\"float\"|\"base64\"", read_encoding, 0, 0, 0},
    {"dimensions", VECTORS, "i", read_dimensions, 1, INT32_MAX, IN(dimensions)},
    {"instructions", RESPONSE, "s", read_instructions, 0, 0, 0},
    {"prompt", TEXT | NATIVE, PROMPTS, read_later, 0, 0, 0},
    {"stream", ALL, "b", read_truth, 0, 0, IN(stream)},
    {"stream_options", OPENAI | RESPONSE, "{include_usage?:b,continuous_usage_stats?:b}",
     read_stream_options, 0, 0, 0},
    {"echo", TEXT, "b", read_truth, 0, 0, IN(echo)},
    {"suffix", TEXT | NATIVE, "s", read_suffix, 0, 0, 0},
    {"input_suffix", NATIVE, "s", read_gap_text, 0, 0, IN(suffix)},
    {"input_prefix", NATIVE, "s", read_gap_text, 0, 0, IN(prefix)},
    {"input_extra", NATIVE, "[{text:s,filename?:s}]", read_extra, 0, 0, 0},
    {"n", OPENAI | NATIVE, "i", read_count, 1, ASK_MOST_CHOICES, IN(n)},
    {"n_cmpl", NATIVE, "i", read_count, 1, ASK_MOST_CHOICES, IN(n)},
    {"best_of", TEXT, "i", read_best_of, 1, ASK_MOST_CHOICES, 0},
    {"max_tokens", OPENAI | MESSAGE | NATIVE, "i", read_max_tokens, -1, MOST_TOKENS, 0},
    {"max_completion_tokens", OPENAI, "i", read_max_tokens, -1, MOST_TOKENS, 0},
    {"max_output_tokens", RESPONSE, "i", read_max_tokens, -1, MOST_TOKENS, 0},
    {"n_predict", NATIVE, "i", read_max_tokens, -1, MOST_TOKENS, 0},
    {"stop", OPENAI | RESPONSE | NATIVE, "s|[s]", read_stops, 0, 0, 0},
    {"stop_token_ids", OPENAI, "[i]", read_stop_tokens, 0, 0, 0},
    {"stop_sequences", MESSAGE, "[s]", read_stops, 0, 0, 0},
    {"ignore_eos", ALL, "b", read_truth, 0, 0, IN(ignore_end)},
    {"temperature", ALL, "n", read_real, 0, 1000, IN_SAMPLING(temperature)},
    {"top_p", ALL, "n", read_top_p, 0, 1, IN_SAMPLING(top_p)},
    {"top_k", ALL, "i", read_count, -1, INT32_MAX, IN_SAMPLING(top_k)},
    {"min_p", ALL, "n", read_real, 0, 1, IN_SAMPLING(min_p)},
    {"seed", ALL, "i", read_seed, -1, 9e18, 0},
    {"presence_penalty", ALL, "n", read_real, -100, 100, IN_SAMPLING(presence_penalty)},
    {"frequency_penalty", ALL, "n", read_real, -100, 100, IN_SAMPLING(frequency_penalty)},
    {"repetition_penalty", ALL, "n", read_real, 0.01, 100, IN_SAMPLING(repetition_penalty)},
    {"repeat_penalty", ALL, "n", read_real, 0.01, 100, IN_SAMPLING(repetition_penalty)},
    {"repeat_last_n", ALL, "i", read_count, 0, 10000000, IN_SAMPLING(repeat_last_n)},
    {"logit_bias", OPENAI, "{*:n}", read_bias, 0, 0, 0},
    {"logit_bias", NATIVE, "{*:n|b}|[[i|n|b|s]]", read_bias, 0, 0, 0},
    {"logprobs", CHAT, "b", read_logprobs, 0, 0, IN(logprobs)},
    {"logprobs", TEXT, "i|b", read_logprobs, 0, ASK_MOST_LOGPROBS, IN(logprobs)},
    {"top_logprobs", CHAT | RESPONSE, "i", read_count, 0, ASK_MOST_LOGPROBS, IN(n_logprobs)},
    {"n_probs", NATIVE, "i", read_n_logprobs, 0, ASK_MOST_LOGPROBS, 0},
    {"include", RESPONSE, "[s]", read_include, 0, 0, 0},
    {"response_fields", NATIVE, "[s]", read_members, 0, 0, 0},
    {"return_tokens", NATIVE, "b", read_truth, 0, 0, IN(return_tokens)},
    {"timings_per_token", OPENAI | RESPONSE, "b", read_truth, 0, 0, IN(timings)},
    {"cache_prompt", NATIVE | OPENAI, "b", read_negated, 0, 0, IN(alone)},
    {"id_slot", OPEN, "i", read_slot, -1, 65535, 0},
    {"lora", OPEN, "[{id:i,scale:n}]", read_adapters, 0, 0, 0},
    {"parse_special", TEXT | NATIVE, "b", read_negated, 0, 0, IN(plain)},
    {"add_special_tokens", TEXT, "b", read_negated, 0, 0, IN(bare)},
    {"truncation", RESPONSE, "\"auto\"|\"disabled\"", read_truncation, 0, 0, 0},
    {"receipt", ALL, "b", read_receipt, 0, 0, IN(receipt)},
    {"metadata", RESPONSE, "{*:s}", read_metadata, 0, 0, 0},
    {"store", RESPONSE, "b", read_store, 0, 0, 0},
    {"previous_response_id", RESPONSE, "s", read_previous, 0, 0, 0},

    /* Variables of the chat template, and how a conversation goes on. */
    {"chat_template_kwargs", TALK, "{*:*}", field_read_variables, 0, 0, 0},
    {"enable_thinking", TALK, "b", field_read_enable_thinking, 0, 0, 0},
    {"reasoning_format", CHAT, "\"none\"|\"auto\"|\"deepseek\"", read_reasoning_format, 0, 0, 0},
    {"separate_reasoning", CHAT, "b", read_negated, 0, 0, IN(mixed)},
    {"documents", CHAT, "[*]", field_read_variable, 0, 0, 0},
    {"verbosity", CHAT, "s", field_read_variable, 0, 0, 0},
    {"reasoning_effort", CHAT, "s", field_read_effort, 0, 0, 0},
    {"reasoning", RESPONSE, "{effort?:s|~}", field_read_reasoning, 0, 0, 0},
    {"thinking", MESSAGE, "{type:s,budget_tokens?:i}", field_read_thinking, 0, 0, 0},
    {"output_config", MESSAGE, "{effort?:s|~,format?:{type:\"json_schema\",schema:{*:*}|b}|~}",
     field_read_output_config, 0, 0, 0},
    {"add_generation_prompt", CHAT, "b", read_negated, 0, 0, IN(no_answer)},
    {"continue_final_message", CHAT, "b", read_truth, 0, 0, IN(continues)},

    /* The form of answers, and tools. */
    {"response_format", OPENAI | NATIVE,
     "{type:s,json_schema?:{name?:s,schema:{*:*}|b,strict?:b|~}}", field_read_format, 0, 0, 0},
    {"text", RESPONSE, "{format?:{type:s,name?:s,schema?:{*:*}|b,strict?:b|~}}", field_read_text, 0,
     0, 0},
    {"output_format", MESSAGE, "{type:\"json_schema\",schema:{*:*}|b}", field_read_output_format, 0,
     0, 0},
    {"json_schema", OPENAI | NATIVE, "{*:*}|b|s", field_read_schema, 0, 0, 0},
    {"grammar", OPENAI | NATIVE, "s", field_read_grammar, 0, 0, 0},
    {"guided_json", OPENAI, "{*:*}|b|s", field_read_schema, 0, 0, 0},
    {"guided_grammar", OPENAI, "s", field_read_grammar, 0, 0, 0},
    {"ebnf", OPENAI, "s", field_read_grammar, 0, 0, 0},
    {"guided_regex", OPENAI, "s", field_read_pattern, 0, 0, 0},
    {"regex", OPENAI, "s", field_read_pattern, 0, 0, 0},
    {"guided_choice", OPENAI, "[s]", field_read_words, 0, 0, 0},
    {"structured_outputs", OPENAI,
     "{json?:{*:*}|b|s,regex?:s,choice?:[s],grammar?:s,json_object?:b}", field_read_structured, 0,
     0, 0},
    {"tools", CHAT,
     "[{type:\"function\",function:{name:s,description?:s,parameters?:{*:*},strict?:b|~}}]",
     read_later, 0, 0, 0},
    {"tools", RESPONSE, "[{type:\"function\",name:s,description?:s,parameters?:{*:*},strict?:b|~}]",
     read_later, 0, 0, 0},
    {"tools", MESSAGE, "[{name:s,description?:s,input_schema:{*:*}}]", read_later, 0, 0, 0},
    {"tool_choice", CHAT, "s|{type:\"function\",function:{name:s}}", read_later, 0, 0, 0},
    {"tool_choice", RESPONSE, "s|{type:\"function\",name:s}", read_later, 0, 0, 0},
    {"tool_choice", MESSAGE, "{type:s,name?:s,disable_parallel_tool_use?:b}", read_later, 0, 0, 0},
    {"parallel_tool_calls", CHAT | RESPONSE, "b", read_later, 0, 0, 0},
};
/* clang-format on */

const field *field_at(size_t i) {
    const size_t n = sizeof fields / sizeof *fields;
    return i < n ? &fields[i] : field_aside(i - n);
}

const field *field_find(const char *name, ask_kind kind) {
    const field *f;
    for (size_t i = 0; (f = field_at(i)) != NULL; i++)
        if ((f->kinds & kind) != 0 && strcmp(f->name, name) == 0)
            return f;
    return NULL;
}
