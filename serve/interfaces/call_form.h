/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_SERVE_INTERFACES_CALL_FORM_H
#define TERN_SERVE_INTERFACES_CALL_FORM_H

/*
 * The form in which a model writes calls of tools: the words around names and arguments. Grammars
 * are made of it (call_grammar.h), and calls are found by it (call_text.h).
 *
 *   section_open  open NAME middle ARGUMENTS close  separator  open NAME ... close  section_close
 *
 * In words, CALL_HOLE stands for an id or a number: 1 to 16 letters, digits, '_' or '-'. Blanks in
 * words are what a model should write; readers do without them.
 */

#include <stdbool.h>
#include <stddef.h>

#define CALL_HOLE '\001'

/* How arguments are written. */
typedef enum call_writing {
    CALL_JSON,     /* a JSON object */
    CALL_LITERALS, /* (key=value, ...) or {key:value, ...}; values as in Python, or texts between a
                      mark */
    CALL_EACH      /* each between words of its own; texts as they are, other values as JSON */
} call_writing;

/* The look that ids of calls must have, because the template says so or writes them. */
typedef enum call_ids {
    CALL_IDS_ANY,
    CALL_IDS_NINE,    /* nine letters and digits */
    CALL_IDS_FUNCTION /* functions.NAME:NUMBER */
} call_ids;

enum { CALL_WORD_BYTES = 128 };
typedef char call_word[CALL_WORD_BYTES];

typedef struct call_form {
    call_writing writing;
    call_ids ids;
    call_word section_open, section_close; /* around all calls; "": each stands for itself, and text
                                              may follow it */
    call_word open, middle, close, separator;
    size_t lead;    /* bytes at the beginning of `open` that other texts may have, too */
    bool single;    /* an answer has one call at most */
    bool at_start;  /* calls are the whole answer: its first bytes tell */
    bool untold;    /* the template tells of no tools: the model is told in the server's words */
    bool unwritten; /* the template writes no calls: they are a part of texts */
    bool python;    /* truth values are True and False */

    /* CALL_LITERALS: middle ends before the bracket. */
    char bracket;     /* '(' or '{' */
    bool quoted;      /* names of arguments are in quotes, so that JSON does as well */
    call_word quote;  /* mark around texts; "": usual quotes */
    call_word assign; /* between name and value */

    /* CALL_EACH: key_open KEY text_open TEXT text_close, or key_open KEY json_open VALUE
     * json_close */
    call_word key_open, text_open, text_close, json_open, json_close;

    call_word comma; /* between two arguments, unless they are JSON */
} call_form;

/* Forms with a name of their own. */
typedef enum call_style {
    CALL_TAGGED,   /* <tool_call>{"name": ..., "arguments": {...}}</tool_call>: ChatML and Hermes */
    CALL_BARE,     /* {"name": ..., "parameters": {...}}: Llama 3.1 */
    CALL_LISTED,   /* [TOOL_CALLS][{"name": ..., "arguments": {...}}, ...]: Mistral */
    CALL_NAMED,    /* [TOOL_CALLS]NAME[ARGS]{...}: later ones of Mistral */
    CALL_PYTHON,   /* [NAME(key=value, ...), ...] as the whole answer: Llama 4 */
    CALL_CHANNELS, /* a message to functions.NAME, as channels.h tells it: gpt-oss */
    CALL_STYLES
} call_style;

const call_form *call_form_of(call_style style);

/* The first bytes of a call, which no text of the answer may have. Returns how many they are, at
 * least 1 and at most CALL_TRIGGER_BYTES. */
enum { CALL_TRIGGER_BYTES = 64 };
size_t call_form_trigger(const call_form *f, char out[CALL_TRIGGER_BYTES + 1]);

/* Tells what a value of an argument may be, by its schema. */
typedef enum call_value {
    CALL_VALUE_ANY,
    CALL_VALUE_TEXT, /* always a text */
    CALL_VALUE_JSON  /* never a text */
} call_value;

#endif
