/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_SERVE_INTERFACES_CALL_TEXT_H
#define TERN_SERVE_INTERFACES_CALL_TEXT_H

/*
 * Finds calls of tools in the text of an answer while it arrives. The result depends on the bytes
 * alone, never on how they were split.
 */

#include "base/json_tree/text.h"

/* The ways in which models write calls. */
typedef enum call_style {
    CALL_NONE,
    CALL_TAGGED, /* <tool_call>{"name": ..., "arguments": {...}}</tool_call>, after some text;
                    several may follow each other: ChatML and Hermes */
    CALL_BARE,   /* {"name": ..., "parameters": {...}}: Llama 3.1 */
    CALL_LISTED, /* [TOOL_CALLS][{"name": ..., "arguments": {...}}, ...], after some text: Mistral.
                    Other members may follow in a call */
    CALL_NAMED   /* [TOOL_CALLS]NAME[ARGS]{...}, after some text; several may follow each other:
                    later ones of Mistral */
} call_style;

enum { CALL_STYLES = CALL_NAMED + 1 };

/* The words around a call. `begin` stands before the tool's name, `middle` between it and the
 * arguments, and `end` after them. */
typedef struct call_words {
    const char *trigger; /* a call begins with it, and no other text contains it */
    const char *begin, *middle, *end;
    const char *open, *shut; /* around the list of all calls; NULL: they are not a list */
    const char *separator;   /* between two calls; NULL: there may be text */
    const char *close;       /* the last part of `end`; text may follow it */
    const char *arguments;   /* the name of the member with the arguments */
    const char *head; /* pattern of a call up to its arguments, without blanks: characters stand for
                         themselves; n, t and a for the strings "name", the tool's name and
                         `arguments`; N for the tool's name without quotes, up to a [ */
} call_words;

const call_words *call_words_of(call_style style); /* not CALL_NONE */

/* Receives what was found, in the order of the text. */
typedef struct call_sink {
    void *user;
    void (*text)(void *user, const char *bytes, size_t size);      /* text that belongs to no
                                                                      call */
    void (*begin)(void *user, const char *name);                   /* a call of that tool begins */
    void (*arguments)(void *user, const char *bytes, size_t size); /* more of the call's
                                                                      arguments */
    void (*end)(void *user);                                       /* the arguments are complete */
} call_sink;

enum { CALL_NAME_BYTES = 129, CALL_HEAD_BYTES = 512 };

/* Zero-initialise it, then set the style. */
typedef struct call_reader {
    call_style style;
    int state;
    unsigned step;  /* in the head: the item that is expected next */
    size_t depth;   /* in the arguments: open braces and brackets */
    bool in_string; /* inside a string of JSON */
    bool escaped;   /* the next byte of the string is escaped */
    bool named;     /* a call has begun in this answer */
    text held;      /* bytes that may turn out to be text or a call */
    size_t matched; /* bytes of `close` that were found */
    char name[CALL_NAME_BYTES];
    size_t name_size;
    const char *word; /* in the head: the rest of a member's name */
} call_reader;

/*
 * Reads more of the text and calls the sink. White space before a call, and at the end of an answer
 * with calls, is dropped. Something that begins like a call but is not one is text. `held.failed`
 * is set if there was no memory.
 */
void call_reader_take(call_reader *r, const call_sink *s, const char *bytes, size_t size);

/* Ends the text. Held bytes become text, unless they are the beginning of a call without its
 * arguments. */
void call_reader_finish(call_reader *r, const call_sink *s);

void call_reader_free(call_reader *r);

#endif
