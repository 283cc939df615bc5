/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_SERVE_INTERFACES_CALL_TEXT_H
#define TERN_SERVE_INTERFACES_CALL_TEXT_H

/*
 * Finds calls of tools in the text of an answer while it arrives, and gives their arguments as
 * JSON, whatever the form. The result depends on the bytes alone, never on how they were split.
 */

#include "base/json_tree/text.h"
#include "serve/interfaces/call_form.h"
#include "serve/interfaces/call_literal.h"

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

/* Says what an argument of a tool may be, for forms that write texts as they are. */
typedef struct call_types {
    const void *user;
    call_value (*value)(const void *user, const char *tool, const char *key, size_t size);
} call_types;

/* Zero-initialise it, then set the form and the types. */
typedef struct call_reader {
    const call_form *form; /* NULL: all is text */
    call_types types;      /* without a function any value may be anything */
    int state;
    const char *want; /* the rest of the words that must come */
    bool in_hole;     /* a hole of these words has begun */
    size_t depth;     /* in JSON: open braces and brackets */
    bool in_string;   /* inside a string of JSON */
    bool escaped;     /* the next byte of the string is escaped */
    bool named;       /* a call has begun in this answer */
    bool later;       /* bytes of text have come */
    bool in_section;  /* a call of the section has ended */
    text held;        /* bytes that may turn out to be text or a call; of an argument: its name, or
                         its value as long as it may be anything */
    text out;         /* JSON that was made of the latest bytes */
    size_t matched;   /* bytes of the words that end something */
    char name[CALL_NAME_BYTES];
    size_t name_size;
    size_t n_arguments;
    call_value value; /* of the argument that is being read */
    const char *shut; /* the words that end it */
    call_literal literal;
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
