/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/ask.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/json_tree/read.h"

enum { MOST_VALUES = 1 << 20 };

/* ---- JSON ------------------------------------------------------------------------------------ */

/* Not fewer values than bytes[size] has: what separates them outside of strings. */
static size_t count_values(const char *bytes, size_t size) {
    bool inside = false;
    size_t n = 1;
    for (size_t i = 0; i < size; i++) {
        if (inside && bytes[i] == '\\') {
            i++;
        } else if (bytes[i] == '"') {
            inside = !inside;
        } else if (!inside) {
            n += bytes[i] == ',' || bytes[i] == '[' || bytes[i] == '{' || bytes[i] == ':';
        }
    }
    return n;
}

json_t *ask_parse(const char *bytes, size_t size, refusal *r) {
    if (count_values(bytes, size) > MOST_VALUES) {
        (void)refuse(r, 400, NULL, "the body has more than %d values", MOST_VALUES);
        return NULL;
    }
    tern_error err = {0};
    json_t *body = json_read(bytes, size, "the body", &err);
    if (body == NULL) {
        (void)refuse_error(r, NULL, &err);
    } else if (!json_is_object(body)) {
        (void)refuse(r, 400, NULL, "the body must be a JSON object");
        json_decref(body);
        body = NULL;
    }
    return body;
}

/* ---- values ---------------------------------------------------------------------------------- */

typedef struct field field;

/* What a field is read with. */
typedef struct reading {
    ask *a;
    const ask_rules *rules;
    const field *at;
    refusal *r;
} reading;

struct field {
    const char *name;
    unsigned kinds; /* ask_kind bits */
    bool (*read)(const reading *in, const json_t *value);
    double low, high; /* of numbers */
    size_t offset;    /* of what a number or truth value goes into, in an ask */
};

static void *place(const reading *in) {
    return (char *)in->a + in->at->offset;
}

static bool read_number(const reading *in, const json_t *value, bool whole, double *out) {
    *out = json_number_value(value);
    if (json_is_number(value) && *out >= in->at->low && *out <= in->at->high &&
        (!whole || *out == floor(*out))) {
        return true;
    }
    return refuse(in->r, 400, in->at->name, "%s must be %s from %g to %g", in->at->name,
                  whole ? "an integer" : "a number", in->at->low, in->at->high);
}

static bool read_real(const reading *in, const json_t *value) {
    double x;
    if (!read_number(in, value, false, &x)) {
        return false;
    }
    *(float *)place(in) = (float)x;
    return true;
}

static bool read_count(const reading *in, const json_t *value) {
    double x;
    if (!read_number(in, value, true, &x)) {
        return false;
    }
    *(uint32_t *)place(in) = x > 0.0 ? (uint32_t)x : 0;
    return true;
}

static bool read_truth(const reading *in, const json_t *value) {
    if (!json_is_boolean(value)) {
        return refuse(in->r, 400, in->at->name, "%s must be true or false", in->at->name);
    }
    *(bool *)place(in) = json_is_true(value);
    return true;
}

/* 0 stands for the least share there is: the likeliest token. */
static bool read_top_p(const reading *in, const json_t *value) {
    if (!read_real(in, value)) {
        return false;
    }
    float *p = place(in);
    *p = *p > 0.0F ? *p : 1e-6F;
    return true;
}

static bool read_max_tokens(const reading *in, const json_t *value) {
    double x;
    if (!read_number(in, value, true, &x)) {
        return false;
    }
    if (x == 0.0) {
        return refuse(in->r, 400, in->at->name,
                      "%s must be at least 1 (-1: until the context is "
                      "full)",
                      in->at->name);
    }
    in->a->max_tokens = x > 0.0 ? (size_t)x : 0;
    return true;
}

static bool read_seed(const reading *in, const json_t *value) {
    const json_int_t x = json_integer_value(value);
    if (!json_is_integer(value) || x < -1) {
        return refuse(in->r, 400, "seed", "seed must be an integer, at least 0 (-1: drawn)");
    }
    in->a->sampling.seed = x >= 0 ? (uint64_t)x : in->a->sampling.seed;
    return true;
}

