/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_SERVE_INTERFACES_ASK_H
#define TERN_SERVE_INTERFACES_ASK_H

/*
 * A request for text. Each field of its JSON body is read, or ignored and listed by name, or
 * refused with the name of the field that is wrong. Nothing in a body is used as an index, a path
 * or a format.
 */

#include "base/json_tree/text.h"
#include "base/json_tree/value.h"
#include "serve/http/refusal.h"
#include "serve/interfaces/adapters.h"
#include "serve/interfaces/grammars.h"
#include "serve/interfaces/kept.h"
#include "serve/interfaces/thinking.h"
#include "serve/interfaces/tools.h"
#include "tern/tern.h"

/* The interfaces: OpenAI's chats, completions and responses, Anthropic's messages and llama.cpp's
 * completions; OpenAI's and llama.cpp's embeddings. */
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

/* The server's rules for requests, and its defaults for fields that a request leaves out. */
typedef struct ask_rules {
    const tern_tokenizer *tokenizer;
    const char *model;            /* the name under which clients ask for it */
    bool any_model;               /* any other name is accepted, too */
    tern_sampler_params sampling; /* without biases */
    bool seeded;                  /* use the seed in `sampling`; false: draw one for each request */
    size_t max_tokens;            /* limit of an answer; 0: until the context is full */
    uint32_t n_vocab, n_ctx;
    uint32_t most_choices;          /* in one request */
    bool receipts;                  /* receipts can be made */
    bool records;                   /* answers are recorded, with the sources of their forms */
    const tern_model *vectors;      /* the model that makes embeddings */
    uint32_t n_embd;                /* size of an embedding */
    const call_form *calls;         /* how the model writes calls of tools */
    const thinking_marks *thinking; /* around the model's thinking; NULL: it is not told apart */
    grammars *grammars;
    adapter_scales *adapters; /* of the model; NULL: it has none */
    kept *kept;               /* where responses are kept; NULL: nowhere */
    const uint8_t *owner;     /* digest of the key that was shown; NULL: none */
    bool open_objects;        /* objects of schemas that name their properties may have others, and
                                 numbers any number of digits */
    tern_tokenize_limits limits; /* for the texts of a request; longer ones are refused */
    bool truncates;              /* the end of texts for embeddings that do not fit is left out */
} ask_rules;

enum { ASK_ROLE_BYTES = 16 };

typedef struct ask_prompt {
    int32_t *ids; /* [n] */
    size_t n;
    const char *given; /* [given_size] the text of the prompt; NULL: it was given as
                          ids */
    size_t given_size;
    size_t second;               /* where the second of two texts begins; 0: it is one text */
    char unseen[ASK_ROLE_BYTES]; /* role of the first message that the template leaves out; "":
                                    none */
} ask_prompt;

/* The form that answers must have, such as JSON of a schema. */
typedef struct ask_form {
    const char *field;    /* the field that asks for it; NULL: any text */
    const char *place;    /* where the schema or grammar stands, for messages */
    const json_t *schema; /* NULL: one of the others, or it may be any JSON object */
    const char *grammar;  /* a grammar in GBNF; NULL: there is none */
    const char *pattern;  /* a regular expression; NULL: there is none */
} ask_form;

enum {
    ASK_MOST_CHOICES = 128,
    ASK_MOST_TEXTS = 2048,
    ASK_MOST_STOPS = 16,
    ASK_MOST_MEMBERS = 64,
    ASK_MOST_LOGPROBS = 20,
    ASK_MOST_STOP_BYTES = 8192 /* all stops of a request together */
};

/* Results that put documents into an order: the first prompt is the query, others are documents; or
 * where the model scores pairs, each prompt is the query with a document. */
typedef struct ask_rerank {
    bool wanted;
    bool pairs; /* the model scores pairs */
    bool plain; /* a bare list of results, as text-embeddings-inference writes it */
    bool raw;   /* scores of pairs are sent as they are, not from 0 to 1 */
    bool texts; /* with the documents */
    size_t top; /* number of results at most */
} ask_rerank;

