/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_TOKENIZER_H
#define TERN_TOKENIZER_H

/*
 * Text and token ids: tokenizers, chats in a model's own format, text as tokens arrive. What
 * tern.h says of errors, strings and threads holds here too.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tern/status.h"

TERN_API_BEGIN

typedef struct tern_tokenizer tern_tokenizer;
typedef struct tern_text_stream tern_text_stream;
typedef struct tern_answer_text tern_answer_text;

/*
 * Opens a tokenizer without a model: that of a GGUF file or an IEBIN folder, a Hugging Face
 * tokenizer.json (what lies beside it in tokenizer_config.json and generation_config.json is read
 * too), or a plain JSON vocabulary (docs/tokenizers.md). pre_tokenizer as in tern_model_params, for
 * GGUF files only. What tern cannot do exactly is refused with one line that names it:
 * TERN_ERR_TOKENIZER_MODEL, _PRE, _DATA, TERN_ERR_JSON.
 */
TERN_MUST_CHECK tern_status tern_tokenizer_open(const char *path, const char *pre_tokenizer,
                                                tern_tokenizer **out, tern_error *err);

/* Frees a tokenizer that tern_tokenizer_open gave (not a model's) and sets it to NULL. */
void tern_tokenizer_free(tern_tokenizer **tokenizer);

enum {
    TERN_TOKENIZE_SPECIAL = 1, /* add BOS/EOS where the model asks for them */
    TERN_TOKENIZE_PARSE = 2    /* recognise control tokens in the text (trusted text only) */
};

/*
 * Text (any bytes; each invalid UTF-8 byte becomes U+FFFD for byte-level BPE) to token ids. Writes
 * at most capacity ids and always sets *n to the full count, so that a call with capacity 0 sizes
 * the buffer; TERN_ERR_BUFFER when it was too small (capacity > 0).
 */
TERN_MUST_CHECK tern_status tern_tokenize(const tern_tokenizer *t, const char *text, size_t size,
                                          unsigned flags, int32_t *ids, size_t capacity, size_t *n,
                                          tern_error *err);

/* Limits at which tokenizing ends before all of a text is done. Zero what does not count. */
typedef struct tern_tokenize_limits {
    size_t most_tokens; /* of all texts of a call; more are TERN_ERR_CONTEXT, before any work where
                           the text's bytes say so (tern_tokenizer_reach) */
    size_t most_bytes;  /* likewise, before any work */
    /* Called with the bytes that are worked on next, 32 KiB or more at a time, and with 0 in
     * between. False ends it: TERN_ERR_STATE. */
    bool (*goes_on)(void *user, size_t bytes);
    void *user;
} tern_tokenize_limits;

/* tern_tokenize in one pass, within limits (NULL: there are none). *ids[*n] come from malloc (NULL
 * for none); they are set when it succeeds. */
TERN_MUST_CHECK tern_status tern_tokenize_within(const tern_tokenizer *t, const char *text,
                                                 size_t size, unsigned flags,
                                                 const tern_tokenize_limits *limits, int32_t **ids,
                                                 size_t *n, tern_error *err);

/*
 * The tokens of a pair of texts, as models that score pairs read them: [CLS] first [SEP] second
 * [SEP] of WordPiece, <s> first </s> </s> second </s> of others. Both texts come with their own
 * control tokens (TERN_TOKENIZE_SPECIAL). Writes out[] and returns how many, n_first + n_second + 1
 * at most; *begin is where tokens of kind 1 begin: the second text of WordPiece; 0 elsewhere, where
 * all are of one kind (tern_request.second_from).
 */
size_t tern_tokens_of_pair(const tern_tokenizer *t, const int32_t *first, size_t n_first,
                           const int32_t *second, size_t n_second, int32_t *out, size_t *begin);

/*
 * The most bytes of a text that one token can stand for: n tokens are of n times as many bytes at
 * most. 0 where there is no such number, because text may vanish or become one unknown token: all
 * of WordPiece, Unigram without tokens for bytes, normalizers and added tokens that drop white
 * space or characters.
 */
size_t tern_tokenizer_reach(const tern_tokenizer *t);

/*
 * Bytes of one token. special: control tokens give their text instead of nothing. The returned
 * pointer lives as long as the tokenizer. An id out of range gives an empty piece.
 */
const char *tern_token_bytes(const tern_tokenizer *t, int32_t id, bool special, size_t *size);

