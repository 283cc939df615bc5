/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_SERVE_INTERFACES_TOOLS_H
#define TERN_SERVE_INTERFACES_TOOLS_H

/* Tools that a request declares: what the model is told of them, and which it may call. */

#include "base/json_tree/value.h"
#include "serve/http/refusal.h"
#include "serve/interfaces/call_text.h"
#include "tern/tokenizer.h"

typedef struct tool {
    const char *name;     /* of letters, digits, '_', '-' and '.' */
    const json_t *schema; /* of its arguments, an object; NULL: none was given */
    char place[64];       /* of the schema in the request, for messages */
} tool;

/* How the fields of an interface are written. */
typedef enum tools_form {
    TOOLS_OF_CHATS,     /* {"type": "function", "function": {"name", "parameters", ...}} */
    TOOLS_OF_RESPONSES, /* {"type": "function", "name", "parameters", ...} */
    TOOLS_OF_MESSAGES   /* {"name", "input_schema", ...} */
} tools_form;

enum { MOST_TOOLS = 128 };

/* Points into the body of the request. */
typedef struct toolset {
    tool *list; /* [n] those that may be called */
    size_t n;
    bool required;    /* the answer is a call */
    bool single;      /* and of calls there is at most one */
    call_style style; /* of calls in the answer; CALL_NONE: there can be none */
    char *told;       /* what a template gets: a JSON array in OpenAI's form; NULL: nothing */
} toolset;

/*
 * Reads `tools`, `tool_choice` and `parallel_tool_calls` of a body. `style` is what the model's
 * template has: with CALL_NONE tools that may be called are refused. False after a refusal. Call
 * tools_free in any case.
 */
bool tools_read(toolset *set, tools_form form, const json_t *body, call_style style, refusal *r);
void tools_free(toolset *set);

/* How the template of a tokenizer writes calls: the first style in which a call is found again
 * in what it makes of one. CALL_NONE too where it does not tell the model of tools. */
call_style tools_find_style(const tern_tokenizer *t);

#endif
