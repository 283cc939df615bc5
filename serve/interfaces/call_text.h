/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_SERVE_INTERFACES_CALL_TEXT_H
#define TERN_SERVE_INTERFACES_CALL_TEXT_H

/*
 * Calls of tools in the text of an answer, while it arrives. What is found depends on the bytes
 * alone, never on how they were split.
 */

#include "base/json_tree/text.h"

/* How a model writes a call. */
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

/* A call as it is written: before the tool's name, between it and the arguments, after these. */
typedef struct call_words {
    const char *trigger; /* with which it begins, and which no other text has */
    const char *begin, *middle, *end;
    const char *open, *shut; /* around all calls, which then are one list; else NULL */
    const char *separator;   /* between two calls; NULL: text may stand there */
    const char *close;       /* the last part of `end`: text may follow */
    const char *arguments;   /* the name of the member with the arguments */
    const char *head; /* what a call consists of up to its arguments, blanks aside: characters
                         that stand for themselves; n, t, a: the texts "name", the tool's name,
                         `arguments`; N: the tool's name without quotes, up to a [ */
} call_words;

const call_words *call_words_of(call_style style); /* not CALL_NONE */

/* Who is told what was found, in the order of the text. */
typedef struct call_sink {
    void *user;
    void (*text)(void *user, const char *bytes, size_t size);      /* that belongs to no call */
    void (*begin)(void *user, const char *name);                   /* a call of that tool */
    void (*arguments)(void *user, const char *bytes, size_t size); /* more of its arguments */
    void (*end)(void *user);                                       /* they are complete */
} call_sink;

enum { CALL_NAME_BYTES = 129, CALL_HEAD_BYTES = 512 };

/* Zero-initialise it, then set the style. */
typedef struct call_reader {
    call_style style;
    int state;
    unsigned step;  /* of the head: what is expected next */
    size_t depth;   /* of the arguments: braces and brackets that are open */
    bool in_string; /* of JSON */
    bool escaped;   /* the next byte of the string */
    bool named;     /* a call was begun */
    text held;      /* what may still be one thing or another */
    size_t matched; /* of what ends a call */
    char name[CALL_NAME_BYTES];
    size_t name_size;
    const char *word; /* in the head, of a member's name: what is left of it */
} call_reader;

/*
 * White space before a call, and at the end of an answer with calls, is not text. What begins as a
 * call and is none is text. `held.failed` says that memory failed.
 */
void call_reader_take(call_reader *r, const call_sink *s, const char *bytes, size_t size);

/* No more follows: what was held back is text, but for the beginning of a call without a name. */
void call_reader_finish(call_reader *r, const call_sink *s);

void call_reader_free(call_reader *r);

#endif