static bool read_stops(const reading *in, const json_t *value) {
    const bool one = json_is_string(value);
    const size_t n = one ? 1 : json_array_size(value);
    if ((!one && !json_is_array(value)) || n > ASK_MOST_STOPS) {
        return refuse(in->r, 400, "stop", "stop must be a text, or an array of at most %d texts",
                      ASK_MOST_STOPS);
    }
    for (size_t i = 0; i < n; i++) {
        const json_t *stop = one ? value : json_array_get(value, i);
        if (json_string_length(stop) == 0) {
            return refuse(in->r, 400, "stop", "stop: a text that is not empty is needed");
        }
        in->a->stops[in->a->n_stops++] = json_string_value(stop);
    }
    return true;
}

/* Of a chat whether, of a completion how many. */
static bool read_logprobs(const reading *in, const json_t *value) {
    if (in->a->kind == ASK_CHAT || json_is_boolean(value)) {
        return read_truth(in, value);
    }
    double x;
    if (!read_number(in, value, true, &x)) {
        return false;
    }
    in->a->logprobs = true;
    in->a->n_logprobs = (uint32_t)x;
    return true;
}

static bool read_stream_options(const reading *in, const json_t *value) {
    const json_t *usage = json_object_get(value, "include_usage");
    if (!json_is_object(value) || (usage != NULL && !json_is_boolean(usage))) {
        return refuse(in->r, 400, "stream_options",
                      "stream_options must be an object, its include_usage true or false");
    }
    in->a->include_usage = json_is_true(usage);
    return true;
}

/* A token's id in decimal. */
static bool read_id(const char *name, uint32_t n_vocab, int32_t *id) {
    char *end;
    const size_t n = strlen(name);
    const unsigned long x = strtoul(name, &end, 10);
    *id = (int32_t)x;
    return n > 0 && n < 11 && strspn(name, "0123456789") == n && x < n_vocab;
}

static bool read_bias(const reading *in, const json_t *value) {
    const size_t n = json_object_size(value);
    ask *a = in->a;
    if (!json_is_object(value) || n > 4096) {
        return refuse(in->r, 400, "logit_bias",
                      "logit_bias must be an object of at most 4096 token ids and numbers");
    }
    a->bias = calloc(n + 1, sizeof *a->bias);
    if (a->bias == NULL) {
        return refuse(in->r, 503, "logit_bias", "no memory for %zu biases", n);
    }
    const char *name;
    json_t *bias;
    json_object_foreach(value, name, bias) {
        tern_logit_bias *b = &a->bias[a->sampling.n_bias++];
        b->bias = (float)json_number_value(bias);
        if (!read_id(name, in->rules->n_vocab, &b->token) || !json_is_number(bias) ||
            !(fabsf(b->bias) <= 1e6F)) {
            return refuse(in->r, 400, "logit_bias",
                          "logit_bias: each name is a token id from 0 to %u, each value a number",
                          in->rules->n_vocab - 1);
        }
    }
    a->sampling.bias = a->bias;
    return true;
}

static bool read_model(const reading *in, const json_t *value) {
    return ask_check_model(in->rules, value, in->r);
}

static bool read_prompt_field(const reading *in, const json_t *value) {
    return in->a->kind == ASK_CHAT ? ask_read_messages(in->a, in->rules, value, in->r)
                                   : ask_read_prompts(in->a, in->rules, value, in->r);
}

/* ---- what is known and not done -------------------------------------------------------------- */

static bool unsupported(const reading *in, const char *what) {
    return refuse(in->r, 400, in->at->name, "%s: %s", in->at->name, what);
}

/* Of lists and truth values: nothing asked for is fine. */
static bool read_absent(const reading *in, const json_t *value) {
    const bool nothing = (json_is_boolean(value) && !json_is_true(value)) ||
                         (json_is_array(value) && json_array_size(value) == 0) ||
                         (json_is_string(value) && json_string_length(value) == 0);
    return nothing || unsupported(in, "not supported by this server");
}

static bool read_tool_choice(const reading *in, const json_t *value) {
    const char *word = json_string_value(value);
    return (word != NULL && (strcmp(word, "none") == 0 || strcmp(word, "auto") == 0)) ||
           unsupported(in, "tools are not supported by this server");
}

static bool read_format(const reading *in, const json_t *value) {
    const char *type = json_string_value(json_object_get(value, "type"));
    return (type != NULL && strcmp(type, "text") == 0) ||
           unsupported(in, "only {\"type\": \"text\"} is supported by this server");
}