/*
 * Ids to text (UTF-8, with U+FFFD for broken sequences). Writes at most capacity bytes, always sets
 * *size; no terminator. skip_special leaves control tokens out. SentencePiece models: one leading
 * space that the encoder had added is removed.
 */
TERN_MUST_CHECK tern_status tern_detokenize(const tern_tokenizer *t, const int32_t *ids, size_t n,
                                            bool skip_special, char *text, size_t capacity,
                                            size_t *size, tern_error *err);

size_t tern_tokenizer_size(const tern_tokenizer *t);      /* number of tokens */
const char *tern_tokenizer_file(const tern_tokenizer *t); /* where it comes from */

/* How it works: "byte-level BPE", "BPE", "SentencePiece scores", "Unigram", "WordPiece" or "longest
 * match". */
const char *tern_tokenizer_kind(const tern_tokenizer *t);

/* Name of the pre-tokenizer, as in tokenizer.ggml.pre; "" when it has none. */
const char *tern_tokenizer_pre(const tern_tokenizer *t);
bool tern_token_ends_text(const tern_tokenizer *t, int32_t id); /* end-of-generation set */
int32_t tern_token_bos(const tern_tokenizer *t);                /* -1: none */
int32_t tern_token_eos(const tern_tokenizer *t);

/* One message of a chat; texts end with NUL. */
typedef struct tern_chat_message {
    const char *role;         /* "system", "user", "assistant", or another that the format knows */
    const char *content;      /* NULL: none, which only a message with tool_calls may lack */
    const char *tool_calls;   /* of an assistant: a JSON array in OpenAI's form, or NULL */
    const char *tool_call_id; /* of a tool's message: the call that it answers, or NULL */
    const char *name;         /* who speaks, or NULL */
    const char *reasoning;    /* of an assistant: what it thought before, or NULL */
} tern_chat_message;

/* All that a model sees before it answers. Zero what is not set. */
typedef struct tern_conversation {
    const tern_chat_message *messages; /* [n] */
    size_t n;
    const char *tools;     /* a JSON array in OpenAI's form, or NULL */
    const char *variables; /* a JSON object of further variables of the template, or NULL */
    bool no_answer;        /* true: the beginning of the assistant's answer is left out */
    bool continues; /* true: the last message is the beginning of the answer. What the template
                       writes after its text is left out */
} tern_conversation;

/*
 * Ids of a whole conversation in the model's own format, up to where the assistant's answer begins
 * (docs/chat.md). Text of messages, tools and variables never becomes a control token. Sizes like
 * tern_tokenize. TERN_ERR_TOKENIZER_DATA when the format is not known. With messages that name no
 * file: TERN_ERR_JSON for texts that are no such JSON, TERN_ERR_CHAT for what the format has no
 * place for or the template refuses, TERN_ERR_TEMPLATE for a template that cannot be run.
 */
TERN_MUST_CHECK tern_status tern_conversation_tokenize(const tern_tokenizer *t,
                                                       const tern_conversation *c, int32_t *ids,
                                                       size_t capacity, size_t *n, tern_error *err);

enum {
    TERN_MARK_TEMPLATE = 0,    /* what the format itself writes */
    TERN_MARK_MESSAGES = 254,  /* 1 to 254: message 0 to 253 and all that follow it */
    TERN_MARK_VARIABLES = 255, /* tools and variables, and roles, names and ids in a template */
};

/*
 * The same as text, control tokens as their texts, and where each byte comes from. Writes at most
 * capacity bytes and as many marks (marks may be NULL), always sets *size; no terminator.
 * TERN_ERR_BUFFER when capacity > 0 was too small.
 */
TERN_MUST_CHECK tern_status tern_conversation_text(const tern_tokenizer *t,
                                                   const tern_conversation *c, char *text,
                                                   uint8_t *marks, size_t capacity, size_t *size,
                                                   tern_error *err);

/*
 * *message: the first message that has a text of which the model would see nothing, as some formats
 * leave the system's out; c->n where there is none. Errors as those of tern_conversation_text.
 */
TERN_MUST_CHECK tern_status tern_conversation_drops(const tern_tokenizer *t,
                                                    const tern_conversation *c, size_t *message,
                                                    tern_error *err);

/* A conversation as the model sees it. All of it comes from one run of the template, so that a
 * template which writes the time says one time. */
typedef struct tern_rendering {
    char *text;     /* [size], no terminator; owned */
    uint8_t *marks; /* [size] where each byte comes from; owned */
    size_t size;
    int32_t *ids; /* [n]; owned */
    size_t n;
    size_t unseen; /* as tern_conversation_drops finds it */
} tern_rendering;