typedef struct ask {
    ask_kind kind;
    ask_rerank rerank;
    unsigned ollama;     /* an ollama_kind: it came in that form (serve/interfaces/ollama.h); 0: in
                            another */
    json_t *body;        /* owns the texts that members point to */
    ask_prompt *prompts; /* [n_prompts] */
    size_t n_prompts;
    uint32_t n; /* choices for each prompt: choice i is sampled with seed + i */
    bool stream, include_usage, echo, ignore_end, logprobs, return_tokens, timings;
    bool running_usage; /* beside include_usage: every chunk counts the tokens so far */
    bool receipt;
    bool prompt_only; /* no token is to be generated */
    bool alone;       /* shares no cached pages with other requests */
    bool plain;       /* control tokens in texts of prompts are not recognised */
    bool bare;        /* the tokenizer adds no control tokens to prompts */
    bool continues;   /* the last message is the beginning of the answer; in messages it is where
                         it is the assistant's */
    bool thinks;      /* the answer begins inside of thinking */
    bool mixed;       /* thinking stays in the text */
    bool tells;       /* replies tell what the model thinks: in messages where they are asked to */
    const thinking_marks *thinking; /* the rules' */
    bool no_answer;                 /* the template does not begin an answer */
    json_t *variables; /* an object of variables of the chat template; NULL: none; owned */
    uint32_t n_logprobs;
    adapter_uses adapters; /* in use for the answers */
    uint32_t slot;         /* the place whose last tokens it is, from 1; 0: any */
    bool base64;           /* embeddings are sent as base64 of little-endian floats */
    uint32_t dimensions;   /* how many numbers of each embedding are sent, from the first on */
    size_t max_tokens;     /* 0: until the context is full */
    tern_sampler_params sampling;
    tern_logit_bias *bias;
    kept *kept;            /* where the response is kept; NULL: it is not */
    json_t *earlier;       /* the conversation that the response goes on from; NULL: none; owned */
    bool gap;              /* the answer fills in what is missing between two texts */
    const json_t *suffix;  /* the text after the gap; NULL: none */
    const json_t *prefix;  /* a text before the prompt, where there is a gap; NULL: none */
    const json_t *extra;   /* other texts, {"filename", "text"}, before a gap; NULL: none */
    const json_t *members; /* paths such as "timings/prompt_n": of llama.cpp's replies these alone
                              are told; NULL: all */
    const char *stops[ASK_MOST_STOPS];
    size_t n_stops;
    int32_t stop_tokens[ASK_MOST_STOPS]; /* tokens that end the answer, too */
    size_t n_stop_tokens;
    ask_form form;
    toolset tools;
    tern_grammar *grammar; /* for answers in a form or with calls; NULL: any text */
    char *schema_words;    /* the form's schema as text; NULL: there is none */
    text schema_notes;     /* what the schemas say and answers are not held to, as `"a","b"` */
    json_t *form_record;   /* source of `grammar`, for a receipt or a recording
                              (serve/work/receipt.h) */
    char *form_text;       /* a grammar that was made from a field; owned */
    json_t *form_schema;   /* a schema that was given as a text; owned */
    text ignored;          /* ignored fields as `"a","b"`; only the first if there are many */
} ask;

/* Reads bytes[size]. False after a refusal. Call ask_free in any case. */
bool ask_read(ask *a, ask_kind kind, const ask_rules *rules, const char *bytes, size_t size,
              refusal *r);

/* The same for a body that is an object. Takes it over. */
bool ask_read_body(ask *a, ask_kind kind, const ask_rules *rules, json_t *body, refusal *r);
void ask_free(ask *a);

/* Notes a field that was ignored, or a part of one. */
void ask_note_ignored(ask *a, const char *name);

/* Refuses U+0000 in the texts of a body, by the name of the field. `plain`: not in the members
 * `prompt`, `content` and `input`, which are tokenized as they are. */
bool ask_check_texts(const json_t *body, bool plain, refusal *r);