static bool read_modalities(const reading *in, const json_t *value) {
    const char *only = json_string_value(json_array_get(value, 0));
    return (json_array_size(value) == 1 && only != NULL && strcmp(only, "text") == 0) ||
           unsupported(in, "only [\"text\"] is supported by this server");
}

static bool read_best_of(const reading *in, const json_t *value) {
    double x;
    return read_number(in, value, true, &x) &&
           (x == 1.0 || unsupported(in, "only 1 is supported by this server"));
}

/* ---- the table ------------------------------------------------------------------------------- */

enum { BOTH = ASK_CHAT | ASK_COMPLETION, MOST_TOKENS = 100000000 };

#define IN_SAMPLING(member) (offsetof(ask, sampling) + offsetof(tern_sampler_params, member))

static const field fields[] = {
    {"model", BOTH, read_model, 0, 0, 0},
    {"messages", ASK_CHAT, read_prompt_field, 0, 0, 0},
    {"prompt", ASK_COMPLETION, read_prompt_field, 0, 0, 0},
    {"stream", BOTH, read_truth, 0, 0, offsetof(ask, stream)},
    {"stream_options", BOTH, read_stream_options, 0, 0, 0},
    {"echo", ASK_COMPLETION, read_truth, 0, 0, offsetof(ask, echo)},
    {"n", BOTH, read_count, 1, ASK_MOST_CHOICES, offsetof(ask, n)},
    {"best_of", ASK_COMPLETION, read_best_of, 1, ASK_MOST_CHOICES, 0},
    {"max_tokens", BOTH, read_max_tokens, -1, MOST_TOKENS, 0},
    {"max_completion_tokens", BOTH, read_max_tokens, -1, MOST_TOKENS, 0},
    {"stop", BOTH, read_stops, 0, 0, 0},
    {"ignore_eos", BOTH, read_truth, 0, 0, offsetof(ask, ignore_end)},
    {"temperature", BOTH, read_real, 0, 1000, IN_SAMPLING(temperature)},
    {"top_p", BOTH, read_top_p, 0, 1, IN_SAMPLING(top_p)},
    {"top_k", BOTH, read_count, -1, INT32_MAX, IN_SAMPLING(top_k)},
    {"min_p", BOTH, read_real, 0, 1, IN_SAMPLING(min_p)},
    {"seed", BOTH, read_seed, 0, 0, 0},
    {"presence_penalty", BOTH, read_real, -100, 100, IN_SAMPLING(presence_penalty)},
    {"frequency_penalty", BOTH, read_real, -100, 100, IN_SAMPLING(frequency_penalty)},
    {"repetition_penalty", BOTH, read_real, 0.01, 100, IN_SAMPLING(repetition_penalty)},
    {"repeat_penalty", BOTH, read_real, 0.01, 100, IN_SAMPLING(repetition_penalty)},
    {"repeat_last_n", BOTH, read_count, 0, 10000000, IN_SAMPLING(repeat_last_n)},
    {"logit_bias", BOTH, read_bias, 0, 0, 0},
    {"logprobs", BOTH, read_logprobs, 0, ASK_MOST_LOGPROBS, offsetof(ask, logprobs)},
    {"top_logprobs", ASK_CHAT, read_count, 0, ASK_MOST_LOGPROBS, offsetof(ask, n_logprobs)},
    {"tools", BOTH, read_absent, 0, 0, 0},
    {"tool_choice", BOTH, read_tool_choice, 0, 0, 0},
    {"functions", BOTH, read_absent, 0, 0, 0},
    {"function_call", BOTH, read_tool_choice, 0, 0, 0},
    {"response_format", BOTH, read_format, 0, 0, 0},
    {"grammar", BOTH, read_absent, 0, 0, 0},
    {"json_schema", BOTH, read_absent, 0, 0, 0},
    {"modalities", BOTH, read_modalities, 0, 0, 0},
    {"audio", BOTH, read_absent, 0, 0, 0},
    {"prediction", BOTH, read_absent, 0, 0, 0},
    {"suffix", BOTH, read_absent, 0, 0, 0},
    {"receipt", BOTH, read_absent, 0, 0, 0},
};