/* Text, ids and what is unseen at once. Errors as those of tern_conversation_tokenize, and
 * TERN_ERR_NOMEM; *out is empty then. tern_rendering_free frees what it holds. */
TERN_MUST_CHECK tern_status tern_conversation_render(const tern_tokenizer *t,
                                                     const tern_conversation *c,
                                                     tern_rendering *out, tern_error *err);
/* The same within limits, of which the template's own work knows nothing; NULL: there are none. */
TERN_MUST_CHECK tern_status tern_conversation_render_within(const tern_tokenizer *t,
                                                            const tern_conversation *c,
                                                            const tern_tokenize_limits *limits,
                                                            tern_rendering *out, tern_error *err);
void tern_rendering_free(tern_rendering *r); /* leaves it empty; NULL is fine */

/* tern_conversation_tokenize of messages alone. */
TERN_MUST_CHECK tern_status tern_chat_tokenize(const tern_tokenizer *t,
                                               const tern_chat_message *messages, size_t n_messages,
                                               int32_t *ids, size_t capacity, size_t *n,
                                               tern_error *err);

/* "template" where the file's own chat template is run; else the name of the format that is built
 * in
 * ("chatml", "llama3", "bitnet", "qa", ...), or "none". */
const char *tern_chat_format(const tern_tokenizer *t);

/* True if conversations are written by a template in whose source `words` occurs: the name of a
 * variable that it may look at, or a mark that it writes. */
bool tern_chat_mentions(const tern_tokenizer *t, const char *words);

/*
 * The built-in format for all chats from here on, whatever the template says, by that name; NULL:
 * the template after all. A name with a '/' or '.' in it is the path of a file that holds a
 * template, which is read now: TERN_ERR_IO, TERN_ERR_TEMPLATE. TERN_ERR_NAME for another name.
 * tern_model_params.chat_format does it for a model.
 */
TERN_MUST_CHECK tern_status tern_tokenizer_set_chat_format(tern_tokenizer *t, const char *name,
                                                           tern_error *err);

/*
 * Text of tokens as they arrive, never splitting a UTF-8 character: push returns the bytes that are
 * complete now (possibly none); flush returns what is left, broken sequences as U+FFFD. The bytes
 * belong to the stream until its next call. `first` text of SentencePiece models drops the leading
 * space only when the stream was made with strip_first.
 */
TERN_MUST_CHECK tern_status tern_text_stream_new(const tern_tokenizer *t, bool strip_first,
                                                 tern_text_stream **out, tern_error *err);
const char *tern_text_stream_push(tern_text_stream *s, int32_t id, size_t *size);
const char *tern_text_stream_flush(tern_text_stream *s, size_t *size);
void tern_text_stream_free(tern_text_stream **s);

/* Bytes of the longest token; looks at all of them. */
size_t tern_tokenizer_longest(const tern_tokenizer *t);

typedef struct tern_answer_text_params {
    const char *const *stops; /* [n_stops] texts that end the answer where they begin; copied */
    size_t n_stops;
    bool drop_space;    /* one space at the start is not part of the text; no stop has it */
    size_t most;        /* tokens between two turns; 0: one */
    size_t piece_bytes; /* tern_tokenizer_longest, where it is known; 0: it is looked for */
} tern_answer_text_params;

/*
 * The text of an answer as its tokens come: whole characters, and of these what is certain, so that
 * a stop text is never shown in part. push and finish return the bytes that became certain
 * (possibly none), which live until the next turn; finish, when no token follows, gives the rest.
 * The turn after `most` tokens at the latest. Nothing is allocated after tern_answer_text_new.
 * TERN_ERR_ARG for an empty stop, TERN_ERR_NOMEM. The tokenizer must outlive it.
 */
TERN_MUST_CHECK tern_status tern_answer_text_new(const tern_tokenizer *t,
                                                 const tern_answer_text_params *params,
                                                 tern_answer_text **out, tern_error *err);
const char *tern_answer_text_push(tern_answer_text *t, int32_t token, size_t *size);
const char *tern_answer_text_finish(tern_answer_text *t, size_t *size);
void tern_answer_text_turn(tern_answer_text *t);
void tern_answer_text_free(tern_answer_text **t);

/* True if a stop is complete: nothing follows. *stop (may be NULL) is the first of those that it
 * is. */
bool tern_answer_text_stopped(const tern_answer_text *t, size_t *stop);

TERN_API_END

#endif