/* Parses a text as a JSON object; NULL after a refusal, which calls the text `what`. A text with
 * too many values is refused before it takes memory. The first refuses U+0000 as well; who calls
 * the second goes on with ask_read_body or ask_check_texts. */
json_t *ask_parse(const char *bytes, size_t size, const char *what, refusal *r);
json_t *ask_parse_any(const char *bytes, size_t size, const char *what, refusal *r);

/* The value with which a body names its model; older clients of Ollama do so in `name`. NULL: it
 * names none. */
const json_t *ask_model_of(const json_t *body);

/* True if a name is the model's, also with ":latest" after it, as Ollama's clients write it; false
 * after a refusal. */
bool ask_check_model(const ask_rules *rules, const json_t *name, refusal *r);

/* Appends the parameters in effect as a JSON object; the second uses llama.cpp's names. */
void ask_write_effective(const ask *a, text *out);
void ask_write_native(const ask *a, text *out);

/* ---- ask_prompt.c, ask_talk.c: the prompts of a body ----------------------------------------- */

/* The name of the field with the prompts. */
const char *ask_prompt_field(ask_kind kind);

/* Reads the prompts. All other fields must have been read. False after a refusal. */
bool ask_read_prompts(ask *a, const ask_rules *rules, refusal *r);

/* Tokenizes a text within the limits of the rules; NULL after a refusal, which names `param`. The
 * caller frees the ids. */
int32_t *ask_tokenize(const ask_rules *rules, const char *bytes, size_t size, unsigned flags,
                      size_t *n, const char *param, refusal *r);

/* Refuses a text that is over the limits (TERN_ERR_CONTEXT), or whose tokens are not wanted any
 * more (TERN_ERR_STATE). */
bool ask_refuse_limits(const ask_rules *rules, const char *param, tern_status status, refusal *r);

/* How texts between token ids are tokenized: the first element of the array, and others. */
typedef struct ask_mixture {
    unsigned first, others; /* TERN_TOKENIZE_... */
    size_t most;            /* tokens, over which no more is read */
    const char *param;      /* the field, for refusals */
} ask_mixture;

/* Appends an array of texts and token ids to one prompt. False after a refusal. The caller frees
 * p->ids in any case. */
bool ask_tokenize_mixture(const ask_rules *rules, const json_t *parts, ask_mixture how,
                          ask_prompt *p, refusal *r);

/* Reads an array of token ids; NULL after a refusal. The caller frees the ids. */
int32_t *ask_read_ids(const json_t *array, uint32_t n_vocab, size_t *n, const char *param,
                      refusal *r);

/* Tokenizes what stands before and after a text that is to be filled in, with the control tokens by
 * which the model knows that. False after a refusal, also where it has no such tokens. The caller
 * frees p->ids in any case. */
bool ask_tokenize_gap(const ask *a, const ask_rules *rules, const json_t *before, ask_prompt *p,
                      refusal *r);

/* Reads a request of llama.cpp's /infill: a completion with a gap, whose prompt may be missing. */
bool ask_read_gap(ask *a, const ask_rules *rules, const char *bytes, size_t size, refusal *r);

/* Adds n tokens to a prompt. False after a refusal. */
bool ask_append_ids(ask_prompt *p, const int32_t *ids, size_t n, refusal *r);

/* Tokenizes the conversation of a request, up to where the answer goes on, with the tools and the
 * variables that its other fields have set. False after a refusal. The caller frees out->ids in any
 * case. */
bool ask_tokenize_talk(ask *a, const ask_rules *rules, ask_prompt *out, refusal *r);

/* ---- ask_form.c: what answers must look like ------------------------------------------------- */

/* Compiles the grammar of answers, after everything else has been read; false after a refusal. */
bool ask_compile(ask *a, const ask_rules *rules, refusal *r);

/* Refuses a text that the tokenizer refused. That is the client's fault unless memory was short. */
bool ask_refuse_text(refusal *r, const char *param, const tern_error *err);

#endif
