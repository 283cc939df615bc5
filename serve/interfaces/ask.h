/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_SERVE_INTERFACES_ASK_H
#define TERN_SERVE_INTERFACES_ASK_H

/*
 * What a request for text asks for: its JSON body, every field of it read, or ignored by name, or
 * refused with the name of the field that is wrong. Nothing that stands in a body is an index, a
 * path or a format.
 */

#include "base/json_tree/text.h"
#include "base/json_tree/value.h"
#include "serve/http/refusal.h"
#include "serve/interfaces/grammars.h"
#include "serve/interfaces/tools.h"
#include "tern/tern.h"

/* The interfaces: OpenAI's chats, completions and responses, Anthropic's messages, llama.cpp's
 * completions; OpenAI's and llama.cpp's vectors of texts. */
typedef enum ask_kind {
    ASK_CHAT = 1,
    ASK_COMPLETION = 2,
    ASK_RESPONSE = 4,
    ASK_MESSAGE = 8,
    ASK_NATIVE = 16,
    ASK_EMBEDDING = 32,
    ASK_NATIVE_EMBEDDING = 64,
    ASK_VECTORS = ASK_EMBEDDING | ASK_NATIVE_EMBEDDING
} ask_kind;

/* What a server has, and what it takes where a request says nothing. */
typedef struct ask_rules {
    const tern_tokenizer *tokenizer;
    const char *model;            /* the name that clients call it by */
    bool any_model;               /* every other name does too */
    tern_sampler_params sampling; /* without biases */
    bool seeded;                  /* its seed counts; false: one is drawn for each request */
    size_t max_tokens;            /* of an answer; 0: until the context is full */
    uint32_t n_vocab, n_ctx;
    uint32_t most_choices;     /* of a request */
    bool receipts;             /* can be made */
    const tern_model *vectors; /* whose vectors may be asked for */
    uint32_t n_embd;           /* numbers of one */
    call_style call_style;     /* of the chat template */
    grammars *grammars;
    tern_tokenize_limits limits; /* of the texts of a request; what is over them is refused */
} ask_rules;

enum { ASK_ROLE_BYTES = 16 };

typedef struct ask_prompt {
    int32_t *ids; /* [n] */
    size_t n;
    const char *given;           /* its text; NULL: ids were given */
    char unseen[ASK_ROLE_BYTES]; /* role of the first message that the template leaves out, or "" */
} ask_prompt;

/* The form that answers must have. */
typedef struct ask_form {
    const char *field;    /* that asks for it; NULL: any text */
    const char *place;    /* of the schema or grammar, for messages */
    const json_t *schema; /* NULL: there is a grammar, or it may be any JSON object */
    const char *grammar;  /* in GBNF; NULL: there is none */
} ask_form;

enum {
    ASK_MOST_CHOICES = 128,
    ASK_MOST_TEXTS = 2048,
    ASK_MOST_STOPS = 16,
    ASK_MOST_LOGPROBS = 20,
    ASK_MOST_STOP_BYTES = 8192 /* of all stops of a request */
};

typedef struct ask {
    ask_kind kind;
    json_t *body;        /* holds the texts that are pointed at */
    ask_prompt *prompts; /* [n_prompts] */
    size_t n_prompts;
    uint32_t n; /* choices for each prompt: choice i is picked with the seed + i */
    bool stream, include_usage, echo, ignore_end, logprobs, return_tokens;
    bool receipt;
    bool prompt_only; /* no token is wanted */
    bool alone;       /* what others computed is not used, nor kept for them */
    uint32_t n_logprobs;
    bool base64;         /* of vectors: their bytes, little-endian floats */
    uint32_t dimensions; /* of vectors: the first ones that are told */
    size_t max_tokens;   /* 0: until the context is full */
    tern_sampler_params sampling;
    tern_logit_bias *bias;
    const char *stops[ASK_MOST_STOPS];
    size_t n_stops;
    ask_form form;
    toolset tools;
    tern_grammar *grammar; /* of answers in a form, or with calls; NULL: any text */
    json_t *form_record; /* what it was made of, where a receipt is wanted (serve/work/receipt.h) */
    text ignored;        /* names of fields that mean nothing here: `"a","b"`; the first ones */
} ask;

/* Reads bytes[size]. False after a refusal. Call ask_free in any case. */
bool ask_read(ask *a, ask_kind kind, const ask_rules *rules, const char *bytes, size_t size,
              refusal *r);
void ask_free(ask *a);

/* A text as JSON, an object; NULL after a refusal, which calls it `what`. What has too many values
 * is refused before it takes memory. */
json_t *ask_parse(const char *bytes, size_t size, const char *what, refusal *r);

/* Whether a name is the model's; false after a refusal. */
bool ask_check_model(const ask_rules *rules, const json_t *name, refusal *r);

/* The parameters that count, as a JSON object; the same with the names that llama.cpp has. */
void ask_write_effective(const ask *a, text *out);
void ask_write_native(const ask *a, text *out);

/* ---- ask_prompt.c, ask_talk.c: the prompts of a body ----------------------------------------- */

/* The field that a kind's prompts are in. */
const char *ask_prompt_field(ask_kind kind);

/* The prompts of a body whose other fields have been read. */
bool ask_read_prompts(ask *a, const ask_rules *rules, refusal *r);

/* Tokens of a text, within the limits of the rules; NULL after a refusal, which names `param`. The
 * caller frees them. */
int32_t *ask_tokenize(const ask_rules *rules, const char *bytes, size_t size, unsigned flags,
                      size_t *n, const char *param, refusal *r);

/* What is said of a text that is over the limits, or whose tokens nobody wants any more. */
bool ask_refuse_limits(const ask_rules *rules, const char *param, tern_status status, refusal *r);

/* Ids of an array; NULL after a refusal. The caller frees them. */
int32_t *ask_read_ids(const json_t *array, uint32_t n_vocab, size_t *n, const char *param,
                      refusal *r);

/* The conversation in a body of that kind, up to where the answer begins, with the tools that the
 * model is told of (NULL: none). False after a refusal. The caller frees out->ids in any case. */
bool ask_tokenize_talk(const ask_rules *rules, ask_kind kind, const json_t *body, const char *tools,
                       ask_prompt *out, refusal *r);

/* Tools of a body of that kind; false after a refusal. */
bool ask_read_tools(toolset *tools, ask_kind kind, const json_t *body, const ask_rules *rules,
                    refusal *r);

/* ---- ask_form.c: what answers must look like ------------------------------------------------- */

/* The grammar of answers, when all else has been read; false after a refusal. */
bool ask_compile(ask *a, const ask_rules *rules, refusal *r);

/* A text that the tokenizer refuses is its client's, but for a lack of memory. */
bool ask_refuse_text(refusal *r, const char *param, const tern_error *err);

#endif
