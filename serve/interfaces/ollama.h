/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_SERVE_INTERFACES_OLLAMA_H
#define TERN_SERVE_INTERFACES_OLLAMA_H

/*
 * Requests of Ollama's interface. A table has their fields. Each is written as a field of a chat, a
 * completion or an embedding, which are then read as if they had been sent in that form; so they
 * get the same answers. Other fields are harmless, or refused by name.
 */

#include "serve/interfaces/ask.h"

/* The requests that ask the model something. */
typedef enum ollama_kind {
    OLLAMA_CHAT = 1,
    OLLAMA_GENERATE = 2,
    OLLAMA_EMBED = 4,
    OLLAMA_EMBEDDING = 8, /* the older form of OLLAMA_EMBED, with one text */
    OLLAMA_TEXT = OLLAMA_CHAT | OLLAMA_GENERATE,
    OLLAMA_ALL = OLLAMA_TEXT | OLLAMA_EMBED | OLLAMA_EMBEDDING
} ollama_kind;

/*
 * Reads bytes[size] into a. *empty: the request has no prompt, which asks for the model to be
 * loaded; then only its model's name was read. False after a refusal, which names the field as
 * Ollama does. Call ask_free in any case.
 */
bool ollama_read(ask *a, ollama_kind kind, const ask_rules *rules, const char *bytes, size_t size,
                 bool *empty, refusal *r);

/* True if the model thinks: its template has marks around that, or a variable that says whether it
 * does, or how much. */
bool ollama_thinks(const tern_tokenizer *t);

typedef struct ollama_field ollama_field;

/* State while a request is written anew. */
typedef struct ollama_reading {
    ollama_kind kind;
    ask_kind as;            /* how it is read afterwards */
    const ollama_field *at; /* the field in work */
    const json_t *given;    /* the body as it was sent */
    json_t *body;           /* the body that is made */
    text ignored;           /* harmless fields, as in ask.ignored */
    const ask_rules *rules;
    refusal *r;
} ollama_reading;

struct ollama_field {
    const char *name;
    unsigned kinds;                                  /* bits of ollama_kind */
    bool option;                                     /* it is a member of `options` */
    const char *shape;                               /* as in serve/interfaces/json_shape.h */
    bool (*take)(ollama_reading *in, json_t *value); /* false after a refusal */
    const char *to;                                  /* the field that is made of it; NULL: of
                                                        the same name, or none */
    double neutral; /* the only number that is taken, where there is only one */
};

/* Row i of the table; NULL after the last one. */
const ollama_field *ollama_field_at(size_t i);

/* ---- ollama_talk.c --------------------------------------------------------------------------- */

/* Writes messages as those of a chat: calls and their answers get ids, and arguments become texts.
 * False after a refusal. */
bool ollama_take_messages(ollama_reading *in, json_t *value);

/* Refuses a list of images that is not empty. */
bool ollama_take_images(ollama_reading *in, json_t *value);

#endif