static const field *find_field(const char *name, ask_kind kind) {
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        if ((fields[i].kinds & kind) != 0 && strcmp(fields[i].name, name) == 0) {
            return &fields[i];
        }
    }
    return NULL;
}

/* Null says no more than a field that is not there. */
static bool read_fields(ask *a, const ask_rules *rules, refusal *r) {
    const char *name;
    json_t *value;
    json_object_foreach(a->body, name, value) {
        const reading in = {a, rules, find_field(name, a->kind), r};
        if (in.at == NULL) {
            text_add(&a->ignored, ",", a->ignored.size > 0);
            text_quote(&a->ignored, name, strlen(name));
        } else if (!json_is_null(value) && !in.at->read(&in, value)) {
            return false;
        }
    }
    return true;
}

/* A seed that every reader of JSON keeps whole. */
static uint64_t draw_seed(void) {
    uint64_t seed = 0;
    while (getrandom(&seed, sizeof seed, 0) != (ssize_t)sizeof seed) {
    }
    return seed >> 12;
}

static bool check_whole(const ask *a, const ask_rules *rules, refusal *r) {
    const char *prompt = a->kind == ASK_CHAT ? "messages" : "prompt";
    const json_t *one = json_object_get(a->body, "max_tokens");
    const json_t *other = json_object_get(a->body, "max_completion_tokens");
    if (a->n_prompts == 0) {
        return refuse(r, 400, prompt, "%s is missing", prompt);
    }
    if (json_is_number(one) && json_is_number(other) && !json_equal(one, other)) {
        return refuse(r, 400, "max_tokens", "max_tokens and max_completion_tokens differ");
    }
    if (a->n * a->n_prompts > rules->most_choices) {
        return refuse(r, 400, "n", "%zu choices: a request has at most %u", a->n * a->n_prompts,
                      rules->most_choices);
    }
    if (a->kind == ASK_CHAT && a->n_logprobs > 0 && !a->logprobs) {
        return refuse(r, 400, "top_logprobs", "top_logprobs needs \"logprobs\": true");
    }
    if (a->echo && a->logprobs) {
        return refuse(r, 400, "echo", "echo with logprobs is not supported by this server");
    }
    return true;
}

bool ask_read(ask *a, ask_kind kind, const ask_rules *rules, const char *bytes, size_t size,
              refusal *r) {
    *a = (ask){.kind = kind, .n = 1, .max_tokens = rules->max_tokens, .sampling = rules->sampling};
    if (!rules->seeded) {
        a->sampling.seed = draw_seed();
    }
    a->body = ask_parse(bytes, size, r);
    return a->body != NULL && read_fields(a, rules, r) && check_whole(a, rules, r);
}

void ask_free(ask *a) {
    for (size_t i = 0; i < a->n_prompts; i++) {
        free(a->prompts[i].ids);
    }
    free(a->prompts);
    free(a->bias);
    text_free(&a->ignored);
    json_decref(a->body);
    *a = (ask){0};
}

bool ask_check_model(const ask_rules *rules, const json_t *name, refusal *r) {
    const char *asked = json_string_value(name);
    if (asked == NULL) {
        return refuse(r, 400, "model", "model must be a text");
    }
    if (rules->any_model || strcmp(asked, rules->model) == 0) {
        return true;
    }
    (void)refuse(r, 404, "model", "there is no model '%.100s' here, only '%s'", asked,
                 rules->model);
    r->code = "model_not_found";
    return false;
}

void ask_write_effective(const ask *a, text *out) {
    const tern_sampler_params *s = &a->sampling;
    text_print(out, "{\"seed\":%" PRIu64 ",\"max_tokens\":%zd", s->seed,
               a->max_tokens > 0 ? (ssize_t)a->max_tokens : (ssize_t)-1);
    text_real(out, "temperature", s->temperature);
    text_real(out, "top_p", s->top_p);
    text_print(out, ",\"top_k\":%u", s->top_k);
    text_real(out, "min_p", s->min_p);
    text_real(out, "presence_penalty", s->presence_penalty);
    text_real(out, "frequency_penalty", s->frequency_penalty);
    text_real(out, "repetition_penalty", s->repetition_penalty);
    text_print(out, ",\"repeat_last_n\":%u,\"n\":%u,\"ignore_eos\":%s}", s->repeat_last_n, a->n,
               a->ignore_end ? "true" : "false");
}
